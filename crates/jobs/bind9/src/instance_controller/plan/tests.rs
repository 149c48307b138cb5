use portolan_bind9_model::keys::FreshSecrets;
use portolan_bind9_model::kinds::keys::RndcAlgorithm;
use portolan_bind9_model::settings::settings;
use portolan_core::ObjectKey;
use serde_json::{from_value, json};

use super::*;

fn instance(more: Value) -> Bind9Instance {
    let mut spec = json!({"clusterRef": "", "role": "primary"});
    spec.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    from_value(json!({"metadata": {"namespace": "dns", "name": "a", "uid": "u1", "generation": 1}, "spec": spec}))
        .unwrap()
}

fn inputs(instance: &Bind9Instance) -> InstanceInputs {
    let secret = || "QUJD".to_owned();
    InstanceInputs {
        settings: settings(&instance.spec, None, None),
        keys: Some(KeyPolicy { algorithm: RndcAlgorithm::default(), rotate_after_hours: Some(1), given: None }),
        fresh: Some(FreshSecrets { control: secret(), update: secret(), transfer: secret() }),
        now: Some(Timestamp::UNIX_EPOCH),
        ..InstanceInputs::default()
    }
}

/// What a pass finds after the plan of the one before was carried out.
fn after(mut inputs: InstanceInputs, plan: &InstancePlan) -> InstanceInputs {
    for (object, _) in &plan.children.apply {
        inputs.there.insert(name_of(object), object.clone());
    }
    inputs.stored.clone_from(&plan.ring);
    inputs
}

fn planned(instance: &Bind9Instance, inputs: &InstanceInputs) -> Vec<String> {
    let plan = InstancePlan::of(instance, inputs).unwrap();
    let shown = |(object, there): &(Value, Option<Value>)| {
        let (kind, key) = name_of(object);
        format!("{} {kind}/{}", if there.is_some() { "change" } else { "make" }, key.name)
    };
    plan.children.apply.iter().map(shown).collect()
}

#[test]
fn scenario_12_everything_is_made_in_its_order_and_then_there_is_nothing_to_do() {
    let instance = instance(json!({}));
    let first = inputs(&instance);
    let order = [
        "make ServiceAccount/bind9",
        "make Secret/a-rndc-key",
        "make ConfigMap/a-config",
        "make Deployment/a",
        "make Service/a",
        "make Service/a-control",
        "make PodDisruptionBudget/a",
    ];
    assert_eq!(planned(&instance, &first), order);

    let plan = InstancePlan::of(&instance, &first).unwrap();
    let settled = after(first, &plan);

    assert_eq!(planned(&instance, &settled), Vec::<String>::new());
    assert!(InstancePlan::of(&instance, &settled).unwrap().changes().is_empty());
}

#[test]
fn scenario_66_a_change_that_reconfig_takes_is_one_of_the_configuration_alone() {
    let before = instance(json!({}));
    let plan = InstancePlan::of(&before, &inputs(&before)).unwrap();
    let changed = instance(json!({"config": {"allowQuery": ["10.0.0.0/8"]}}));
    let settled = after(inputs(&changed), &plan);

    assert_eq!(planned(&changed, &settled), ["change ConfigMap/a-config"]);
}

#[test]
fn scenario_59_a_renewal_changes_the_secret_and_what_servers_say_of_themselves_and_no_pod() {
    let instance = instance(json!({}));
    let plan = InstancePlan::of(&instance, &inputs(&instance)).unwrap();
    let mut due = after(inputs(&instance), &plan);
    due.now = Some(Timestamp::from_second(3600).unwrap());

    assert_eq!(planned(&instance, &due), ["change Secret/a-rndc-key", "change ConfigMap/a-config"]);
    assert!(InstancePlan::of(&instance, &due).unwrap().rotates);
}

#[test]
fn keys_before_are_given_up_once_every_server_runs_with_the_new_ones() {
    let instance = instance(json!({}));
    let first = InstancePlan::of(&instance, &inputs(&instance)).unwrap();
    let at = |second: i64| Some(Timestamp::from_second(second).unwrap());
    let due = InstanceInputs { now: at(3600), ..after(inputs(&instance), &first) };
    let rotated = InstancePlan::of(&instance, &due).unwrap();
    let mut overlap = InstanceInputs { now: at(3600 + 900), ..after(due, &rotated) };
    overlap.pods = vec![PodState { uid: "p".to_owned(), address: Some("10.0.0.7".to_owned()), ..PodState::default() }];

    let waits = InstancePlan::of(&instance, &overlap).unwrap();
    assert_eq!(
        (waits.unconfirmed.len(), waits.ring.unwrap().previous.is_some()),
        (1, true),
        "nobody knows what the server runs with"
    );

    overlap.confirmed.insert(("p".to_owned(), 0), rotated.version.clone());
    let retired = InstancePlan::of(&instance, &overlap).unwrap();
    assert!(retired.ring.unwrap().previous.is_none());
}

#[test]
fn scenario_63_to_65_what_no_server_starts_with_has_findings_and_nothing_to_do() {
    for (wrong, field) in [
        (json!({"config": {"allowQuery": ["any; }; zone \"x\" {"]}}), "allowQuery"),
        (json!({"config": {"dnssec": {"signing": {"enabled": true, "kskLifetime": "1y"}}}}), "kskLifetime"),
        (json!({"volumes": [{"name": "host", "hostPath": {"path": "/"}}]}), "volumes[0]"),
    ] {
        let instance = instance(wrong);
        let plan = InstancePlan::of(&instance, &inputs(&instance)).unwrap();

        assert!(plan.changes().is_empty() && plan.unconfirmed.is_empty());
        assert!(plan.findings.iter().any(|one| one.field.contains(field)), "{:?}", plan.findings);
    }
}

#[test]
fn what_somebody_else_has_is_left_alone() {
    let instance = instance(json!({}));
    for there in [
        json!({"kind": "Service", "metadata": {"namespace": "dns", "name": "a", "labels": {"app": "web"}}}),
        json!({"kind": "Secret", "metadata": {"namespace": "dns", "name": "a-rndc-key", "ownerReferences": [{"controller": true, "uid": "other"}]}}),
    ] {
        let mut inputs = inputs(&instance);
        inputs.there.insert(name_of(&there), there);
        let problem = InstancePlan::of(&instance, &inputs).err().unwrap();

        assert_eq!(problem.reason, "ObjectNotOurs");
    }
}

#[test]
fn a_workload_of_the_other_kind_goes_when_this_one_is_there() {
    let disk = json!({"storage": {"storageType": "persistentVolumeClaim", "persistentVolumeClaim": {"size": "1Gi"}}});
    let before = instance(json!({}));
    let plan = InstancePlan::of(&before, &inputs(&before)).unwrap();
    let moved = instance(disk);
    let settled = after(inputs(&moved), &plan);

    let plan = InstancePlan::of(&moved, &settled).unwrap();

    let gone: Vec<(String, ObjectKey)> = plan.children.delete.iter().map(name_of).collect();
    assert_eq!(gone, [("Deployment".to_owned(), ObjectKey::namespaced("dns", "a"))]);
    assert_eq!(planned(&moved, &settled), ["make StatefulSet/a"]);
}

#[test]
fn no_plan_shows_a_secret() {
    let instance = instance(json!({}));

    let shown = InstancePlan::of(&instance, &inputs(&instance)).unwrap().changes().to_json().to_string();

    assert!(shown.contains("a-rndc-key") && !shown.contains("QUJD") && !shown.contains("UVVKRA"), "{shown}");
}
