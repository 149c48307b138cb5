//! Claims of places: made, owned by the policy, and refused.

use serde_json::{Value, json};

use super::*;

fn claimed(replicas: i64) -> Value {
    let mut set = set(replicas);
    set["spec"]["volumeClaimTemplates"] = json!([{
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "data"},
        "spec": {"accessModes": ["ReadWriteOnce"]},
        "status": {"phase": "Pending"},
    }]);
    set
}

#[test]
fn every_place_has_claims_of_its_own() {
    let mut world = world(claimed(2));
    grow(&mut world);

    let claims: Vec<String> =
        world.list("persistentvolumeclaims", "shop").iter().map(|claim| name(claim).to_owned()).collect();
    assert_eq!(claims, ["data-web-0", "data-web-1"]);
    let claim = world.get("persistentvolumeclaims", "shop", "data-web-1").unwrap();
    assert_eq!(claim["metadata"]["labels"], json!({"app": "web"}));
    assert!(claim["metadata"]["ownerReferences"].is_null());
    let pod = world.get("pods", "shop", "web-1").unwrap();
    assert_eq!(pod["spec"]["volumes"], json!([{"name": "data", "persistentVolumeClaim": {"claimName": "data-web-1"}}]));
    assert_eq!(messages(&world)[0], "Create Claim data-web-0 Pod web-0 in StatefulSet web success");
}

#[test]
fn a_pod_waits_while_its_claim_is_being_deleted() {
    let mut world = TestObjects::default();
    world.put("statefulsets.apps", claimed(1));
    let leaving = json!({"metadata": {
        "name": "data-web-0", "namespace": "shop", "deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["x/y"],
    }});
    world.put("persistentvolumeclaims", leaving);

    let web = world.get("statefulsets.apps", "shop", "web").unwrap();
    world.carry_out(StatefulSets.plan(&world, &web));

    assert!(pods(&world).is_empty());
    let expected = "Create Pod web-0 in StatefulSet web failed error: pvc data-web-0 is being deleted";
    assert_eq!(messages(&world), [expected]);
}

#[test]
fn claims_go_with_the_set_or_with_the_place_where_the_policy_says_so() {
    let mut going = claimed(2);
    going["spec"]["persistentVolumeClaimRetentionPolicy"] = json!({"whenDeleted": "Delete", "whenScaled": "Delete"});
    let mut world = world(going);
    grow(&mut world);
    let owners = |world: &TestObjects, claim: &str| -> Vec<String> {
        let claim = world.get("persistentvolumeclaims", "shop", claim).unwrap();
        let owners = claim["metadata"]["ownerReferences"].as_array().cloned().unwrap_or_default();
        owners
            .iter()
            .map(|owner| format!("{}/{}", owner["kind"].as_str().unwrap(), owner["name"].as_str().unwrap()))
            .collect()
    };
    assert_eq!(owners(&world, "data-web-1"), ["StatefulSet/web"]);
    world.patch("pods", &in_shop("web-1"), &json!({"metadata": {"finalizers": ["test/held"]}}));

    change(&mut world, json!({"spec": {"replicas": 1}}));

    assert_eq!(owners(&world, "data-web-0"), ["StatefulSet/web"]);
    assert_eq!(owners(&world, "data-web-1"), ["Pod/web-1"]);
}

#[test]
fn changes_concern_the_set_that_owns_or_selects() {
    let world = world(claimed(1));
    let pod = world.get("pods", "shop", "web-0").unwrap();
    let stray = json!({"metadata": {"name": "x", "namespace": "shop", "labels": {"app": "web"}}});
    let foreign = json!({"metadata": {"name": "x", "namespace": "shop", "labels": {"app": "other"}}});
    let claim = json!({"metadata": {"name": "data-web-7", "namespace": "shop"}});

    assert_eq!(StatefulSets.concerned(&world, "pods", &pod), [in_shop("web")]);
    assert_eq!(StatefulSets.concerned(&world, "pods", &stray), [in_shop("web")]);
    assert_eq!(StatefulSets.concerned(&world, "pods", &foreign), []);
    assert_eq!(StatefulSets.concerned(&world, "persistentvolumeclaims", &claim), [in_shop("web")]);
}

#[test]
fn a_claim_whose_name_is_taken_is_told_of_its_pod_only() {
    let mut world = TestObjects::default();
    world.put("statefulsets.apps", claimed(1));

    let of_pod = "FailedCreate: Create Pod web-0 in StatefulSet web failed error: failed to create PVC data-web-0: no";
    assert_eq!(refused(&world, "persistentvolumeclaims", "AlreadyExists"), [of_pod]);
    let of_claim = "FailedCreate: Create Claim data-web-0 for Pod web-0 in StatefulSet web failed error: no";
    assert_eq!(refused(&world, "persistentvolumeclaims", "Forbidden"), [of_claim, of_pod]);
}

#[test]
fn a_claim_that_was_left_is_owned_once_when_its_pod_is_made() {
    let mut parallel = claimed(1);
    parallel["spec"]["podManagementPolicy"] = json!("Parallel");
    parallel["spec"]["persistentVolumeClaimRetentionPolicy"] = json!({"whenDeleted": "Delete", "whenScaled": "Retain"});
    let mut world = TestObjects::default();
    world.put("statefulsets.apps", parallel);
    world.put("persistentvolumeclaims", json!({"metadata": {"name": "data-web-0", "namespace": "shop"}}));

    world.settle(&StatefulSets);

    let claim = world.get("persistentvolumeclaims", "shop", "data-web-0").unwrap();
    assert_eq!(claim["metadata"]["ownerReferences"][0]["name"], "web");
    assert_eq!(messages(&world), ["Create Pod web-0 in StatefulSet web successful"]);
}
