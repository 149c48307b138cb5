//! The operator's own Deployments, of which Kubernetes' own controllers make the pods.

use std::time::Instant;

use portolan_testkit_suites::jobs::ZEROTRUST;
use portolan_testkit_suites::zerotrust::fleet::checks;
use portolan_testkit_suites::{Builder, tell};

/// Runs all checks, one after the other on one server, and counts them.
async fn all(builder: &Builder) -> usize {
    let mut count = 0;
    macro_rules! run {
        ($name:literal, $check:ident) => {
            let start = Instant::now();
            Box::pin(checks::$check(builder)).await;
            println!("real: {} ({} ms)", $name, start.elapsed().as_millis());
            count += 1;
        };
    }
    run!("scenario 64", fresh_configuration);
    run!("scenario 65", absent_fields);
    run!("scenario 66", one_entry);
    run!("scenario 67", new_digest);
    run!("scenario 67, another image", new_image);
    run!("scenario 68", workers_restored);
    run!("scenario 69", unschedulable);
    run!("released", released_fields);
    run!("deployed anew", deployed_anew);
    run!("several", several);
    run!("refused", refused);
    run!("outside", outside);
    run!("single", single);
    count
}

pub(crate) async fn deployments(builder: &Builder) {
    let count = all(&builder.clone().job(&ZEROTRUST)).await;

    tell(&format!("real: {count} checks of the operator's own Deployments on kube-apiserver and its controllers"));
}
