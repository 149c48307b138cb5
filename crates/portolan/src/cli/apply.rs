//! `portolan apply`: manifests → server-side apply, definitions and namespaces first.

use std::path::PathBuf;
use std::time::Duration;

use futures::StreamExt;
use http::{Method, StatusCode};
use serde_json::Value;

use super::{NamespaceArgs, print};
use crate::failure::{Failure, Outcome, Tally};
use crate::kinds::{Kind, Kinds, segment};
use crate::manifest::{self, Manifest};
use crate::output;
use crate::server::{Call, ConnectArgs, Server};

const APPLY_PATCH: &str = "application/apply-patch+yaml";
const ESTABLISH_TIMEOUT: Duration = Duration::from_secs(30);

/// Arguments of `portolan apply`.
#[derive(clap::Args, Debug)]
#[command(
    after_help = "Examples:\n  portolan apply -f app.yaml\n  portolan apply -f manifests/ -R -n staging --dry-run\n  \
    generate | portolan apply -f -"
)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of the command line")]
pub(crate) struct Args {
    /// File or folder with objects as YAML or JSON; `-` reads standard input. May be repeated
    #[arg(short, long = "filename", value_name = "PATH", required = true, num_args = 1..)]
    filenames: Vec<PathBuf>,

    /// Look into subfolders too
    #[arg(short = 'R', long)]
    recursive: bool,

    #[command(flatten)]
    namespace: NamespaceArgs,

    /// Apply on the server: always so; accepted because kubectl wants it
    #[arg(long)]
    server_side: bool,

    /// Take over fields that other managers own
    #[arg(long)]
    force_conflicts: bool,

    /// Let the server check and answer, but store nothing
    #[arg(long)]
    dry_run: bool,

    /// Name under which the fields are owned
    #[arg(long, value_name = "NAME", default_value = "portolan")]
    field_manager: String,

    #[command(flatten)]
    connect: ConnectArgs,
}

/// Applies everything that can be applied; fails at the end if anything could not.
pub(crate) async fn run(args: Args) -> Outcome {
    let manifests = manifest::read(&args.filenames, args.recursive)?;
    let server = Server::connect(&args.connect).await?;
    let tally = Tally::of(manifests.len());
    let mut applier = Applier { kinds: Kinds::discover(&server).await?, server: &server, args: &args, tally };
    let (first, rest): (Vec<_>, Vec<_>) = manifests.into_iter().partition(comes_first);
    applier.apply_all(&first).await;
    if !args.dry_run && first.iter().any(is_definition) {
        applier.learn_new_kinds(&first).await?;
    }
    applier.apply_all(&rest).await;
    applier
        .tally
        .finish("applied", "the messages above say why; what was applied stays: correct the rest and apply again")
}

fn comes_first(manifest: &Manifest) -> bool {
    is_definition(manifest) || (manifest.api_version() == "v1" && manifest.kind() == "Namespace")
}

fn is_definition(manifest: &Manifest) -> bool {
    manifest.api_version().starts_with("apiextensions.k8s.io/") && manifest.kind() == "CustomResourceDefinition"
}

struct Applier<'a> {
    server: &'a Server,
    kinds: Kinds,
    args: &'a Args,
    tally: Tally,
}

impl Applier<'_> {
    async fn apply_all(&mut self, manifests: &[Manifest]) {
        for manifest in manifests {
            match self.apply(manifest).await {
                Ok(line) => print(&format!("{line}\n")),
                Err(failure) => self.tally.record(failure.while_doing(&manifest.origin)),
            }
        }
    }

    async fn apply(&self, manifest: &Manifest) -> Outcome<String> {
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
        let verb = outcome(answer.status, before.as_ref(), &answer.body);
        let dry = if self.args.dry_run { " (dry run)" } else { "" };
        Ok(format!("{} {verb}{dry}", kind.object(manifest.name())))
    }

    /// The manifest's own namespace; one given by `-n` may fill a gap but not contradict.
    fn namespace_of(&self, kind: &Kind, manifest: &Manifest) -> Outcome<String> {
        let asked = self.args.namespace.namespace.as_deref();
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
        let mut query = format!("fieldManager={}&fieldValidation=Strict", segment(&self.args.field_manager));
        if self.args.force_conflicts {
            query.push_str("&force=true");
        }
        if self.args.dry_run {
            query.push_str("&dryRun=All");
        }
        query
    }

    /// Waits until the new definitions are served, then asks for the kinds again.
    async fn learn_new_kinds(&mut self, manifests: &[Manifest]) -> Outcome {
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

/// `created`, `configured`, or `unchanged` where the object is as it was.
fn outcome(status: StatusCode, before: Option<&Value>, after: &Value) -> &'static str {
    match before {
        Some(before) if is_same(before, after) => "unchanged",
        None if status == StatusCode::CREATED => "created",
        Some(_) | None => "configured",
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

    #[test]
    fn an_object_whose_version_stayed_is_unchanged() {
        let object = |version: &str| json!({"metadata": {"resourceVersion": version}});

        assert_eq!(outcome(StatusCode::OK, Some(&object("1")), &object("1")), "unchanged");
        assert_eq!(outcome(StatusCode::OK, Some(&object("1")), &object("2")), "configured");
        assert_eq!(outcome(StatusCode::CREATED, None, &object("2")), "created");
    }

    #[test]
    fn definitions_and_namespaces_go_before_the_rest() {
        let text = "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}\n---\n{apiVersion: v1, kind: Namespace, metadata: {name: a}}\n---\n\
            {apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: a}}\n";
        let manifests = manifest::parse("f", text).unwrap();

        assert_eq!(manifests.iter().map(comes_first).collect::<Vec<_>>(), [false, true, true]);
    }
}
