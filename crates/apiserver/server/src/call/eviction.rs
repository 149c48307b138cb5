//! `POST` of `/eviction`: a pod is deleted where its disruption budget allows that.

use http::StatusCode;
use portolan_schema::{FieldError, Path};
use serde_json::{Value, json};

use super::Call;
use super::binding::set_condition;
use super::delete::DeleteOptions;
use crate::answer::Answer;
use crate::controllers;
use crate::object;
use crate::registry::Resource;
use crate::status::{About, ApiError, Cause, Details, succeeded};
use crate::store::Range;
use crate::strategy::ObjectPart;
use std::sync::Arc;

/// More evictions than this, not yet seen by whoever keeps the budget, are refused.
const MOST_DISRUPTED: usize = 2000;
const REFUSED: &str = "Cannot evict pod as it would violate the pod's disruption budget.";

/// What a budget says about an eviction.
enum EvictionVerdict {
    /// The pod may go; nothing is counted.
    Free,
    /// The pod may go if it is still as it was looked at.
    Unhealthy,
    /// The pod may go, and the budget counts it.
    Counted(Arc<Resource>, String),
}

impl Call {
    pub(super) async fn evict(&self) -> Result<Answer, ApiError> {
        let create = self.write_options("CreateOptions", false)?;
        let eviction = self.posted("Eviction", &["policy/v1", "policy/v1beta1"])?;
        let mut options = self.eviction_options(&eviction)?;
        options.dry_run |= create.dry_run;
        let pod = self.live()?;
        match self.verdict(&pod)? {
            EvictionVerdict::Free => {}
            EvictionVerdict::Unhealthy => {
                options.resource_version.get_or_insert_with(|| object::meta_text(&pod, "resourceVersion").to_owned());
            }
            EvictionVerdict::Counted(budgets, name) => self.count(&budgets, &name, options.dry_run).await?,
        }
        self.go(options).await?;
        Ok(Answer::value(StatusCode::CREATED, &succeeded(StatusCode::CREATED), self.accepted))
    }

    fn eviction_options(&self, eviction: &Value) -> Result<DeleteOptions, ApiError> {
        let mut options = DeleteOptions::default();
        let mut errors = Vec::new();
        let given = &eviction["deleteOptions"];
        options.read_body(given, &mut errors);
        if given["ignoreStoreReadErrorWithClusterBreakingPotential"] == true {
            let root = Path::root();
            let path = root.field("deleteOptions");
            let path = path.field("ignoreStoreReadErrorWithClusterBreakingPotential");
            let detail = "can not be set for pod eviction, try after removing the option";
            errors.push(FieldError::invalid(&path, &json!(true), detail));
        }
        if errors.is_empty() {
            Ok(options)
        } else {
            Err(ApiError::invalid("policy", "Eviction", &self.target.name, &errors))
        }
    }

    /// Pods that do not run, or stop already, cost nobody anything; for others their budget is asked.
    fn verdict(&self, pod: &Value) -> Result<EvictionVerdict, ApiError> {
        let phase = pod["status"]["phase"].as_str().unwrap_or_default();
        if matches!(phase, "Succeeded" | "Failed" | "Pending") || object::is_deleting(pod) {
            return Ok(EvictionVerdict::Free);
        }
        let Some(budgets) = self.registry.find("policy", "v1", "poddisruptionbudgets").cloned() else {
            return Ok(EvictionVerdict::Free);
        };
        let matching: Vec<Value> = self.budgets(&budgets, pod);
        let budget = match matching.as_slice() {
            [] => return Ok(EvictionVerdict::Free),
            [only] => only,
            _ => {
                return Err(ApiError::unexpected(
                    "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.",
                ));
            }
        };
        let number = |field: &str| budget["status"][field].as_i64().unwrap_or(0);
        let healthy_enough = number("currentHealthy") >= number("desiredHealthy") && number("desiredHealthy") > 0;
        if !is_ready(pod) && (budget["spec"]["unhealthyPodEvictionPolicy"] == "AlwaysAllow" || healthy_enough) {
            return Ok(EvictionVerdict::Unhealthy);
        }
        Ok(EvictionVerdict::Counted(budgets, object::name(budget).to_owned()))
    }

    fn budgets(&self, budgets: &Resource, pod: &Value) -> Vec<Value> {
        let prefix = format!("{}/", self.target.namespace);
        let range = Range { collection: &budgets.collection, prefix: &prefix, after: "", at: None };
        let all = self.api.store.list(&range).map(|listing| listing.objects).unwrap_or_default();
        let shown = all.iter().map(|stored| self.api.object(budgets, stored));
        shown.filter(|b| portolan_builtin::selects(&b["spec"]["selector"], &pod["metadata"]["labels"])).collect()
    }

    /// Takes one disruption from a budget, or says why there is none.
    async fn count(&self, budgets: &Arc<Resource>, name: &str, dry_run: bool) -> Result<(), ApiError> {
        let call = controllers::call(&self.api, budgets, &self.target.namespace, name);
        let refusal = std::sync::Mutex::new(None);
        let (pod, now) = (self.target.name.clone(), self.api.now());
        let take = |budget: &mut Value| {
            let refused = check_budget(budget).err();
            let allowed = refused.is_none();
            *refusal.lock().expect("only assigned to") = refused;
            if allowed && !dry_run {
                take_one(budget, &pod, &now);
            }
            allowed && !dry_run
        };
        call.system_change(ObjectPart::Status, "kube-apiserver", take).await?;
        refusal.into_inner().ok().flatten().map_or(Ok(()), Err)
    }

    /// Says in the pod's status why it goes, and deletes it.
    async fn go(&self, mut options: DeleteOptions) -> Result<(), ApiError> {
        if !options.dry_run {
            let condition = json!({
                "type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI",
                "message": "Eviction API: evicting",
            });
            let now = self.api.now();
            let edit = |pod: &mut Value| {
                super::delete::check_preconditions(&self.resource, pod, &options)?;
                set_condition(pod, &condition, &now);
                Ok(())
            };
            let marked = self.rewrite(false, edit).await?;
            if options.resource_version.is_some() {
                options.resource_version = Some(object::meta_text(&marked, "resourceVersion").to_owned());
            }
        }
        self.delete_object(&self.target.name, &options).await.map(|_| ())
    }
}

fn is_ready(pod: &Value) -> bool {
    let conditions = pod["status"]["conditions"].as_array();
    conditions.is_some_and(|all| all.iter().any(|c| c["type"] == "Ready" && c["status"] == "True"))
}

fn check_budget(budget: &Value) -> Result<(), ApiError> {
    let status = &budget["status"];
    let number = |field: &str| status[field].as_i64().unwrap_or(0);
    let name = object::name(budget);
    let forbidden =
        |why: &str| ApiError::forbidden(About { group: "policy", plural: "poddisruptionbudget", name }, why);
    if number("observedGeneration") < object::generation(budget) {
        let message = format!("The disruption budget {name} is still being processed by the server.");
        return Err(too_many(&message, 10));
    }
    let allowed = number("disruptionsAllowed");
    if allowed < 0 {
        return Err(forbidden("pdb disruptions allowed is negative"));
    }
    if status["disruptedPods"].as_object().is_some_and(|pods| pods.len() > MOST_DISRUPTED) {
        return Err(forbidden("DisruptedPods map too big - too many evictions not confirmed by PDB controller"));
    }
    if allowed == 0 { Err(too_many(&exhausted(budget), 0)) } else { Ok(()) }
}

/// Why a budget allows nothing.
fn exhausted(budget: &Value) -> String {
    let status = &budget["status"];
    let number = |field: &str| status[field].as_i64().unwrap_or(0);
    let name = object::name(budget);
    let conditions = status["conditions"].as_array().into_iter().flatten();
    let mut said = conditions.filter(|c| c["type"] == "DisruptionAllowed" && c["status"] == "False");
    let (reason, message) = said
        .next()
        .map_or(("", ""), |c| (c["reason"].as_str().unwrap_or_default(), c["message"].as_str().unwrap_or_default()));
    let opening = format!("The disruption budget {name} does not allow evicting pods currently");
    match (reason, message) {
        ("SyncFailed", why) if !why.is_empty() => format!("{opening} because it failed sync: {why}"),
        _ if number("currentHealthy") <= number("desiredHealthy") => format!(
            "The disruption budget {name} needs {} healthy pods and has {} currently",
            number("desiredHealthy"),
            number("currentHealthy")
        ),
        (reason, why) if !why.is_empty() => format!("{opening} ({reason}): {why}"),
        _ => opening,
    }
}

fn too_many(message: &str, retry_after_seconds: u32) -> ApiError {
    let cause = Cause { reason: "DisruptionBudget".to_owned(), message: message.to_owned(), ..Cause::default() };
    let details = Details { causes: vec![cause], retry_after_seconds, ..Details::default() };
    ApiError { details: Some(Box::new(details)), ..ApiError::too_many_requests(REFUSED) }
}

fn take_one(budget: &mut Value, pod: &str, now: &str) {
    let left = budget["status"]["disruptionsAllowed"].as_i64().unwrap_or(0) - 1;
    budget["status"]["disruptionsAllowed"] = json!(left);
    budget["status"]["disruptedPods"][pod] = json!(now);
    if left > 0 {
        return;
    }
    let mut condition = json!({
        "type": "DisruptionAllowed", "status": "False", "reason": "InsufficientPods", "message": "",
        "observedGeneration": budget["status"]["observedGeneration"], "lastTransitionTime": now,
    });
    let mut conditions = budget["status"]["conditions"].as_array().cloned().unwrap_or_default();
    match conditions.iter_mut().find(|there| there["type"] == "DisruptionAllowed") {
        Some(there) => {
            if there["status"] == "False" {
                condition["lastTransitionTime"] = there["lastTransitionTime"].clone();
            }
            *there = condition;
        }
        None => conditions.push(condition),
    }
    budget["status"]["conditions"] = json!(conditions);
}
