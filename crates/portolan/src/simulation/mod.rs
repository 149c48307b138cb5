//! The Cloudflare simulator beside the embedded server: what objects name is made there, so that they can be tried.

mod keeping;
mod seeder;
mod seeding;
mod tenants;
mod wanted;

use std::net::SocketAddr;

use portolan_cloudflare_sim::{Options, OriginAddress, Serving, Simulator};

use crate::failure::{Failure, Outcome};

pub(crate) use keeping::{read_seed, write_private};
pub(crate) use seeder::{Seeder, SeedingTransport};
pub(crate) use wanted::secrets_named;

/// A simulator that listens, perhaps with its edge.
pub(crate) struct Simulation {
    simulator: Simulator,
    running: Serving,
    edge: Option<Serving>,
}

/// Where an edge is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EdgePlace {
    /// There and nowhere else.
    Exactly(SocketAddr),
    /// There, or at any free port where that one is taken.
    Preferably(SocketAddr),
}

impl EdgePlace {
    /// Where it is unless the user says otherwise.
    pub(crate) fn usual() -> Self {
        Self::Preferably(SocketAddr::from(([127, 0, 0, 1], 8788)))
    }
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
        Ok(Self { simulator, running, edge: None })
    }

    /// Answers HTTP for published names, too.
    pub(crate) async fn start_edge(&mut self, place: EdgePlace, origins: &[OriginAddress]) -> Outcome {
        let edge = origins.iter().cloned().fold(self.simulator.edge(), portolan_cloudflare_sim::Edge::origin);
        let running = match place {
            EdgePlace::Exactly(address) => edge.serve(address).await,
            EdgePlace::Preferably(address) => match edge.serve(address).await {
                Err(_) => edge.serve(SocketAddr::new(address.ip(), 0)).await,
                served => served,
            },
        };
        let (EdgePlace::Exactly(address) | EdgePlace::Preferably(address)) = place;
        self.edge = Some(running.map_err(|error| {
            Failure::new(format!("listening on {address}: {error}"))
                .next("is another edge running there? Choose another address with --edge")
        })?);
        Ok(())
    }

    /// Where published names are answered for.
    pub(crate) fn edge_url(&self) -> Option<String> {
        self.edge.as_ref().map(|edge| format!("http://{}", edge.address))
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
        if let Some(edge) = self.edge {
            edge.shutdown().await;
        }
        self.running.shutdown().await;
    }
}
