//! `portolan run` against a real kube-apiserver with the Gateway API's own definitions.

#![allow(clippy::unwrap_used, reason = "a failed step is a failed test")]

use crate::support::zerotrust::Life;
use portolan_parity::{ControlPlane, Durability};

#[test]
fn a_route_lives_on_a_real_api_server() {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let plane = match runtime.block_on(ControlPlane::start(Durability::None)) {
        Ok(plane) => plane,
        // The summary of `make test` repeats what was not run.
        Err(why) => return tell(&format!("real: NOT RUN: portolan run on a real API server: {why}")),
    };
    let definitions = match portolan_parity::gateway_api() {
        Ok(definitions) => definitions,
        Err(why) => return tell(&format!("real: NOT RUN: portolan run on a real API server: {why}")),
    };
    let folder = tempfile::tempdir().unwrap();
    let routes = definitions.iter().find(|one| one["spec"]["names"]["kind"] == "HTTPRoute").unwrap();
    let gateway = folder.path().join("httproutes.json");
    std::fs::write(&gateway, routes.to_string()).unwrap();

    Life::prepare(plane.kubeconfig(), &gateway).live();

    tell("real: a route published, protected and taken down by portolan run on kube-apiserver");
}

/// Written to the handle itself: what `println!` says is kept back.
fn tell(text: &str) {
    use std::io::Write as _;
    let _ = writeln!(std::io::stderr(), "{text}");
}
