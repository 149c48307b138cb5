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
        simulator
            .put("cfd_tunnel", &account, json!({"id": TUNNEL, "name": "home", "config_src": "cloudflare"}))
            .unwrap();
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

const NOBODY: &[(&str, &str)] = &[];

fn email(address: &str) -> [(&str, &str); 1] {
    [(EMAIL_HEADER, address)]
}

fn allow(include: Value) -> Value {
    json!({"name": "allow", "decision": "allow", "include": include, "precedence": 1})
}

impl Stage {
    fn protected(self, policies: Value) -> Self {
        self.app(json!({"name": "app", "domain": "www.example.com", "type": "self_hosted", "policies": policies}))
    }

    fn app(self, app: Value) -> Self {
        self.put("access/apps", app);
        self
    }

    async fn api(&self, method: &str, path: &str, body: Value) -> Value {
        let request = http::Request::builder()
            .method(method)
            .uri(format!("/client/v4/accounts/{}/{path}", self.account))
            .header("authorization", "Bearer any")
            .body(body.to_string().into())
            .unwrap();
        let answer = self.simulator.answer(request).await.unwrap();
        let answer: Value = serde_json::from_slice(answer.body()).unwrap();
        assert_eq!(answer["success"], true, "{answer}");
        answer["result"].clone()
    }
}

#[tokio::test]
async fn strangers_are_sent_to_the_login() {
    let stage = Stage::new()
        .published("www.example.com")
        .protected(json!([allow(json!([{"email": {"email": "ann@example.com"}}]))]));

    let answer = stage.simulator.ask("www.example.com", "/a?b=1", NOBODY).await;

    assert_eq!(answer.status, 302);
    let location = answer.location().unwrap();
    let login = "https://example-inc.cloudflareaccess.com/cdn-cgi/access/login/www.example.com?";
    assert!(location.starts_with(login) && location.ends_with("&redirect_url=%2Fa%3Fb%3D1"), "{location}");
    assert_eq!(answer.decision.access, EdgeAccess::LoginNeeded);
    assert_eq!(answer.decision.app.unwrap().policies[0].decision, "allow");
}

#[test]
fn visitors_enter_where_a_policy_includes_them() {
    let stage = Stage::new().published("www.example.com").protected(json!([allow(
        json!([{"email": {"email": "ann@example.com"}}, {"email_domain": {"domain": "example.org"}}])
    )]));

    assert_eq!(stage.status("www.example.com", &email("Ann@example.com")), Some(200));
    assert_eq!(stage.status("www.example.com", &email("bob@example.org")), Some(200));
    assert_eq!(stage.status("www.example.com", &email("bob@example.com")), Some(403));
    assert_eq!(stage.status("www.example.com", &email("bob@sub.example.org")), Some(403));
}

#[test]
fn an_application_without_policies_lets_nobody_in() {
    let stage = Stage::new().published("www.example.com").protected(json!([]));

    assert_eq!(stage.status("www.example.com", NOBODY), Some(302));
    assert_eq!(stage.status("www.example.com", &email("ann@example.com")), Some(403));
}

#[test]
fn groups_are_asked_with_all_they_include_require_and_exclude() {
    let stage = Stage::new().published("www.example.com");
    let staff =
        stage.put("access/groups", json!({"name": "staff", "include": [{"email_domain": {"domain": "example.com"}}]}));
    let group = stage.put(
        "access/groups",
        json!({
            "name": "Engineering", "include": [{"group": {"id": staff}}],
            "require": [{"geo": {"country_code": "NL"}}], "exclude": [{"email": {"email": "eve@example.com"}}],
        }),
    );
    let stage = stage.protected(json!([allow(json!([{"group": {"id": group}}]))]));
    let from = |address, country| [(EMAIL_HEADER, address), (COUNTRY_HEADER, country)];

    assert_eq!(stage.status("www.example.com", &from("ann@example.com", "NL")), Some(200));
    assert_eq!(stage.status("www.example.com", &from("ann@example.com", "DE")), Some(403));
    assert_eq!(stage.status("www.example.com", &from("eve@example.com", "NL")), Some(403));
    assert_eq!(stage.status("www.example.com", &from("ann@example.org", "NL")), Some(403));
}

#[test]
fn the_first_policy_that_fits_decides() {
    let deny = json!({"name": "no", "decision": "deny", "include": [{"email": {"email": "eve@example.com"}}], "precedence": 1});
    let mut everyone = allow(json!([{"everyone": {}}]));
    everyone["precedence"] = json!(2);
    let stage = Stage::new().published("www.example.com").protected(json!([everyone, deny]));

    assert_eq!(stage.status("www.example.com", &email("eve@example.com")), Some(403));
    assert_eq!(stage.status("www.example.com", &email("ann@example.com")), Some(200));
    assert_eq!(stage.status("www.example.com", NOBODY), Some(302));
}

#[test]
fn a_bypass_asks_nobody_and_comes_first() {
    let office =
        json!({"name": "office", "decision": "bypass", "include": [{"ip": {"ip": "192.0.2.0/24"}}], "precedence": 2});
    let stage = Stage::new()
        .published("www.example.com")
        .protected(json!([allow(json!([{"email": {"email": "ann@example.com"}}])), office]));

    assert_eq!(stage.status("www.example.com", &[(IP_HEADER, "192.0.2.7")]), Some(200));
    assert_eq!(stage.status("www.example.com", &[(IP_HEADER, "198.51.100.7")]), Some(302));
}

#[tokio::test]
async fn a_service_token_opens_what_names_it_and_nothing_else() {
    let stage = Stage::new().published("www.example.com");
    let token = stage.api("POST", "access/service_tokens", json!({"name": "robot"})).await;
    let other = stage.api("POST", "access/service_tokens", json!({"name": "other"})).await;
    let service = json!({
        "name": "service", "decision": "non_identity", "precedence": 2,
        "include": [{"service_token": {"token_id": token["id"]}}],
    });
    let stage = stage.protected(json!([allow(json!([{"email": {"email": "ann@example.com"}}])), service]));
    let shown = |token: &Value, secret: &Value| {
        let (id, secret) = (token["client_id"].as_str().unwrap().to_owned(), secret.as_str().unwrap().to_owned());
        stage.status("www.example.com", &[("CF-Access-Client-Id", &id), ("CF-Access-Client-Secret", &secret)])
    };

    assert_eq!(shown(&token, &token["client_secret"]), Some(200));
    assert_eq!(shown(&token, &other["client_secret"]), Some(302));
    assert_eq!(shown(&other, &other["client_secret"]), Some(302));
    let (id, secret) = (token["client_id"].as_str().unwrap(), token["client_secret"].as_str().unwrap());
    let headers = [("CF-Access-Client-Id", id), ("CF-Access-Client-Secret", secret)];
    let answer = stage.simulator.ask("www.example.com", "/", &headers).await;
    assert_eq!(answer.status, 200);
    let seen = stage.simulator.object("access/service_tokens", token["id"].as_str().unwrap()).unwrap();
    assert!(seen["last_seen_at"].is_string(), "{seen}");
}

#[tokio::test]
async fn a_rotated_secret_opens_until_its_time_is_over() {
    let stage = Stage::new().published("www.example.com");
    let token = stage.api("POST", "access/service_tokens", json!({"name": "robot"})).await;
    let any = json!({"name": "any", "decision": "non_identity", "precedence": 1, "include": [{"any_valid_service_token": {}}]});
    let stage = stage.protected(json!([any]));
    let rotate = format!("access/service_tokens/{}/rotate", token["id"].as_str().unwrap());
    let later = json!({"previous_client_secret_expires_at": "2100-01-01T00:00:00Z"});
    let ask = |secret: &Value| {
        let (id, secret) = (token["client_id"].as_str().unwrap(), secret.as_str().unwrap());
        stage.status("www.example.com", &[("CF-Access-Client-Id", id), ("CF-Access-Client-Secret", secret)])
    };

    let second = stage.api("POST", &rotate, later).await;
    assert_eq!((ask(&token["client_secret"]), ask(&second["client_secret"])), (Some(200), Some(200)));
    let third = stage.api("POST", &rotate, json!({})).await;
    assert_eq!((ask(&second["client_secret"]), ask(&third["client_secret"])), (Some(403), Some(200)));
}

#[test]
fn an_application_may_answer_401_instead_of_the_login() {
    let app = |flag: bool| {
        let policies = json!([allow(json!([{"email": {"email": "ann@example.com"}}]))]);
        Stage::new().published("www.example.com").app(json!({
            "name": "app", "domain": "www.example.com", "type": "self_hosted", "service_auth_401_redirect": flag,
            "policies": policies,
        }))
    };

    assert_eq!(app(true).status("www.example.com", NOBODY), Some(401));
    assert_eq!(app(false).status("www.example.com", NOBODY), Some(302));
    assert_eq!(app(true).status("www.example.com", &email("ann@example.com")), Some(200));
    assert_eq!(app(true).status("www.example.com", &email("bob@example.com")), Some(403));
}

#[test]
fn the_application_with_the_closest_domain_protects() {
    let open = json!([{"name": "open", "decision": "bypass", "include": [{"everyone": {}}], "precedence": 1}]);
    let stage = Stage::new()
        .published("www.example.com")
        .app(json!({"name": "all", "domain": "*.example.com", "type": "self_hosted", "policies": []}))
        .app(json!({"name": "public", "domain": "www.example.com/public", "type": "self_hosted", "policies": open}));
    let status = |path: &str| stage.simulator.decide(&EdgeRequest::get("www.example.com", path, NOBODY)).status();

    assert_eq!(status("/"), Some(302));
    assert_eq!(status("/public/page"), Some(200));
}

#[test]
fn applications_of_other_accounts_protect_nothing() {
    let stage = Stage::new().published("www.example.com");
    let other = stage.simulator.add_account("Other");
    let app = json!({"name": "app", "domain": "www.example.com", "type": "self_hosted"});
    let _ = stage.simulator.put("access/apps", &other, app);

    assert_eq!(stage.status("www.example.com", NOBODY), Some(200));
}

#[test]
fn a_redirect_rule_sends_visitors_from_http_to_https() {
    let stage = Stage::new().published("www.example.com").protected(json!([]));
    let rule = json!({
        "action": "redirect", "expression": "(http.host eq \"www.example.com\" and not ssl)",
        "action_parameters": {"from_value": {
            "status_code": 301, "preserve_query_string": true,
            "target_url": {"expression": "concat(\"https://\", http.host, http.request.uri.path)"},
        }},
    });
    let ruleset = json!({"name": "default", "kind": "zone", "phase": "http_request_dynamic_redirect", "rules": [rule]});
    stage.simulator.put("rulesets", &stage.zone, ruleset).unwrap();

    let plain =
        stage.simulator.decide(&EdgeRequest::get("www.example.com", "/x?y=1", &[("X-Forwarded-Proto", "http")]));

    let expected = EdgeOutcome::Redirect { status: 301, location: "https://www.example.com/x?y=1".to_owned() };
    assert_eq!(plain.outcome, expected);
    assert_eq!(stage.status("www.example.com", NOBODY), Some(302));
}

impl Stage {
    /// A rule that asks for the token of the application that was made last.
    fn walled(self, name: &str) -> Self {
        let app = self.simulator.state()["access_apps"][&self.account].as_array().unwrap().last().unwrap().clone();
        let access = json!({"required": true, "teamName": "example-inc", "audTag": [app["aud"]]});
        self.rules(json!([
            {"hostname": name, "service": "http_status:200", "originRequest": {"access": access}},
            {"service": "http_status:404"},
        ]))
    }
}

#[test]
fn finding_3_a_rule_that_asks_for_a_token_refuses_what_no_application_covered() {
    let app = json!({
        "type": "self_hosted", "name": "all", "domain": "*.example.com",
        "policies": [allow(json!([{"email": {"email": "a@example.com"}}]))],
    });
    let stage = Stage::new().app(app).published("*.example.com");
    assert_eq!(stage.status("a.b.c.d.e.example.com", &[]), Some(200), "an application's star is one label");

    let stage = stage.walled("*.example.com");

    assert_eq!(stage.status("a.b.c.d.e.example.com", &[]), Some(403));
    assert_eq!(stage.status("a.b.c.d.e.example.com", &email("a@example.com")), Some(403));
    assert_eq!(stage.status("a.example.com", &email("a@example.com")), Some(200));
    assert_eq!(stage.status("a.example.com", &[]), Some(302));
}

#[test]
fn finding_3_a_rule_goes_on_asking_when_the_application_is_gone_or_another() {
    let policies = json!([allow(json!([{"email": {"email": "a@example.com"}}]))]);
    let stage = Stage::new().protected(policies.clone()).published("www.example.com").walled("www.example.com");
    assert_eq!(stage.status("www.example.com", &email("a@example.com")), Some(200));

    let app = stage.simulator.state()["access_apps"][&stage.account][0]["id"].as_str().unwrap().to_owned();
    stage.simulator.remove("access_apps", &app);
    assert_eq!(stage.status("www.example.com", &[]), Some(403));

    let stage = stage.protected(policies);
    assert_eq!(stage.status("www.example.com", &email("a@example.com")), Some(403), "another audience");
    let stage = stage.walled("www.example.com");
    assert_eq!(stage.status("www.example.com", &email("a@example.com")), Some(200));
}

#[test]
fn finding_3_who_passes_unasked_carries_no_token() {
    let bypass = json!({"name": "office", "decision": "bypass", "include": [{"everyone": {}}]});
    let stage = Stage::new().protected(json!([bypass])).published("www.example.com");
    assert_eq!(stage.status("www.example.com", &[]), Some(200));

    let stage = stage.walled("www.example.com");

    assert_eq!(stage.status("www.example.com", &[]), Some(403));
}

#[tokio::test]
async fn finding_3_a_service_token_passes_both_walls() {
    let stage = Stage::new();
    let token = stage.api("POST", "access/service_tokens", json!({"name": "robot"})).await;
    let robot = json!({
        "name": "robots", "decision": "non_identity", "include": [{"service_token": {"token_id": token["id"]}}],
    });
    let stage = stage.protected(json!([robot])).published("www.example.com").walled("www.example.com");
    let text = |field: &str| token[field].as_str().unwrap().to_owned();
    let (id, secret) = (text("client_id"), text("client_secret"));

    let shown = [("CF-Access-Client-Id", id.as_str()), ("CF-Access-Client-Secret", secret.as_str())];

    assert_eq!(stage.status("www.example.com", &shown), Some(200));
    assert_eq!(stage.status("www.example.com", &[]), Some(403));
}

#[tokio::test]
async fn the_organisation_tells_the_team_that_signs() {
    let stage = Stage::new();

    let organization = stage.api("GET", "access/organizations", Value::Null).await;

    assert_eq!(organization["auth_domain"], "example-inc.cloudflareaccess.com");
}
