//! `portolan delete`: objects by name, selector or file; waits until they are gone.

use std::path::PathBuf;
use std::time::Duration;

use clap::ValueEnum;
use futures::StreamExt;
use http::Method;
use serde_json::{Value, json};

use super::{NamespaceArgs, print};
use crate::duration::duration;
use crate::failure::{Failure, Outcome, Tally};
use crate::kinds::{Kinds, ServedKind, segment};
use crate::manifest;
use crate::server::{CallError, ConnectArgs, Server, ServerRequest};

/// Arguments of `portolan delete`.
#[derive(clap::Args, Debug)]
#[command(
    after_help = "Examples:\n  portolan delete configmap settings\n  portolan delete deploy -l app=web --cascade foreground\n  \
    portolan delete -f app.yaml --ignore-not-found"
)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of the command line")]
pub(crate) struct Args {
    /// Kind, or KIND/NAME
    #[arg(value_name = "KIND", required_unless_present = "filenames", conflicts_with = "filenames")]
    kind: Option<String>,

    /// Names of the objects
    #[arg(value_name = "NAME")]
    names: Vec<String>,

    /// Delete the objects named in a file or folder; `-` reads standard input. May be repeated
    #[arg(short, long = "filename", value_name = "PATH", num_args = 1..)]
    filenames: Vec<PathBuf>,

    /// Look into subfolders too
    #[arg(short = 'R', long)]
    recursive: bool,

    /// Delete the objects with these labels
    #[arg(short = 'l', long, value_name = "SELECTOR", conflicts_with_all = ["names", "filenames", "all"])]
    selector: Option<String>,

    /// Delete all objects of the kind in the namespace
    #[arg(long, conflicts_with_all = ["names", "filenames"])]
    all: bool,

    #[command(flatten)]
    namespace: NamespaceArgs,

    /// What happens to objects owned by the deleted one
    #[arg(long, value_enum, default_value = "background")]
    cascade: Cascade,

    /// Seconds an object may take to stop; 0 removes it at once
    #[arg(long, value_name = "SECONDS")]
    grace_period: Option<u32>,

    /// Wait until the objects are gone (finalizers done)
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_value_t = true, default_missing_value = "true", action = clap::ArgAction::Set)]
    wait: bool,

    /// How long to wait for all of them: 30s, 2m, or seconds
    #[arg(long, value_name = "DURATION", default_value = "60s", value_parser = duration)]
    timeout: Duration,

    /// Do not fail for objects that are not there
    #[arg(long)]
    ignore_not_found: bool,

    #[command(flatten)]
    connect: ConnectArgs,
}

/// What happens to dependents.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Cascade {
    /// The owner goes first, they follow
    Background,
    /// They go first, the owner last
    Foreground,
    /// They stay
    Orphan,
}

/// An object to delete.
struct DeleteTarget {
    kind: ServedKind,
    namespace: String,
    name: String,
}

/// Deletes what was named; fails at the end if anything could not be deleted or did not go in time.
pub(crate) async fn run(args: Args) -> Outcome {
    let manifests =
        if args.filenames.is_empty() { Vec::new() } else { manifest::read(&args.filenames, args.recursive)? };
    let server = args.connect.server().await?;
    let kinds = Kinds::discover(&server).await?;
    let targets = match &args.kind {
        Some(called) => named_targets(&args, &server, &kinds, called).await?,
        None => file_targets(&args, &server, &kinds, &manifests)?,
    };
    let mut tally = Tally::of(targets.len());
    let mut going = Vec::new();
    for target in &targets {
        match delete(&server, &args, target).await {
            Ok(uid) => going.extend(uid.map(|uid| (target, uid))),
            Err(failure) => tally.record(failure.while_doing(target.kind.object(&target.name))),
        }
    }
    if args.wait {
        wait_gone(&server, &args, &going).await?;
    }
    tally.finish("deleted", "the messages above say why; --ignore-not-found accepts those that are not there")
}

async fn named_targets(args: &Args, server: &Server, kinds: &Kinds, called: &str) -> Outcome<Vec<DeleteTarget>> {
    let (called, first) = called.split_once('/').map_or((called, None), |(kind, name)| (kind, Some(name.to_owned())));
    let kind = kinds.called(called)?;
    let namespace = args.namespace.namespace.clone().unwrap_or_else(|| server.default_namespace().to_owned());
    let mut names: Vec<String> = first.into_iter().chain(args.names.iter().cloned()).collect();
    if names.is_empty() {
        names = selected_names(args, server, kind, &namespace).await?;
    }
    let target = |name| DeleteTarget { kind: kind.clone(), namespace: namespace.clone(), name };
    Ok(names.into_iter().map(target).collect())
}

async fn selected_names(args: &Args, server: &Server, kind: &ServedKind, namespace: &str) -> Outcome<Vec<String>> {
    let query = match (&args.selector, args.all) {
        (Some(selector), _) => format!("?labelSelector={}", segment(selector)),
        (None, true) => String::new(),
        (None, false) => {
            return Err(Failure::new(format!("which {}?", kind.resource()))
                .next("give a NAME, a selector with -l, or --all for every one in the namespace"));
        }
    };
    let path = format!("{}{query}", kind.collection_path(Some(namespace)));
    let list = server.call(ServerRequest::get(&path)).await?.body;
    let items = list["items"].as_array().into_iter().flatten();
    let names: Vec<String> = items.filter_map(|item| item["metadata"]["name"].as_str().map(str::to_owned)).collect();
    if names.is_empty() {
        eprintln!("No {} found.", kind.resource());
    }
    Ok(names)
}

/// The objects of the files, last first, so that what others stand on goes last.
fn file_targets(
    args: &Args,
    server: &Server,
    kinds: &Kinds,
    manifests: &[manifest::Manifest],
) -> Outcome<Vec<DeleteTarget>> {
    let mut targets = Vec::new();
    for manifest in manifests.iter().rev() {
        let kind = match kinds.of_object(manifest.api_version(), manifest.kind()) {
            Ok(kind) => kind.clone(),
            // Without its definition the kind has no objects either.
            Err(_) if args.ignore_not_found => continue,
            Err(failure) => return Err(failure.while_doing(&manifest.origin)),
        };
        let asked = args.namespace.namespace.as_deref();
        let namespace = manifest.namespace().or(asked).unwrap_or(server.default_namespace()).to_owned();
        targets.push(DeleteTarget { kind, namespace, name: manifest.name().to_owned() });
    }
    Ok(targets)
}

/// Asks for the deletion. The answer is the object's uid where it is still there.
async fn delete(server: &Server, args: &Args, target: &DeleteTarget) -> Outcome<Option<String>> {
    let path = target.kind.object_path(&target.namespace, &target.name);
    let mut options = json!({"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": policy(args.cascade)});
    if let Some(seconds) = args.grace_period {
        options["gracePeriodSeconds"] = json!(seconds);
    }
    let call =
        ServerRequest { method: Method::DELETE, body: options.to_string().into_bytes(), ..ServerRequest::get(&path) };
    match server.call(call).await {
        Ok(answer) => {
            print(&format!("{} deleted\n", target.kind.object(&target.name)));
            Ok(uid_in(&answer.body))
        }
        Err(CallError::Refused { code: 404, .. }) if args.ignore_not_found => Ok(None),
        Err(error) => Err(error.into()),
    }
}

fn policy(cascade: Cascade) -> &'static str {
    match cascade {
        Cascade::Background => "Background",
        Cascade::Foreground => "Foreground",
        Cascade::Orphan => "Orphan",
    }
}

/// The uid in an answer to DELETE: of the object itself, or in the details of a `Status`.
fn uid_in(body: &Value) -> Option<String> {
    let uid = body["metadata"]["uid"].as_str().or_else(|| body["details"]["uid"].as_str());
    uid.map(str::to_owned)
}

async fn wait_gone(server: &Server, args: &Args, going: &[(&DeleteTarget, String)]) -> Outcome {
    let until = tokio::time::Instant::now() + args.timeout;
    for (target, uid) in going {
        match tokio::time::timeout_at(until, gone(server, target, uid)).await {
            Ok(outcome) => outcome?,
            Err(_) => return Err(still_there(server, args, target).await),
        }
    }
    Ok(())
}

async fn gone(server: &Server, target: &DeleteTarget, uid: &str) -> Outcome {
    let path = target.kind.object_path(&target.namespace, &target.name);
    while let Some(object) = server.find(&path).await?.filter(|object| object["metadata"]["uid"] == uid) {
        let version = object["metadata"]["resourceVersion"].as_str().unwrap_or_default();
        let field = segment(&format!("metadata.name={}", target.name));
        let collection = target.kind.collection_path(Some(&target.namespace));
        let watch =
            format!("{collection}?watch=true&fieldSelector={field}&resourceVersion={version}&timeoutSeconds=30");
        let mut events = server.watch(&watch, "application/json").await?;
        while let Some(event) = events.next().await {
            if matches!(event?["type"].as_str(), Some("DELETED" | "ERROR")) {
                break;
            }
        }
    }
    Ok(())
}

/// Why an object has not gone: the finalizers that hold it.
async fn still_there(server: &Server, args: &Args, target: &DeleteTarget) -> Failure {
    let path = target.kind.object_path(&target.namespace, &target.name);
    let object = server.find(&path).await.ok().flatten().unwrap_or_default();
    let finalizers = object["metadata"]["finalizers"].as_array().into_iter().flatten();
    let held: Vec<&str> = finalizers.filter_map(Value::as_str).collect();
    let failure =
        Failure::new(format!("{} is still there after {} s", target.kind.object(&target.name), args.timeout.as_secs()));
    if held.is_empty() {
        return failure.next("wait longer with --timeout, or do not wait with --wait=false");
    }
    failure.next(format!("its finalizers hold it: {}; see to the controllers that own them", held.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_uid_is_found_in_both_kinds_of_answer() {
        assert_eq!(uid_in(&json!({"kind": "Status", "details": {"uid": "1"}})).as_deref(), Some("1"));
        assert_eq!(uid_in(&json!({"kind": "Pod", "metadata": {"uid": "2"}})).as_deref(), Some("2"));
    }
}
