//! Accounts and their rights: one for the process that does everything, or one for each role.

use portolan_core::job::{JobRole, JobSheet};
use portolan_core::rights::{Reach, RoleRule};
use serde_json::{Value, json};

use super::{Component, Installation, set};
use crate::values::ProcessMode;

const RBAC: &str = "rbac.authorization.k8s.io/v1";

impl Installation<'_> {
    /// Accounts, roles and bindings.
    pub(super) fn accounts(&self) -> Vec<Value> {
        let mut all = Vec::new();
        if self.values.service_account.create {
            all.extend(self.components().into_iter().map(|component| self.account(component)));
        }
        if self.values.rbac.create {
            all.extend(self.components().into_iter().flat_map(|component| self.rights(component)));
        }
        all
    }

    /// The name of a component's account.
    pub(super) fn account_name(&self, component: Component) -> String {
        self.named(super::first(&[&self.values.service_account.name, self.full_name()]), component)
    }

    fn account(&self, component: Component) -> Value {
        let mut account = self.object("v1", "ServiceAccount", &self.account_name(component), json!({}));
        if let Some(metadata) = account["metadata"].as_object_mut() {
            set(metadata, "annotations", json!(self.values.service_account.annotations));
        }
        account
    }

    fn rights(&self, component: Component) -> Vec<Value> {
        let name = self.named(self.full_name(), component);
        let subjects = json!([{
            "kind": "ServiceAccount", "name": self.account_name(component), "namespace": self.namespace(),
        }]);
        let binding = |kind: &str| {
            let role = json!({"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": name});
            json!({"roleRef": role, "subjects": subjects})
        };
        let mut all = Vec::new();
        let cluster = self.rules(component, Reach::Cluster);
        if !cluster.is_empty() {
            all.push(self.of_cluster(RBAC, "ClusterRole", &name, json!({"rules": cluster})));
            all.push(self.of_cluster(RBAC, "ClusterRoleBinding", &name, binding("ClusterRole")));
        }
        let own = self.rules(component, Reach::OperatorNamespace);
        if !own.is_empty() {
            all.push(self.object(RBAC, "Role", &name, json!({"rules": own})));
            all.push(self.object(RBAC, "RoleBinding", &name, binding("Role")));
        }
        all
    }

    fn rules(&self, component: Component, reach: Reach) -> Vec<Value> {
        let roles = self.jobs.iter().filter_map(|job| self.role(job, component));
        let rules = roles.flat_map(|role| (role.rules)()).filter(|rule| rule.reach == reach);
        rules.map(RoleRule::written).collect()
    }

    /// What a component does of a job.
    fn role(&self, job: &JobSheet, component: Component) -> Option<&'static JobRole> {
        match self.values.operator.mode {
            ProcessMode::Single => job.roles.first(),
            ProcessMode::Roles => job.roles.iter().skip(1).find(|role| role.component == component),
        }
    }
}
