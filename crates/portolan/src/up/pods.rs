//! The pods of the embedded API: run as processes, or only simulated where no program stands for them, or left alone.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use axum::Router;
use axum::extract::Json;
use axum::http::StatusCode;
use axum::routing::get;
use portolan_apiserver::ApiServer;
use portolan_runner::machine::leftovers::end_leftovers;
use portolan_runner::machine::programs::programs_here;
use portolan_runner::machine::reach::{RunnerPlace, runner_place};
use portolan_runner::machine::run_notes::RunNotes;
use portolan_runner::network::{NetworkReport, NetworkSettings};
use portolan_runner::node::{PodRunner, PodUsage, RunnerError, RunnerSettings, UsageMeter, WithoutProgram};

use crate::failure::{Failure, Outcome};
use crate::pods_page::{NetworkFacts, PATH, PodUse, PodsPage, ProgramFacts, RunnerFacts};
use crate::server::chain;

/// The node that all pods are on.
const NODE: &str = "portolan";

/// What becomes of pods.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum PodMode {
    /// They run as processes of this machine; where no program stands for an image, they wait and say so
    Run,
    /// As `run`, but where no program stands for an image, they count as ready, marked `Simulated`
    Simulate,
    /// They stay Pending
    Off,
}

/// The pods that run.
pub(crate) struct Pods {
    runner: PodRunner,
    facts: RunnerFacts,
}

impl Pods {
    /// Ends what an earlier runner left, and runs the pods of the API, if that is wanted.
    pub(crate) async fn start(
        mode: PodMode,
        data: &Path,
        (api, served_at): (&ApiServer, SocketAddr),
        client: kube::Client,
    ) -> Outcome<Option<Self>> {
        let place = runner_place(data).map_err(|error| unprepared(&error))?;
        let without_program = match mode {
            PodMode::Run => WithoutProgram::Waits,
            PodMode::Simulate => WithoutProgram::Simulated,
            PodMode::Off => {
                end_earlier(&place).await?;
                api.tell_why_pods_wait();
                return Ok(None);
            }
        };
        let executable = std::env::current_exe()
            .map_err(|error| Failure::new(format!("cannot find this program's own file: {error}")))?;
        let network = NetworkSettings { api_server: Some(served_at), ..NetworkSettings::default() };
        let settings = RunnerSettings {
            network,
            without_program,
            ..RunnerSettings::new(NODE, place.folder.clone(), executable.clone())
        };
        let runner = PodRunner::start(client, settings).await.map_err(not_started)?;
        api.set_pod_logs(Arc::new(runner.outputs()));
        api.set_pod_streams(Arc::new(runner.doors()));
        let facts =
            RunnerFacts { network: network_facts(runner.network().report()), ..facts(mode, &place, &executable) };
        Ok(Some(Self { runner, facts }))
    }

    /// What the runner may do.
    pub(crate) fn facts(&self) -> &RunnerFacts {
        &self.facts
    }

    /// The page that tells of the runner and its pods.
    pub(crate) fn routes(&self) -> Router {
        let (facts, meter) = (self.facts.clone(), self.runner.meter());
        let page = move || {
            let (facts, meter) = (facts.clone(), meter.clone());
            async move { page(facts, meter).await.map(Json).ok_or(StatusCode::INTERNAL_SERVER_ERROR) }
        };
        Router::new().route(PATH, get(page))
    }

    /// Ends all processes; the pods stay, and run again at the next start.
    pub(crate) async fn stop(self) {
        self.runner.stop().await;
    }
}

async fn page(runner: RunnerFacts, meter: UsageMeter) -> Option<PodsPage> {
    let measured = tokio::task::spawn_blocking(move || meter.measure()).await.ok()?.ok()?;
    Some(PodsPage { runner, pods: measured.into_iter().map(pod_use).collect() })
}

fn pod_use(PodUsage { namespace, name, usage }: PodUsage) -> PodUse {
    let cpu_seconds = usage.cpu.as_secs_f64();
    PodUse { namespace, name, memory_bytes: usage.memory, cpu_seconds, processes: usage.processes }
}

fn network_facts(report: NetworkReport) -> NetworkFacts {
    let NetworkReport { can_add_addresses, command_that_helps, resolver, not_served } = report;
    NetworkFacts { can_add_addresses, command_that_helps, resolver: resolver.map(|at| at.to_string()), not_served }
}

fn facts(mode: PodMode, place: &RunnerPlace, executable: &Path) -> RunnerFacts {
    let shown = |path: &Path| path.display().to_string();
    let program = |here: portolan_runner::machine::programs::ProgramHere| ProgramFacts {
        name: here.program.name.to_owned(),
        images: here.program.images.iter().map(|image| (*image).to_owned()).collect(),
        file: here.file.as_deref().map(shown),
    };
    RunnerFacts {
        pods: if mode == PodMode::Simulate { "simulate" } else { "run" }.to_owned(),
        user: portolan_runner::node::own_uid(),
        folder: shown(&std::path::absolute(&place.folder).unwrap_or_else(|_| place.folder.clone())),
        closed: place.closed.as_deref().map(shown),
        programs: programs_here(executable).into_iter().map(program).collect(),
        network: NetworkFacts::default(),
    }
}

/// Who wants no pods wants none of an earlier start either.
async fn end_earlier(place: &RunnerPlace) -> Outcome {
    let notes = place.folder.join("notes");
    if !notes.is_dir() {
        return Ok(());
    }
    let ended = tokio::task::spawn_blocking(move || end_leftovers(&RunNotes::in_folder(&notes)?)).await;
    match ended {
        Ok(Err(error)) => Err(unprepared(&error)),
        Ok(Ok(_)) | Err(_) => Ok(()),
    }
}

fn unprepared(error: &std::io::Error) -> Failure {
    Failure::new(format!("preparing the folder of pods: {error}"))
        .next("check that you may write to the data directory and that its disk is not full, or leave pods out with --pods off")
}

fn not_started(error: RunnerError) -> Failure {
    Failure::new(format!("pods cannot be run: {}", chain(&error)))
        .next("correct what the message names, or leave pods out with --pods off")
}
