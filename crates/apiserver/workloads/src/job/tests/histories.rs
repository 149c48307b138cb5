//! Any history: every pod is counted once, and never do too many run.

use std::collections::BTreeSet;
use std::time::Duration;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::common::object::{is_deleting, uid};
use crate::common::pod::is_finished;

#[test]
fn a_pod_that_fails_after_it_was_let_go_is_not_counted() {
    let mut world = world(json!({"completions": 1}));
    let pod = running(&world).remove(0);
    world.patch("jobs.batch", &in_shop("sum"), &json!({"spec": {"suspend": true}}));
    // The finalizer is taken; the deletion after it does not happen.
    carry_out_some(&mut world, 1);

    end(&mut world, &pod, 1);

    assert_eq!(status(&world)["failed"], Value::Null);
}

#[derive(Clone, Debug)]
enum Happening {
    Succeed(usize),
    Fail(usize),
    Delete(usize),
    Vanish(usize),
    Ready(usize),
    Parallelism(i64),
    Suspend(bool),
    Pass(u64),
}

fn happening() -> impl Strategy<Value = Happening> {
    prop_oneof![
        3 => (0..4_usize).prop_map(Happening::Succeed),
        2 => (0..4_usize).prop_map(Happening::Fail),
        1 => (0..4_usize).prop_map(Happening::Delete),
        1 => (0..4_usize).prop_map(Happening::Vanish),
        1 => (0..4_usize).prop_map(Happening::Ready),
        1 => (0..4_i64).prop_map(Happening::Parallelism),
        1 => any::<bool>().prop_map(Happening::Suspend),
        3 => (1..700_u64).prop_map(Happening::Pass),
    ]
}

fn happens(world: &mut TestObjects, happening: &Happening) {
    let at = |index: usize| running(world).get(index).cloned().map(|pod| in_shop(&pod));
    let ended = |index: usize| {
        world.list("pods", "shop").iter().filter(|pod| is_finished(pod)).nth(index).map(|pod| in_shop(name(pod)))
    };
    let sum = in_shop("sum");
    match happening {
        Happening::Succeed(index) => at(*index).map_or((), |pod| exit(world, &pod.name, 0)),
        Happening::Fail(index) => at(*index).map_or((), |pod| exit(world, &pod.name, 1)),
        Happening::Delete(index) => at(*index).map_or((), |pod| world.delete("pods", &pod)),
        Happening::Vanish(index) => ended(*index).map_or((), |pod| world.delete("pods", &pod)),
        Happening::Ready(index) => {
            let ready = json!({"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}});
            if let Some(pod) = at(*index) {
                world.patch("pods", &pod, &ready);
            }
        }
        Happening::Parallelism(count) => world.patch("jobs.batch", &sum, &json!({"spec": {"parallelism": count}})),
        Happening::Suspend(suspend) => world.patch("jobs.batch", &sum, &json!({"spec": {"suspend": suspend}})),
        Happening::Pass(seconds) => world.now += Duration::from_secs(*seconds),
    }
}

/// The uids of all pods that ever ended as pods of the Job, by how. One that was let go before it ended is not counted,
/// neither here nor by Kubernetes.
#[derive(Default)]
struct Ends {
    succeeded: BTreeSet<String>,
    failed: BTreeSet<String>,
    deleted: BTreeSet<String>,
}

impl Ends {
    fn see(&mut self, world: &TestObjects) {
        for pod in world.list("pods", "shop").iter().filter(|pod| is_tracked(pod)) {
            let ends = match pod["status"]["phase"].as_str() {
                Some("Succeeded") => &mut self.succeeded,
                Some("Failed") => &mut self.failed,
                _ if is_deleting(pod) => &mut self.deleted,
                _ => continue,
            };
            ends.insert(uid(pod).to_owned());
        }
    }
}

/// Steps one by one, so that what happens next finds things half done: a crash between any two steps.
fn carry_out_some(world: &mut TestObjects, most: usize) {
    if world.get("jobs.batch", "shop", "sum").is_none() {
        return;
    }
    let mut plan = Jobs.plan(world, &live(world));
    plan.steps.truncate(most);
    world.carry_out(plan);
}

fn holds(world: &TestObjects, ends: &Ends) -> Result<(), TestCaseError> {
    let job = live(world);
    let count = |field: &str| usize::try_from(job["status"][field].as_i64().unwrap_or(0)).unwrap();
    prop_assert!(count("succeeded") <= ends.succeeded.len(), "{} of {:?}", count("succeeded"), ends.succeeded);
    let parallelism = usize::try_from(job["spec"]["parallelism"].as_i64().unwrap()).unwrap();
    let plan = Jobs.plan(world, &job);
    let made = plan.steps.iter().filter(|step| matches!(step, Step::Create { .. })).count();
    prop_assert!(made == 0 || running(world).len() + made <= parallelism);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_history_counts_every_pod_once_and_never_runs_too_many(
        history in prop::collection::vec((happening(), 0..12_usize), 0..40),
        indexed in any::<bool>(),
    ) {
        let mode = if indexed { "Indexed" } else { "NonIndexed" };
        let mut world = world(json!({"completions": 4, "parallelism": 2, "completionMode": mode}));
        let mut ends = Ends::default();
        for (one, most) in &history {
            happens(&mut world, one);
            ends.see(&world);
            holds(&world, &ends)?;
            carry_out_some(&mut world, *most);
            ends.see(&world);
        }

        world.patch("jobs.batch", &in_shop("sum"), &json!({"spec": {"parallelism": 2, "suspend": false}}));
        for _ in 0..100 {
            world.settle(&Jobs);
            holds(&world, &ends)?;
            if conditions(&world).iter().any(|one| one.starts_with("Complete=True") || one.starts_with("Failed=True")) {
                break;
            }
            let Some(pod) = running(&world).pop() else {
                world.now += Duration::from_secs(600);
                continue;
            };
            exit(&mut world, &pod, 0);
            ends.see(&world);
        }

        let status = status(&world);
        let count = |field: &str| usize::try_from(status[field].as_i64().unwrap_or(0)).unwrap();
        prop_assert!(conditions(&world).iter().any(|one| one.starts_with("Complete=True") || one.starts_with("Failed=True")));
        if !indexed {
            prop_assert_eq!(count("succeeded"), ends.succeeded.len());
        }
        prop_assert!(count("failed") >= ends.failed.len());
        if status["completionTime"].is_string() {
            prop_assert!(count("failed") <= ends.failed.union(&ends.deleted).count());
        }
        prop_assert_eq!(&status["uncountedTerminatedPods"], &json!({}));
        prop_assert!(world.list("pods", "shop").iter().all(|pod| !is_tracked(pod)));
    }
}
