use proptest::prelude::*;
use serde_json::from_value;

use super::*;

const CANARY: &str = "c4nary-5ecret";

fn map(data: Value) -> ConfigMap {
    from_value(json!({
        "metadata": { "name": "cfzt-default-app", "annotations": { "cfzt.cloudflare.com/httproute-uid": "u1" } },
        "data": data,
    }))
    .unwrap()
}

/// The data of a state, with what every writer put there.
fn with(more: Value) -> ConfigMap {
    let mut data = json!({ "annotation_hash": "h1", "httproute_namespace": "default", "httproute_name": "app" });
    data.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    map(data)
}

#[expect(clippy::unnecessary_wraps, reason = "the fields are optional")]
fn text(text: &str) -> Option<String> {
    Some(text.to_owned())
}

fn full() -> State {
    State {
        uid: text("u1"),
        hash: "h1".to_owned(),
        footprint: crate::fixture::footprint(),
        tenant: Some(ObjectKey::namespaced("default", "prod")),
        credential: SecretRef::parse("default/token/key"),
        mode: PublishMode::Tunnel,
        origin_service: text("http://web:80"),
        phase: StatePhase::Deleting,
        leftovers: vec![Leftover {
            footprint: Footprint { account_id: text("a0"), access_app_id: text("app0"), ..Footprint::default() },
            credential: SecretRef::parse("default/old/token"),
            tenant: Some(TenantRef { name: "old".to_owned(), namespace: "default".to_owned() }),
        }],
        token_secret_name: text("app-cfzt-service-token"),
        templates: Some(
            [ObjectKey::namespaced("default", "base-prod"), ObjectKey::namespaced("ops", "default")].into(),
        ),
        exposed_at: text("2026-11-15T05:30:00Z"),
        last_sync_time: text("2026-11-16T05:30:00Z"),
        last_error: text("no zone"),
        ..State::new("cfzt-default-app", ObjectKey::namespaced("default", "app"))
    }
}

#[test]
fn what_was_written_is_read_back() {
    assert_eq!(State::read(&full().write("ops")).unwrap(), full());
}

#[test]
fn the_keys_and_labels_are_those_that_were_specified() {
    let written = full().write("ops");
    let (data, labels) = (written.data.unwrap(), written.metadata.labels.unwrap());

    assert_eq!(
        (written.metadata.name.as_deref(), written.metadata.namespace.as_deref()),
        (Some("cfzt-default-app"), Some("ops"))
    );
    for (key, value) in [
        ("annotation_hash", "h1"),
        ("last_sync_time", "2026-11-16T05:30:00Z"),
        ("httproute_namespace", "default"),
        ("httproute_name", "app"),
        ("hostname", "app.example.com"),
        ("tunnel_id", "t1"),
        ("zone_id", "z1"),
        ("tenant_name", "prod"),
        ("tenant_namespace", "default"),
        ("account_id", "a1"),
        ("credential_secret", "default/token/key"),
        ("mode", "tunnel"),
        ("phase", "deleting"),
        ("schema_version", "1"),
    ] {
        assert_eq!(data.get(key).map(String::as_str), Some(value), "{key}");
    }
    let ids: Value = serde_json::from_str(&data["cloudflare_ids"]).unwrap();
    assert_eq!((&ids["hostnameRouteId"], &ids["accessPolicyIds"]), (&json!("t1"), &json!(["p1", "p2"])));
    assert_eq!(ids["serviceTokenSecretName"], json!("app-cfzt-service-token"));
    assert_eq!(ids.get("serviceTokenClientId"), None);
    let owned: Value = serde_json::from_str(&data["owned"]).unwrap();
    assert_eq!(owned, json!({ "created": ["rule", "token", "redirect"], "adopted": ["record", "app"] }));
    for (label, value) in [
        ("app.kubernetes.io/name", "cloudflare-zero-trust-operator"),
        ("app.kubernetes.io/component", "state-tracker"),
        ("app.kubernetes.io/managed-by", "cfzt-operator"),
        ("cfzt.cloudflare.com/httproute-namespace", "default"),
        ("cfzt.cloudflare.com/httproute-name", "app"),
        ("cfzt.cloudflare.com/tenant", "prod"),
    ] {
        assert_eq!(labels.get(label).map(String::as_str), Some(value), "{label}");
    }
}

#[test]
fn the_first_form_with_underscores_is_read() {
    let tunnel = "11111111-2222-3333-4444-555555555555";
    let ids = json!({ "tunnel_id": tunnel, "access_app_id": "app1", "access_policy_ids": "p1,p2" }).to_string();
    let state = State::read(&with(json!({ "cloudflare_ids": ids, "last_sync_time": "2025-01-01T00:00:00Z" }))).unwrap();

    assert_eq!((state.hash.as_str(), state.uid.as_deref()), ("h1", Some("u1")));
    assert_eq!((state.footprint.tunnel_id.as_deref(), state.footprint.has_rule), (Some(tunnel), true));
    assert_eq!(state.footprint.access_app_id.as_deref(), Some("app1"));
    assert_eq!(state.footprint.access_policy_ids, ["p1", "p2"]);
    assert_eq!((state.tenant, state.credential), (None, None));
}

#[test]
fn the_second_form_with_its_own_name_for_the_rule_is_read() {
    let tunnel = "11111111-2222-3333-4444-555555555555";
    let ids =
        json!({ "tunnelRouteId": tunnel, "cnameRecordId": "r1", "accessPolicyIds": ["p1"], "resolvedZoneId": "z1" });
    let state = State::read(&with(json!({ "cloudflare_ids": ids.to_string() }))).unwrap();

    assert_eq!((state.footprint.tunnel_id.as_deref(), state.footprint.has_rule), (Some(tunnel), true));
    assert_eq!(
        (state.footprint.cname_record_id.as_deref(), state.footprint.zone_id.as_deref()),
        (Some("r1"), Some("z1"))
    );
}

/// A state as the one older operator leaves it, with the secret in it.
fn state_with_a_secret() -> ConfigMap {
    let ids = json!({
        "hostnameRouteId": "", "cnameRecordId": "r1", "accessAppId": "app1", "accessPolicyIds": ["p1"],
        "serviceTokenId": "s1", "serviceTokenCreated": true, "serviceTokenClientId": "c1.access",
        "serviceTokenClientSecret": CANARY, "serviceTokenSecretName": "app-cfzt-service-token",
    });
    with(json!({
        "cloudflare_ids": ids.to_string(), "hostname": "app.example.com", "tunnel_id": "t1", "zone_id": "z1",
        "tenant_name": "prod", "last_sync_time": "2025-01-01T00:00:00Z",
    }))
}

#[test]
fn scenario_63_a_secret_in_an_old_state_is_noticed_and_does_not_come_along() {
    let old = state_with_a_secret();
    let state = State::read(&old).unwrap();

    assert!(State::needs_scrubbing(&old));
    assert!(!format!("{state:?}").contains(CANARY));
    let written = state.write("ops");
    assert!(!serde_json::to_string(&written).unwrap().contains(CANARY));
    assert!(!State::needs_scrubbing(&written));
    assert_eq!(state.footprint.service_token_id.as_deref(), Some("s1"));
    assert_eq!(state.token_secret_name.as_deref(), Some("app-cfzt-service-token"));
    assert_eq!((state.footprint.has_rule, state.tenant), (true, Some(ObjectKey::cluster("prod"))));
}

#[test]
fn secrets_are_noticed_under_every_name() {
    for data in [
        json!({ "service_token_client_secret": CANARY }),
        json!({ "cloudflare_ids": json!({ "service_token_client_secret": CANARY }).to_string() }),
        json!({ "cloudflare_ids": json!({ "serviceToken": { "clientSecret": CANARY } }).to_string() }),
        json!({ "cloudflare_ids": format!("{{'client_secret': '{CANARY}'}}") }),
    ] {
        let old = with(data);
        assert!(State::needs_scrubbing(&old), "{old:?}");
        let shown = format!("{:?}", State::read(&old));
        assert!(!shown.contains(CANARY), "{shown}");
    }
}

#[test]
fn the_words_alone_are_no_secret() {
    let mut state = full();
    state.route.name = "client-secret".to_owned();
    state.footprint.hostname = text("client-secret.example.com");
    state.token_secret_name = text("client-secret-cfzt-service-token");
    state.last_error = text("Secret x lacks the key client_secret");

    assert!(!State::needs_scrubbing(&state.write("ops")));
}

#[test]
fn ids_that_were_written_as_python_prints_them_are_read() {
    let ids = format!(
        "{{'accessAppId': 'app1', 'cnameRecordId': None, 'serviceTokenCreated': True, 'serviceTokenClientSecret': '{CANARY}'}}"
    );
    let old = with(json!({ "cloudflare_ids": ids }));

    assert!(State::needs_scrubbing(&old));
    assert_eq!(State::read(&old).unwrap().footprint.access_app_id.as_deref(), Some("app1"));
}

#[test]
fn scenario_62_the_flat_form_is_read() {
    let tunnel = "11111111-2222-3333-4444-555555555555";
    let state = State::read(&with(json!({
        "hostname": "app.example.com", "tunnel_id": tunnel, "zone_id": "z1", "tenant_name": "prod",
        "hostname_route_id": tunnel, "cname_record_id": "r1", "dns_record_id": "", "dns_record_ip": "",
        "access_app_id": "app1", "access_policy_ids": "p1,p2", "service_token_id": "s1",
        "service_token_secret_name": "cfzt-svctoken-app", "last_reconcile": "2025-01-01T00:00:00Z",
    })))
    .unwrap();

    let print = &state.footprint;
    assert_eq!((print.tunnel_id.as_deref(), print.has_rule), (Some(tunnel), true));
    assert_eq!((print.cname_record_id.as_deref(), print.dns_record_id.as_deref()), (Some("r1"), None));
    assert_eq!((print.access_app_id.as_deref(), print.access_policy_ids.len()), (Some("app1"), 2));
    assert_eq!(state.token_secret_name.as_deref(), Some("cfzt-svctoken-app"));
    assert_eq!((state.last_sync_time.as_deref(), state.mode), (Some("2025-01-01T00:00:00Z"), PublishMode::Tunnel));
}

#[test]
fn a_flat_state_of_a_name_without_a_tunnel_has_no_rule() {
    let data = json!({ "hostname": "a.example.com", "tunnel_id": "t1", "zone_id": "z1", "dns_record_id": "r1", "dns_record_ip": "10.0.0.1" });
    let state = State::read(&with(data)).unwrap();

    assert_eq!((state.footprint.has_rule, state.mode), (false, PublishMode::DnsOnly));
    assert_eq!(state.footprint.dns_record_ip.as_deref(), Some("10.0.0.1"));
}

#[test]
fn a_state_that_cannot_be_read_says_why_and_shows_nothing() {
    let told = |map: &ConfigMap| State::read(map).unwrap_err().to_string();

    assert_eq!(
        told(&map(json!({ "annotation_hash": "h" }))),
        "state cfzt-default-app cannot be read: httproute_namespace or httproute_name is missing"
    );
    let broken = told(&with(json!({ "cloudflare_ids": format!("{CANARY} {{") })));
    assert!(broken.contains("cloudflare_ids") && !broken.contains(CANARY), "{broken}");
}

#[test]
fn states_of_both_older_operators_are_recognised_by_their_labels() {
    let labelled = |key: &str, value: &str| {
        let mut state = with(json!({}));
        state.metadata.labels = Some([(key.to_owned(), value.to_owned())].into());
        State::is_one(&state)
    };

    assert!(labelled("app.kubernetes.io/component", "state-tracker"));
    assert!(labelled("app.kubernetes.io/managed-by", "cfzt-operator"));
    assert!(!labelled("app.kubernetes.io/managed-by", "helm"));
    assert!(!State::is_one(&with(json!({}))));
}

#[test]
fn only_a_user_can_make_a_state_be_forgotten() {
    let mut state = with(json!({}));
    assert!(!State::is_forced_to_forget(&state));

    state.metadata.annotations = Some([("cfzt.cloudflare.com/force-forget".to_owned(), "true".to_owned())].into());
    assert!(State::is_forced_to_forget(&state));
}

#[test]
fn the_route_shows_what_stands_and_nothing_else() {
    let mut plain = State::new("cfzt-default-app", ObjectKey::namespaced("default", "app"));
    plain.last_sync_time = text("2026-11-16T05:30:00Z");
    plain.footprint =
        Footprint { tunnel_id: text("t1"), has_rule: true, cname_record_id: text("r1"), ..Footprint::default() };

    let shown: Vec<(&str, String)> = plain.outputs().into_iter().collect();

    let expected = [("cnameRecordId", "r1"), ("hostnameRouteId", "t1"), ("lastReconcile", "2026-11-16T05:30:00Z")];
    assert_eq!(shown, expected.map(|(suffix, value)| (suffix, value.to_owned())));
    assert_eq!(full().outputs()["accessPolicyIds"], "p1,p2");
}

fn id() -> impl Strategy<Value = Option<String>> {
    proptest::option::of("[a-z0-9]{1,12}")
}

prop_compose! {
    fn states()(
        ids in proptest::collection::vec(id(), 12), has_rule: bool, deleting: bool, dns_only: bool,
        policies in proptest::collection::vec("[a-z0-9]{1,8}", 0..4), error in proptest::option::of("[ -~]{1,40}"),
    ) -> State {
        let tunnel_id = if has_rule { text("t") } else { ids[0].clone() };
        State {
            uid: ids[1].clone(),
            hash: ids[2].clone().unwrap_or_default(),
            footprint: Footprint {
                account_id: ids[3].clone(), hostname: ids[4].clone(), zone_id: ids[5].clone(), tunnel_id, has_rule,
                cname_record_id: ids[6].clone(), access_app_id: ids[7].clone(), access_policy_ids: policies,
                service_token_id: ids[8].clone(), service_token_client_id: ids[9].clone(),
                ..Footprint::default()
            },
            tenant: ids[10].clone().map(|name| ObjectKey::namespaced("ns", name)),
            mode: if dns_only { PublishMode::DnsOnly } else { PublishMode::Tunnel },
            phase: if deleting { StatePhase::Deleting } else { StatePhase::Active },
            token_secret_name: ids[11].clone(),
            last_error: error.map(|error| error.trim().to_owned()).filter(|error| !error.is_empty()),
            ..State::new("cfzt-default-app", ObjectKey::namespaced("default", "app"))
        }
    }
}

proptest! {
    #[test]
    fn any_state_is_read_back_as_it_was_written(state in states()) {
        prop_assert!(!State::needs_scrubbing(&state.write("ops")));
        prop_assert_eq!(State::read(&state.write("ops")).unwrap(), state);
    }

    #[test]
    fn any_data_is_read_or_refused_without_a_crash(data in proptest::collection::btree_map("[a-z_]{1,20}", "\\PC{0,40}", 0..8)) {
        let map = ConfigMap { data: Some(data), ..ConfigMap::default() };
        let _ = State::read(&map);
        prop_assert!(!State::is_one(&map));
    }
}

#[test]
fn a_name_that_lost_its_application_is_known_since_when() {
    let stands = |app: Option<&str>, hostname: &str| Footprint {
        hostname: text(hostname),
        has_rule: true,
        access_app_id: app.map(str::to_owned),
        ..Footprint::default()
    };
    let mut state = State::new("cfzt-default-app", ObjectKey::namespaced("default", "app"));

    state.stands(stands(None, "a.example.com"), "t0");
    assert_eq!(state.exposed_at, None, "it was public from the first");
    state.stands(stands(Some("x"), "a.example.com"), "t1");
    state.stands(stands(None, "a.example.com"), "t2");
    state.stands(stands(None, "a.example.com"), "t3");
    assert_eq!(state.exposed_at.as_deref(), Some("t2"));
    state.stands(stands(Some("y"), "a.example.com"), "t4");
    assert_eq!(state.exposed_at, None);
    state.stands(stands(None, "b.example.com"), "t5");
    assert_eq!(state.exposed_at, None, "another name");
}

#[test]
fn finding_25_states_of_every_writer_are_selected_by_their_labels_once() {
    let [tracked, managed] = selectors();

    assert_eq!(tracked, "app.kubernetes.io/component=state-tracker");
    assert_eq!(managed, "app.kubernetes.io/managed-by=cfzt-operator,app.kubernetes.io/component!=state-tracker");
    assert_eq!(
        selector_of_others(),
        "app.kubernetes.io/component notin (state-tracker,protected-name),app.kubernetes.io/managed-by!=cfzt-operator"
    );
}
