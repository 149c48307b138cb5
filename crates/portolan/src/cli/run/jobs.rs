//! Role and `--controllers` → the jobs of this process, and what they wait for before they start.

use futures::FutureExt as _;
use portolan_zerotrust::Role;

use crate::definitions;
use crate::failure::Outcome;
use crate::jobs::JobName;
use crate::kinds::Kinds;
use crate::operator::StartCheck;
use crate::server::{Server, is_in_cluster};

/// The jobs that were asked for; else, in a role of the zerotrust job, that job alone; else those whose definitions the
/// cluster has. Fails where there is none, and warns of single definitions that are missing.
pub(super) async fn choose(server: &Server, asked: &[JobName], role: Role) -> Outcome<Vec<JobName>> {
    if asked.is_empty() && role != Role::All {
        tracing::info!("Only the zerotrust job runs in the role {role}: name others with --controllers");
        return Ok(vec![JobName::Zerotrust]);
    }
    let known = Kinds::discover(server).await?;
    if !asked.is_empty() {
        for job in asked.iter().filter(|job| !waits(**job, role)) {
            definitions::check(*job, &known, server.address())?;
        }
        return Ok(asked.to_vec());
    }
    let jobs: Vec<JobName> = JobName::ALL.into_iter().filter(|job| job.is_installed(&known)).collect();
    if jobs.is_empty() {
        definitions::check(JobName::Cloudflare, &known, server.address())?;
    }
    // The zerotrust job says by itself what it waits for.
    for job in jobs.iter().filter(|job| **job != JobName::Zerotrust) {
        if let Err(failure) = definitions::check(*job, &known, server.address()) {
            tracing::warn!("{}", failure.what());
        }
    }
    Ok(jobs)
}

/// A pod whose definitions come later waits for them, so that nobody has to restart it; a user at a terminal is told at
/// once.
fn waits(job: JobName, role: Role) -> bool {
    job == JobName::Zerotrust && (role != Role::All || is_in_cluster())
}

/// Looks whether the cluster has what a role of the zerotrust job works with.
pub(super) fn needs(server: &Server, role: Role) -> StartCheck {
    let server = server.clone();
    std::sync::Arc::new(move || {
        let server = server.clone();
        async move {
            let known = Kinds::discover(&server).await.map_err(|failure| failure.in_a_line())?;
            definitions::check_role(role, &known, server.address()).map_err(|failure| failure.in_a_line())
        }
        .boxed()
    })
}
