//! Jobs whose pods have indexes.

use serde_json::{Value, json};

use super::*;

#[test]
fn every_index_has_a_pod_that_knows_it() {
    let world = world(json!({"completions": 3, "parallelism": 2, "completionMode": "Indexed"}));

    let pod = world.get("pods", "shop", &of_index(&world, 1)).unwrap();

    assert_eq!(running(&world).len(), 2);
    assert_eq!(pod["metadata"]["labels"]["batch.kubernetes.io/job-completion-index"], "1");
    assert_eq!(pod["metadata"]["generateName"], "sum-1-");
    assert_eq!(pod["spec"]["hostname"], "sum-1");
    let field = "metadata.labels['batch.kubernetes.io/job-completion-index']";
    let variable = json!({"name": "JOB_COMPLETION_INDEX", "valueFrom": {"fieldRef": {"fieldPath": field}}});
    assert_eq!(pod["spec"]["containers"][0]["env"], json!([variable]));
    assert!(pod["spec"].get("initContainers").is_none());
}

#[test]
fn completed_indexes_are_written_as_ranges() {
    let mut world = world(json!({"completions": 6, "parallelism": 6, "completionMode": "Indexed"}));

    for index in [0, 1, 2, 4] {
        let pod = of_index(&world, index);
        exit(&mut world, &pod, 0);
    }
    world.settle(&Jobs);

    assert_eq!(status(&world)["completedIndexes"], "0-2,4");
    assert_eq!((&status(&world)["succeeded"], &status(&world)["active"]), (&json!(4), &json!(2)));
}

#[test]
fn an_index_that_fails_too_often_fails_alone() {
    let spec = json!({
        "completions": 2, "parallelism": 2, "completionMode": "Indexed", "backoffLimitPerIndex": 1,
        "backoffLimit": i32::MAX,
    });
    let mut world = world(spec);
    let (good, bad) = (of_index(&world, 0), of_index(&world, 1));

    end(&mut world, &bad, 1);
    assert!(is_tracked(&world.get("pods", "shop", &bad).unwrap()), "it stays until its replacement is there");
    pass(&mut world, 10);
    let again = of_index(&world, 1);
    let annotations = world.get("pods", "shop", &again).unwrap()["metadata"]["annotations"].clone();
    assert_eq!(annotations["batch.kubernetes.io/job-index-failure-count"], "1");
    end(&mut world, &again, 1);
    assert_eq!(status(&world)["failedIndexes"], "1");
    assert!(conditions(&world).is_empty());
    end(&mut world, &good, 0);

    assert_eq!(conditions(&world)[1], "Failed=True FailedIndexes: Job has failed indexes");
    assert_eq!((&status(&world)["failed"], &status(&world)["completedIndexes"]), (&json!(2), &json!("0")));
}

#[test]
fn a_success_policy_ends_a_job_before_all_indexes_have() {
    let rules = json!([{"succeededIndexes": "1-2", "succeededCount": 1}]);
    let spec = json!({
        "completions": 3, "parallelism": 3, "completionMode": "Indexed", "successPolicy": {"rules": rules},
    });
    let mut world = world(spec);

    let pod = of_index(&world, 0);
    end(&mut world, &pod, 0);
    assert!(conditions(&world).is_empty());
    let pod = of_index(&world, 2);
    end(&mut world, &pod, 0);

    assert!(running(&world).is_empty());
    assert_eq!(conditions(&world)[1], "Complete=True SuccessPolicy: Matched rules at index 0");
    assert_eq!((&status(&world)["succeeded"], &status(&world)["failed"]), (&json!(2), &Value::Null));
}
