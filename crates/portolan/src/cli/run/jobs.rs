//! `--controllers` and what the jobs are told → the jobs of this process, and what they wait for before they start.

use futures::FutureExt as _;
use portolan_engine::{JobDefinition, Lacking, Provisions};

use crate::definitions;
use crate::failure::Outcome;
use crate::jobs::{self, is_installed};
use crate::kinds::Kinds;
use crate::operator::Needs;
use crate::server::{Server, is_in_cluster};

/// The jobs that were asked for; else, in a part of a job, that job alone; else those whose definitions the cluster has. Fails
/// where there is none, and warns of single definitions that are missing.
pub(super) async fn choose(
    server: &Server,
    asked: &[&'static JobDefinition],
    provisions: &Provisions,
) -> Outcome<Vec<&'static JobDefinition>> {
    if let (true, Some((job, part))) = (asked.is_empty(), jobs::part(provisions)) {
        tracing::info!("Only the {} job runs in the role {part}: name others with --controllers", job.sheet.name);
        return Ok(vec![job]);
    }
    let known = Kinds::discover(server).await?;
    if !asked.is_empty() {
        for job in asked.iter().filter(|job| !waits(job, provisions)) {
            definitions::check(job, &known, server.address())?;
        }
        return Ok(asked.to_vec());
    }
    let installed: Vec<_> = jobs::ALL.iter().copied().filter(|job| is_installed(job, &known)).collect();
    if let (true, Some(first)) = (installed.is_empty(), jobs::ALL.first()) {
        definitions::check(first, &known, server.address())?;
    }
    // A job that waits says by itself for what.
    for job in installed.iter().filter(|job| job.lacking == Lacking::Starts) {
        if let Err(failure) = definitions::check(job, &known, server.address()) {
            tracing::warn!("{}", failure.what());
        }
    }
    Ok(installed)
}

/// A pod whose definitions come later waits for them, so that nobody has to restart it; a user at a terminal is told at
/// once.
fn waits(job: &JobDefinition, provisions: &Provisions) -> bool {
    job.lacking == Lacking::Waits && ((job.part)(provisions).is_some() || is_in_cluster())
}

/// Looks whether the cluster has what a job works with in this process.
pub(super) fn needs(server: &Server, provisions: &Provisions) -> Needs {
    let (server, provisions) = (server.clone(), provisions.clone());
    std::sync::Arc::new(move |job| {
        let (server, provisions) = (server.clone(), provisions.clone());
        async move {
            let known = Kinds::discover(&server).await.map_err(|failure| failure.in_a_line())?;
            definitions::check_part(job, &provisions, &known, server.address()).map_err(|failure| failure.in_a_line())
        }
        .boxed()
    })
}
