//! Access through the whole API.

use std::{
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use http::Request;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::secret::{authenticate, mark_seen};
use crate::{Grant, Options, Quotas, RightLevel, Simulator};

struct Lab {
    simulator: Simulator,
    account: String,
    /// Milliseconds since 1970.
    now: Arc<AtomicI64>,
}

fn lab_with(quotas: Quotas) -> Lab {
    let now = Arc::new(AtomicI64::new(1_700_000_000_750));
    let clock = now.clone();
    let simulator = Simulator::new(Options {
        rate_limit: None,
        quotas,
        clock: Arc::new(move || Timestamp::from_millisecond(clock.load(Ordering::Relaxed)).unwrap()),
        ..Options::default()
    });
    let account = simulator.add_account("Lab");
    for zone in ["example.com", "example.org"] {
        simulator.add_zone(zone, &account, "free").unwrap();
    }
    Lab { simulator, account, now }
}

fn lab() -> Lab {
    lab_with(Quotas::default())
}

impl Lab {
    async fn send(&self, method: &str, below: &str, body: Value) -> (u16, Value) {
        let body = if body.is_null() { Bytes::new() } else { Bytes::from(body.to_string()) };
        let request = Request::builder()
            .method(method)
            .uri(format!("/client/v4/accounts/{}/access/{below}", self.account))
            .header("authorization", "Bearer t")
            .body(body)
            .unwrap();
        let response = self.simulator.answer(request).await.unwrap();
        (response.status().as_u16(), serde_json::from_slice(response.body()).unwrap())
    }

    async fn ok(&self, method: &str, below: &str, body: Value) -> Value {
        let (status, answer) = self.send(method, below, body.clone()).await;
        assert!((200..300).contains(&status), "{method} {below} {body} → {status} {answer}");
        answer["result"].clone()
    }

    async fn refused(&self, method: &str, below: &str, body: Value) -> (u16, u64) {
        let (status, answer) = self.send(method, below, body.clone()).await;
        assert_eq!(answer["success"], false, "{method} {below} {body} → {answer}");
        (status, answer["errors"][0]["code"].as_u64().unwrap())
    }

    /// What the service says to a request that it refuses with 400 and 12130.
    async fn told(&self, method: &str, below: &str, body: Value) -> String {
        let (status, answer) = self.send(method, below, body.clone()).await;
        assert_eq!((status, &answer["errors"][0]["code"]), (400, &json!(12130)), "{method} {below} {body} → {answer}");
        let message = answer["errors"][0]["message"].as_str().unwrap().to_owned();
        message.strip_prefix("access.api.error.invalid_request: ").expect("every refusal begins alike").to_owned()
    }

    async fn get(&self, below: &str) -> Value {
        self.ok("GET", below, Value::Null).await
    }

    async fn token(&self, name: &str) -> Value {
        self.ok("POST", "service_tokens", json!({"name": name})).await
    }

    fn pass(&self, length: Duration) {
        self.now.fetch_add(i64::try_from(length.as_millis()).unwrap(), Ordering::Relaxed);
    }

    fn opens(&self, token: &Value, secret: &Value) -> bool {
        let (client, secret) = (token["client_id"].as_str().unwrap(), secret.as_str().unwrap());
        authenticate(&self.simulator.lock(), &self.account, client, secret).as_deref() == token["id"].as_str()
    }
}

fn app(domain: &str) -> Value {
    json!({"name": "app", "domain": domain, "type": "self_hosted"})
}

fn allow(email: &str) -> Value {
    json!({"name": "allow", "decision": "allow", "include": [{"email": {"email": email}}]})
}

fn with(mut value: Value, more: Value) -> Value {
    value.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    value
}

fn path(collection: &str, object: &Value) -> String {
    format!("{collection}/{}", object["id"].as_str().unwrap())
}

fn strings<'a>(list: &'a Value, member: &str) -> Vec<&'a str> {
    list.as_array().unwrap().iter().map(|item| item[member].as_str().unwrap()).collect()
}

#[tokio::test]
async fn an_app_comes_with_its_own_policies_in_one_request() {
    let lab = lab();
    let policies = json!([
        with(allow("b@example.com"), json!({"name": "second", "precedence": 2})),
        with(allow("a@example.com"), json!({"name": "first", "precedence": 1})),
    ]);

    let made = lab.ok("POST", "apps", with(app("App.example.com/"), json!({"policies": policies}))).await;

    assert_eq!(made["domain"], "app.example.com");
    assert_eq!(made["self_hosted_domains"], json!(["app.example.com"]));
    assert_eq!(made["destinations"], json!([{"type": "public", "uri": "app.example.com"}]));
    assert_eq!((&made["session_duration"], &made["app_launcher_visible"]), (&json!("24h"), &json!(true)));
    assert_eq!(made["aud"].as_str().unwrap().len(), 64);
    assert_eq!(strings(&made["policies"], "name"), ["first", "second"]);
    assert_eq!(made["policies"][0]["reusable"], false);
    assert_eq!(made["policies"][0]["exclude"], json!([]));
    assert_eq!(made["created_at"], "2023-11-14T22:13:20Z", "times have whole seconds");
    let path = path("apps", &made);
    assert_eq!(lab.get(&path).await, made);
    assert_eq!(strings(&lab.get(&format!("{path}/policies")).await, "name"), ["first", "second"]);
}

#[tokio::test]
async fn a_put_replaces_settings_and_listed_policies_and_keeps_the_rest() {
    let lab = lab();
    let body = with(app("a.example.com"), json!({"policies": [allow("a@example.com")], "skip_interstitial": true}));
    let made = lab.ok("POST", "apps", body).await;
    let path = path("apps", &made);

    let put = lab.ok("PUT", &path, with(app("a.example.com"), json!({"session_duration": "8h"}))).await;
    assert_eq!(put["policies"], made["policies"], "policies that are not sent stay");
    assert_eq!((put.get("skip_interstitial"), &put["session_duration"]), (None, &json!("8h")));
    assert_eq!((&put["id"], &put["aud"], &put["created_at"]), (&made["id"], &made["aud"], &made["created_at"]));

    let own = with(allow("b@example.com"), json!({"id": made["policies"][0]["id"]}));
    let put =
        lab.ok("PUT", &path, with(app("b.example.com"), json!({"policies": [own, allow("c@example.com")]}))).await;
    assert_eq!(put["domain"], "b.example.com");
    assert_eq!(put["policies"][0]["id"], made["policies"][0]["id"], "an id updates in place");
    assert_eq!(put["policies"][0]["include"][0]["email"]["email"], "b@example.com");
    assert_eq!(put["policies"].as_array().unwrap().len(), 2);

    let put = lab.ok("PUT", &path, with(app("b.example.com"), json!({"policies": []}))).await;
    assert_eq!(put["policies"], json!([]));
}

#[tokio::test]
async fn a_domain_belongs_to_one_app() {
    let lab = lab();
    let first = lab.ok("POST", "apps", app("a.example.com")).await;
    let two = with(app("b.example.com"), json!({"self_hosted_domains": ["b.example.com", "c.example.com"]}));
    let second = lab.ok("POST", "apps", two).await;

    assert_eq!(lab.refused("POST", "apps", app("A.example.com")).await, (409, 11010));
    assert_eq!(lab.refused("POST", "apps", app("c.example.com")).await, (409, 11010));
    assert_eq!(lab.refused("PUT", &path("apps", &second), app("a.example.com")).await, (409, 11010));
    lab.ok("POST", "apps", app("a.example.com/path")).await;
    lab.ok("DELETE", &path("apps", &first), Value::Null).await;
    lab.ok("POST", "apps", app("a.example.com")).await;
    assert_eq!(lab.refused("GET", &path("apps", &first), Value::Null).await, (404, 11021));
}

#[tokio::test]
async fn the_domain_must_be_among_the_destinations_that_are_sent() {
    let lab = lab();
    let made = lab.ok("POST", "apps", app("old.example.com")).await;
    let body = with(app("new.example.com"), json!({"destinations": made["destinations"]}));

    assert_eq!(lab.refused("PUT", &path("apps", &made), body).await, (400, super::INVALID));
    let moved = lab.ok("PUT", &path("apps", &made), app("new.example.com")).await;
    assert_eq!(moved["self_hosted_domains"], json!(["new.example.com"]));
}

#[tokio::test]
async fn apps_are_found_by_parts_of_names_or_exactly_and_page_by_page() {
    let lab = lab();
    for number in 0..60 {
        lab.ok("POST", "apps", app(&format!("app{number}.example.com"))).await;
    }
    let count = async |query: &str| lab.get(&format!("apps?{query}")).await.as_array().unwrap().len();

    assert_eq!(count("").await, 25);
    assert_eq!(count("page=3").await, 10);
    assert_eq!(count("per_page=1000").await, 60);
    assert_eq!(count("domain=app1.example.com&exact=true").await, 1);
    assert_eq!(count("domain=app1&per_page=50").await, 11);
    assert_eq!(count("domain=app1&exact=true").await, 0);
    assert_eq!(count("name=app&exact=true&per_page=100").await, 60);
    assert_eq!(lab.refused("GET", "apps?per_page=1001", Value::Null).await.0, 400);
    assert_eq!(lab.refused("GET", "apps?hostname=x", Value::Null).await.0, 400);
}

#[tokio::test]
async fn links_and_own_policies_are_never_mixed() {
    let lab = lab();
    let shared = lab.ok("POST", "policies", allow("a@example.com")).await;
    let link = json!({"id": shared["id"], "precedence": 1});

    let mixed =
        with(app("a.example.com"), json!({"policies": [link, with(allow("b@example.com"), json!({"precedence": 2}))]}));
    assert_eq!(lab.refused("POST", "apps", mixed).await, (400, 12130));
    let linked = lab.ok("POST", "apps", with(app("a.example.com"), json!({"policies": [shared["id"]]}))).await;
    assert_eq!(linked["policies"][0]["include"], shared["include"], "links are shown as what they lead to");
    assert_eq!((&linked["policies"][0]["reusable"], &linked["policies"][0]["precedence"]), (&json!(true), &json!(1)));
    let own = format!("{}/policies", path("apps", &linked));
    assert_eq!(lab.refused("POST", &own, allow("c@example.com")).await, (400, 12130));
    let inside = format!("{own}/{}", shared["id"].as_str().unwrap());
    assert_eq!(lab.refused("PUT", &inside, allow("c@example.com")).await, (400, 12130));
    assert_eq!(lab.refused("DELETE", &inside, Value::Null).await, (400, 12130));
    assert_eq!(lab.get(&inside).await["name"], "allow");

    let inline =
        lab.ok("POST", "apps", with(app("b.example.com"), json!({"policies": [allow("a@example.com")]}))).await;
    let foreign =
        with(app("a.example.com"), json!({"policies": [{"id": inline["policies"][0]["id"], "precedence": 1}]}));
    assert_eq!(lab.refused("PUT", &path("apps", &linked), foreign).await, (400, 12130));
    let adding = format!("{}/policies", path("apps", &inline));
    assert_eq!(lab.refused("POST", &adding, json!({"id": shared["id"]})).await, (400, 12130));
    let unknown = with(app("c.example.com"), json!({"policies": [{"id": "11111111-1111-4111-a111-111111111111"}]}));
    assert_eq!(lab.refused("POST", "apps", unknown).await, (400, 12130));
}

#[tokio::test]
async fn a_reusable_policy_counts_its_apps_and_stays_while_it_has_any() {
    let lab = lab();
    let shared = lab.ok("POST", "policies", allow("a@example.com")).await;
    assert_eq!((&shared["reusable"], &shared["app_count"]), (&json!(true), &json!(0)));
    let path_of = path("policies", &shared);
    let linked = lab.ok("POST", "apps", with(app("a.example.com"), json!({"policies": [{"id": shared["id"]}]}))).await;

    assert_eq!(lab.get(&path_of).await["app_count"], 1);
    assert_eq!(lab.refused("DELETE", &path_of, Value::Null).await, (400, 12130));
    lab.ok("PUT", &path_of, allow("b@example.com")).await;
    let app_now = lab.get(&path("apps", &linked)).await;
    assert_eq!(app_now["policies"][0]["include"][0]["email"]["email"], "b@example.com");

    assert!(lab.simulator.remove("access_policies", shared["id"].as_str().unwrap()));
    assert_eq!(lab.get(&path("apps", &linked)).await["policies"], json!([]));
    assert_eq!(lab.refused("GET", &path_of, Value::Null).await, (404, 12135));
}

#[tokio::test]
async fn an_apps_own_policies_are_made_changed_and_deleted_one_by_one() {
    let lab = lab();
    let made = lab.ok("POST", "apps", app("a.example.com")).await;
    let policies = format!("{}/policies", path("apps", &made));

    let first = lab.ok("POST", &policies, allow("a@example.com")).await;
    let second = lab.ok("POST", &policies, allow("b@example.com")).await;
    assert_eq!((&first["precedence"], &second["precedence"]), (&json!(1), &json!(2)));
    let taken = with(allow("c@example.com"), json!({"precedence": 2}));
    assert_eq!(lab.refused("POST", &policies, taken).await, (400, super::INVALID));
    let id = |policy: &Value| format!("{policies}/{}", policy["id"].as_str().unwrap());
    let changed = lab.ok("PUT", &id(&second), with(allow("b@example.com"), json!({"name": "renamed"}))).await;
    assert_eq!((&changed["id"], &changed["precedence"]), (&second["id"], &json!(2)));
    lab.ok("DELETE", &id(&first), Value::Null).await;

    assert_eq!(strings(&lab.get(&path("apps", &made)).await["policies"], "name"), ["renamed"]);
    assert_eq!(lab.refused("DELETE", &id(&first), Value::Null).await, (404, 12135));
    assert_eq!(lab.refused("GET", &format!("{policies}/nonsense"), Value::Null).await, (404, 7003));
}

#[tokio::test]
async fn bodies_that_are_not_as_they_should_be_are_refused() {
    let lab = lab();
    let bad = async |collection: &str, body: Value| lab.refused("POST", collection, body).await.0;
    let policy = |include: Value| json!({"name": "p", "decision": "allow", "include": include});

    for body in [
        json!({"name": "a", "domain": "a.example.com"}),
        json!({"name": "a", "type": "self_hosted"}),
        with(app("a.example.com"), json!({"domian": "x"})),
        with(app("a.example.com"), json!({"aud": "x"})),
        with(app("a.example.com"), json!({"type": "saas"})),
        with(app("a.example.com"), json!({"session_duration": "24"})),
        with(app("a.example.com"), json!({"same_site_cookie_attribute": "Lax"})),
        with(app("a.example.com"), json!({"skip_interstitial": "true"})),
        with(app("a.example.com"), json!({"allowed_idps": ["11111111-1111-4111-a111-111111111111"]})),
        with(app("a.example.com"), json!({"policies": [{"precedence": 1}]})),
        with(app("a.example.com"), json!({"policies": [with(allow("a@example.com"), json!({"precedence": 0}))]})),
        with(app("a.example.com"), json!({"policies": [with(allow("a@example.com"), json!({"created_at": "x"}))]})),
        app("https://a.example.com"),
        app("nonsense"),
        app("a b.example.com"),
    ] {
        assert_eq!(bad("apps", body.clone()).await, 400, "{body}");
    }
    for include in [
        json!([]),
        json!({}),
        json!(["everyone"]),
        json!([{"everyone": {}, "email": {"email": "a@example.com"}}]),
        json!([{"nobody": {}}]),
        json!([{"email": "a@example.com"}]),
        json!([{"email": {"email": "nonsense"}}]),
        json!([{"email": {"email": "a@example.com", "more": 1}}]),
        json!([{"email_domain": {"email": "example.com"}}]),
        json!([{"ip": {"ip": "10.0.0.0/99"}}]),
        json!([{"group": {"id": "admins"}}]),
        json!([{"service_token": {"token_id": "11111111-1111-4111-a111-111111111111"}}]),
    ] {
        assert_eq!(bad("policies", policy(include.clone())).await, 400, "{include}");
        assert_eq!(bad("groups", json!({"name": "g", "include": include})).await, 400, "{include}");
    }
    assert_eq!(bad("policies", with(allow("a@example.com"), json!({"decision": "maybe"}))).await, 400);
    assert_eq!(bad("policies", with(allow("a@example.com"), json!({"precedence": 1}))).await, 400);
    assert_eq!(bad("service_tokens", json!({"name": "t", "duration": "1y"})).await, 400);
    assert_eq!(bad("service_tokens", json!({"duration": "1h"})).await, 400);
    assert_eq!(bad("identity_providers", json!({"name": "i", "type": "guess", "config": {}})).await, 400);
    assert_eq!(lab.simulator.objects("access_apps", &lab.account), [] as [Value; 0]);
}

#[tokio::test]
async fn groups_are_found_by_name_and_stay_while_they_are_used() {
    let lab = lab();
    let group = lab.ok("POST", "groups", json!({"name": "admins", "include": [{"everyone": {}}]})).await;
    lab.ok("POST", "groups", json!({"name": "admins-2", "include": [{"group": {"id": group["id"]}}]})).await;
    let include = json!([{"group": {"id": group["id"]}}]);
    lab.ok("POST", "policies", json!({"name": "p", "decision": "allow", "include": include})).await;

    assert_eq!(strings(&lab.get("groups?name=admins").await, "name"), ["admins"]);
    assert_eq!(strings(&lab.get("groups?search=admins").await, "name"), ["admins", "admins-2"]);
    assert_eq!(lab.refused("DELETE", &path("groups", &group), Value::Null).await, (400, 12130));
    let itself = json!({"name": "admins", "include": include});
    assert_eq!(lab.refused("PUT", &path("groups", &group), itself).await.0, 400);
    let other = json!({"name": "ops", "include": [{"email_domain": {"domain": "example.com"}}], "is_default": true});
    assert_eq!(lab.ok("PUT", &path("groups", &group), other).await["name"], "ops");
}

#[tokio::test]
async fn a_secret_is_shown_once_and_opens_until_it_is_rotated() {
    let lab = lab();
    let token = lab.token("t").await;
    let first = token["client_secret"].clone();
    let path = path("service_tokens", &token);

    assert!(token["client_id"].as_str().unwrap().ends_with(".access"));
    assert_eq!((&token["duration"], &token["expires_at"]), (&json!("8760h"), &json!("2024-11-13T22:13:20Z")));
    assert!(lab.opens(&token, &first) && !lab.opens(&token, &json!("guess")));
    let seen = lab.get(&path).await;
    assert!(seen.get("client_secret").is_none());

    let rotated = lab.ok("POST", &format!("{path}/rotate"), Value::Null).await;
    let second = rotated["client_secret"].clone();
    assert_eq!(rotated["client_id"], token["client_id"]);
    assert!(lab.opens(&token, &second) && !lab.opens(&token, &first), "the last secret ends at once");

    let until = json!({"previous_client_secret_expires_at": "2023-11-14T23:13:20Z"});
    let third = lab.ok("POST", &format!("{path}/rotate"), until).await["client_secret"].clone();
    assert!(lab.opens(&token, &third) && lab.opens(&token, &second) && !lab.opens(&token, &first));
    lab.pass(Duration::from_secs(3600));
    assert!(lab.opens(&token, &third) && !lab.opens(&token, &second), "the window is over");

    let state = lab.simulator.state().to_string();
    let requests = lab.simulator.requests().iter().map(|seen| seen.to_json().to_string()).collect::<String>();
    let debug = format!("{:?} {}", lab.simulator, lab.simulator.snapshot());
    for secret in [first, second, third] {
        let secret = secret.as_str().unwrap();
        assert!(!state.contains(secret) && !requests.contains(secret) && !debug.contains(secret));
    }
}

#[tokio::test]
async fn tokens_end_are_refreshed_and_can_be_switched_off() {
    let lab = lab();
    let token = lab.ok("POST", "service_tokens", json!({"name": "t", "duration": "2h"})).await;
    let secret = token["client_secret"].clone();
    let path = path("service_tokens", &token);

    lab.pass(Duration::from_secs(7200));
    assert!(!lab.opens(&token, &secret), "its time is over");
    let refreshed = lab.ok("POST", &format!("{path}/refresh"), Value::Null).await;
    assert_eq!(refreshed["expires_at"], "2023-11-15T02:13:20Z");
    assert!(refreshed.get("client_secret").is_none() && lab.opens(&token, &secret));
    let off = lab.ok("PUT", &path, json!({"enabled": false})).await;
    assert_eq!((&off["name"], &off["duration"]), (&json!("t"), &json!("2h")), "what is not sent stays");
    assert!(!lab.opens(&token, &secret));
    let longer = lab.ok("PUT", &path, json!({"enabled": true, "duration": "forever"})).await;
    assert_eq!(longer["expires_at"], Value::Null);
    lab.pass(Duration::from_secs(1_000_000_000));
    assert!(lab.opens(&token, &secret));
    let rotated = lab.ok("PUT", &path, json!({"client_secret_version": 2})).await;
    assert!(lab.opens(&token, &rotated["client_secret"]) && !lab.opens(&token, &secret));
    mark_seen(&mut lab.simulator.lock(), &lab.account, token["id"].as_str().unwrap());
    assert_ne!(lab.get(&path).await["last_seen_at"], Value::Null);
    lab.ok("DELETE", &path, Value::Null).await;
    assert!(!lab.opens(&token, &rotated["client_secret"]));
}

#[tokio::test]
async fn a_token_stays_while_a_policy_names_it() {
    let lab = lab();
    let token = lab.token("t").await;
    let include = json!([{"service_token": {"token_id": token["id"]}}]);
    let policy = json!({"name": "service", "decision": "non_identity", "include": include});
    let made = lab.ok("POST", "apps", with(app("a.example.com"), json!({"policies": [policy]}))).await;

    assert_eq!(lab.refused("DELETE", &path("service_tokens", &token), Value::Null).await, (400, 12139));
    lab.ok("DELETE", &path("apps", &made), Value::Null).await;
    let gone = lab.ok("DELETE", &path("service_tokens", &token), Value::Null).await;
    assert_eq!((&gone["name"], gone.get("client_secret")), (&json!("t"), None));
    assert_eq!(lab.refused("GET", &path("service_tokens", &token), Value::Null).await, (404, 12135));
}

#[tokio::test]
async fn creations_and_deletions_have_statuses_of_their_own() {
    let lab = lab();

    let (created, answer) = lab.send("POST", "apps", app("a.example.com")).await;
    let (deleted, _) = lab.send("DELETE", &path("apps", &answer["result"]), Value::Null).await;
    assert_eq!((created, deleted), (201, 202));
    let (created, answer) = lab.send("POST", "service_tokens", json!({"name": "t"})).await;
    let (deleted, _) = lab.send("DELETE", &path("service_tokens", &answer["result"]), Value::Null).await;
    assert_eq!((created, deleted), (201, 200));
}

#[tokio::test]
async fn quotas_are_held_and_can_be_changed() {
    let small = Quotas { applications: 2, service_tokens: 1, groups: 1, policies: 1, ..Quotas::default() };
    let lab = lab_with(small);
    lab.token("t").await;
    for domain in ["a.example.com", "b.example.com"] {
        lab.ok("POST", "apps", app(domain)).await;
    }
    lab.ok("POST", "policies", allow("a@example.com")).await;
    lab.ok("POST", "groups", json!({"name": "g", "include": [{"everyone": {}}]})).await;

    assert_eq!(lab.refused("POST", "apps", app("c.example.com")).await, (400, 12130));
    assert_eq!(lab.refused("POST", "service_tokens", json!({"name": "u"})).await, (400, 12130));
    assert_eq!(lab.refused("POST", "policies", allow("a@example.com")).await, (400, 12130));
    let group = json!({"name": "h", "include": [{"everyone": {}}]});
    assert_eq!(lab.refused("POST", "groups", group).await, (400, 12130));
    lab.simulator.set_quotas(Quotas::default());
    lab.ok("POST", "apps", app("c.example.com")).await;
}

#[tokio::test]
async fn a_snapshot_keeps_apps_and_what_opens_them() {
    let lab = lab();
    let token = lab.token("t").await;
    let made = lab.ok("POST", "apps", with(app("a.example.com"), json!({"policies": [allow("a@example.com")]}))).await;

    let other =
        Lab { simulator: Simulator::new(Options::default()), account: lab.account.clone(), now: lab.now.clone() };
    other.simulator.restore(lab.simulator.snapshot()).unwrap();

    assert_eq!(other.get(&path("apps", &made)).await, made);
    assert_eq!(
        other.simulator.objects("service_tokens", &lab.account),
        lab.simulator.objects("service_tokens", &lab.account)
    );
    assert!(format!("{:?}", other.simulator.lock().service_tokens).contains(token["id"].as_str().unwrap()));
}

#[tokio::test]
async fn seeds_and_somebody_else_follow_the_same_rules() {
    let lab = lab();
    let provider = json!({"account": lab.account, "name": "pin", "type": "onetimepin", "config": {}});
    let id = "11111111-1111-4111-a111-111111111111";
    let seed = json!({
        "identity_providers": [provider],
        "access_groups": [{"account": lab.account, "id": id, "name": "admins", "include": [{"everyone": {}}]}],
        "access_policies": [with(allow("a@example.com"), json!({"account": lab.account}))],
        "access_apps": [with(app("a.example.com"), json!({"account": lab.account}))],
        "service_tokens": [{"account": lab.account, "name": "seeded"}],
    });
    lab.simulator.seed(seed).unwrap();

    assert_eq!(lab.get("groups?name=admins").await[0]["id"], id);
    assert_eq!(strings(&lab.get("identity_providers").await, "type"), ["onetimepin"]);
    let twin = lab.simulator.put("access_apps", &lab.account, app("a.example.com"));
    assert!(twin.unwrap_err().contains("11010"));
    let id = lab.simulator.objects("access_apps", &lab.account)[0]["id"].as_str().unwrap().to_owned();
    assert!(lab.simulator.edit("access_apps", &id, |app| app["policies"] = json!([])));
    assert!(lab.simulator.remove("access/apps", &id));
}

#[tokio::test]
async fn secrets_of_identity_providers_are_never_shown() {
    let lab = lab();
    let body = json!({
        "name": "sso", "type": "oidc", "config": {"client_id": "c", "client_secret": "canary"},
        "scim_config": {"enabled": true, "secret": "canary"},
    });
    let made = lab.ok("POST", "identity_providers", body.clone()).await;

    assert_eq!(made["config"], json!({"client_id": "c"}));
    assert_eq!(lab.refused("POST", "identity_providers", body).await, (409, 11009));
    let requests = lab.simulator.requests().iter().map(|seen| seen.to_json().to_string()).collect::<String>();
    assert!(!requests.contains("canary") && !lab.simulator.state().to_string().contains("canary"));
}

#[tokio::test]
async fn credentials_for_provisioning_are_never_shown() {
    let lab = lab();
    let scheme = json!({"scheme": "httpbasic", "user": "u", "password": "canary"});
    let config = json!({"idp_uid": "i", "remote_uri": "https://example.com", "authentication": scheme});
    let made = lab.ok("POST", "apps", with(app("a.example.com"), json!({"scim_config": config}))).await;

    assert_eq!(made["scim_config"]["authentication"]["password"], "***");
    let requests = lab.simulator.requests().iter().map(|seen| seen.to_json().to_string()).collect::<String>();
    assert!(!requests.contains("canary") && !lab.simulator.state().to_string().contains("canary"));
}

#[tokio::test]
async fn a_credential_needs_the_permission_of_what_it_asks_for() {
    let lab = lab();
    lab.simulator
        .add_token("t", Grant::all().only("access_apps", RightLevel::Edit).only("access_groups", RightLevel::Read));

    let made = lab.ok("POST", "apps", app("a.example.com")).await;
    lab.ok("POST", &format!("{}/policies", path("apps", &made)), allow("a@example.com")).await;
    lab.get("groups").await;
    assert_eq!(lab.refused("POST", "groups", json!({"name": "g"})).await, (403, 10000));
    assert_eq!(lab.refused("GET", "service_tokens", Value::Null).await, (403, 10000));
}

#[tokio::test]
async fn refusals_have_one_code_and_a_text_that_tells_them_apart() {
    let lab = lab_with(Quotas { service_tokens: 0, ..Quotas::default() });
    let twice = json!({"policies": [
        with(allow("a@example.com"), json!({"precedence": 1})), with(allow("b@example.com"), json!({"precedence": 1})),
    ]});

    let cases = [
        ("apps", json!({}), "app type is missing or invalid"),
        ("apps", with(app("a.example.com"), json!({"type": "nonsense"})), "app type is missing or invalid"),
        ("apps", app("a.example.net"), "domain does not belong to zone"),
        ("apps", with(app("a.example.com"), json!({"tags": ["x"]})), "tags contain a tag that does not exist"),
        ("apps", with(app("a.example.com"), twice), "policy precedences must be unique"),
        ("service_tokens", json!({"name": "t"}), "maximum number of service tokens has been reached"),
    ];
    for (below, body, text) in cases {
        assert_eq!(lab.told("POST", below, body).await, text);
    }
}

#[tokio::test]
async fn an_app_needs_its_name_in_an_active_zone_of_the_account() {
    let lab = lab();
    let zone = lab.simulator.put("zones", "", json!({"name": "pending.dev", "account": {"id": lab.account}})).unwrap();
    let other = lab.simulator.add_account("Other");
    lab.simulator.add_zone("theirs.dev", &other, "free").unwrap();

    for domain in ["a.pending.dev", "a.theirs.dev", "notexample.com", "app.pages.dev"] {
        assert_eq!(lab.told("POST", "apps", app(domain)).await, "domain does not belong to zone", "{domain}");
    }
    let second = json!({"destinations": [{"uri": "a.example.com"}, {"uri": "a.pending.dev"}]});
    assert_eq!(lab.told("POST", "apps", with(app("a.example.com"), second)).await, "domain does not belong to zone");
    for domain in ["example.com", "*.example.com", "a.b.example.com/path", "*.b.example.org"] {
        lab.ok("POST", "apps", app(domain)).await;
    }
    lab.simulator.edit("zones", &zone, |zone| zone["status"] = json!("active"));
    lab.ok("POST", "apps", app("a.pending.dev")).await;
}

#[tokio::test]
async fn tags_providers_and_lists_must_exist() {
    let lab = lab();
    lab.ok("POST", "tags", json!({"name": "staff"})).await;
    let provider = lab.ok("POST", "identity_providers", json!({"name": "p", "type": "okta", "config": {}})).await;
    let list = json!({"name": "offices", "type": "IP", "items": [{"value": "192.0.2.1"}]});
    let list = lab.simulator.put("gateway_lists", &lab.account, list).unwrap();
    let nobody = "00000000-0000-4000-8000-000000000000";
    let policy = |rule: Value| json!({"name": "p", "decision": "allow", "include": [rule]});
    let okta = |id: &Value| policy(json!({"okta": {"identity_provider_id": id, "name": "g"}}));

    let tagged = lab.ok("POST", "apps", with(app("a.example.com"), json!({"tags": ["staff"]}))).await;
    assert_eq!((&tagged["tags"], lab.get("tags").await), (&json!(["staff"]), json!([{"name": "staff"}])));
    lab.ok("POST", "policies", okta(&provider["id"])).await;
    lab.ok("POST", "policies", policy(json!({"ip_list": {"id": list}}))).await;
    lab.told("POST", "policies", okta(&json!(nobody))).await;
    lab.told("POST", "policies", policy(json!({"login_method": {"id": nobody}}))).await;
    for kind in ["ip_list", "email_list"] {
        lab.told("POST", "policies", policy(json!({kind: {"id": nobody}}))).await;
    }
    let redirecting = json!({"auto_redirect_to_identity": true});
    lab.told("POST", "apps", with(app("b.example.com"), redirecting.clone())).await;
    let one = with(redirecting, json!({"allowed_idps": [provider["id"]]}));
    lab.ok("POST", "apps", with(app("b.example.com"), one)).await;
    let warp = json!({"allow_authenticate_via_warp": true});
    assert!(lab.told("POST", "apps", with(app("c.example.com"), warp)).await.contains("Warp Auth Session Duration"));
}
