//! Several processes of each role at once, killed and stopped in the middle of their work: every task is carried out once,
//! another process takes over in time, and no protected name is open in between.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a failed step is a failed test")]

mod support;

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use portolan_parity::{ControlPlane, Durability};
use serde_json::{Value, json};
use support::ground::{Ground, NAMESPACE, decoded, namespace, route, tenant, visit};
use support::process::{Process, eventually};

/// After `kill -9` another process has taken over.
const AFTER_KILL: Duration = Duration::from_secs(20);
/// After SIGTERM another process has taken over.
const AFTER_STOP: Duration = Duration::from_secs(3);
const LEASE: &str = "cloudflare-zero-trust-operator";
const MANAGER_LEASE: &str = "cloudflare-zero-trust-manager";

/// Asks the edge for protected names again and again, as nobody in particular: none may ever be let through.
struct Visitor {
    done: Arc<AtomicBool>,
    asked: Arc<AtomicUsize>,
    thread: JoinHandle<Vec<String>>,
}

impl Visitor {
    fn start(ground: &Ground, hosts: Vec<String>) -> Self {
        let (done, asked) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
        let (stop, count, edge) = (Arc::clone(&done), Arc::clone(&asked), ground.edge().to_owned());
        let thread = std::thread::spawn(move || {
            let mut open = Vec::new();
            for host in hosts.iter().cycle() {
                if stop.load(Ordering::Relaxed) {
                    break;
                }
                if visit(&edge, host, &[]) == 200 {
                    open.push(host.clone());
                }
                count.fetch_add(1, Ordering::Relaxed);
                std::thread::sleep(Duration::from_millis(5));
            }
            open
        });
        Self { done, asked, thread }
    }

    /// Ends it; answers how often it asked.
    fn end(self) -> usize {
        self.done.store(true, Ordering::Relaxed);
        let open = self.thread.join().unwrap();
        assert!(open.is_empty(), "these were open for everybody: {open:?}");
        self.asked.load(Ordering::Relaxed)
    }
}

fn worker(ground: &Ground, name: &str) -> Process {
    let mut worker = ground.operator(name, "cloudflare_worker");
    Process::start(worker.env("DRIFT_RESYNC_SECONDS", "0").env("TASK_LEASE_SECONDS", "15"))
}

fn candidate(ground: &Ground, name: &str) -> Process {
    Process::start(ground.operator(name, "kube-worker").arg("--leader-elect").env("DRIFT_RESYNC_SECONDS", "0"))
}

/// Who leads those that see routes; nobody where the lease is free.
fn leader(ground: &Ground) -> Option<String> {
    holder(ground, LEASE)
}

fn holder(ground: &Ground, lease: &str) -> Option<String> {
    let lease = ground.run(&["get", "lease", lease, "-n", NAMESPACE, "-o", "json"]);
    let lease: Value = serde_json::from_str(&lease.stdout).ok()?;
    let holder = lease["spec"]["holderIdentity"].as_str()?.to_owned();
    Some(holder).filter(|holder| !holder.is_empty())
}

/// How long it takes from now until something comes about.
fn took(what: &str, ask: impl FnMut() -> Option<()>) -> Duration {
    let begun = Instant::now();
    eventually(what, ask);
    begun.elapsed()
}

/// Written to the handle itself: what `println!` says is kept back when a test passes.
fn tell(text: &str) {
    let _ = writeln!(std::io::stderr(), "{text}");
}

fn is_write(request: &Value) -> bool {
    request["method"] != "GET" && request["status"].as_u64().is_some_and(|status| status < 300)
}

/// What a request was about, without what the API gave.
fn shown(request: &Value) -> String {
    format!("{} {} {}", request["method"], request["path"], request["body"])
}

/// No write was sent twice; tokens of one name may be made as often as there are routes of that name.
fn assert_written_once(requests: &[Value], routes_of_a_name: usize) {
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    for request in requests.iter().filter(|request| is_write(request)) {
        *seen.entry(shown(request)).or_default() += 1;
    }
    let most = |write: &str| if write.contains("/service_tokens\"") { routes_of_a_name } else { 1 };
    let twice: Vec<_> = seen.iter().filter(|(write, count)| **count > most(write)).collect();
    assert!(twice.is_empty(), "written more than once: {twice:#?}");
    let applications = requests.iter().filter(|request| is_write(request) && request["method"] == "POST");
    let domains = applications.filter_map(|request| request["body"]["domain"].as_str());
    let mut once = BTreeSet::new();
    for domain in domains {
        assert!(once.insert(domain.to_owned()), "two applications were made for {domain}");
    }
}

/// The tasks that a worker carried out, as its log says.
fn carried_out(ground: &Ground, name: &str) -> Vec<String> {
    let log = ground.log(name);
    let lines = log.lines().filter(|line| line.contains("Carried out"));
    lines.filter_map(|line| line.split("task=").nth(1)?.split_whitespace().next().map(str::to_owned)).collect()
}

const SHOPS: [&str; 2] = ["shop-a", "shop-b"];
const EACH: usize = 32;
/// As many are deleted of each shop: more would be held, since that is what a mistake looks like.
const DELETED: usize = 8;

/// Routes of the same names in two namespaces; every fourth has a service token.
fn many_routes(emails: &str) -> Vec<Value> {
    let mut routes = Vec::new();
    for shop in SHOPS {
        for number in 0..EACH {
            let mut more = vec![("allowEmails", emails)];
            if number % 4 == 0 {
                more.push(("serviceToken", "true"));
            }
            routes.push(route(shop, &format!("r{number}"), &format!("r{number}-{shop}.example.com"), &more));
        }
    }
    routes
}

fn hosts() -> Vec<String> {
    SHOPS.iter().flat_map(|shop| (0..EACH).map(move |number| format!("r{number}-{shop}.example.com"))).collect()
}

fn settled(ground: &Ground) {
    eventually("all routes are done", || SHOPS.iter().all(|shop| ground.is_done(shop, EACH)).then_some(()));
}

/// Whether every application lets this address in.
fn all_admit(ground: &Ground, email: &str) -> bool {
    let state = ground.admin("state");
    let apps = state["access_apps"].as_object().into_iter().flatten().filter_map(|(_, apps)| apps.as_array()).flatten();
    apps.filter(|app| app.to_string().contains(email)).count() == 2 * EACH
}

/// Every Secret opens its own name, and no other token of the same name was taken for it.
fn assert_tokens_open_their_names(ground: &Ground) -> usize {
    let mut opened = 0;
    for shop in SHOPS {
        for secret in ground.get("secrets", shop) {
            let name = secret["metadata"]["name"].as_str().unwrap_or_default();
            let Some(route) = name.strip_suffix("-cfzt-service-token") else { continue };
            let (id, key) = (decoded(&secret, "client_id"), decoded(&secret, "client_secret"));
            let shown = [("CF-Access-Client-Id", id.as_str()), ("CF-Access-Client-Secret", key.as_str())];
            assert_eq!(ground.visit(&format!("{route}-{shop}.example.com"), &shown), 200, "{shop}/{name}");
            opened += 1;
        }
    }
    opened
}

#[test]
fn two_of_each_worker_at_once_carry_every_task_out_once() {
    let ground = Ground::embedded("15ms");
    for shop in SHOPS {
        ground.apply(&[namespace(shop)]);
        ground.apply(&tenant(shop));
    }
    let mut routes_side = [candidate(&ground, "kube-0"), candidate(&ground, "kube-1")];
    let mut workers = [worker(&ground, "cloudflare-0"), worker(&ground, "cloudflare-1")];
    let visitor = Visitor::start(&ground, hosts());
    let begun = Instant::now();

    ground.apply(&many_routes("first@example.com"));
    settled(&ground);
    let published = begun.elapsed();
    let tokens = 2 * EACH / 4;
    assert_eq!(
        (ground.count("access_apps"), ground.count("dns_records"), ground.rules()),
        (2 * EACH, 2 * EACH, 2 * EACH)
    );
    assert_eq!((ground.count("service_tokens"), assert_tokens_open_their_names(&ground)), (tokens, tokens));

    ground.apply(&many_routes("second@example.com"));
    eventually("all applications are changed", || all_admit(&ground, "second@example.com").then_some(()));
    settled(&ground);

    for shop in SHOPS {
        let names: Vec<String> = (0..DELETED).map(|number| format!("r{number}")).collect();
        let mut command = vec!["delete", "httproute", "-n", shop];
        command.extend(names.iter().map(String::as_str));
        ground.run(&command).succeeded();
    }
    eventually("the others are left", || SHOPS.iter().all(|shop| ground.is_done(shop, EACH - DELETED)).then_some(()));
    let left = 2 * (EACH - DELETED);
    assert_eq!((ground.count("access_apps"), ground.count("dns_records"), ground.rules()), (left, left, left));
    assert_eq!(ground.count("service_tokens"), left / 4);
    let asked = visitor.end();
    for process in routes_side.iter_mut().chain(&mut workers) {
        assert_eq!(process.terminate(), Some(0));
    }

    let requests = ground.requests();
    assert_written_once(&requests, SHOPS.len());
    let (one, other) = (carried_out(&ground, "cloudflare-0"), carried_out(&ground, "cloudflare-1"));
    let mut times: BTreeMap<&str, usize> = BTreeMap::new();
    for task in one.iter().chain(&other) {
        *times.entry(task).or_default() += 1;
    }
    let reconciled = times.iter().filter(|(task, _)| !task.contains("cfzt-delete-"));
    let deleted = times.iter().filter(|(task, _)| task.contains("cfzt-delete-"));
    assert!(reconciled.clone().all(|(_, count)| *count == 2), "published and changed, each once: {times:#?}");
    assert!(deleted.clone().all(|(_, count)| *count == 1), "deleted once: {times:#?}");
    assert_eq!((reconciled.count(), deleted.count()), (2 * EACH, 2 * DELETED));
    assert!(!one.is_empty() && !other.is_empty(), "both workers had a share: {} and {}", one.len(), other.len());
    tell(&format!(
        "roles: 2 kube_workers and 2 cloudflare_workers: {} routes published in {:.1} s, changed, {} deleted: {} tasks carried out \
         once each ({} and {}), {} requests, no write twice, {asked} visits and no name open",
        2 * EACH,
        published.as_secs_f64(),
        2 * DELETED,
        one.len() + other.len(),
        one.len(),
        other.len(),
        requests.len(),
    ));
}

/// Routes `{prefix}0…` in the default namespace.
fn batch(prefix: &str, count: usize) -> Vec<Value> {
    let name = |number| format!("{prefix}{number}");
    let host = |number| format!("{prefix}{number}.example.com");
    (0..count).map(|n| route("default", &name(n), &host(n), &[("allowEmails", "a@example.com")])).collect()
}

fn batch_hosts(prefixes: &[&str], count: usize) -> Vec<String> {
    prefixes.iter().flat_map(|prefix| (0..count).map(move |n| format!("{prefix}{n}.example.com"))).collect()
}

/// Routes for which something stands at Cloudflare.
fn begun(ground: &Ground) -> usize {
    ground.count("access_apps")
}

const BATCH: usize = 20;

/// Waits until a process follows another one's lease: who starts later cannot know since when it is not renewed.
fn stands_by(ground: &Ground, name: &str) {
    eventually("it stands by", || ground.log(name).contains("this one stands by").then_some(()));
}

/// A leader is killed and a leader is stopped, both while there is work; answers how long others took to lead.
fn leaders_are_followed(ground: &Ground) -> (Duration, Duration) {
    let mut first = candidate(ground, "kube-0");
    eventually("the first leads", || leader(ground).map(drop));
    let mut second = candidate(ground, "kube-1");
    stands_by(ground, "kube-1");
    let mut carrier = worker(ground, "cloudflare-0");
    let visitor = Visitor::start(ground, batch_hosts(&["k", "l", "m"], BATCH));
    ground.apply(&batch("k", BATCH));
    eventually("work has begun", || (begun(ground) > 2).then_some(()));
    let before = leader(ground);

    first.kill();
    let killed = Instant::now();
    ground.apply(&batch("l", BATCH));
    eventually("another leads", || leader(ground).filter(|now| Some(now) != before.as_ref()));
    let after_kill = killed.elapsed();
    eventually("its work is done", || ground.is_done("default", 2 * BATCH).then_some(()));

    let _third = candidate(ground, "kube-2");
    stands_by(ground, "kube-2");
    let before = leader(ground);
    ground.apply(&batch("m", BATCH));
    eventually("work has begun", || (begun(ground) > 2 * BATCH).then_some(()));
    second.signal("TERM");
    let after_stop = took("the next one leads", || leader(ground).filter(|now| Some(now) != before.as_ref()).map(drop));
    assert_eq!(second.ended(), Some(0));
    eventually("its work is done", || ground.is_done("default", 3 * BATCH).then_some(()));

    visitor.end();
    assert_eq!(carrier.terminate(), Some(0));
    assert_eq!(
        (ground.count("access_apps"), ground.count("dns_records"), ground.rules()),
        (3 * BATCH, 3 * BATCH, 3 * BATCH)
    );
    assert_written_once(&ground.requests(), 1);
    (after_kill, after_stop)
}

fn assert_in_time(what: &str, (after_kill, after_stop): (Duration, Duration)) {
    assert!(after_kill < AFTER_KILL, "{what}: {after_kill:?} after kill -9");
    assert!(after_stop < AFTER_STOP, "{what}: {after_stop:?} after SIGTERM");
    tell(&format!(
        "roles: {what}: taken over {:.1} s after kill -9 and {:.1} s after SIGTERM, no write twice, no name lost or open",
        after_kill.as_secs_f64(),
        after_stop.as_secs_f64()
    ));
}

#[test]
fn a_kube_worker_that_leads_is_followed_in_time() {
    let ground = Ground::embedded("40ms");

    let times = leaders_are_followed(&ground);

    assert_in_time("leading kube_worker", times);
}

#[test]
fn a_kube_worker_that_leads_is_followed_in_time_on_a_real_api_server() {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let not_run = |why: &str| tell(&format!("real: NOT RUN: take-over on a real API server: {why}"));
    let plane = match runtime.block_on(ControlPlane::start(Durability::None)) {
        Ok(plane) => plane,
        Err(why) => return not_run(&why.to_string()),
    };
    let definitions = match portolan_parity::gateway_api() {
        Ok(definitions) => definitions,
        Err(why) => return not_run(&why.to_string()),
    };
    let folder = tempfile::tempdir().unwrap();
    let gateway = folder.path().join("httproutes.json");
    let routes = definitions.iter().find(|one| one["spec"]["names"]["kind"] == "HTTPRoute").unwrap();
    std::fs::write(&gateway, routes.to_string()).unwrap();
    let ground = Ground::on(Path::new(plane.kubeconfig()), &gateway, "40ms");

    let times = leaders_are_followed(&ground);

    assert_in_time("leading kube_worker on kube-apiserver", times);
}

/// The tasks that a worker has claimed, as it stands in their statuses.
fn claims(ground: &Ground, name: &str) -> BTreeSet<String> {
    let tasks = ground.get("cloudflaretasks", NAMESPACE);
    let is_claimed =
        |task: &&Value| task["status"]["phase"] == "InProgress" && task["status"]["workerPod"].as_str() == Some(name);
    tasks.iter().filter(is_claimed).filter_map(|task| task["metadata"]["name"].as_str().map(str::to_owned)).collect()
}

#[test]
fn a_cloudflare_worker_that_dies_or_stops_is_followed_in_time() {
    let ground = Ground::embedded("150ms");
    let mut routes_side = candidate(&ground, "kube-0");
    let mut first = worker(&ground, "cloudflare-0");
    let visitor = Visitor::start(&ground, batch_hosts(&["k", "l"], BATCH));
    ground.apply(&batch("k", BATCH));
    eventually("the first works", || (begun(&ground) > 2 && !claims(&ground, "cloudflare-0").is_empty()).then_some(()));
    let mut second = worker(&ground, "cloudflare-1");

    first.kill();
    let left = claims(&ground, "cloudflare-0");
    assert!(!left.is_empty(), "it died with claims");
    let after_kill = took("its claims are taken over", || claims(&ground, "cloudflare-0").is_empty().then_some(()));
    eventually("its work is done", || ground.is_done("default", BATCH).then_some(()));

    ground.apply(&batch("l", BATCH));
    eventually("the second works", || {
        (begun(&ground) > BATCH + 2 && !claims(&ground, "cloudflare-1").is_empty()).then_some(())
    });
    let mut third = worker(&ground, "cloudflare-2");
    second.signal("TERM");
    let after_stop = took("its claims are free", || claims(&ground, "cloudflare-1").is_empty().then_some(()));
    assert_eq!(second.ended(), Some(0));
    eventually("its work is done", || ground.is_done("default", 2 * BATCH).then_some(()));

    visitor.end();
    assert_eq!((third.terminate(), routes_side.terminate()), (Some(0), Some(0)));
    assert_eq!(
        (ground.count("access_apps"), ground.count("dns_records"), ground.rules()),
        (2 * BATCH, 2 * BATCH, 2 * BATCH)
    );
    assert_written_once(&ground.requests(), 1);
    assert_in_time("cloudflare_worker", (after_kill, after_stop));
}

/// The operator's own Deployment; answers the names of its pods, which the server's controllers make.
fn deploy(ground: &Ground, pods: usize) -> Vec<String> {
    let name = "cloudflare-zero-trust-operator";
    let labels = json!({
        "app.kubernetes.io/name": name, "app.kubernetes.io/instance": "test", "app.kubernetes.io/component": "operator",
    });
    let template = json!({
        "metadata": { "labels": labels },
        "spec": { "containers": [{ "name": "operator", "image": "example.com/portolan:1" }] },
    });
    ground.apply(&[json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": { "name": name, "namespace": NAMESPACE, "labels": labels },
        "spec": { "replicas": pods, "selector": { "matchLabels": labels }, "template": template },
    })]);
    eventually("the Deployment has its pods", || {
        let there = ground.get("pods", NAMESPACE);
        let names = there.iter().filter_map(|pod| pod["metadata"]["name"].as_str()).map(str::to_owned);
        (there.len() == pods).then(|| names.collect())
    })
}

fn manager(ground: &Ground, name: &str) -> Process {
    let process = Process::start(ground.operator(name, "manager").arg("--leader-elect"));
    eventually("it starts", || ground.log(name).contains("Starting the controllers").then_some(()));
    process
}

/// Deletes a worker's Deployment; answers how long it takes until somebody has made it anew.
fn restored(ground: &Ground, component: &str) -> Duration {
    let name = format!("cloudflare-zero-trust-{component}");
    let one = ["deployment", name.as_str(), "-n", NAMESPACE];
    ground.run(&[&["delete"][..], &one].concat()).succeeded();
    took("the Deployment is there again", || (ground.run(&[&["get"][..], &one].concat()).code == Some(0)).then_some(()))
}

#[test]
fn a_manager_that_leads_is_followed_in_time() {
    let ground = Ground::embedded("1ms");
    let pods = deploy(&ground, 3);
    let mut first = manager(&ground, &pods[0]);
    eventually("both workers are deployed", || (ground.get("deployments", NAMESPACE).len() == 3).then_some(()));
    let mut second = manager(&ground, &pods[1]);
    stands_by(&ground, &pods[1]);
    let other = |before: &Option<String>| holder(&ground, MANAGER_LEASE).filter(|now| Some(now) != before.as_ref());

    let before = holder(&ground, MANAGER_LEASE);
    first.kill();
    let killed = Instant::now();
    eventually("another leads", || other(&before));
    let after_kill = killed.elapsed();
    restored(&ground, "kube-worker");

    let mut third = manager(&ground, &pods[2]);
    stands_by(&ground, &pods[2]);
    let before = holder(&ground, MANAGER_LEASE);
    second.signal("TERM");
    let after_stop = took("the next one leads", || other(&before).map(drop));
    assert_eq!(second.ended(), Some(0));
    restored(&ground, "cloudflare-worker");

    assert_eq!(third.terminate(), Some(0));
    assert_in_time("leading manager", (after_kill, after_stop));
}
