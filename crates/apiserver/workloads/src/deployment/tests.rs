use std::sync::Arc;

use jiff::SignedDuration;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::common::condition;
use crate::common::object::label;
use crate::common::pod::is_ready;
use crate::replicaset::ReplicaSets;
use crate::testing::{TestObjects, refusal};

fn deployment(replicas: i64, surge: Value, unavailable: Value) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"namespace": "n", "name": "web", "uid": "web-uid"},
        "spec": {
            "replicas": replicas, "progressDeadlineSeconds": 600, "revisionHistoryLimit": 10,
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": surge, "maxUnavailable": unavailable}},
            "selector": {"matchLabels": {"app": "web"}},
            "template": {"metadata": {"labels": {"app": "web", "v": "1"}}, "spec": {"containers": [{"name": "c"}]}},
        },
    })
}

/// A world with one deployment in it.
struct Rolling {
    world: TestObjects,
    name: ObjectName,
}

impl Rolling {
    fn of(deployment: Value) -> Self {
        let mut world = TestObjects::default();
        let name = world.put(DEPLOYMENTS, deployment);
        let mut rolling = Self { world, name };
        rolling.settle();
        rolling
    }

    fn settle(&mut self) {
        self.world.settle_all(&[&Deployments, &ReplicaSets]);
    }

    fn edit(&mut self, patch: &Value) {
        self.world.patch(DEPLOYMENTS, &self.name, patch);
        self.settle();
    }

    fn template(&mut self, version: &str) {
        self.edit(&json!({"spec": {"template": {"metadata": {"labels": {"v": version}}}}}));
    }

    /// Makes so many pods ready that are not.
    fn make_ready(&mut self, version: &str, most: usize) {
        let is_new = |pod: &&Arc<Value>| text_of(pod, "v") == version && !is_ready(pod);
        let pods: Vec<ObjectName> =
            self.world.list(PODS, "n").iter().filter(is_new).take(most).map(|p| name_of(p)).collect();
        for pod in pods {
            self.world.make_ready(&pod);
        }
        self.settle();
    }

    fn pods(&self, version: &str) -> usize {
        self.world.list(PODS, "n").iter().filter(|pod| text_of(pod, "v") == version).count()
    }

    fn ready_pods(&self) -> usize {
        self.world.list(PODS, "n").iter().filter(|pod| is_ready(pod)).count()
    }

    fn object(&self) -> Arc<Value> {
        self.world.get(DEPLOYMENTS, "n", "web").unwrap()
    }

    fn reason(&self, kind: &str) -> String {
        let object = self.object();
        let found = condition::find(&object["status"], kind);
        found.and_then(|found| found["reason"].as_str()).unwrap_or_default().to_owned()
    }

    fn told(&self) -> Vec<String> {
        let mut told: Vec<String> = self.world.events.iter().map(|event| event.message.clone()).collect();
        told.retain(|message| message.starts_with("Scaled"));
        told
    }

    fn pass(&mut self, seconds: i64) {
        self.world.now = self.world.now.checked_add(SignedDuration::from_secs(seconds)).unwrap();
    }
}

fn text_of<'a>(object: &'a Value, key: &str) -> &'a str {
    label(object, key).unwrap_or_default()
}

#[test]
fn a_new_deployment_gets_a_set_with_revision_and_hash() {
    let rolling = Rolling::of(deployment(2, json!("25%"), json!("25%")));

    let sets = rolling.world.list(REPLICA_SETS, "n");
    let hash = text_of(&sets[0], "pod-template-hash");
    assert_eq!(name(&sets[0]), format!("web-{hash}"));
    assert_eq!(sets[0]["spec"]["selector"]["matchLabels"]["pod-template-hash"], hash);
    assert_eq!(sets[0]["metadata"]["annotations"]["deployment.kubernetes.io/max-replicas"], "3");
    assert_eq!(rolling.object()["metadata"]["annotations"]["deployment.kubernetes.io/revision"], "1");
    assert_eq!(rolling.told(), [format!("Scaled up replica set web-{hash} from 0 to 2")]);
    assert_eq!(rolling.reason("Progressing"), "ReplicaSetUpdated");
    assert_eq!(rolling.reason("Available"), "MinimumReplicasUnavailable");
    assert_eq!(rolling.object()["status"]["unavailableReplicas"], 2);
}

#[test]
fn a_rollout_goes_pod_by_pod_and_ends_complete() {
    let mut rolling = Rolling::of(deployment(3, json!(1), json!(0)));
    rolling.make_ready("1", 3);
    assert_eq!(rolling.reason("Progressing"), "NewReplicaSetAvailable");

    rolling.template("2");
    assert_eq!((rolling.pods("1"), rolling.pods("2")), (3, 1));
    rolling.make_ready("2", 1);
    assert_eq!((rolling.pods("1"), rolling.pods("2")), (2, 2));
    rolling.make_ready("2", 1);
    assert_eq!((rolling.pods("1"), rolling.pods("2")), (1, 3));
    rolling.make_ready("2", 1);

    assert_eq!((rolling.pods("1"), rolling.pods("2")), (0, 3));
    assert_eq!(rolling.reason("Progressing"), "NewReplicaSetAvailable");
    assert_eq!(rolling.object()["metadata"]["annotations"]["deployment.kubernetes.io/revision"], "2");
}

#[test]
fn going_back_gives_an_old_set_a_new_revision_and_a_history() {
    let mut rolling = Rolling::of(deployment(1, json!(1), json!(0)));
    rolling.make_ready("1", 1);
    rolling.template("2");
    rolling.make_ready("2", 1);

    rolling.template("1");
    rolling.make_ready("1", 1);

    let sets = rolling.world.list(REPLICA_SETS, "n");
    assert_eq!(sets.len(), 2);
    let back = sets.iter().find(|set| text_of(set, "v") == "1").unwrap();
    assert_eq!(back["metadata"]["annotations"]["deployment.kubernetes.io/revision"], "3");
    assert_eq!(back["metadata"]["annotations"]["deployment.kubernetes.io/revision-history"], "1");
}

#[test]
fn recreate_makes_nothing_new_while_an_old_pod_is_there() {
    let mut recreate = deployment(2, Value::Null, Value::Null);
    recreate["spec"]["strategy"] = json!({"type": "Recreate"});
    let mut rolling = Rolling::of(recreate);
    rolling.make_ready("1", 2);
    let slow = name_of(&rolling.world.list(PODS, "n")[0]);
    // A pod that takes its time to stop.
    rolling.world.patch(PODS, &slow, &json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}));
    rolling.template("2");
    assert_eq!(rolling.pods("2"), 0);

    rolling.world.remove(PODS, &slow);
    rolling.settle();

    assert_eq!((rolling.pods("1"), rolling.pods("2")), (0, 2));
}

#[test]
fn a_new_size_in_the_middle_is_shared_out() {
    let mut rolling = Rolling::of(deployment(10, json!(3), json!(2)));
    rolling.make_ready("1", 10);
    rolling.template("2");
    assert_eq!((rolling.pods("1"), rolling.pods("2")), (8, 5));

    rolling.edit(&json!({"spec": {"replicas": 15}}));

    assert_eq!((rolling.pods("1"), rolling.pods("2")), (11, 7));
}

#[test]
fn a_paused_deployment_takes_a_size_but_no_template() {
    let mut rolling = Rolling::of(deployment(1, json!(1), json!(0)));
    rolling.edit(&json!({"spec": {"paused": true, "replicas": 2, "template": {"metadata": {"labels": {"v": "2"}}}}}));

    assert_eq!((rolling.pods("1"), rolling.pods("2")), (2, 0));
    assert_eq!(rolling.reason("Progressing"), "DeploymentPaused");

    rolling.edit(&json!({"spec": {"paused": false}}));

    assert_eq!(rolling.pods("2"), 1);
}

#[test]
fn a_rollout_without_progress_exceeds_its_deadline() {
    let mut rolling = Rolling::of(deployment(1, json!(1), json!(0)));
    let wait = Deployments.plan(&rolling.world, &rolling.object()).again_after.unwrap();

    rolling.pass(i64::try_from(wait.as_secs()).unwrap());
    rolling.settle();

    assert_eq!(wait.as_secs(), 601);
    assert_eq!(rolling.reason("Progressing"), "ProgressDeadlineExceeded");
    assert_eq!(Deployments.plan(&rolling.world, &rolling.object()).again_after, None);
}

#[test]
fn seconds_of_readiness_that_are_taken_back_leave_the_set() {
    let mut slow = deployment(1, json!(1), json!(0));
    slow["spec"]["minReadySeconds"] = json!(5);
    let mut rolling = Rolling::of(slow);
    assert_eq!(rolling.world.list(REPLICA_SETS, "n")[0]["spec"]["minReadySeconds"], 5);

    rolling.edit(&json!({"spec": {"minReadySeconds": 0}}));

    assert_eq!(rolling.world.list(REPLICA_SETS, "n")[0]["spec"].get("minReadySeconds"), None);
}

#[test]
fn sets_beyond_the_history_go() {
    let mut short = deployment(1, json!(1), json!(0));
    short["spec"]["revisionHistoryLimit"] = json!(1);
    let mut rolling = Rolling::of(short);
    for version in ["1", "2", "3", "4"] {
        rolling.template(version);
        rolling.make_ready(version, 1);
        rolling.pass(1);
    }

    let versions: Vec<String> =
        rolling.world.list(REPLICA_SETS, "n").iter().map(|set| text_of(set, "v").to_owned()).collect();
    assert_eq!(versions.len(), 2);
    assert!(versions.contains(&"3".to_owned()) && versions.contains(&"4".to_owned()), "{versions:?}");
}

#[test]
fn a_name_that_another_set_has_is_evaded() {
    let wanted = deployment(1, json!(1), json!(0));
    let taken = format!("web-{}", template::hash(&wanted["spec"]["template"], None));
    let mut world = TestObjects::default();
    let stranger = json!({"metadata": {"namespace": "n", "name": taken}, "spec": {"replicas": 0,
        "selector": {"matchLabels": {"other": "x"}}, "template": {"metadata": {"labels": {"other": "x"}}}}});
    world.put(REPLICA_SETS, stranger);
    world.put(DEPLOYMENTS, wanted);

    world.settle(&Deployments);

    assert_eq!(world.list(REPLICA_SETS, "n").len(), 2);
    assert_eq!(world.get(DEPLOYMENTS, "n", "web").unwrap()["status"]["collisionCount"], 1);
}

#[test]
fn a_refused_set_is_told() {
    let mut world = TestObjects::default();
    world.put(DEPLOYMENTS, deployment(1, json!(1), json!(0)));
    let object = world.get(DEPLOYMENTS, "n", "web").unwrap();
    let step = Deployments.plan(&world, &object).steps.remove(0);

    let told = Deployments.failed(&world, &object, &step, &refusal("Forbidden"));
    world.carry_out(told);

    assert_eq!(world.events[0].reason, "ReplicaSetCreateError");
    assert!(world.events[0].message.starts_with("Failed to create new replica set \"web-"));
    let status = &world.get(DEPLOYMENTS, "n", "web").unwrap()["status"];
    assert_eq!(condition::find(status, "Progressing").unwrap()["status"], "False");
}

#[test]
fn a_set_that_stands_alone_is_adopted_with_its_pods() {
    let mut world = TestObjects::default();
    let spec = &deployment(2, json!(1), json!(0))["spec"];
    let lone = json!({"metadata": {"namespace": "n", "name": "lone", "labels": {"app": "web"}},
        "spec": {"replicas": 1, "selector": spec["selector"], "template": spec["template"]}});
    world.put(REPLICA_SETS, lone);
    world.put(DEPLOYMENTS, deployment(2, json!(1), json!(0)));

    world.settle_all(&[&Deployments, &ReplicaSets]);

    let sets = world.list(REPLICA_SETS, "n");
    assert_eq!((sets.len(), &sets[0]["spec"]["replicas"]), (1, &json!(2)));
    assert_eq!(world.list(PODS, "n").len(), 2);
}

#[derive(Clone, Debug)]
enum Act {
    Template(u8),
    Ready(usize),
    Scale(i64),
    Lose(usize),
}

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let act = prop_oneof![
        (1..4u8).prop_map(Act::Template),
        (1..4usize).prop_map(Act::Ready),
        (1..4usize).prop_map(Act::Ready),
        (1..9i64).prop_map(Act::Scale),
        (0..9usize).prop_map(Act::Lose),
    ];
    prop::collection::vec(act, 1..25)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever templates come while whichever pods get ready: never more pods than the surge allows, and never are
    /// ready pods taken below what must stay available.
    #[test]
    fn a_rollout_stays_between_its_fences(surge in 0..3i64, unavailable in 0..3i64, acts in acts()) {
        let mut rolling = Rolling::of(deployment(5, json!(surge), json!(unavailable)));
        let mut version = "1".to_owned();
        rolling.make_ready("1", 9);
        for act in acts {
            let before = rolling.ready_pods();
            let mut may_lose = false;
            match act {
                Act::Template(next) => { version = next.to_string(); rolling.template(&version.clone()); }
                Act::Ready(most) => rolling.make_ready(&version.clone(), most),
                Act::Scale(replicas) => { may_lose = true; rolling.edit(&json!({"spec": {"replicas": replicas}})); }
                Act::Lose(index) => {
                    may_lose = true;
                    if let Some(pod) = rolling.world.list(PODS, "n").get(index) {
                        let pod = name_of(pod);
                        rolling.world.remove(PODS, &pod);
                        rolling.settle();
                    }
                }
            }
            let object = rolling.object();
            let most = fence::most_replicas(&object);
            prop_assert!(i64::try_from(rolling.world.list(PODS, "n").len()).unwrap() <= most.max(1));
            let (least, ready) = (fence::min_available(&object), i64::try_from(rolling.ready_pods()).unwrap());
            let kept = may_lose || ready >= least || ready >= i64::try_from(before).unwrap();
            prop_assert!(kept, "{} ready of {} after {}, {} must stay", ready, number(&object, "/spec/replicas"), before, least);
        }
        // Everything gets ready in the end, and the rollout with it.
        for _ in 0..20 {
            rolling.make_ready(&version.clone(), 9);
        }
        let object = rolling.object();
        prop_assert!(progress::is_complete(&object, &object["status"]), "{}", object["status"]);
    }
}
