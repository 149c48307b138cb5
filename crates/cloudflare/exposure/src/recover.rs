//! Ids that somebody says are ours → those that what stands at Cloudflare proves to be. Pure.
//!
//! What is recorded may be lost, and whoever writes the route could claim anything. A record is ours by its mark. A rule is
//! ours where a record with our mark leads to its tunnel. An application carries no mark: it is ours where it is claimed,
//! stands for the name that a record of ours publishes, is named as we name it, has a policy of ours, and nobody else
//! recorded it. A token is ours where such an application lets it pass and it is named as ours.

use portolan_core::{Claim, Mark};
use portolan_publication::{Footprint, Part};
use serde_json::Value;

use crate::app::App;
use crate::inventory::RecordKind;
use crate::live::Live;
use crate::plan_context::Elsewhere;
use crate::policy::{includes_token, is_marked};
use crate::record::PublishedRecord as _;
use crate::withdraw::TUNNEL_DOMAIN;

/// The names that we give to what carries no mark.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conventions {
    /// The application's.
    pub app: String,
    /// Those of its policies.
    pub policies: Vec<String>,
    /// The service token's.
    pub token: String,
}

/// What of the claimed is ours. `adopt` says that the application may have existed before us.
pub fn recover(
    claimed: &Footprint,
    names: &Conventions,
    mark: &Mark,
    live: &Live,
    elsewhere: &Elsewhere,
    adopt: bool,
) -> Footprint {
    let mut proven = Footprint {
        account_id: claimed.account_id.clone(),
        hostname: claimed.hostname.clone(),
        zone_id: claimed.zone_id.clone(),
        ..Footprint::default()
    };
    recover_records(&mut proven, claimed, mark, live);
    let publishes = proven.is_published() && !proven.is_adopted(Part::Record);
    let app = claimed.access_app_id.as_ref().filter(|id| publishes && !elsewhere.app_ids.contains(*id));
    let app = app.and_then(|id| live.app(id)).filter(|entry| is_named(&entry.item, claimed, names, mark));
    let Some(app) = app else { return proven };
    let policies = app.item.policies();
    proven.access_app_id = Some(app.id.clone());
    proven.access_policy_ids = policies.iter().filter(|policy| is_own(policy, names, mark)).filter_map(id_of).collect();
    if adopt {
        proven.adopted.insert(Part::App);
    }
    let token = claimed.service_token_id.as_ref().filter(|id| !elsewhere.token_ids.contains(*id));
    let token = token.and_then(|id| live.token(id)).filter(|entry| {
        (entry.item.name == names.token || is_marked(&entry.item.name, mark))
            && policies.iter().any(|policy| includes_token(policy, &entry.id))
    });
    if let Some(token) = token {
        proven.service_token_id = Some(token.id.clone());
        proven.service_token_client_id.clone_from(&token.item.client_id);
    }
    proven
}

fn recover_records(proven: &mut Footprint, claimed: &Footprint, mark: &Mark, live: &Live) {
    let Some(zone) = claimed.zone_id.as_deref() else { return };
    for entry in live.records(zone).iter().filter(|entry| claimed.hostname.as_deref() == Some(&*entry.item.name)) {
        let Claim::Ours { adopted } = entry.item.claim(mark) else { continue };
        match entry.item.held_kind() {
            Some(RecordKind::Cname) => {
                proven.cname_record_id = Some(entry.id.clone());
                let tunnel = entry.item.value().strip_suffix(TUNNEL_DOMAIN).map(str::to_owned);
                proven.has_rule = tunnel.is_some() && !adopted;
                proven.tunnel_id = tunnel;
            }
            Some(RecordKind::Address) => {
                proven.dns_record_id = Some(entry.id.clone());
                proven.dns_record_ip = Some(entry.item.value());
            }
            None => continue,
        }
        if adopted {
            proven.adopted.insert(Part::Record);
        }
    }
}

/// Whether an application stands for the name and looks as we make them.
fn is_named(app: &App, claimed: &Footprint, names: &Conventions, mark: &Mark) -> bool {
    Some(app.domain()) == claimed.hostname
        && app.name() == names.app
        && app.policies().iter().any(|policy| is_own(policy, names, mark))
}

fn is_own(policy: &Value, names: &Conventions, mark: &Mark) -> bool {
    let name = policy.get("name").and_then(Value::as_str).unwrap_or_default();
    names.policies.iter().any(|own| own == name) || is_marked(name, mark)
}

fn id_of(policy: &Value) -> Option<String> {
    policy.get("id").and_then(Value::as_str).map(str::to_owned)
}

/// Whether something of the claimed stands at all, whoever's it is.
pub fn stands(claimed: &Footprint, live: &Live) -> bool {
    let zone = claimed.zone_id.as_deref().unwrap_or_default();
    let record = claimed.record_ids().any(|id| live.record(zone, id).is_some());
    let app = claimed.access_app_id.as_ref().and_then(|id| live.app(id));
    let here = app.is_some_and(|entry| Some(entry.item.domain()) == claimed.hostname);
    record || here || claimed.service_token_id.as_ref().is_some_and(|id| live.token(id).is_some())
}

#[cfg(test)]
mod tests {
    use portolan_cloudflare_api::Entry;
    use portolan_core::{ObjectKey, OwnerId};
    use serde_json::json;

    use super::*;

    const TUNNEL: &str = "11111111-2222-3333-4444-555555555555";

    fn mark() -> Mark {
        let key = ObjectKey::namespaced("shop", "web");
        Mark { kind: "HTTPRoute".to_owned(), key, owner: OwnerId::derive("test"), adopted: false }
    }

    fn names() -> Conventions {
        let policies = vec!["web-allow-policy".to_owned(), "web-service-auth".to_owned()];
        Conventions { app: "web".to_owned(), policies, token: "web-service-token".to_owned() }
    }

    fn claimed() -> Footprint {
        let text = |text: &str| Some(text.to_owned());
        Footprint {
            account_id: text("acc"),
            hostname: text("web.example.com"),
            zone_id: text("z1"),
            cname_record_id: text("r1"),
            access_app_id: text("app"),
            service_token_id: text("tok"),
            ..Footprint::default()
        }
    }

    fn entry<T: portolan_cloudflare_api::Item>(body: Value) -> Entry<T> {
        Entry::read(body).unwrap()
    }

    fn live(comment: &str, app: Value, token: &str) -> Live {
        let record = json!({
            "id": "r1", "type": "CNAME", "name": "web.example.com", "content": format!("{TUNNEL}.cfargotunnel.com"),
            "ttl": 1, "proxied": true, "comment": comment,
        });
        Live {
            records: [("z1".to_owned(), vec![entry(record)])].into(),
            apps: vec![entry(app)],
            tokens: vec![entry(json!({"id": "tok", "name": token, "client_id": "c.access"}))],
            ..Live::default()
        }
    }

    fn app(name: &str, policy: &str) -> Value {
        json!({
            "id": "app", "name": name, "domain": "web.example.com", "type": "self_hosted",
            "policies": [
                {"id": "p1", "name": policy, "decision": "allow", "include": [{"email": {"email": "a@example.com"}}]},
                {"id": "p2", "name": "web-service-auth", "decision": "non_identity", "include": [{"service_token": {"token_id": "tok"}}]},
            ],
        })
    }

    fn recovered(live: &Live, elsewhere: &Elsewhere) -> Footprint {
        recover(&claimed(), &names(), &mark(), live, elsewhere, false)
    }

    #[test]
    fn heldout_f1_what_marks_and_names_prove_is_ours_again() {
        let live = live(&mark().write("", 500), app("web", "web-allow-policy"), "web-service-token");

        let proven = recovered(&live, &Elsewhere::default());

        assert_eq!((proven.has_rule, proven.tunnel_id.as_deref()), (true, Some(TUNNEL)));
        assert_eq!(proven.cname_record_id.as_deref(), Some("r1"));
        assert_eq!((proven.access_app_id.as_deref(), proven.access_policy_ids.len()), (Some("app"), 2));
        assert_eq!(proven.service_token_client_id.as_deref(), Some("c.access"));
        assert!(proven.adopted.is_empty());
    }

    #[test]
    fn heldout_f1_what_is_only_claimed_is_never_ours() {
        let whole = || app("web", "web-allow-policy");
        let unmarked = live("made by hand", whole(), "web-service-token");
        assert!(recovered(&unmarked, &Elsewhere::default()).is_empty(), "no record of ours publishes the name");

        let other = Mark { key: ObjectKey::namespaced("shop", "other"), ..mark() };
        assert!(
            recovered(&live(&other.write("", 500), whole(), "web-service-token"), &Elsewhere::default()).is_empty()
        );

        let mut theirs = app("web", "admins");
        theirs["policies"].as_array_mut().unwrap().truncate(1);
        for foreign in [app("by hand", "web-allow-policy"), theirs] {
            let proven = recovered(&live(&mark().write("", 500), foreign, "web-service-token"), &Elsewhere::default());
            assert!(proven.has_rule && proven.access_app_id.is_none() && proven.service_token_id.is_none());
        }

        let named = live(&mark().write("", 500), whole(), "somebodys-token");
        assert_eq!(recovered(&named, &Elsewhere::default()).service_token_id, None);
        let elsewhere = Elsewhere { app_ids: ["app".to_owned()].into(), ..Elsewhere::default() };
        assert_eq!(
            recovered(&live(&mark().write("", 500), whole(), "web-service-token"), &elsewhere).access_app_id,
            None
        );
    }
}
