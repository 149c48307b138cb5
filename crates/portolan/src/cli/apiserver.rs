//! `portolan apiserver`: the embedded API server over TLS, until Ctrl-C or SIGTERM.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use portolan_apiserver::store::JournalError;
use portolan_apiserver::{Accounts, ApiServer, Config, StartError, Workloads};

use super::print;
use crate::failure::{Failure, Outcome};
use crate::server::chain;
use crate::signals::Signals;

/// Arguments of `portolan apiserver`.
#[derive(clap::Args, Debug)]
#[command(
    after_help = "The data directory holds one SQLite file, the server's certificates and a kubeconfig; only you can read \
    them.\nA write is on disk before it is answered. Delete the directory to start afresh."
)]
pub(crate) struct Args {
    /// Address to listen on; port 0 picks a free one
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:6440")]
    listen: SocketAddr,

    /// Directory for data, certificates and kubeconfig; made if it is not there
    #[arg(long, value_name = "DIR", default_value = ".portolan")]
    data_dir: PathBuf,
}

/// Serves until told to stop.
pub(crate) async fn run(args: Args) -> Outcome {
    let mut stop = Signals::listen()?;
    let config = Config {
        data_dir: Some(args.data_dir.clone()),
        workloads: Workloads::On,
        accounts: Accounts::Required,
        ..Config::default()
    };
    let server = ApiServer::open(config).await.map_err(not_started)?;
    server.tell_why_pods_wait();
    let serving = server.serve(args.listen).await.map_err(not_started)?;
    print(&greeting(&serving.url(), &args.data_dir.join("kubeconfig")));
    stop.asked().await;
    tracing::info!("Stopping");
    serving.shutdown().await;
    Ok(())
}

/// The server's own words, with what to do where they do not say it themselves.
#[expect(clippy::needless_pass_by_value, reason = "used by map_err")]
pub(crate) fn not_started(error: StartError) -> Failure {
    let failure = Failure::new(chain(&error));
    match error {
        StartError::Journal(JournalError::Io { .. } | JournalError::Sqlite { .. }) | StartError::Credentials(_) => {
            failure.next("check that you may write to the data directory and that its disk is not full, or choose another with --data-dir")
        }
        _ => failure,
    }
}

fn greeting(url: &str, kubeconfig: &Path) -> String {
    let kubeconfig = kubeconfig.display();
    let flag = if kubeconfig.to_string() == ".portolan/kubeconfig" {
        String::new()
    } else {
        format!(" --kubeconfig {kubeconfig}")
    };
    format!(
        "Kubernetes API at {url}\nkubeconfig: {kubeconfig}\nTry, in another terminal:\n  \
         portolan get namespaces{flag}\n  portolan apply -f FILE.yaml{flag}\n  \
         kubectl --kubeconfig {kubeconfig} api-resources\nStop with Ctrl-C; the data stays.\n"
    )
}
