//! Random lives of a name: wishes that change, requests that fail, processes that die. After every single request no
//! guarded name stands open; whatever happened, one quiet run ends in just what is wished, and nothing of others is touched.
//!
//! These are lists of events that proptest makes and shrinks, and not histories of the test kit: no operator runs that could go
//! on while the next thing happens, so a shorter list is a simpler failure.

#![allow(clippy::unwrap_used, reason = "a failed step is a failed test")]
#![allow(clippy::panic, reason = "a run that ends otherwise is a failed test")]

use std::collections::BTreeSet;
use std::net::Ipv4Addr;
use std::time::Duration;

use crate::support::{Ended, Hit, World, emails, is_open, is_protected, is_published, redirects, token, zone_of};
use portolan_exposure::{Desired, Footprint, Fresh, Record};
use portolan_testkit::seeds::live_through;
use portolan_testkit::{paused, tell};
use proptest::prelude::*;
use proptest::test_runner::{RngSeed, TestCaseError, TestRunner};
use serde_json::{Value, json};

const HOSTS: [&str; 3] = ["a.x.com", "b.x.com", "c.y.org"];

/// Who may pass.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Passing {
    Anybody,
    Emails(u8),
    Group,
    Linked,
    LinkedAndEmails,
}

/// A wish for the name, small enough to be made up.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Wish {
    host: usize,
    tunnel: usize,
    address: bool,
    passing: Passing,
    token: bool,
    redirect: bool,
    service: u8,
}

impl Wish {
    fn desired(self, world: &World) -> Desired {
        let host = HOSTS[self.host];
        let mut desired = world.through(host, self.tunnel);
        desired.rule.as_mut().unwrap().service = format!("http://web-{}.shop.svc:80", self.service);
        desired.redirect = self.redirect;
        if self.address {
            let ip = Ipv4Addr::new(10, 0, 0, self.service);
            desired.rule = None;
            desired.record = Some(Record::Address { zone_id: zone_of(host).to_owned(), ip, ttl: 120, proxied: false });
            return desired;
        }
        let mut access = emails(&[]);
        match self.passing {
            Passing::Anybody => return desired,
            Passing::Emails(count) => access.emails = (0..=count).map(|n| format!("{n}@x.com")).collect(),
            Passing::Group => access.groups = vec!["Engineering".to_owned()],
            Passing::Linked => access.policy_names = vec!["Contractors".to_owned()],
            Passing::LinkedAndEmails => {
                access.policy_names = vec!["Contractors".to_owned()];
                access.emails = vec!["a@x.com".to_owned()];
            }
        }
        desired.access = Some(access);
        desired.token = self.token.then(token);
        desired
    }
}

/// What happens next.
#[derive(Clone, Copy, Debug)]
enum Event {
    /// The wish changes and is carried out, perhaps not to its end.
    Wish(Wish, Option<(usize, Hit)>),
    /// The name is taken away, perhaps not to the end.
    Withdraw(Option<(usize, Hit)>),
    /// The process starts anew.
    Restart,
    /// The Secret with the credentials is lost.
    LoseSecret,
    /// Somebody deletes what is ours in a collection.
    Rob(&'static str),
}

fn wish() -> impl Strategy<Value = Wish> {
    let passing = prop_oneof![
        2 => Just(Passing::Anybody),
        3 => (0..2u8).prop_map(Passing::Emails),
        1 => Just(Passing::Group),
        1 => Just(Passing::Linked),
        1 => Just(Passing::LinkedAndEmails),
    ];
    (0..HOSTS.len(), 0..2usize, prop::bool::weighted(0.15), passing, any::<bool>(), prop::bool::weighted(0.2), 1..3u8)
        .prop_map(|(host, tunnel, address, passing, token, redirect, service)| Wish {
            host,
            tunnel,
            address,
            passing,
            token,
            redirect,
            service,
        })
}

fn hit() -> impl Strategy<Value = Option<(usize, Hit)>> {
    let kind = prop_oneof![Just(Hit::CrashBefore), Just(Hit::CrashAfter), Just(Hit::FailBefore), Just(Hit::FailAfter)];
    prop::option::weighted(0.6, (1..16usize, kind))
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        8 => (wish(), hit()).prop_map(|(wish, hit)| Event::Wish(wish, hit)),
        2 => hit().prop_map(Event::Withdraw),
        1 => Just(Event::Restart),
        1 => Just(Event::LoseSecret),
        1 => prop::sample::select(vec!["dns_records", "access_apps", "service_tokens"]).prop_map(Event::Rob),
    ]
}

/// From the first write for a wish that asks for protection until a wish that does not, the name is guarded; so is the one
/// it leaves, if that was protected.
fn guard(world: &World, wish: Option<&Desired>) {
    let state = world.state();
    let closed = |name: &String| is_protected(&state, name) || !is_published(&state, name);
    let mut names: BTreeSet<String> = world.guarded().into_iter().filter(closed).collect();
    match wish {
        Some(desired) if desired.access.is_some() => drop(names.insert(desired.hostname.as_str().to_owned())),
        Some(_) => names.clear(),
        None => {}
    }
    world.guard(names);
}

async fn live(events: Vec<Event>) -> Result<(), TestCaseError> {
    let mut world = World::new().await;
    let mut last: Option<Wish> = None;
    let mut fresh = Fresh::any();
    for event in &events {
        tokio::time::advance(Duration::from_secs(20)).await;
        match *event {
            Event::Wish(wish, hit) => {
                let desired = wish.desired(&world);
                guard(&world, Some(&desired));
                last = Some(wish);
                world.run_looking(Some(&desired), hit, fresh).await;
            }
            Event::Withdraw(hit) => {
                guard(&world, None);
                last = None;
                world.run_looking(None, hit, fresh).await;
            }
            Event::Restart => world.restart(),
            Event::LoseSecret => world.persisted().credentials.clear(),
            Event::Rob(collection) => {
                rob(&world, collection);
                fresh = Fresh::after_now();
            }
        }
        prop_assert_eq!(world.violations(), Vec::<String>::new(), "{:?}", event);
        world.assert_theirs_untouched();
    }
    tokio::time::advance(Duration::from_secs(20)).await;
    Box::pin(converge(&mut world, last, fresh)).await
}

async fn converge(world: &mut World, last: Option<Wish>, fresh: Fresh) -> Result<(), TestCaseError> {
    if let Some(wish) = last {
        let desired = wish.desired(world);
        guard(world, Some(&desired));
        let footprint = quiet(world, Some(&desired), fresh).await?;
        prop_assert_eq!(world.left_to_do(&desired).await, Vec::<String>::new());
        check(world, &desired, &footprint)?;
    }
    guard(world, None);
    let footprint = quiet(world, None, fresh).await?;
    prop_assert!(footprint.is_empty(), "{:?}", footprint);
    for collection in ["dns_records", "access_apps", "access_policies", "service_tokens"] {
        prop_assert_eq!(&world.state()[collection], &world.seeded[collection], "{}", collection);
    }
    prop_assert_eq!(world.redirects(), redirects(&world.seeded));
    world.assert_theirs_untouched();
    prop_assert_eq!(world.hosts(1), Vec::<String>::new());
    prop_assert_eq!(world.violations(), Vec::<String>::new());
    Ok(())
}

async fn quiet(world: &mut World, desired: Option<&Desired>, fresh: Fresh) -> Result<Footprint, TestCaseError> {
    match world.run_looking(desired, None, fresh).await {
        Ended::Done(applied) => Ok(applied.footprint),
        other => Err(TestCaseError::fail(format!("a quiet run did not end well: {other:#?}"))),
    }
}

/// Just what is wished, once.
fn check(world: &World, desired: &Desired, footprint: &Footprint) -> Result<(), TestCaseError> {
    let name = desired.hostname.as_str();
    prop_assert!(is_published(&world.state(), name));
    prop_assert_eq!(desired.access.is_some(), is_protected(&world.state(), name));
    prop_assert_eq!(world.ours("dns_records").len(), 1);
    prop_assert_eq!(world.ours("access_apps").len(), usize::from(desired.access.is_some()));
    prop_assert_eq!(world.ours("service_tokens").len(), usize::from(desired.token.is_some()));
    prop_assert!(footprint.former.is_empty() && footprint.app_hostname.is_none() && footprint.adopted.is_empty());
    if let Some(token) = &footprint.service_token_id {
        prop_assert!(world.persisted().credentials.contains_key(token), "the secret is kept");
    }
    let rules: Vec<String> =
        (0..2).flat_map(|tunnel| world.hosts(tunnel)).filter(|host| HOSTS.contains(&host.as_str())).collect();
    let expected: Vec<&str> = desired.rule.iter().map(|_| name).collect();
    prop_assert_eq!(rules, expected);
    Ok(())
}

/// Somebody deletes what is ours, also what the rest needs.
fn rob(world: &World, collection: &str) {
    for ours in world.ours(collection) {
        world.sim.remove(collection, ours["id"].as_str().unwrap());
    }
}

fn config(seed: u64) -> ProptestConfig {
    ProptestConfig {
        cases: 1,
        rng_seed: RngSeed::Fixed(seed),
        failure_persistence: None,
        max_shrink_iters: 400,
        ..ProptestConfig::default()
    }
}

/// As many seeds as `PORTOLAN_HISTORIES` says (100).
#[test]
fn no_name_ever_stands_open_and_every_history_ends_as_wished() {
    let lived = live_through(100, |seed| {
        let events = prop::collection::vec(event(), 1..8);
        let lived = TestRunner::new(config(seed)).run(&events, |events| paused(live(events)));
        assert!(lived.is_ok(), "seed {seed}: {}", lived.unwrap_err());
    });
    tell(&format!("histories: {} of exposure lived (seeds {})", lived.count, lived.seeds));
    lived.assert_all("-p portolan-exposure --test exposure histories");
}

/// Every request of a change, stopped before and after it.
#[tokio::test(start_paused = true)]
async fn a_change_that_is_stopped_at_any_request_ends_as_wished() {
    let plain = Wish {
        host: 0,
        tunnel: 0,
        address: false,
        passing: Passing::Anybody,
        token: false,
        redirect: false,
        service: 1,
    };
    let full = Wish { passing: Passing::LinkedAndEmails, token: true, redirect: true, ..plain };
    let inline = Wish { passing: Passing::Emails(1), token: true, ..plain };
    let moved = Wish { host: 2, tunnel: 1, service: 2, ..full };
    let address = Wish { address: true, ..plain };
    let lives: [(&str, Option<Wish>, Option<Wish>); 8] = [
        ("publish", None, Some(full)),
        ("protect", Some(plain), Some(inline)),
        ("move", Some(full), Some(moved)),
        ("open", Some(inline), Some(Wish { host: 1, ..plain })),
        ("link", Some(inline), Some(full)),
        ("resolve", Some(inline), Some(address)),
        ("tunnel", Some(address), Some(inline)),
        ("withdraw", Some(full), None),
    ];
    let mut stops = 0;
    for (life, from, to) in lives {
        for at in 1.. {
            let mut reached = false;
            for hit in [Hit::CrashBefore, Hit::CrashAfter, Hit::FailAfter] {
                let mut world = World::new().await;
                if let Some(from) = from {
                    let desired = from.desired(&world);
                    world.run(Some(&desired), None).await.applied();
                }
                let desired = to.map(|to| to.desired(&world));
                guard(&world, desired.as_ref());
                let ended = world.run(desired.as_ref(), Some((at, hit))).await;
                reached |= matches!(ended, Ended::Crashed);
                stops += usize::from(reached);
                let converged = Box::pin(converge(&mut world, to, Fresh::any())).await;
                assert!(converged.is_ok(), "{life}: {hit:?} at {at}: {converged:?}");
            }
            if !reached {
                break;
            }
        }
    }
    println!("stopped {stops} times");
    assert!(stops > 150, "only {stops} stops");
}

#[test]
fn the_look_finds_names_that_stand_open() {
    let rule = |host: &str| json!({"config": {"ingress": [{"hostname": host, "service": "http://x"}]}});
    let app = |policies: Value| json!({"acc": [{"domain": "a.x.com", "policies": policies}]});
    let record = json!({"zone": [{"type": "CNAME", "name": "a.x.com"}]});

    let ruled = json!({"configurations": {"t": rule("a.x.com")}});
    let resolved = json!({"dns_records": record});
    let deny = json!({"dns_records": resolved["dns_records"], "access_apps": app(json!([]))});
    let closed = json!({"configurations": {"t": rule("a.x.com")}, "access_apps": app(json!([{"id": "p"}]))});

    assert!(is_open(&ruled, "a.x.com") && is_open(&resolved, "a.x.com") && is_open(&deny, "a.x.com"));
    assert!(!is_open(&closed, "a.x.com") && !is_open(&ruled, "b.x.com"));
}

/// Planted: whoever publishes before protecting is found out by the look after every request.
#[tokio::test(start_paused = true)]
async fn a_wrong_order_is_found_out() {
    let mut world = World::new().await;
    let open = world.plain("a.x.com");
    world.guard(["a.x.com".to_owned()]);

    world.run(Some(&open), None).await.applied();

    assert_eq!(world.violations().len(), 2, "one after the rule, one after the record");
    let mut world = World::new().await;
    let desired = Desired { access: Some(emails(&["a@x.com"])), ..world.plain("a.x.com") };
    world.run(Some(&desired), None).await.applied();
    world.guard(["a.x.com".to_owned()]);
    let app = world.footprint().access_app_id.unwrap();
    world.sim.remove("access_apps", &app);
    let other = Desired { rule: Some(world.rule(0, "http://new")), access: None, ..desired };
    world.run(Some(&other), None).await.applied();
    assert!(!world.violations().is_empty(), "the application was gone while the rule was written");
}
