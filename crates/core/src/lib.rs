//! Values that every controller shares: names, conditions, problems, plans, marks, the deletion ledger.
