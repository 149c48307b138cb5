//! A cluster for a page: the real API server with its controllers, the Gateway API's definitions, a node that runs
//! Portolan's pods, and a simulated Cloudflare in the place of the real one.

use std::path::{Path, PathBuf};
use std::process::Command;

use portolan_parity::{ControlPlane, Controllers, Durability};

use super::node::Node;
use super::session::last_lines;
use crate::support::Run;
use crate::support::example;
use crate::support::process::{Process, simulator};

/// Where the simulated edge answers, as `portolan up` has it.
const EDGE: &str = "127.0.0.1:8788";

/// Everything that is running; it ends when this is dropped.
pub struct Cluster {
    // Ends first: it talks to the others.
    _node: Node,
    _simulator: Process,
    plane: ControlPlane,
    cloudflare: String,
    pods: PathBuf,
}

impl Cluster {
    /// Starts all of it, or tells why it cannot be had here.
    pub fn start(runtime: &tokio::runtime::Runtime, kubectl: &Path, folder: &Path) -> Result<Self, String> {
        let definitions = portolan_parity::gateway_api().map_err(|error| error.to_string())?;
        let plane = runtime
            .block_on(ControlPlane::start_with(Durability::None, Controllers::Workloads))
            .map_err(|error| error.to_string())?;
        let file = folder.join("gateway-api.json");
        let list = serde_json::json!({ "apiVersion": "v1", "kind": "List", "items": definitions });
        std::fs::write(&file, list.to_string()).expect("written");
        let mut apply = Command::new(kubectl);
        apply.env("KUBECONFIG", plane.kubeconfig()).args(["apply", "--server-side", "-f"]).arg(&file);
        Run::from(apply.output().expect("kubectl runs")).succeeded();
        let seed = example("zero-trust/seed.yaml");
        let (simulator, cloudflare) = simulator(&["--seed", &seed, "--edge", EDGE, "--edge-origin", "*=echo"]);
        let pods = folder.join("node");
        let node = Node::start(kubectl, &plane, pods.clone(), &cloudflare);
        Ok(Self { _node: node, _simulator: simulator, plane, cloudflare, pods })
    }

    /// The last lines of every pod's log.
    pub fn logs(&self) -> String {
        let files = std::fs::read_dir(&self.pods).into_iter().flatten().filter_map(Result::ok).map(|file| file.path());
        let logs = files.filter(|file| file.extension().is_some_and(|extension| extension == "log"));
        logs.map(|file| ["--- ", &file.display().to_string(), "\n", &last_lines(&file), "\n"].concat()).collect()
    }

    /// What a reader's shell has set.
    pub fn variables(&self) -> [(&'static str, String); 2] {
        [
            ("KUBECONFIG", self.plane.kubeconfig().display().to_string()),
            ("CLOUDFLARE_API_BASE", self.cloudflare.clone()),
        ]
    }
}
