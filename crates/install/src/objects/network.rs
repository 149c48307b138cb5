//! Who may reach the pods and what they may reach, and how many may be away at once.

use serde_json::{Value, json};

use super::workload::METRICS_PORT;
use super::{Component, Installation};

const DNS_PORT: u16 = 53;

impl Installation<'_> {
    /// The policy, the budgets, and the Service that leads to the metrics.
    pub(super) fn network(&self) -> Vec<Value> {
        let mut all = Vec::new();
        if self.values.network_policy.enabled {
            all.push(self.policy());
        }
        if self.values.pod_disruption_budget.enabled {
            all.extend(self.components().into_iter().map(|component| self.budget(component)));
        }
        if self.values.metrics.enabled {
            all.push(self.service());
        }
        all
    }

    fn policy(&self) -> Value {
        let spec = json!({
            "podSelector": {"matchLabels": self.all_pods()},
            "policyTypes": ["Ingress", "Egress"],
            "ingress": self.ingress(),
            "egress": self.egress(),
        });
        self.object("networking.k8s.io/v1", "NetworkPolicy", self.full_name(), json!({"spec": spec}))
    }

    fn ingress(&self) -> Vec<Value> {
        if !self.values.metrics.enabled {
            return Vec::new();
        }
        let mut rule = json!({"ports": [{"port": "metrics", "protocol": "TCP"}]});
        if !self.values.network_policy.metrics_from.is_empty() {
            rule["from"] = json!(self.values.network_policy.metrics_from);
        }
        vec![rule]
    }

    fn egress(&self) -> Vec<Value> {
        let policy = &self.values.network_policy;
        let port = |number: u16, protocol: &str| json!({"port": number, "protocol": protocol});
        let mut rules = vec![json!({"ports": [port(DNS_PORT, "UDP"), port(DNS_PORT, "TCP")]})];
        // A rule without ports would allow all of them.
        if !policy.egress_ports.is_empty() {
            let ports = policy.egress_ports.iter().map(|number| port(*number, "TCP"));
            rules.push(json!({"ports": ports.collect::<Vec<_>>()}));
        }
        rules.extend(policy.extra_egress.iter().map(|rule| json!(rule)));
        rules
    }

    fn budget(&self, component: Component) -> Value {
        let spec = json!({
            "maxUnavailable": self.values.pod_disruption_budget.max_unavailable,
            "selector": {"matchLabels": self.pods_of(component)},
        });
        let name = self.named(self.full_name(), component);
        self.object("policy/v1", "PodDisruptionBudget", &name, json!({"spec": spec}))
    }

    fn service(&self) -> Value {
        let port = json!({"name": "metrics", "port": METRICS_PORT, "targetPort": "metrics", "protocol": "TCP"});
        let spec = json!({"selector": self.all_pods(), "ports": [port]});
        self.object("v1", "Service", &format!("{}-metrics", self.full_name()), json!({"spec": spec}))
    }
}
