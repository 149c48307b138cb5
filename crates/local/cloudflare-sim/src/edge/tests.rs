//! The way of requests through the edge, from a simulator's state.

use serde_json::{Value, json};

use super::*;
use crate::{Options, Simulator};

const TUNNEL: &str = "11111111-2222-3333-4444-555555555555";

/// An account with the zone `example.com`, a tunnel, and a rule for every published name.
struct Stage {
    simulator: Simulator,
    account: String,
    zone: String,
}

impl Stage {
    fn new() -> Self {
        let simulator = Simulator::new(Options::default());
        let account = simulator.add_account("Example Inc");
        let zone = simulator.add_zone("example.com", &account, "pro").unwrap();
        simulator.put("cfd_tunnel", &account, json!({"id": TUNNEL, "name": "home", "config_src": "cloudflare"})).unwrap();
        Self { simulator, account, zone }
    }

    fn rules(self, rules: Value) -> Self {
        self.configure(json!({"ingress": rules}))
    }

    fn configure(self, config: Value) -> Self {
        self.simulator.lock().tunnels.get_mut(TUNNEL).unwrap().configuration["config"] = config;
        self
    }

    fn record(self, kind: &str, name: &str, content: &str, proxied: bool) -> Self {
        let record = json!({"type": kind, "name": name, "content": content, "proxied": proxied, "ttl": 1});
        self.simulator.put("dns_records", &self.zone, record).unwrap();
        self
    }

    /// A name that leads into the tunnel, where its rule answers 200.
    fn published(self, name: &str) -> Self {
        self.record("CNAME", name, &format!("{TUNNEL}.cfargotunnel.com"), true)
            .rules(json!([{"hostname": name, "service": "http_status:200"}, {"service": "http_status:404"}]))
    }

    fn put(&self, collection: &str, object: Value) -> String {
        self.simulator.put(collection, &self.account, object).unwrap()
    }

    fn decide(&self, host: &str, headers: &[(&str, &str)]) -> EdgeDecision {
        self.simulator.decide(&EdgeRequest::get(host, "/", headers))
    }

    fn status(&self, host: &str, headers: &[(&str, &str)]) -> Option<u16> {
        self.decide(host, headers).status()
    }
}

fn reason(decision: &EdgeDecision) -> &str {
    match &decision.outcome {
        EdgeOutcome::Unreachable { reason, .. } | EdgeOutcome::Refused { reason, .. } => reason,
        _ => "",
    }
}

#[test]
fn a_published_name_is_answered_by_its_rule() {
    let stage = Stage::new().published("www.example.com");

    let decision = stage.decide("www.example.com", &[]);

    assert_eq!(decision.status(), Some(200));
    assert_eq!((decision.zone.as_deref(), decision.tunnel.as_deref()), (Some("example.com"), Some(TUNNEL)));
    assert_eq!(decision.rule.unwrap().hostname, "www.example.com");
    assert_eq!(decision.access, EdgeAccess::Unprotected);
}

#[test]
fn names_without_a_way_say_why() {
    let stage = Stage::new()
        .record("A", "direct.example.com", "10.0.0.5", false)
        .record("A", "outside.example.com", "203.0.113.5", true)
        .record("TXT", "text.example.com", "\"x\"", false)
        .record("CNAME", "lost.example.com", "99999999-2222-3333-4444-555555555555.cfargotunnel.com", true)
        .record("CNAME", "early.example.com", &format!("{TUNNEL}.cfargotunnel.com"), true);
    let cases = [
        ("www.example.net", 530, "no active zone"),
        ("none.example.com", 530, "no A, AAAA or CNAME record"),
        ("text.example.com", 530, "no A, AAAA or CNAME record"),
        ("direct.example.com", 530, "not proxied"),
        ("outside.example.com", 522, "203.0.113.5"),
        ("lost.example.com", 530, "there is no tunnel"),
        ("early.example.com", 530, "nowhere yet"),
    ];

    for (host, status, words) in cases {
        let decision = stage.decide(host, &[]);

        assert_eq!(decision.status(), Some(status), "{host}");
        assert!(reason(&decision).contains(words), "{host}: {}", reason(&decision));
        assert!(!decision.is_served());
    }
}

#[test]
fn a_tunnel_of_another_account_is_not_used() {
    let stage = Stage::new().published("www.example.com");
    let other = stage.simulator.add_account("Other");
    let zone = stage.simulator.add_zone("example.org", &other, "free").unwrap();
    let content = format!("{TUNNEL}.cfargotunnel.com");
    let record = json!({"type": "CNAME", "name": "www.example.org", "content": content, "proxied": true, "ttl": 1});
    stage.simulator.put("dns_records", &zone, record).unwrap();

    let decision = stage.decide("www.example.org", &[]);

    assert_eq!(decision.status(), Some(530));
    assert!(reason(&decision).contains("another account"));
}

#[test]
fn wildcard_records_answer_for_names_that_have_none() {
    let stage = Stage::new()
        .record("TXT", "taken.example.com", "\"x\"", false)
        .record("CNAME", "*.example.com", &format!("{TUNNEL}.cfargotunnel.com"), true)
        .rules(json!([{"service": "hello_world"}]));

    assert_eq!(stage.status("any.example.com", &[]), Some(200));
    assert_eq!(stage.status("deep.any.example.com", &[]), Some(200));
    assert_eq!(stage.status("taken.example.com", &[]), Some(530));
    assert_eq!(stage.status("below.taken.example.com", &[]), Some(530));
    assert_eq!(stage.status("example.com", &[]), Some(530));
}

#[test]
fn aliases_are_followed_and_circles_end() {
    let stage = Stage::new()
        .published("www.example.com")
        .record("CNAME", "alias.example.com", "www.example.com", true)
        .record("CNAME", "a.example.com", "b.example.com", true)
        .record("CNAME", "b.example.com", "a.example.com", true);

    assert_eq!(stage.decide("alias.example.com", &[]).tunnel.as_deref(), Some(TUNNEL));
    assert!(reason(&stage.decide("a.example.com", &[])).contains("never end"));
}

#[test]
fn a_configuration_without_a_fitting_rule_leads_nowhere() {
    let stage = Stage::new().published("www.example.com").rules(json!([]));

    assert!(reason(&stage.decide("www.example.com", &[])).contains("no rule"));
}

#[tokio::test]
async fn origins_that_cannot_be_reached_are_named() {
    let stage = Stage::new().published("www.example.com").rules(json!([{"service": "tcp://db:5432"}]));

    let answer = stage.simulator.ask("www.example.com", "/", &[]).await;

    assert_eq!(answer.status, 502);
    assert!(answer.text().contains("tcp://db:5432"), "{}", answer.text());
}
