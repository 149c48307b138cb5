//! Which part of the job a process does.

use std::fmt;

/// The lease by which one process leads that sees routes; the older operators had none.
pub const LEASE: &str = portolan_zerotrust_model::OPERATOR_LEASE;
/// The lease by which one process leads that only keeps the Deployments in shape.
pub const MANAGER_LEASE: &str = portolan_zerotrust_manager::LEASE;

/// A role, as the environment variable `ROLE` names it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Role {
    /// Everything in one process.
    #[default]
    All,
    /// Keeps the operator's own Deployments in shape.
    Manager,
    /// Turns routes into tasks and collects results.
    KubeWorker,
    /// Carries tasks out at Cloudflare.
    CloudflareWorker,
}

impl Role {
    /// Reads a role; hyphens count as underscores.
    pub fn parse(text: &str) -> Option<Self> {
        match text.trim().to_ascii_lowercase().replace('-', "_").as_str() {
            "all" => Some(Self::All),
            "manager" => Some(Self::Manager),
            "kube_worker" => Some(Self::KubeWorker),
            "cloudflare_worker" => Some(Self::CloudflareWorker),
            _ => None,
        }
    }

    /// The role as it is written.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::All => "all",
            Self::Manager => "manager",
            Self::KubeWorker => "kube_worker",
            Self::CloudflareWorker => "cloudflare_worker",
        }
    }

    /// Whether it keeps the operator's own Deployments in shape.
    pub fn shapes(self) -> bool {
        matches!(self, Self::All | Self::Manager)
    }

    /// Whether it turns routes into tasks.
    pub fn sees_routes(self) -> bool {
        matches!(self, Self::All | Self::KubeWorker)
    }

    /// Whether it carries tasks out.
    pub fn carries_out(self) -> bool {
        matches!(self, Self::All | Self::CloudflareWorker)
    }

    /// The lease by which one process of this role leads. Who sees routes stands for the same one, whatever else it does.
    /// Workers at Cloudflare share their tasks by claims, not by a leader.
    pub fn lease(self) -> Option<&'static str> {
        match self {
            Self::All | Self::KubeWorker => Some(LEASE),
            Self::Manager => Some(MANAGER_LEASE),
            Self::CloudflareWorker => None,
        }
    }

    /// The job's own kinds that it works with.
    pub fn kinds(self) -> &'static [&'static str] {
        const TENANT: &str = "CloudflareZeroTrustTenant";
        const TEMPLATE: &str = "CloudflareZeroTrustTemplate";
        const TASK: &str = "CloudflareTask";
        const CONFIG: &str = "CloudflareZeroTrustOperatorConfig";
        match self {
            Self::All => &[TENANT, TEMPLATE, TASK, CONFIG],
            Self::Manager => &[CONFIG],
            Self::KubeWorker => &[TENANT, TEMPLATE, TASK],
            Self::CloudflareWorker => &[TENANT, TASK],
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_role_is_read_with_hyphens_and_in_any_case() {
        for role in [Role::All, Role::Manager, Role::KubeWorker, Role::CloudflareWorker] {
            assert_eq!(Role::parse(role.as_str()), Some(role));
            assert_eq!(Role::parse(&role.as_str().replace('_', "-").to_uppercase()), Some(role));
        }
        assert_eq!(Role::parse("captain"), None);
    }

    #[test]
    fn of_the_processes_that_see_routes_one_leads_whatever_else_they_do() {
        assert_eq!(Role::All.lease(), Role::KubeWorker.lease());
        assert_ne!(Role::Manager.lease(), Role::All.lease());
        assert_eq!(Role::CloudflareWorker.lease(), None);
    }

    #[test]
    fn a_role_works_with_kinds_that_are_defined() {
        let defined: Vec<String> =
            portolan_zerotrust_model::crds().into_iter().map(|definition| definition.spec.names.kind).collect();

        for role in [Role::All, Role::Manager, Role::KubeWorker, Role::CloudflareWorker] {
            assert!(role.kinds().iter().all(|kind| defined.iter().any(|known| known == kind)), "{role}");
        }
        assert_eq!(Role::All.kinds().len(), defined.len());
    }

    #[test]
    fn only_the_process_that_does_everything_has_more_than_one_side() {
        let sides = |role: Role| (role.shapes(), role.sees_routes(), role.carries_out());

        assert_eq!(sides(Role::All), (true, true, true));
        assert_eq!(sides(Role::Manager), (true, false, false));
        assert_eq!(sides(Role::KubeWorker), (false, true, false));
        assert_eq!(sides(Role::CloudflareWorker), (false, false, true));
    }
}
