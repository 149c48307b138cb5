//! What Go clients send: protocol buffers in bodies, and headers that ask for short answers.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a failed step is a failed test")]

use std::io::Read as _;

use crate::support::{Answer, MAPS, get, map, post, send, server, soon};
use bytes::Bytes;
use http::{HeaderMap, Request};
use http_body_util::{BodyExt as _, Full};
use portolan_apiserver::ApiService;
use serde_json::{Value, json};
use tower::ServiceExt as _;

const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";

/// A field with a length and as many bytes.
fn field(number: u8, bytes: &[u8]) -> Vec<u8> {
    let length = u8::try_from(bytes.len()).expect("tests send little");
    assert!(length < 0x80, "a longer one needs two bytes");
    [&[number << 3 | 2, length], bytes].concat()
}

fn body(api_version: &str, kind: &str, message: &[u8]) -> Vec<u8> {
    let types = [field(1, api_version.as_bytes()), field(2, kind.as_bytes())].concat();
    [b"k8s\0".to_vec(), field(1, &types), field(2, message)].concat()
}

fn metadata(name: &str) -> Vec<u8> {
    field(1, &field(1, name.as_bytes()))
}

fn config_map(name: &str, value: &str) -> Vec<u8> {
    let entry = [field(1, b"value"), field(2, value.as_bytes())].concat();
    body("v1", "ConfigMap", &[metadata(name), field(2, &entry)].concat())
}

fn refused(answer: Answer) -> (u16, String) {
    (answer.code, answer.json()["message"].as_str().unwrap().to_owned())
}

#[tokio::test]
async fn objects_are_created_and_replaced_as_from_json() {
    let server = server().await;
    let service = server.service();

    let created = send(&service, "POST", MAPS, PROTOBUF, config_map("a", "1")).await.ok();
    let replaced = send(&service, "PUT", &format!("{MAPS}/a"), PROTOBUF, config_map("a", "2")).await.ok();
    let same = post(&service, MAPS, &map("b", "2")).await.ok();

    assert_eq!(created["data"], json!({"value": "1"}));
    assert_eq!(replaced["data"], json!({"value": "2"}));
    let owned = |object: &Value| object["metadata"]["managedFields"][0]["fieldsV1"].clone();
    assert_eq!(owned(&replaced), owned(&same));
}

#[tokio::test]
async fn what_cannot_be_read_is_a_bad_request_with_the_real_servers_words() {
    let server = server().await;
    let service = server.service();
    let unrecognized = "the object provided is unrecognized (must be of type ConfigMap):";
    let handled = "in version \"v1\" cannot be handled as a ConfigMap:";
    let cases: [(&[u8], String); 9] = [
        (b"", format!("{unrecognized} empty data (<empty>)")),
        (b"k8s\0", format!("{unrecognized} empty body (6b387300)")),
        (
            b"garbage",
            format!(
                "{unrecognized} provided data does not appear to be a protobuf message, \
                 expected prefix [107 56 115 0] (67617262616765)"
            ),
        ),
        (b"k8s\0\x0a\x09\x0a", format!("{unrecognized} unexpected EOF (6b3873000a090a)")),
        (&body("v1", "ConfigMap", b"\x0a\x50a"), format!("ConfigMap {handled} unexpected EOF")),
        (
            &body("v1", "ConfigMap", b"\x08\x01"),
            format!("ConfigMap {handled} proto: wrong wireType = 0 for field ObjectMeta"),
        ),
        (
            &body("v1", "Pod", &metadata("x")),
            format!("Pod {handled} converting (v1.Pod) to (core.ConfigMap): unknown conversion"),
        ),
        (
            &body("apps/v1", "Deployment", &metadata("x")),
            format!("Deployment {handled} converting (v1.Deployment) to (core.ConfigMap): unknown conversion"),
        ),
        (
            &body("v1", "Nonsense", &metadata("x")),
            format!(
                "Nonsense {handled} no kind \"Nonsense\" is registered for version \"v1\" \
                 in scheme \"pkg/runtime/scheme.go:111\""
            ),
        ),
    ];

    for (sent, message) in cases {
        let answer = send(&service, "POST", MAPS, PROTOBUF, sent.to_vec()).await;
        assert_eq!(refused(answer), (400, message));
    }
}

#[tokio::test]
async fn the_path_names_the_kind_where_the_body_does_not_and_strange_fields_are_skipped() {
    let server = server().await;
    let service = server.service();
    let sent = body("", "", &[metadata("a"), field(9, b"unknown")].concat());

    let created = send(&service, "POST", &format!("{MAPS}?fieldValidation=Strict"), PROTOBUF, sent).await.ok();

    assert_eq!((&created["kind"], &created["metadata"]["name"]), (&json!("ConfigMap"), &json!("a")));
}

#[tokio::test]
async fn deletions_take_their_options_from_protocol_buffers() {
    let server = server().await;
    let service = server.service();
    post(&service, MAPS, &map("a", "1")).await.ok();
    let wrong_uid = field(2, &field(1, b"another"));
    let path = format!("{MAPS}/a");

    let conflict = send(&service, "DELETE", &path, PROTOBUF, body("v1", "DeleteOptions", &wrong_uid)).await;
    let garbage = send(&service, "DELETE", &path, PROTOBUF, "garbage").await;
    let kind = send(&service, "DELETE", &path, PROTOBUF, body("v1", "ConfigMap", b"")).await;
    let deleted = send(&service, "DELETE", &path, PROTOBUF, body("apps/v1", "DeleteOptions", b"\x08\x00")).await;

    assert_eq!(conflict.code, 409);
    assert_eq!(garbage.code, 400);
    let unknown = "no kind \"ConfigMap\" is registered for version \"v1\" in scheme \"pkg/runtime/scheme.go:111\"";
    assert_eq!(refused(kind), (400, unknown.to_owned()));
    assert_eq!(deleted.code, 200);
}

#[tokio::test]
async fn custom_kinds_are_not_sent_as_protocol_buffers() {
    let server = server().await;
    let service = server.service();
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "foos.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced", "names": {"plural": "foos", "kind": "Foo"},
            "versions": [{"name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}],
        },
    });
    post(&service, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", &definition).await.ok();
    let path = "/apis/example.com/v1/namespaces/default/foos";
    let served = async {
        while get(&service, path).await.code != 200 {
            tokio::task::yield_now().await;
        }
    };
    soon(served).await;

    let answer = send(&service, "POST", path, PROTOBUF, body("example.com/v1", "Foo", b"")).await;

    let message = "Foo in version \"v1\" cannot be handled as a Foo: \
                   Object 'Kind' is missing in 'object has no kind field '";
    assert_eq!(refused(answer), (400, message.to_owned()));
}

/// Gets a path with a header.
async fn get_with(service: &ApiService, path: &str, name: &str, value: &str) -> (HeaderMap, Bytes) {
    let request = Request::get(path).header(name, value).body(Full::new(Bytes::new())).unwrap();
    let (parts, body) = service.clone().oneshot(request).await.unwrap().into_parts();
    (parts.headers, soon(body.collect()).await.unwrap().to_bytes())
}

#[tokio::test]
async fn long_answers_are_compressed_for_who_takes_them_so() {
    let server = server().await;
    let service = server.service();
    post(&service, MAPS, &map("long", &"x".repeat(140_000))).await.ok();
    post(&service, MAPS, &map("short", "x")).await.ok();

    let (headers, compressed) = get_with(&service, &format!("{MAPS}/long"), "accept-encoding", "deflate, gzip").await;
    let (plain_headers, plain) = get_with(&service, &format!("{MAPS}/long"), "accept-encoding", "identity").await;
    let (short, _) = get_with(&service, &format!("{MAPS}/short"), "accept-encoding", "gzip").await;

    assert_eq!(
        (headers["content-encoding"].as_bytes(), headers["vary"].as_bytes()),
        (&b"gzip"[..], &b"Accept-Encoding"[..])
    );
    let mut text = Vec::new();
    flate2::read::GzDecoder::new(&compressed[..]).read_to_end(&mut text).unwrap();
    assert_eq!(text, plain);
    assert!(compressed.len() < plain.len() / 10);
    assert!(!plain_headers.contains_key("content-encoding") && !short.contains_key("content-encoding"));
}

#[tokio::test]
async fn answers_are_json_for_who_takes_it_besides_protocol_buffers() {
    let server = server().await;
    let service = server.service();

    let both = format!("{PROTOBUF},application/json");
    let (headers, _) = get_with(&service, MAPS, "accept", &both).await;
    let (_, refusal) = get_with(&service, MAPS, "accept", PROTOBUF).await;

    assert_eq!(headers["content-type"], "application/json");
    let refusal: Value = serde_json::from_slice(&refusal).unwrap();
    assert_eq!(refusal["code"], 406);
}
