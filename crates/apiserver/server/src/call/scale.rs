//! `/scale`: one number of an object, seen as an `autoscaling/v1` Scale.

use std::sync::{Arc, LazyLock};

use http::StatusCode;
use portolan_builtin::{SCALE as SCALE_KIND, types};
use portolan_patch::ssa::Force;
use portolan_schema::crd::Scale;
use portolan_schema::{Root, Schema};
use serde_json::{Value, json};

use super::Call;
use super::input::complaints;
use super::options::{FieldValidation, WriteOptions};
use super::patch::{PatchEdit, PatchKind, apply_error, invalid_patch, patch_json};
use super::strategic::merge_strategically;
use super::update::SentUpdate;
use crate::answer::Answer;
use crate::object;
use crate::registry::Resource;
use crate::status::ApiError;
use crate::strategy::ObjectPart;

impl Call {
    pub(super) fn get_scale(&self) -> Result<Answer, ApiError> {
        let scale = self.scale_of(&self.live()?)?;
        Ok(Answer::value(StatusCode::OK, &scale, self.accepted))
    }

    pub(super) async fn put_scale(&mut self) -> Result<Answer, ApiError> {
        let options = self.write_options("UpdateOptions", false)?;
        let put = self.scale_from_body(options.field_validation)?;
        self.set_scale(options.dry_run, |scale| {
            let mut wanted = put.clone();
            keep_owners(&mut wanted, &scale);
            Ok(self.own_scale(&scale, wanted, &options))
        })
        .await
    }

    pub(super) async fn patch_scale(&mut self) -> Result<Answer, ApiError> {
        let kind = PatchKind::of(&self.content_type, self.resource.custom().is_some())?;
        let options = self.write_options("PatchOptions", kind == PatchKind::Apply)?;
        if kind == PatchKind::Apply {
            let config = self.read_applied()?;
            return self.set_scale(options.dry_run, |scale| self.applied_scale(&scale, &config, &options)).await;
        }
        let edit = self.read_edit(kind);
        self.set_scale(options.dry_run, |scale| {
            let edit = edit.as_ref().map_err(Clone::clone)?;
            let (mut wanted, complaints) = edited_scale(without_owners(&scale), edit, options.field_validation)?;
            self.warnings.tell(|| complaints);
            self.place(&mut wanted, true)?;
            keep_owners(&mut wanted, &scale);
            Ok(self.own_scale(&scale, wanted, &options))
        })
        .await
    }

    /// The body read as any object is, but as a Scale, whatever it is the scale of.
    fn scale_from_body(&mut self, validation: FieldValidation) -> Result<Value, ApiError> {
        static RESOURCE: LazyLock<Arc<Resource>> = LazyLock::new(|| Arc::new(Resource::builtin(&SCALE_KIND)));
        let scaled = std::mem::replace(&mut self.resource, RESOURCE.clone());
        let read = self.object_from_body(validation);
        self.resource = scaled;
        let mut scale = read?;
        self.place(&mut scale, true)?;
        Ok(scale)
    }

    /// Writes the number of replicas that `edit` makes of the scale. The scale carries the owners of its number in and out.
    async fn set_scale(
        &self,
        dry_run: bool,
        edit: impl Fn(Value) -> Result<Value, ApiError>,
    ) -> Result<Answer, ApiError> {
        let paths = self.scale_paths()?;
        let path: Vec<&str> = paths.spec_replicas.split('.').filter(|p| !p.is_empty()).collect();
        let api_version = self.resource.api_version();
        let replicas = portolan_patch::ssa::scale::Replicas { api_version: &api_version, path: &path };
        let intend = |live: &Value| {
            let mut scale = self.scale_of(live)?;
            object::set_meta(
                &mut scale,
                "managedFields",
                Some(json!(portolan_patch::ssa::scale::to_scale(live, replicas))),
            );
            let wanted = edit(scale)?;
            if self.resource.custom().is_none() {
                check_scale(&wanted)?;
            }
            let mut new = live.clone();
            let version = wanted["metadata"].get("resourceVersion").filter(|v| **v != json!("")).cloned();
            if let Some(version) = version {
                object::set_meta(&mut new, "resourceVersion", Some(version));
            }
            let number = wanted["spec"]["replicas"].as_i64().unwrap_or(0);
            object::set_at_path(&mut new, &paths.spec_replicas, json!(number));
            let owners = wanted["metadata"]["managedFields"].as_array().map(Vec::as_slice).unwrap_or_default();
            let owners = portolan_patch::ssa::scale::to_object(live, owners, replicas);
            object::set_meta(&mut new, "managedFields", Some(json!(owners)));
            Ok(new)
        };
        let outcome = self.change(ObjectPart::Main, dry_run, SentUpdate::Edit, intend).await?;
        let scale = self.scale_of(&outcome.into_object())?;
        Ok(Answer::value(StatusCode::OK, &scale, self.accepted))
    }

    /// The scale with the owners of its number after a write by any verb but apply.
    fn own_scale(&self, live: &Value, mut wanted: Value, options: &WriteOptions) -> Value {
        if wanted["spec"]["replicas"] == json!(0) {
            // None at all are not written, so nobody owns them.
            wanted["spec"] = json!({});
        }
        let now = self.api.now();
        let context = scale_context(options, &now);
        portolan_patch::ssa::update(live, wanted, &context)
    }

    /// The scale after an apply.
    fn applied_scale(&self, live: &Value, config: &Value, options: &WriteOptions) -> Result<Value, ApiError> {
        let force = if options.force { Force::Yes } else { Force::No };
        let now = self.api.now();
        let context = scale_context(options, &now);
        portolan_patch::ssa::apply(live, config, &context, force).map_err(|error| apply_error(&error))
    }

    pub(super) fn live(&self) -> Result<Value, ApiError> {
        let key = self.resource.key(&self.target.namespace, &self.target.name);
        let stored =
            self.api.store.get(&key).ok_or_else(|| ApiError::not_found(self.resource.about(&self.target.name)))?;
        Ok(self.api.object(&self.resource, &stored))
    }

    fn scale_paths(&self) -> Result<Scale, ApiError> {
        self.resource.scale().ok_or_else(ApiError::no_such_resource)
    }

    fn scale_of(&self, live: &Value) -> Result<Value, ApiError> {
        let paths = self.scale_paths()?;
        let number = |path: &str| object::at_path(live, path).and_then(Value::as_i64);
        let mut metadata = json!({});
        for field in ["name", "namespace", "uid", "resourceVersion", "creationTimestamp"] {
            if let Some(value) = live["metadata"].get(field) {
                metadata[field] = value.clone();
            }
        }
        let mut status = json!({"replicas": number(&paths.status_replicas).unwrap_or(0)});
        let selector = paths.label_selector.as_deref().and_then(|path| object::at_path(live, path)).map(selector_text);
        if let Some(selector) = selector.filter(|s| !s.is_empty()) {
            status["selector"] = json!(selector);
        }
        let spec = match number(&paths.spec_replicas) {
            Some(0) | None => json!({}),
            Some(replicas) => json!({"replicas": replicas}),
        };
        Ok(
            json!({"kind": "Scale", "apiVersion": "autoscaling/v1", "metadata": metadata, "spec": spec, "status": status}),
        )
    }
}

const SCALE: &str = "io.k8s.api.autoscaling.v1.Scale";

/// Who owns what in a Scale. In the published schema none are a default, which here nobody is to own.
static OWNED: LazyLock<Schema> = LazyLock::new(|| {
    let (text, number) = (json!({"type": "string"}), json!({"type": "integer", "format": "int32"}));
    let schema = json!({"type": "object", "properties": {
        "apiVersion": text,
        "kind": text,
        "metadata": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
        "spec": {"type": "object", "properties": {"replicas": number}},
        "status": {"type": "object", "properties": {"replicas": number, "selector": text}},
    }});
    Schema::parse(&schema).expect("a plain schema")
});

fn scale_context<'a>(options: &'a WriteOptions, now: &'a str) -> portolan_patch::ssa::Context<'a> {
    portolan_patch::ssa::Context {
        manager: &options.manager,
        api_version: "autoscaling/v1",
        subresource: "scale",
        now,
        schema: OWNED.root(),
        reset: portolan_patch::ssa::reset::nothing(),
    }
}

fn without_owners(scale: &Value) -> Value {
    let mut shown = scale.clone();
    object::set_meta(&mut shown, "managedFields", None);
    shown
}

/// Who owns the number is not the client's to say.
fn keep_owners(wanted: &mut Value, scale: &Value) {
    if wanted["metadata"].is_object() {
        object::set_meta(wanted, "managedFields", scale["metadata"].get("managedFields").cloned());
    }
}

/// The scale after a patch, and what to warn of.
fn edited_scale(
    mut scale: Value,
    edit: &PatchEdit,
    validation: FieldValidation,
) -> Result<(Value, Vec<String>), ApiError> {
    let schema = portolan_builtin::schema().definition(SCALE).expect("the generated data has it");
    let mut duplicates: &[String] = &[];
    let shown = match edit {
        PatchEdit::Json(patch) => {
            patch_json(&mut scale, patch)?;
            scale.to_string()
        }
        PatchEdit::Merge(patch) => {
            json_patch::merge(&mut scale, patch);
            scale.to_string()
        }
        PatchEdit::Strategic(patch) => {
            let merged = merge_strategically(&scale, &patch.value, schema, SCALE)?;
            (scale, duplicates) = (merged.object, &patch.duplicates);
            portolan_patch::strategic::print(&merged.patch)
        }
    };
    types::check_fields(SCALE, &scale).map_err(|why| invalid_patch(&shown, &why))?;
    let unknown = portolan_schema::prune(&mut scale, schema, Root::Resource);
    let complaints = complaints(duplicates, &unknown, validation).map_err(|why| invalid_patch(&shown, &why))?;
    Ok((scale, complaints))
}

fn check_scale(scale: &Value) -> Result<(), ApiError> {
    use portolan_schema::{FieldError, Path};
    let replicas = scale["spec"]["replicas"].as_i64().unwrap_or(0);
    if replicas >= 0 {
        return Ok(());
    }
    let root = Path::root();
    let spec = root.field("spec");
    let error = FieldError::invalid(&spec.field("replicas"), &json!(replicas), "must be greater than or equal to 0");
    Err(ApiError::invalid("autoscaling", "Scale", object::name(scale), &[error]))
}

/// A label selector as text: as it stands, or from its structured form.
fn selector_text(selector: &Value) -> String {
    if let Some(text) = selector.as_str() {
        return text.to_owned();
    }
    let mut terms: Vec<String> = Vec::new();
    for (key, value) in selector["matchLabels"].as_object().into_iter().flatten() {
        terms.push(format!("{key}={}", value.as_str().unwrap_or_default()));
    }
    for expression in selector["matchExpressions"].as_array().into_iter().flatten() {
        let key = expression["key"].as_str().unwrap_or_default();
        let values: Vec<&str> =
            expression["values"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        terms.push(match expression["operator"].as_str() {
            Some("In") => format!("{key} in ({})", values.join(",")),
            Some("NotIn") => format!("{key} notin ({})", values.join(",")),
            Some("DoesNotExist") => format!("!{key}"),
            _ => key.to_owned(),
        });
    }
    terms.sort();
    terms.join(",")
}
