//! Jobs for tests: one that is divided into roles, and one that is not.

use portolan_core::job::{JobRole, JobSheet};
use portolan_core::rights::RoleRule;
use serde_json::{Value, json};

const OURS: &str = "cfzt.cloudflare.com";
const KINDS: &str = "networking.cloudflare-operator.io";

/// Both.
pub(crate) const JOBS: &[&JobSheet] = &[&CLOUDFLARE, &ZEROTRUST];

const CLOUDFLARE: JobSheet = JobSheet {
    about: "kinds",
    definitions: || vec![definition(KINDS, "dnsrecords")],
    roles: &[JobRole::whole("cloudflare", || {
        vec![RoleRule::cluster(KINDS, &["dnsrecords/status"], &["patch"], ""), TASKS]
    })],
    pod_fields: &[("POD_NAMESPACE", "metadata.namespace")],
    ..JobSheet::named("cloudflare", KINDS)
};

const ZEROTRUST: JobSheet = JobSheet {
    about: "annotated routes",
    usual: true,
    values: &["operatorConfig.create", "tenant.create", "exampleTemplates.install"],
    definitions: || vec![definition(OURS, "cloudflaretasks")],
    roles: &[
        JobRole::whole("all", || vec![ROUTES, TASKS]),
        JobRole { name: "manager", component: JobRole::OPERATOR, rules: || vec![TASKS] },
        JobRole { name: "kube_worker", component: "kube-worker", rules: || vec![ROUTES, TASKS] },
        JobRole { name: "cloudflare_worker", component: "cloudflare-worker", rules: || vec![TASKS] },
    ],
    ..JobSheet::named("zerotrust", OURS)
};

const ROUTES: RoleRule = RoleRule::cluster("gateway.networking.k8s.io", &["httproutes"], &["patch"], "routes");
const TASKS: RoleRule = RoleRule::own("", &["configmaps"], &["list", "patch"], "what is kept").only(&["kept"]);

fn definition(group: &str, plural: &str) -> Value {
    json!({"kind": "CustomResourceDefinition", "metadata": {"name": format!("{plural}.{group}")},
        "spec": {"group": group, "names": {"plural": plural}}})
}
