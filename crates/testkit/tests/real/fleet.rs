//! The operator's own Deployments on a real kube-apiserver, where Kubernetes' own controllers make the pods.

use std::sync::Arc;
use std::time::Instant;

use portolan_testkit::zerotrust::fleet::checks;
use portolan_testkit::{Backend, Builder, Controllers, Jobs, RealServer, World, tell};

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

#[test]
fn the_operators_own_deployments_hold_on_a_real_api_server() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime of one thread");
    runtime.block_on(async {
        let server = match RealServer::start_with(Controllers::Workloads).await {
            Ok(server) => server,
            // As the other suites do: the summary of `make test` repeats what was not run.
            Err(why) => return tell(&format!("real: NOT RUN: the operator's own Deployments: {why}")),
        };
        let builder = World::builder().backend(Backend::Real(Arc::new(server))).jobs(Jobs::ZeroTrust);

        let count = all(&builder).await;

        tell(&format!("real: {count} checks of the operator's own Deployments on kube-apiserver and its controllers"));
    });
}
