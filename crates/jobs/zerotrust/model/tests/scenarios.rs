//! Manifests as users have them → what is asked of Cloudflare for each route, as golden text.

use std::net::Ipv4Addr;
use std::path::Path;
use std::sync::Arc;

use portolan_core::{ObjectKey, OwnerId, Problem};
use portolan_publication::{Desired, Record};
use portolan_zerotrust_model::{
    AddressSource, Catalogue, CloudflareZeroTrustTemplate, CloudflareZeroTrustTenant, Enabled, HttpRoute, RouteInput,
    Sought, WantedRoute, desired, select, settings,
};
use serde::de::DeserializeOwned;
use serde_json::Value;

const OPERATOR_NAMESPACE: &str = "cloudflare-zero-trust";
/// The zone of all names below `example.com`.
const ZONE: &str = "2222222222222222222222222222222f";
/// The address of every Service.
const BALANCER: Ipv4Addr = Ipv4Addr::new(10, 20, 30, 40);

/// The objects of a file.
#[derive(Default)]
struct World {
    tenants: Vec<Arc<CloudflareZeroTrustTenant>>,
    templates: Vec<Arc<CloudflareZeroTrustTemplate>>,
    routes: Vec<HttpRoute>,
}

impl World {
    fn read(text: &str) -> Self {
        let mut world = Self::default();
        for document in text.split("\n---\n") {
            let object: Value = serde_saphyr::from_str(document).expect("the file is YAML");
            match object["kind"].as_str().unwrap_or_default() {
                "CloudflareZeroTrustTenant" => world.tenants.push(Arc::new(typed(object))),
                "CloudflareZeroTrustTemplate" => world.templates.push(Arc::new(typed(object))),
                kind => {
                    assert_eq!(kind, "HTTPRoute", "a scenario holds tenants, templates and routes");
                    world.routes.push(typed(object));
                }
            }
        }
        world
    }

    fn wanted(&self, route: &RouteInput) -> Result<(WantedRoute, Vec<String>), Problem> {
        let selected = select(route, self, OPERATOR_NAMESPACE)?;
        let settings = settings(route, &selected)?;
        let target = match settings.target()? {
            AddressSource::None => None,
            AddressSource::Static(ip) => Some(ip),
            AddressSource::Service(_) => Some(BALANCER),
        };
        let zone = route.hostname()?.as_str().ends_with("example.com").then_some(ZONE);
        let said = settings.lines().into_iter().filter(|line| !line.ends_with("(built in)")).collect();
        Ok((desired(route, &selected, &settings, zone, target)?, said))
    }

    fn plan(&self) -> String {
        self.routes.iter().map(RouteInput::read).flat_map(|route| self.lines(&route)).collect::<Vec<_>>().join("\n")
    }

    fn lines(&self, route: &RouteInput) -> Vec<String> {
        let mut lines = vec![route.key.to_string()];
        match (route.enabled(), self.wanted(route)) {
            (Enabled::No, _) => lines.push("  not published".to_owned()),
            (Enabled::Misspelt(suffix), _) => lines.push(format!("  not published: {suffix} is not enabled")),
            (Enabled::Unclear(value), _) => lines.push(format!("  not published: enabled is {value:?}")),
            (Enabled::Yes, Err(problem)) => lines.push(format!("  {}: {}", problem.reason, problem.message)),
            (Enabled::Yes, Ok((wanted, said))) => {
                let desired = wanted.spec.desired(&OwnerId::derive("scenarios")).expect("the task is complete");
                lines.extend(shown(&desired));
                lines.extend(said.iter().map(|line| format!("  said: {line}")));
                let notices = wanted.notices.iter();
                lines.extend(notices.map(|notice| format!("  notice: {}: {}", notice.reason, notice.message)));
            }
        }
        lines
    }
}

impl Catalogue for World {
    fn tenants(&self) -> Vec<Arc<CloudflareZeroTrustTenant>> {
        self.tenants.clone()
    }

    fn tenant(&self, key: &ObjectKey) -> Option<Arc<CloudflareZeroTrustTenant>> {
        self.tenants.iter().find(|tenant| tenant.key() == *key).cloned()
    }

    fn template(&self, key: &ObjectKey) -> Sought {
        self.templates.iter().find(|template| template.key() == *key).cloned().into()
    }
}

fn shown(desired: &Desired) -> Vec<String> {
    let mut lines = Vec::new();
    let mut line = |label: &str, value: String| lines.push(format!("  {label}: {value}").trim_end().to_owned());
    line("name", format!("{} in account {}", desired.hostname, desired.account_id));
    if let Some(token) = &desired.token {
        line("token", format!("{} for {}", token.name, token.duration));
    }
    if let Some(access) = &desired.access {
        line("application", format!("{} {}", access.name, Value::from(access.settings.clone())));
        line("e-mails", access.emails.join(", "));
        line("groups", access.groups.join(", "));
        line("policies", [access.policy_ids.clone(), access.policy_names.clone()].concat().join(", "));
    }
    if let Some(rule) = &desired.rule {
        line("rule", format!("{} → {} {}", rule.tunnel_id, rule.service, Value::from(rule.origin_request.clone())));
    }
    match &desired.record {
        Some(Record::Cname { target, .. }) => line("CNAME", target.clone()),
        Some(Record::Address { ip, ttl, proxied, .. }) => line("A", format!("{ip} ttl {ttl} proxied {proxied}")),
        None => {}
    }
    if desired.redirect {
        line("redirect", "to HTTPS".to_owned());
    }
    if desired.adopt {
        line("adopt", "what exists".to_owned());
    }
    lines
}

fn typed<T: DeserializeOwned>(object: Value) -> T {
    serde_json::from_value(object).expect("the manifest fits its type")
}

#[test]
fn manifests_ask_for_what_the_golden_texts_say() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scenarios");
    let mut files: Vec<_> = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|file| file.extension().is_some_and(|extension| extension == "yaml"));
    files.sort();
    assert!(files.len() >= 5, "scenarios are missing");

    for file in files {
        let name = file.file_stem().unwrap().to_str().unwrap().to_owned();
        let plan = World::read(&std::fs::read_to_string(&file).unwrap()).plan();
        insta::assert_snapshot!(name, plan);
    }
}
