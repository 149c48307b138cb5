//! Both servers at once: a case → what each of them answered.

use std::sync::{Mutex, PoisonError};

use serde_json::Value;

use crate::bundle::gateway_api;
use crate::case::Case;
use crate::client::{Client, PeerRequest};
use crate::compare::{Difference, compare};
use crate::known_differences::decides_otherwise;
use crate::peers::Peers;
use crate::report::RunResult;
use crate::run::{self, Transcript};
use crate::server::PeerServer;
use crate::sound::unsound;

/// Where CRDs are.
const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// Clients of the servers that are compared.
pub(crate) struct Clients {
    real: Option<Client>,
    embedded: Client,
    /// The ids of all cases that were run, to be able to clean up.
    used: Mutex<Vec<String>>,
}

/// The transcripts of one case.
pub(crate) struct Ran<'a> {
    pub case: &'a Case,
    pub real: Option<Transcript>,
    pub embedded: Transcript,
}

impl Clients {
    pub(crate) fn new(peers: &Peers) -> Self {
        let client = |server: &PeerServer| Client::new(server).expect("the server's CA is PEM");
        Self { real: peers.real().map(client), embedded: client(peers.embedded()), used: Mutex::default() }
    }

    pub(crate) fn both(&self) -> bool {
        self.real.is_some()
    }

    pub(crate) async fn run<'a>(&self, case: &'a Case) -> Ran<'a> {
        let real = async {
            match &self.real {
                Some(client) => Some(run::run(client, case).await),
                None => None,
            }
        };
        self.used.lock().unwrap_or_else(PoisonError::into_inner).push(case.id.clone());
        let (real, embedded) = futures::join!(real, run::run(&self.embedded, case));
        Ran { case, real, embedded }
    }

    /// Deletes what the cases left behind, on servers that others go on to use.
    pub(crate) async fn clean(&self) {
        let used = std::mem::take(&mut *self.used.lock().unwrap_or_else(PoisonError::into_inner));
        for client in self.real.iter().chain([&self.embedded]) {
            for id in &used {
                for path in [format!("/api/v1/namespaces/{id}"), format!("{DEFINITIONS}/widgets.{id}.example.com")] {
                    client.send(&PeerRequest { method: "DELETE", ..PeerRequest::get(&path) }).await;
                }
            }
        }
    }

    /// Installs the official CRDs on both; the error says why they are not there.
    pub(crate) async fn install_gateway_api(&self) -> Result<(), String> {
        let definitions = gateway_api().map_err(|error| error.to_string())?;
        for client in self.real.iter().chain([&self.embedded]) {
            for definition in &definitions {
                install(client, definition).await?;
            }
        }
        Ok(())
    }
}

/// Creates a CRD and waits until its versions are served.
async fn install(client: &Client, definition: &Value) -> Result<(), String> {
    let answer = client.send(&PeerRequest::json("POST", DEFINITIONS, definition)).await;
    let name = definition["metadata"]["name"].as_str().unwrap_or_default();
    if answer.status != 201 && answer.status != 409 {
        return Err(format!("{name} was refused: {}", answer.json()["message"]));
    }
    for list in run::collections(definition) {
        if !run::poll(client, &PeerRequest::get(&list), |answer| answer.status == 200).await {
            return Err(format!("{name} is not served"));
        }
    }
    Ok(())
}

impl Ran<'_> {
    pub(crate) fn count(&self, outcome: &mut RunResult) {
        let (real, embedded) = outcome.ran.entry(self.case.group.clone()).or_default();
        *real += usize::from(self.real.is_some());
        *embedded += 1;
        for transcript in self.real.iter().chain([&self.embedded]) {
            for (step, took) in self.case.steps.iter().zip(&transcript.took) {
                outcome.took(*took, &self.case.title(), &step.line);
            }
        }
    }

    /// Where they differ, and where the real server fails; without one, where the other fails.
    pub(crate) fn differences(&self) -> Vec<Difference> {
        let lines: Vec<String> = self.case.steps.iter().map(|step| step.line.clone()).collect();
        let Some(real) = &self.real else {
            let mut found = unsound(self.case, &self.embedded.answers);
            found.retain(|failure| !decides_otherwise(&failure.case, failure.step));
            return found;
        };
        let mut found = compare(&self.case.title(), &lines, &real.answers, &self.embedded.answers);
        found.extend(unsound(self.case, &real.answers));
        found
    }
}
