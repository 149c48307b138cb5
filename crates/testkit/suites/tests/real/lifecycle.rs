//! The lifecycle suite, the worked examples and crash points.

use std::time::Instant;

use portolan_testkit_suites::crash::Tried;
use portolan_testkit_suites::jobs::ZEROTRUST;
use portolan_testkit_suites::lifecycle::{Act, CheckTally, OBSERVED, OWNED, SINGLE, crash_points};
use portolan_testkit_suites::zerotrust::examples;
use portolan_testkit_suites::{Builder, sample, tell};

/// One sample of every kind: what differs between record types does not differ between API servers.
const SAMPLES: [&str; 4] = ["DNSRecord (A)", "VirtualNetwork", "NetworkRoute (IPv4)", "AccessGroup"];

pub(crate) async fn suite(builder: &Builder) {
    let mut checks = CheckTally::default();
    for sample in sample::owned().iter().filter(|sample| SAMPLES.contains(&sample.label)) {
        for check in OWNED {
            let start = Instant::now();
            checks.add((check.run)(builder, sample).await);
            println!("real: {}: {} ({} ms)", sample.label, check.name, start.elapsed().as_millis());
        }
    }
    for sample in sample::single() {
        for check in SINGLE {
            checks.add((check.run)(builder, &sample).await);
            println!("real: {}: {}", sample.kind, check.name);
        }
    }
    for sample in sample::observed() {
        for check in OBSERVED {
            checks.add((check.run)(builder, &sample).await);
            println!("real: {}: {}", sample.kind, check.name);
        }
    }

    tell(&format!(
        "real: {} lifecycle checks ({} more had nothing to do) on kube-apiserver",
        checks.ran, checks.nothing
    ));
    assert!(checks.ran >= 71, "{} ran", checks.ran);
}

pub(crate) async fn worked_examples(builder: &Builder) {
    let examples = examples::all(&builder.clone().job(&ZEROTRUST)).await;

    tell(&format!("real: {examples} worked examples of the zerotrust job on kube-apiserver"));
}

pub(crate) async fn crashes(builder: &Builder) {
    let mut tried = Tried::default();
    for act in [Act::Delete, Act::Create] {
        tried += crash_points(builder, &sample::owned()[0], act).await.expect("a record is made and deleted");
    }

    tell(&format!("real: {} crash points on kube-apiserver ({} did not come again)", tried.crashes, tried.missed));
    assert!(tried.crashes > 10 && tried.missed <= tried.crashes / 4, "{tried:?}");
}
