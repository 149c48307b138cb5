//! Writes of roles and bindings: nobody hands on rights that they do not have.

use portolan_rbac::escalation::full_authority;
use portolan_rbac::{AccessTarget, Attributes, Policy, ResourceTarget, RoleReference, Rule};
use serde_json::Value;

use super::forbidden;
use crate::call::Call;
use crate::object;
use crate::status::ApiError;

const GROUP: &str = "rbac.authorization.k8s.io";

impl Call {
    /// Refuses a role or a binding that gives more than the user has. `old` is null for a new one.
    pub(crate) fn confirm_rights(&self, old: &Value, new: &Value) -> Result<(), ApiError> {
        if self.resource.group != GROUP || self.user.is_privileged() || only_housekeeping(old, new) {
            return Ok(());
        }
        let policy = self.api.access.policy(&self.api.store);
        let refused = match self.resource.plural.as_str() {
            "roles" | "clusterroles" => self.escalates(&policy, old, new),
            _ => return self.confirm_binding(&policy, new),
        };
        refused.map_err(|why| ApiError::forbidden(self.resource.about(object::name(new)), &why))
    }

    fn escalates(&self, policy: &Policy, old: &Value, new: &Value) -> Result<(), String> {
        let (user, namespace) = (&self.user, &self.target.namespace);
        if policy.may_escalate(user, &self.resource.plural, namespace, &self.target.name) {
            return Ok(());
        }
        policy.confirm_no_escalation(user, namespace, &Rule::parse_all(new))?;
        let aggregates = |role: &Value| {
            role["aggregationRule"]["clusterRoleSelectors"].as_array().is_some_and(|selectors| !selectors.is_empty())
        };
        if (aggregates(new) || aggregates(old)) && policy.confirm_no_escalation(user, "", &full_authority()).is_err() {
            return Err("must have cluster-admin privileges to use the aggregationRule".to_owned());
        }
        Ok(())
    }

    fn confirm_binding(&self, policy: &Policy, new: &Value) -> Result<(), ApiError> {
        let (user, namespace) = (&self.user, &self.target.namespace);
        let role = RoleReference::parse(&new["roleRef"]);
        if policy.may_bind(user, &role, namespace) {
            return Ok(());
        }
        // The real server looks for the role under the name of what is written.
        let missing = |_| ApiError::not_found(self.resource.about(&role.name));
        let rules = policy.role(&role, namespace).map_err(missing)?;
        policy
            .confirm_no_escalation(user, namespace, rules)
            .map_err(|why| ApiError::forbidden(self.resource.about(object::name(new)), &why))
    }

    /// What an update or a patch creates needs the right to create.
    pub(crate) fn confirm_create(&self) -> Result<(), ApiError> {
        self.may_create(|attributes, reason| forbidden(&attributes.denied(reason)))
    }

    /// A connection into a pod needs the right to create, whichever method asks for it.
    pub(crate) fn confirm_connect(&self) -> Result<(), ApiError> {
        // As `ensureAuthorizedForVerb` says it: the reason alone, which is mostly empty.
        self.may_create(|_, reason| ApiError::forbidden(self.resource.about(&self.target.name), reason))
    }

    fn may_create(&self, refusal: impl FnOnce(&Attributes<'_>, &str) -> ApiError) -> Result<(), ApiError> {
        if self.user.is_privileged() {
            return Ok(());
        }
        let target = &self.target;
        let own = self.resource.is_namespace();
        let target = ResourceTarget {
            group: target.group.clone(),
            version: target.version.clone(),
            resource: target.plural.clone(),
            subresource: target.subresource.clone(),
            namespace: if own { target.name.clone() } else { target.namespace.clone() },
            name: target.name.clone(),
        };
        let attributes =
            Attributes { user: &self.user, verb: "create".to_owned(), target: AccessTarget::Resource(target) };
        let decision = self.api.access.policy(&self.api.store).decide(&attributes);
        if decision.allowed { Ok(()) } else { Err(refusal(&attributes, &decision.reason)) }
    }
}

/// Whether an update changes nothing but what garbage collection does.
fn only_housekeeping(old: &Value, new: &Value) -> bool {
    if old.is_null() {
        return false;
    }
    let without = |object: &Value| {
        let mut object = object.clone();
        for field in ["ownerReferences", "finalizers", "selfLink", "managedFields"] {
            object::set_meta(&mut object, field, None);
        }
        object
    };
    without(old) == without(new)
}
