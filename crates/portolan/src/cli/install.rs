//! `portolan install`: values in, the whole installation printed or applied.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use portolan_core::Rollout;
use portolan_engine::{NeededKind, Provisions};
use portolan_install::{Release, Values, objects};
use serde_json::{Value, json};

use super::print;
use crate::applying::{Applier, ApplyOptions, As, Conflicts, Storing};
use crate::definitions;
use crate::duration::{duration, shown};
use crate::failure::{Failure, Outcome, Tally};
use crate::jobs;
use crate::kinds::{Kinds, segment};
use crate::manifest::Manifest;
use crate::server::{ConnectArgs, Server};
use crate::{operator, output};

const BETWEEN_LOOKS: Duration = Duration::from_millis(500);

/// Arguments of `portolan install`.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:\n  portolan install | kubectl apply --server-side -f -\n  \
    portolan install --set operator.mode=roles --apply --wait\n  portolan install --values values.yaml --apply\n\
    The values are those of the Helm chart (charts/portolan/values.yaml).")]
pub(crate) struct Args {
    /// File of values, `-` for standard input; later ones win. May be repeated
    #[arg(short = 'f', long, value_name = "FILE")]
    values: Vec<PathBuf>,

    /// Single values, as `replicaCount=2,operator.logLevel=DEBUG`; they win over files. May be repeated
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,

    /// Name of the installation, its label app.kubernetes.io/instance
    #[arg(long, value_name = "NAME", default_value = "portolan")]
    release: String,

    /// Namespace to install into
    #[arg(short, long, value_name = "NAME", default_value_t = usual_namespace())]
    namespace: String,

    /// Leave out the namespace itself
    #[arg(long)]
    no_namespace: bool,

    /// Apply everything (server-side apply) instead of printing it
    #[arg(long)]
    apply: bool,

    /// After applying, wait until the operator's pods are ready
    #[arg(long, requires = "apply")]
    wait: bool,

    /// How long to wait
    #[arg(long, value_name = "DURATION", default_value = "120s", value_parser = duration)]
    timeout: Duration,

    #[command(flatten)]
    connect: ConnectArgs,
}

/// Where an installation is unless somebody says otherwise: where the usual job keeps its own objects.
fn usual_namespace() -> String {
    let usual = jobs::ALL.iter().filter(|job| job.sheet.usual);
    let own = usual.filter_map(|job| (job.namespace)(&Provisions::default())).map(|own| own.name).next();
    own.unwrap_or_else(|| operator::NAMESPACE.to_owned())
}

/// Prints the installation, or makes it so.
pub(crate) async fn run(args: Args) -> Outcome {
    let values = values(&args)?;
    let objects = installation(&args, &values)?;
    if args.apply {
        return apply(&args, &values, objects).await;
    }
    for object in &objects {
        print(&format!("---\n{}", output::yaml_text(object)?));
    }
    Ok(())
}

fn values(args: &Args) -> Outcome<Values> {
    let files = args.values.iter().map(|file| read(file)).collect::<Outcome<Vec<String>>>()?;
    let texts: Vec<&str> = files.iter().map(String::as_str).collect();
    let sets: Vec<&str> = args.set.iter().map(String::as_str).collect();
    let sheets = jobs::sheets();
    Values::parse(&sheets, &texts, &sets).map_err(|error| {
        // What is no YAML at all has no path of a value: the file says more.
        let is_alone_wrong = |text: &str| Values::parse(&sheets, &[text], &[]).is_err_and(|one| one == error);
        let file = args.values.iter().zip(&texts).find(|(_, text)| is_alone_wrong(text)).map(|(file, _)| file);
        match file {
            Some(file) => refused(&error).while_doing(file.display()),
            None => refused(&error),
        }
    })
}

fn read(file: &Path) -> Outcome<String> {
    let text =
        if file == Path::new("-") { std::io::read_to_string(std::io::stdin()) } else { std::fs::read_to_string(file) };
    text.map_err(|error| {
        Failure::new(format!("{} cannot be read: {error}", file.display())).next("check the path given with --values")
    })
}

fn refused(error: &portolan_install::Invalid) -> Failure {
    Failure::new(error.to_string()).next("correct the value; all of them are described in charts/portolan/values.yaml")
}

/// The namespace and everything else.
fn installation(args: &Args, values: &Values) -> Outcome<Vec<Value>> {
    let release = Release {
        name: args.release.clone(),
        namespace: args.namespace.clone(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
    };
    let made = objects(values, &release, &jobs::sheets()).map_err(|error| refused(&error))?;
    let name = namespace(args, values);
    // The label that the server sets by itself: something to own, so that a second time changes nothing.
    let metadata = json!({"name": name, "labels": {"kubernetes.io/metadata.name": name}});
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata});
    Ok((!args.no_namespace).then_some(namespace).into_iter().chain(made).collect())
}

fn namespace<'a>(args: &'a Args, values: &'a Values) -> &'a str {
    if values.namespace_override.is_empty() { &args.namespace } else { &values.namespace_override }
}

async fn apply(args: &Args, values: &Values, objects: Vec<Value>) -> Outcome {
    let deployment = objects.iter().find(|object| object["kind"] == "Deployment");
    let deployment = deployment.and_then(|object| object["metadata"]["name"].as_str()).unwrap_or_default().to_owned();
    let definitions: Vec<Value> =
        objects.iter().filter(|object| object["kind"] == "CustomResourceDefinition").cloned().collect();
    let manifests: Vec<Manifest> =
        objects.into_iter().map(|object| Manifest::made("the installation", object)).collect();
    let server = args.connect.server().await?;
    let mut applier = Applier::new(&server, options()).await?;
    let mut tally = Tally::of(manifests.len());
    applier
        .apply_all(&manifests, |manifest, outcome| match outcome {
            Ok(applied) => print(&format!("{} {}\n", applied.object, applied.change.as_str())),
            Err(failure) => tally.record(failure.while_doing(format!("{} {}", manifest.kind(), manifest.name()))),
        })
        .await?;
    tally.finish(
        "installed",
        "the messages above say why; what was applied stays: correct the rest and install again",
    )?;
    definitions::replace(&server, &definitions).await?;
    let namespace = namespace(args, values);
    if args.wait {
        wait(&server, namespace, &deployment, args.timeout).await?;
    }
    print(&next(&server, values, namespace, &deployment).await?);
    Ok(())
}

fn options() -> ApplyOptions {
    ApplyOptions {
        namespace: None,
        applier: As::Manager("portolan-install".to_owned()),
        conflicts: Conflicts::TakeOver,
        storing: Storing::Stored,
    }
}

/// Looks at the Deployment until all of its pods are ready.
async fn wait(server: &Server, namespace: &str, name: &str, patience: Duration) -> Outcome {
    let path = format!("/apis/apps/v1/namespaces/{}/deployments/{}", segment(namespace), segment(name));
    let until = Instant::now() + patience;
    loop {
        let rollout = Rollout::of(&server.find(&path).await?.unwrap_or_default());
        if rollout.is_ready() {
            return Ok(());
        }
        if Instant::now() >= until {
            let what = format!("{rollout} of Deployment {namespace}/{name} after {}", shown(patience));
            let look = format!("kubectl -n {namespace} describe deployment {name}, and its pods, say why");
            return Err(Failure::new(what).next(look));
        }
        tokio::time::sleep(BETWEEN_LOOKS).await;
    }
}

/// What the user does next.
async fn next(server: &Server, values: &Values, namespace: &str, deployment: &str) -> Outcome<String> {
    let kinds = Kinds::discover(server).await?;
    let chosen: Vec<_> = values.controllers.iter().filter_map(|name| jobs::named(name)).collect();
    let mut text =
        format!("\nInstalled. kubectl -n {namespace} rollout status deployment/{deployment} shows it start.\n");
    let needed = chosen.iter().flat_map(|job| (job.needs)(&Provisions::default()));
    let is_there = |one: &&NeededKind| kinds.in_group(one.group).iter().any(|kind| kind.kind == one.kind);
    for lacking in needed.filter(|one| !is_there(one)) {
        let NeededKind { kind, remedy, .. } = lacking;
        for part in ["The cluster does not know ", kind, ": ", remedy, ".\nUntil then the operator waits.\n"] {
            text.push_str(part);
        }
    }
    let is_zerotrust = chosen.iter().any(|job| job.sheet.name == portolan_zerotrust::JOB.sheet.name);
    if is_zerotrust && !values.tenant.create {
        text.push_str(
            "Next: a CloudflareZeroTrustTenant says with which account, tunnel and token routes are published.\n\
             Then annotate an HTTPRoute with cfzt.cloudflare.com/enabled and cfzt.cloudflare.com/hostname.\n",
        );
    }
    Ok(text)
}
