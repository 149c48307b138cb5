//! Changing an object that is there: the loop that every update, patch, apply and deletion step runs through.

use std::sync::Arc;

use http::StatusCode;
use portolan_patch::ssa::{FieldSet, reset};
use portolan_schema::{FieldError, Path};
use serde_json::{Value, json};

use super::Call;
use super::options::WriteOptions;
use crate::addresses;
use crate::answer::Answer;
use crate::encode;
use crate::object;
use crate::registry::{Resource, RuleSource};
use crate::status::ApiError;
use crate::store::{Expect, StoreWrite, StoredObject, Write, WriteError};
use crate::strategy::ObjectPart;

/// How often a change is computed anew because someone else wrote meanwhile.
const MOST_ATTEMPTS: usize = 100;

/// What became of an object.
#[derive(Clone, Debug)]
pub(crate) enum UpdateResult {
    /// It was written, or did not differ.
    Kept(Value),
    /// Its last finalizer went, and it with it.
    Removed(Value),
}

impl UpdateResult {
    pub(crate) fn into_object(self) -> Value {
        match self {
            Self::Kept(object) | Self::Removed(object) => object,
        }
    }
}

impl Call {
    pub(super) async fn replace(&mut self, part: ObjectPart) -> Result<Answer, ApiError> {
        let options = self.write_options("UpdateOptions", false)?;
        let mut value = self.object_from_body(options.field_validation)?;
        self.place(&mut value, true)?;
        let key = self.resource.key(&self.target.namespace, &self.target.name);
        if self.api.store.get(&key).is_none() {
            return self.create_by_update(value, &options, part).await;
        }
        let intend = |live: &Value| {
            let mut new = self.own_update(live, value.clone(), &options, &self.target.subresource);
            self.admit_update(&mut new, live)?;
            Ok(new)
        };
        let outcome = self.change(part, options.dry_run, SentUpdate::Whole, intend).await?.into_object();
        Ok(self.show(StatusCode::OK, &outcome))
    }

    /// A PUT where nothing is: some kinds take it as a creation.
    async fn create_by_update(
        &self,
        value: Value,
        options: &WriteOptions,
        part: ObjectPart,
    ) -> Result<Answer, ApiError> {
        let name = &self.target.name;
        if part != ObjectPart::Main || !self.resource.create_on_update() {
            return Err(ApiError::not_found(self.resource.about(name)));
        }
        if !object::meta_text(&value, "resourceVersion").is_empty() {
            return Err(ApiError::modified(self.resource.about(name)));
        }
        self.check_namespace(name)?;
        let mut value = self.own_update(&Value::Null, value, options, "");
        self.admit_create(&mut value).await?;
        let created = self.insert(value, options.dry_run).await?;
        Ok(self.show(StatusCode::CREATED, &created))
    }

    /// The owners of fields after a write by any verb but apply.
    pub(crate) fn own_update(&self, live: &Value, new: Value, options: &WriteOptions, subresource: &str) -> Value {
        let api_version = self.resource.api_version();
        let (now, reset) = (self.api.now(), reset_fields(&self.resource, subresource));
        let context = portolan_patch::ssa::Context {
            manager: &options.manager,
            api_version: &api_version,
            subresource,
            now: &now,
            schema: self.resource.cursor(),
            reset,
        };
        portolan_patch::ssa::update(live, new, &context)
    }

    /// Changes an object for one of the server's own controllers; `edit` answers whether there is anything to write.
    pub(crate) async fn system_change(
        &self,
        part: ObjectPart,
        manager: &str,
        edit: impl Fn(&mut Value) -> bool,
    ) -> Result<UpdateResult, ApiError> {
        let options = WriteOptions::of_controller(manager);
        let subresource = match part {
            ObjectPart::Main => "",
            ObjectPart::Status => "status",
            ObjectPart::Finalize => "finalize",
            ObjectPart::EphemeralContainers => "ephemeralcontainers",
            ObjectPart::Resize => "resize",
        };
        let intend = |live: &Value| {
            let mut new = live.clone();
            if edit(&mut new) { Ok(self.own_update(live, new, &options, subresource)) } else { Ok(live.clone()) }
        };
        self.change(part, false, SentUpdate::Edit, intend).await
    }

    /// Changes the object that the request names.
    pub(super) async fn change(
        &self,
        part: ObjectPart,
        dry_run: bool,
        sent: SentUpdate,
        intend: impl Fn(&Value) -> Result<Value, ApiError>,
    ) -> Result<UpdateResult, ApiError> {
        let change = Changing { call: self, part, dry_run, sent };
        change.run(&self.target.namespace, &self.target.name, intend).await
    }
}

/// What a client sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SentUpdate {
    /// The new state as a whole: its uid must be the object's.
    Whole,
    /// What to change.
    Edit,
}

struct Changing<'a> {
    call: &'a Call,
    part: ObjectPart,
    dry_run: bool,
    sent: SentUpdate,
}

impl Changing<'_> {
    async fn run(
        &self,
        namespace: &str,
        name: &str,
        intend: impl Fn(&Value) -> Result<Value, ApiError>,
    ) -> Result<UpdateResult, ApiError> {
        let (api, resource) = (&self.call.api, &self.call.resource);
        let key = resource.key(namespace, name);
        let about = || resource.about(name);
        let mut current = api.store.get(&key).ok_or_else(|| ApiError::not_found(about()))?;
        for _ in 0..MOST_ATTEMPTS {
            let live = api.object(resource, &current);
            let wanted = intend(&live)?;
            self.call.confirm_rights(&live, &wanted)?;
            let mut new = self.checked(&live, wanted)?;
            portolan_patch::ssa::keep_times(&live, &mut new);
            let removed = is_finished(&new);
            if !removed && live == new {
                return Ok(UpdateResult::Kept(live));
            }
            if self.dry_run {
                return Ok(if removed { UpdateResult::Removed(new) } else { UpdateResult::Kept(new) });
            }
            match self.write(&current, new, removed).await {
                Ok(outcome) => return Ok(outcome),
                Err(WriteError::Unexpected(Some(now))) => current = now,
                Err(WriteError::Unexpected(None)) => return Err(ApiError::not_found(about())),
                Err(error) => return Err(ApiError::internal(error)),
            }
        }
        Err(ApiError::modified(about()))
    }

    /// The new state with system fields put right; an error where it may not be.
    fn checked(&self, live: &Value, mut new: Value) -> Result<Value, ApiError> {
        let resource = &self.call.resource;
        let name = object::name(live);
        let version = object::meta_text(&new, "resourceVersion");
        if version.is_empty() || version == "0" {
            if !resource.unconditional_update() {
                return Err(unversioned(resource, name));
            }
            let version = live["metadata"]["resourceVersion"].clone();
            object::set_meta(&mut new, "resourceVersion", Some(version));
        } else if version.parse::<u64>().is_err() {
            return Err(ApiError::unexpected(format!("strconv.ParseUint: parsing {version:?}: invalid syntax")));
        } else if version != object::meta_text(live, "resourceVersion") {
            return Err(ApiError::modified(resource.about(name)));
        }
        if self.sent == SentUpdate::Whole {
            check_uid(resource, &new, live)?;
        }
        if object::meta_text(&new, "uid").is_empty() {
            object::set_meta(&mut new, "uid", live["metadata"].get("uid").cloned());
        }
        keep_system_times(&mut new, live);
        resource.prepare_update(&mut new, live, self.part);
        let mut errors: Vec<FieldError> = Vec::new();
        if self.part == ObjectPart::Main && resource.is("", "services") {
            errors = addresses::allocate(&self.call.api, resource, &mut new, Some(live));
        }
        if errors.is_empty() {
            errors = resource.validate_update(&new, live, self.part);
        }
        if !errors.is_empty() {
            return Err(resource.invalid(name, &errors));
        }
        self.call.warnings.tell(|| resource.warnings(&new, live, self.part));
        Ok(new)
    }

    async fn write(&self, current: &Arc<StoredObject>, new: Value, removed: bool) -> Result<UpdateResult, WriteError> {
        let resource = &self.call.resource;
        let (key, expect) = (current.key.clone(), Expect::Version(current.version));
        if removed {
            // Watchers see the last state that was stored; the client sees the one that it asked for.
            self.call.api.store.write(Write { key, expect, change: StoreWrite::Delete }).await?;
            return Ok(UpdateResult::Removed(new));
        }
        let change = StoreWrite::Put(encode::body_of(resource.store_form(new)));
        let stored = self.call.api.store.write(Write { key, expect, change }).await?;
        Ok(UpdateResult::Kept(self.call.api.object(resource, &stored)))
    }
}

/// When an object was made never changes; once it goes, neither does when.
fn keep_system_times(new: &mut Value, live: &Value) {
    let of_live = |field: &str| live["metadata"].get(field).cloned();
    object::set_meta(new, "creationTimestamp", of_live("creationTimestamp"));
    object::set_meta(new, "selfLink", of_live("selfLink"));
    if let Some(time) = of_live("deletionTimestamp") {
        object::set_meta(new, "deletionTimestamp", Some(time));
    }
    if let Some(grace) = of_live("deletionGracePeriodSeconds")
        && new["metadata"]["deletionGracePeriodSeconds"].is_null()
    {
        object::set_meta(new, "deletionGracePeriodSeconds", Some(grace));
    }
}

/// A replacement must say what it replaces.
fn unversioned(resource: &Resource, name: &str) -> ApiError {
    let root = Path::root();
    let metadata = root.field("metadata");
    let error = FieldError::invalid(&metadata.field("resourceVersion"), &json!(0), "must be specified for an update");
    ApiError::invalid(&resource.group, &resource.plural, name, &[error])
}

pub(super) fn check_uid(resource: &Resource, new: &Value, live: &Value) -> Result<(), ApiError> {
    let (given, actual) = (object::meta_text(new, "uid"), object::meta_text(live, "uid"));
    if given.is_empty() || given == actual {
        return Ok(());
    }
    let key = match (resource.custom().is_some(), object::namespace(live)) {
        (true, namespace) => {
            format!("/registry/{}/{}/{namespace}/{}", resource.group, resource.plural, object::name(live))
        }
        (false, namespace) => format!("/registry/{}/{namespace}/{}", resource.plural, object::name(live)),
    }
    .replace("//", "/");
    let why = format!(
        "StorageError: invalid object, Code: 4, Key: {key}, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: \
         UID in precondition: {given}, UID in object meta: {actual}"
    );
    Err(ApiError::conflict(resource.about(object::name(live)), &why))
}

/// Whether a deletion has nothing left to wait for.
fn is_finished(new: &Value) -> bool {
    let grace = new["metadata"]["deletionGracePeriodSeconds"].as_i64().unwrap_or(0);
    let spec_finalizers =
        || new["kind"] == json!("Namespace") && new["spec"]["finalizers"].as_array().is_some_and(|f| !f.is_empty());
    object::is_deleting(new) && object::finalizers(new).next().is_none() && grace == 0 && !spec_finalizers()
}

/// Fields that an endpoint takes no ownership of, because it does not write them.
pub(super) fn reset_fields(resource: &Resource, subresource: &str) -> &'static FieldSet {
    match (&resource.source, subresource) {
        (RuleSource::Builtin(kind), _) => reset::built_in(kind.group, kind.kind, subresource),
        (RuleSource::Custom(custom), "") if custom.status => reset::custom_main(),
        (RuleSource::Custom(_), "status") => reset::custom_status(),
        (RuleSource::Custom(_), _) => reset::nothing(),
    }
}
