//! Worlds on a real kube-apiserver, on the wall's clock.
//!
//! Two control planes, which what needs none of its own shares: most of the time is waiting, and one waits beside the other.
//! Where the programs cannot be built, the suite says that it is NOT RUN; where they do not come up, it fails.

mod fleet;
mod lifecycle;

use std::sync::Arc;

use portolan_testkit_suites::{Backend, Builder, Controllers, RealServer, cloudflare_world, tell};

/// Runs checks on a real API server with these of Kubernetes' controllers.
fn on_a_real_server(what: &str, controllers: Controllers, checks: impl AsyncFnOnce(&Builder)) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime of one thread");
    runtime.block_on(async {
        let server = match RealServer::start_with(controllers).await {
            Ok(server) => server,
            // As the parity suite does: the summary of `make test` repeats what was not run.
            Err(why) => return tell(&format!("real: NOT RUN: {what} on a real API server: {why}")),
        };
        checks(&cloudflare_world().backend(Backend::Real(Arc::new(server)))).await;
    });
}

#[test]
fn the_lifecycle_suite_holds_on_a_real_api_server() {
    on_a_real_server("the lifecycle suite", Controllers::Few, lifecycle::suite);
}

#[test]
fn deployments_examples_and_crash_points_hold_on_a_real_api_server() {
    on_a_real_server("Deployments, worked examples and crash points", Controllers::Workloads, async |builder| {
        fleet::deployments(builder).await;
        lifecycle::worked_examples(builder).await;
        lifecycle::crashes(builder).await;
    });
}
