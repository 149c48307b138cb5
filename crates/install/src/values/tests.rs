use serde_json::json;

use super::*;
use crate::testing::JOBS;

fn refused(yaml: &str) -> String {
    Values::parse(JOBS, &[yaml], &[]).unwrap_err().to_string()
}

#[test]
fn nothing_said_is_the_defaults() {
    assert_eq!(Values::parse(JOBS, &[], &[]).unwrap(), Values::usual(JOBS));
    assert_eq!(Values::parse(JOBS, &["", "{}\n"], &[]).unwrap(), Values::usual(JOBS));
}

#[test]
fn later_files_and_settings_win_and_maps_are_merged() {
    let files = ["resources: {limits: {cpu: 1}}\nreplicaCount: 2", "replicaCount: 3\npodLabels: {a: b}"];
    let values = Values::parse(JOBS, &files, &["replicaCount=4", "operator.logLevel=DEBUG"]).unwrap();

    assert_eq!(values.replica_count, 4);
    assert_eq!(values.operator.log_level, LogLevel::Debug);
    assert_eq!(values.resources["limits"], json!({"cpu": 1, "memory": "512Mi"}));
    assert_eq!(values.pod_labels["a"], "b");
}

#[test]
fn null_clears_what_may_be_empty_and_nothing_else() {
    let values =
        Values::parse(JOBS, &["resources: null\nsecurityContext: null\nimage: {registry: null}"], &[]).unwrap();

    assert!(values.resources.is_empty() && values.security_context.is_empty() && values.image.registry.is_empty());
    assert_eq!(refused("replicaCount: null"), "replicaCount: it may not be null");
    assert_eq!(refused("tenant: null"), "tenant: it may not be null");
}

#[test]
fn an_unknown_value_is_refused_with_the_one_that_was_meant() {
    assert_eq!(refused("replicacount: 2"), "replicacount: there is no such value; did you mean replicaCount?");
    assert_eq!(
        refused("operator: {loglevel: DEBUG}"),
        "operator.loglevel: there is no such value; did you mean logLevel?"
    );
    assert_eq!(refused("tenant: {acountId: x}"), "tenant.acountId: there is no such value; did you mean accountId?");
    assert!(refused("crds: {completelyElse: 1}").ends_with("here stand install, keep"));
}

#[test]
fn a_wrong_value_is_refused_with_its_place_and_what_is_allowed() {
    let cases = [
        ("operator: {mode: double}", "operator.mode: it is \"double\", and must be one of single, roles"),
        ("replicaCount: many", "replicaCount: it is a text, and must be a whole number"),
        ("replicaCount: -1", "replicaCount: it is -1, and must be from 0 to 100"),
        ("controllers: []", "controllers: it may not be empty"),
        ("controllers: [zerotrust, zerotrust]", "controllers: \"zerotrust\" stands there twice"),
        ("controllers: [bind]", "controllers[0]: it is \"bind\", and must be one of zerotrust, cloudflare"),
        ("podLabels: {a: 1}", "podLabels.a: it is a number, and must be a text (put it into quotes)"),
        ("tolerations: {}", "tolerations: it is a map, and must be a list"),
        ("networkPolicy: {egressPorts: [0]}", "networkPolicy.egressPorts[0]: it is 0, and must be from 1 to 65535"),
        ("rbac: {create: perhaps}", "rbac.create: it is a text, and must be true or false"),
    ];
    for (yaml, wanted) in cases {
        assert_eq!(refused(yaml), wanted);
    }
    assert!(refused("tenant: {accountId: XYZ}").starts_with("tenant.accountId: it is \"XYZ\", and must look like"));
}

#[test]
fn what_does_not_go_together_is_refused() {
    let id = "0123456789abcdef0123456789abcdef";
    let tunnel = "11111111-2222-3333-4444-555555555555";
    let tenant = |more: &str| format!("tenant: {{create: true, accountId: {id}, tunnelId: {tunnel}{more}}}");
    let cases = [
        ("serviceAccount: {create: false}".to_owned(), "serviceAccount.name"),
        ("{operator: {mode: roles}, controllers: [zerotrust, cloudflare]}".to_owned(), "operator.mode"),
        ("{operatorConfig: {create: true}, controllers: [cloudflare]}".to_owned(), "operatorConfig.create"),
        ("metrics: {enabled: false, serviceMonitor: {enabled: true}}".to_owned(), "metrics.serviceMonitor.enabled"),
        ("podLabels: {app.kubernetes.io/instance: x}".to_owned(), "podLabels"),
        ("operator: {extraEnv: [{name: ROLE, value: all}]}".to_owned(), "operator.extraEnv"),
        ("operator: {extraEnv: [{value: all}]}".to_owned(), "operator.extraEnv"),
        ("tenant: {create: true}".to_owned(), "tenant.accountId"),
        (format!("tenant: {{create: true, accountId: {id}}}"), "tenant.tunnelId"),
        (tenant(""), "tenant.apiToken"),
        (tenant(", apiToken: t, existingSecret: {name: s}"), "tenant.apiToken"),
    ];
    for (yaml, path) in cases {
        assert_eq!(Values::parse(JOBS, &[&yaml], &[]).unwrap_err().path, path, "{yaml}");
    }
    assert!(Values::parse(JOBS, &[&tenant(", apiToken: t")], &[]).is_ok());
}

#[test]
fn a_token_is_shown_in_no_message() {
    let values = Values::parse(JOBS, &[], &["tenant.apiToken=canary-token"]).unwrap();
    let error = Values::parse(JOBS, &["tenant: {apiToken: [canary-token]}"], &[]).unwrap_err();

    assert!(!format!("{values:?}").contains("canary") && !error.to_string().contains("canary"));
}
