//! Redirect rulesets through the whole API.

use bytes::Bytes;
use http::Request;
use serde_json::{Value, json};

use super::redirects;
use crate::{Options, Simulator};

struct Lab {
    simulator: Simulator,
    zone: String,
}

fn lab() -> Lab {
    let simulator = Simulator::new(Options { rate_limit: None, ..Options::default() });
    let account = simulator.add_account("Lab");
    let zone = simulator.add_zone("example.com", &account, "free").unwrap();
    Lab { simulator, zone }
}

impl Lab {
    async fn send(&self, method: &str, below: &str, body: Value) -> (u16, Value) {
        let body = if body.is_null() { Bytes::new() } else { Bytes::from(body.to_string()) };
        let request = Request::builder()
            .method(method)
            .uri(format!("/client/v4/zones/{}/rulesets{below}", self.zone))
            .header("authorization", "Bearer t")
            .body(body)
            .unwrap();
        let response = self.simulator.answer(request).await.unwrap();
        (response.status().as_u16(), serde_json::from_slice(response.body()).unwrap_or_default())
    }

    async fn ok(&self, method: &str, below: &str, body: Value) -> Value {
        let (status, answer) = self.send(method, below, body.clone()).await;
        assert_eq!(status, 200, "{method} {below} {body} → {answer}");
        answer["result"].clone()
    }

    async fn refused(&self, method: &str, below: &str, body: Value) -> (u16, u64) {
        let (status, answer) = self.send(method, below, body.clone()).await;
        assert_eq!(answer["success"], false, "{method} {below} {body} → {answer}");
        (status, answer["errors"][0]["code"].as_u64().unwrap())
    }
}

const ENTRYPOINT: &str = "/phases/http_request_dynamic_redirect/entrypoint";

fn rule(host: &str) -> Value {
    json!({
        "action": "redirect",
        "expression": format!("(not ssl and http.host eq \"{host}\")"),
        "action_parameters": {"from_value": {
            "target_url": {"expression": "concat(\"https://\", http.host, http.request.uri.path)"},
            "status_code": 301, "preserve_query_string": true,
        }},
    })
}

fn with(mut value: Value, more: Value) -> Value {
    value.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    value
}

fn descriptions(ruleset: &Value) -> Vec<&str> {
    ruleset["rules"].as_array().unwrap().iter().map(|rule| rule["description"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn a_zone_has_no_entrypoint_until_one_is_made() {
    let lab = lab();

    assert_eq!(lab.refused("GET", ENTRYPOINT, Value::Null).await, (404, 10003));
    assert_eq!(lab.refused("GET", "/phases/nonsense/entrypoint", Value::Null).await.0, 400);
    let made = lab.ok("PUT", ENTRYPOINT, json!({"rules": [rule("a.example.com")]})).await;
    assert_eq!((&made["kind"], &made["version"], &made["name"]), (&json!("zone"), &json!("1"), &json!("default")));
    assert_eq!(made["rules"][0]["ref"], made["rules"][0]["id"]);
    assert_eq!(lab.ok("GET", ENTRYPOINT, Value::Null).await, made);
    let listed = lab.ok("GET", "", Value::Null).await;
    assert!(listed[0].get("rules").is_none() && listed[0]["id"] == made["id"]);
    let again = json!({"kind": "zone", "phase": "http_request_dynamic_redirect", "name": "x", "rules": []});
    assert_eq!(lab.refused("POST", "", again).await, (400, 20217));
}

#[tokio::test]
async fn rules_are_added_changed_and_deleted_one_by_one() {
    let lab = lab();
    let body = json!({"kind": "zone", "phase": "http_request_dynamic_redirect", "name": "ours", "rules": []});
    let made = lab.ok("POST", "", body).await;
    let rules = format!("/{}/rules", made["id"].as_str().unwrap());
    let named = |name: &str| with(rule(&format!("{name}.example.com")), json!({"description": name}));

    lab.ok("POST", &rules, named("a")).await;
    let two = lab.ok("POST", &rules, named("b")).await;
    assert_eq!((descriptions(&two), &two["version"]), (vec!["a", "b"], &json!("3")));
    let first = with(named("c"), json!({"position": {"before": two["rules"][0]["id"]}}));
    assert_eq!(descriptions(&lab.ok("POST", &rules, first).await), ["c", "a", "b"]);

    let path = format!("{rules}/{}", two["rules"][1]["id"].as_str().unwrap());
    let edited = lab.ok("PATCH", &path, json!({"enabled": false, "position": {"index": 1}})).await;
    assert_eq!(descriptions(&edited), ["b", "c", "a"]);
    assert_eq!((&edited["rules"][0]["enabled"], &edited["rules"][0]["version"]), (&json!(false), &json!("2")));
    assert_eq!(redirects(&lab.simulator.lock(), &lab.zone).count(), 2, "the edge sees those that are on");
    assert_eq!(descriptions(&lab.ok("DELETE", &path, Value::Null).await), ["c", "a"]);
    assert_eq!(lab.refused("DELETE", &path, Value::Null).await, (404, 10003));
    let gone = lab.send("DELETE", &format!("/{}", made["id"].as_str().unwrap()), Value::Null).await;
    assert_eq!(gone, (204, Value::Null), "there is nothing to say about a ruleset that is gone");
    assert_eq!(lab.refused("GET", ENTRYPOINT, Value::Null).await, (404, 10003));
}

#[tokio::test]
async fn a_put_keeps_the_ids_that_it_names() {
    let lab = lab();
    let made = lab.ok("PUT", ENTRYPOINT, json!({"rules": [rule("a.example.com"), rule("b.example.com")]})).await;
    let kept = with(rule("b.example.com"), json!({"id": made["rules"][1]["id"]}));

    let put = lab.ok("PUT", ENTRYPOINT, json!({"rules": [kept]})).await;

    assert_eq!(put["rules"].as_array().unwrap().len(), 1);
    assert_eq!((&put["rules"][0]["id"], &put["version"]), (&made["rules"][1]["id"], &json!("2")));
    assert_eq!(put["id"], made["id"]);
}

#[tokio::test]
async fn rules_that_cannot_be_and_too_many_of_them_are_refused() {
    let lab = lab();
    let made = lab.ok("PUT", ENTRYPOINT, json!({"rules": []})).await;
    let rules = format!("/{}/rules", made["id"].as_str().unwrap());
    let target = |value: Value| json!({"action_parameters": {"from_value": value}});

    for body in [
        with(rule("a"), json!({"action": "block"})),
        with(rule("a"), json!({"expression": "(http.host eq \"a\""})),
        with(rule("a"), json!({"expression": ""})),
        with(rule("a"), json!({"colour": "red"})),
        with(rule("a"), json!({"action_parameters": {}})),
        with(rule("a"), target(json!({"target_url": {}}))),
        with(rule("a"), target(json!({"target_url": {"value": "https://a", "expression": "x"}}))),
        with(rule("a"), target(json!({"target_url": {"value": "https://a"}, "status_code": 200}))),
        with(rule("a"), json!({"position": {"before": "nobody"}})),
        json!({"action": "redirect"}),
    ] {
        assert_eq!(lab.refused("POST", &rules, body.clone()).await.0, 400, "{body}");
    }
    for number in 0..10 {
        lab.ok("POST", &rules, with(rule("a"), json!({"ref": number.to_string()}))).await;
    }
    assert_eq!(lab.refused("POST", &rules, rule("a")).await, (400, 20021));
    lab.simulator.edit("zones", &lab.zone, |zone| zone["plan"]["legacy_id"] = json!("pro"));
    assert_eq!(lab.refused("POST", &rules, with(rule("a"), json!({"ref": "3"}))).await, (400, super::INVALID));
    lab.ok("POST", &rules, rule("a")).await;
}
