//! A container whose image no program stands for, where such ones are simulated → one that counts as running, and says so.
//!
//! What goes on for ever is ready at once; what is to end, such as a job's container, has ended well at once.

use k8s_openapi::api::core::v1::Container;

use super::WithoutProgram;
use super::events::EventSort;
use super::worker::{PodFact, PodWorker};
use crate::machine::processes::ProcessEnd;
use crate::pod::containers::containers;
use crate::pod::programs::program_of;
use crate::pod::record::Termination;
use crate::pod::status::SIMULATED;

impl PodWorker {
    /// Lets a container count as running where it is to be simulated; says whether it is.
    pub(super) async fn simulate(&mut self, spec: &Container) -> bool {
        let image = spec.image.clone().unwrap_or_default();
        if self.context.settings.without_program != WithoutProgram::Simulated || program_of(&image).is_ok() {
            return false;
        }
        let (id, now) = (uuid::Uuid::new_v4().to_string(), self.context.now());
        let message = format!("No program of this machine stands for {image:?}: the container is simulated");
        let goes_on =
            containers(&self.pod).iter().any(|one| one.spec.name == spec.name && one.restart.restarts_after(0));
        self.record.simulated.insert(image);
        let record = self.record.container_mut(&spec.name);
        if goes_on {
            record.simulated(id, now);
        } else {
            let (exit_code, reason) = (0, "Completed".to_owned());
            let message = Some(message.clone());
            record.ended(Termination { id, exit_code, reason, message, started: Some(now), ended: now });
        }
        self.tell(EventSort::Normal, SIMULATED, message, Some(&spec.name)).await;
        true
    }

    pub(super) fn is_simulated(&self, container: &str) -> bool {
        self.record.container(container).running().is_some_and(|running| running.probes.are_skipped())
    }

    /// What is simulated ends as soon as it is told to.
    pub(super) fn end_if_simulated(&self, container: &str) {
        let record = self.record.container(container);
        if let Some(running) = record.running().filter(|running| running.probes.are_skipped()) {
            let (id, container, started) = (running.id.clone(), container.to_owned(), running.since);
            let end = ProcessEnd { exit_code: 0, not_started: None };
            // The worker itself is who listens.
            let _ = self.teller.send(PodFact::Ended { container, id, started, end });
        }
    }
}
