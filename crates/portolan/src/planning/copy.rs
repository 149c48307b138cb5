//! A cluster's objects → the copy in which is planned: exactly as they are, except that nobody owns them.
//!
//! Owners are left out because the copy has few of them, and its garbage collector would take the rest for orphans.

use std::collections::BTreeSet;
use std::sync::Arc;

use portolan_apiserver::ApiServer;
use portolan_apiserver::encode::body_of;
use portolan_apiserver::store::{Expect, StoreKey, StoreWrite, Write, WriteError};
use portolan_zerotrust::model::State;
use serde_json::Value;

use super::PlanQuestion;
use super::references::{self, Reference, SourceKind};
use crate::definitions::{self, GATEWAY_GROUP};
use crate::failure::{Failure, Outcome};
use crate::finalizers::config_maps;
use crate::health_view::{self, GROUP};
use crate::kinds::{Kinds, ServedKind, segment};
use crate::manifest::Manifest;
use crate::server::{CallError, Server, ServerRequest};
use crate::simulation::secrets_named;
use crate::zerotrust;

/// Copies everything that planning looks at.
pub(super) async fn copy(from: &Server, to: &ApiServer, local: &Server, question: &PlanQuestion<'_>) -> Outcome {
    let kinds = Kinds::discover(from).await?;
    copy_definitions(from, local, &kinds).await?;
    let target = CopyTarget { from, to };
    target.collection(&core("namespaces", false)).await?;
    let mut objects = Vec::new();
    let read = |kind: &&ServedKind| matches!(kind.kind.as_str(), "HTTPRoute" | "ReferenceGrant");
    let routes = kinds.in_group(GATEWAY_GROUP).into_iter().filter(read);
    let copied = kinds.in_group(GROUP).into_iter().chain(kinds.in_group(zerotrust::GROUP)).chain(routes);
    for kind in copied {
        objects.extend(target.collection(kind).await?.into_iter().map(|object| named(kind, object)));
    }
    objects.extend(question.manifests.iter().map(|manifest| manifest.object.clone()));
    for (namespace, name) in secrets_named(&objects) {
        target.secret(&namespace, &name).await?;
    }
    target.config_maps(&question.namespace, is_ledger).await?;
    if objects.iter().any(is_tenant) {
        target.config_maps(&question.zerotrust_namespace, |item| is_ledger(item) || is_state(item)).await?;
        target.tokens().await?;
        target.recorded_tokens(&question.zerotrust_namespace).await?;
        target.services(&objects).await?;
        target.api_server().await?;
    }
    for reference in references::sources(&objects) {
        target.source(&reference).await?;
    }
    Ok(())
}

/// The annotation without which definitions of protected groups are refused.
const APPROVED: &str = "api-approved.kubernetes.io";
/// The label of Secrets with service tokens.
const TOKENS: &str = "app.kubernetes.io/managed-by=cfzt-operator";

/// Without tenants the zerotrust job has nothing to plan.
fn is_tenant(object: &Value) -> bool {
    object["kind"] == "CloudflareZeroTrustTenant"
}

/// What is known of deletions that were held.
fn is_ledger(item: &Value) -> bool {
    item["metadata"]["name"].as_str().is_some_and(|name| name.starts_with("portolan-held-"))
}

/// What is known of a published name.
fn is_state(item: &Value) -> bool {
    ["httproute_name", "former_name"].iter().any(|key| item["data"][*key].is_string())
}

/// Items of a list leave their kind out.
fn named(kind: &ServedKind, mut object: Value) -> Value {
    object["apiVersion"] = Value::from(format!("{}/{}", kind.group, kind.version));
    object["kind"] = Value::from(kind.kind.as_str());
    object
}

fn core(plural: &str, namespaced: bool) -> ServedKind {
    ServedKind {
        group: String::new(),
        version: "v1".to_owned(),
        kind: String::new(),
        plural: plural.to_owned(),
        singular: String::new(),
        short_names: Vec::new(),
        categories: Vec::new(),
        namespaced,
        listable: true,
    }
}

/// Kinds of the same group that other versions installed, and the Gateway API's.
async fn copy_definitions(from: &Server, local: &Server, kinds: &Kinds) -> Outcome {
    let ours = definitions::kinds();
    let same = kinds.in_group(GROUP).into_iter().chain(kinds.in_group(zerotrust::GROUP));
    let others = same.filter(|kind| !ours.contains(&kind.kind));
    let gateways = kinds
        .in_group(GATEWAY_GROUP)
        .into_iter()
        .filter(|kind| matches!(kind.kind.as_str(), "Gateway" | "HTTPRoute" | "ReferenceGrant"));
    let mut manifests = Vec::new();
    for kind in others.chain(gateways) {
        let path = format!("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{}", segment(&kind.resource()));
        if let Some(mut definition) = from.find(&path).await? {
            let name = definition["metadata"]["name"].take();
            let approved = definition["metadata"]["annotations"][APPROVED].take();
            definition["metadata"] = serde_json::json!({"name": name, "annotations": {APPROVED: approved}});
            if let Some(fields) = definition.as_object_mut() {
                fields.remove("status");
            }
            manifests.push(Manifest::made("the cluster", definition));
        }
    }
    definitions::install_all(local, &manifests).await
}

struct CopyTarget<'a> {
    from: &'a Server,
    to: &'a ApiServer,
}

impl CopyTarget<'_> {
    async fn collection(&self, kind: &ServedKind) -> Outcome<Vec<Value>> {
        let objects = health_view::list(self.from, kind).await?;
        for object in &objects {
            self.store(&kind.resource(), object.clone()).await?;
        }
        Ok(objects)
    }

    async fn secret(&self, namespace: &str, name: &str) -> Outcome {
        let path = format!("/api/v1/namespaces/{}/secrets/{}", segment(namespace), segment(name));
        match self.from.call(ServerRequest::get(&path)).await {
            Ok(answer) => self.store("secrets", answer.body).await,
            Err(CallError::Refused { code: 404, .. }) => Ok(()),
            Err(CallError::Refused { code: 403, message, .. }) => Err(Failure::new(message)
                .next("planning asks Cloudflare with the cluster's own credentials: use a kubeconfig that may read their Secrets")),
            Err(error) => Err(error.into()),
        }
    }

    /// Config maps of ours: deletions that were held, what is known of published names.
    async fn config_maps(&self, namespace: &str, wanted: fn(&Value) -> bool) -> Outcome {
        let path = format!("/api/v1/namespaces/{}/configmaps", segment(namespace));
        self.listed(&path, "configmaps", wanted).await
    }

    /// The Secrets with service tokens: whether they are there decides what is planned.
    async fn tokens(&self) -> Outcome {
        let path = format!("/api/v1/secrets?labelSelector={}", segment(TOKENS));
        self.listed(&path, "secrets", |_| true).await
    }

    /// The same of older operators, which are known by the states alone.
    async fn recorded_tokens(&self, namespace: &str) -> Outcome {
        for map in config_maps(self.from, namespace).await? {
            let Some(state) = State::read(&map).ok() else { continue };
            if let (Some(namespace), Some(name)) = (&state.route.namespace, &state.token_secret_name) {
                self.secret(namespace, name).await?;
            }
        }
        Ok(())
    }

    /// The Services whose addresses templates name.
    async fn services(&self, objects: &[Value]) -> Outcome {
        let named: BTreeSet<&str> = objects
            .iter()
            .filter_map(|object| object["spec"]["dnsOnly"]["ingressServiceRef"]["name"].as_str())
            .collect();
        for name in named {
            let path = format!("/api/v1/services?fieldSelector={}", segment(&format!("metadata.name={name}")));
            self.listed(&path, "services", |_| true).await?;
        }
        Ok(())
    }

    /// The API server's own Service: its address is nobody's origin.
    async fn api_server(&self) -> Outcome {
        match self.from.find("/api/v1/namespaces/default/services/kubernetes").await? {
            Some(service) => self.store("services", service).await,
            None => Ok(()),
        }
    }

    async fn listed(&self, path: &str, collection: &str, wanted: fn(&Value) -> bool) -> Outcome {
        let Some(list) = self.from.find(path).await? else { return Ok(()) };
        for item in list["items"].as_array().into_iter().flatten().filter(|item| wanted(item)) {
            self.store(collection, item.clone()).await?;
        }
        Ok(())
    }

    async fn source(&self, reference: &Reference) -> Outcome {
        let Some(object) = self.from.find(&reference.path()).await? else { return Ok(()) };
        if reference.kind == SourceKind::HttpRoute {
            for gateway in references::gateways(&object) {
                Box::pin(self.source(&gateway)).await?;
            }
        }
        let (root, plural) = reference.kind.resource();
        let group = root.strip_prefix("/apis/").and_then(|rest| rest.split('/').next());
        let collection = group.map_or_else(|| plural.to_owned(), |group| format!("{plural}.{group}"));
        self.store(&collection, object).await
    }

    async fn store(&self, collection: &str, mut object: Value) -> Outcome {
        let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default().to_owned();
        let key = StoreKey::new(&Arc::from(collection), &text("namespace"), &text("name"));
        if let Some(metadata) = object["metadata"].as_object_mut() {
            metadata.remove("ownerReferences");
        }
        let write = Write { key, expect: Expect::Absent, change: StoreWrite::Put(body_of(object)) };
        match self.to.store().write(write).await {
            // Namespaces that every server has, and objects that are named twice.
            Ok(_) | Err(WriteError::Unexpected(_)) => Ok(()),
            Err(error) => Err(Failure::new(format!("copying an object of {collection}: {error}"))),
        }
    }
}
