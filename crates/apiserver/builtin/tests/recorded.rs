//! Objects and answers recorded from kube-apiserver v1.36.3 (`recorded/*.jsonl`): the same objects go through this crate,
//! and what is stored or refused must be the same.

#![expect(clippy::unwrap_used, reason = "a recording that cannot be read fails the test")]

use portolan_builtin::{
    Kind, TableColumn, admit_create, admit_update, cells, check_types, columns, kinds, prepare_create,
    prepare_status_update, prepare_update, row_conditions, service, set_defaults, validate_create, validate_update,
};
use portolan_schema::FieldError;
use serde_json::{Value, json};

fn cases(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn kind_of(object: &Value) -> &'static Kind {
    let (group, version) = object["apiVersion"].as_str().unwrap().rsplit_once('/').unwrap_or(("", "v1"));
    let version = if group.is_empty() { object["apiVersion"].as_str().unwrap() } else { version };
    kinds::find(group, version, object["kind"].as_str().unwrap()).unwrap()
}

/// Fields that the recording server gave out, and this crate does not.
fn mask(object: &mut Value) {
    let kind = object["kind"].clone();
    if let Some(status) = object.get_mut("status").and_then(Value::as_object_mut) {
        status.remove("lastPhaseTransitionTime");
        for condition in status.get_mut("conditions").and_then(Value::as_array_mut).into_iter().flatten() {
            condition["lastTransitionTime"] = Value::Null;
        }
    }
    if let Some(spec) = object.get_mut("spec").and_then(Value::as_object_mut) {
        if kind == "Service" {
            if spec.get("clusterIP").is_none_or(|address| address != "None") {
                spec.remove("clusterIP");
                spec.remove("clusterIPs");
            }
            spec.remove("healthCheckNodePort");
            for port in spec.get_mut("ports").and_then(Value::as_array_mut).into_iter().flatten() {
                port.as_object_mut().unwrap().remove("nodePort");
            }
        }
        if kind == "Pod" {
            // The recording server ran without the admission plugin for service accounts.
            spec.remove("serviceAccount");
            spec.remove("serviceAccountName");
        }
    }
}

/// The uid that a recorded Job was given.
fn recorded_uid(stored: &Value) -> Value {
    stored.pointer("/metadata/labels/controller-uid").cloned().unwrap_or(json!("some-uid"))
}

fn created(kind: &Kind, case: &Value) -> Value {
    let mut object = case["request"].clone();
    if kind.namespaced {
        object["metadata"]["namespace"] = json!("default");
    }
    object["metadata"]["uid"] = recorded_uid(&case["stored"]);
    set_defaults(kind, &mut object);
    admit_create(kind, &mut object);
    prepare_create(kind, &mut object);
    object["metadata"].as_object_mut().unwrap().remove("uid");
    mask(&mut object);
    object
}

#[test]
fn new_objects_are_stored_as_the_real_server_stores_them() {
    let mut different = Vec::new();
    // Decoding oddities that belong to the JSON reader: field names in the wrong case, and lists of byte values.
    let other = ["type case", "type cm binary list"];
    for case in cases(include_str!("recorded/create.jsonl")) {
        if case["stored"].is_null() || other.contains(&case["name"].as_str().unwrap()) {
            continue;
        }
        let kind = kind_of(&case["request"]);
        let mut wanted = case["stored"].clone();
        mask(&mut wanted);
        let object = created(kind, &case);
        if object != wanted {
            different.push(format!("{}\n  ours   {object}\n  theirs {wanted}", case["name"]));
        }
    }

    assert!(different.is_empty(), "{}", different.join("\n"));
}

#[test]
fn updated_objects_are_stored_as_the_real_server_stores_them() {
    let mut different = Vec::new();
    for case in cases(include_str!("recorded/update.jsonl")) {
        if case["stored"].is_null() {
            continue;
        }
        let kind = kind_of(&case["request"]);
        let mut object = case["request"].clone();
        set_defaults(kind, &mut object);
        admit_update(kind, &mut object, &case["old"]);
        prepare_update(kind, &mut object, &case["old"]);
        let mut wanted = case["stored"].clone();
        mask(&mut wanted);
        mask(&mut object);
        if object != wanted {
            different.push(format!("{}\n  ours   {object}\n  theirs {wanted}", case["name"]));
        }
    }

    assert!(different.is_empty(), "{}", different.join("\n"));
}

#[test]
fn values_of_the_wrong_type_are_refused_in_the_same_words() {
    let mut different = Vec::new();
    for case in cases(include_str!("recorded/create.jsonl")) {
        let object = &case["request"];
        let wanted = match case["code"].as_u64() {
            Some(400) => case["error"]["message"].as_str().map(str::to_owned),
            _ => None,
        };
        let found = check_types(kind_of(object), object).err();
        if found != wanted {
            different.push(format!("{}\n  ours   {found:?}\n  theirs {wanted:?}", case["name"]));
        }
    }

    assert!(different.is_empty(), "{}", different.join("\n"));
}

/// Errors as `causes` of an answer, sorted; the text after a line break is a diff that only the real server draws.
fn causes(errors: &[(String, String, String)]) -> Vec<String> {
    let first = |text: &str| text.split('\n').next().unwrap_or_default().to_owned();
    let mut lines: Vec<String> = errors.iter().map(|(f, r, m)| format!("{f} | {r} | {}", first(m))).collect();
    lines.sort();
    lines
}

fn recorded_causes(case: &Value) -> Vec<String> {
    let text = |cause: &Value, field: &str| cause[field].as_str().unwrap_or_default().to_owned();
    let list = case["error"]["causes"].as_array().cloned().unwrap_or_default();
    let errors: Vec<_> = list.iter().map(|c| (text(c, "field"), text(c, "reason"), text(c, "message"))).collect();
    causes(&errors)
}

fn found_causes(errors: &[FieldError]) -> Vec<String> {
    let errors: Vec<_> = errors.iter().map(|e| (e.field.clone(), e.kind.reason().to_owned(), e.body())).collect();
    causes(&errors)
}

/// The uid that a refused Job was given, from the labels in the message.
fn recorded_job(case: &Value) -> String {
    let text = case.to_string();
    let uid = text.split("controller-uid\\\":\\\"").nth(1).or_else(|| text.split("controller-uid\":\"").nth(1));
    uid.map_or_else(|| "some-uid".to_owned(), |rest| rest.chars().take(36).collect())
}

#[test]
fn wrong_new_objects_are_refused_for_the_same_causes() {
    let mut different = Vec::new();
    for case in cases(include_str!("recorded/create.jsonl")) {
        if case["code"] == 400 {
            continue;
        }
        let kind = kind_of(&case["request"]);
        let mut object = case["request"].clone();
        if kind.namespaced {
            object["metadata"]["namespace"] = json!("default");
        }
        object["metadata"]["uid"] = json!(recorded_job(&case));
        set_defaults(kind, &mut object);
        prepare_create(kind, &mut object);
        let (found, mut wanted) = (found_causes(&validate_create(kind, &object)), recorded_causes(&case));
        // Pods may be processes of this machine: endpoints on loopback are meant to be different.
        let loopback = |cause: &String| cause.contains("may not be in the loopback range");
        wanted.retain(|cause| !(kind.kind.starts_with("Endpoint") && loopback(cause)));
        if found != wanted {
            different.push(format!("{}\n  ours   {found:#?}\n  theirs {wanted:#?}", case["name"]));
        }
    }

    assert!(different.is_empty(), "{}", different.join("\n"));
}

#[test]
fn wrong_updates_are_refused_for_the_same_causes() {
    let mut different = Vec::new();
    for case in cases(include_str!("recorded/update.jsonl")) {
        // The real server shows the whole template of a Job by the names of its internal type.
        if case["code"] == 409 || case["name"] == "job template" {
            continue;
        }
        let kind = kind_of(&case["request"]);
        let mut old = case["old"].clone();
        let mut object = case["request"].clone();
        old["metadata"]["resourceVersion"] = json!("1");
        object["metadata"]["resourceVersion"] = json!("1");
        for one in [&mut old, &mut object] {
            one["metadata"]["uid"] = json!(recorded_job(&case));
        }
        set_defaults(kind, &mut object);
        admit_update(kind, &mut object, &old);
        prepare_update(kind, &mut object, &old);
        let (found, wanted) = (found_causes(&refused_update(kind, &object, &old)), recorded_causes(&case));
        if found != wanted {
            different.push(format!("{}\n  ours   {found:#?}\n  theirs {wanted:#?}", case["name"]));
        }
    }

    assert!(different.is_empty(), "{}", different.join("\n"));
}

/// What an update is refused for. The addresses of a Service are looked at before all else.
fn refused_update(kind: &Kind, object: &Value, old: &Value) -> Vec<FieldError> {
    let unsettled = if kind.kind == "Service" { service::settle(&mut object.clone(), Some(old)) } else { Vec::new() };
    if unsettled.is_empty() { validate_update(kind, object, old) } else { unsettled }
}

/// Cells that depend on the time of the recording.
fn mask_times(kind: &Kind, cells: &[Value]) -> Vec<Value> {
    let timed = ["Age", "Last Seen", "First Seen", "Last Schedule"];
    let masked = |(column, cell): (&TableColumn, &Value)| match (column.name.as_str(), cell.as_str()) {
        (name, Some(text)) if timed.contains(&name) && !text.starts_with('<') => json!("some time"),
        ("Restarts", Some(text)) if text.contains("ago") => json!(text.split(' ').next()),
        _ => cell.clone(),
    };
    columns(kind).iter().zip(cells).map(masked).collect()
}

#[test]
fn objects_are_shown_in_the_same_cells() {
    let mut different = Vec::new();
    for case in cases(include_str!("recorded/table.jsonl")) {
        let kind = kind_of(&case["object"]);
        let found = mask_times(kind, &cells(kind, &case["object"], jiff::Timestamp::now()));
        let wanted = mask_times(kind, case["cells"].as_array().unwrap());
        let conditions = row_conditions(kind, &case["object"]).unwrap_or_default();
        if found != wanted || conditions != case["conditions"] {
            different.push(format!("{}\n  ours   {found:?}\n  theirs {wanted:?}", case["name"]));
        }
    }

    assert!(different.is_empty(), "{}", different.join("\n"));
}

#[test]
fn status_updates_change_what_they_change_on_the_real_server() {
    let mut different = Vec::new();
    for case in cases(include_str!("recorded/status.jsonl")) {
        let kind = kind_of(&case["request"]);
        let mut object = case["request"].clone();
        set_defaults(kind, &mut object);
        prepare_status_update(kind, &mut object, &case["old"]);
        let mut wanted = case["stored"].clone();
        mask(&mut wanted);
        mask(&mut object);
        if object != wanted {
            different.push(format!("{}\n  ours   {object}\n  theirs {wanted}", case["name"]));
        }
    }

    assert!(different.is_empty(), "{}", different.join("\n"));
}
