//! One request for a resource: its verbs, and what they share.

mod admission;
mod binding;
mod connect;
mod create;
mod delete;
mod eviction;
mod input;
mod list;
mod logs;
mod options;
mod patch;
mod protobuf;
mod read;
mod scale;
mod strategic;
mod update;
mod watch;

use std::sync::Arc;

use bytes::Bytes;
use http::{Method, StatusCode};
use serde_json::Value;

pub(crate) use connect::Upgrade;
pub(crate) use delete::{DeleteOptions, FOREGROUND, ORPHAN, Propagation};
pub(crate) use update::UpdateResult;

use portolan_rbac::User;

use crate::access;
use crate::answer::Answer;
use crate::api::Api;
use crate::negotiate::{self, Accepted, MediaTypes, ObjectForm};
use crate::registry::{Registry, Resource};
use crate::request::{Query, RequestTarget};
use crate::status::ApiError;
use crate::strategy::ObjectPart;
use crate::warnings::Warnings;

/// A request for a resource, with everything that its verb needs.
pub(crate) struct Call {
    pub(crate) api: Arc<Api>,
    pub(crate) registry: Arc<Registry>,
    pub(crate) resource: Arc<Resource>,
    pub(crate) target: RequestTarget,
    pub(crate) query: Query,
    pub(crate) accepted: Accepted,
    pub(crate) content_type: String,
    pub(crate) user_agent: String,
    pub(crate) body: Bytes,
    pub(crate) warnings: Warnings,
    /// Who asks.
    pub(crate) user: Arc<User>,
    /// Where it asks for another protocol on its connection.
    pub(crate) upgrade: Option<Upgrade>,
}

/// A request as it came in.
pub(crate) struct Incoming {
    pub(crate) method: Method,
    pub(crate) path: String,
    pub(crate) query: String,
    pub(crate) accept: String,
    pub(crate) content_type: String,
    pub(crate) user_agent: String,
    pub(crate) user: Arc<User>,
    pub(crate) body: Bytes,
    pub(crate) upgrade: Option<Upgrade>,
}

impl Call {
    /// Finds the resource and reads the headers.
    pub(crate) fn new(api: Arc<Api>, target: RequestTarget, incoming: Incoming) -> Result<Self, ApiError> {
        let registry = api.registry();
        let Some(resource) = registry.find(&target.group, &target.version, &target.plural).cloned() else {
            return Err(unknown_resource(&registry, &target));
        };
        let placed = resource.namespaced || target.namespace.is_empty();
        if !resource.serves(&target.subresource) || !placed {
            return Err(unknown_resource(&registry, &target));
        }
        let listed = target.name.is_empty() && incoming.method == Method::GET;
        let asked = if listed { MediaTypes::Many } else { MediaTypes::One };
        let accepted = negotiate::accept(
            &incoming.accept,
            &[ObjectForm::Table, ObjectForm::Partial, ObjectForm::PartialList],
            asked,
        )?;
        if accepted.shape == ObjectForm::PartialList && asked == MediaTypes::One {
            return Err(ApiError::not_a_list(&resource.kind));
        }
        let query = Query::parse(&incoming.query);
        if accepted.shape == ObjectForm::Table {
            crate::table::Include::check(&query)?;
        }
        let warnings = Warnings::to_client(resource.warning());
        Ok(Self {
            api,
            registry,
            resource,
            target,
            query,
            accepted,
            content_type: incoming.content_type,
            user_agent: incoming.user_agent,
            body: incoming.body,
            warnings,
            user: incoming.user,
            upgrade: incoming.upgrade,
        })
    }

    /// A call of the server's own controllers.
    pub(crate) fn internal(api: Arc<Api>, resource: Arc<Resource>, target: RequestTarget) -> Self {
        Self {
            registry: api.registry(),
            api,
            resource,
            target,
            query: Query::default(),
            accepted: negotiate::PLAIN,
            content_type: String::new(),
            user_agent: "portolan-apiserver".to_owned(),
            body: Bytes::new(),
            warnings: Warnings::to_nobody(),
            user: access::administrator(),
            upgrade: None,
        }
    }

    /// Runs the verb that the method and path mean.
    pub(crate) async fn run(mut self, method: &Method) -> Result<Answer, (ApiError, Vec<String>)> {
        let result = self.dispatch(method).await;
        match result {
            Ok(mut answer) => {
                answer.warnings = self.warnings.into_told();
                Ok(answer)
            }
            Err(error) => Err((error, self.warnings.into_told())),
        }
    }

    async fn dispatch(&mut self, method: &Method) -> Result<Answer, ApiError> {
        let named = !self.target.name.is_empty();
        let method = if *method == Method::HEAD { &Method::GET } else { method };
        // A namespaced object without its namespace has no home.
        if named && self.resource.namespaced && self.target.namespace.is_empty() {
            return Err(unknown_resource(&self.registry, &self.target));
        }
        if self.resource.is_virtual() {
            return self.review(method);
        }
        let subresource = self.target.subresource.clone();
        match (method, named, subresource.as_str()) {
            (&Method::GET, false, "") if self.wants_watch() => self.watch(),
            (&Method::GET, true, "") if self.target.legacy_watch => self.watch(),
            (&Method::GET, false, "") => self.list(),
            (&Method::POST, false, "") if self.can_create() => self.create().await,
            (&Method::DELETE, false, "") if self.resource.verbs.contains(&"deletecollection") => {
                self.delete_collection().await
            }
            (&Method::GET, true, "" | "status" | "ephemeralcontainers" | "resize") => self.get(),
            (&Method::PUT, true, "") => self.replace(ObjectPart::Main).await,
            (&Method::PATCH, true, "") => self.patch(ObjectPart::Main).await,
            (&Method::DELETE, true, "") => self.delete().await,
            (&Method::PUT, true, "status") => self.replace(ObjectPart::Status).await,
            (&Method::PATCH, true, "status") => self.patch(ObjectPart::Status).await,
            (&Method::PUT, true, "finalize") => self.replace(ObjectPart::Finalize).await,
            (&Method::POST, true, "token") => self.create_token(),
            (&Method::GET, true, "scale") => self.get_scale(),
            (&Method::PUT, true, "scale") => self.put_scale().await,
            (&Method::PATCH, true, "scale") => self.patch_scale().await,
            (&Method::GET, true, "log") => self.log().await,
            (&Method::POST, true, "binding") => self.bind().await,
            (&Method::POST, true, "eviction") => self.evict().await,
            (&Method::PUT, true, "ephemeralcontainers") => self.replace(ObjectPart::EphemeralContainers).await,
            (&Method::PATCH, true, "ephemeralcontainers") => self.patch(ObjectPart::EphemeralContainers).await,
            (&Method::PUT, true, "resize") => self.replace(ObjectPart::Resize).await,
            (&Method::PATCH, true, "resize") => self.patch(ObjectPart::Resize).await,
            (&Method::GET | &Method::POST, true, "exec" | "attach" | "portforward") => self.connect(&subresource),
            (_, true, proxy) if proxy.split('/').next() == Some("proxy") => self.connect(&subresource),
            _ => Err(ApiError::method_not_allowed()),
        }
    }

    fn can_create(&self) -> bool {
        self.resource.verbs.contains(&"create") && (!self.resource.namespaced || !self.target.namespace.is_empty())
    }

    fn wants_watch(&self) -> bool {
        self.target.legacy_watch || self.query.flag("watch")
    }

    /// An answer that shows one object.
    pub(crate) fn show(&self, code: StatusCode, object: &Value) -> Answer {
        Answer::object(code, &self.resource, object, self.accepted, &self.query, (self.api.clock)())
    }
}

/// What a path below no resource answers: plain text where no server owns the path, a `Status` where one does.
fn unknown_resource(registry: &Registry, target: &RequestTarget) -> ApiError {
    match registry.find(&target.group, &target.version, &target.plural) {
        // A subresource that a custom kind does not have looks like an object that is not there.
        Some(resource) if resource.custom().is_some() && !target.subresource.is_empty() => {
            ApiError::not_found(resource.about(&target.name))
        }
        Some(resource) if resource.custom().is_some() => ApiError::no_such_path(),
        Some(_) => ApiError::no_such_resource(),
        None if registry.is_builtin_group(&target.group) => ApiError::no_such_resource(),
        None => ApiError::no_such_path(),
    }
}
