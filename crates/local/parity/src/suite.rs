//! All cases and histories on both servers, and the verdict.

use std::path::PathBuf;

use futures::StreamExt as _;
use serde_json::Value;

use crate::bundle::gateway_api;
use crate::case::Case;
use crate::client::{Client, Request};
use crate::compare::{Difference, compare};
use crate::histories::{self, History};
use crate::report::{Outcome, explanation};
use crate::server::Server;
use crate::{run, script};

/// The case files: group and text.
pub(crate) const FILES: &[(&str, &str)] = &[
    ("ssa", include_str!("../cases/ssa.case")),
    ("crd", include_str!("../cases/crd.case")),
    ("deletion", include_str!("../cases/deletion.case")),
    ("patch", include_str!("../cases/patch.case")),
    ("listwatch", include_str!("../cases/listwatch.case")),
    ("validation", include_str!("../cases/validation.case")),
    ("discovery", include_str!("../cases/discovery.case")),
    ("badinput", include_str!("../cases/badinput.case")),
    (GATEWAY, include_str!("../cases/gateway.case")),
];

/// The group that needs the official CRDs of the Gateway API.
const GATEWAY: &str = "gateway";

/// Cases that run at the same time.
const AT_ONCE: usize = 12;

/// The servers to compare; one of them alone is only asked to answer.
#[derive(Clone, Debug, Default)]
pub struct Peers {
    /// The server that is right by definition.
    pub real: Option<Server>,
    /// The server under test.
    pub embedded: Option<Server>,
}

/// What to run and where to write more than the summary.
#[derive(Clone, Debug)]
pub struct Options {
    /// Only cases whose `group: name` contains this.
    pub filter: Option<String>,
    /// How many random histories.
    pub histories: u64,
    /// The seed of the first history.
    pub seed: u64,
    /// A file for all differences.
    pub report: Option<PathBuf>,
    /// A file for the real server's answers, to see what the cases do.
    pub transcripts: Option<PathBuf>,
}

impl Options {
    /// From `PORTOLAN_PARITY_FILTER`, `PORTOLAN_HISTORIES`, `PORTOLAN_SEED`, `PORTOLAN_PARITY_REPORT` and
    /// `PORTOLAN_PARITY_TRANSCRIPTS`.
    pub fn from_environment() -> Self {
        let text = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        let number = |name: &str, default: u64| text(name).and_then(|value| value.parse().ok()).unwrap_or(default);
        Self {
            filter: text("PORTOLAN_PARITY_FILTER"),
            histories: number("PORTOLAN_HISTORIES", 300),
            seed: number("PORTOLAN_SEED", 1),
            report: text("PORTOLAN_PARITY_REPORT").map(PathBuf::from),
            transcripts: text("PORTOLAN_PARITY_TRANSCRIPTS").map(PathBuf::from),
        }
    }

    fn selects(&self, title: &str) -> bool {
        self.filter.as_deref().is_none_or(|filter| title.contains(filter))
    }
}

/// Runs everything, prints the summary, and tells whether there was no unexplained difference.
pub async fn run(peers: &Peers, options: &Options) -> bool {
    let clients = Clients::new(peers);
    let mut outcome = Outcome::default();
    let cases = selected(&clients, options, &mut outcome).await;
    let runs = futures::stream::iter(cases.iter().map(|case| clients.run(case))).buffer_unordered(AT_ONCE);
    let results: Vec<Ran<'_>> = runs.collect().await;
    for ran in &results {
        ran.count(&mut outcome);
        outcome.add(&ran.case.title(), ran.differences());
    }
    if let Some(path) = &options.transcripts {
        write(path, &transcripts(&results));
    }
    if clients.both() && options.selects("history") {
        clients.histories(options, &mut outcome).await;
    }
    if options.filter.is_none() && clients.both() {
        let stale = outcome.unused().into_iter().map(|known| format!("known difference no longer seen: {} {}", known.case, known.at));
        let stale: Vec<String> = stale.collect();
        outcome.failed.extend(stale);
    }
    if let Some(path) = &options.report {
        write(path, &format!("# Differences\n\n{}{}", outcome.summary(), outcome.details()));
    }
    print!("{}", outcome.details());
    for title in &outcome.failed {
        println!("parity: FAILED {title}");
    }
    print!("{}", outcome.summary());
    outcome.failed.is_empty()
}

fn write(path: &PathBuf, text: &str) {
    if let Err(error) = std::fs::write(path, text) {
        println!("parity: {} could not be written: {error}", path.display());
    }
}

/// The cases that the options ask for and the servers allow.
async fn selected(clients: &Clients, options: &Options, outcome: &mut Outcome) -> Vec<Case> {
    let run = format!("{:04x}", rand::random::<u16>());
    let parsed = FILES.iter().map(|(group, text)| script::parse(group, &run, text).expect("tests parse every case file"));
    let mut cases: Vec<Case> = parsed.flatten().filter(|case| options.selects(&case.title())).collect();
    if cases.iter().any(|case| case.group == GATEWAY)
        && let Err(reason) = clients.install_gateway_api().await
    {
        outcome.notes.push(format!("Gateway API cases not run: {reason}"));
        cases.retain(|case| case.group != GATEWAY);
    }
    cases
}

struct Clients {
    real: Option<Client>,
    embedded: Option<Client>,
}

struct Ran<'a> {
    case: &'a Case,
    real: Option<Vec<Value>>,
    embedded: Option<Vec<Value>>,
}

impl Clients {
    fn new(peers: &Peers) -> Self {
        let client = |server: &Option<Server>| server.as_ref().map(|server| Client::new(server).expect("the CA is PEM"));
        Self { real: client(&peers.real), embedded: client(&peers.embedded) }
    }

    fn both(&self) -> bool {
        self.real.is_some() && self.embedded.is_some()
    }

    async fn run<'a>(&self, case: &'a Case) -> Ran<'a> {
        let on = async |client: &Option<Client>| match client {
            Some(client) => Some(run::run(client, case).await),
            None => None,
        };
        let (real, embedded) = futures::join!(on(&self.real), on(&self.embedded));
        Ran { case, real, embedded }
    }

    /// Replays the random histories; each that differs is shrunk.
    async fn histories(&self, options: &Options, outcome: &mut Outcome) {
        let run = format!("{:04x}", rand::random::<u16>());
        let definition = script::parse("histories", &run, histories::DEFINITION).expect("a constant script").remove(0);
        outcome.add(&definition.title(), self.run(&definition).await.differences());
        let seeds = options.seed..options.seed.saturating_add(options.histories);
        let replay = |seed: u64| self.replay(History::of(seed), &definition.id, &run);
        let results: Vec<(History, Vec<Difference>)> =
            futures::stream::iter(seeds.map(replay)).buffer_unordered(AT_ONCE).collect().await;
        outcome.histories += results.len();
        for (history, differences) in results {
            let unexplained = differences.iter().any(|difference| explanation(difference).is_none());
            if unexplained {
                println!("failing seed: {}\n{}\n", history.seed, history.operations.join("\n"));
            }
            outcome.add(&format!("history: {}", history.seed), differences);
        }
    }

    /// The history itself and no differences, or the shortest that still differs and its differences.
    async fn replay(&self, history: History, definition: &str, run: &str) -> (History, Vec<Difference>) {
        let mut differences = self.run(&history.case(definition, run)).await.differences();
        let mut shortest = history;
        let mut index = shortest.operations.len();
        while index > 0 && differences.iter().any(|difference| explanation(difference).is_none()) {
            index -= 1;
            let shorter = shortest.without(index);
            let attempt = format!("{run}-{index}");
            let found = self.run(&shorter.case(definition, &attempt)).await.differences();
            if found.iter().any(|difference| explanation(difference).is_none()) {
                (shortest, differences) = (shorter, found);
            }
        }
        (shortest, differences)
    }

    async fn install_gateway_api(&self) -> Result<(), String> {
        let definitions = gateway_api().map_err(|error| error.to_string())?;
        for client in [&self.real, &self.embedded].into_iter().flatten() {
            for definition in &definitions {
                install(client, definition).await?;
            }
        }
        Ok(())
    }
}

/// Creates a CRD and waits until its storage version is served.
async fn install(client: &Client, definition: &Value) -> Result<(), String> {
    let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let answer = client.send(&Request::json("POST", path, definition)).await;
    let name = definition["metadata"]["name"].as_str().unwrap_or_default();
    if answer.status == 201 || answer.status == 409 {
        return Ok(());
    }
    Err(format!("{name} was refused: {}", answer.json()["message"]))
}

impl Ran<'_> {
    fn count(&self, outcome: &mut Outcome) {
        let (real, embedded) = outcome.ran.entry(self.case.group.clone()).or_default();
        *real += usize::from(self.real.is_some());
        *embedded += usize::from(self.embedded.is_some());
    }

    /// With one server alone, only a broken connection or an internal error counts.
    fn differences(&self) -> Vec<Difference> {
        let lines: Vec<String> = self.case.steps.iter().map(|step| step.line.clone()).collect();
        match (&self.real, &self.embedded) {
            (Some(real), Some(embedded)) => compare(&self.case.title(), &lines, real, embedded),
            (Some(alone), None) | (None, Some(alone)) => {
                let sane: Vec<Value> = alone.iter().map(sane).collect();
                compare(&self.case.title(), &lines, &sane, alone)
            }
            (None, None) => Vec::new(),
        }
    }
}

/// The answer itself, unless it shows a crash.
fn sane(answer: &Value) -> Value {
    let panicked = answer["status"] == 500 && answer["body"].to_string().contains("panic");
    match answer["status"].as_u64() {
        _ if panicked => Value::from("an answer without a panic"),
        Some(0) => Value::from("an answer"),
        _ if answer["holds"] == false => Value::from("the effect within the time"),
        _ => answer.clone(),
    }
}

fn transcripts(results: &[Ran<'_>]) -> String {
    let mut blocks: Vec<String> = results.iter().map(transcript).collect();
    blocks.sort();
    blocks.join("\n")
}

fn transcript(ran: &Ran<'_>) -> String {
    let answers = ran.real.as_ref().or(ran.embedded.as_ref());
    let steps = ran.case.steps.iter().zip(answers.into_iter().flatten());
    let lines: Vec<String> = steps.map(|(step, answer)| format!("{}\n    {answer}\n", step.line)).collect();
    format!("=== {}\n{}", ran.case.title(), lines.join(""))
}
