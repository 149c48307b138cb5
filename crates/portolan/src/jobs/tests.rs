use std::sync::Arc;

use bytes::Bytes;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use portolan_apiserver::{ApiServer, Config};
use portolan_beacon::JOB as BEACON;
use portolan_cloudflare_api::{Transport, TransportError};
use portolan_core::OwnerId;
use portolan_install::{Release, Values, objects};
use serde_json::{Value, json};

use super::*;
use crate::colour::Colours;
use crate::manifest::Manifest;
use crate::operator::{Operator, OperatorOptions};
use crate::server::Server;
use crate::{definitions, status, why};

/// The list with one line more.
fn with_beacon() -> Vec<&'static JobDefinition> {
    ALL.iter().copied().chain([&BEACON]).collect()
}

fn installed(values: &[&str]) -> Vec<Value> {
    let sheets = portolan_jobs::sheets(&with_beacon());
    let release = Release { name: "edge".into(), namespace: "ops".into(), version: "1.0.0".into() };
    objects(&Values::parse(&sheets, &[], values).unwrap(), &release, &sheets).unwrap()
}

fn one<'a>(objects: &'a [Value], kind: &str) -> &'a Value {
    objects.iter().find(|object| object["kind"] == kind).unwrap_or_else(|| panic!("no {kind}"))
}

async fn server() -> (ApiServer, Server) {
    let api = ApiServer::open(Config::default()).await.unwrap();
    let server = Server::of_client(kube::Client::new(api.service(), "default"), "in process");
    (api, server)
}

async fn apply(server: &Server, objects: Vec<Value>) {
    let manifests: Vec<Manifest> = objects.into_iter().map(|object| Manifest::made("a test", object)).collect();
    definitions::install_all(server, &manifests).await.unwrap();
}

#[test]
fn a_third_job_is_installed_with_its_definitions_and_no_rights_but_its_own() {
    let objects = installed(&["controllers={beacon}"]);

    assert_eq!(one(&objects, "CustomResourceDefinition")["metadata"]["name"], "beacons.beacon.example.com");
    let container = &one(&objects, "Deployment")["spec"]["template"]["spec"]["containers"][0];
    assert_eq!(container["args"], json!(["run", "--controllers=beacon"]));
    let rule =
        json!({"apiGroups": ["beacon.example.com"], "resources": ["beacons"], "verbs": ["get", "list", "watch"]});
    assert_eq!(one(&objects, "ClusterRole")["rules"], json!([rule]));
    assert_eq!(one(&objects, "Role")["rules"][1]["resourceNames"], json!(["beacon-keeper"]));
}

#[test]
fn jobs_beside_each_other_have_the_rights_of_all_of_them() {
    let objects = installed(&["controllers={beacon,cloudflare,zerotrust}"]);

    let rules = one(&objects, "ClusterRole")["rules"].as_array().unwrap();
    let has = |group: &str| rules.iter().any(|rule| rule["apiGroups"] == json!([group]));
    assert!(ALL.iter().all(|job| has(job.sheet.group)) && has(BEACON.sheet.group));
}

#[test]
fn a_job_that_nobody_knows_is_refused_with_those_that_there_are() {
    let sheets = portolan_jobs::sheets(&with_beacon());
    let refused = Values::parse(&sheets, &[], &["controllers={lighthouse}"]).unwrap_err().to_string();

    assert!(refused.ends_with("must be one of zerotrust, cloudflare, beacon"), "{refused}");
}

#[tokio::test]
async fn status_shows_the_objects_of_a_third_job_once_its_kinds_are_there() {
    let (_api, server) = server().await;
    let before = status::read(&server, &with_beacon(), "ops").await.unwrap();
    assert!(!before.installed && before.jobs.is_empty());

    apply(&server, (BEACON.sheet.definitions)()).await;
    let lamp = |name: &str| {
        json!({"apiVersion": "beacon.example.com/v1", "kind": "Beacon",
            "metadata": {"name": name, "namespace": "default"}, "spec": {"colour": "red"}})
    };
    apply(&server, vec![lamp("north"), lamp("south")]).await;
    let tree = status::read(&server, &with_beacon(), "ops").await.unwrap();

    let text = status::render(&tree, Colours::Off);
    assert_eq!((tree.installed, tree.summary.objects), (true, 2));
    assert!(text.contains("job beacon (2 objects)\n├─ Beacon default/north: Pending"), "{text}");
    assert!(text.contains("└─ Beacon default/south: Pending, no controller has looked at it yet"), "{text}");
    assert!(serde_json::to_string(&tree).unwrap().contains(r#""job":"beacon""#));
}

#[tokio::test]
async fn why_tells_what_a_third_job_knows_of_a_name_and_who_knows_names_where_nobody_asks_for_it() {
    let (_api, server) = server().await;
    let ask = async |name: &str| why::tell(&server, &with_beacon(), "ops", name, None).await;
    let nobody = ask("north.example.com").await.err().unwrap().to_string();
    assert!(nobody.contains("no route or beacon asks for north.example.com"), "{nobody}");
    assert!(nobody.contains("annotate an HTTPRoute") && nobody.contains("give a Beacon a spec.hostname"), "{nobody}");

    apply(&server, (BEACON.sheet.definitions)()).await;
    let spec = json!({"colour": "red", "hostname": "north.example.com"});
    let lamp = json!({"apiVersion": "beacon.example.com/v1", "kind": "Beacon",
        "metadata": {"name": "north", "namespace": "default"}, "spec": spec});
    apply(&server, vec![lamp]).await;
    let told = ask("North.example.com.").await.unwrap();

    let text = why::render(&told, Colours::Off);
    assert!(
        text.starts_with("north.example.com\n\nBeacon default/north: Pending, Unlit: nobody lights beacons"),
        "{text}"
    );
    assert!(text.ends_with("\n  colour    red\n"), "{text}");
    let beacons = json!([{"beacon": "default/north", "colour": "red"}]);
    assert_eq!(told.to_json(), json!({"hostname": "north.example.com", "beacons": beacons}));
    let other = ask("south.example.com").await.err().unwrap().to_string();
    assert!(other.contains("beacons ask for north.example.com"), "{other}");
}

/// No job of these tests asks Cloudflare for anything.
struct Nowhere;

impl Transport for Nowhere {
    fn send(&self, _: http::Request<Bytes>) -> BoxFuture<'_, Result<http::Response<Bytes>, TransportError>> {
        std::future::pending().boxed()
    }
}

#[tokio::test]
async fn a_third_job_runs_under_its_own_lease_and_is_measured() {
    let (_api, server) = server().await;
    server.make_namespace("ops").await.unwrap();
    let mut options = OperatorOptions::new(OwnerId::derive("test"), "http://nowhere.invalid");
    options.jobs = vec![&BEACON];
    options.namespace = "ops".to_owned();
    options.candidate = Some("me".to_owned());
    let operator = Operator::start_with(server.client().clone(), options, Arc::new(Nowhere));

    while !operator.metrics().render().contains("portolan_beacon_lit 1") {
        tokio::task::yield_now().await;
    }

    assert!(operator.metrics().render().contains(r#"portolan_leader{controller="beacon"} 1"#));
    assert!(operator.job("beacon").is_some_and(|job| job.busy() == 0));
    let lease = server.find("/apis/coordination.k8s.io/v1/namespaces/ops/leases/beacon-keeper").await.unwrap();
    assert_eq!(lease.unwrap()["spec"]["holderIdentity"], "me");
    operator.stop().await;
}

#[test]
fn every_job_is_found_by_its_name_on_the_command_line() {
    for job in ALL {
        assert_eq!(named(job.sheet.name).map(|found| found.sheet.group), Some(job.sheet.group));
    }
    assert!(named("beacon").is_none());
}
