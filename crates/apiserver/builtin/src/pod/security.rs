//! Security contexts of pods and containers → what is wrong with them.

use portolan_schema::{FieldError, Path};
use serde_json::{Value, json};

use super::setting::Setting;
use super::windows::validate_windows_options;
use crate::check::{Errors, one_of, showing};
use crate::paths::descending;
use crate::value::{flag_at, list, number, text, texts};

/// A container's own context.
pub(super) fn validate_container_security(
    setting: &Setting<'_>,
    context: &Value,
    path: &Path<'_>,
    errors: &mut Errors,
) {
    if context.is_null() {
        return;
    }
    for field in ["runAsUser", "runAsGroup"] {
        validate_id(errors, &context[field], &path.field(field));
    }
    if let Some(mount) = context["procMount"].as_str() {
        let at = path.field("procMount");
        if !matches!(mount, "Default" | "Unmasked") {
            errors.push(FieldError::not_supported(&at, &json!(mount), &["Default", "Unmasked"]));
        }
        if mount == "Unmasked" && setting.host_users() {
            errors.push(FieldError::invalid(&at, &json!(mount), "`hostUsers` must be false to use `Unmasked`"));
        }
    }
    validate_seccomp(&context["seccompProfile"], &path.field("seccompProfile"), errors);
    validate_escalation(context, path, errors);
    validate_windows_options(&context["windowsOptions"], &path.field("windowsOptions"), errors);
    validate_app_armor(&context["appArmorProfile"], &path.field("appArmorProfile"), errors);
}

fn validate_escalation(context: &Value, path: &Path<'_>, errors: &mut Errors) {
    if context["allowPrivilegeEscalation"] != json!(false) {
        return;
    }
    if flag_at(context, "/privileged") {
        let detail = "cannot set `allowPrivilegeEscalation` to false and `privileged` to true";
        errors.push(FieldError::invalid(path, context, detail));
    }
    for _ in texts(&context["capabilities"], "add").into_iter().filter(|name| *name == "CAP_SYS_ADMIN") {
        let detail = "cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` CAP_SYS_ADMIN";
        errors.push(FieldError::invalid(path, context, detail));
    }
}

/// A user's or group's number.
fn validate_id(errors: &mut Errors, value: &Value, path: &Path<'_>) {
    if value.as_i64().is_some_and(|id| !(0..=i64::from(i32::MAX)).contains(&id)) {
        errors.push(FieldError::invalid(path, value, "must be between 0 and 2147483647, inclusive"));
    }
}

fn validate_seccomp(profile: &Value, path: &Path<'_>, errors: &mut Errors) {
    if profile.is_null() {
        return;
    }
    let kind = text(profile, "type");
    let supported = &["Localhost", "RuntimeDefault", "Unconfined"];
    if kind.is_empty() {
        errors.push(FieldError::required(&path.field("type"), "type is required when seccompProfile is set"));
    } else if !supported.contains(&kind) {
        errors.push(FieldError::not_supported(&path.field("type"), &json!(kind), supported));
    }
    let at = path.field("localhostProfile");
    match (kind, profile["localhostProfile"].as_str()) {
        ("Localhost", None) => {
            errors.push(FieldError::required(&at, "must be set when seccomp type is Localhost"));
        }
        ("Localhost", Some(file)) => descending(errors, file, &at),
        (_, Some(_)) => {
            let error = FieldError::invalid(&at, profile, "can only be set when seccomp type is Localhost");
            let fields = [("Type", &profile["type"]), ("LocalhostProfile", &profile["localhostProfile"])];
            errors.push(showing(error, &fields));
        }
        (_, None) => {}
    }
}

fn validate_app_armor(profile: &Value, path: &Path<'_>, errors: &mut Errors) {
    if profile.is_null() {
        return;
    }
    let at = path.field("localhostProfile");
    let given = profile["localhostProfile"].as_str();
    match text(profile, "type") {
        "Localhost" => {
            let name = given.unwrap_or_default();
            if name.trim() != name {
                errors.push(FieldError::invalid(&at, &json!(name), "must not be padded with whitespace"));
            } else if name.is_empty() {
                errors.push(FieldError::required(&at, "must be set when AppArmor type is Localhost"));
            }
            if name.len() > 4095 {
                errors.push(FieldError::too_long(&at, 4095));
            }
        }
        "RuntimeDefault" | "Unconfined" => {
            if let Some(name) = given {
                let detail = "can only be set when AppArmor type is Localhost";
                errors.push(FieldError::invalid(&at, &json!(name), detail));
            }
        }
        "" => errors.push(FieldError::required(&path.field("type"), "type is required when appArmorProfile is set")),
        other => {
            let supported = &["Localhost", "RuntimeDefault", "Unconfined"];
            errors.push(FieldError::not_supported(&path.field("type"), &json!(other), supported));
        }
    }
}

/// The pod's context, and the parts of the host that it shares.
pub(super) fn validate_pod_security(setting: &Setting<'_>, path: &Path<'_>, errors: &mut Errors) {
    let spec = setting.spec;
    let context = &spec["securityContext"];
    let at = path.field("securityContext");
    for field in ["fsGroup", "runAsUser", "runAsGroup"] {
        validate_id(errors, &context[field], &at.field(field));
    }
    for (index, group) in list(context, "supplementalGroups").iter().enumerate() {
        validate_id(errors, group, &at.field("supplementalGroups").index(index));
    }
    if flag_at(spec, "/shareProcessNamespace") && flag_at(spec, "/hostPID") {
        let detail = "ShareProcessNamespace and HostPID cannot both be enabled";
        errors.push(FieldError::invalid(&at.field("shareProcessNamespace"), &json!(true), detail));
    }
    validate_settings(setting, context, &at.field("sysctls"), errors);
    one_of(errors, context, "fsGroupChangePolicy", &["Always", "OnRootMismatch"], &at);
    validate_seccomp(&context["seccompProfile"], &at.field("seccompProfile"), errors);
    validate_windows_options(&context["windowsOptions"], &at.field("windowsOptions"), errors);
    validate_app_armor(&context["appArmorProfile"], &at.field("appArmorProfile"), errors);
    one_of(errors, context, "supplementalGroupsPolicy", &["Merge", "Strict"], &at);
    one_of(errors, context, "seLinuxChangePolicy", &["Recursive"], &at);
    validate_users(setting, path, errors);
    validate_system(setting, path, errors);
}

const SETTING: &str = "^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$";

/// Kernel settings: known forms of names, each once, and none of a namespace that is the host's.
fn validate_settings(setting: &Setting<'_>, context: &Value, path: &Path<'_>, errors: &mut Errors) {
    let mut seen: Vec<&str> = Vec::new();
    for (index, item) in list(context, "sysctls").iter().enumerate() {
        let path = path.index(index);
        let path = path.field("name");
        let name = text(item, "name");
        if name.is_empty() {
            errors.push(FieldError::required(&path, ""));
        } else if name.len() > 253 || !name.split(['.', '/']).all(is_setting_part) {
            let detail = format!("must have at most 253 characters and match regex {SETTING}");
            errors.push(FieldError::invalid(&path, &json!(name), detail));
        } else if seen.contains(&name) {
            errors.push(FieldError::duplicate(&path, &json!(name)));
        }
        let normal = name.replace('/', ".");
        let of_network = normal.starts_with("net.");
        let of_ipc = ["kernel.shm", "kernel.msg", "fs.mqueue."].iter().any(|prefix| normal.starts_with(prefix))
            || normal == "kernel.sem";
        let shared = match (of_network && setting.host_network(), of_ipc && flag_at(setting.spec, "/hostIPC")) {
            (true, _) => Some("may not be specified when 'hostNetwork' is true"),
            (_, true) => Some("may not be specified when 'hostIPC' is true"),
            (false, false) => None,
        };
        if let Some(detail) = shared {
            errors.push(FieldError::invalid(&path, &json!(name), detail));
        }
        seen.push(name);
    }
}

fn is_setting_part(part: &str) -> bool {
    let edge = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let bytes = part.as_bytes();
    let edges = bytes.first().is_some_and(|b| edge(*b)) && bytes.last().is_some_and(|b| edge(*b));
    edges && bytes.iter().all(|b| edge(*b) || matches!(b, b'-' | b'_'))
}

/// A pod with user ids of its own shares little with the host.
fn validate_users(setting: &Setting<'_>, path: &Path<'_>, errors: &mut Errors) {
    if setting.host_users() {
        return;
    }
    let detail = "when `hostUsers` is false";
    for (flag, shown) in [("/hostNetwork", "hostNetwork"), ("/hostPID", "HostPID"), ("/hostIPC", "HostIPC")] {
        if flag_at(setting.spec, flag) {
            errors.push(FieldError::forbidden(&path.field(shown), detail));
        }
    }
    for (field, index, container) in setting.containers() {
        if !list(container, "volumeDevices").is_empty() {
            let path = path.field(field);
            errors.push(FieldError::forbidden(&path.index(index).field("volumeDevices"), detail));
        }
    }
}

/// The operating system that a pod names, and what it cannot have there.
fn validate_system(setting: &Setting<'_>, path: &Path<'_>, errors: &mut Errors) {
    let Some(system) = setting.system() else { return };
    let at = path.field("os");
    match system {
        "" => errors.push(FieldError::required(&at.field("name"), "")),
        "linux" => forbid_windows_options(setting, path, errors),
        "windows" => forbid_linux_options(setting, path, errors),
        other => errors.push(FieldError::not_supported(&at, &json!(other), &["linux", "windows"])),
    }
}

fn forbid_windows_options(setting: &Setting<'_>, path: &Path<'_>, errors: &mut Errors) {
    let detail = "windows options cannot be set for a linux pod";
    if !setting.spec["securityContext"]["windowsOptions"].is_null() {
        errors.push(FieldError::forbidden(&path.field("securityContext").field("windowsOptions"), detail));
    }
    for (field, index, container) in setting.containers() {
        if !container["securityContext"]["windowsOptions"].is_null() {
            let path = path.field(field);
            let path = path.index(index);
            errors.push(FieldError::forbidden(&path.field("securityContext").field("windowsOptions"), detail));
        }
    }
}

const POD_ONLY_LINUX: &[&str] = &[
    "appArmorProfile",
    "seLinuxOptions",
    "seccompProfile",
    "fsGroup",
    "fsGroupChangePolicy",
    "sysctls",
    "runAsUser",
    "runAsGroup",
    "supplementalGroups",
    "supplementalGroupsPolicy",
    "seLinuxChangePolicy",
];
const CONTAINER_ONLY_LINUX: &[&str] = &[
    "appArmorProfile",
    "seLinuxOptions",
    "seccompProfile",
    "capabilities",
    "readOnlyRootFilesystem",
    "privileged",
    "allowPrivilegeEscalation",
    "procMount",
    "runAsUser",
    "runAsGroup",
];

fn forbid_linux_options(setting: &Setting<'_>, path: &Path<'_>, errors: &mut Errors) {
    let detail = "cannot be set for a windows pod";
    let spec = setting.spec;
    for field in POD_ONLY_LINUX.iter().filter(|field| !spec["securityContext"][**field].is_null()) {
        errors.push(FieldError::forbidden(&path.field("securityContext").field(field), detail));
    }
    for field in ["hostUsers", "shareProcessNamespace"].into_iter().filter(|field| !spec[*field].is_null()) {
        errors.push(FieldError::forbidden(&path.field(field), detail));
    }
    for field in ["hostPID", "hostIPC"].into_iter().filter(|field| spec[*field] == json!(true)) {
        errors.push(FieldError::forbidden(&path.field(field), detail));
    }
    for (field, index, container) in setting.containers() {
        let path = path.field(field);
        let path = path.index(index);
        let path = path.field("securityContext");
        for option in CONTAINER_ONLY_LINUX.iter().filter(|option| !container["securityContext"][**option].is_null()) {
            errors.push(FieldError::forbidden(&path.field(option), detail));
        }
    }
}

/// Ports of a pod on the host's network are the host's.
pub(super) fn validate_host_ports(setting: &Setting<'_>, whole_pod: bool, path: &Path<'_>, errors: &mut Errors) {
    if !setting.host_network() {
        return;
    }
    for (index, container) in list(setting.spec, "containers").iter().enumerate() {
        for (inner, item) in list(container, "ports").iter().enumerate() {
            let (host, own) = (number(item, "hostPort").unwrap_or(0), number(item, "containerPort").unwrap_or(0));
            if (whole_pod || host != 0) && host != own {
                let path = path.index(index);
                let path = path.field("ports");
                let path = path.index(inner);
                let detail = "must match `containerPort` when `hostNetwork` is true";
                errors.push(FieldError::invalid(&path.field("hostPort"), &json!(host), detail));
            }
        }
    }
}
