//! Makes a name reachable, protected first: rules, records and Access as one ordered plan.
