//! Tokens with one permission missing in turn, tried on the simulator.

use std::sync::Arc;

use bytes::Bytes;
use futures::future::BoxFuture;
use http::{Request, Response};
use portolan_cloudflare_api::{Credential, Transport, TransportError};
use portolan_cloudflare_sim::{Options, Simulator};
use portolan_core::Hostname;
use serde_json::{Value, json};

use super::facts::{Account, AskedOf, Facts, NameFacts, Secret, TokenNeeds};
use super::finding::{CheckResult, Finding};
use super::gather::cloudflare::{Cloudflare, WantedPermissions, WriteProbes};
use super::judge::judge;
use super::permission::PERMISSIONS;

const ACCOUNT: &str = "0123456789abcdef0123456789abcdef";
const TUNNEL: &str = "11111111-2222-3333-4444-555555555555";
const CANARY: &str = "canary-token-5f2c";

struct InProcess(Simulator);

impl Transport for InProcess {
    fn send(&self, request: Request<Bytes>) -> BoxFuture<'_, Result<Response<Bytes>, TransportError>> {
        Box::pin(async move {
            let dropped = |error| TransportError { sent: true, message: format!("{error}") };
            self.0.answer(request).await.map_err(dropped)
        })
    }
}

/// All that is needed, but one permission and what it allows.
fn permissions(but: &str, level: Option<&str>) -> Value {
    let mut all = json!({
        "tunnel": "edit", "access_apps": "edit", "access_service_tokens": "edit", "access_groups": "read", "zone": "read",
        "dns": "edit", "rulesets": "edit", "ssl": "read",
    });
    match level {
        Some(level) => all[but] = json!(level),
        None => drop(all.as_object_mut().and_then(|all| all.remove(but))),
    }
    all
}

fn simulator(token: &Value) -> Simulator {
    let simulator = Simulator::new(Options::default());
    let mut token = token.clone();
    token["token"] = json!(CANARY);
    let seed = json!({
        "accounts": [{"id": ACCOUNT, "name": "Example"}],
        "zones": [{"id": "00000000000000000000000000000001", "name": "example.com", "account": ACCOUNT}],
        "tunnels": [{"account": ACCOUNT, "id": TUNNEL, "name": "prod", "config_src": "cloudflare"}],
        "tokens": [token],
    });
    simulator.seed(seed).unwrap();
    simulator.connect(TUNNEL).unwrap();
    simulator
}

fn wanted(names: &[&str]) -> WantedPermissions {
    let name = |text: &&str| NameFacts { hostname: Hostname::parse(text).unwrap(), at_the_edge: true };
    WantedPermissions {
        account_id: ACCOUNT.to_owned(),
        zone_id: None,
        tunnels: vec![TUNNEL.to_owned()],
        names: names.iter().map(name).collect(),
    }
}

async fn found_with(simulator: &Simulator, wanted: &WantedPermissions, writes: WriteProbes) -> Vec<Finding> {
    let transport = Arc::new(InProcess(simulator.clone()));
    let cloudflare = Cloudflare::at("http://sim.invalid/client/v4", transport, writes);
    let api = cloudflare.ask(&Credential::token(CANARY), wanted).await;
    let account = Account {
        subject: "tenant default/prod".to_owned(),
        id: ACCOUNT.to_owned(),
        zone_id: wanted.zone_id.clone(),
        needs: TokenNeeds { groups: AskedOf::Yes, redirects: AskedOf::Yes },
        secret: Secret::Found("Secret default/t, key token".to_owned()),
        api: Some(api),
    };
    let findings = judge(&Facts { accounts: vec![account], ..Facts::default() }).0;
    assert!(findings.iter().all(|finding| !format!("{finding:?}").contains(CANARY)), "a token was shown");
    findings
}

async fn found(token: &Value) -> Vec<Finding> {
    found_with(&simulator(token), &wanted(&["app.example.com"]), WriteProbes::Tried).await
}

/// Checks that did not end well, with how they ended. An answer in process has no date, so the clock is not known.
fn amiss(findings: &[Finding]) -> Vec<(&'static str, CheckResult)> {
    let amiss = findings.iter().filter(|finding| finding.verdict != CheckResult::Ok && finding.check.id != "clock");
    amiss.map(|finding| (finding.check.id, finding.verdict)).collect()
}

#[tokio::test]
async fn a_token_with_everything_passes_every_check_and_nothing_is_changed() {
    let simulator = simulator(&json!({}));
    let before = simulator.state();

    let findings = found_with(&simulator, &wanted(&["app.example.com"]), WriteProbes::Tried).await;

    assert_eq!(amiss(&findings), [], "{findings:#?}");
    assert_eq!(simulator.state(), before);
    for permission in &PERMISSIONS {
        assert!(findings.iter().any(|finding| *finding.check == permission.check), "{} was not tried", permission.name);
    }
}

#[tokio::test]
async fn each_missing_permission_fails_alone_and_is_named_as_in_the_dashboard() {
    let cases = [
        ("tunnel", None, "permission-tunnel", "Account · Cloudflare Tunnel · Edit"),
        ("tunnel", Some("read"), "permission-tunnel", "Account · Cloudflare Tunnel · Edit"),
        ("access_apps", None, "permission-access-apps", "Account · Access: Apps and Policies · Edit"),
        ("access_apps", Some("read"), "permission-access-apps", "Account · Access: Apps and Policies · Edit"),
        ("access_service_tokens", None, "permission-service-tokens", "Account · Access: Service Tokens · Edit"),
        ("access_service_tokens", Some("read"), "permission-service-tokens", "Account · Access: Service Tokens · Edit"),
        (
            "access_groups",
            None,
            "permission-access-groups",
            "Account · Access: Organizations, Identity Providers, and Groups · Read",
        ),
        ("zone", None, "permission-zone", "Zone · Zone · Read"),
        ("dns", None, "permission-dns", "Zone · DNS · Edit"),
        ("dns", Some("read"), "permission-dns", "Zone · DNS · Edit"),
        ("rulesets", None, "permission-redirects", "Zone · Single Redirect · Edit"),
        ("rulesets", Some("read"), "permission-redirects", "Zone · Single Redirect · Edit"),
    ];
    for (group, level, check, name) in cases {
        let findings = found(&json!({"permissions": permissions(group, level)})).await;

        let failed: Vec<&Finding> = findings.iter().filter(|finding| finding.verdict == CheckResult::Failed).collect();
        assert_eq!(failed.len(), 1, "without {group}: {findings:#?}");
        assert_eq!(failed[0].check.id, check);
        assert!(failed[0].message.contains(&format!("lacks {name}")), "{}", failed[0].message);
        assert!(failed[0].next.as_ref().is_some_and(|next| next.contains(name)), "{:?}", failed[0].next);
    }
}

#[tokio::test]
async fn without_writes_only_reads_are_sent_and_what_may_be_changed_is_not_known() {
    let simulator = simulator(&json!({"permissions": permissions("dns", Some("read"))}));

    let findings = found_with(&simulator, &wanted(&["app.example.com"]), WriteProbes::LeftOut).await;

    assert!(simulator.requests().iter().all(|request| request.method == "GET"));
    let unknown: Vec<&str> = amiss(&findings).into_iter().map(|(check, _)| check).collect();
    assert_eq!(
        unknown,
        [
            "permission-tunnel",
            "permission-access-apps",
            "permission-service-tokens",
            "permission-dns",
            "permission-redirects"
        ]
    );
    assert!(amiss(&findings).iter().all(|(_, verdict)| *verdict == CheckResult::NotKnown));
}

#[tokio::test]
async fn certificates_that_may_not_be_read_leave_the_rule_of_one_label() {
    let simulator = simulator(&json!({"permissions": permissions("ssl", None)}));

    let findings = found_with(&simulator, &wanted(&["app.example.com", "a.b.example.com"]), WriteProbes::Tried).await;

    assert_eq!(amiss(&findings), [("certificate", CheckResult::Warning)], "{findings:#?}");
    let deeper = findings.iter().find(|finding| finding.verdict == CheckResult::Warning).unwrap();
    assert!(deeper.subject == "name a.b.example.com" && deeper.message.contains("one label"), "{deeper:?}");
}

#[tokio::test]
async fn an_advanced_certificate_covers_what_the_universal_one_does_not() {
    let simulator = simulator(&json!({}));
    let zone = "00000000000000000000000000000001";
    let wanted = wanted(&["a.dev.example.com", "*.dev.example.com", "a.b.c.example.com"]);
    simulator.put("certificate_packs", zone, json!({"hosts": ["example.com", "*.dev.example.com"]})).unwrap();

    let findings = found_with(&simulator, &wanted, WriteProbes::Tried).await;

    assert_eq!(amiss(&findings), [("certificate", CheckResult::Warning)], "{findings:#?}");
    let covered = findings
        .iter()
        .find(|finding| finding.subject == "name a.dev.example.com" && finding.check.id == "certificate");
    assert!(covered.unwrap().message.contains("advanced"), "{covered:?}");
}

#[tokio::test]
async fn a_token_that_is_unknown_switched_off_or_ended_is_told_and_nothing_else_is_asked() {
    let cases = [(json!({"disabled": true}), "disabled"), (json!({"expires_on": "2020-01-01T00:00:00Z"}), "expired")];
    for (token, status) in cases {
        let findings = found(&token).await;

        assert_eq!(amiss(&findings), [("token", CheckResult::Failed)], "{findings:#?}");
        assert!(findings.iter().any(|finding| finding.message.contains(status)), "{findings:#?}");
    }
    let simulator = simulator(&json!({}));
    simulator.revoke_token(CANARY);

    let findings = found_with(&simulator, &wanted(&[]), WriteProbes::Tried).await;

    assert_eq!(amiss(&findings), [("token", CheckResult::Failed)], "{findings:#?}");
    assert_eq!(simulator.requests().len(), 2, "both ways to verify, and nothing more");
}

#[tokio::test]
async fn a_token_of_the_account_is_verified_there_and_one_that_ends_soon_is_warned_of() {
    let findings = found(&json!({"owner": "account"})).await;
    assert_eq!(amiss(&findings), [], "{findings:#?}");

    let soon = jiff::Timestamp::now() + jiff::SignedDuration::from_hours(48);
    let findings = found(&json!({"expires_on": soon})).await;
    assert_eq!(amiss(&findings), [("token", CheckResult::Warning)], "{findings:#?}");
}

#[tokio::test]
async fn tunnels_that_are_missing_local_or_unconnected_are_told_apart() {
    let another = |id: &str| WantedPermissions { tunnels: vec![id.to_owned()], ..wanted(&[]) };
    let simulator = simulator(&json!({}));
    let (local, idle) = ("22222222-2222-3333-4444-555555555555", "33333333-2222-3333-4444-555555555555");
    for (id, source) in [(local, "local"), (idle, "cloudflare")] {
        simulator.put("cfd_tunnel", ACCOUNT, json!({"id": id, "name": id, "config_src": source})).unwrap();
    }

    let missing = found_with(&simulator, &another("99999999-2222-3333-4444-555555555555"), WriteProbes::Tried).await;
    let local = found_with(&simulator, &another(local), WriteProbes::Tried).await;
    let idle = found_with(&simulator, &another(idle), WriteProbes::Tried).await;

    assert_eq!(amiss(&missing), [("tunnel", CheckResult::Failed)]);
    assert_eq!(amiss(&local), [("tunnel", CheckResult::Failed)]);
    assert!(local.iter().any(|finding| finding.message.contains("from a file")), "{local:#?}");
    assert_eq!(amiss(&idle), [("connections", CheckResult::Warning)]);
}

#[tokio::test]
async fn a_name_outside_of_the_visible_zones_fails_and_the_tenants_zone_stands_in_for_the_list() {
    let findings = found_with(&simulator(&json!({})), &wanted(&["app.example.net"]), WriteProbes::Tried).await;
    assert_eq!(amiss(&findings), [("name-zone", CheckResult::Failed)]);

    let simulator = simulator(&json!({"permissions": permissions("zone", None)}));
    let wanted = WantedPermissions { zone_id: Some("00000000000000000000000000000001".to_owned()), ..wanted(&[]) };
    let findings = found_with(&simulator, &wanted, WriteProbes::Tried).await;
    assert_eq!(amiss(&findings), [("permission-zone", CheckResult::Warning)], "{findings:#?}");
}

#[tokio::test]
async fn a_spent_budget_is_told_and_asked_no_further() {
    let simulator = simulator(&json!({}));
    simulator.set_rate_limit(Some((12, std::time::Duration::from_secs(300))));

    let findings = found_with(&simulator, &wanted(&["app.example.com"]), WriteProbes::Tried).await;

    assert!(amiss(&findings).contains(&("budget", CheckResult::Failed)), "{findings:#?}");
    assert!(amiss(&findings).iter().all(|(check, verdict)| *check == "budget" || *verdict == CheckResult::NotKnown));
    assert!(simulator.requests().len() <= 12, "{}", simulator.requests().len());
}

#[tokio::test]
async fn an_account_without_zero_trust_is_told_what_to_do_and_no_permission_is_blamed() {
    let simulator = simulator(&json!({}));
    simulator.disable_zero_trust(ACCOUNT);

    let findings = found_with(&simulator, &wanted(&["app.example.com"]), WriteProbes::Tried).await;

    assert_eq!(amiss(&findings), [("zero-trust", CheckResult::Failed)], "{findings:#?}");
    let told = findings.iter().find(|finding| finding.check.id == "zero-trust").unwrap();
    assert!(told.next.as_ref().unwrap().contains("choose a team name"), "{told:?}");
}
