//! Cases, histories, kubectl, roles and controllers of workloads on the real and on the embedded API server.

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    // The harness of `cargo test` may ask for a list; this is one test that prints its own summary.
    if arguments.iter().any(|argument| argument == "--list") {
        println!("parity: test");
        return;
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    let alike = runtime.block_on(portolan_parity::run(&arguments)).expect("servers to compare");
    if !alike {
        std::process::exit(1);
    }
}
