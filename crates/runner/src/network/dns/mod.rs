//! Questions of the DNS about Services and pods → answers (the "Kubernetes DNS-Based Service Discovery" specification, version
//! 1.1.0, and what `CoreDNS` does where it says nothing).

pub mod answer;
pub mod message;
pub mod name;
pub mod resolv_conf;

/// Below which everything is ours to know.
pub const CLUSTER_DOMAIN: &str = "cluster.local";
