//! The data that a stopped `portolan up` left → a server and a simulator in this process, to plan with.
//!
//! Both work on a copy: planning changes nothing.

use std::net::SocketAddr;
use std::path::Path;

use portolan_apiserver::{ApiServer, Config};
use portolan_cloudflare_sim::Options;
use tempfile::TempDir;

use crate::cli::apiserver::not_started;
use crate::failure::{Failure, Outcome};
use crate::server::Server;
use crate::simulation::Simulation;

/// The files that objects are stored in; all but the first may be missing.
const FILES: [&str; 3] = ["portolan.sqlite", "portolan.sqlite-wal", "portolan.sqlite-shm"];

/// A stopped server's objects, and its simulator where there was one.
pub(crate) struct StoppedServer {
    server: Server,
    simulation: Option<Simulation>,
    _api: ApiServer,
    _folder: TempDir,
}

impl StoppedServer {
    /// Opens a copy of a data directory; none where it holds no objects.
    pub(crate) async fn open(data_dir: &Path) -> Outcome<Option<Self>> {
        if !data_dir.join(FILES[0]).exists() {
            return Ok(None);
        }
        let folder = copy(data_dir).map_err(|error| {
            Failure::new(format!("the data in {} cannot be read: {error}", data_dir.display()))
                .next("check that you may read it, or start `portolan up` on it")
        })?;
        let config = Config { data_dir: Some(folder.path().to_owned()), ..Config::default() };
        let api = ApiServer::open(config).await.map_err(not_started)?;
        let client = kube::Client::new(api.service(), "default");
        let server = Server::of_client(client, format!("the data in {}", data_dir.display()));
        let simulation = if Simulation::is_kept_in(data_dir) { Some(simulate(data_dir).await?) } else { None };
        Ok(Some(Self { server, simulation, _api: api, _folder: folder }))
    }

    /// The objects.
    pub(crate) fn server(&self) -> &Server {
        &self.server
    }

    /// Where the simulator answers, if there is one.
    pub(crate) fn cloudflare(&self) -> Option<String> {
        self.simulation.as_ref().map(Simulation::base_url)
    }
}

async fn simulate(data_dir: &Path) -> Outcome<Simulation> {
    let options = Options { rate_limit: None, ..Options::default() };
    let simulation = Simulation::start(options, SocketAddr::from(([127, 0, 0, 1], 0)), "--cloudflare").await?;
    simulation.restore(data_dir, None)?;
    Ok(simulation)
}

fn copy(data_dir: &Path) -> std::io::Result<TempDir> {
    let folder = tempfile::tempdir()?;
    for file in FILES {
        let from = data_dir.join(file);
        if from.exists() {
            std::fs::copy(from, folder.path().join(file))?;
        }
    }
    Ok(folder)
}
