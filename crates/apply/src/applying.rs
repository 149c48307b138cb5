//! Manifests → server-side apply, definitions and namespaces first.

mod owners;
mod three_way;
mod way;

use std::time::Duration;

use futures::StreamExt;
use http::{Method, StatusCode};
use serde_json::{Value, json};

use crate::failure::{Failure, Outcome};
use crate::kinds::{Kinds, ServedKind, segment};
use crate::manifest::Manifest;
use crate::server::{CallError, Server, ServerReply, ServerRequest};

use owners::{FieldOwner, Operation};
pub use way::MANAGER;
use way::{ApplyMethod, Choice, FORMER_MANAGER};

const APPLY_PATCH: &str = "application/apply-patch+yaml";
const MERGE_PATCH: &str = "application/merge-patch+json";
const JSON_PATCH: &str = "application/json-patch+json";
/// How often an object that others write meanwhile is looked at again.
const ATTEMPTS: usize = 5;
const ESTABLISH_TIMEOUT: Duration = Duration::from_secs(30);

/// How to apply.
#[derive(Clone, Debug)]
pub struct ApplyOptions {
    /// Namespace of objects that name none; may not contradict those that do.
    pub namespace: Option<String>,
    /// Who applies.
    pub applier: As,
    /// What happens to fields of other managers.
    pub conflicts: Conflicts,
    /// Whether anything is stored.
    pub storing: Storing,
}

/// Who applies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum As {
    /// The manager of this name, by server-side apply.
    Manager(String),
    /// Whoever applied the object before, in the same way; where a name is given, that manager.
    Before(Option<String>),
}

impl As {
    /// Portolan.
    pub fn portolan() -> Self {
        Self::Manager(MANAGER.to_owned())
    }

    fn choose(&self, live: Option<&Value>) -> Choice {
        let plain = |way| Choice { way, note: None };
        match (self, live) {
            (Self::Manager(manager) | Self::Before(Some(manager)), None) | (Self::Manager(manager), Some(_)) => {
                plain(ApplyMethod::ServerSide { manager: manager.clone() })
            }
            (Self::Before(None), None) => plain(ApplyMethod::ServerSide { manager: MANAGER.to_owned() }),
            (Self::Before(None), Some(live)) => way::of(live),
            (Self::Before(Some(manager)), Some(live)) => plain(way::by(manager, live)),
        }
    }
}

/// What happens to fields that other managers own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Conflicts {
    /// The object is refused.
    Refuse,
    /// They are taken over.
    TakeOver,
    /// They are taken over, and it is told where that needs to be asked for.
    Tell,
}

/// Whether anything is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Storing {
    /// As usual.
    Stored,
    /// The server checks and answers, and that is all.
    DryRun,
}

/// What became of an applied object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AppliedAs {
    /// It was not there before.
    Created,
    /// It is not as it was.
    Configured,
    /// It is as it was.
    Unchanged,
}

impl AppliedAs {
    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Created => "created",
            Self::Configured => "configured",
            Self::Unchanged => "unchanged",
        }
    }
}

/// An object that was applied.
pub struct AppliedObject {
    /// `configmap/a`.
    pub object: String,
    /// What became of it.
    pub change: AppliedAs,
    /// What there is to say about how it was applied.
    pub notes: Vec<String>,
}

/// Applies manifests to one server.
pub struct Applier<'a> {
    server: &'a Server,
    kinds: Kinds,
    options: ApplyOptions,
}

impl<'a> Applier<'a> {
    /// Asks the server for its kinds.
    pub async fn new(server: &'a Server, options: ApplyOptions) -> Outcome<Self> {
        Ok(Self { server, kinds: Kinds::discover(server).await?, options })
    }

    /// Applies all of them and tells `each` what became of every single one. Fails only if none can go on.
    pub async fn apply_all(
        &mut self,
        manifests: &[Manifest],
        mut each: impl FnMut(&Manifest, Outcome<AppliedObject>),
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

    async fn apply(&self, manifest: &Manifest) -> Outcome<AppliedObject> {
        let kind = self.kinds.of_object(manifest.api_version(), manifest.kind())?;
        let namespace = self.namespace_of(kind, manifest)?;
        let path = kind.object_path(&namespace, manifest.name());
        let before = self.server.find(&path).await?;
        let mut object = manifest.object.clone();
        if kind.namespaced {
            object["metadata"]["namespace"] = Value::String(namespace);
        }
        let Choice { way, note } = self.options.applier.choose(before.as_ref());
        let mut notes: Vec<String> = note.into_iter().collect();
        let answer = match &before {
            Some(live) => self.apply_to(&path, live, &object, &way, &mut notes).await?,
            None => self.server_side(&path, &object, way.manager(), self.options.conflicts).await?,
        };
        let change = outcome(answer.status, before.as_ref(), &answer.body);
        Ok(AppliedObject { object: kind.object(manifest.name()), change, notes })
    }

    /// Applies a file to an object that is there.
    async fn apply_to(
        &self,
        path: &str,
        live: &Value,
        file: &Value,
        way: &ApplyMethod,
        notes: &mut Vec<String>,
    ) -> Outcome<ServerReply> {
        let manager = match way {
            ApplyMethod::ClientSide { manager, last } => {
                return Ok(self.merge(path, &three_way::patch(last, file, live), manager).await?);
            }
            ApplyMethod::ServerSide { manager } if manager == MANAGER => self.succeed(path, live, is_former).await?,
            ApplyMethod::ServerSide { manager } => manager,
            ApplyMethod::Release { manager } => {
                let writes = |owner: &FieldOwner<'_>| owner.manager == manager && owner.operation == Operation::Update;
                self.hand_over(path, live, writes, manager).await?;
                manager
            }
        };
        if self.options.conflicts != Conflicts::Tell || way.forces() {
            return Ok(self.server_side(path, file, manager, self.options.conflicts).await?);
        }
        match self.server_side(path, file, manager, Conflicts::Refuse).await {
            Err(CallError::Refused { code: 409, message, .. }) => {
                notes.push(format!("refused unless conflicts are forced: {message}"));
                Ok(self.server_side(path, file, manager, Conflicts::TakeOver).await?)
            }
            answer => Ok(answer?),
        }
    }

    /// The name under which Portolan applies to an object: what it applied under a former name becomes its own first, so
    /// that it neither conflicts with itself nor forgets what it applied.
    async fn succeed(&self, path: &str, live: &Value, is_former: fn(&FieldOwner<'_>) -> bool) -> Outcome<&'static str> {
        if self.options.storing == Storing::DryRun {
            return Ok(if owners::owners(live).any(|owner| is_former(&owner)) { FORMER_MANAGER } else { MANAGER });
        }
        self.hand_over(path, live, is_former, MANAGER).await?;
        Ok(MANAGER)
    }

    /// Makes what some owners have a manager's, as applied.
    async fn hand_over(
        &self,
        path: &str,
        live: &Value,
        from: impl Fn(&FieldOwner<'_>) -> bool,
        manager: &str,
    ) -> Outcome {
        let mut live = live.clone();
        for attempt in 1.. {
            let Some(fields) = owners::handed_over(&live, &from, manager) else { break };
            let patch = json!([
                {"op": "replace", "path": "/metadata/managedFields", "value": fields},
                {"op": "replace", "path": "/metadata/resourceVersion", "value": live["metadata"]["resourceVersion"]},
            ]);
            match self.patch(path, JSON_PATCH, &patch, &format!("fieldManager={}", segment(manager))).await {
                Err(CallError::Refused { code: 409, .. }) if attempt < ATTEMPTS => {
                    let Some(newer) = self.server.find(path).await? else { break };
                    live = newer;
                }
                answer => return Ok(answer.map(drop)?),
            }
        }
        Ok(())
    }

    async fn server_side(
        &self,
        path: &str,
        file: &Value,
        manager: &str,
        conflicts: Conflicts,
    ) -> Result<ServerReply, CallError> {
        let mut query = format!("fieldManager={}&fieldValidation=Strict", segment(manager));
        if conflicts != Conflicts::Refuse {
            query.push_str("&force=true");
        }
        self.patch(path, APPLY_PATCH, file, &query).await
    }

    async fn merge(&self, path: &str, patch: &Value, manager: &str) -> Result<ServerReply, CallError> {
        let query = format!("fieldManager={}&fieldValidation=Strict", segment(manager));
        self.patch(path, MERGE_PATCH, patch, &query).await
    }

    async fn patch(&self, path: &str, form: &str, patch: &Value, query: &str) -> Result<ServerReply, CallError> {
        let dry = if self.options.storing == Storing::DryRun { "&dryRun=All" } else { "" };
        let path = format!("{path}?{query}{dry}");
        let body = patch.to_string().into_bytes();
        self.server
            .call(ServerRequest { method: Method::PATCH, content_type: form, body, ..ServerRequest::get(&path) })
            .await
    }

    /// The manifest's own namespace; one given by `-n` may fill a gap but not contradict.
    fn namespace_of(&self, kind: &ServedKind, manifest: &Manifest) -> Outcome<String> {
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

/// Whether it is Portolan under the name that `portolan up` had.
fn is_former(owner: &FieldOwner<'_>) -> bool {
    owner.manager == FORMER_MANAGER && owner.operation == Operation::Apply
}

fn comes_first(manifest: &Manifest) -> bool {
    is_definition(manifest) || (manifest.api_version() == "v1" && manifest.kind() == "Namespace")
}

fn is_definition(manifest: &Manifest) -> bool {
    manifest.api_version().starts_with("apiextensions.k8s.io/") && manifest.kind() == "CustomResourceDefinition"
}

/// `created`, `configured`, or `unchanged` where the object is as it was.
fn outcome(status: StatusCode, before: Option<&Value>, after: &Value) -> AppliedAs {
    match before {
        Some(before) if is_same(before, after) => AppliedAs::Unchanged,
        None if status == StatusCode::CREATED => AppliedAs::Created,
        Some(_) | None => AppliedAs::Configured,
    }
}

/// Takes out `managedFields`, which say nothing of what an object asks for.
pub fn hide_managed_fields(object: &mut Value) {
    if let Some(metadata) = object["metadata"].as_object_mut() {
        metadata.remove("managedFields");
    }
}

/// A dry run leaves the version as it is, so the content counts too; who owns it is no content.
fn is_same(before: &Value, after: &Value) -> bool {
    let content = |object: &Value| {
        let mut object = object.clone();
        hide_managed_fields(&mut object);
        object
    };
    content(before) == content(after)
}

async fn wait_established(server: &Server, kind: &ServedKind, name: &str) -> Outcome {
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

        assert_eq!(outcome(StatusCode::OK, Some(&object("1")), &object("1")), AppliedAs::Unchanged);
        assert_eq!(outcome(StatusCode::OK, Some(&object("1")), &object("2")), AppliedAs::Configured);
        assert_eq!(outcome(StatusCode::CREATED, None, &object("2")), AppliedAs::Created);
    }

    #[test]
    fn definitions_and_namespaces_go_before_the_rest() {
        let text = "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}\n---\n{apiVersion: v1, kind: Namespace, metadata: {name: a}}\n---\n\
            {apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: a}}\n";
        let manifests = manifest::parse("f", text).unwrap();

        assert_eq!(manifests.iter().map(comes_first).collect::<Vec<_>>(), [false, true, true]);
    }

    #[test]
    fn managed_fields_are_hidden() {
        let mut object = json!({"metadata": {"name": "a", "managedFields": []}});
        hide_managed_fields(&mut object);

        assert_eq!(object, json!({"metadata": {"name": "a"}}));
    }
}
