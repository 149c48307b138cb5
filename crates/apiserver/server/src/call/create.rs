//! `POST` of a new object.

use http::StatusCode;
use portolan_schema::FieldError;
use serde_json::{Value, json};

use super::Call;
use super::options::WriteOptions;
use crate::addresses;
use crate::answer::Answer;
use crate::decode::Decoded;
use crate::encode;
use crate::object;
use crate::status::{About, ApiError};
use crate::store::{Expect, StoreWrite, StoredObject, Write, WriteError};

/// How often a generated name is drawn again when it is taken.
const MOST_NAME_DRAWS: usize = 8;

impl Call {
    pub(super) async fn create(&mut self) -> Result<Answer, ApiError> {
        let options = self.write_options("CreateOptions", false)?;
        let mut value = self.object_from_body(options.field_validation)?;
        self.place(&mut value, false)?;
        let created = self.create_named(value, &options).await?;
        Ok(self.show(StatusCode::CREATED, &created))
    }

    /// Makes an object for one of the server's own controllers.
    pub(crate) async fn system_create(&self, manager: &str, object: Value) -> Result<Value, ApiError> {
        let options = WriteOptions::of_controller(manager);
        let decoded = Decoded { value: object, duplicates: Vec::new() };
        let (mut value, _) = self.read_object(decoded, options.field_validation)?;
        self.place(&mut value, false)?;
        self.create_named(value, &options).await
    }

    /// Makes an object, under a name that is drawn where it has a prefix only.
    async fn create_named(&self, value: Value, options: &WriteOptions) -> Result<Value, ApiError> {
        let generated = object::name(&value).is_empty() && !object::meta_text(&value, "generateName").is_empty();
        for draw in 0..MOST_NAME_DRAWS {
            let mut candidate = value.clone();
            if generated {
                let name = generated_name(object::meta_text(&candidate, "generateName"), &self.api.name_suffix());
                object::set_meta(&mut candidate, "name", Some(json!(name)));
            }
            match self.create_object(candidate, options).await {
                Err(error) if generated && error.reason == "AlreadyExists" && draw + 1 < MOST_NAME_DRAWS => {}
                other => return other,
            }
        }
        Err(ApiError::internal("no free name was found"))
    }

    /// Ownership, system fields, checks and the write of a new object.
    async fn create_object(&self, mut value: Value, options: &WriteOptions) -> Result<Value, ApiError> {
        self.check_namespace(object::name(&value))?;
        for field in ["selfLink", "deletionTimestamp", "deletionGracePeriodSeconds"] {
            object::set_meta(&mut value, field, None);
        }
        let mut value = self.own_update(&Value::Null, value, options, "");
        self.admit_create(&mut value).await?;
        self.insert(value, options.dry_run).await
    }

    /// The last steps of every creation, by POST, PUT or apply.
    pub(super) async fn insert(&self, mut value: Value, dry_run: bool) -> Result<Value, ApiError> {
        let resource = &self.resource;
        self.confirm_rights(&Value::Null, &value)?;
        if resource.custom().is_some_and(|custom| custom.terminating) {
            return Err(ApiError::kind_is_going());
        }
        object::set_meta(&mut value, "creationTimestamp", Some(json!(self.api.now())));
        object::set_meta(&mut value, "uid", Some(json!(self.api.new_uid())));
        for field in ["selfLink", "deletionTimestamp", "deletionGracePeriodSeconds"] {
            object::set_meta(&mut value, field, None);
        }
        resource.prepare_create(&mut value);
        let name = object::name(&value).to_owned();
        let mut errors: Vec<FieldError> = Vec::new();
        if resource.is("", "services") {
            errors = addresses::allocate(&self.api, resource, &mut value, None);
        }
        if errors.is_empty() {
            errors = resource.validate_create(&value);
        }
        if !errors.is_empty() {
            return Err(resource.invalid(&name, &errors));
        }
        // Told even where the name turns out to be taken.
        self.warnings.tell(|| resource.warnings_of_new(&value));
        if !self.target.name.is_empty() {
            self.confirm_create()?;
        }
        let key = resource.key(object::namespace(&value), &name);
        if dry_run {
            return match self.api.store.get(&key) {
                Some(there) => Err(self.taken(Some(&there), &name)),
                None => Ok(value),
            };
        }
        if !object::meta_text(&value, "resourceVersion").is_empty() {
            return Err(ApiError::unexpected("resourceVersion should not be set on objects to be created"));
        }
        let body = encode::body_of(resource.store_form(value));
        let write = Write { key, expect: Expect::Absent, change: StoreWrite::Put(body) };
        match self.api.store.write(write).await {
            Ok(stored) => Ok(self.api.object(resource, &stored)),
            Err(WriteError::Unexpected(there)) => Err(self.taken(there.as_deref(), &name)),
            Err(error) => Err(ApiError::internal(error)),
        }
    }

    /// A name that is taken, for good or until its object is gone.
    fn taken(&self, there: Option<&StoredObject>, name: &str) -> ApiError {
        let mut error = ApiError::already_exists(self.resource.about(name));
        if there.is_some_and(|stored| object::is_deleting(&self.api.object(&self.resource, stored))) {
            error.message = format!("object is being deleted: {}", error.message);
        }
        error
    }

    /// New objects need a namespace that exists and stays.
    pub(crate) fn check_namespace(&self, name: &str) -> Result<(), ApiError> {
        if !self.resource.namespaced {
            return Ok(());
        }
        let namespace = &self.target.namespace;
        let namespaces =
            self.registry.find("", "v1", "namespaces").ok_or_else(|| ApiError::internal("no namespaces"))?;
        let Some(stored) = self.api.store.get(&namespaces.key("", namespace)) else {
            return Err(ApiError::not_found(About { group: "", plural: "namespaces", name: namespace }));
        };
        let found = self.api.object(namespaces, &stored);
        if !object::is_deleting(&found) {
            return Ok(());
        }
        let why = format!("unable to create new content in namespace {namespace} because it is being terminated");
        let mut error = ApiError::forbidden(self.resource.about(name), &why);
        if let Some(details) = &mut error.details {
            details.causes.push(crate::status::Cause {
                reason: "NamespaceTerminating".to_owned(),
                message: format!("namespace {namespace} is being terminated"),
                field: "metadata.namespace".to_owned(),
            });
        }
        Err(error)
    }
}

/// `prefix` and `suffix`, the prefix cut so that both fit a name.
fn generated_name(prefix: &str, suffix: &str) -> String {
    const LONGEST_PREFIX: usize = 63 - 5;
    let mut end = prefix.len().min(LONGEST_PREFIX);
    while !prefix.is_char_boundary(end) {
        end -= 1;
    }
    format!("{}{suffix}", &prefix[..end])
}
