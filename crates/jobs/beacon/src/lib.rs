//! The smallest job: one kind, one right, one metric, one reason, what it tells of a hostname, and a task that lights a lamp while the job runs.
//!
//! It is what a new job begins with, and no binary has it: tests put its one line into the list of jobs, to see that everything
//! that reads the list knows the job from that line alone.

use kube::Api;
use kube::api::{ApiResource, DynamicObject, ListParams};
use kube::core::GroupVersionKind;
use portolan_core::job::{JobRole, JobSheet, LeaseName};
use portolan_core::metric::{Alert, MetricGroup};
use portolan_core::reasons::Reason;
use portolan_core::rights::{LOOK, RoleRule};
use portolan_core::{Metric, NameStory, ObjectHealth, Problem, StoryLine};
use portolan_engine::{
    Job, JobDefinition, JobStart, NameAnswer, NameQuestion, NameTeller, Task, in_time, key_of, kubernetes_problem,
};
use prometheus_client::metrics::gauge::Gauge;
use serde_json::{Value, json};

/// The job.
pub static JOB: JobDefinition =
    JobDefinition { lease: |_| Some(LEASE), names: Some(NAMES), ..JobDefinition::of(SHEET, start) };

const NAME: &str = "beacon";
const GROUP: &str = "beacon.example.com";
const LEASE: &str = "beacon-keeper";

const SHEET: JobSheet = JobSheet {
    help: "Lights on a map, which do nothing",
    about: "lights on a map",
    definitions: || vec![definition()],
    roles: &[JobRole::whole(NAME, rules)],
    leases: &[LeaseName::Leader(LEASE)],
    metrics: &[MetricGroup { title: "Lights", about: "Of the job `beacon`.", metrics: &[LIT] }],
    reasons: &[&[Reason { word: "BeaconDark", when: " Not ready: nobody lit the lamp." }]],
    ..JobSheet::named(NAME, GROUP)
};

const LIT: Metric = Metric::gauge("portolan_beacon_lit", &[], "Lamps that are lit")
    .panel("Lamps that are lit", "short", "sum(portolan_beacon_lit)")
    .alert(Alert {
        name: "PortolanBeaconDark",
        lasts: "5m",
        when: "sum(portolan_beacon_lit) < 1",
        says: "No lamp is lit: look whether the job runs",
    });

fn rules() -> Vec<RoleRule> {
    vec![
        RoleRule::cluster(GROUP, &["beacons"], LOOK, "the lamps on the map"),
        RoleRule::own("coordination.k8s.io", &["leases"], &["create"], "one process leads"),
        RoleRule::own("coordination.k8s.io", &["leases"], &["get", "list", "watch", "update"], "one process leads")
            .only(&[LEASE]),
    ]
}

fn definition() -> Value {
    let schema = json!({"openAPIV3Schema": {"type": "object", "description": "A light on a map.", "properties": {
        "spec": {"type": "object", "properties": {
            "colour": {"type": "string", "description": "Its colour."},
            "hostname": {"type": "string", "description": "The name that it shines for."},
        }},
        "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
    }}});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("beacons.{GROUP}")},
        "spec": {
            "group": GROUP, "scope": "Namespaced",
            "names": {"kind": "Beacon", "plural": "beacons", "singular": "beacon", "listKind": "BeaconList"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": schema, "subresources": {"status": {}}}],
        },
    })
}

const NAMES: NameTeller = NameTeller {
    asker: "beacon",
    askers: "beacons",
    hint: "give a Beacon a spec.hostname",
    tell: |question| Box::pin(tell(question)),
};

async fn tell(question: NameQuestion<'_>) -> Result<NameAnswer, Problem> {
    let kind = ApiResource::from_gvk(&GroupVersionKind::gvk(GROUP, "v1", "Beacon"));
    let api: Api<DynamicObject> = Api::all_with(question.client.clone(), &kind);
    let beacons = match in_time(api.list(&ListParams::default())).await {
        Ok(beacons) => beacons.items,
        Err(kube::Error::Api(refusal)) if refusal.code == 404 => Vec::new(),
        Err(error) => return Err(kubernetes_problem(format_args!("listing beacons"), &error)),
    };
    let name = |beacon: &DynamicObject| beacon.data["spec"]["hostname"].as_str().map(str::to_owned);
    let asks = |beacon: &&DynamicObject| name(beacon).as_deref() == Some(question.hostname);
    Ok(NameAnswer {
        stories: beacons.iter().filter(asks).map(story).collect(),
        known: beacons.iter().filter_map(name).collect(),
    })
}

fn story(beacon: &DynamicObject) -> NameStory {
    let colour = beacon.data["spec"]["colour"].as_str().unwrap_or("none");
    NameStory {
        asker: format!("Beacon {}", key_of(&beacon.metadata)),
        health: ObjectHealth::Pending,
        reason: "Unlit".to_owned(),
        message: "nobody lights beacons".to_owned(),
        lines: vec![StoryLine::new("colour", colour)],
        facts: json!({"beacon": key_of(&beacon.metadata).to_string(), "colour": colour}),
    }
}

fn start(start: &JobStart<'_>) -> Job {
    let lit: Gauge = Gauge::default();
    start.context.metrics.register(|registry| LIT.register(registry, lit.clone()));
    Job::new(NAME, move |shutdown| {
        let (lit, shutdown) = (lit.clone(), shutdown.clone());
        let burn = async move {
            lit.set(1);
            shutdown.cancelled().await;
            lit.set(0);
        };
        vec![Task::new("lamp", || 0, burn)]
    })
}
