//! A Service's address fields: `clusterIP`, `clusterIPs`, `ipFamilies`, `ipFamilyPolicy` → the fields filled in from each
//! other and from what was there, and what is wrong with them. There are addresses of one family: IPv4.

use portolan_schema::{FieldError, Path};
use serde_json::{Value, json};

use super::service::{is_headless, needs_health_port};
use crate::check::{Errors, one_of};
use crate::ip::{address, read_address};
use crate::value::{copy, default, existing, is_empty, list, list_mut, number, text, text_at, texts};

/// Fills in the address fields and tells what stands in the way of it. The real server does this before all other checks.
pub fn settle(service: &mut Value, old: Option<&Value>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let before = old.map(|old| old["spec"].clone());
    let Some(spec) = existing(service, "spec") else {
        return errors;
    };
    if let Some(before) = &before {
        keep_allocated(spec, before);
    }
    align(spec, before.as_ref());
    if text(spec, "type") == "ExternalName" {
        return errors;
    }
    if spec["ipFamilyPolicy"].is_null() {
        let kept = before.as_ref().and_then(|before| before.get("ipFamilyPolicy").cloned());
        let open = text(spec, "clusterIP") == "None" && is_empty(&spec["selector"]);
        let usual = if open { "RequireDualStack" } else { "SingleStack" };
        spec["ipFamilyPolicy"] = kept.filter(|kept| !is_empty(kept)).unwrap_or_else(|| json!(usual));
    }
    let root = Path::root();
    let path = root.field("spec");
    validate_addresses(spec, before.as_ref(), &path, &mut errors);
    if errors.is_empty() {
        choose_families(spec, before.as_ref(), &path, &mut errors);
    }
    errors
}

/// Puts back addresses and ports that the update left out.
fn keep_allocated(spec: &mut Value, old: &Value) {
    let addressed = |spec: &Value| text(spec, "type") != "ExternalName";
    if addressed(spec) && addressed(old) {
        for field in ["clusterIP", "clusterIPs"] {
            if is_empty(&spec[field]) {
                copy(spec, old, field);
            }
        }
    }
    if gets_ports(spec) && gets_ports(old) {
        keep_node_ports(spec, old);
    }
    if needs_health_port(spec) && needs_health_port(old) && number(spec, "healthCheckNodePort").unwrap_or(0) == 0 {
        copy(spec, old, "healthCheckNodePort");
    }
}

/// Whether every port of a service has one on the nodes, too.
pub fn gets_ports(spec: &Value) -> bool {
    match text(spec, "type") {
        "NodePort" => true,
        "LoadBalancer" => spec["allocateLoadBalancerNodePorts"] != json!(false),
        _ => false,
    }
}

fn keep_node_ports(spec: &mut Value, old: &Value) {
    let ports = |spec: &Value| -> Vec<i64> {
        list(spec, "ports").iter().filter_map(|port| number(port, "nodePort")).filter(|port| *port != 0).collect()
    };
    let given = ports(spec);
    let used: Vec<i64> = ports(old).into_iter().filter(|port| given.contains(port)).collect();
    for port in list_mut(spec, "ports") {
        if number(port, "nodePort").unwrap_or(0) != 0 {
            continue;
        }
        let name = text(port, "name").to_owned();
        let there = list(old, "ports").iter().rfind(|other| text(other, "name") == name);
        if let Some(number) = there.and_then(|there| number(there, "nodePort")).filter(|port| !used.contains(port))
            && number != 0
        {
            port["nodePort"] = json!(number);
        }
    }
}

/// Keeps `clusterIP` and the first of `clusterIPs` the same where only one of them was given or changed.
fn align(spec: &mut Value, old: Option<&Value>) {
    let single = text(spec, "clusterIP").to_owned();
    let Some(old) = old else {
        if !single.is_empty() && is_empty(&spec["clusterIPs"]) {
            spec["clusterIPs"] = json!([single]);
        }
        return;
    };
    let before = text(old, "clusterIP");
    if single == before && is_empty(&spec["clusterIPs"]) {
        copy(spec, old, "clusterIPs");
    }
    if single != before && spec["clusterIPs"] == old["clusterIPs"] {
        spec["clusterIPs"] = if single.is_empty() && !before.is_empty() { Value::Null } else { json!([single]) };
    }
}

/// The families of a service's addresses, by what it asks for and what there is.
fn choose_families(spec: &mut Value, old: Option<&Value>, path: &Path<'_>, errors: &mut Errors) {
    let policy = spec["ipFamilyPolicy"].clone();
    let single = policy == "SingleStack";
    if old.is_some_and(|old| is_settled(spec, old)) {
        return;
    }
    if let Some(old) = old {
        reduce(spec, old, single, path, errors);
    }
    let mut refuse = |detail: &str| errors.push(FieldError::invalid(&path.field("ipFamilyPolicy"), &policy, detail));
    if single && list(spec, "clusterIPs").len() == 2 {
        refuse("must be 'RequireDualStack' or 'PreferDualStack' when multiple cluster IPs are specified");
    }
    if single && list(spec, "ipFamilies").len() == 2 {
        refuse("must be 'RequireDualStack' or 'PreferDualStack' when multiple IP families are specified");
    }
    add_families_of_addresses(spec, path, errors);
    if !errors.is_empty() {
        return;
    }
    if text(spec, "clusterIP") == "None" && is_empty(&spec["selector"]) {
        default(spec, "ipFamilies", json!(["IPv4"]));
        if let Some(families) = spec["ipFamilies"].as_array_mut().filter(|families| families.len() == 1 && !single) {
            let other = if families[0] == "IPv4" { "IPv6" } else { "IPv4" };
            families.push(json!(other));
        }
        return;
    }
    if policy == "RequireDualStack" {
        let detail = "this cluster is not configured for dual-stack services";
        errors.push(FieldError::invalid(&path.field("ipFamilyPolicy"), &policy, detail));
    }
    for (index, family) in list(spec, "ipFamilies").iter().enumerate().filter(|(_, family)| **family != "IPv4") {
        let path = path.field("ipFamilies");
        errors.push(FieldError::invalid(&path.index(index), family, "not configured on this cluster"));
    }
    if errors.is_empty() {
        default(spec, "ipFamilies", json!(["IPv4"]));
    }
}

/// Whether an update of a service that takes what there is changes none of this.
fn is_settled(spec: &Value, old: &Value) -> bool {
    let prefers = |spec: &Value| text(spec, "ipFamilyPolicy") == "PreferDualStack";
    let same = |field: &str| list(spec, field) == list(old, field);
    prefers(spec) && prefers(old) && spec["type"] == old["type"] && same("clusterIPs") && same("ipFamilies")
}

/// A service of two families gives up the second only when it says so.
fn reduce(spec: &mut Value, old: &Value, single: bool, path: &Path<'_>, errors: &mut Errors) {
    for (field, what) in [("clusterIPs", "cluster IP"), ("ipFamilies", "IP family")] {
        let (new, before) = (list(spec, field).to_vec(), list(old, field));
        if single && new == before && new.len() > 1 {
            spec[field] = json!([new[0]]);
        } else if !single && !new.is_empty() && new.len() < before.len() {
            let detail = format!("must be 'SingleStack' to release the secondary {what}");
            let policy = &spec["ipFamilyPolicy"];
            errors.push(FieldError::invalid(&path.field("ipFamilyPolicy"), policy, detail));
        }
    }
}

fn add_families_of_addresses(spec: &mut Value, path: &Path<'_>, errors: &mut Errors) {
    let addresses: Vec<String> = texts(spec, "clusterIPs").into_iter().map(str::to_owned).collect();
    for (index, given) in addresses.iter().enumerate() {
        if given == "None" {
            return;
        }
        if index < list(spec, "ipFamilies").len() {
            continue;
        }
        if given.contains(':') {
            let path = path.field("clusterIPs");
            let detail = "IPv6 is not configured on this cluster";
            errors.push(FieldError::invalid(&path.index(index), &spec["clusterIPs"], detail));
            continue;
        }
        default(spec, "ipFamilies", json!([]));
        if let Some(families) = spec["ipFamilies"].as_array_mut() {
            families.push(json!("IPv4"));
        }
    }
}

/// Addresses and families, each by itself and against each other.
pub(super) fn validate_addresses(spec: &Value, old: Option<&Value>, path: &Path<'_>, errors: &mut Errors) {
    if text(spec, "type") == "ExternalName" {
        return;
    }
    let at = path.field("clusterIPs");
    let (single, all) = (text(spec, "clusterIP"), texts(spec, "clusterIPs"));
    let mut refuse = |detail: &str| errors.push(FieldError::invalid(&at, &spec["clusterIPs"], detail));
    match (single.is_empty(), all.first()) {
        (false, None) => errors.push(FieldError::required(&at, "")),
        (false, Some(first)) if *first != single => refuse("first value must match `clusterIP`"),
        (true, Some(_)) => refuse("must be empty when `clusterIP` is not specified"),
        _ => {}
    }
    validate_families(spec, path, errors);
    let known = old.map(|old| texts(old, "clusterIPs")).unwrap_or_default();
    let mut sound = true;
    for (index, shown) in all.iter().enumerate() {
        if index == 0 && *shown == "None" {
            if all.len() > 1 {
                sound = false;
                let detail = "'None' must be the first and only value";
                errors.push(FieldError::invalid(&at, &spec["clusterIPs"], detail));
            }
        } else if !known.contains(shown) {
            sound &= address(errors, shown, &at.index(index)).is_some();
        }
    }
    if all.len() > 2 {
        errors.push(FieldError::invalid(&at, &spec["clusterIPs"], "may only hold up to 2 values"));
    }
    if sound {
        compare_families(spec, &at, errors);
    }
}

fn validate_families(spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    let families = list(spec, "ipFamilies");
    for (index, family) in families.iter().enumerate() {
        let path = path.field("ipFamilies");
        if family != "IPv4" && family != "IPv6" {
            errors.push(FieldError::not_supported(&path.index(index), family, &["IPv4", "IPv6"]));
        }
        if families[..index].contains(family) {
            errors.push(FieldError::duplicate(&path.index(index), family));
        }
    }
    let policies = &["PreferDualStack", "RequireDualStack", "SingleStack"];
    one_of(errors, spec, "ipFamilyPolicy", policies, path);
}

fn compare_families(spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    let addresses = texts(spec, "clusterIPs");
    let is_v4 = |text: &&str| read_address(text).is_some_and(|address| address.is_ipv4());
    if addresses.len() > 1 && (addresses.iter().all(is_v4) || !addresses.iter().any(is_v4)) {
        let detail = "may specify no more than one IP for each IP family";
        errors.push(FieldError::invalid(path, &spec["clusterIPs"], detail));
    }
    if is_headless(spec) {
        return;
    }
    for (index, (shown, family)) in addresses.iter().zip(texts(spec, "ipFamilies")).enumerate() {
        let wrong = match family {
            "IPv4" => shown.contains(':'),
            "IPv6" => !shown.contains(':'),
            _ => false,
        };
        if wrong {
            let detail = format!("expected an {family} value as indicated by `ipFamilies[{index}]`");
            errors.push(FieldError::invalid(&path.index(index), &json!(shown), detail));
        }
    }
}

/// The first address and family never change, unless the service is, or was, a mere name.
pub(super) fn validate_change(spec: &Value, old: &Value, path: &Path<'_>, errors: &mut Errors) {
    let named = |spec: &Value| text(spec, "type") == "ExternalName";
    if named(spec) || named(old) || (is_headless(spec) && is_headless(old)) {
        return;
    }
    stays(spec, old, "clusterIPs", "clusterIP", path, errors);
    if is_headless(spec) == is_headless(old) {
        stays(spec, old, "ipFamilies", "ipFamily", path, errors);
    }
}

fn stays(spec: &Value, old: &Value, field: &str, one: &str, path: &Path<'_>, errors: &mut Errors) {
    let (new, before) = (list(spec, field), list(old, field));
    let at = path.field(field);
    let mut refuse = |index: usize, detail: &str| {
        errors.push(FieldError::invalid(&at.index(index), &spec[field], detail));
    };
    if new.len() == before.len() {
        for (index, _) in new.iter().zip(before).enumerate().filter(|(_, (new, before))| new != before) {
            refuse(if field == "clusterIPs" { index } else { 0 }, "may not change once set");
        }
        return;
    }
    if new.len() < before.len() && list(spec, "clusterIPs").is_empty() {
        refuse(0, &format!("primary {one} can not be unset"));
    }
    if let (Some(new), Some(before)) = (new.first(), before.first())
        && new != before
    {
        refuse(0, "may not change once set");
    }
    if new.len() == 1 && before.len() > 1 && text_at(spec, "/ipFamilyPolicy") != "SingleStack" {
        let detail = format!("must be set to 'SingleStack' when releasing the secondary {one}");
        errors.push(FieldError::invalid(&path.field("ipFamilyPolicy"), &spec["ipFamilyPolicy"], detail));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(spec: Value) -> Vec<String> {
        settle(&mut json!({"spec": spec}), None).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_headless_service_without_a_selector_may_have_endpoints_of_both_families() {
        let mut service = json!({"spec": {"type": "ClusterIP", "clusterIP": "None"}});

        let errors = settle(&mut service, None);

        assert!(errors.is_empty());
        assert_eq!(service["spec"]["ipFamilies"], json!(["IPv4", "IPv6"]));
        assert_eq!(service["spec"]["ipFamilyPolicy"], "RequireDualStack");
    }

    #[test]
    fn two_families_are_refused_and_preferring_two_is_not() {
        let wanted = "spec.ipFamilyPolicy: Invalid value: \"RequireDualStack\": this cluster is not configured for \
                      dual-stack services";

        assert_eq!(problems(json!({"type": "ClusterIP", "ipFamilyPolicy": "RequireDualStack"})), [wanted]);
        assert!(problems(json!({"type": "ClusterIP", "ipFamilyPolicy": "PreferDualStack"})).is_empty());
    }

    #[test]
    fn an_update_that_names_no_address_and_no_node_port_keeps_both() {
        let old = json!({"spec": {"type": "NodePort", "clusterIP": "10.0.0.1", "clusterIPs": ["10.0.0.1"],
            "ipFamilies": ["IPv4"], "ipFamilyPolicy": "SingleStack", "ports": [{"port": 80, "nodePort": 30001}]}});
        let mut new = json!({"spec": {"type": "NodePort", "ports": [{"port": 81}]}});

        let errors = settle(&mut new, Some(&old));

        assert!(errors.is_empty());
        assert_eq!(new["spec"]["clusterIPs"], json!(["10.0.0.1"]));
        assert_eq!(new["spec"]["ports"][0]["nodePort"], 30001);
    }
}
