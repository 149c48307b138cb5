//! Starts the real control plane, prints its kubeconfig's path and keeps it running until stdin ends.
//!
//! `--fsync` makes etcd wait for the disk, as benchmarks want it.

use std::io::Read as _;

use portolan_parity::{ControlPlane, Durability};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let fsync = std::env::args().any(|argument| argument == "--fsync");
    let plane = ControlPlane::start(if fsync { Durability::Fsync } else { Durability::None }).await?;
    println!("{}", plane.kubeconfig().display());
    println!("{:?}", plane.pids());
    std::io::stdin().read_to_end(&mut Vec::new())?;
    Ok(())
}
