//! What no schema can say of values: what goes together, and what is needed because of something else.
//!
//! The chart's `templates/checks.yaml` says the same in the same words; a test holds both to it.

use portolan_core::job::JobSheet;
use serde_json::Value;

use crate::values::{ProcessMode, Tenant, Values};
use crate::{Invalid, objects};

/// Fails at the first thing that does not go together.
pub(crate) fn check(jobs: &[&JobSheet], values: &Values) -> Result<(), Invalid> {
    accounts(values)?;
    roles(jobs, values)?;
    own_values(jobs, values)?;
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

/// One process that does everything may do it for several jobs; a job that is divided stands alone.
fn roles(jobs: &[&JobSheet], values: &Values) -> Result<(), Invalid> {
    if values.operator.mode != ProcessMode::Roles {
        return Ok(());
    }
    let refused = |message: String| Err(Invalid::at("operator.mode", message));
    let Some(divided) = jobs.iter().find(|job| job.roles.len() > 1) else {
        return refused("no job can be divided into roles".to_owned());
    };
    if !runs(values, divided) {
        return refused(belongs(divided));
    }
    if values.controllers.len() > 1 {
        return refused(format!("roles divide the job {} alone: install the others by themselves", divided.name));
    }
    Ok(())
}

/// What means something to one job alone is not asked for without it.
fn own_values(jobs: &[&JobSheet], values: &Values) -> Result<(), Invalid> {
    let all = serde_json::to_value(values).expect("values are plain JSON");
    let is_on = |path: &str| all.pointer(&format!("/{}", path.replace('.', "/"))) == Some(&Value::Bool(true));
    for job in jobs.iter().filter(|job| !runs(values, job)) {
        if let Some(path) = job.values.iter().find(|path| is_on(path)) {
            return Err(Invalid::at(*path, belongs(job)));
        }
    }
    Ok(())
}

fn runs(values: &Values, job: &JobSheet) -> bool {
    values.controllers.iter().any(|name| name == job.name)
}

fn belongs(job: &JobSheet) -> String {
    format!("this belongs to the job {}: name it in controllers", job.name)
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
