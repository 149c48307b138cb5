//! A pod, the resolver's address and this machine's settings → the file that tells how names are found
//! (`pkg/kubelet/network/dns/dns.go`).

use std::net::Ipv4Addr;

use k8s_openapi::api::core::v1::Pod;

use super::CLUSTER_DOMAIN;

/// What a resolver reads at most (`pkg/apis/core/validation`: three servers; search lists of 32 names).
const MOST_SERVERS: usize = 3;
const MOST_NAMES: usize = 32;

/// A `resolv.conf`, as far as it is known to say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResolvConf {
    /// Servers.
    pub servers: Vec<String>,
    /// What is put behind names that are short.
    pub search: Vec<String>,
    /// As `ndots:5`.
    pub options: Vec<String>,
}

impl ResolvConf {
    /// Reads one. The last of several search lists counts.
    pub fn read(text: &str) -> Self {
        let mut read = Self::default();
        for line in text.lines() {
            let mut words = line.split_ascii_whitespace().map(str::to_owned);
            match words.next().as_deref() {
                Some("nameserver") => read.servers.extend(words.next()),
                Some("search" | "domain") => read.search = words.collect(),
                Some("options") => read.options.extend(words),
                _ => {}
            }
        }
        read
    }

    /// The file of a pod. Without a resolver at the port that clients ask at, it is this machine's, with what the pod adds.
    pub fn of_pod(pod: &Pod, resolver: Option<Ipv4Addr>, machine: &Self) -> Self {
        let spec = pod.spec.clone().unwrap_or_default();
        let policy = spec.dns_policy.as_deref().unwrap_or("ClusterFirst");
        // A pod on the node's network asks as the node does, unless it says otherwise.
        let of_node = spec.host_network == Some(true) && policy == "ClusterFirst";
        let mut conf = match (policy, resolver) {
            ("None", _) => Self::default(),
            ("ClusterFirst" | "ClusterFirstWithHostNet", Some(resolver)) if !of_node => {
                Self::of_cluster(pod.metadata.namespace.as_deref().unwrap_or("default"), resolver, machine)
            }
            _ => machine.clone(),
        };
        if let Some(own) = &spec.dns_config {
            conf.add(own);
        }
        conf.limited()
    }

    fn of_cluster(namespace: &str, resolver: Ipv4Addr, machine: &Self) -> Self {
        let own =
            [format!("{namespace}.svc.{CLUSTER_DOMAIN}"), format!("svc.{CLUSTER_DOMAIN}"), CLUSTER_DOMAIN.to_owned()];
        let search = own.into_iter().chain(machine.search.iter().cloned()).collect();
        Self { servers: vec![resolver.to_string()], search, options: vec!["ndots:5".to_owned()] }
    }

    /// What a pod says itself is added; an option that is there is replaced.
    fn add(&mut self, own: &k8s_openapi::api::core::v1::PodDNSConfig) {
        self.servers.extend(own.nameservers.iter().flatten().cloned());
        self.search.extend(own.searches.iter().flatten().cloned());
        for option in own.options.iter().flatten() {
            let Some(name) = &option.name else { continue };
            self.options.retain(|known| known.split(':').next() != Some(name));
            self.options.push(option.value.as_ref().map_or_else(|| name.clone(), |value| format!("{name}:{value}")));
        }
    }

    fn limited(mut self) -> Self {
        for (list, most) in [(&mut self.servers, MOST_SERVERS), (&mut self.search, MOST_NAMES)] {
            let mut seen = std::collections::BTreeSet::new();
            list.retain(|one| seen.insert(one.clone()));
            list.truncate(most);
        }
        self
    }

    /// As a file.
    pub fn text(&self) -> String {
        let mut lines: Vec<String> = Vec::new();
        if !self.search.is_empty() {
            lines.push(format!("search {}", self.search.join(" ")));
        }
        lines.extend(self.servers.iter().map(|server| format!("nameserver {server}")));
        if !self.options.is_empty() {
            lines.push(format!("options {}", self.options.join(" ")));
        }
        // A last line without an end would be none to some.
        lines.push(String::new());
        lines.join("\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pod::testing::pod;
    use serde_json::{Value, json};

    const RESOLVER: Option<Ipv4Addr> = Some(Ipv4Addr::new(127, 78, 0, 10));

    fn text(spec: Value, resolver: Option<Ipv4Addr>) -> String {
        let machine = ResolvConf::read("# by hand\nnameserver 192.0.2.53\nsearch example.com\noptions edns0\n");
        ResolvConf::of_pod(&pod(spec), resolver, &machine).text()
    }

    const OF_CLUSTER: &str = "search harbour.svc.cluster.local svc.cluster.local cluster.local example.com\n\
        nameserver 127.78.0.10\noptions ndots:5\n";
    const OF_MACHINE: &str = "search example.com\nnameserver 192.0.2.53\noptions edns0\n";

    #[test]
    fn a_pod_asks_the_runners_resolver_unless_it_says_otherwise() {
        assert_eq!(text(json!({}), RESOLVER), OF_CLUSTER);
        assert_eq!(text(json!({"dnsPolicy": "Default"}), RESOLVER), OF_MACHINE);
        assert_eq!(text(json!({"hostNetwork": true}), RESOLVER), OF_MACHINE);
        assert_eq!(text(json!({"hostNetwork": true, "dnsPolicy": "ClusterFirstWithHostNet"}), RESOLVER), OF_CLUSTER);
    }

    #[test]
    fn where_the_resolver_has_another_port_the_pod_asks_as_the_machine_does() {
        assert_eq!(text(json!({}), None), OF_MACHINE);
    }

    #[test]
    fn what_the_pod_says_itself_is_added_and_stands_alone_where_it_wants_nothing_else() {
        let own = json!({"nameservers": ["192.0.2.1"], "searches": ["own.example"],
            "options": [{"name": "ndots", "value": "2"}, {"name": "rotate"}]});

        let alone = "search own.example\nnameserver 192.0.2.1\noptions ndots:2 rotate\n";
        assert_eq!(text(json!({"dnsPolicy": "None", "dnsConfig": own}), RESOLVER), alone);
        let added = text(json!({"dnsConfig": own}), RESOLVER);
        assert!(added.contains("nameserver 127.78.0.10\nnameserver 192.0.2.1\noptions ndots:2 rotate"), "{added}");
    }
}
