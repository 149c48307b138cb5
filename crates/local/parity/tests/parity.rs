//! Every case and history on the real and on the embedded API server.

use portolan_parity::{ControlPlane, Durability, Options, Peers, Server, run_suite};

fn main() {
    // The harness of `cargo test` may ask for a list; this is one test that prints its own summary.
    if std::env::args().any(|argument| argument == "--list") {
        println!("parity: test");
        return;
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    if !runtime.block_on(parity()) {
        std::process::exit(1);
    }
}

async fn parity() -> bool {
    let options = Options::from_environment();
    let mut peers = Peers::default();
    let plane = match std::env::var_os("PORTOLAN_PARITY_REAL") {
        Some(path) => {
            peers.real = Some(Server::from_kubeconfig(path.as_ref()).expect("PORTOLAN_PARITY_REAL is a kubeconfig"));
            None
        }
        None => match ControlPlane::start(Durability::None).await {
            Ok(plane) => Some(plane),
            Err(reason) => {
                println!("PARITY NOT RUN: {reason}");
                None
            }
        },
    };
    if let Some(plane) = &plane {
        peers.real = Some(plane.server().clone());
    }
    if let Some(path) = std::env::var_os("PORTOLAN_PARITY_EMBEDDED") {
        peers.embedded = Some(Server::from_kubeconfig(path.as_ref()).expect("a kubeconfig"));
    }
    run_suite(&peers, &options).await
}
