//! How a process is told to stop.

use tokio_util::sync::CancellationToken;

/// Waits for SIGTERM or Ctrl-C, then tells everyone who holds the token.
pub async fn on_signals(shutdown: CancellationToken) -> std::io::Result<()> {
    let mut terminate = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())?;
    tokio::select! {
        interrupted = tokio::signal::ctrl_c() => interrupted?,
        _ = terminate.recv() => {}
    }
    tracing::info!("Stopping: work that is under way may end");
    shutdown.cancel();
    Ok(())
}
