//! Random roles and requests on the real and on the embedded API server.

use portolan_parity::{Options, Peers, run_rbac};

fn main() {
    // The harness of `cargo test` may ask for a list; this is one test that prints its own summary.
    if std::env::args().any(|argument| argument == "--list") {
        println!("rbac: test");
        return;
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    let alike = runtime.block_on(async {
        let peers = Peers::start().await.expect("servers to compare");
        run_rbac(&peers, &Options::from_environment()).await
    });
    if !alike {
        std::process::exit(1);
    }
}
