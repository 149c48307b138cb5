//! The embedded server as a process of its own, so that its memory is its own.

use std::path::PathBuf;
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow, bail};
use http::Method;
use tempfile::TempDir;
use tokio::process::{Child, Command};

use super::connection::{Connection, SentBody};
use super::target::BenchServer;

const START_TIMEOUT: Duration = Duration::from_secs(30);

/// A running `portolan apiserver` with a fresh data directory.
pub(super) struct Embedded {
    process: Child,
    pid: u32,
    data: TempDir,
}

impl Embedded {
    /// Starts it and waits until it answers.
    pub(super) async fn start() -> anyhow::Result<Self> {
        let program = std::env::current_exe().context("finding this program")?;
        let data = tempfile::tempdir().context("making a temporary folder")?;
        let process = Command::new(program)
            .args(["apiserver", "--listen", "127.0.0.1:0", "--data-dir"])
            .arg(data.path().join("data"))
            .env("LOG_LEVEL", "warn")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .context("starting the embedded server")?;
        let pid = process.id().ok_or_else(|| anyhow!("the embedded server ended at once"))?;
        let mut embedded = Self { process, pid, data };
        embedded.wait_ready().await?;
        Ok(embedded)
    }

    /// How to reach it.
    pub(super) async fn target(&self) -> anyhow::Result<BenchServer> {
        BenchServer::from_kubeconfig(&self.kubeconfig()).await
    }

    /// Its process id.
    pub(super) fn pid(&self) -> u32 {
        self.pid
    }

    /// Ends it.
    pub(super) async fn stop(mut self) -> anyhow::Result<()> {
        self.process.kill().await.context("stopping the embedded server")
    }

    /// Where its kubeconfig is.
    pub(super) fn kubeconfig(&self) -> PathBuf {
        self.data.path().join("data/kubeconfig")
    }

    async fn wait_ready(&mut self) -> anyhow::Result<()> {
        let until = Instant::now() + START_TIMEOUT;
        while Instant::now() < until {
            if let Some(status) = self.process.try_wait().context("watching the embedded server")? {
                bail!("the embedded server ended at once ({status}); its messages are above");
            }
            if self.answers().await.is_ok() {
                return Ok(());
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        bail!("the embedded server did not answer within {} s", START_TIMEOUT.as_secs())
    }

    async fn answers(&self) -> anyhow::Result<()> {
        let mut connection = Connection::open(&self.target().await?).await?;
        connection.send(Method::GET, "/api/v1/namespaces/default", SentBody::none()).await?;
        Ok(())
    }
}
