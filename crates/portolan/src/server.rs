//! Kubeconfig, or the pod that this runs in → a server to talk to.

use std::path::{Path, PathBuf};

use clap::Args;
use kube::config::{KubeConfigOptions, Kubeconfig};
use tower::limit::ConcurrencyLimitLayer;

pub(crate) use portolan_apply::server::{CallError, Server, ServerRequest};
pub(crate) use portolan_core::text::chain;

use crate::failure::{Failure, Outcome};

/// Where the kubeconfig is looked for last: beside the data of `portolan apiserver`.
pub(crate) const LOCAL_KUBECONFIG: &str = ".portolan/kubeconfig";
/// Requests that wait for their answer at once.
const REQUESTS_AT_ONCE: usize = 32;

/// Which server to talk to.
#[derive(Args, Clone, Debug)]
pub(crate) struct ConnectArgs {
    /// Kubeconfig of the server. Without it: $KUBECONFIG, else .portolan/kubeconfig
    #[arg(long, value_name = "FILE")]
    pub(crate) kubeconfig: Option<PathBuf>,

    /// Context of the kubeconfig, where not its current one
    #[arg(long, value_name = "NAME")]
    pub(crate) context: Option<String>,
}

/// A client that opens few connections however many requests wait: each costs tens of kilobytes here, and more on the
/// server. A watch counts only until it is answered.
fn frugal_client(config: kube::Config) -> Result<kube::Client, kube::Error> {
    let limit = ConcurrencyLimitLayer::new(REQUESTS_AT_ONCE);
    Ok(kube::client::ClientBuilder::try_from(config)?.with_layer(&limit).build())
}

impl ConnectArgs {
    /// Reads the kubeconfig and prepares a client. No request is sent yet.
    pub(crate) async fn server(&self) -> Outcome<Server> {
        let (kubeconfig, origin) = read_kubeconfig(self)?;
        let options = KubeConfigOptions { context: self.context.clone(), ..KubeConfigOptions::default() };
        let config = kube::Config::from_custom_kubeconfig(kubeconfig, &options).await.map_err(|error| {
            Failure::new(format!("kubeconfig {origin} cannot be used: {}", chain(&error)))
                .next("check its current-context, or name one with --context")
        })?;
        let address = config.cluster_url.to_string();
        let client = frugal_client(config)
            .map_err(|error| Failure::new(format!("kubeconfig {origin} cannot be used: {}", chain(&error))))?;
        Ok(Server::new(client, address, origin))
    }

    /// As [`server`](Self::server), and inside a cluster that cluster's own server before the local kubeconfig.
    pub(crate) async fn server_anywhere(&self) -> Outcome<Server> {
        let named = self.kubeconfig.is_some() || std::env::var_os("KUBECONFIG").is_some_and(|value| !value.is_empty());
        if named || !is_in_cluster() {
            return self.server().await;
        }
        let config = kube::Config::incluster().map_err(|error| {
            Failure::new(format!("this looks like a pod, but its cluster cannot be used: {}", chain(&error)))
                .next("mount the pod's service account, or name a kubeconfig with --kubeconfig")
        })?;
        let address = config.cluster_url.to_string();
        let client = frugal_client(config)
            .map_err(|error| Failure::new(format!("the pod's cluster cannot be used: {}", chain(&error))))?;
        Ok(Server::new(client, address, "of this pod"))
    }
}

/// Whether this process runs in a pod.
pub(crate) fn is_in_cluster() -> bool {
    std::env::var_os("KUBERNETES_SERVICE_HOST").is_some_and(|value| !value.is_empty())
}

fn read_kubeconfig(args: &ConnectArgs) -> Outcome<(Kubeconfig, String)> {
    if let Some(path) = &args.kubeconfig {
        return read_file(path);
    }
    let from_environment = Kubeconfig::from_env().map_err(|error| {
        Failure::new(format!("KUBECONFIG cannot be read: {}", chain(&error))).next("correct or unset KUBECONFIG")
    })?;
    if let Some(kubeconfig) = from_environment {
        return Ok((kubeconfig, "$KUBECONFIG".to_owned()));
    }
    let local = Path::new(LOCAL_KUBECONFIG);
    if local.exists() {
        return read_file(local);
    }
    Err(Failure::new(format!("no server to talk to: there is no {LOCAL_KUBECONFIG} here and KUBECONFIG is not set"))
        .next("start one with `portolan up` or `portolan apiserver` in this folder, or name another one with --kubeconfig"))
}

fn read_file(path: &Path) -> Outcome<(Kubeconfig, String)> {
    let shown = path.display();
    let kubeconfig = Kubeconfig::read_from(path).map_err(|error| {
        Failure::new(format!("kubeconfig {shown} cannot be read: {}", chain(&error)))
            .next("give the path of a kubeconfig; `portolan apiserver` writes one into its data directory")
    })?;
    Ok((kubeconfig, shown.to_string()))
}
