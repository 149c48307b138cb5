//! Everything that is compared, side by side: most of it waits.

use std::time::{Instant, SystemTime, UNIX_EPOCH};

use portolan_apiserver::Workloads;

use crate::names::rfc3339;
use crate::options::{Options, commit};
use crate::passes::Passes;
use crate::peers::{Peers, PeersError};
use crate::{kubectl, rbac, suite, workloads};

/// What is compared, by name.
const PARTS: [&str; 4] = ["cases", "kubectl", "rbac", "workloads"];

/// Runs the parts that the arguments of the test name, or all; prints the summaries, and tells whether nothing
/// differed.
///
/// The API servers of the controllers are others: what controllers write into every namespace is no answer to a case.
pub async fn run(arguments: &[String]) -> Result<bool, PeersError> {
    let began = Instant::now();
    let chosen = chosen(arguments);
    let has = |part: &str| chosen.contains(&part);
    let passes = Passes::of_tree().inspect_err(|error| println!("parity: sources cannot be read: {error}")).ok();
    let options = Options::from_environment(passes.as_ref().and_then(Passes::recorded).as_deref());
    if has("cases") || has("rbac") {
        println!("parity random part: {}", options.told);
    }
    let answering = ["cases", "kubectl", "rbac"].iter().any(|part| has(part));
    let (plain, controlled) =
        futures::join!(started(answering, Workloads::Off), started(has("workloads"), Workloads::On));
    let (plain, controlled) = (plain?, controlled?);
    let (plain, controlled) = (plain.as_ref(), controlled.as_ref());
    // The embedded server alone is still asked to do what the cases say; these two only compare.
    let both = plain.filter(|peers| peers.real().is_some());
    let outcomes = futures::join!(
        part("cases", plain.filter(|_| has("cases")).map(|peers| suite::run(peers, &options))),
        part("kubectl", both.filter(|_| has("kubectl")).map(|peers| kubectl::run(peers, &options))),
        part("rbac", both.filter(|_| has("rbac")).map(|peers| rbac::run(peers, &options))),
        part("workloads", controlled.map(|peers| workloads::run(peers, &options))),
    );
    let alike: Vec<bool> = <[Option<bool>; 4]>::from(outcomes).into_iter().flatten().collect();
    let failed = alike.iter().filter(|alike| !**alike).count();
    let ignored = chosen.len() - alike.len();
    println!(
        "test result: {}. {} passed; {failed} failed; {ignored} ignored; 0 measured; {} filtered out; \
         finished in {:.2}s",
        if failed == 0 { "ok" } else { "FAILED" },
        alike.len() - failed,
        PARTS.len() - chosen.len(),
        began.elapsed().as_secs_f64(),
    );
    let whole = alike.len() == PARTS.len() && options.full;
    if let (0, true, Some(passes)) = (failed, whole && compared(plain) && compared(controlled), passes) {
        record(&passes, &options);
    }
    Ok(failed == 0)
}

/// The parts whose names contain an argument; flags of the harness are for others.
fn chosen(arguments: &[String]) -> Vec<&'static str> {
    let mut filters = Vec::new();
    let mut arguments = arguments.iter();
    while let Some(argument) = arguments.next() {
        if argument == "--test-threads" {
            arguments.next();
        } else if !argument.starts_with('-') {
            filters.push(argument);
        }
    }
    PARTS.into_iter().filter(|part| filters.is_empty() || filters.iter().any(|filter| part.contains(*filter))).collect()
}

async fn started(wanted: bool, workloads: Workloads) -> Result<Option<Peers>, PeersError> {
    if wanted { Peers::start_with(workloads).await.map(Some) } else { Ok(None) }
}

/// Whether both servers were started here.
fn compared(peers: Option<&Peers>) -> bool {
    peers.is_some_and(|peers| peers.real().is_some() && !peers.borrowed())
}

/// Runs a part that was chosen and says in the harness's words what came of it.
async fn part(name: &str, run: Option<impl Future<Output = bool>>) -> Option<bool> {
    let alike = run?.await;
    println!("test {name} ... {}", if alike { "ok" } else { "FAILED" });
    Some(alike)
}

fn record(passes: &Passes, options: &Options) {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let (commit, histories, sets) = (commit(), options.histories.len(), options.role_sets.len());
    let at = commit.get(..12).unwrap_or("no commit");
    let text = format!("the pass of {} at {at} with {histories} histories and {sets} role sets", rfc3339(now));
    match passes.record(&text) {
        Ok(()) => println!("parity: recorded: {text}"),
        Err(error) => println!("parity: the pass could not be recorded: {error}"),
    }
}

#[cfg(test)]
mod tests {
    use super::{PARTS, chosen};

    #[test]
    fn arguments_choose_parts_and_flags_do_not() {
        let of = |arguments: &[&str]| chosen(&arguments.iter().map(|&word| word.to_owned()).collect::<Vec<_>>());

        assert_eq!(of(&[]), PARTS);
        assert_eq!(of(&["--test-threads=4", "--nocapture"]), PARTS);
        assert_eq!(of(&["--test-threads", "4"]), PARTS);
        assert_eq!(of(&["rbac", "kube"]), ["kubectl", "rbac"]);
        assert!(of(&["nonsense"]).is_empty());
    }
}
