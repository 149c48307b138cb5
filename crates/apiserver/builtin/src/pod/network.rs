//! A pod's names on the network: DNS, host aliases and its own → what is wrong with them.

use portolan_schema::{FieldError, Path};
use serde_json::{Value, json};

use super::setting::Setting;
use crate::check::Errors;
use crate::ip::address;
use crate::meta::invalid;
use crate::names;
use crate::value::{flag_at, list, text, texts};

/// Name servers and search domains.
pub(super) fn validate_resolver(spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    let config = &spec["dnsConfig"];
    let servers = texts(config, "nameservers");
    if text(spec, "dnsPolicy") == "None" {
        if config.is_null() {
            errors.push(FieldError::required(path, "must provide `dnsConfig` when `dnsPolicy` is None"));
            return;
        }
        if servers.is_empty() {
            let detail = "must provide at least one DNS nameserver when `dnsPolicy` is None";
            errors.push(FieldError::required(&path.field("nameservers"), detail));
            return;
        }
    }
    if servers.len() > 3 {
        let detail = "must not have more than 3 nameservers";
        errors.push(FieldError::invalid(&path.field("nameservers"), &config["nameservers"], detail));
    }
    for (index, server) in servers.iter().enumerate() {
        address(errors, server, &path.field("nameservers").index(index));
    }
    validate_searches(config, &path.field("searches"), errors);
    for (index, option) in list(config, "options").iter().enumerate() {
        if text(option, "name").is_empty() {
            errors.push(FieldError::required(&path.field("options").index(index), "must not be empty"));
        }
    }
}

fn validate_searches(config: &Value, path: &Path<'_>, errors: &mut Errors) {
    let searches = texts(config, "searches");
    if searches.len() > 32 {
        let detail = "must not have more than 32 search paths";
        errors.push(FieldError::invalid(path, &config["searches"], detail));
    }
    if searches.join(" ").len() > 2048 {
        let detail = "must not have more than 2048 characters (including spaces) in the search list";
        errors.push(FieldError::invalid(path, &config["searches"], detail));
    }
    for (index, search) in searches.into_iter().enumerate().filter(|(_, search)| *search != ".") {
        let search = search.strip_suffix('.').unwrap_or(search);
        invalid(errors, &path.index(index), search, names::underscored_subdomain(search));
    }
}

/// Further names of addresses.
pub(super) fn validate_aliases(spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    for (index, alias) in list(spec, "hostAliases").iter().enumerate() {
        let path = path.index(index);
        address(errors, text(alias, "ip"), &path.field("ip"));
        for (index, name) in texts(alias, "hostnames").into_iter().enumerate() {
            invalid(errors, &path.field("hostnames").index(index), name, names::dns_subdomain(name));
        }
    }
}

/// The pod's own name.
pub(super) fn validate_hostname(setting: &Setting<'_>, path: &Path<'_>, errors: &mut Errors) {
    for field in ["hostname", "subdomain"] {
        let name = text(setting.spec, field);
        if !name.is_empty() {
            invalid(errors, &path.field(field), name, names::dns_label(name));
        }
    }
    let Some(name) = setting.spec["hostnameOverride"].as_str() else {
        return;
    };
    let path = path.field("hostnameOverride");
    if flag_at(setting.spec, "/setHostnameAsFQDN") {
        errors.push(FieldError::forbidden(&path, "may not be specified when setHostnameAsFQDN is true"));
    }
    if setting.host_network() {
        errors.push(FieldError::forbidden(&path, "may not be specified when hostNetwork is true"));
    }
    if name.len() > 64 {
        errors.push(FieldError::too_long(&path, 64));
    }
    invalid(errors, &path, name, names::dns_subdomain(name));
}

/// Conditions that a pod waits for, and gates before its scheduling.
pub(super) fn validate_gates(spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    for (index, gate) in list(spec, "readinessGates").iter().enumerate() {
        let path = path.field("readinessGates");
        let path = path.index(index);
        let kind = text(gate, "conditionType");
        invalid(errors, &path.field("conditionType"), kind, names::qualified_name(kind));
    }
    let mut seen: Vec<&str> = Vec::new();
    for (index, gate) in list(spec, "schedulingGates").iter().enumerate() {
        let path = path.field("schedulingGates");
        let path = path.index(index);
        let name = text(gate, "name");
        invalid(errors, &path, name, names::qualified_name(name));
        if seen.contains(&name) {
            errors.push(FieldError::duplicate(&path, &json!(name)));
        }
        seen.push(name);
    }
}
