//! Every case and history on the real and on the embedded API server.

use portolan_parity::{Options, Peers, run_suite};

fn main() {
    // The harness of `cargo test` may ask for a list; this is one test that prints its own summary.
    if std::env::args().any(|argument| argument == "--list") {
        println!("parity: test");
        return;
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    let alike = runtime.block_on(async {
        let peers = Peers::start().await.expect("servers to compare");
        run_suite(&peers, &Options::from_environment()).await
    });
    if !alike {
        std::process::exit(1);
    }
}
