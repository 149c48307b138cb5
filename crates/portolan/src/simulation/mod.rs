//! The Cloudflare simulator beside the embedded server: what objects name is made there, so that they can be tried.

mod keeping;
mod seeder;
mod seeding;
mod wanted;

use std::net::SocketAddr;

use portolan_cloudflare_sim::{Options, Running, Simulator};

use crate::failure::{Failure, Outcome};

pub(crate) use seeder::{Seeder, SeedingTransport};
pub(crate) use wanted::secrets_named;

/// A simulator that listens.
pub(crate) struct Simulation {
    simulator: Simulator,
    running: Running,
}

impl Simulation {
    /// Starts one. `flag` names the flag by which the user chose the address.
    pub(crate) async fn start(options: Options, address: SocketAddr, flag: &str) -> Outcome<Self> {
        let simulator = Simulator::open(options).map_err(|error| {
            Failure::new(format!("the recording cannot be written: {error}"))
                .next("choose a file that you may write to with --record")
        })?;
        let running = simulator.serve(address).await.map_err(|error| {
            Failure::new(format!("listening on {address}: {error}"))
                .next(format!("is another simulator running there? Choose another address with {flag}"))
        })?;
        Ok(Self { simulator, running })
    }

    /// The simulator itself.
    pub(crate) fn simulator(&self) -> &Simulator {
        &self.simulator
    }

    /// Where clients send their requests.
    pub(crate) fn base_url(&self) -> String {
        self.running.base_url()
    }

    /// The page that lists what is served.
    pub(crate) fn page(&self) -> String {
        format!("http://{}/", self.running.address)
    }

    /// Lets requests end and stops.
    pub(crate) async fn stop(self) {
        self.running.shutdown().await;
    }
}
