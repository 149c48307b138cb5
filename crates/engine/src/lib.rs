//! Runs gather, desired, plan, apply and report for any controller.
