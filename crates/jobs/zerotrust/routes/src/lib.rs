//! The zerotrust job's side in the cluster: routes become tasks, results come back.
