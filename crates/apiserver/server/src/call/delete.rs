//! `DELETE` of one object and of collections: finalizers, grace and what becomes of dependents.

use http::StatusCode;
use portolan_schema::{FieldError, Path};
use serde_json::{Value, json};

use super::Call;
use super::update::UpdateResult;
use crate::answer::Answer;
use crate::api::timestamp;
use crate::controllers::definitions;
use crate::decode::{self, BodyFormat};
use crate::encode;
use crate::object;
use crate::registry::Resource;
use crate::status::{self, ApiError};
use crate::store::{Expect, StoreWrite, StoredObject, Write, WriteError};

pub(crate) const ORPHAN: &str = "orphan";
pub(crate) const FOREGROUND: &str = "foregroundDeletion";
const MOST_ATTEMPTS: usize = 100;

/// What becomes of an object's dependents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Propagation {
    Background,
    Foreground,
    Orphan,
}

/// `DeleteOptions`, from the body or the query.
#[derive(Clone, Debug, Default)]
pub(crate) struct DeleteOptions {
    pub(crate) grace_seconds: Option<i64>,
    pub(crate) uid: Option<String>,
    pub(crate) resource_version: Option<String>,
    pub(crate) propagation: Option<Propagation>,
    pub(crate) orphan_dependents: Option<bool>,
    pub(crate) dry_run: bool,
}

impl Call {
    pub(super) async fn delete(&mut self) -> Result<Answer, ApiError> {
        let options = self.delete_options()?;
        self.check_deletable()?;
        self.warn_of_orphans(&options);
        let name = self.target.name.clone();
        let outcome = self.delete_object(&name, &options).await?;
        Ok(self.deleted_answer(outcome, &options))
    }

    /// Some namespaces stay.
    fn check_deletable(&self) -> Result<(), ApiError> {
        let name = self.target.name.as_str();
        if self.resource.is_namespace() && matches!(name, "default" | "kube-system" | "kube-public") {
            return Err(ApiError::forbidden(self.resource.about(name), "this namespace may not be deleted"));
        }
        Ok(())
    }

    fn warn_of_orphans(&self, options: &DeleteOptions) {
        let silent = options.propagation.is_some() || options.orphan_dependents.is_some();
        if self.resource.is("batch", "jobs") && !silent {
            let preserved = "child pods are preserved by default when jobs are deleted; set \
                             propagationPolicy=Background to remove them or set propagationPolicy=Orphan to suppress this \
                             warning";
            self.warnings.tell(|| [preserved.to_owned()]);
        }
    }

    fn deleted_answer(&self, outcome: UpdateResult, options: &DeleteOptions) -> Answer {
        match outcome {
            UpdateResult::Kept(object) => {
                let code = if options.orphan_dependents == Some(false) { StatusCode::ACCEPTED } else { StatusCode::OK };
                self.show(code, &object)
            }
            UpdateResult::Removed(object) if returns_deleted(&self.resource) => self.show(StatusCode::OK, &object),
            UpdateResult::Removed(object) => {
                let about = self.resource.about(object::name(&object));
                Answer::value(StatusCode::OK, &status::deleted(about, object::meta_text(&object, "uid")), self.accepted)
            }
        }
    }

    /// Deletes one object: at once where nothing waits for it, else by marking it.
    pub(crate) async fn delete_object(&self, name: &str, options: &DeleteOptions) -> Result<UpdateResult, ApiError> {
        let key = self.resource.key(&self.target.namespace, name);
        let about = || self.resource.about(name);
        let mut current = self.api.store.get(&key).ok_or_else(|| ApiError::not_found(about()))?;
        for _ in 0..MOST_ATTEMPTS {
            let live = self.api.object(&self.resource, &current);
            check_preconditions(&self.resource, &live, options)?;
            let step = self.deletion_step(live, options);
            if options.dry_run {
                return Ok(step.into_outcome());
            }
            match self.write_deletion(&current, step).await {
                Ok(outcome) => return Ok(outcome),
                Err(WriteError::Unexpected(Some(now))) => current = now,
                Err(WriteError::Unexpected(None)) => return Err(ApiError::not_found(about())),
                Err(error) => return Err(ApiError::internal(error)),
            }
        }
        Err(ApiError::modified(about()))
    }

    /// What a deletion does to an object now.
    fn deletion_step(&self, live: Value, options: &DeleteOptions) -> DeletionStep {
        let mut new = live.clone();
        let finalizers = finalizers_for(&self.resource, &live, options);
        let grace = self.grace(&live, options);
        object::set_finalizers(&mut new, finalizers);
        let waits = object::finalizers(&new).next().is_some() || self.holds_content(&live) || grace > 0;
        if !waits {
            if self.is_graceful() {
                self.mark(&mut new, grace);
            }
            return DeletionStep::Remove(new);
        }
        self.mark(&mut new, grace);
        if new == live { DeletionStep::Nothing(live) } else { DeletionStep::Mark(new) }
    }

    /// Namespaces and CRDs wait for what is inside them.
    fn holds_content(&self, live: &Value) -> bool {
        self.resource.is_namespace() && live["spec"]["finalizers"].as_array().is_some_and(|f| !f.is_empty())
    }

    /// Whether objects of this kind are told to stop before they go.
    fn is_graceful(&self) -> bool {
        self.resource.is("", "pods")
    }

    fn grace(&self, live: &Value, options: &DeleteOptions) -> i64 {
        let Some(kind) = self.resource.builtin_kind().filter(|k| k.kind == "Pod") else {
            return 0;
        };
        let scheduled = live["spec"]["nodeName"].as_str().is_some_and(|n| !n.is_empty());
        let finished = matches!(live["status"]["phase"].as_str(), Some("Succeeded" | "Failed"));
        if !scheduled || finished {
            return 0;
        }
        let own = live["spec"]["terminationGracePeriodSeconds"].as_i64();
        let asked = options.grace_seconds.or(own).unwrap_or(kind.grace_seconds).max(0);
        match live["metadata"]["deletionGracePeriodSeconds"].as_i64() {
            Some(running) if object::is_deleting(live) => asked.min(running),
            _ => asked,
        }
    }

    fn mark(&self, new: &mut Value, grace: i64) {
        let now = (self.api.clock)();
        let shortened = new["metadata"]["deletionGracePeriodSeconds"].as_i64().is_some_and(|g| grace < g);
        if object::is_deleting(new) && !shortened {
            return;
        }
        let end = now.checked_add(jiff::SignedDuration::from_secs(grace)).unwrap_or(now);
        object::set_meta(new, "deletionTimestamp", Some(json!(timestamp(end))));
        if self.resource.is_namespace() {
            new["status"]["phase"] = json!("Terminating");
            return;
        }
        if self.resource.is_definition() {
            definitions::mark_pending(new, &self.api.now());
            return;
        }
        object::set_meta(new, "deletionGracePeriodSeconds", Some(json!(grace)));
        let generation = object::generation(new);
        if generation > 0 && !shortened {
            object::set_meta(new, "generation", Some(json!(generation + 1)));
        }
    }

    async fn write_deletion(&self, current: &StoredObject, step: DeletionStep) -> Result<UpdateResult, WriteError> {
        let (key, expect) = (current.key.clone(), Expect::Version(current.version));
        match step {
            DeletionStep::Nothing(live) => Ok(UpdateResult::Kept(live)),
            DeletionStep::Mark(new) => {
                let change = StoreWrite::Put(encode::body_of(self.resource.store_form(new)));
                let stored = self.api.store.write(Write { key, expect, change }).await?;
                Ok(UpdateResult::Kept(self.api.object(&self.resource, &stored)))
            }
            DeletionStep::Remove(new) if self.is_graceful() => {
                // Its watchers see that it is told to stop before it is gone.
                let change = StoreWrite::Put(encode::body_of(self.resource.store_form(new)));
                let marked = self.api.store.write(Write { key: key.clone(), expect, change }).await?;
                let expect = Expect::Version(marked.version);
                self.api.store.write(Write { key, expect, change: StoreWrite::Delete }).await?;
                Ok(UpdateResult::Removed(self.api.object(&self.resource, &marked)))
            }
            DeletionStep::Remove(mut new) => {
                let gone = self.api.store.write(Write { key, expect, change: StoreWrite::Delete }).await?;
                object::set_meta(&mut new, "resourceVersion", Some(json!(gone.version.to_string())));
                Ok(UpdateResult::Removed(new))
            }
        }
    }

    pub(super) async fn delete_collection(&mut self) -> Result<Answer, ApiError> {
        let options = self.delete_options()?;
        let selected = self.selected(&self.list_range()?)?;
        let mut shown = Vec::with_capacity(selected.objects.len());
        for stored in &selected.objects {
            let call = self.within(stored.key.namespace());
            match call.delete_object(stored.key.name(), &options).await {
                Ok(_) => shown.push(self.api.object(&self.resource, stored)),
                Err(error) if error.reason == "NotFound" => {}
                Err(error) => return Err(error),
            }
        }
        Ok(self.list_answer(&shown, selected.version))
    }

    /// The same call in one namespace.
    pub(crate) fn within(&self, namespace: &str) -> Self {
        let target = crate::request::RequestTarget {
            namespace: namespace.to_owned(),
            name: String::new(),
            subresource: String::new(),
            ..self.target.clone()
        };
        Self::internal(self.api.clone(), self.resource.clone(), target)
    }

    fn delete_options(&mut self) -> Result<DeleteOptions, ApiError> {
        let mut body = Value::Null;
        if !self.body.is_empty() {
            body = self.options_in_body()?;
            check_options_kind(&body)?;
        }
        let mut errors = Vec::new();
        let mut options = self.options_from_query(&mut errors)?;
        options.read_body(&body, &mut errors);
        if options.orphan_dependents.is_some() && options.propagation.is_some() {
            let root = Path::root();
            let detail = "orphanDependents and deletionPropagation cannot be both set";
            errors.push(FieldError::invalid(
                &root.field("propagationPolicy"),
                &json!(propagation_text(options.propagation)),
                detail,
            ));
        }
        if errors.is_empty() {
            Ok(options)
        } else {
            Err(ApiError::invalid("meta.k8s.io", "DeleteOptions", "", &errors))
        }
    }

    fn options_in_body(&self) -> Result<Value, ApiError> {
        let decoded = match decode::body_format(&self.content_type)? {
            BodyFormat::Protobuf => return self.options_from_protobuf(),
            format => decode::decode(&self.body, format),
        };
        let bad = |e| ApiError::bad_request(format!("couldn't get version/kind; json parse error: {e}"));
        Ok(decoded.map_err(bad)?.value)
    }

    fn options_from_query(&self, errors: &mut Vec<FieldError>) -> Result<DeleteOptions, ApiError> {
        let mut options = DeleteOptions { dry_run: self.dry_run(errors), ..DeleteOptions::default() };
        options.grace_seconds = self.query.number("gracePeriodSeconds")?;
        options.orphan_dependents = self.query.find("orphanDependents").map(|o| o == "true");
        if let Some(policy) = self.query.find("propagationPolicy") {
            options.propagation = read_propagation(policy, errors);
        }
        Ok(options)
    }
}

/// What a deletion does.
enum DeletionStep {
    Nothing(Value),
    Mark(Value),
    Remove(Value),
}

impl DeletionStep {
    fn into_outcome(self) -> UpdateResult {
        match self {
            Self::Nothing(object) | Self::Mark(object) => UpdateResult::Kept(object),
            Self::Remove(object) => UpdateResult::Removed(object),
        }
    }
}

impl DeleteOptions {
    pub(super) fn read_body(&mut self, body: &Value, errors: &mut Vec<FieldError>) {
        self.grace_seconds = body["gracePeriodSeconds"].as_i64().or(self.grace_seconds);
        self.orphan_dependents = body["orphanDependents"].as_bool().or(self.orphan_dependents);
        let text = |value: &Value| value.as_str().map(str::to_owned);
        self.uid = text(&body["preconditions"]["uid"]);
        self.resource_version = text(&body["preconditions"]["resourceVersion"]);
        if let Some(policy) = body["propagationPolicy"].as_str() {
            self.propagation = read_propagation(policy, errors);
        }
        let root = Path::root();
        for value in body["dryRun"].as_array().into_iter().flatten() {
            self.dry_run = true;
            if value != "All" {
                errors.push(FieldError::not_supported(&root.field("dryRun"), &body["dryRun"], &["All"]));
            }
        }
    }
}

fn check_options_kind(body: &Value) -> Result<(), ApiError> {
    let kind = body["kind"].as_str().unwrap_or_default();
    if kind.is_empty() || kind == "DeleteOptions" {
        return Ok(());
    }
    let version = body["apiVersion"].as_str().unwrap_or_default();
    Err(ApiError::bad_request(super::input::unregistered(kind, version)))
}

fn read_propagation(policy: &str, errors: &mut Vec<FieldError>) -> Option<Propagation> {
    match policy {
        "Background" => Some(Propagation::Background),
        "Foreground" => Some(Propagation::Foreground),
        "Orphan" => Some(Propagation::Orphan),
        other => {
            let root = Path::root();
            let supported = ["Foreground", "Background", "Orphan", "nil"];
            errors.push(FieldError::not_supported(&root.field("propagationPolicy"), &json!(other), &supported));
            None
        }
    }
}

fn propagation_text(propagation: Option<Propagation>) -> &'static str {
    match propagation {
        Some(Propagation::Background) => "Background",
        Some(Propagation::Foreground) => "Foreground",
        Some(Propagation::Orphan) => "Orphan",
        None => "",
    }
}

pub(super) fn check_preconditions(resource: &Resource, live: &Value, options: &DeleteOptions) -> Result<(), ApiError> {
    let about = status::About { plural: &resource.kind, ..resource.about(object::name(live)) };
    let actual = object::meta_text(live, "uid");
    if let Some(uid) = options.uid.as_deref().filter(|uid| *uid != actual) {
        let why = format!(
            "the UID in the precondition ({uid}) does not match the UID in record ({actual}). \
             The object might have been deleted and then recreated"
        );
        return Err(ApiError::conflict(about, &why));
    }
    let actual = object::meta_text(live, "resourceVersion");
    if let Some(version) = options.resource_version.as_deref().filter(|version| *version != actual) {
        let why = format!(
            "the ResourceVersion in the precondition ({version}) does not match the ResourceVersion in record ({actual}). \
             The object might have been modified"
        );
        return Err(ApiError::conflict(about, &why));
    }
    Ok(())
}

/// The finalizers that an object waits for, given what becomes of its dependents.
fn finalizers_for(resource: &Resource, live: &Value, options: &DeleteOptions) -> Vec<String> {
    let has = |name: &str| object::finalizers(live).any(|f| f == name);
    let (orphan, foreground) = match (options.orphan_dependents, options.propagation) {
        (Some(orphan), _) => (orphan, false),
        (None, Some(Propagation::Orphan)) => (true, false),
        (None, Some(Propagation::Foreground)) => (false, true),
        (None, Some(Propagation::Background)) => (false, false),
        (None, None) if resource.is("batch", "jobs") => (true, false),
        (None, None) => (has(ORPHAN), !has(ORPHAN) && has(FOREGROUND)),
    };
    let mut finalizers: Vec<String> =
        object::finalizers(live).filter(|f| *f != ORPHAN && *f != FOREGROUND).map(str::to_owned).collect();
    if orphan {
        finalizers.push(ORPHAN.to_owned());
    }
    if foreground {
        finalizers.push(FOREGROUND.to_owned());
    }
    let cleanup = definitions::CLEANUP_FINALIZER;
    if resource.is_definition() && !finalizers.iter().any(|f| f == cleanup) && !object::is_deleting(live) {
        finalizers.push(cleanup.to_owned());
    }
    finalizers
}

/// Kinds whose delete answers with the object instead of a `Status`.
fn returns_deleted(resource: &Resource) -> bool {
    let name = (resource.group.as_str(), resource.kind.as_str());
    matches!(
        name,
        (
            "",
            "Pod"
                | "Namespace"
                | "Service"
                | "PersistentVolume"
                | "PersistentVolumeClaim"
                | "ServiceAccount"
                | "ResourceQuota"
                | "PodTemplate"
        )
    )
}
