use serde_json::{from_value, json};

use super::*;
use crate::conf::{FileSet, PodAddress, files};
use crate::keys::{self, FreshSecrets, KeyPolicy, KeyRing};
use crate::settings::settings;
use crate::testing;

fn made(instance: Value, cluster: Value, before: Option<BTreeMap<String, String>>) -> Vec<Value> {
    let labels =
        json!({(names::MANAGED_BY): "Bind9Cluster", (names::ROLE): "primary", (names::CLUSTER): "main", "tier": "dns"});
    let instance = testing::instance(&testing::key("main-primary-0"), "primary", labels, instance);
    let settings = settings(&instance.spec, Some(&from_value(cluster).unwrap()), None);
    let policy = KeyPolicy {
        algorithm: crate::kinds::keys::RndcAlgorithm::default(),
        rotate_after_hours: Some(24),
        given: None,
    };
    let secret = || "QUJD".to_owned();
    let fresh = FreshSecrets { control: secret(), update: secret(), transfer: secret() };
    let ring = KeyRing::created(&instance.key(), &policy, fresh, jiff::Timestamp::UNIX_EPOCH);
    let given =
        pod::given(&settings.files).into_iter().map(|(_, file, _)| (file.to_owned(), "// nothing\n".to_owned()));
    let set = FileSet {
        server: instance.key(),
        settings: &settings,
        ring: &ring,
        further: &[],
        following: &[],
        followers: &[],
        address: PodAddress::Any,
        given: given.collect(),
    };
    let files = files(&set).unwrap();
    let keys = keys::written(&ring, &policy);
    objects(&ObjectSet {
        instance: &instance,
        settings: &settings,
        files: &files,
        keys: &keys,
        selector: before,
        gate: ReadyWhen::Answers,
    })
}

fn usual() -> Vec<Value> {
    made(json!({}), json!({}), None)
}

fn of<'a>(objects: &'a [Value], kind: &str, name: &str) -> &'a Value {
    let fits = |object: &&Value| object["kind"] == kind && object["metadata"]["name"] == name;
    objects.iter().find(fits).unwrap_or_else(|| panic!("there is a {kind} {name}"))
}

#[test]
fn scenario_12_the_configuration_comes_before_the_workload_and_that_before_the_service() {
    let objects = usual();
    let order: Vec<String> = objects
        .iter()
        .map(|object| format!("{} {}", object["kind"].as_str().unwrap(), object["metadata"]["name"].as_str().unwrap()))
        .collect();

    assert_eq!(
        order,
        [
            "ServiceAccount bind9",
            "Secret main-primary-0-rndc-key",
            "ConfigMap main-primary-0-config",
            "Deployment main-primary-0",
            "Service main-primary-0",
            "Service main-primary-0-control",
            "PodDisruptionBudget main-primary-0",
        ]
    );
}

#[test]
fn everything_but_the_shared_account_goes_with_its_instance() {
    for object in &usual()[1..] {
        assert_eq!(object["metadata"]["ownerReferences"][0]["uid"], "main-primary-0", "{object}");
        assert_eq!(object["metadata"]["labels"]["app.kubernetes.io/managed-by"], "Bind9Cluster");
    }
    assert!(usual()[0]["metadata"].get("ownerReferences").is_none());
}

#[test]
fn a_selector_has_two_labels_for_good_and_one_that_is_there_is_kept() {
    let two = json!({"app": "bind9", "instance": "main-primary-0"});
    assert_eq!(of(&usual(), "Deployment", "main-primary-0")["spec"]["selector"]["matchLabels"], two);

    let before: BTreeMap<String, String> = [("app", "bind9"), ("instance", "main-primary-0"), ("older", "label")]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .into();
    let objects = made(json!({}), json!({}), Some(before.clone()));
    let spec = &of(&objects, "Deployment", "main-primary-0")["spec"];

    assert_eq!(spec["selector"]["matchLabels"], json!(before));
    assert_eq!(spec["template"]["metadata"]["labels"]["older"], "label", "pods are still selected");
}

#[test]
fn pods_fit_the_restricted_profile_and_run_one_container() {
    let objects = usual();
    let spec = &of(&objects, "Deployment", "main-primary-0")["spec"]["template"]["spec"];
    let container = &spec["containers"][0];

    assert_eq!(spec["containers"].as_array().unwrap().len(), 1);
    assert_eq!(
        (&spec["securityContext"]["runAsNonRoot"], &spec["securityContext"]["runAsUser"]),
        (&json!(true), &json!(101))
    );
    assert_eq!(container["securityContext"]["capabilities"]["drop"], json!(["ALL"]));
    assert_eq!(container["securityContext"]["readOnlyRootFilesystem"], true);
    assert_eq!(container["image"], "internetsystemsconsortium/bind9:9.18");
    assert_eq!(spec["automountServiceAccountToken"], false);
}

#[test]
fn configuration_is_mounted_as_folders_so_that_it_follows_its_objects() {
    let objects = usual();
    let mounts =
        &of(&objects, "Deployment", "main-primary-0")["spec"]["template"]["spec"]["containers"][0]["volumeMounts"];

    assert!(mounts.as_array().unwrap().iter().all(|mount| mount.get("subPath").is_none()), "{mounts}");
}

#[test]
fn users_files_and_volumes_are_mounted_where_they_say() {
    let volumes = json!({"volumes": [{"name": "v", "emptyDir": {}}], "volumeMounts": [{"name": "v", "mountPath": "/data/x"}],
        "configMapRefs": {"namedConf": "own"}, "image": {"image": "reg:5000/bind9", "imagePullSecrets": ["p"]}, "version": "9.20"});
    let objects = made(volumes, json!({}), None);
    let spec = &of(&objects, "Deployment", "main-primary-0")["spec"]["template"]["spec"];
    let paths: Vec<&str> = spec["containers"][0]["volumeMounts"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|mount| mount["mountPath"].as_str())
        .collect();

    assert!(
        paths.contains(&"/data/x")
            && paths.contains(&"/etc/bind/named.conf")
            && paths.contains(&"/etc/bind/named.conf.options"),
        "{paths:?}"
    );
    assert_eq!(spec["containers"][0]["image"], "reg:5000/bind9:9.20");
    assert_eq!(spec["imagePullSecrets"], json!([{"name": "p"}]));
}

#[test]
fn where_a_disk_is_asked_for_each_pod_has_one_or_the_one_pod_has_the_users() {
    let storage =
        |claim: Value| json!({"storage": {"storageType": "persistentVolumeClaim", "persistentVolumeClaim": claim}});
    let each = made(storage(json!({"size": "2Gi", "storageClassName": "fast"})), json!({}), None);
    let one = made(storage(json!({"claimName": "zones"})), json!({}), None);

    let set = of(&each, "StatefulSet", "main-primary-0");
    assert_eq!(set["spec"]["volumeClaimTemplates"][0]["spec"]["resources"]["requests"]["storage"], "2Gi");
    assert_eq!(set["spec"]["serviceName"], "main-primary-0-control");
    let deployment = of(&one, "Deployment", "main-primary-0");
    assert_eq!(deployment["spec"]["strategy"], json!({"type": "Recreate"}));
    let volumes = deployment["spec"]["template"]["spec"]["volumes"].as_array().unwrap();
    assert!(volumes.contains(&json!({"name": "cache", "persistentVolumeClaim": {"claimName": "zones"}})));
}

#[test]
fn the_public_service_has_dns_alone_and_control_is_on_one_of_its_own() {
    let cluster = json!({"primary": {"service": {"annotations": {"a": "b"}, "spec": {
        "type": "LoadBalancer", "selector": {"app": "other"}, "unknown": 1,
        "ports": [{"name": "dns-udp", "nodePort": 30053}, {"name": "dot", "port": 853}]}}}});
    let objects = made(json!({}), cluster, None);
    let service = of(&objects, "Service", "main-primary-0");
    let control = of(&objects, "Service", "main-primary-0-control");

    assert_eq!(
        (&service["spec"]["type"], &service["metadata"]["annotations"]),
        (&json!("LoadBalancer"), &json!({"a": "b"}))
    );
    assert_eq!(service["spec"]["selector"]["app"], "bind9", "it selects its own pods");
    assert_eq!(service["spec"].get("unknown"), None);
    let names: Vec<&str> =
        service["spec"]["ports"].as_array().unwrap().iter().filter_map(|port| port["name"].as_str()).collect();
    assert_eq!(names, ["dns-tcp", "dns-udp", "dot"]);
    assert_eq!(
        service["spec"]["ports"][1],
        json!({"name": "dns-udp", "port": 53, "targetPort": 5353, "protocol": "UDP", "nodePort": 30053})
    );
    assert_eq!(
        (&control["spec"]["clusterIP"], &control["spec"]["publishNotReadyAddresses"]),
        (&json!("None"), &json!(true))
    );
}

#[test]
fn keys_are_in_the_secret_alone_and_where_the_older_operator_had_them() {
    let objects = usual();
    let secret = of(&objects, "Secret", "main-primary-0-rndc-key");

    for entry in ["key-name", "algorithm", "secret", "rndc.key", "keys.conf"] {
        assert!(secret["data"].get(entry).is_some(), "{entry}");
    }
    assert_eq!(secret["metadata"]["annotations"][names::KEYS_ROTATE_AT], "1970-01-02T00:00:00Z");
    let others = objects.iter().filter(|object| object["kind"] != "Secret");
    assert!(others.map(ToString::to_string).all(|text| !text.contains("QUJD")));
}

#[test]
fn a_secret_of_the_users_is_left_alone_and_one_that_is_described_looks_so() {
    let theirs = made(json!({"rndcKey": {"secretRef": {"name": "main-primary-0-rndc-key"}}}), json!({}), None);
    assert!(theirs.iter().all(|object| object["metadata"]["name"] != "main-primary-0-rndc-key"));

    let described = made(
        json!({"rndcKey": {"secret": {"metadata": {"name": "keys", "labels": {"app": "mine", "a": "b"}}, "type": "x/y"}}}),
        json!({}),
        None,
    );
    let secret = of(&described, "Secret", "keys");
    assert_eq!(
        (&secret["type"], &secret["metadata"]["labels"]["a"], &secret["metadata"]["labels"]["app"]),
        (&json!("x/y"), &json!("b"), &json!("bind9"))
    );
}
