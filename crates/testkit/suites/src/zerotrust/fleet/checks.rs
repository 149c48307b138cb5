//! What must hold of the operator's own Deployments, on any API server: scenarios 64–69, and what belongs to them.

use std::time::Duration;

use portolan_zerotrust::manager::{ANNOTATION, FIELD_MANAGER, IMAGE_DIGEST, WorkerKind};
use serde_json::{Value, json};

use super::{
    OPERATOR, begun, begun_as, config, container, deployment, id, operator, pod_of, roll, run_pods, stall, variable,
    workers,
};
use crate::World;
use crate::cluster::condition;
use crate::failpoints::{Stop, StopSide};
use crate::world::Builder;
use crate::zerotrust::Roles;

const CONFIG: &str = "operator-config";
/// Longer than a garbage collector takes.
const GOES_WITHIN: Duration = Duration::from_secs(600);

fn config_id(name: &str) -> String {
    id("CloudflareZeroTrustOperatorConfig", name)
}

async fn configure(world: &World, spec: Value) {
    world.cluster.apply(&config(CONFIG, spec)).await;
    world.settle().await;
}

/// `Applied` and `Ready` of a configuration: `True/ConfigurationApplied True/DeploymentReady`.
async fn said(world: &World, name: &str) -> String {
    let object = world.cluster.get(&config_id(name)).await.expect("the configuration is there");
    let text = |value: &Value| value.as_str().unwrap_or("none").to_owned();
    let one = |kind: &str| {
        condition(&object, kind)
            .map_or("none".to_owned(), |one| format!("{}/{}", text(&one["status"]), text(&one["reason"])))
    };
    format!("{} {}", one("Applied"), one("Ready"))
}

async fn status(world: &World, name: &str) -> Value {
    world.cluster.get(&config_id(name)).await.expect("the configuration is there")["status"].clone()
}

async fn message(world: &World, kind: &str) -> String {
    let object = world.cluster.get(&config_id(CONFIG)).await.expect("the configuration is there");
    condition(&object, kind).and_then(|one| one["message"].as_str()).unwrap_or_default().to_owned()
}

/// Nothing is written though everything is looked at again, by this process and by the next.
async fn assert_rests(world: World) {
    world.crash().await;
    // The pod that it ran in may have rolled.
    let pod = pod_of(&world, "operator").await;
    let world = world.with_roles(Roles::manager(&pod));
    world.forget();
    world.restart().await;
    world.settle().await;
    assert_eq!(world.cluster_writes(), Vec::<String>::new(), "a settled operator writes nothing");
}

/// Scenario 64: a fresh configuration is applied on its first generation, and the workers exist and inherit.
pub async fn fresh_configuration(builder: &Builder) {
    let world = begun(builder).await;
    assert_eq!(workers(&world).await.map(|one| variable(&one, "LOG_LEVEL")), [["INFO"], ["INFO"]]);
    let spec = json!({
        "replicas": 2, "resources": { "limits": { "cpu": "1000m" } }, "priorityClassName": "system-cluster-critical",
        "nodeSelector": { "disk": "ssd" }, "tolerations": [{ "key": "edge", "operator": "Exists" }],
        "imagePullPolicy": "IfNotPresent", "podLabels": { "team": "edge" }, "podAnnotations": { "a": "b" },
        "environmentVariables": { "logLevel": "DEBUG", "pollIntervalSeconds": 30 },
    });

    configure(&world, spec).await;

    assert_eq!(said(&world, CONFIG).await, "True/ConfigurationApplied False/DeploymentNotReady");
    roll(&world, "sha256:1").await;
    world.settle().await;
    assert_eq!(said(&world, CONFIG).await, "True/ConfigurationApplied True/DeploymentReady");
    assert_eq!(message(&world, "Applied").await, "OperatorConfig successfully applied to deployment");
    assert_eq!(message(&world, "Ready").await, "Operator deployment is ready");
    let status = status(&world, CONFIG).await;
    assert_eq!((&status["observedGeneration"], &status["deploymentReady"]), (&json!(1), &json!(true)));
    assert!(status["lastAppliedTime"].is_string(), "{status}");
    assert_eq!(world.cluster.events(&config_id(CONFIG)).await, ["ConfigurationApplied"]);
    let own = deployment(&world, OPERATOR).await;
    assert_eq!(own["spec"]["replicas"], 2);
    for (kind, worker) in WorkerKind::ALL.into_iter().zip(workers(&world).await) {
        assert_inherits(&own, &worker, kind);
    }
    assert_rests(world).await;
}

fn assert_inherits(own: &Value, worker: &Value, kind: WorkerKind) {
    let pod = |deployment: &Value| deployment["spec"]["template"]["spec"].clone();
    for field in ["priorityClassName", "nodeSelector", "tolerations", "imagePullSecrets"] {
        assert_eq!(pod(own)[field], pod(worker)[field], "{field}");
        assert!(!pod(worker)[field].is_null(), "{field} is inherited");
    }
    for field in ["image", "imagePullPolicy", "resources", "ports"] {
        assert_eq!(container(own)[field], container(worker)[field], "{field}");
    }
    assert_eq!(container(worker)["resources"], json!({ "limits": { "cpu": "1" } }), "replaced as a whole");
    assert_eq!(container(worker)["name"], kind.component());
    assert_eq!(variable(worker, "ROLE"), [kind.role()]);
    assert_eq!(variable(worker, "POLL_INTERVAL_SECONDS"), ["30"]);
    assert_eq!(worker["spec"]["replicas"], 1);
    let meta = &worker["spec"]["template"]["metadata"];
    assert_eq!((&meta["labels"]["team"], &meta["annotations"]["a"]), (&json!("edge"), &json!("b")));
    assert_eq!(meta["annotations"][IMAGE_DIGEST], "sha256:1");
    assert_eq!(worker["metadata"]["ownerReferences"][0]["uid"], own["metadata"]["uid"]);
}

/// Scenario 65: only the level is set; everything else stays as it was deployed.
pub async fn absent_fields(builder: &Builder) {
    let world = begun(builder).await;
    let mut before = deployment(&world, OPERATOR).await;

    configure(&world, json!({ "environmentVariables": { "logLevel": "DEBUG" } })).await;

    let after = deployment(&world, OPERATOR).await;
    assert_eq!(variable(&after, "WATCH_NAMESPACES"), ["shop"]);
    for entry in before["spec"]["template"]["spec"]["containers"][0]["env"].as_array_mut().into_iter().flatten() {
        if entry["name"] == "LOG_LEVEL" {
            entry["value"] = json!("DEBUG");
        }
    }
    assert_eq!(after["spec"], before["spec"]);
    for worker in workers(&world).await {
        assert_eq!(
            (variable(&worker, "WATCH_NAMESPACES"), variable(&worker, "LOG_LEVEL")),
            (vec!["shop".to_owned()], vec!["DEBUG".to_owned()])
        );
    }
}

/// Scenario 66: a variable that is there already is there once.
pub async fn one_entry(builder: &Builder) {
    let world = begun(builder).await;

    for level in ["DEBUG", "ERROR", "INFO"] {
        configure(&world, json!({ "environmentVariables": { "logLevel": level } })).await;

        assert_eq!(variable(&deployment(&world, OPERATOR).await, "LOG_LEVEL"), [level]);
        assert_eq!(workers(&world).await.map(|one| variable(&one, "LOG_LEVEL")), [[level], [level]]);
    }
}

/// What a configuration replaced comes back when it goes, and nothing tells of it any more.
pub async fn released_fields(builder: &Builder) {
    let world = begun(builder).await;
    let before = deployment(&world, OPERATOR).await;
    let affinity = json!({ "podAntiAffinity": { "preferredDuringSchedulingIgnoredDuringExecution": [{ "weight": 1, "podAffinityTerm": { "topologyKey": "zone" } }] } });
    let spec = json!({
        "replicas": 2, "resources": { "limits": { "cpu": "1" } }, "affinity": affinity,
        "environmentVariables": { "logLevel": "DEBUG", "watchNamespaces": "" }, "podLabels": { "team": "edge" },
    });
    configure(&world, spec).await;
    let held = deployment(&world, OPERATOR).await;
    assert_eq!(owners(&held), [format!("{FIELD_MANAGER} Apply")], "what is held is applied");
    assert_eq!(variable(&held, "WATCH_NAMESPACES"), [""]);

    configure(&world, json!({ "replicas": 2 })).await;
    let fewer = deployment(&world, OPERATOR).await;
    assert_eq!(fewer["spec"]["template"], before["spec"]["template"], "what is no longer said comes back");
    assert_eq!((&fewer["spec"]["replicas"], owners(&fewer)), (&json!(2), vec![format!("{FIELD_MANAGER} Apply")]));

    world.cluster.delete(&config_id(CONFIG)).await;
    world.settle().await;
    let after = deployment(&world, OPERATOR).await;
    assert_eq!(after["spec"], before["spec"]);
    assert!(after["metadata"]["annotations"][ANNOTATION].is_null());
    assert_eq!(owners(&after), Vec::<String>::new(), "nothing is ours any more");
    assert_rests(world).await;
}

/// The entries of ours among the owners of an object.
fn owners(object: &Value) -> Vec<String> {
    let entries = object["metadata"]["managedFields"].as_array().into_iter().flatten();
    let ours = entries.filter(|entry| entry["manager"] == FIELD_MANAGER);
    ours.map(|entry| format!("{FIELD_MANAGER} {}", entry["operation"].as_str().unwrap_or_default())).collect()
}

/// Who deploys the operator anew meets no lasting harm: the configuration holds, and what was deployed last comes back.
pub async fn deployed_anew(builder: &Builder) {
    let world = begun(builder).await;
    configure(&world, json!({ "replicas": 2, "environmentVariables": { "logLevel": "DEBUG" } })).await;
    let mut newer = operator();
    newer["spec"]["replicas"] = json!(3);
    newer["spec"]["template"]["spec"]["containers"][0]["env"][2]["value"] = json!("WARNING");

    world.cluster.apply(&newer).await;
    world.settle().await;
    let held = deployment(&world, OPERATOR).await;
    assert_eq!((&held["spec"]["replicas"], variable(&held, "LOG_LEVEL")), (&json!(2), vec!["DEBUG".to_owned()]));

    world.cluster.delete(&config_id(CONFIG)).await;
    world.settle().await;
    let after = deployment(&world, OPERATOR).await;
    assert_eq!((&after["spec"]["replicas"], variable(&after, "LOG_LEVEL")), (&json!(3), vec!["WARNING".to_owned()]));
}

/// Scenario 67: the manager runs another image, and both workers roll.
pub async fn new_digest(builder: &Builder) {
    let world = begun(builder).await;
    let before = workers(&world).await.map(|one| one["metadata"]["generation"].as_i64());

    run_pods(&world, "sha256:2").await;
    world.settle().await;

    for worker in workers(&world).await {
        assert_eq!(worker["spec"]["template"]["metadata"]["annotations"][IMAGE_DIGEST], "sha256:2");
    }
    let after = workers(&world).await.map(|one| one["metadata"]["generation"].as_i64());
    assert!(before.iter().zip(&after).all(|(before, after)| before < after), "{before:?} {after:?}");
    assert_rests(world).await;
}

/// A new image rolls the manager first; the workers follow once the new manager runs.
pub async fn new_image(builder: &Builder) {
    let world = begun(builder).await;
    let image = |deployment: &Value| container(deployment)["image"].as_str().unwrap_or_default().to_owned();
    let mut newer = operator();
    newer["spec"]["template"]["spec"]["containers"][0]["image"] = json!("registry.example.com/portolan:2");

    world.cluster.apply(&newer).await;
    world.settle().await;
    let old = "registry.example.com/portolan:1";
    assert_eq!(workers(&world).await.map(|one| image(&one)), [old, old], "the manager that goes leaves them");

    world.crash().await;
    roll(&world, "sha256:2").await;
    let pod = pod_of(&world, "operator").await;
    let world = world.with_roles(Roles::manager(&pod));
    world.restart().await;
    world.settle().await;

    for worker in workers(&world).await {
        assert_eq!(image(&worker), "registry.example.com/portolan:2");
        assert_eq!(worker["spec"]["template"]["metadata"]["annotations"][IMAGE_DIGEST], "sha256:2");
    }
}

/// Scenario 68: a worker that is deleted or edited is restored; workers go with the manager.
pub async fn workers_restored(builder: &Builder) {
    let world = begun(builder).await;
    let [kube, cloudflare] = WorkerKind::ALL.map(|kind| id("Deployment", kind.name()));
    let before = workers(&world).await.map(|one| one["spec"].clone());

    world.cluster.delete(&kube).await;
    let edit = json!({ "spec": { "replicas": 4, "template": { "spec": { "hostNetwork": true, "nodeSelector": { "a": "b" } } } } });
    world.cluster.patch(&cloudflare, &edit).await;
    world.settle().await;

    assert_eq!(workers(&world).await.map(|one| one["spec"].clone()), before);

    world.cluster.delete(&id("Deployment", OPERATOR)).await;
    let gone = async |world: &World| world.cluster.list("Deployment").await.is_empty();
    assert!(world.holds_within(GOES_WITHIN, gone).await, "workers go with their manager");
    world.settle().await;
    assert!(world.cluster.list("Deployment").await.is_empty(), "and stay gone");
}

/// Scenario 69: pods that no node takes.
pub async fn unschedulable(builder: &Builder) {
    let world = begun(builder).await;

    configure(&world, json!({ "nodeSelector": { "no-node": "has-this" } })).await;
    stall(&world).await;
    world.settle().await;

    assert_eq!(said(&world, CONFIG).await, "True/ConfigurationApplied False/DeploymentNotReady");
    let status = status(&world, CONFIG).await;
    assert_eq!((&status["observedGeneration"], &status["deploymentReady"]), (&json!(1), &json!(false)));
    let why = message(&world, "Ready").await;
    for name in [OPERATOR].into_iter().chain(WorkerKind::ALL.map(WorkerKind::name)) {
        assert!(why.contains(&format!("{name}: ")), "{why}");
    }

    configure(&world, json!({ "podAnnotations": { "a": "b" } })).await;
    roll(&world, "sha256:1").await;
    world.settle().await;
    assert_eq!(said(&world, CONFIG).await, "True/ConfigurationApplied True/DeploymentReady");
}

/// Of several configurations the oldest is in force, and the others say so until their time comes.
pub async fn several(builder: &Builder) {
    let world = begun(builder).await;
    configure(&world, json!({ "replicas": 2 })).await;
    // Times of creation are whole seconds; names decide within one.
    world.cluster.apply(&config("the-second", json!({ "replicas": 3 }))).await;
    world.settle().await;

    assert_eq!(said(&world, "the-second").await, "False/MultipleConfigs False/MultipleConfigs");
    assert!(status(&world, "the-second").await["observedGeneration"].is_null(), "it was never applied");
    assert_eq!(deployment(&world, OPERATOR).await["spec"]["replicas"], 2);

    world.cluster.delete(&config_id(CONFIG)).await;
    world.settle().await;
    assert_eq!(deployment(&world, OPERATOR).await["spec"]["replicas"], 3);
    assert!(said(&world, "the-second").await.starts_with("True/ConfigurationApplied "));

    world.cluster.delete(&config_id("the-second")).await;
    world.settle().await;
    assert_eq!(deployment(&world, OPERATOR).await["spec"]["replicas"], 1, "what was deployed, not what the first said");
}

/// A configuration that cannot be applied says why, changes nothing, and keeps no worker from running.
pub async fn refused(builder: &Builder) {
    let world = begun(builder).await;
    let before = deployment(&world, OPERATOR).await["spec"].clone();
    let bad = [
        (json!({ "replicas": 2, "podLabels": { "app.kubernetes.io/component": "mine" } }), "finds its pods by"),
        (json!({ "replicas": 2, "tolerations": [{ "key": "a", "operator": "Sometimes" }] }), "Sometimes"),
        (json!({ "affinity": { "nodeAffinity": { "require": [{ "x": 1 }] } } }), "spec.affinity has fields"),
    ];
    for (spec, why) in bad {
        configure(&world, spec).await;
        world.cluster.delete(&id("Deployment", WorkerKind::Kube.name())).await;
        world.settle().await;

        assert_eq!(said(&world, CONFIG).await, "False/ApplyFailed False/ApplyFailed");
        assert!(message(&world, "Applied").await.contains(why), "{}", message(&world, "Applied").await);
        assert!(status(&world, CONFIG).await["observedGeneration"].is_null());
        assert_eq!(deployment(&world, OPERATOR).await["spec"], before);
        assert_eq!(workers(&world).await.len(), 2);
    }
}

/// Where the operator does not know its Deployment, a configuration says what to set.
pub async fn outside(builder: &Builder) {
    let world = builder.clone().roles(Roles::manager("nobody")).start().await;

    configure(&world, json!({ "replicas": 2 })).await;

    assert_eq!(said(&world, CONFIG).await, "False/ApplyFailed False/ApplyFailed");
    let why = message(&world, "Applied").await;
    assert!(why.contains("there is no Pod cloudflare-zero-trust/nobody") && why.contains("POD_NAME"), "{why}");
    assert!(world.cluster.list("Deployment").await.is_empty(), "nothing is made by guessing");
}

/// One process that does everything shapes its own Deployment, and makes no workers.
pub async fn single(builder: &Builder) {
    let world = begun_as(builder, Roles::single).await;
    assert_eq!(workers_there(&world).await, 0);

    configure(&world, json!({ "environmentVariables": { "logLevel": "DEBUG" } })).await;
    roll(&world, "sha256:1").await;
    world.settle().await;

    assert_eq!(variable(&deployment(&world, OPERATOR).await, "LOG_LEVEL"), ["DEBUG"]);
    assert_eq!(said(&world, CONFIG).await, "True/ConfigurationApplied True/DeploymentReady");
    assert_eq!(workers_there(&world).await, 0);
}

async fn workers_there(world: &World) -> usize {
    world.cluster.list("Deployment").await.len() - 1
}

/// Kills the manager before and after each of its steps while a configuration comes and while it goes; every run ends as
/// the undisturbed one. Answers how often it was killed.
pub async fn crashes(builder: &Builder) -> usize {
    let spec = json!({ "replicas": 2, "resources": { "limits": { "cpu": "1" } }, "environmentVariables": { "logLevel": "DEBUG" } });
    let comes = async |world: &World| drop(world.cluster.apply(&config(CONFIG, spec.clone())).await);
    let there = async |world: &World| configure(world, spec.clone()).await;
    let goes = async |world: &World| world.cluster.delete(&config_id(CONFIG)).await;
    let nothing = async |_: &World| {};
    crashed_everywhere(builder, nothing, comes).await + crashed_everywhere(builder, there, goes).await
}

async fn crashed_everywhere(builder: &Builder, prepare: impl AsyncFn(&World), act: impl AsyncFn(&World)) -> usize {
    let world = begun(builder).await;
    prepare(&world).await;
    world.forget();
    act(&world).await;
    world.settle().await;
    let (steps, end) = (world.failpoints.steps(), end_of(&world).await);
    world.crash().await;
    let places = (1..=steps.len()).flat_map(|step| [StopSide::Before, StopSide::After].map(|side| Stop { step, side }));
    let mut crashes = 0;
    for stop in places {
        let place = format!("crashed {:?} step {} ({})", stop.side, stop.step, steps[stop.step - 1].text);
        let world = begun(builder).await;
        prepare(&world).await;
        world.failpoints.stop_at(stop);
        act(&world).await;
        let halted = tokio::time::timeout(GOES_WITHIN, world.failpoints.halted()).await;
        assert!(halted.is_ok(), "{place}: the manager comes there; it did {:#?}", world.failpoints.steps());
        world.restart().await;
        world.settle().await;
        assert_eq!(end_of(&world).await, end, "{place}");
        world.crash().await;
        crashes += 1;
    }
    crashes
}

/// How the Deployments and the configuration stand in the end.
async fn end_of(world: &World) -> Value {
    let own = deployment(world, OPERATOR).await;
    let conditions = match world.cluster.get(&config_id(CONFIG)).await {
        Some(_) => said(world, CONFIG).await,
        None => "gone".to_owned(),
    };
    let workers = workers(world).await.map(|one| one["spec"].clone());
    json!({ "own": own["spec"], "owners": owners(&own), "workers": workers, "conditions": conditions })
}
