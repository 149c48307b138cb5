//! Any history: the order is kept, and the wanted places are filled in the end.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

#[derive(Clone, Debug)]
enum Happening {
    Scale(i64),
    Image(u8),
    Partition(i64),
    Ready(usize),
    Sick(usize),
    Failed(usize),
    Lost(usize),
    Leaving(usize),
}

fn happening() -> impl Strategy<Value = Happening> {
    prop_oneof![
        (0..5_i64).prop_map(Happening::Scale),
        (0..3_u8).prop_map(Happening::Image),
        (0..4_i64).prop_map(Happening::Partition),
        (0..5_usize).prop_map(Happening::Ready),
        (0..5_usize).prop_map(Happening::Ready),
        (0..5_usize).prop_map(Happening::Sick),
        (0..5_usize).prop_map(Happening::Failed),
        (0..5_usize).prop_map(Happening::Lost),
        (0..5_usize).prop_map(Happening::Leaving),
    ]
}

fn happens(world: &mut TestObjects, happening: &Happening) {
    let web = in_shop("web");
    let at = |index: &usize| pods(world).get(*index).map(|pod| in_shop(pod));
    match happening {
        Happening::Scale(replicas) => world.patch("statefulsets.apps", &web, &json!({"spec": {"replicas": replicas}})),
        Happening::Image(tag) => world.patch("statefulsets.apps", &web, &image(&format!("nginx:{tag}"))),
        Happening::Partition(partition) => {
            let patch = json!({"spec": {"updateStrategy": {"rollingUpdate": {"partition": partition}}}});
            world.patch("statefulsets.apps", &web, &patch);
        }
        Happening::Ready(index) => {
            if let Some(pod) = at(index) {
                ready(world, &pod.name);
            }
        }
        Happening::Sick(index) => {
            if let Some(pod) = at(index) {
                world.patch("pods", &pod, &json!({"status": {"conditions": []}}));
            }
        }
        Happening::Failed(index) => {
            if let Some(pod) = at(index) {
                world.patch("pods", &pod, &json!({"status": {"phase": "Failed", "conditions": []}}));
            }
        }
        Happening::Lost(index) => {
            if let Some(pod) = at(index) {
                world.remove("pods", &pod);
            }
        }
        Happening::Leaving(index) => {
            if let Some(pod) = at(index) {
                world.patch("pods", &pod, &json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}));
            }
        }
    }
}

/// One plan never fills two places of an ordered set, nor fills one while an earlier one is empty or not ready.
fn respects_order(world: &TestObjects) -> Result<(), TestCaseError> {
    let web = world.get("statefulsets.apps", "shop", "web").unwrap();
    let plan = StatefulSets.plan(world, &web);
    let made: Vec<&Value> = plan
        .steps
        .iter()
        .filter_map(|step| match step {
            Step::Create { collection: "pods", object } => Some(object),
            _ => None,
        })
        .collect();
    prop_assert!(made.len() <= 1, "{made:?}");
    for pod in made {
        for place in 0..ordinal(pod).unwrap() {
            let before = world.get("pods", "shop", &format!("web-{place}"));
            prop_assert!(before.is_some_and(|pod| crate::common::pod::is_ready(&pod)), "{place} before {}", name(pod));
        }
        prop_assert!(world.get("pods", "shop", name(pod)).is_none());
    }
    let deleted =
        plan.steps.iter().filter(|step| matches!(step, Step::Delete { target, .. } if target.collection == "pods"));
    prop_assert!(deleted.count() <= 1);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_history_keeps_the_order_and_comes_to_the_wanted_places(
        history in prop::collection::vec(happening(), 0..30),
    ) {
        let mut world = world(set(3));
        for one in &history {
            happens(&mut world, one);
            respects_order(&world)?;
            // One plan, not all: what happens next finds things half done.
            let web = world.get("statefulsets.apps", "shop", "web").unwrap();
            world.carry_out(StatefulSets.plan(&world, &web));
        }

        for pod in pods(&world) {
            let leaving = !world.get("pods", "shop", &pod).unwrap()["metadata"]["deletionTimestamp"].is_null();
            if leaving {
                world.remove("pods", &in_shop(&pod));
            } else {
                ready(&mut world, &pod);
            }
        }
        world.patch("statefulsets.apps", &in_shop("web"), &json!({"spec": {"updateStrategy": {"rollingUpdate": {"partition": 0}}}}));
        grow(&mut world);

        let wanted = world.get("statefulsets.apps", "shop", "web").unwrap()["spec"]["replicas"].as_i64().unwrap();
        let names: Vec<String> = (0..wanted).map(|place| format!("web-{place}")).collect();
        prop_assert_eq!(pods(&world), names);
        let status = status(&world);
        prop_assert_eq!(&status["currentRevision"], &status["updateRevision"]);
        prop_assert_eq!(status["updatedReplicas"].as_i64().unwrap_or(0), wanted);
    }
}
