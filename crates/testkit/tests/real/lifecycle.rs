//! The lifecycle suite and crash points on a real kube-apiserver, on the wall's clock.
//!
//! Where the control plane's programs cannot be built, the suite says that it is NOT RUN; where they do not come up, it fails.

use std::sync::Arc;
use std::time::Instant;

use portolan_testkit::crash::Tried;
use portolan_testkit::lifecycle::{Act, OBSERVED, OWNED, Tally, crash_points};
use portolan_testkit::zerotrust::examples;
use portolan_testkit::{Backend, Builder, Jobs, RealServer, World, sample, tell};

/// One sample of every kind: what differs between record types does not differ between API servers.
const SAMPLES: [&str; 3] = ["DNSRecord (A)", "VirtualNetwork", "NetworkRoute (IPv4)"];

async fn lifecycle(builder: &Builder) -> Tally {
    let mut checks = Tally::default();
    for sample in sample::owned().iter().filter(|sample| SAMPLES.contains(&sample.label)) {
        for check in OWNED {
            let start = Instant::now();
            checks.add((check.run)(builder, sample).await);
            println!("real: {}: {} ({} ms)", sample.label, check.name, start.elapsed().as_millis());
        }
    }
    for sample in sample::observed() {
        for check in OBSERVED {
            checks.add((check.run)(builder, &sample).await);
            println!("real: {}: {}", sample.kind, check.name);
        }
    }
    checks
}

async fn crashes(builder: &Builder) -> Tried {
    let mut tried = Tried::default();
    for act in [Act::Delete, Act::Create] {
        tried += crash_points(builder, &sample::owned()[0], act).await.expect("a record is made and deleted");
    }
    tried
}

#[test]
fn the_suites_hold_on_a_real_api_server() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime of one thread");
    runtime.block_on(async {
        let server = match RealServer::start().await {
            Ok(server) => server,
            // As the parity suite does: the summary of `make test` repeats what was not run.
            Err(why) => return tell(&format!("real: NOT RUN: the suites on a real API server: {why}")),
        };
        let builder = World::builder().backend(Backend::Real(Arc::new(server)));

        let examples = examples::all(&builder.clone().jobs(Jobs::ZeroTrust)).await;
        tell(&format!("real: {examples} worked examples of the zerotrust job on kube-apiserver"));
        let tried = crashes(&builder).await;
        let checks = lifecycle(&builder).await;

        tell(&format!(
            "real: {} lifecycle checks ({} more had nothing to do) and {} crash points on kube-apiserver ({} did not come again)",
            checks.ran, checks.nothing, tried.crashes, tried.missed
        ));
        assert!(checks.ran >= 71 && tried.crashes > 10 && tried.missed <= tried.crashes / 4, "{tried:?}");
    });
}
