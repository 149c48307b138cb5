//! `kill -9` of `portolan up` while fifty pods run, or are being started: after the next start every pod runs once, no process
//! is left of those before, and what was in claims is there.
//!
//! `PORTOLAN_POD_KILLS` sets the number of kills (2 where unset).

use std::collections::BTreeSet;
use std::io::Write as _;

use serde_json::{Value, json};

use crate::stage::{Stage, deployment, is_ready, name, process_counts, processes, script, workload};
use crate::support::process::eventually;

const PODS: usize = 50;
const WITH_CLAIMS: usize = 5;

fn objects() -> Vec<Value> {
    let mut set = workload("StatefulSet", "db", WITH_CLAIMS, &script("echo run >> /data/runs; exec sleep infinity"));
    set["spec"]["podManagementPolicy"] = json!("Parallel");
    set["spec"]["template"]["spec"]["containers"][0]["volumeMounts"] = json!([{"name": "data", "mountPath": "/data"}]);
    let spec = json!({"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Mi"}}});
    set["spec"]["volumeClaimTemplates"] = json!([{"metadata": {"name": "data"}, "spec": spec}]);
    // Processes that a process has started must end with it, also where they have left its group.
    let family = script("setsid sleep infinity & sleep infinity & exec sleep infinity");
    vec![set, deployment("web", PODS - WITH_CLAIMS, &family)]
}

/// Lines in each claim's file.
fn runs(stage: &Stage) -> Vec<usize> {
    let file = |number| stage.data().join(format!("runner/claims/default/data-db-{number}/runs"));
    (0..WITH_CLAIMS).map(|number| std::fs::read_to_string(file(number)).unwrap_or_default().lines().count()).collect()
}

/// Every pod is ready with its processes, and no process of any other pod lives.
fn assert_each_runs_once(stage: &Stage, round: usize) -> Vec<Value> {
    let pods = stage.pods_ready(PODS);
    let wanted = |pod: &Value| if name(pod).starts_with("web") { 3 } else { 1 };
    let wanted: Vec<usize> = pods.iter().map(wanted).collect();
    eventually(&format!("round {round}: every pod runs once"), || (process_counts(&pods) == wanted).then_some(()));
    pods
}

fn uids(pods: &[Value]) -> BTreeSet<String> {
    pods.iter().map(|pod| pod["metadata"]["uid"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn killed_while_fifty_pods_run_each_runs_once_again_and_claims_keep_what_is_in_them() {
    let kills: usize = std::env::var("PORTOLAN_POD_KILLS").ok().and_then(|text| text.parse().ok()).unwrap_or(2);
    let mut stage = Stage::start(&[]);
    stage.apply(&objects());
    let pods = assert_each_runs_once(&stage, 0);
    let mut known: Vec<usize> = runs(&stage);
    assert_eq!(known, [1; WITH_CLAIMS]);

    for round in 1..=kills {
        let before: BTreeSet<u32> =
            processes().into_iter().filter(|(uid, _)| uids(&pods).contains(uid)).flat_map(|(_, all)| all).collect();
        assert!(before.len() >= PODS, "{} processes run", before.len());
        stage.process.kill();
        stage.again(&[]);
        if round.is_multiple_of(2) {
            // In the midst of starting them again.
            eventually("half of the pods are ready", || {
                (stage.list("pods").iter().filter(|pod| is_ready(pod)).count() >= PODS / 2).then_some(())
            });
            stage.process.kill();
            stage.again(&[]);
        }

        let again = assert_each_runs_once(&stage, round);

        assert_eq!(uids(&again), uids(&pods), "round {round}: the pods are the same");
        let after: BTreeSet<u32> = processes().into_values().flatten().collect();
        let left: Vec<&u32> = before.intersection(&after).collect();
        assert!(left.is_empty(), "round {round}: processes of before live: {left:?}");
        let now = runs(&stage);
        assert!(now.iter().zip(&known).all(|(now, known)| now > known), "round {round}: {known:?} became {now:?}");
        known = now;
    }
    assert_eq!(stage.process.terminate(), Some(0));
    assert!(process_counts(&pods).iter().all(|count| *count == 0));
    // Written to the handle itself: what `println!` says is kept back when a test passes.
    let _ =
        writeln!(std::io::stderr(), "kills: {kills} of portolan up with {PODS} pods: each runs once, claims are kept");
}
