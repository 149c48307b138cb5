//! All cases and histories on both servers, and the verdict.

use futures::StreamExt as _;

use crate::case::Case;
use crate::clients::{Clients, Ran};
use crate::compare::Difference;
use crate::histories::{self, RandomHistory};
use crate::names::run_name;
use crate::options::Options;
use crate::peers::Peers;
use crate::report::{RunResult, explanation, write};
use crate::script;

/// The case files: group and text.
pub(crate) const FILES: &[(&str, &str)] = &[
    ("ssa", include_str!("../cases/ssa.case")),
    ("crd", include_str!("../cases/crd.case")),
    ("deletion", include_str!("../cases/deletion.case")),
    ("patch", include_str!("../cases/patch.case")),
    ("strategic", include_str!("../cases/strategic.case")),
    ("listwatch", include_str!("../cases/listwatch.case")),
    ("validation", include_str!("../cases/validation.case")),
    ("discovery", include_str!("../cases/discovery.case")),
    ("badinput", include_str!("../cases/badinput.case")),
    ("openapi", include_str!("../cases/openapi.case")),
    ("access", include_str!("../cases/access.case")),
    ("garbage", include_str!("../cases/garbage.case")),
    ("pods", include_str!("../cases/pods.case")),
    ("builtin", include_str!("../cases/builtin.case")),
    ("scale", include_str!("../cases/scale.case")),
    ("warnings", include_str!("../cases/warnings.case")),
    (GATEWAY, include_str!("../cases/gateway.case")),
];

/// The group that needs the official CRDs of the Gateway API.
const GATEWAY: &str = "gateway";

/// Cases that run at the same time.
const AT_ONCE: usize = 12;

/// Runs everything, prints the summary, and tells whether there was no unexplained difference.
pub(crate) async fn run(peers: &Peers, options: &Options) -> bool {
    let clients = Clients::new(peers);
    let mut outcome = RunResult::default();
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
        replay_all(&clients, options, &mut outcome).await;
    }
    if options.filter.is_none() && clients.both() {
        let stale = outcome
            .unused()
            .into_iter()
            .filter(|known| !known.case.starts_with("kubectl"))
            .map(|known| format!("known difference no longer seen: {} {}", known.case, known.at));
        let stale: Vec<String> = stale.collect();
        outcome.failed.extend(stale);
    }
    if peers.borrowed() {
        clients.clean().await;
    }
    outcome.finish(options, "cases")
}

/// The cases that the options ask for and the servers allow.
async fn selected(clients: &Clients, options: &Options, outcome: &mut RunResult) -> Vec<Case> {
    let run = run_name();
    let parsed =
        FILES.iter().map(|(group, text)| script::parse(group, &run, text).expect("tests parse every case file"));
    let mut cases: Vec<Case> = parsed.flatten().filter(|case| options.selects(&case.title())).collect();
    if cases.iter().any(|case| case.group == GATEWAY)
        && let Err(reason) = clients.install_gateway_api().await
    {
        outcome.notes.push(format!("NOT RUN: Gateway API cases: {reason}"));
        cases.retain(|case| case.group != GATEWAY);
    }
    cases
}

/// Replays the random histories; each that differs is shrunk.
async fn replay_all(clients: &Clients, options: &Options, outcome: &mut RunResult) {
    let run = run_name();
    let definition = script::parse("histories", &run, histories::DEFINITION).expect("a constant script").remove(0);
    outcome.add(&definition.title(), clients.run(&definition).await.differences());
    let seeds = options.histories.iter().copied();
    let replay = |seed: u64| replay(clients, RandomHistory::of(seed), &definition.id, &run);
    let results: Vec<(RandomHistory, Vec<Difference>)> =
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
async fn replay(
    clients: &Clients,
    history: RandomHistory,
    definition: &str,
    run: &str,
) -> (RandomHistory, Vec<Difference>) {
    let mut differences = clients.run(&history.case(definition, run)).await.differences();
    let mut shortest = history;
    let mut index = shortest.operations.len();
    // The first operation stays: later ones name the version it saves.
    while index > 1 && differences.iter().any(|difference| explanation(difference).is_none()) {
        index -= 1;
        let shorter = shortest.without(index);
        let attempt = format!("{run}-{index}");
        let found = clients.run(&shorter.case(definition, &attempt)).await.differences();
        if found.iter().any(|difference| explanation(difference).is_none()) {
            (shortest, differences) = (shorter, found);
        }
    }
    (shortest, differences)
}

fn transcripts(results: &[Ran<'_>]) -> String {
    let mut blocks: Vec<String> = results.iter().map(transcript).collect();
    blocks.sort();
    blocks.join("\n")
}

fn transcript(ran: &Ran<'_>) -> String {
    let steps = ran.case.steps.iter().zip(&ran.real.as_ref().unwrap_or(&ran.embedded).answers);
    let lines: Vec<String> = steps.map(|(step, answer)| format!("{}\n    {answer}\n", step.line)).collect();
    format!("=== {}\n{}", ran.case.title(), lines.join(""))
}
