//! What no schema can say of values: what goes together, and what is needed because of something else.
//!
//! The chart's `templates/checks.yaml` says the same in the same words; a test holds both to it.

use crate::values::{ProcessMode, Tenant, Values, ZEROTRUST};
use crate::{Invalid, objects};

/// Fails at the first thing that does not go together.
pub(crate) fn check(values: &Values) -> Result<(), Invalid> {
    accounts(values)?;
    jobs(values)?;
    metrics(values)?;
    pods(values)?;
    if values.tenant.create { tenant(&values.tenant) } else { Ok(()) }
}

fn accounts(values: &Values) -> Result<(), Invalid> {
    if !values.service_account.create && values.service_account.name.is_empty() {
        return Err(Invalid::at("serviceAccount.name", "name the account that is there, since none is created"));
    }
    Ok(())
}

fn jobs(values: &Values) -> Result<(), Invalid> {
    let zerotrust = values.controllers.iter().any(|job| job == ZEROTRUST);
    let needs = [
        ("operator.mode", values.operator.mode == ProcessMode::Roles),
        ("operatorConfig.create", values.operator_config.create),
        ("tenant.create", values.tenant.create),
        ("exampleTemplates.install", values.example_templates.install),
    ];
    if let Some((path, _)) = needs.into_iter().find(|(_, asked)| *asked && !zerotrust) {
        return Err(Invalid::at(path, format!("this belongs to the job {ZEROTRUST}: name it in controllers")));
    }
    if values.operator.mode == ProcessMode::Roles && values.controllers.len() > 1 {
        return Err(Invalid::at(
            "operator.mode",
            format!("roles divide the job {ZEROTRUST} alone: install the others by themselves"),
        ));
    }
    Ok(())
}

fn metrics(values: &Values) -> Result<(), Invalid> {
    if values.metrics.service_monitor.enabled && !values.metrics.enabled {
        return Err(Invalid::at("metrics.serviceMonitor.enabled", "there is nothing to ask for: set metrics.enabled"));
    }
    Ok(())
}

fn pods(values: &Values) -> Result<(), Invalid> {
    for name in objects::SELECTOR {
        if values.pod_labels.contains_key(name) {
            return Err(Invalid::at(
                "podLabels",
                format!("{name} is what the pods are found by, and cannot be changed"),
            ));
        }
    }
    for variable in &values.operator.extra_env {
        let name = variable.get("name").and_then(|name| name.as_str()).unwrap_or_default();
        if name.is_empty() {
            return Err(Invalid::at(
                "operator.extraEnv",
                "each variable has a name, as `- {name: HTTPS_PROXY, value: ...}`",
            ));
        }
        if objects::VARIABLES.contains(&name) {
            return Err(Invalid::at("operator.extraEnv", format!("{name} is set by the installation itself")));
        }
    }
    Ok(())
}

fn tenant(tenant: &Tenant) -> Result<(), Invalid> {
    let missing = [("tenant.accountId", &tenant.account_id), ("tenant.tunnelId", &tenant.tunnel_id)];
    if let Some((path, _)) = missing.into_iter().find(|(_, id)| id.is_empty()) {
        return Err(Invalid::at(path, "a tenant needs it: see the dashboard of Cloudflare"));
    }
    match (tenant.api_token.is_empty(), tenant.existing_secret.name.is_empty()) {
        (true, true) => {
            Err(Invalid::at("tenant.apiToken", "give the token, or name a Secret with tenant.existingSecret.name"))
        }
        (false, false) => {
            Err(Invalid::at("tenant.apiToken", "give either the token or the name of a Secret, not both"))
        }
        _ => Ok(()),
    }
}
