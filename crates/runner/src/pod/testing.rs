//! A spec → a pod as the API server gives it to a runner.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use serde_json::{Value, json};

/// A pod named `web` in `harbour`.
pub(crate) fn pod(spec: Value) -> Pod {
    let metadata = json!({"name": "web", "namespace": "harbour", "uid": "u-1"});
    serde_json::from_value(json!({"metadata": metadata, "spec": spec})).expect("the tests' pods are pods")
}

/// So many seconds after the tests' beginning.
pub(crate) fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(1_000_000 + seconds).expect("the tests' times are times")
}
