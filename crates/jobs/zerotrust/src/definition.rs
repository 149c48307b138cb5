//! The job as data: its names, kinds, roles, metrics and reasons, and how it starts.

use portolan_core::job::{JobSheet, LeaseName, LogScope, plain};
use portolan_core::metric::MetricGroup;
use portolan_core::reasons::Reason;
use portolan_engine::outcome::Startup;
use portolan_engine::{Drift, JobDefinition, Lacking, NeededKind, OwnNamespace, Provisions};
use portolan_zerotrust_model::{GROUP, JOB as NAME, crds};
use serde_json::Value;

use crate::job::{self, Settings};
use crate::names;
use crate::rights::ROLES;
use crate::role::{LEASE, MANAGER_LEASE, Role};

/// The job.
pub static JOB: JobDefinition = JobDefinition {
    part: |provisions| Some(role(provisions)).filter(|role| *role != Role::All).map(Role::as_str),
    namespace: |provisions| {
        Some(OwnNamespace { name: settings(provisions).operator_namespace, keeps: "tasks and states" })
    },
    lease: |provisions| role(provisions).lease(),
    kinds: |provisions| Some(role(provisions).kinds()),
    needs: |provisions| if role(provisions).sees_routes() { &[ROUTES] } else { &[] },
    lacking: Lacking::Waits,
    marks: |provisions| role(provisions) != Role::Manager,
    announce: |provisions| announce(&settings(provisions)),
    names: Some(names::NAMES),
    ..JobDefinition::of(SHEET, job::start)
};

const SHEET: JobSheet = JobSheet {
    help: "Annotated `HTTPRoutes`, and the kinds of cfzt.cloudflare.com",
    about: "annotated routes and the kinds of cfzt.cloudflare.com",
    definitions,
    roles: ROLES,
    leases: &[LeaseName::Leader(LEASE), LeaseName::Leader(MANAGER_LEASE), LeaseName::Each("cfzt-worker-")],
    metrics: &[
        MetricGroup {
            title: "Routes and names",
            about: "Of the roles `kube_worker` and `all`, while they lead.",
            metrics: portolan_zerotrust_routes::METRICS,
        },
        MetricGroup {
            title: "Tasks",
            about: "Of the roles `cloudflare_worker` and `all`.",
            metrics: portolan_zerotrust_worker::METRICS,
        },
    ],
    reasons: REASONS,
    log_scope: Some(LogScope { name: "tenant", namespace: "tenant_namespace" }),
    // Users of both older operators have one habit.
    older_prefixes: &["cloudflare-operator.io/"],
    usual: true,
    values: &["operatorConfig.create", "tenant.create", "exampleTemplates.install"],
    ..JobSheet::named(NAME, GROUP)
};

const REASONS: &[&[Reason]] = &[portolan_zerotrust_model::reasons::ALL];

/// What routes are.
const ROUTES: NeededKind = NeededKind {
    group: "gateway.networking.k8s.io",
    kind: "HTTPRoute",
    called: "HTTPRoute of the Gateway API",
    remedy: "install the Gateway API's standard definitions, version 1.0 or later (https://gateway-api.sigs.k8s.io/guides/)",
};

fn definitions() -> Vec<Value> {
    crds().into_iter().map(plain).collect()
}

fn settings(provisions: &Provisions) -> Settings {
    provisions.settings()
}

fn role(provisions: &Provisions) -> Role {
    provisions.get::<Settings>().map_or(Role::All, |settings| settings.role)
}

fn announce(settings: &Settings) {
    let mut intervals = vec![("sweep", settings.routes.sweep), ("lease", settings.worker.lease)];
    if let Drift::Every(every) = settings.routes.drift {
        intervals.push(("drift", every));
    }
    let startup = Startup {
        version: env!("CARGO_PKG_VERSION"),
        role: settings.role.as_str(),
        operator_namespace: &settings.operator_namespace,
        watch_namespaces: &settings.routes.watch_namespaces,
        intervals: &intervals,
    };
    startup.log();
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lease(role: Role) -> Option<String> {
        let provisions = Provisions::default().with(Settings { role, ..Settings::default() });
        let candidacy = JOB.candidacy("elsewhere", &provisions, "me")?;
        Some(format!("{}/{}", candidacy.namespace, candidacy.lease))
    }

    #[test]
    fn the_job_is_led_in_its_own_namespace_and_under_a_name_of_its_role() {
        let leader = Some("cloudflare-zero-trust/cloudflare-zero-trust-operator".to_owned());
        assert_eq!((lease(Role::All), lease(Role::KubeWorker)), (leader.clone(), leader));
        assert_eq!(lease(Role::Manager).as_deref(), Some("cloudflare-zero-trust/cloudflare-zero-trust-manager"));
        assert_eq!(lease(Role::CloudflareWorker), None);
    }

    #[test]
    fn every_lease_of_a_role_is_on_the_sheet() {
        for role in [Role::All, Role::Manager, Role::KubeWorker, Role::CloudflareWorker] {
            let is_known = |lease: &str| JOB.sheet.leases.iter().any(|name| name.names(lease));
            assert!(role.lease().is_none_or(is_known), "{role}");
            assert!(JOB.sheet.role(role.as_str()).is_some(), "{role}");
        }
    }
}
