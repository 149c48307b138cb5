//! What no client should send: the codes and reasons of kube-apiserver v1.36.3, and never a panic.

use std::sync::Once;

use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt as _, Full};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use portolan_apiserver::{ApiServer, Config};
use proptest::prelude::*;
use proptest::sample::select;
use proptest::test_runner::{Config as ProptestConfig, RngSeed, TestCaseError, TestRunner};
use serde_json::{Value, json};
use tower::ServiceExt as _;

const JSON: &str = "application/json";
const YAML: &str = "application/yaml";
const JSON_PATCH: &str = "application/json-patch+json";
const MERGE: &str = "application/merge-patch+json";
const APPLY: &str = "application/apply-patch+yaml";
const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const APPLIED: &str = r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"}}"#;
const NAMED: &str = r#"{"metadata":{"name":"a"}}"#;

/// An answer: its code, its body, and whether it is JSON.
struct Reply {
    code: u16,
    text: Bytes,
    content_type: String,
}

impl Reply {
    fn value(&self) -> Value {
        serde_json::from_slice(&self.text).unwrap_or_default()
    }

    fn reason(&self) -> String {
        self.value()["reason"].as_str().unwrap_or_default().to_owned()
    }
}

async fn server() -> ApiServer {
    let server = ApiServer::open(Config::default()).await.expect("memory opens");
    let made = send(&server, "POST", MAPS, JSON, br#"{"metadata":{"name":"there"}}"#).await;
    assert_eq!(made.code, 201);
    server
}

async fn send(server: &ApiServer, method: &str, path: &str, content_type: &str, body: &[u8]) -> Reply {
    let request = Request::builder().method(method).uri(path).header("content-type", content_type);
    request_of(server, request.body(Full::new(Bytes::copy_from_slice(body))).expect("a path of the tests")).await
}

/// Sends, and reads the whole answer unless it is a watch that succeeded.
async fn request_of(server: &ApiServer, request: Request<Full<Bytes>>) -> Reply {
    let response = server.service().oneshot(request).await.expect("the service is infallible");
    let code = response.status().as_u16();
    let content_type = response.headers().get("content-type").and_then(|v| v.to_str().ok()).unwrap_or_default();
    let content_type = content_type.to_owned();
    let mut body = response.into_body();
    let mut text = Vec::new();
    // A watch goes on for ever, so what is not there yet is not waited for; other answers are there at once.
    while let Ok(Some(Ok(frame))) = tokio::time::timeout(std::time::Duration::from_millis(10), body.frame()).await {
        text.extend_from_slice(&frame.into_data().unwrap_or_default());
    }
    Reply { code, text: text.into(), content_type }
}

async fn expect_each(cases: &[(u16, &str, &str, &str, &str, &str)]) {
    let server = server().await;
    let mut wrong = Vec::new();
    for (code, reason, method, path, content_type, body) in cases {
        let reply = send(&server, method, path, content_type, body.as_bytes()).await;
        if (reply.code, reply.reason().as_str()) != (*code, *reason) {
            let body: String = body.chars().take(60).collect();
            let got = format!("{} {}", reply.code, reply.reason());
            wrong.push(format!("{method} {path} {content_type} {body}: wanted {code} {reason}, got {got}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[tokio::test]
async fn malformed_bodies_are_bad_requests() {
    let deep = "[".repeat(20_000);
    let deep_inside = format!(r#"{{"metadata":{{"name":"a"}},"x":{}{}}}"#, "[".repeat(11_000), "]".repeat(11_000));
    let applying = format!("{MAPS}/a?fieldManager=me");
    let mut cases: Vec<_> = [
        r#"{"metadata":"#,
        "nonsense",
        "[1, 2]",
        "5",
        "",
        r#"{"metadata":{"name":"a"}} trailing"#,
        r#"{"metadata":{"name":5}}"#,
        r#"{"data":{"a":{}},"metadata":{"name":"a"}}"#,
        "{\"metadata\":{\"name\":\"a\0b\"}}",
        &deep,
        &deep_inside,
    ]
    .map(|body| (400, "BadRequest", "POST", MAPS, JSON, body))
    .into();
    cases.extend(["metadata: {name: [", "a: b: c", &deep].map(|body| (400, "BadRequest", "POST", MAPS, YAML, body)));
    cases.extend([&*deep, "a: ["].map(|body| (400, "BadRequest", "PATCH", &*applying, APPLY, body)));
    let there = format!("{MAPS}/there");
    cases.extend(
        [(JSON_PATCH, "{"), (MERGE, "{"), (MERGE, "[]")]
            .map(|(kind, body)| (400, "BadRequest", "PATCH", &*there, kind, body)),
    );
    cases.push((422, "Invalid", "PATCH", &there, JSON_PATCH, r#"[{"op":"nosuch","path":"/a"}]"#));
    cases.push((422, "Invalid", "PATCH", &there, JSON_PATCH, r#"[{"op":"test","path":"/data/x","value":"y"}]"#));
    cases.push((422, "Invalid", "PATCH", &there, MERGE, r#"{"data":5}"#));
    cases.push((400, "BadRequest", "DELETE", &there, JSON, "{"));

    expect_each(&cases).await;
}

#[tokio::test]
async fn unknown_kinds_versions_and_media_types_are_named() {
    let kind = |kind: &str, version: &str| {
        format!(r#"{{"apiVersion":"{version}","kind":"{kind}","metadata":{{"name":"a"}}}}"#)
    };
    let (version, nonsense, other) = (kind("ConfigMap", "v9"), kind("Nonsense", "v1"), kind("Secret", "v1"));
    let one = format!("{MAPS}/a");
    expect_each(&[
        (400, "BadRequest", "POST", MAPS, JSON, &version),
        (400, "BadRequest", "POST", MAPS, JSON, &nonsense),
        (400, "BadRequest", "POST", MAPS, JSON, &other),
        (404, "NotFound", "GET", "/api/v9/configmaps", "", ""),
        (404, "NotFound", "GET", "/apis/apps/v9/deployments", "", ""),
        (404, "", "GET", "/apis/nosuch.example.com/v1/things", "", ""),
        (404, "NotFound", "GET", "/api/v1/nosuch", "", ""),
        (404, "", "GET", "/nosuch", "", ""),
        (404, "NotFound", "POST", "/api/v1/namespaces/gone/configmaps", JSON, NAMED),
        (415, "UnsupportedMediaType", "POST", MAPS, "text/plain", "{}"),
        (415, "UnsupportedMediaType", "POST", MAPS, "nonsense", "{}"),
        (415, "UnsupportedMediaType", "PATCH", &one, JSON, "{}"),
        (415, "UnsupportedMediaType", "PATCH", &one, "text/plain", "{}"),
        (405, "MethodNotAllowed", "PUT", MAPS, JSON, "{}"),
        (405, "MethodNotAllowed", "POST", &one, JSON, "{}"),
        (405, "MethodNotAllowed", "DELETE", "/api/v1/namespaces", "", ""),
    ])
    .await;
}

#[tokio::test]
async fn bad_parameters_are_refused() {
    let bad = [
        "labelSelector=a%3D%3D%3Db",
        "labelSelector=a%20in%20(",
        "labelSelector=-a",
        "fieldSelector=nonsense",
        "fieldSelector=spec.nosuch%3Da",
        "limit=1&continue=nonsense",
        "limit=1&continue=bm9uc2Vuc2U",
        "limit=abc",
        "resourceVersion=abc",
    ];
    let invalid = ["resourceVersionMatch=Exact", "watch=1&sendInitialEvents=true"];
    let paths = |queries: &[&str]| -> Vec<String> { queries.iter().map(|q| format!("{MAPS}?{q}")).collect() };
    let (bad, invalid) = (paths(&bad), paths(&invalid));
    let mut cases: Vec<_> = bad.iter().map(|path| (400, "BadRequest", "GET", path.as_str(), "", "")).collect();
    cases.extend(invalid.iter().map(|path| (422, "Invalid", "GET", path.as_str(), "", "")));
    let watch = format!("{MAPS}?watch=1&resourceVersion=abc");
    // A surprise, but that is how kube-apiserver says it.
    cases.push((500, "", "GET", &watch, "", ""));
    let fine = paths(&["labelSelector=a%00", "limit=-1"]);
    cases.extend(fine.iter().map(|path| (200, "", "GET", path.as_str(), "", "")));
    let (collection, one) = (format!("{MAPS}?labelSelector=a%20in%20("), format!("{MAPS}/a?gracePeriodSeconds=abc"));
    cases.extend([&collection, &one].map(|path| (400, "BadRequest", "DELETE", path.as_str(), "", "")));

    expect_each(&cases).await;
}

#[tokio::test]
async fn bad_managers_and_options_are_refused() {
    let long = format!("{MAPS}?fieldManager={}", "m".repeat(129));
    let posts = [long, format!("{MAPS}?fieldManager=a%0Ab"), format!("{MAPS}?dryRun=nosuch")];
    let mut cases: Vec<_> = posts.iter().map(|path| (422, "Invalid", "POST", path.as_str(), JSON, NAMED)).collect();
    let (one, mine) = (format!("{MAPS}/a"), format!("{MAPS}/a?fieldManager=me"));
    let (validation, strict) = (format!("{mine}&fieldValidation=nosuch"), format!("{MAPS}?fieldValidation=Strict"));
    let renamed = APPLIED.replace("\"a\"", "\"b\"");
    cases.push((422, "Invalid", "PATCH", &one, APPLY, APPLIED));
    cases.push((422, "Invalid", "PATCH", &validation, APPLY, APPLIED));
    cases.push((400, "BadRequest", "PATCH", &mine, APPLY, r#"{"kind":"ConfigMap","metadata":{"name":"a"}}"#));
    cases.push((400, "BadRequest", "PATCH", &mine, APPLY, &renamed));
    cases.push((400, "BadRequest", "POST", &strict, JSON, r#"{"metadata":{"name":"a"},"nosuch":1}"#));
    let there = format!("{MAPS}/there");
    cases.push((422, "Invalid", "DELETE", &there, JSON, r#"{"propagationPolicy":"Nosuch"}"#));

    expect_each(&cases).await;
}

#[tokio::test]
async fn names_sizes_and_values_out_of_bounds_are_refused() {
    let annotated = json!({"metadata": {"name": "big", "annotations": {"a": "x".repeat(300_000)}}}).to_string();
    let huge = json!({"metadata": {"name": "a"}, "data": {"a": "x".repeat(3 << 20)}}).to_string();
    let (nul, there) = (format!("{MAPS}/a%00b"), format!("{MAPS}/there"));
    let deployments = "/apis/apps/v1/namespaces/default/deployments";
    expect_each(&[
        (422, "Invalid", "POST", MAPS, JSON, &annotated),
        (413, "RequestEntityTooLarge", "POST", MAPS, JSON, &huge),
        (422, "Invalid", "POST", MAPS, JSON, r#"{"metadata":{"name":"a\u0000b"}}"#),
        (422, "Invalid", "POST", MAPS, JSON, r#"{"metadata":{"name":"a","labels":{"x":"a\u0000"}}}"#),
        (404, "NotFound", "GET", &nul, "", ""),
        (422, "Invalid", "POST", MAPS, JSON, r#"{"metadata":{"name":"Bad_Name"}}"#),
        (422, "Invalid", "POST", MAPS, JSON, r#"{"metadata":{}}"#),
        (400, "BadRequest", "POST", MAPS, JSON, r#"{"metadata":{"name":"a","namespace":"other"}}"#),
        (500, "", "POST", MAPS, JSON, r#"{"metadata":{"name":"a","resourceVersion":"5"}}"#),
        (400, "BadRequest", "POST", deployments, JSON, r#"{"metadata":{"name":"a"},"spec":{"replicas":99999999999}}"#),
        (422, "Invalid", "POST", deployments, JSON, NAMED),
        (400, "BadRequest", "PUT", &there, JSON, r#"{"metadata":{"name":"other"}}"#),
    ])
    .await;
}

/// `PORTOLAN_FUZZ_CASES` times as many cases, from `PORTOLAN_SEED`.
fn check<S: Strategy>(cases: u32, strategy: &S, test: impl Fn(S::Value) -> Result<(), TestCaseError>) {
    static SAID: Once = Once::new();
    let number = |name: &str| std::env::var(name).ok().and_then(|v| v.parse().ok()).unwrap_or(1_u32);
    let (seed, cases) = (u64::from(number("PORTOLAN_SEED")), cases.saturating_mul(number("PORTOLAN_FUZZ_CASES")));
    SAID.call_once(|| println!("PORTOLAN_SEED={seed}"));
    println!("{cases} cases");
    let config = ProptestConfig {
        cases,
        rng_seed: RngSeed::Fixed(seed),
        failure_persistence: None,
        ..ProptestConfig::default()
    };
    let outcome = TestRunner::new(config).run(strategy, test).map_err(|error| error.to_string());
    assert_eq!(outcome, Ok(()), "PORTOLAN_SEED={seed}");
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime starts")
}

/// Errors are a `Status` that repeats its code, or plain text or nothing at all where the real server says it so: it says
/// nothing about `OpenAPI` documents that it does not have.
fn well_formed(reply: &Reply) -> Result<(), TestCaseError> {
    let silent = reply.content_type.is_empty() && reply.text.is_empty() && matches!(reply.code, 404 | 406);
    if reply.code < 400 || reply.content_type.starts_with("text/plain") || silent {
        return Ok(());
    }
    let status = if reply.content_type.starts_with(YAML) {
        serde_saphyr::from_slice(&reply.text).unwrap_or_default()
    } else {
        reply.value()
    };
    let said = (&status["kind"], &status["status"], &status["code"]);
    prop_assert_eq!(said, (&json!("Status"), &json!("Failure"), &json!(reply.code)), "{:?}", reply.text);
    prop_assert!(status["message"].is_string());
    Ok(())
}

/// One of the words between the bars.
fn words(text: &'static str) -> prop::sample::Select<&'static str> {
    select(text.split('|').collect::<Vec<_>>())
}

/// JSON that looks like an object, with the fields that the server reads.
fn document() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        words("|a|v1|ConfigMap|me|Bad_Name|1|\0|é|default|Orphan").prop_map(Value::from),
        any::<String>().prop_map(Value::from),
    ];
    let fields = words(
        "apiVersion|kind|metadata|name|generateName|namespace|labels|annotations|finalizers|\
        ownerReferences|managedFields|uid|resourceVersion|deletionTimestamp|data|binaryData|spec|status|\
        immutable|selector|template|containers|ports|x|op|path|value||a.b/c",
    );
    leaf.prop_recursive(4, 24, 5, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(fields.clone(), inner, 0..6)
                .prop_map(|fields| fields.into_iter().map(|(k, v)| (k.to_owned(), v)).collect()),
        ]
    })
}

fn body() -> impl Strategy<Value = Vec<u8>> {
    let metadata = document().prop_map(|metadata| {
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "labels": metadata}, "data": metadata})
    });
    let text = |value: Value| value.to_string().into_bytes();
    prop_oneof![
        3 => document().prop_map(text),
        3 => metadata.prop_map(text),
        1 => (document().prop_map(text), any::<prop::sample::Index>()).prop_map(|(t, at)| t[..at.index(t.len() + 1)].to_vec()),
        1 => prop::collection::vec(any::<u8>(), 0..60),
        1 => Just(Vec::new()),
    ]
}

fn path() -> impl Strategy<Value = String> {
    let root = words(
        "/api/v1|/apis/apps/v1|/apis/apiextensions.k8s.io/v1|/apis/batch/v1|/api|/apis|/openapi/v3|\
        /version|/nosuch|/apis/x/v1|/api/v1/watch|/healthz",
    );
    let parts = words(
        "namespaces|default|configmaps|deployments|customresourcedefinitions|pods|services|jobs|there|a|\
        status|scale|finalize|%00|%2F|..|%ff||a%20b|watch",
    );
    let usual = words("configmaps|secrets|services|pods|events");
    let name = words("|/a|/there|/a/status|/%00");
    prop_oneof![
        (usual, name).prop_map(|(plural, name)| format!("/api/v1/namespaces/default/{plural}{name}")),
        (root, prop::collection::vec(parts, 0..5))
            .prop_map(|(root, parts)| { parts.iter().fold(root.to_owned(), |path, part| format!("{path}/{part}")) }),
    ]
}

fn query() -> impl Strategy<Value = String> {
    let names = words(
        "labelSelector|fieldSelector|limit|continue|resourceVersion|resourceVersionMatch|dryRun|\
        fieldManager|fieldValidation|force|timeoutSeconds|propagationPolicy|gracePeriodSeconds|pretty|\
        sendInitialEvents|allowWatchBookmarks|includeObject|orphanDependents",
    );
    let values = words(
        "|1|0|-1|true|All|me|Exact|NotOlderThan|a%3Db|a%20in%20(b%2Cc)|!a|a%00|metadata.name%3Da|\
        99999999999999999999|%ff|Strict|Foreground|eyJ2IjoibWV0YS5rOHMuaW8vdjEifQ|%",
    );
    prop::collection::vec((names, values), 0..4)
        .prop_map(|pairs| pairs.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join("&"))
}

#[test]
fn any_request_gets_a_well_formed_answer() {
    let runtime = runtime();
    let server = runtime.block_on(server());
    let methods = words("GET|POST|PUT|PATCH|DELETE|HEAD|OPTIONS|NOSUCH");
    let kinds =
        select(vec![JSON, YAML, JSON_PATCH, MERGE, APPLY, "", "text/plain", "application/json; charset=x", ";"]);
    let accepted = select(vec![
        "",
        JSON,
        YAML,
        "*/*",
        "nonsense",
        "application/json;as=Table;v=v1;g=meta.k8s.io",
        ",;q=",
        "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io",
    ]);
    let request = (methods, path(), query(), kinds, accepted, body());

    check(1500, &request, |(method, path, query, kind, accept, body)| {
        let request = Request::builder().method(method).uri(format!("{path}?{query}"));
        let request = request.header("content-type", kind).header("accept", accept).body(Full::new(body.into()));
        let reply = runtime.block_on(request_of(&server, request.expect("the grammar makes valid requests")));
        // The real server answers 500 to versions that are no numbers or that a new object brings along, and to applied
        // fields of a wrong type.
        let text = String::from_utf8_lossy(&reply.text);
        let known = text.contains("resourceVersion") || text.contains("failed to create typed patch object");
        prop_assert!(reply.code < 500 || known, "{text}");
        well_formed(&reply)
    });
    let alive = runtime.block_on(send(&server, "GET", "/api/v1/namespaces", "", b""));
    assert_eq!(alive.code, 200);
}

#[test]
fn any_selector_is_answered_or_refused() {
    let runtime = runtime();
    let server = runtime.block_on(server());
    let tokens = words("a|app.k8s.io/b|=|==|!=|!| in | notin |(|)|,| |1|<|>|\\|metadata.name|é|\0");
    let grammar = prop::collection::vec(tokens, 0..8).prop_map(|tokens| tokens.concat());
    let selector = prop_oneof![3 => grammar, 1 => any::<String>()];
    let parameter = words("labelSelector|fieldSelector");

    check(1500, &(parameter, selector), |(parameter, selector)| {
        let encoded = utf8_percent_encode(&selector, NON_ALPHANUMERIC);
        let reply = runtime.block_on(send(&server, "GET", &format!("{MAPS}?{parameter}={encoded}"), "", b""));
        prop_assert!(matches!(reply.code, 200 | 400), "{selector:?}: {}", reply.code);
        well_formed(&reply)
    });
}

/// The data that a manager applies, with or without force. Never none: an empty map that two managers share conflicts
/// when one applies it again, here as on the real server.
fn applies() -> impl Strategy<Value = Vec<(&'static str, bool, Value)>> {
    let data = prop::collection::btree_map(words("a|b|c|d"), words("1|2"), 1..4);
    let one = (words("me|you|them"), any::<bool>(), data.prop_map(|data| json!(data)));
    prop::collection::vec(one, 1..8)
}

#[test]
fn any_applies_give_each_manager_what_it_applied_or_a_conflict() {
    let runtime = runtime();
    let server = runtime.block_on(server());

    check(150, &applies(), |applies| {
        let url = format!("{MAPS}/merged");
        runtime.block_on(send(&server, "DELETE", &url, "", b""));
        for (manager, force, data) in applies {
            let before = runtime.block_on(send(&server, "GET", &url, "", b"")).value();
            let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "merged"}, "data": data});
            let path = format!("{url}?fieldManager={manager}&force={force}");
            let send_it = || runtime.block_on(send(&server, "PATCH", &path, APPLY, object.to_string().as_bytes()));
            let reply = send_it();
            if reply.code == 409 {
                prop_assert!(!force, "force leaves no conflict");
                prop_assert_eq!(runtime.block_on(send(&server, "GET", &url, "", b"")).value(), before);
                continue;
            }
            prop_assert!(matches!(reply.code, 200 | 201), "{:?}", reply.text);
            let merged = reply.value();
            let kept = data.as_object().into_iter().flatten().all(|(key, value)| merged["data"][key] == *value);
            prop_assert!(kept, "{} holds {}", merged, data);
            prop_assert_eq!(send_it().value(), merged, "applying the same again changes nothing");
        }
        Ok(())
    });
}
