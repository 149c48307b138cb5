//! Manifests → server-side apply, definitions and namespaces first.

use std::time::Duration;

use futures::StreamExt;
use http::{Method, StatusCode};
use serde_json::Value;

use crate::failure::{Failure, Outcome};
use crate::kinds::{Kind, Kinds, segment};
use crate::manifest::Manifest;
use crate::output;
use crate::server::{Call, Server};

const APPLY_PATCH: &str = "application/apply-patch+yaml";
const ESTABLISH_TIMEOUT: Duration = Duration::from_secs(30);

/// How to apply.
#[derive(Clone, Debug)]
pub(crate) struct Options {
    /// Namespace of objects that name none; may not contradict those that do.
    pub(crate) namespace: Option<String>,
    /// Name under which the fields are owned.
    pub(crate) field_manager: String,
    /// What happens to fields of other managers.
    pub(crate) conflicts: Conflicts,
    /// Whether anything is stored.
    pub(crate) storing: Storing,
}

/// What happens to fields that other managers own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Conflicts {
    /// The object is refused.
    Refuse,
    /// They are taken over.
    TakeOver,
}

/// Whether anything is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Storing {
    /// As usual.
    Stored,
    /// The server checks and answers, and that is all.
    DryRun,
}

/// What became of an applied object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    /// It was not there before.
    Created,
    /// It is not as it was.
    Configured,
    /// It is as it was.
    Unchanged,
}

impl Change {
    /// The word for it.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Created => "created",
            Self::Configured => "configured",
            Self::Unchanged => "unchanged",
        }
    }
}

/// An object that was applied.
pub(crate) struct Applied {
    /// `configmap/a`.
    pub(crate) object: String,
    /// What became of it.
    pub(crate) change: Change,
}

/// Applies manifests to one server.
pub(crate) struct Applier<'a> {
    server: &'a Server,
    kinds: Kinds,
    options: Options,
}

impl<'a> Applier<'a> {
    /// Asks the server for its kinds.
    pub(crate) async fn new(server: &'a Server, options: Options) -> Outcome<Self> {
        Ok(Self { server, kinds: Kinds::discover(server).await?, options })
    }

    /// Applies all of them and tells `each` what became of every single one. Fails only if none can go on.
    pub(crate) async fn apply_all(
        &mut self,
        manifests: &[Manifest],
        mut each: impl FnMut(&Manifest, Outcome<Applied>),
    ) -> Outcome {
        let (first, rest): (Vec<_>, Vec<_>) = manifests.iter().partition(|manifest| comes_first(manifest));
        for manifest in &first {
            each(manifest, self.apply(manifest).await);
        }
        if self.options.storing == Storing::Stored && first.iter().any(|manifest| is_definition(manifest)) {
            self.learn_new_kinds(&first).await?;
        }
        for manifest in &rest {
            each(manifest, self.apply(manifest).await);
        }
        Ok(())
    }

    async fn apply(&self, manifest: &Manifest) -> Outcome<Applied> {
        let kind = self.kinds.of_object(manifest.api_version(), manifest.kind())?;
        let namespace = self.namespace_of(kind, manifest)?;
        let path = kind.object_path(&namespace, manifest.name());
        let before = self.server.find(&path).await?;
        let mut object = manifest.object.clone();
        if kind.namespaced {
            object["metadata"]["namespace"] = Value::String(namespace);
        }
        let path = format!("{path}?{}", self.query());
        let call = Call {
            method: Method::PATCH,
            content_type: APPLY_PATCH,
            body: object.to_string().into_bytes(),
            ..Call::get(&path)
        };
        let answer = self.server.call(call).await?;
        let change = outcome(answer.status, before.as_ref(), &answer.body);
        Ok(Applied { object: kind.object(manifest.name()), change })
    }

    /// The manifest's own namespace; one given by `-n` may fill a gap but not contradict.
    fn namespace_of(&self, kind: &Kind, manifest: &Manifest) -> Outcome<String> {
        let asked = self.options.namespace.as_deref();
        match (manifest.namespace().filter(|_| kind.namespaced), asked) {
            (Some(own), Some(asked)) if own != asked => {
                Err(Failure::new(format!("the object names namespace {own:?}, the command line -n {asked:?}"))
                    .next("leave out -n, or correct metadata.namespace"))
            }
            (Some(namespace), _) | (None, Some(namespace)) => Ok(namespace.to_owned()),
            (None, None) => Ok(self.server.default_namespace().to_owned()),
        }
    }

    fn query(&self) -> String {
        let mut query = format!("fieldManager={}&fieldValidation=Strict", segment(&self.options.field_manager));
        if self.options.conflicts == Conflicts::TakeOver {
            query.push_str("&force=true");
        }
        if self.options.storing == Storing::DryRun {
            query.push_str("&dryRun=All");
        }
        query
    }

    /// Waits until the new definitions are served, then asks for the kinds again.
    async fn learn_new_kinds(&mut self, manifests: &[&Manifest]) -> Outcome {
        for manifest in manifests.iter().filter(|manifest| is_definition(manifest)) {
            let kind = self.kinds.of_object(manifest.api_version(), manifest.kind())?;
            let established = wait_established(self.server, kind, manifest.name());
            match tokio::time::timeout(ESTABLISH_TIMEOUT, established).await {
                Ok(outcome) => outcome?,
                Err(_) => eprintln!("Warning: {} is not established yet", kind.object(manifest.name())),
            }
        }
        self.kinds = Kinds::discover(self.server).await?;
        Ok(())
    }
}

fn comes_first(manifest: &Manifest) -> bool {
    is_definition(manifest) || (manifest.api_version() == "v1" && manifest.kind() == "Namespace")
}

fn is_definition(manifest: &Manifest) -> bool {
    manifest.api_version().starts_with("apiextensions.k8s.io/") && manifest.kind() == "CustomResourceDefinition"
}

/// `created`, `configured`, or `unchanged` where the object is as it was.
fn outcome(status: StatusCode, before: Option<&Value>, after: &Value) -> Change {
    match before {
        Some(before) if is_same(before, after) => Change::Unchanged,
        None if status == StatusCode::CREATED => Change::Created,
        Some(_) | None => Change::Configured,
    }
}

/// A dry run leaves the version as it is, so the content counts too; who owns it is no content.
fn is_same(before: &Value, after: &Value) -> bool {
    let content = |object: &Value| {
        let mut object = object.clone();
        output::hide_managed_fields(&mut object);
        object
    };
    content(before) == content(after)
}

async fn wait_established(server: &Server, kind: &Kind, name: &str) -> Outcome {
    let Some(object) = server.find(&kind.object_path("", name)).await? else {
        return Ok(());
    };
    if is_established(&object) {
        return Ok(());
    }
    let version = object["metadata"]["resourceVersion"].as_str().unwrap_or_default();
    let field = segment(&format!("metadata.name={name}"));
    let path = format!("{}?watch=true&fieldSelector={field}&resourceVersion={version}", kind.collection_path(None));
    let mut events = server.watch(&path, "application/json").await?;
    while let Some(event) = events.next().await {
        if is_established(&event?["object"]) {
            return Ok(());
        }
    }
    Ok(())
}

fn is_established(definition: &Value) -> bool {
    let conditions = definition["status"]["conditions"].as_array().into_iter().flatten();
    conditions.into_iter().any(|condition| condition["type"] == "Established" && condition["status"] == "True")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::manifest;

    #[test]
    fn an_object_whose_version_stayed_is_unchanged() {
        let object = |version: &str| json!({"metadata": {"resourceVersion": version}});

        assert_eq!(outcome(StatusCode::OK, Some(&object("1")), &object("1")), Change::Unchanged);
        assert_eq!(outcome(StatusCode::OK, Some(&object("1")), &object("2")), Change::Configured);
        assert_eq!(outcome(StatusCode::CREATED, None, &object("2")), Change::Created);
    }

    #[test]
    fn definitions_and_namespaces_go_before_the_rest() {
        let text = "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}\n---\n{apiVersion: v1, kind: Namespace, metadata: {name: a}}\n---\n\
            {apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: a}}\n";
        let manifests = manifest::parse("f", text).unwrap();

        assert_eq!(manifests.iter().map(comes_first).collect::<Vec<_>>(), [false, true, true]);
    }
}
