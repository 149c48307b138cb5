//! Which part of the job a process does.

use std::fmt;

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

    /// Whether it turns routes into tasks.
    pub fn sees_routes(self) -> bool {
        matches!(self, Self::All | Self::KubeWorker)
    }

    /// Whether it carries tasks out.
    pub fn carries_out(self) -> bool {
        matches!(self, Self::All | Self::CloudflareWorker)
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
    fn only_the_process_that_does_everything_has_both_sides() {
        assert!(Role::All.sees_routes() && Role::All.carries_out());
        assert!(Role::KubeWorker.sees_routes() && !Role::KubeWorker.carries_out());
        assert!(!Role::CloudflareWorker.sees_routes() && Role::CloudflareWorker.carries_out());
        assert!(!Role::Manager.sees_routes() && !Role::Manager.carries_out());
    }
}
