//! Each check made to fail alone, from facts in which everything is in order.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::SignedDuration;
use portolan_cloudflare_api::Budget;
use portolan_core::{Hostname, ZoneName};
use portolan_zerotrust::model::zone::Zone;

use super::judge;
use crate::doctor::check;
use crate::doctor::definition::{Definition, DefinitionState};
use crate::doctor::facts::{
    Account, Api, AskedOf, Certificate, Cluster, Deployment, Edits, Facts, Inside, Lease, NameFacts, Probed, Rights,
    Secret, TokenFacts, TokenNeeds, TunnelFacts, Whose,
};
use crate::doctor::finding::CheckResult;
use crate::doctor::permission::{PERMISSIONS, ProbeAnswer};
use crate::pods_page::{ProgramFacts, RunnerFacts};

const NOW: &str = "2026-11-16T12:00:00Z";

fn healthy() -> Facts {
    Facts { cluster: Some(cluster()), runner: Some(runner()), accounts: vec![account()] }
}

fn runner() -> RunnerFacts {
    let tools = ProgramFacts { name: "tools".into(), images: Vec::new(), file: Some("/bin/sh".into()) };
    RunnerFacts {
        pods: "run".into(),
        user: 0,
        folder: "/data/runner".into(),
        closed: None,
        programs: vec![tools],
        ..RunnerFacts::default()
    }
}

fn cluster() -> Cluster {
    let lease = Lease {
        name: "cloudflare-zero-trust-operator".into(),
        holder: Some("pod-1".into()),
        since: "2026-11-16T11:00:00Z".parse().ok(),
        renewed: "2026-11-16T11:59:58Z".parse().ok(),
        duration: Duration::from_secs(15),
    };
    let deployment =
        Deployment { name: "ops/op".into(), whose: Whose::Ours, wanted: 1, ready: 1, image: "portolan:1".into() };
    Cluster {
        place: "https://127.0.0.1:6443".into(),
        now: NOW.parse().unwrap(),
        version: Ok(("v1.36.3".into(), Duration::from_millis(3))),
        inside: Some(Inside {
            definitions: vec![Definition { name: "cloudflaretasks".into(), state: DefinitionState::Current }],
            routes_served: Ok(true),
            rights: Rights { role: "all", whose: "whoever asks".into(), asked: 9, missing: Ok(Vec::new()) },
            operator_namespace: "ops".into(),
            leases: Ok(vec![lease]),
            deployments: Ok(vec![deployment]),
            tenants: Ok(1),
            stray_routes: Vec::new(),
            enabled_routes: 1,
        }),
    }
}

fn account() -> Account {
    let zone = Zone {
        id: "z1".into(),
        name: ZoneName::parse("example.com").unwrap(),
        account_id: Some("a1".into()),
        active: true,
    };
    let granted = |permission| Probed {
        permission,
        zone: Some("example.com".into()),
        read: Some(ProbeAnswer::Granted),
        write: Some(ProbeAnswer::Granted),
        edits: Edits::Yes,
    };
    let universal = Certificate {
        kind: "universal".into(),
        status: "active".into(),
        hosts: vec!["example.com".into(), "*.example.com".into()],
    };
    let tunnel = TunnelFacts {
        name: "prod".into(),
        config_src: Some("cloudflare".into()),
        status: "healthy".into(),
        connections: 4,
        deleted: false,
    };
    let api = Api {
        token: TokenFacts::Known { status: "active".into(), expires: None },
        latency: Duration::from_millis(80),
        probes: PERMISSIONS.iter().map(granted).collect(),
        zones: Ok(vec![zone]),
        tunnels: vec![("t1".into(), Ok(Some(tunnel)))],
        names: vec![NameFacts { hostname: Hostname::parse("app.example.com").unwrap(), at_the_edge: true }],
        certificates: BTreeMap::from([("z1".to_owned(), Ok(vec![universal]))]),
        budget: Budget { limit: 1200, left: 1100, resets_in: Duration::from_secs(200) },
        ahead: Some(SignedDuration::ZERO),
        now: NOW.parse().unwrap(),
    };
    Account {
        subject: "tenant default/prod".into(),
        id: "a1".into(),
        zone_id: None,
        needs: TokenNeeds { groups: AskedOf::Yes, redirects: AskedOf::Yes },
        secret: Secret::Found("Secret default/t, key token".into()),
        api: Some(api),
    }
}

fn inside(facts: &mut Facts) -> &mut Inside {
    facts.cluster.as_mut().unwrap().inside.as_mut().unwrap()
}

fn api(facts: &mut Facts) -> &mut Api {
    facts.accounts[0].api.as_mut().unwrap()
}

fn lease(facts: &mut Facts) -> &mut Lease {
    &mut inside(facts).leases.as_mut().unwrap()[0]
}

fn older(wanted: i64) -> Deployment {
    let image = "cloudflare-zero-trust-operator:0.1.40".to_owned();
    Deployment { name: "old/op".into(), whose: Whose::Older, wanted, ready: wanted, image }
}

/// What happens, which check it is for, and how that ends.
type Case = (&'static str, CheckResult, fn(&mut Facts));

const CASES: &[Case] = &[
    ("cluster", CheckResult::Warning, |facts| {
        facts.cluster.as_mut().unwrap().version = Ok(("v1".into(), Duration::from_secs(3)));
    }),
    ("definitions", CheckResult::Failed, |facts| inside(facts).definitions[0].state = DefinitionState::Missing),
    ("definitions", CheckResult::Failed, |facts| {
        inside(facts).definitions[0].state = DefinitionState::Differs("spec.versions".into());
    }),
    ("definitions", CheckResult::Failed, |facts| {
        inside(facts).definitions[0].state = DefinitionState::NotEstablished("names are taken".into());
    }),
    ("definitions", CheckResult::NotKnown, |facts| {
        inside(facts).definitions[0].state = DefinitionState::NotKnown("forbidden".into());
    }),
    ("pods", CheckResult::Warning, |facts| facts.runner.as_mut().unwrap().user = 1000),
    ("pods", CheckResult::Warning, |facts| facts.runner.as_mut().unwrap().closed = Some("/root".into())),
    ("programs", CheckResult::Failed, |facts| facts.runner.as_mut().unwrap().programs[0].file = None),
    ("gateway-api", CheckResult::Failed, |facts| inside(facts).routes_served = Ok(false)),
    ("rbac", CheckResult::Failed, |facts| {
        inside(facts).rights.missing = Ok(vec!["patch httproutes everywhere".into()]);
    }),
    ("rbac", CheckResult::NotKnown, |facts| inside(facts).rights.missing = Err("no reviews".into())),
    ("leader", CheckResult::Warning, |facts| lease(facts).holder = None),
    ("leader", CheckResult::Warning, |facts| lease(facts).renewed = "2026-11-16T11:59:40Z".parse().ok()),
    ("leader", CheckResult::NotKnown, |facts| inside(facts).leases = Ok(Vec::new())),
    ("deployments", CheckResult::Failed, |facts| inside(facts).deployments.as_mut().unwrap()[0].ready = 0),
    ("deployments", CheckResult::Warning, |facts| inside(facts).deployments.as_mut().unwrap()[0].wanted = 0),
    ("deployments", CheckResult::NotKnown, |facts| inside(facts).deployments = Ok(Vec::new())),
    ("older-operator", CheckResult::Failed, |facts| inside(facts).deployments.as_mut().unwrap().push(older(1))),
    ("tenants", CheckResult::Warning, |facts| inside(facts).tenants = Ok(0)),
    ("tenants", CheckResult::NotKnown, |facts| inside(facts).tenants = Err("forbidden".into())),
    ("routes", CheckResult::Failed, |facts| {
        inside(facts).stray_routes = vec![("a/b".into(), "TenantNotFound: x".into())];
    }),
    ("secret", CheckResult::Failed, |facts| {
        facts.accounts[0].secret = Secret::Missing("no Secret default/t".into());
        facts.accounts[0].api = None;
    }),
    ("secret", CheckResult::NotKnown, |facts| {
        facts.accounts[0].secret = Secret::Unreadable("forbidden".into());
        facts.accounts[0].api = None;
    }),
    ("cloudflare", CheckResult::Failed, |facts| api(facts).token = TokenFacts::Unreached("connection refused".into())),
    ("token", CheckResult::Failed, |facts| api(facts).token = TokenFacts::Refused("Invalid API Token".into())),
    ("token", CheckResult::Failed, |facts| {
        api(facts).token = TokenFacts::Known { status: "disabled".into(), expires: None };
    }),
    ("token", CheckResult::Warning, |facts| {
        api(facts).token = TokenFacts::Known { status: "active".into(), expires: "2026-11-29T12:00:00Z".parse().ok() };
    }),
    ("zero-trust", CheckResult::Failed, |facts| {
        for probed in &mut api(facts).probes[1..=3] {
            (probed.read, probed.write) = (Some(ProbeAnswer::NotEnabled), None);
        }
    }),
    ("tunnel", CheckResult::Failed, |facts| api(facts).tunnels[0].1 = Ok(None)),
    ("tunnel", CheckResult::Failed, |facts| {
        api(facts).tunnels[0].1.as_mut().unwrap().as_mut().unwrap().config_src = Some("local".into());
    }),
    ("tunnel", CheckResult::NotKnown, |facts| api(facts).tunnels[0].1 = Err("503".into())),
    ("connections", CheckResult::Warning, |facts| {
        api(facts).tunnels[0].1.as_mut().unwrap().as_mut().unwrap().status = "down".into();
    }),
    ("budget", CheckResult::Warning, |facts| api(facts).budget.left = 299),
    ("budget", CheckResult::Failed, |facts| api(facts).budget.left = 120),
    ("clock", CheckResult::Warning, |facts| api(facts).ahead = Some(SignedDuration::from_secs(-31))),
    ("clock", CheckResult::NotKnown, |facts| api(facts).ahead = None),
    ("name-zone", CheckResult::Failed, |facts| {
        api(facts).names[0].hostname = Hostname::parse("app.example.net").unwrap();
    }),
    ("name-zone", CheckResult::Failed, |facts| facts.accounts[0].zone_id = Some("z2".into())),
    ("name-zone", CheckResult::Warning, |facts| api(facts).zones.as_mut().unwrap()[0].active = false),
    ("name-zone", CheckResult::NotKnown, |facts| api(facts).zones = Err("503".into())),
    ("certificate", CheckResult::Warning, |facts| {
        api(facts).names[0].hostname = Hostname::parse("a.b.example.com").unwrap();
    }),
    ("certificate", CheckResult::Warning, |facts| {
        api(facts).certificates.get_mut("z1").unwrap().as_mut().unwrap()[0].status = "pending_validation".into();
    }),
    ("certificate", CheckResult::Warning, |facts| {
        api(facts).certificates.insert("z1".into(), Ok(Vec::new()));
    }),
    ("permission-dns", CheckResult::Failed, |facts| {
        api(facts).probes[5].write = Some(ProbeAnswer::Refused("Authentication error".into()));
    }),
    ("permission-dns", CheckResult::NotKnown, |facts| api(facts).probes[5].read = None),
    ("permission-dns", CheckResult::NotKnown, |facts| api(facts).probes[5].write = None),
    ("permission-access-groups", CheckResult::Warning, |facts| {
        facts.accounts[0].needs.groups = AskedOf::No;
        api(facts).probes[3].read = Some(ProbeAnswer::Refused("Authentication error".into()));
    }),
    ("permission-redirects", CheckResult::Warning, |facts| {
        facts.accounts[0].needs.redirects = AskedOf::No;
        api(facts).probes[6].read = Some(ProbeAnswer::Refused("Authentication error".into()));
    }),
];

#[test]
fn nothing_is_amiss_where_everything_is_in_order() {
    let report = judge(&healthy());

    let seen: Vec<&str> = report.0.iter().map(|finding| finding.check.id).collect();
    assert!(report.0.iter().all(|finding| finding.verdict == CheckResult::Ok), "{report:#?}");
    for check in check::all() {
        assert!(seen.contains(&check.id), "{} was not judged", check.id);
    }
}

#[test]
fn each_check_fails_alone() {
    for (index, (check, verdict, happens)) in CASES.iter().enumerate() {
        let mut facts = healthy();
        happens(&mut facts);

        let report = judge(&facts);

        let amiss: Vec<_> = report.0.iter().filter(|finding| finding.verdict != CheckResult::Ok).collect();
        assert_eq!(amiss.len(), 1, "case {index}: {amiss:#?}");
        assert_eq!((amiss[0].check.id, amiss[0].verdict), (*check, *verdict), "case {index}");
        let says_what_to_do = amiss[0].next.is_some();
        assert_eq!(says_what_to_do, *verdict != CheckResult::NotKnown, "case {index}");
        assert_eq!(report.has_failed(), *verdict == CheckResult::Failed, "case {index}");
    }
}

#[test]
fn every_check_has_a_case_in_which_it_fails_or_is_not_known() {
    let tried: Vec<&str> = CASES.iter().map(|(check, ..)| *check).collect();

    let untried: Vec<&str> = check::all().iter().map(|check| check.id).filter(|id| !tried.contains(id)).collect();
    // The permissions are alike; the simulator tries each of them.
    assert!(untried.iter().all(|id| id.starts_with("permission-")), "{untried:?}");
}

#[test]
fn a_cluster_that_does_not_answer_is_all_that_is_told_of_it() {
    let mut facts = healthy();
    let cluster = facts.cluster.as_mut().unwrap();
    (cluster.version, cluster.inside) = (Err("connection refused".into()), None);
    facts.runner = None;
    facts.accounts.clear();

    let report = judge(&facts);

    assert_eq!(report.0.len(), 1);
    assert!(report.has_failed());
}

#[test]
fn an_older_operator_that_is_scaled_down_is_no_danger_and_a_running_one_names_the_command() {
    let mut facts = healthy();
    inside(&mut facts).deployments.as_mut().unwrap().push(older(0));
    assert!(!judge(&facts).has_failed());

    inside(&mut facts).deployments.as_mut().unwrap().push(older(1));
    let report = judge(&facts);

    let danger = report.0.iter().find(|finding| finding.check.id == "older-operator").unwrap();
    assert_eq!(danger.next.as_deref(), Some("kubectl scale deployment op -n old --replicas=0"));
}

#[test]
fn a_record_that_is_not_proxied_needs_no_certificate_at_the_edge() {
    let mut facts = healthy();
    api(&mut facts).names =
        vec![NameFacts { hostname: Hostname::parse("a.b.example.com").unwrap(), at_the_edge: false }];

    assert!(judge(&facts).0.iter().all(|finding| finding.verdict == CheckResult::Ok));
}
