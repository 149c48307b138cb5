//! What controllers of workloads do on the real and on the embedded API server.

use portolan_apiserver::Workloads;
use portolan_parity::{Options, Peers, run_workloads};

fn main() {
    // The harness of `cargo test` may ask for a list; this is one test that prints its own summary.
    if std::env::args().any(|argument| argument == "--list") {
        println!("workloads: test");
        return;
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    let alike = runtime.block_on(async {
        let peers = Peers::start_with(Workloads::On).await.expect("servers to compare");
        run_workloads(&peers, &Options::from_environment()).await
    });
    if !alike {
        std::process::exit(1);
    }
}
