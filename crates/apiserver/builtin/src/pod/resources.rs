//! Requests and limits of a container or a pod → what is wrong with them.

use portolan_schema::{ErrorKind, FieldError, Path};
use serde_json::{Value, json};

use super::setting::Setting;
use crate::check::{Errors, showing};
use crate::meta::invalid;
use crate::names;
use crate::quantity::{Quantity, written};
use crate::resource;
use crate::value::{entries, list, text};

/// Whose resources are looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ResourceLevel {
    Container,
    Pod,
}

/// Names, amounts, and requests against limits; `claims` are the names that may be claimed.
pub(super) fn validate_requirements(
    resources: &Value,
    level: ResourceLevel,
    claims: &[&str],
    path: &Path<'_>,
    errors: &mut Errors,
) {
    for part in ["limits", "requests"] {
        let at = path.field(part);
        for (name, value) in entries(&resources[part]) {
            resource_name(errors, name, level, &at.key(name));
            resource::amount(errors, name, value, &at.key(name));
            if part == "requests" {
                against_limit(resources, name, value, path, errors);
            }
            whole_pages(errors, name, value, &at.key(name));
        }
    }
    let named = |wanted: fn(&str) -> bool| {
        ["limits", "requests"].iter().any(|part| entries(&resources[*part]).any(|(name, _)| wanted(name)))
    };
    if named(resource::is_huge_page) && !named(|name| matches!(name, "cpu" | "memory")) {
        errors.push(FieldError::forbidden(path, "HugePages require cpu or memory"));
    }
    validate_claims(resources, claims, &path.field("claims"), errors);
}

fn resource_name(errors: &mut Errors, name: &str, level: ResourceLevel, path: &Path<'_>) {
    match level {
        ResourceLevel::Container => resource::container_name(errors, name, path),
        ResourceLevel::Pod => {
            let before = errors.len();
            resource::any_name(errors, name, path);
            let supported = matches!(name, "cpu" | "memory") || resource::is_huge_page(name);
            if errors.len() == before && !supported {
                errors.push(FieldError::not_supported(path, &json!(name), &["cpu", "hugepages-", "memory"]));
            }
        }
    }
}

fn against_limit(resources: &Value, name: &str, request: &Value, path: &Path<'_>, errors: &mut Errors) {
    let Some(asked) = Quantity::from_value(request) else { return };
    let limit = resources["limits"].get(name).and_then(Quantity::from_value);
    let shown = || written(&resources["limits"][name]).unwrap_or_default();
    let detail = match limit {
        None if resource::can_be_overcommitted(name) => return,
        None => {
            let detail = "Limit must be set for non overcommitable resources";
            errors.push(FieldError::required(&path.field("limits"), detail));
            return;
        }
        Some(limit) if asked != limit && !resource::can_be_overcommitted(name) => {
            format!("must be equal to {name} limit of {}", shown())
        }
        Some(limit) if asked > limit => format!("must be less than or equal to {name} limit of {}", shown()),
        Some(_) => return,
    };
    errors.push(FieldError::invalid(&path.field("requests"), &json!(written(request)), detail));
}

/// An amount of huge pages is a multiple of their size.
fn whole_pages(errors: &mut Errors, name: &str, value: &Value, path: &Path<'_>) {
    let (Some(size), Some(amount)) = (name.strip_prefix("hugepages-"), Quantity::from_value(value)) else {
        return;
    };
    let divides = Quantity::parse(size)
        .is_some_and(|size| size.is_integer() && size.rounded_up() > 0 && amount.rounded_up() % size.rounded_up() == 0);
    if !divides {
        let shown = written(value).unwrap_or_default();
        let detail = format!("{shown} is not positive integer multiple of {name}");
        errors.push(FieldError::invalid(path, &json!(shown), detail));
    }
}

fn validate_claims(resources: &Value, claims: &[&str], path: &Path<'_>, errors: &mut Errors) {
    let mut seen: Vec<String> = Vec::new();
    for (index, claim) in list(resources, "claims").iter().enumerate() {
        let path = path.index(index);
        let (name, request) = (text(claim, "name"), text(claim, "request"));
        if name.is_empty() {
            errors.push(FieldError::required(&path, ""));
            continue;
        }
        if seen.iter().any(|known| known == name) {
            errors.push(FieldError::duplicate(&path, &json!(name)));
        } else {
            let mut key = name.to_owned();
            if !request.is_empty() {
                invalid(errors, &path.field("request"), request, names::dns_label(request));
                key = format!("{name}/{request}");
            }
            let of_this = |known: &String| known.split_once('/').is_some_and(|(known, _)| known == name);
            if seen.contains(&key) {
                errors.push(FieldError::duplicate(&path, &json!(key)));
            } else if request.is_empty() && seen.iter().any(of_this) {
                errors.push(FieldError::duplicate(&path, &json!(name)));
            }
            seen.push(key);
        }
        if !claims.contains(&name) {
            let known =
                if claims.is_empty() { " which is empty".to_owned() } else { format!(": {}", claims.join(", ")) };
            let detail = format!("must be one of the names in pod.spec.resourceClaims{known}");
            errors.push(FieldError::with_value(ErrorKind::NotFound, &path, &json!(name), detail));
        }
    }
}

/// Claims of a pod: each has a name and says what is claimed.
pub(super) fn validate_pod_claims(setting: &Setting<'_>, path: &Path<'_>, errors: &mut Errors) {
    let mut seen: Vec<&str> = Vec::new();
    for (index, claim) in list(setting.spec, "resourceClaims").iter().enumerate() {
        let path = path.index(index);
        let name = text(claim, "name");
        if name.is_empty() {
            errors.push(FieldError::required(&path.field("name"), ""));
        } else if seen.contains(&name) {
            errors.push(FieldError::duplicate(&path.field("name"), &json!(name)));
        } else {
            invalid(errors, &path.field("name"), name, names::dns_label(name));
            seen.push(name);
        }
        let given: Vec<&str> = ["resourceClaimName", "resourceClaimTemplateName"]
            .into_iter()
            .filter(|field| !claim[*field].is_null())
            .collect();
        match given.len() {
            0 => {
                let detail = "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`";
                errors.push(claim_error(FieldError::invalid(&path, claim, detail), claim));
            }
            2 => {
                let detail = "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified";
                errors.push(claim_error(FieldError::invalid(&path, claim, detail), claim));
            }
            _ => {}
        }
        for field in given {
            let name = text(claim, field);
            invalid(errors, &path.field(field), name, names::dns_subdomain(name));
        }
    }
}

/// An error that shows a claim of a pod.
fn claim_error(error: FieldError, claim: &Value) -> FieldError {
    let name = json!(text(claim, "name"));
    let (by_name, by_template) = (&claim["resourceClaimName"], &claim["resourceClaimTemplateName"]);
    showing(error, &[("Name", &name), ("ResourceClaimName", by_name), ("ResourceClaimTemplateName", by_template)])
}

/// Resources of the pod as a whole: enough for its containers.
pub(super) fn validate_pod_resources(setting: &Setting<'_>, path: &Path<'_>, errors: &mut Errors) {
    let resources = &setting.spec["resources"];
    if resources.is_null() {
        return;
    }
    if setting.system() == Some("windows") {
        errors.push(FieldError::forbidden(path, "may not be set for a windows pod"));
        return;
    }
    if !resources["claims"].is_null() {
        let detail = "claims may not be set for Resources at pod-level";
        errors.push(FieldError::forbidden(&path.field("claims"), detail));
    }
    validate_requirements(resources, ResourceLevel::Pod, &setting.claims(), path, errors);
    for (name, value) in entries(&resources["requests"]) {
        let (Some(given), Some(sum)) = (Quantity::from_value(value), total(setting, "requests", name)) else {
            continue;
        };
        if sum > given {
            let path = path.field("requests");
            let detail =
                format!("must be greater than or equal to aggregate container requests of {}", sum.canonical());
            errors.push(FieldError::invalid(&path.key(name), &json!(written(value)), detail));
        }
    }
    within_pod_limits(setting, path, errors);
}

fn within_pod_limits(setting: &Setting<'_>, path: &Path<'_>, errors: &mut Errors) {
    let limits = &setting.spec["resources"]["limits"];
    for (name, value) in entries(limits).filter(|(name, _)| resource::is_huge_page(name)) {
        let (Some(given), Some(sum)) = (Quantity::from_value(value), total(setting, "limits", name)) else {
            continue;
        };
        if sum > given {
            let path = path.field("limits");
            let detail = format!("must be greater than or equal to aggregate container limits of {}", sum.canonical());
            errors.push(FieldError::invalid(&path.key(name), &json!(written(value)), detail));
        }
    }
    for (index, container) in list(setting.spec, "containers").iter().enumerate() {
        for (name, value) in entries(&container["resources"]["limits"]) {
            let (Some(own), Some(most)) =
                (Quantity::from_value(value), limits.get(name).and_then(Quantity::from_value))
            else {
                continue;
            };
            if own > most {
                let path = path.field("containers");
                let path = path.index(index);
                let path = path.key(name);
                let detail = format!(
                    "must be less than or equal to pod limits of {}",
                    written(&limits[name]).unwrap_or_default()
                );
                errors.push(FieldError::invalid(&path.field("limits"), &json!(written(value)), detail));
            }
        }
    }
}

/// What all containers of a pod together ask for, by resource.
pub(super) fn resource_totals(spec: &Value, part: &str) -> Vec<(String, Value)> {
    let setting = Setting { spec, volumes: Vec::new() };
    let mut names: Vec<String> = Vec::new();
    for (_, _, container) in setting.containers() {
        names.extend(entries(&container["resources"][part]).map(|(name, _)| name.clone()));
    }
    names.sort();
    names.dedup();
    let sums = names.into_iter().filter_map(|name| Some((total(&setting, part, &name)?, name)));
    sums.map(|(sum, name)| (name, json!(sum.canonical()))).collect()
}

/// What all containers together ask for: those that run at the same time, or the largest of the first ones.
fn total(setting: &Setting<'_>, part: &str, name: &str) -> Option<Quantity> {
    let amount = |container: &Value| Quantity::from_value(&container["resources"][part][name]);
    let add = |sum: Option<Quantity>, more: Option<Quantity>| match (sum, more) {
        (Some(sum), Some(more)) => Some(sum.plus(more)),
        (sum, more) => sum.or(more),
    };
    let mut running = list(setting.spec, "containers").iter().map(amount).fold(None, add);
    let mut sidecars = None;
    let mut largest: Option<Quantity> = None;
    for container in list(setting.spec, "initContainers") {
        let own = amount(container);
        let at_once = if text(container, "restartPolicy") == "Always" {
            running = add(running, own);
            sidecars = add(sidecars, own);
            sidecars
        } else {
            add(sidecars, own)
        };
        if at_once > largest {
            largest = at_once;
        }
    }
    if largest > running { largest } else { running }
}
