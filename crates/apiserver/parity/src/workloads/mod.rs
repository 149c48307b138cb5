//! Scripts of workloads → what their controllers make of them on both servers, compared step by step.
//!
//! Nothing runs pods: the scripts say what becomes of them. Both servers go through a script side by side; what is
//! shown is compared once it is alike, and is a difference if it is not when both have stood still.

mod masked;
mod script;
mod side;

use std::time::{Duration, Instant};

use futures::StreamExt as _;
use serde_json::Value;

use crate::compare::compare;
use crate::names::run_name;
use crate::options::Options;
use crate::peers::Peers;
use crate::report::RunResult;
use crate::run::Transcript;
use crate::sound::failure;
use script::{Script, ScriptStep, Word};
use side::ScriptSide;

/// How long an effect may take.
const WITHIN: Duration = Duration::from_secs(90);
/// How long what is shown must have stood still on both to be a difference: longer than controllers rest before they
/// look again. The one of namespaces does so for half of the time that it thinks finalizers need (15 s) or pods have
/// to stop.
const STILL_FOR: Duration = Duration::from_secs(30);
const POLL: Duration = Duration::from_millis(100);
/// Scripts that run at the same time.
const AT_ONCE: usize = 20;

/// Runs all scripts on both servers, prints the summary, and tells whether there was no unexplained difference.
pub(crate) async fn run(peers: &Peers, options: &Options) -> bool {
    let scripts: Vec<Script> = script::all().expect("tests parse every case file");
    let run = run_name();
    for server in peers.real().into_iter().chain([peers.embedded()]) {
        side::make_nodes(server).await;
    }
    let selected = scripts.iter().enumerate().filter(|(_, script)| options.selects(&title(script)));
    let runs = selected.map(|(index, script)| {
        let namespace = format!("workloads-{index}-{run}");
        async move { (script, both(peers, &namespace, script).await) }
    });
    let results: Vec<_> = futures::stream::iter(runs).buffer_unordered(AT_ONCE).collect().await;
    let mut outcome = RunResult::default();
    for (script, (real, embedded)) in results {
        let count = outcome.ran.entry(script.group.to_owned()).or_default();
        *count = (count.0 + usize::from(peers.real().is_some()), count.1 + 1);
        let lines: Vec<String> = script.steps.iter().map(|step| step.line.clone()).collect();
        let title = title(script);
        let mut found = compare(&title, &lines, &real.answers, &embedded.answers);
        for (index, (step, came_to)) in script.steps.iter().zip(&real.answers).enumerate() {
            found.extend(side::wrong(step, came_to).map(|wrong| failure(&title, index, &step.line, wrong)));
            outcome.took(real.took[index], &title, &step.line);
        }
        outcome.add(&title, found);
    }
    outcome.finish(options, "workloads")
}

fn title(script: &Script) -> String {
    format!("{}: {}", script.group, script.name)
}

/// What every step came to on both servers; without a real one, on the other twice: effects must still come.
async fn both(peers: &Peers, namespace: &str, script: &Script) -> (Transcript, Transcript) {
    let embedded = ScriptSide::new(peers.embedded(), namespace).await;
    let real = match peers.real() {
        Some(server) => Some(ScriptSide::new(server, namespace).await),
        None => None,
    };
    let (mut first, mut second) = (Transcript::default(), Transcript::default());
    for step in &script.steps {
        let since = Instant::now();
        let (expected, found) = if let Some(real) = &real {
            on_both(real, &embedded, step).await
        } else {
            let found = embedded.step(step).await;
            (found.clone(), found)
        };
        first.add(expected, since);
        second.add(found, since);
    }
    for side in real.iter().chain([&embedded]) {
        side.end().await;
    }
    (first, second)
}

/// Both do a step; what is shown is looked at until it is alike, or until neither server moves any more.
async fn on_both(real: &ScriptSide, embedded: &ScriptSide, step: &ScriptStep) -> (Value, Value) {
    let deadline = Instant::now() + WITHIN;
    let mut seen = futures::join!(real.step(step), embedded.step(step));
    let mut since = Instant::now();
    while matches!(step.word, Word::Show(_)) && seen.0 != seen.1 && since.elapsed() < STILL_FOR {
        tokio::time::sleep(POLL).await;
        let now = futures::join!(real.step(step), embedded.step(step));
        if now != seen {
            (seen, since) = (now, Instant::now());
        }
        if Instant::now() > deadline {
            break;
        }
    }
    seen
}
