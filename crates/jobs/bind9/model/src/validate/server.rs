//! What holds for a server → what is wrong with it.

use std::collections::BTreeSet;
use std::net::IpAddr;

use crate::finding::Finding;
use crate::kinds::server::{BindcarConfig, StorageConfig};
use crate::settings::ServerSettings;
use crate::validate::acl::{AclEntry, AclMatch, is_acl_name};
use crate::validate::{dnssec, image, keys, pod_shape};

/// Entries in a list.
const MOST_ENTRIES: usize = 256;
/// Lists that configurations have by themselves.
pub(crate) const OWN_ACLS: [&str; 4] = ["bindy-updaters", "bindy-transfer", "bindy-peers", "bindy-servers"];

/// What is wrong with what holds for a server.
pub fn server(settings: &ServerSettings) -> Vec<Finding> {
    let mut found = Vec::new();
    image::image(Some(&settings.image), settings.version.as_deref(), "spec", &mut found);
    keys::key_config(&settings.keys, "spec.rndcKey", &mut found);
    for (index, reference) in settings.further_keys.iter().enumerate() {
        keys::secret_ref(reference, &format!("spec.rndcSecretRefs[{index}]"), &mut found);
    }
    lists(settings, &mut found);
    if let Some(config) = &settings.config.dnssec {
        dnssec::policy(config, "spec.config.dnssec", &mut found);
    }
    addresses(settings.config.forwarders.as_deref(), "spec.config.forwarders", &mut found);
    addresses(Some(&settings.primary_servers), "spec.primaryServers", &mut found);
    pod_shape::pod_shape(&settings.volumes, &settings.mounts, "spec", &mut found);
    storage(&settings.storage, &mut found);
    if let Some(sidecar) = &settings.sidecar {
        sidecar_fields(sidecar, &mut found);
    }
    service(settings, &mut found);
    found
}

/// The lists under names, and those that use them.
fn lists(settings: &ServerSettings, found: &mut Vec<Finding>) {
    let mut names: BTreeSet<String> = BTreeSet::new();
    for name in settings.acls.keys() {
        let shown = portolan_core::text::shorten(name, 80).into_owned();
        if !is_acl_name(name) {
            found.push(Finding::refused(
                "spec.acls",
                format!("{shown:?} is no name of a list; begin with a letter, and use letters, digits, hyphens"),
            ));
        } else if OWN_ACLS.contains(&name.as_str()) {
            found.push(Finding::refused(
                "spec.acls",
                format!("{shown:?} is a list that servers have by themselves; choose another name"),
            ));
        }
        // A list may use those before it: `named` reads them from top to bottom, and so no two use each other.
        list(&settings.acls[name], &format!("spec.acls.{shown}"), &names, found);
        names.insert(name.clone());
    }
    let config = &settings.config;
    for (entries, name) in [
        (&config.allow_query, "allowQuery"),
        (&config.allow_transfer, "allowTransfer"),
        (&config.listen_on, "listenOn"),
        (&config.listen_on_v6, "listenOnV6"),
    ] {
        list(entries.as_deref().unwrap_or_default(), &format!("spec.config.{name}"), &names, found);
    }
    for (entries, name) in [(&config.listen_on, "listenOn"), (&config.listen_on_v6, "listenOnV6")] {
        own_addresses(entries.as_deref().unwrap_or_default(), &format!("spec.config.{name}"), found);
    }
}

fn list(entries: &[String], field: &str, known: &BTreeSet<String>, found: &mut Vec<Finding>) {
    if entries.len() > MOST_ENTRIES {
        found
            .push(Finding::refused(field, format!("has {} entries, and at most {MOST_ENTRIES} may be", entries.len())));
    }
    for (index, entry) in entries.iter().take(MOST_ENTRIES).enumerate() {
        match AclEntry::parse(entry) {
            Err(why) => found.push(Finding::refused(format!("{field}[{index}]"), why)),
            Ok(entry) if !entry.is_known(known) => {
                let name = entry.acl().unwrap_or_default().to_owned();
                found.push(Finding::refused(
                    format!("{field}[{index}]"),
                    format!(
                        "{name:?} is none of spec.acls, or of those before it; define it there, or write an address"
                    ),
                ));
            }
            Ok(_) => {}
        }
    }
}

/// A server listens on addresses; a key is none.
fn own_addresses(entries: &[String], field: &str, found: &mut Vec<Finding>) {
    for (index, entry) in entries.iter().take(MOST_ENTRIES).enumerate() {
        if AclEntry::parse(entry).is_ok_and(|entry| matches!(entry.matches, AclMatch::Key(_))) {
            found.push(Finding::refused(
                format!("{field}[{index}]"),
                "nobody listens on a key; write an address, or any",
            ));
        }
    }
}

fn addresses(entries: Option<&[String]>, field: &str, found: &mut Vec<Finding>) {
    for (index, entry) in entries.unwrap_or_default().iter().enumerate() {
        if entry.parse::<IpAddr>().is_err() {
            let shown = portolan_core::text::shorten(entry, 80);
            found.push(Finding::refused(
                format!("{field}[{index}]"),
                format!("{shown:?} is no address; write one alone, as 192.0.2.53 or 2001:db8::53"),
            ));
        }
    }
}

fn storage(storage: &StorageConfig, found: &mut Vec<Finding>) {
    let kind = storage.storage_type.as_deref().unwrap_or("emptyDir");
    let claim = storage.persistent_volume_claim.as_ref();
    match kind {
        "emptyDir" if claim.is_some() && storage.storage_type.is_some() => found.push(Finding::ignored(
            "spec.storage.persistentVolumeClaim",
            "storageType is emptyDir; write persistentVolumeClaim there to have a disk that stays",
        )),
        "emptyDir" => {}
        "persistentVolumeClaim" => {
            let Some(claim) = claim else {
                found.push(Finding::refused(
                    "spec.storage.persistentVolumeClaim",
                    "is missing; say claimName, or size for a disk that is made",
                ));
                return;
            };
            if claim.claim_name.is_none() && claim.size.is_none() {
                found.push(Finding::refused(
                    "spec.storage.persistentVolumeClaim.size",
                    "is missing; write one as 1Gi, or name a claim that is there",
                ));
            }
            if claim.size.as_deref().is_some_and(|size| !is_quantity(size)) {
                found.push(Finding::refused("spec.storage.persistentVolumeClaim.size", "is no size; write one as 1Gi"));
            }
            if let Some(name) = claim.claim_name.as_deref().filter(|name| !image::is_object_name(name)) {
                let shown = portolan_core::text::shorten(name, 40);
                found.push(Finding::refused(
                    "spec.storage.persistentVolumeClaim.claimName",
                    format!("{shown:?} is no name of a claim"),
                ));
            }
        }
        other => {
            let shown = portolan_core::text::shorten(other, 40);
            found.push(Finding::refused(
                "spec.storage.storageType",
                format!("{shown:?} is neither emptyDir nor persistentVolumeClaim"),
            ));
        }
    }
}

fn is_quantity(text: &str) -> bool {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let known = ["", "k", "M", "G", "T", "P", "E", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"].contains(&unit);
    known && number.parse::<f64>().is_ok_and(|number| number > 0.0)
}

/// Servers are managed without a sidecar: what is said of it has no effect, but for what its Service is to be.
fn sidecar_fields(sidecar: &BindcarConfig, found: &mut Vec<Finding>) {
    let BindcarConfig { image, image_pull_policy, resources, port, service_spec: _, log_level, env_vars } = sidecar;
    let said = [
        ("image", image.is_some()),
        ("imagePullPolicy", image_pull_policy.is_some()),
        ("resources", resources.is_some()),
        ("port", port.is_some()),
        ("logLevel", log_level.is_some()),
        ("envVars", env_vars.is_some()),
    ];
    for (name, _) in said.into_iter().filter(|(_, said)| *said) {
        found.push(Finding::ignored(format!("spec.bindcarConfig.{name}"), "servers are managed without a sidecar"));
    }
}

/// Fields of a Service that it is given, which have to be an object, and never say whom it selects.
fn service(settings: &ServerSettings, found: &mut Vec<Finding>) {
    let spec = settings.service.spec.as_ref().and_then(serde_json::Value::as_object);
    if spec.is_some_and(|spec| spec.contains_key("selector")) {
        found.push(Finding::ignored("spec.service.spec.selector", "a Service selects the pods of its instance"));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, from_value, json};

    use super::*;
    use crate::finding::{Weight, sentence};
    use crate::settings;

    fn said(cluster: Value, instance: Value, weight: Weight) -> String {
        let mut spec = json!({"clusterRef": "c", "role": "primary"});
        spec.as_object_mut().unwrap().extend(instance.as_object().unwrap().clone());
        let cluster = from_value(cluster).unwrap();
        let settings = settings::settings(&from_value(spec).unwrap(), Some(&cluster), None);
        sentence(&server(&settings), weight).unwrap_or_default()
    }

    fn refused(cluster: Value, instance: Value) -> String {
        said(cluster, instance, Weight::Refused)
    }

    #[test]
    fn a_manifest_that_says_little_or_much_that_is_right_has_no_findings() {
        assert_eq!(refused(json!({}), json!({})), "");
        let cluster = json!({
            "acls": {"office": ["10.0.0.0/8"], "partners": ["office", "!10.9.0.0/16", "key partner"]},
            "global": {"allowQuery": ["partners", "localhost"], "forwarders": ["9.9.9.9"], "listenOn": ["any"]},
        });
        let storage = json!({"storageType": "persistentVolumeClaim", "persistentVolumeClaim": {"size": "1Gi"}});
        assert_eq!(refused(cluster, json!({ "storage": storage })), "");
    }

    #[test]
    fn every_wrong_field_is_named_with_what_to_write() {
        for (cluster, instance, sentence) in [
            (json!({"global": {"allowQuery": ["any; }; zone \"x\" {"]}}), json!({}), "spec.config.allowQuery[0]"),
            (json!({}), json!({"config": {"allowTransfer": ["home"]}}), "none of spec.acls"),
            (json!({"acls": {"a": ["b"], "b": ["any"]}}), json!({}), "spec.acls.a[0]"),
            (json!({"acls": {"any": []}}), json!({}), "is no name of a list"),
            (json!({"acls": {"bindy-updaters": ["any"]}}), json!({}), "by themselves"),
            (json!({"global": {"forwarders": ["9.9.9.9:53"]}}), json!({}), "is no address"),
            (json!({"global": {"listenOn": ["key a"]}}), json!({}), "nobody listens on a key"),
            (json!({}), json!({"primaryServers": ["ns1.example.com"]}), "spec.primaryServers[0]"),
            (json!({}), json!({"storage": {"storageType": "nfs"}}), "neither emptyDir"),
            (json!({}), json!({"storage": {"storageType": "persistentVolumeClaim"}}), "is missing"),
            (
                json!({}),
                json!({"storage": {"storageType": "persistentVolumeClaim", "persistentVolumeClaim": {"size": "big"}}}),
                "is no size",
            ),
            (json!({"primary": {"rndcKey": {"rotateAfter": "soon"}}}), json!({}), "is no age"),
            (
                json!({"global": {"dnssec": {"signing": {"enabled": true, "kskLifetime": "1y"}}}}),
                json!({}),
                "kskLifetime",
            ),
            (json!({"image": {"image": "bind 9"}}), json!({}), "is no image"),
            (json!({}), json!({"rndcSecretRef": {"name": "x", "algorithm": "hmac-sha1"}}), "too weak"),
            (json!({"rndcSecretRefs": [{"name": "A"}]}), json!({}), "spec.rndcSecretRefs[0].name"),
        ] {
            let said = refused(cluster.clone(), instance.clone());
            assert!(said.contains(sentence), "{cluster} {instance} said {said:?}");
        }
    }

    #[test]
    fn fields_without_effect_are_told_and_refuse_nothing() {
        let cluster = json!({"global": {"bindcarConfig": {"image": "x", "port": 8080}}, "primary": {"service": {"spec": {"selector": {}}}}});

        let told = said(cluster.clone(), json!({}), Weight::Ignored);

        assert!(
            told.contains("bindcarConfig.image") && told.contains("bindcarConfig.port") && told.contains("selector"),
            "{told}"
        );
        assert_eq!(refused(cluster, json!({})), "");
    }
}
