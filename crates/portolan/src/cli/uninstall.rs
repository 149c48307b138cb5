//! `portolan uninstall`: our finalizers off all objects, so that they can be deleted without an operator.
//!
//! What stands at Cloudflare stays. So do the states, by which a later installation takes everything over again, unless
//! they are to be forgotten.

use std::fmt::Write as _;

use http::Method;
use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease;
use serde_json::{Value, json};

use super::{OutputForm, print};
use crate::failure::{Failure, Outcome, Tally};
use crate::finalizers::{HeldObject, HeldObjects};
use crate::jobs;
use crate::kinds::{Kinds, segment};
use crate::operator;
use crate::output;
use crate::server::{CallError, ConnectArgs, Server, ServerRequest};
use crate::zerotrust::NamespaceArgs;

/// How often an object is tried that others write at the same time.
const MOST_ATTEMPTS: usize = 5;

/// Arguments of `portolan uninstall`.
#[derive(clap::Args, Debug)]
#[command(
    after_help = "Without --apply it only shows what it would do. Everything at Cloudflare stays as it is, and names stay \
    published.\nThe operator itself is removed by whoever installed it: `helm uninstall`, or `portolan install | kubectl \
    delete -f -`,\nbefore or after this. Definitions (CRDs) stay, and with them all objects."
)]
pub(crate) struct Args {
    /// Do it
    #[arg(long)]
    apply: bool,

    /// Also delete states and tasks: a later installation will not know what stands at Cloudflare
    #[arg(long)]
    forget: bool,

    /// Do it though an operator still runs, which would put its finalizers back
    #[arg(long)]
    force: bool,

    /// How to show it
    #[arg(short, long, value_enum, default_value = "text")]
    output: OutputForm,

    /// Namespace of the lease of the cloudflare job
    #[arg(long, value_name = "NAME", default_value = operator::NAMESPACE)]
    cluster_resource_namespace: String,

    #[command(flatten)]
    zerotrust: NamespaceArgs,

    #[command(flatten)]
    connect: ConnectArgs,
}

/// Shows what is held, and lets it go where asked.
pub(crate) async fn run(args: Args) -> Outcome {
    let server = args.connect.server_anywhere().await?;
    if args.apply && !args.force {
        refuse_while_led(&server, &args).await?;
    }
    let kinds = Kinds::discover(&server).await?;
    let namespace = &args.zerotrust.operator_namespace;
    let holds = HeldObjects::read(&server, &kinds, namespace).await?;
    let mut tally = Tally::of(holds.objects.len());
    if args.apply {
        for hold in &holds.objects {
            if let Err(failure) = let_go(&server, hold).await {
                tally.record(failure.while_doing(hold.title()));
            }
        }
        if args.forget {
            forget(&server, &kinds, namespace, &holds).await?;
        }
    }
    print(&match args.output {
        OutputForm::Text => text(&holds, &args),
        OutputForm::Json => output::json_text(&document(&holds, &args))?,
    });
    tally.finish("let go", "the messages above say why; run it again")
}

/// A running operator would put its finalizers back.
async fn refuse_while_led(server: &Server, args: &Args) -> Outcome {
    let zerotrust = &args.zerotrust.operator_namespace;
    for namespace in [zerotrust, &args.cluster_resource_namespace] {
        let path = format!("/apis/coordination.k8s.io/v1/namespaces/{}/leases", segment(namespace));
        let list = server.find(&path).await?.unwrap_or_default();
        let leases = list["items"].as_array().cloned().unwrap_or_default();
        let leases = leases.into_iter().filter_map(|lease| serde_json::from_value::<Lease>(lease).ok());
        if let Some((name, holder)) = leases.filter(is_ours).find_map(|lease| held(&lease, Timestamp::now())) {
            return Err(Failure::new(format!("an operator still runs: {holder} holds the lease {namespace}/{name}"))
                .next("stop it first (kubectl scale deployment --replicas 0, and wait 15 s), or say --force"));
        }
    }
    Ok(())
}

/// Whether a lease is one that our processes hold.
fn is_ours(lease: &Lease) -> bool {
    let name = lease.metadata.name.as_deref().unwrap_or_default();
    jobs::ALL.iter().flat_map(|job| job.sheet.leases).any(|known| known.names(name))
}

/// Name and holder of a lease that was renewed in time.
fn held(lease: &Lease, now: Timestamp) -> Option<(String, String)> {
    let spec = lease.spec.as_ref()?;
    let holder = spec.holder_identity.clone().filter(|holder| !holder.is_empty())?;
    let seconds = i64::from(spec.lease_duration_seconds.unwrap_or(15));
    let age = now.as_second() - spec.renew_time.as_ref()?.0.as_second();
    (age <= seconds).then(|| (lease.metadata.name.clone().unwrap_or_default(), holder))
}

/// Takes our finalizers off an object. One that changed meanwhile is looked at again; one that is gone is what is wanted.
async fn let_go(server: &Server, hold: &HeldObject) -> Outcome {
    let path = hold.kind.object_path(&hold.namespace, &hold.name);
    let mut hold = hold.clone();
    for _ in 0..MOST_ATTEMPTS {
        let call = ServerRequest {
            method: Method::PATCH,
            content_type: "application/json-patch+json",
            body: hold.letting_go().to_string().into_bytes(),
            ..ServerRequest::get(&path)
        };
        match server.call(call).await {
            Ok(_) | Err(CallError::Refused { code: 404, .. }) => return Ok(()),
            Err(CallError::Refused { code: 409 | 422, .. }) => {}
            Err(error) => return Err(error.into()),
        }
        let Some(found) = server.find(&path).await? else { return Ok(()) };
        // What was ours a moment ago is ours now.
        let known = [format!("{}/{}", hold.namespace, hold.name)].into();
        let Some(again) = HeldObject::of(&hold.kind, &found, &known) else { return Ok(()) };
        hold = again;
    }
    Err(Failure::new("others write it all the time").next("stop whoever does, and run it again"))
}

/// Deletes states and tasks.
async fn forget(server: &Server, kinds: &Kinds, namespace: &str, holds: &HeldObjects) -> Outcome {
    let maps = format!("/api/v1/namespaces/{}/configmaps", segment(namespace));
    let mut paths: Vec<String> = holds.states.iter().map(|name| format!("{maps}/{}", segment(name))).collect();
    if let Ok(kind) = kinds.called("cloudflaretasks.cfzt.cloudflare.com") {
        paths.extend(holds.tasks.iter().map(|name| kind.object_path(namespace, name)));
    }
    for path in paths {
        let call = ServerRequest { method: Method::DELETE, ..ServerRequest::get(&path) };
        match server.call(call).await {
            Ok(_) | Err(CallError::Refused { code: 404, .. }) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

fn text(holds: &HeldObjects, args: &Args) -> String {
    let mut text = String::new();
    let (done, forgotten) = (args.apply, args.forget);
    let verb = if done { "Taken off" } else { "To be taken off" };
    writeln!(text, "{verb}: finalizers of {}", counted(holds.objects.len(), "object")).expect(WRITES);
    for hold in &holds.objects {
        writeln!(text, "  {}: {}", hold.title(), hold.ours.join(", ")).expect(WRITES);
    }
    let (states, namespace) = (counted(holds.states.len(), "state"), &args.zerotrust.operator_namespace);
    let fate = match (forgotten, done) {
        (false, _) => "kept: a later installation takes over what they record",
        (true, false) => "to be deleted: a later installation will not know what stands at Cloudflare",
        (true, true) => "deleted: what stands at Cloudflare is known to nobody any more",
    };
    writeln!(text, "{states} in {namespace} {fate}").expect(WRITES);
    writeln!(text, "Everything at Cloudflare stays as it is.").expect(WRITES);
    if !done {
        writeln!(text, "Nothing was changed; --apply does it.").expect(WRITES);
    }
    text
}

const WRITES: &str = "writing to a string cannot fail";

fn counted(count: usize, noun: &str) -> String {
    portolan_core::text::count(count, noun)
}

fn document(holds: &HeldObjects, args: &Args) -> Value {
    json!({
        "applied": args.apply,
        "objects": holds.objects.iter().map(HeldObject::to_json).collect::<Vec<_>>(),
        "states": holds.states,
        "tasks": holds.tasks,
        "forgotten": args.apply && args.forget,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lease(holder: &str, renewed: &str) -> Lease {
        let lease = json!({
            "metadata": {"name": portolan_zerotrust::LEASE},
            "spec": {"holderIdentity": holder, "leaseDurationSeconds": 15, "renewTime": renewed},
        });
        serde_json::from_value(lease).unwrap()
    }

    #[test]
    fn a_lease_is_held_while_it_is_renewed() {
        let now = "2026-11-16T12:00:10Z".parse().unwrap();

        assert!(is_ours(&lease("pod-1", "2026-11-16T12:00:00.000000Z")));
        assert!(held(&lease("pod-1", "2026-11-16T12:00:00.000000Z"), now).is_some());
        assert_eq!(held(&lease("pod-1", "2026-11-16T11:59:00.000000Z"), now), None);
        assert_eq!(held(&lease("", "2026-11-16T12:00:00.000000Z"), now), None);
    }
}
