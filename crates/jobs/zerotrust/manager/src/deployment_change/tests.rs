//! A Deployment as a chart leaves it, and what configurations make of it.

use super::*;
use crate::managed_fields::MANAGER;

fn live() -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {
            "name": "operator", "namespace": "cloudflare-zero-trust", "uid": "d", "resourceVersion": "7",
            "annotations": {"meta.helm.sh/release-name": "cfzt"},
            "managedFields": [{"manager": "helm", "operation": "Update"}],
        },
        "spec": {
            "replicas": 1, "selector": {"matchLabels": {"app": "operator"}},
            "template": {"metadata": {"labels": {"app": "operator"}}, "spec": {"containers": [{
                "name": "operator", "image": "portolan:1", "resources": {"requests": {"cpu": "100m", "memory": "256Mi"}},
                "env": [{"name": "ROLE", "value": "manager"}, {"name": "LOG_LEVEL", "value": "INFO"}],
            }]}},
        },
    })
}

fn config(spec: Value) -> Config {
    let whole = json!({
        "apiVersion": "cfzt.cloudflare.com/v1alpha1", "kind": "CloudflareZeroTrustOperatorConfig",
        "metadata": {"name": "operator-config", "uid": "c", "generation": 1}, "spec": spec,
    });
    serde_json::from_value(whole).unwrap()
}

fn shaped(live: &Value, spec: Value) -> DeploymentChange {
    change_for(live, Some(&config(spec)), Timestamp::UNIX_EPOCH).unwrap()
}

fn released(live: &Value) -> DeploymentChange {
    change_for(live, None, Timestamp::UNIX_EPOCH).unwrap()
}

/// The Deployment after the writes of a shape, as a server leaves it.
fn after(change: &DeploymentChange) -> Value {
    let mut stands = change.wanted.clone();
    let entries = stands["metadata"]["managedFields"].as_array_mut().unwrap();
    entries.retain(|entry| entry["manager"] != MANAGER);
    if change.apply.is_some() {
        entries.push(json!({"manager": MANAGER, "operation": "Apply"}));
    }
    stands
}

fn container(deployment: &Value) -> &Value {
    &deployment["spec"]["template"]["spec"]["containers"][0]
}

#[test]
fn scenario_65_only_what_is_said_is_applied() {
    let change = shaped(&live(), json!({"environmentVariables": {"logLevel": "DEBUG"}}));

    let mut applied = change.apply.clone().unwrap();
    applied["metadata"]["annotations"].take();
    assert_eq!(
        applied,
        json!({
            "apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"name": "operator", "namespace": "cloudflare-zero-trust", "annotations": null},
            "spec": {"template": {"spec": {"containers": [
                {"name": "operator", "env": [{"name": "LOG_LEVEL", "value": "DEBUG"}]}]}}},
        })
    );
    assert_eq!((change.replace.is_none(), change.disown), (true, None), "one write is enough");
}

#[test]
fn scenario_66_a_variable_that_is_there_twice_is_there_once_afterwards() {
    let mut twice = live();
    let env = json!([{"name": "LOG_LEVEL", "value": "INFO"}, {"name": "A", "value": "1"}, {"name": "LOG_LEVEL", "value": "ERROR"}]);
    twice["spec"]["template"]["spec"]["containers"][0]["env"] = env;

    let change = shaped(&twice, json!({"environmentVariables": {"logLevel": "DEBUG"}}));

    let env = &container(change.replace.as_ref().unwrap())["env"];
    assert_eq!(*env, json!([{"name": "LOG_LEVEL", "value": "DEBUG"}, {"name": "A", "value": "1"}]));
}

#[test]
fn what_is_shaped_needs_nothing_more() {
    let spec = json!({
        "replicas": 2, "resources": {"limits": {"cpu": "1"}}, "nodeSelector": {"disk": "ssd"},
        "environmentVariables": {"logLevel": "DEBUG", "watchNamespaces": ""}, "podLabels": {"team": "edge"},
    });
    let stands = after(&shaped(&live(), spec.clone()));

    let again = shaped(&stands, spec);

    assert!(again.is_settled() && again.change.is_none(), "{again:?}");
}

#[test]
fn resources_are_replaced_as_a_whole_in_one_write_that_rolls() {
    let change = shaped(&live(), json!({"resources": {"limits": {"cpu": "1"}}}));

    let replace = change.replace.clone().unwrap();
    assert_eq!(container(&replace)["resources"], json!({"limits": {"cpu": "1"}}));
    assert_eq!(replace["spec"], change.wanted["spec"], "applying and disowning change nothing of the spec");
    assert_eq!(change.disown, Some(Keep::Applied));
}

#[test]
fn what_was_deployed_comes_back_when_the_configuration_goes() {
    let spec = json!({"replicas": 3, "resources": {"limits": {"cpu": "1"}}, "environmentVariables": {"logLevel": "DEBUG"}, "podLabels": {"team": "edge"}});
    let stands = after(&shaped(&live(), spec));

    let change = released(&stands);

    assert_eq!(after(&change)["spec"], {
        let mut deployed = live();
        deployed["spec"]["template"]["metadata"]["labels"] = json!({"app": "operator"});
        deployed["spec"].clone()
    });
    assert_eq!(change.wanted["metadata"]["annotations"], live()["metadata"]["annotations"]);
    assert_eq!((change.apply, change.disown), (None, Some(Keep::Nothing)));
    assert!(released(&after(&released(&stands))).is_settled());
}

#[test]
fn a_field_that_is_no_longer_said_comes_back_and_the_others_stay() {
    let stands = after(&shaped(&live(), json!({"replicas": 3, "priorityClassName": "high"})));

    let change = shaped(&stands, json!({"priorityClassName": "high"}));

    assert_eq!(change.wanted["spec"]["replicas"], 1);
    assert_eq!(change.wanted["spec"]["template"]["spec"]["priorityClassName"], "high");
    assert!(change.apply.is_some_and(|body| body["spec"]["replicas"].is_null()));
}

#[test]
fn what_is_deployed_anew_is_what_comes_back_later() {
    let spec = json!({"replicas": 3});
    let mut upgraded = after(&shaped(&live(), spec.clone()));
    upgraded["spec"]["replicas"] = json!(2);

    let again = shaped(&upgraded, spec);
    assert_eq!(again.wanted["spec"]["replicas"], 3, "the configuration holds");

    assert_eq!(released(&after(&again)).wanted["spec"]["replicas"], 2);
}

#[test]
fn a_configuration_that_changes_forgets_nothing_of_what_was_deployed() {
    let stands = after(&shaped(&live(), json!({"replicas": 3})));
    let stands = after(&shaped(&stands, json!({"replicas": 4})));

    assert_eq!(released(&stands).wanted["spec"]["replicas"], 1);
}

#[test]
fn what_somebody_changed_by_hand_is_not_put_back_when_the_configuration_goes() {
    let mut stands = after(&shaped(&live(), json!({"replicas": 3})));
    stands["spec"]["replicas"] = json!(7);

    assert_eq!(released(&stands).wanted["spec"]["replicas"], 7);
}

#[test]
fn a_variable_from_elsewhere_is_replaced_and_comes_back() {
    let mut sourced = live();
    let source = json!({"name": "LOG_LEVEL", "valueFrom": {"configMapKeyRef": {"name": "levels", "key": "level"}}});
    sourced["spec"]["template"]["spec"]["containers"][0]["env"] = json!([source]);

    let change = shaped(&sourced, json!({"environmentVariables": {"logLevel": "DEBUG"}}));

    assert_eq!(container(change.replace.as_ref().unwrap())["env"], json!([{"name": "LOG_LEVEL", "value": "DEBUG"}]));
    assert_eq!(container(&released(&after(&change)).wanted)["env"], json!([source]));
}

#[test]
fn an_unfinished_write_is_finished() {
    let spec = json!({"resources": {"limits": {"cpu": "1"}}});
    let mut stands = after(&shaped(&live(), spec.clone()));
    stands["metadata"]["managedFields"] =
        json!([{"manager": "helm", "operation": "Update"}, {"manager": MANAGER, "operation": "Update"}]);

    let change = shaped(&stands, spec);

    assert!(change.replace.is_none() && change.apply.is_some());
    assert_eq!(change.disown, Some(Keep::Applied));
    assert_eq!(change.change, None, "nothing changes that anybody sees");
}

#[test]
fn a_configuration_that_says_nothing_writes_nothing() {
    assert!(shaped(&live(), json!({})).is_settled());
    assert!(released(&live()).is_settled());
}

#[test]
fn a_configuration_that_stops_saying_anything_was_still_applied() {
    let stands = after(&shaped(&live(), json!({"replicas": 3})));

    let change = shaped(&stands, json!({}));

    assert_eq!(change.wanted["spec"]["replicas"], 1);
    assert!(PreviousValues::read(&change.wanted).is_some_and(|record| record.held().is_empty()));
    assert!(shaped(&after(&change), json!({})).is_settled());
}

#[test]
fn the_change_names_the_fields_and_the_configuration() {
    let change = shaped(&live(), json!({"replicas": 3, "podAnnotations": {"a": "b"}})).change.unwrap();

    assert_eq!(change.before, Some(json!({"replicas": 1})));
    assert_eq!(change.after, Some(json!({"replicas": 3, "podAnnotations:a": "b"})));
    assert_eq!((change.target.name.as_str(), change.why.as_str()), ("operator", "OperatorConfig operator-config"));
}
