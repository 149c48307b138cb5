use portolan_schema::crd::{Judge, ObjectScope};
use serde_json::{Value, json};

use super::*;
use crate::task::{CloudflareTaskStatus, DeleteIds, ExistingIds, Phase, TaskNotice, TaskResult};

fn judge() -> Judge {
    Judge::new(table().iter().map(|row| serde_json::to_value(row.crd()).unwrap()))
}

fn manifest(kind: &str, spec: &Value) -> Value {
    json!({ "apiVersion": format!("{GROUP}/v1alpha1"), "kind": kind, "metadata": { "name": "x", "namespace": "y" }, "spec": spec })
}

#[test]
fn an_api_server_takes_every_definition_without_a_warning() {
    assert_eq!(judge().complaints(), Vec::<String>::new());
}

#[test]
fn the_table_says_what_the_definitions_say() {
    for row in table() {
        let definition = judge().parsed(row.kind).unwrap();

        assert_eq!((definition.names.kind.as_str(), definition.names.plural.as_str()), (row.kind, row.plural));
        assert_eq!(definition.names.singular, row.kind.to_lowercase());
        assert_eq!(definition.scope, ObjectScope::Namespaced, "{}", row.kind);
        assert_eq!(definition.versions.len(), 1);
        assert!(definition.versions.iter().all(|version| version.subresources.status), "{}", row.kind);
    }
}

#[test]
fn short_names_and_columns_are_those_that_users_know() {
    let shown: Vec<String> = table().iter().map(|row| judge().columns(row.kind).unwrap()).collect();

    assert_eq!(
        shown,
        [
            "CloudflareZeroTrustTenant [cfzt,cfzttenant]: Account, Tunnel, HTTPRoutes, Last Sync, Ready, Age",
            "CloudflareZeroTrustTemplate [cfzttemplate,cfztt]: Tenant, Access App, Service Token, DNS Only, Used By, Age",
            "CloudflareZeroTrustOperatorConfig [cfztconfig,operatorconfig]: Replicas, CPU Request, Memory Request, Ready, \
             Last Applied, Age",
            "CloudflareTask [cfztask,cftask]: HTTPRoute, Hostname, Phase, Worker, Age",
        ]
    );
}

#[test]
fn bug_4_every_field_is_described_none_takes_null_and_none_has_a_default() {
    for row in table() {
        for (path, property) in judge().fields(row.kind) {
            let known = path.starts_with("status.conditions[]");
            assert!(known || property.get("description").is_some(), "{} {path} has no description", row.kind);
            assert!(property.get("nullable").is_none(), "{} {path}", row.kind);
            assert!(known || property.get("default").is_none(), "{} {path}", row.kind);
        }
    }
}

#[test]
fn bug_4_an_api_server_adds_nothing_to_a_template() {
    let spec =
        json!({ "originService": { "originTLS": { "tlsTimeout": 15 } }, "accessApplication": {}, "dnsOnly": {} });
    let tenant = json!({ "accountId": "0123456789abcdef0123456789abcdef", "credentialRef": { "name": "t" },
        "tunnelId": "11111111-2222-3333-4444-555555555555", "defaults": { "originTLS": {} } });
    let config = json!({ "environmentVariables": { "logLevel": "DEBUG" }, "resources": {} });

    for (kind, spec) in [
        ("CloudflareZeroTrustTemplate", spec),
        ("CloudflareZeroTrustTenant", tenant),
        ("CloudflareZeroTrustOperatorConfig", config),
    ] {
        assert_eq!(judge().applied(&manifest(kind, &spec)).unwrap()["spec"], spec, "{kind}");
    }
}

fn tenant(more: Value) -> (&'static str, Value) {
    let mut spec = json!({ "accountId": "0123456789abcdef0123456789abcdef", "credentialRef": { "name": "token" },
        "tunnelId": "11111111-2222-3333-4444-555555555555" });
    spec.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    ("CloudflareZeroTrustTenant", spec)
}

fn template(spec: Value) -> (&'static str, Value) {
    ("CloudflareZeroTrustTemplate", spec)
}

#[test]
fn bad_input_is_refused_with_what_to_write() {
    for ((kind, spec), sentence) in [
        (tenant(json!({ "accountId": "my-account" })), "32 hexadecimal digits"),
        (tenant(json!({ "accountId": "0123456789ABCDEF0123456789abcdef" })), "lower case"),
        (tenant(json!({ "tunnelId": "web" })), "write the tunnel's UUID"),
        (tenant(json!({ "tunnelId": null })), "spec.tunnelId: Required value"),
        (tenant(json!({ "zoneId": "example.com" })), "32 hexadecimal digits"),
        (tenant(json!({ "credentialRef": {} })), "spec.credentialRef.name: Required value"),
        (tenant(json!({ "logLevel": "TRACE" })), "spec.logLevel: Unsupported value"),
        (tenant(json!({ "defaults": { "sessionDuration": "1 day" } })), "as 24h or 1h30m"),
        (tenant(json!({ "defaults": { "originService": "traefik" } })), "write the origin as a URL"),
        (tenant(json!({ "defaults": { "originTLS": { "tlsTimeout": 301 } } })), "tlsTimeout: Invalid value"),
        (tenant(json!({ "defaults": { "originTls": {} } })), "unknown field"),
        (template(json!({ "dnsOnly": { "ttl": 30 } })), "write 1 (automatic), or 60 to 86400 seconds"),
        (template(json!({ "dnsOnly": { "ttl": 86401 } })), "write 1 (automatic), or 60 to 86400 seconds"),
        (template(json!({ "dnsOnly": { "staticIp": "fd00::1" } })), "write an IPv4 address"),
        (template(json!({ "dnsOnly": { "staticIp": "10.0.0.256" } })), "write an IPv4 address"),
        (template(json!({ "dnsOnly": { "ingressServiceRef": {} } })), "ingressServiceRef.name: Required value"),
        (template(json!({ "accessApplication": { "sameSiteCookieAttribute": "maybe" } })), "Unsupported value"),
        (template(json!({ "accessApplication": { "sessionDuration": "soon" } })), "as 24h or 1h30m"),
        (template(json!({ "accessApplication": { "allowEmails": "a@x" } })), "allowEmails"),
        (template(json!({ "serviceToken": { "duration": "1y" } })), "as 8760h, or forever"),
        (template(json!({ "originService": { "originTLS": { "tlsTimeout": 0 } } })), "tlsTimeout: Invalid value"),
        (("CloudflareZeroTrustOperatorConfig", json!({ "replicas": 11 })), "spec.replicas: Invalid value"),
        (
            ("CloudflareZeroTrustOperatorConfig", json!({ "environmentVariables": { "pollIntervalSeconds": 5 } })),
            "pollIntervalSeconds: Invalid value",
        ),
        (("CloudflareZeroTrustOperatorConfig", json!({ "imagePullPolicy": "Sometimes" })), "Unsupported value"),
        (("CloudflareTask", json!({ "action": "update" })), "spec.action: Unsupported value"),
    ] {
        let said = judge().refusals(&manifest(kind, &spec));
        assert!(said.contains(sentence), "{kind} {spec}\nexpected: {sentence}\nsaid: {said}");
    }
}

#[test]
fn manifests_of_older_operators_are_accepted_as_they_are() {
    for (kind, spec) in [
        tenant(json!({ "zoneId": "fedcba9876543210fedcba9876543210", "logLevel": "INFO",
            "credentialRef": { "name": "cloudflare-api-token", "key": "token" } })),
        tenant(json!({ "defaults": { "sessionDuration": "24h", "originService": "http://traefik.traefik.svc:80",
            "httpRedirect": true, "originTLS": { "noTLSVerify": false, "originServerName": "", "caPool": "",
                "tlsTimeout": 10, "http2Origin": false, "matchSNIToHost": false } } })),
        tenant(json!({ "defaults": { "originService": "" } })),
        template(json!({})),
        template(json!({
            "tenantRef": "prod",
            "originService": { "url": "https://traefik.traefik.svc:443", "httpRedirect": true,
                "originTLS": { "noTLSVerify": true, "originServerName": "{{ hostname }}", "caPool": "", "tlsTimeout": 10,
                    "http2Origin": false, "matchSNIToHost": false } },
            "accessApplication": { "enabled": true, "sessionDuration": "24h", "existingPolicyNames": ["Allow staff"],
                "allowEmails": [], "allowGroups": [], "autoRedirectToIdentity": false, "enableBindingCookie": false,
                "httpOnlyCookieAttribute": true, "sameSiteCookieAttribute": "lax", "logoUrl": "",
                "skipInterstitial": false, "appLauncherVisible": true, "serviceAuth401Redirect": false,
                "customDenyMessage": "", "customDenyUrl": "", "customNonIdentityDenyUrl": "" },
            "serviceToken": { "enabled": true, "duration": "8760h" },
            "dnsOnly": { "enabled": false, "proxied": false, "ttl": 120 },
        })),
        template(
            json!({ "accessApplication": { "enabled": true, "existingPolicyIds": ["11111111-2222-3333-4444-555555555555"] } }),
        ),
        template(json!({ "dnsOnly": { "enabled": true, "staticIp": "192.168.1.100", "ttl": 1 } })),
        template(
            json!({ "dnsOnly": { "enabled": true, "ingressServiceRef": { "name": "traefik", "namespace": "traefik" } } }),
        ),
        template(json!({ "originService": { "url": "http://{{ hostname }}.internal:80" } })),
        (
            "CloudflareZeroTrustOperatorConfig",
            json!({
                "replicas": 1, "imagePullPolicy": "Always", "priorityClassName": "system-cluster-critical",
                "resources": { "requests": { "cpu": "100m", "memory": "256Mi" }, "limits": { "cpu": 1, "memory": "512Mi" } },
                "affinity": { "podAntiAffinity": { "preferredDuringSchedulingIgnoredDuringExecution": [{ "weight": 100 }] } },
                "nodeSelector": { "kubernetes.io/os": "linux" }, "tolerations": [{ "operator": "Exists" }],
                "environmentVariables": { "pollIntervalSeconds": 60, "logLevel": "INFO", "watchNamespaces": "" },
                "podAnnotations": { "a": "b" }, "podLabels": { "c": "d" },
            }),
        ),
        (
            "CloudflareTask",
            json!({
                "action": "reconcile", "httprouteRef": { "name": "app", "namespace": "default", "uid": "u" },
                "tenantRef": { "name": "prod", "namespace": "default" },
                "credentialSecretRef": { "name": "token", "namespace": "default", "key": "token" },
                "hostname": "app.example.com", "accountId": "a", "tunnelId": "t", "zoneId": "",
                "operations": {
                    "tunnelRoute": { "enabled": true, "originService": "https://a", "httpRedirect": true,
                        "noTLSVerify": true, "originServerName": "", "caPool": "", "tlsTimeout": 10, "http2Origin": false },
                    "cnameDns": { "enabled": true },
                    "accessApp": { "enabled": true, "sessionDuration": "24h", "existingPolicyIds": [], "allowEmails": [],
                        "allowGroups": [], "logoUrl": "" },
                    "serviceToken": { "enabled": false, "duration": "8760h" },
                    "dnsRecord": { "enabled": false, "ip": "", "proxied": false, "ttl": 120 },
                },
                "existingIds": { "hostnameRouteId": "", "cnameRecordId": "", "accessAppId": "", "accessPolicyIds": "",
                    "serviceTokenId": "", "dnsRecordId": "" },
            }),
        ),
        (
            "CloudflareTask",
            json!({ "action": "delete", "credentialSecretRef": { "name": "t", "namespace": "d" }, "accountId": "a",
                "deleteIds": { "hostname": "h", "accessAppId": "", "cnameRecordId": "r", "serviceTokenId": "",
                    "dnsRecordId": "", "tunnelId": "t", "zoneId": "z" } }),
        ),
    ] {
        assert_eq!(judge().refusals(&manifest(kind, &spec)), "accepted", "{kind} {spec}");
    }
}

#[test]
fn bug_6_a_task_has_no_place_for_a_secret() {
    let mut task = manifest("CloudflareTask", &json!({}));
    task["status"] = json!({ "phase": "Completed", "result": { "serviceTokenClientSecret": "s" } });

    assert_eq!(judge().applied(&task).unwrap_err(), ["unknown field status.result.serviceTokenClientSecret"]);
}

#[test]
fn bug_3_what_tasks_are_made_of_fits_their_definition() {
    let route = crate::fixture::route(&[
        ("accessApp", "true"),
        ("allowEmails", "a@x"),
        ("serviceToken", "true"),
        ("serviceToken.rotate", "1"),
        ("origin.url", "https://a"),
        ("origin.httpRedirect", "true"),
        ("adopt", "true"),
    ]);
    let footprint =
        serde_json::from_value(json!({ "accountId": crate::fixture::ACCOUNT, "hostname": "a", "tunnelId": "t",
        "hasRule": true, "cnameRecordId": "r", "accessAppId": "a", "accessPolicyIds": ["p"], "reusablePolicyIds": ["p"],
        "serviceTokenId": "s", "redirectRuleId": "x", "redirectRulesetId": "y", "appHostname": "b", "adopted": ["app"],
        "former": [{ "hostname": "c", "tunnelId": "t", "adopted": true }], "serviceTokenRotation": "1" }))
        .unwrap();
    let mut spec = crate::fixture::Shelf::with_tenant(json!({})).wanted(&route).unwrap().spec;
    spec.existing_ids = Some(ExistingIds::from(&footprint));
    spec.delete_ids = Some(DeleteIds::from(&footprint));
    let notice = TaskNotice { r#type: "Warning".into(), reason: "NoAccessPolicy".into(), message: "m".into() };
    let status = CloudflareTaskStatus {
        phase: Some(Phase::Completed),
        reason: Some("GroupNotFound".to_owned()),
        worker_pod: Some(String::new()),
        result: Some(TaskResult {
            notices: vec![notice],
            service_token_created: Some(true),
            ..TaskResult::from(&footprint)
        }),
        attempts: Some(1),
        intended_at: Some("2026-11-16T05:30:00Z".to_owned()),
        intent: Some(json!({ "since": "2026-11-16T05:30:00Z", "rules": ["d"], "token": "n" })),
        changes: vec!["+ rule".to_owned()],
        ..CloudflareTaskStatus::default()
    };
    let mut task = manifest("CloudflareTask", &json!(spec));
    task["status"] = json!(status);

    let stored = judge().applied(&task).unwrap();

    assert_eq!((&stored["spec"], &stored["status"]), (&task["spec"], &task["status"]));
}
