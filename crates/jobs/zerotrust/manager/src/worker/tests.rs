//! A manager's Deployment, and the workers that inherit from it.

use super::*;

fn own() -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "cfzt", "namespace": "cloudflare-zero-trust", "uid": "m"},
        "spec": {
            "replicas": 3, "revisionHistoryLimit": 5, "paused": true,
            "selector": {"matchLabels": {NAME: OPERATOR, INSTANCE: "cfzt", COMPONENT: "operator"}},
            "template": {
                "metadata": {
                    "creationTimestamp": null,
                    "labels": {NAME: OPERATOR, INSTANCE: "cfzt", COMPONENT: "operator", "team": "edge"},
                    "annotations": {"a": "b"},
                },
                "spec": pod(),
            },
        },
    })
}

fn pod() -> Value {
    json!({
        "serviceAccountName": "cfzt", "serviceAccount": "cfzt", "imagePullSecrets": [{"name": "pull"}],
        "priorityClassName": "high", "terminationGracePeriodSeconds": 40, "nodeSelector": {"disk": "ssd"},
        "tolerations": [{"key": "a"}], "affinity": {"nodeAffinity": {"x": 1}},
        "topologySpreadConstraints": [{"maxSkew": 1}], "securityContext": {"runAsNonRoot": true},
        "volumes": [{"name": "tmp", "emptyDir": {}}], "containers": [container()],
    })
}

fn container() -> Value {
    json!({
        "name": "operator", "image": "portolan:1", "imagePullPolicy": "Always",
        "args": ["run", "--role", "manager", "--role=manager", "--leader-elect"],
        "resources": {"limits": {"cpu": "1"}}, "securityContext": {"readOnlyRootFilesystem": true},
        "volumeMounts": [{"name": "tmp", "mountPath": "/tmp"}], "envFrom": [{"secretRef": {"name": "more"}}],
        "ports": [{"name": "health", "containerPort": 8081, "protocol": "TCP"}],
        "readinessProbe": {"httpGet": {"path": "/readyz", "port": "health"}},
        "env": variables(),
    })
}

fn variables() -> Value {
    let limit = json!({"resourceFieldRef": {"containerName": "operator", "resource": "limits.cpu"}});
    json!([
        {"name": "ROLE", "value": "manager"},
        {"name": "POD_NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
        {"name": "KUBE_WORKER_SERVICE_ACCOUNT", "value": "cfzt-kube-worker"},
        {"name": "CLOUDFLARE_WORKER_SERVICE_ACCOUNT", "value": "cfzt-cloudflare-worker"},
        {"name": "LOG_LEVEL", "value": "DEBUG"},
        {"name": "PROXY", "value": "http://user:canary@proxy"},
        {"name": "LIMIT", "valueFrom": limit},
    ])
}

fn origin(own: &Value) -> WorkerOrigin<'_> {
    WorkerOrigin { own, account: Some("cfzt-kube-worker"), digest: Some("sha256:1") }
}

fn created(own: &Value) -> Value {
    match keep(WorkerKind::Kube, origin(own), None) {
        WorkerStep::Create(made) => made,
        other => panic!("{other:?}"),
    }
}

/// A worker as a server stores it.
fn stored(own: &Value) -> Value {
    let mut made = created(own);
    made["metadata"]["uid"] = json!("w");
    made["metadata"]["resourceVersion"] = json!("9");
    made
}

fn replaced(own: &Value, there: &Value) -> Value {
    match keep(WorkerKind::Kube, origin(own), Some(there)) {
        WorkerStep::Replace { after, .. } => after,
        other => panic!("{other:?}"),
    }
}

#[test]
fn scenario_64_a_worker_inherits_everything_but_what_is_its_own() {
    let (own, made) = (own(), created(&own()));
    let (from, to) = (&own["spec"]["template"]["spec"], &made["spec"]["template"]["spec"]);

    let inherited = [
        "imagePullSecrets",
        "priorityClassName",
        "terminationGracePeriodSeconds",
        "nodeSelector",
        "tolerations",
        "affinity",
        "topologySpreadConstraints",
        "securityContext",
        "volumes",
    ];
    for field in inherited {
        assert_eq!(from[field], to[field], "{field}");
    }
    let container = &to["containers"][0];
    let of_container = [
        "image",
        "imagePullPolicy",
        "resources",
        "securityContext",
        "volumeMounts",
        "envFrom",
        "ports",
        "readinessProbe",
    ];
    for field in of_container {
        assert_eq!(from["containers"][0][field], container[field], "{field}");
    }
    assert_eq!(container["name"], "kube-worker");
    assert_eq!(
        (&to["serviceAccountName"], &to["serviceAccount"]),
        (&json!("cfzt-kube-worker"), &json!("cfzt-kube-worker"))
    );
    assert_eq!(made["spec"]["replicas"], 1);
    assert!(made["spec"].get("paused").is_none());
    assert_eq!(made["spec"]["template"]["metadata"]["labels"]["team"], "edge");
    assert_eq!(made["spec"]["template"]["metadata"]["annotations"], json!({"a": "b", IMAGE_DIGEST: "sha256:1"}));
}

#[test]
fn a_worker_has_the_role_of_its_environment_and_no_other() {
    let made = created(&own());
    let container = &made["spec"]["template"]["spec"]["containers"][0];

    let names: Vec<&str> = container["env"].as_array().unwrap().iter().filter_map(|one| one["name"].as_str()).collect();
    assert_eq!(names, ["ROLE", "POD_NAME", "OPERATOR_NAMESPACE", "LOG_LEVEL", "PROXY", "LIMIT"]);
    assert_eq!(container["env"][0]["value"], "kube_worker");
    assert_eq!(container["env"][5]["valueFrom"]["resourceFieldRef"]["containerName"], "kube-worker");
    assert_eq!(container["args"], json!(["run", "--leader-elect"]));
}

#[test]
fn the_manager_controls_its_workers_and_does_not_find_their_pods() {
    let made = created(&own());

    let owner = json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": "cfzt", "uid": "m", "controller": true});
    assert_eq!(made["metadata"]["ownerReferences"], json!([owner]));
    let selector = json!({NAME: OPERATOR, INSTANCE: "cfzt", COMPONENT: "kube-worker"});
    assert_eq!(made["spec"]["selector"]["matchLabels"], selector);
}

#[test]
fn pods_of_workers_are_told_apart_where_the_managers_selector_has_no_component() {
    let mut older = own();
    older["spec"]["selector"]["matchLabels"] = json!({NAME: OPERATOR, INSTANCE: "cfzt"});

    let made = created(&older);

    assert_eq!(made["spec"]["template"]["metadata"]["labels"][NAME], WorkerKind::Kube.name());
    assert_eq!(made["spec"]["selector"]["matchLabels"][NAME], WorkerKind::Kube.name());
}

#[test]
fn a_worker_that_stands_as_it_should_is_kept() {
    assert_eq!(keep(WorkerKind::Kube, origin(&own()), Some(&stored(&own()))), WorkerStep::Keep);
}

#[test]
fn scenario_67_another_digest_rolls_a_worker_and_an_unknown_one_does_not() {
    let there = stored(&own());
    let (own, other) = (own(), Some("sha256:2"));

    assert_eq!(keep(WorkerKind::Kube, WorkerOrigin { digest: None, ..origin(&own) }, Some(&there)), WorkerStep::Keep);
    let WorkerStep::Replace { after, .. } =
        keep(WorkerKind::Kube, WorkerOrigin { digest: other, ..origin(&own) }, Some(&there))
    else {
        panic!("another digest is another template")
    };

    assert_eq!(after["spec"]["template"]["metadata"]["annotations"][IMAGE_DIGEST], "sha256:2");
}

#[test]
fn scenario_68_whatever_is_edited_in_a_worker_is_restored() {
    let edits: [fn(&mut Value); 4] = [
        |there| there["spec"]["replicas"] = json!(5),
        |there| there["spec"]["template"]["spec"]["containers"][0]["image"] = json!("other"),
        |there| there["spec"]["template"]["spec"]["hostNetwork"] = json!(true),
        |there| there["metadata"]["ownerReferences"] = json!([]),
    ];
    for edit in edits {
        let mut there = stored(&own());
        edit(&mut there);

        let after = replaced(&own(), &there);

        assert_eq!(after, stored(&own()));
    }
}

#[test]
fn a_restart_that_somebody_asked_for_is_not_undone() {
    let mut there = stored(&own());
    there["spec"]["template"]["metadata"]["annotations"][RESTARTED] = json!("2026-01-01T00:00:00Z");

    assert_eq!(keep(WorkerKind::Kube, origin(&own()), Some(&there)), WorkerStep::Keep);
}

#[test]
fn an_older_worker_keeps_its_selector_and_gets_an_owner() {
    let mut older = stored(&own());
    older["spec"]["selector"]["matchLabels"] = json!({NAME: "cfzt-operator", COMPONENT: "kube-worker"});
    older["metadata"]["ownerReferences"] = json!(null);

    let after = replaced(&own(), &older);

    assert_eq!(after["spec"]["selector"], older["spec"]["selector"]);
    assert_eq!(after["spec"]["template"]["metadata"]["labels"][NAME], "cfzt-operator");
    assert_eq!(after["metadata"]["ownerReferences"][0]["uid"], "m");
    assert_eq!(after["metadata"]["resourceVersion"], "9", "it is written over what was read");
}

#[test]
fn a_worker_of_somebody_else_or_on_its_way_out_is_left_alone() {
    let (mut theirs, mut going) = (stored(&own()), stored(&own()));
    theirs["metadata"]["ownerReferences"] =
        json!([{"kind": "Deployment", "name": "other", "uid": "x", "controller": true}]);
    going["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");

    for there in [theirs, going] {
        assert!(matches!(keep(WorkerKind::Kube, origin(&own()), Some(&there)), WorkerStep::Blocked(_)));
    }
}

#[test]
fn where_one_process_does_everything_our_earlier_workers_rest() {
    let WorkerStep::Replace { after, .. } = rest(&own(), Some(&stored(&own()))) else { panic!("it runs") };
    assert_eq!(after["spec"]["replicas"], 0);

    let mut theirs = stored(&own());
    theirs["metadata"]["ownerReferences"] = json!([]);
    assert_eq!(rest(&own(), Some(&theirs)), WorkerStep::Keep);
    assert_eq!(rest(&own(), None), WorkerStep::Keep);
}

#[test]
fn values_of_the_environment_are_not_shown() {
    let change = keep(WorkerKind::Kube, origin(&own()), None).change().unwrap();

    let shown = serde_json::to_string(&change).unwrap();
    assert!(!shown.contains("canary") && shown.contains("DEBUG"), "{shown}");
}
