//! Instances of a world → pods whose servers are real `named` processes, with the files that the operator made; pod status by the test.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, UdpSocket};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use portolan_bind9::Settings;
use portolan_bind9::model::conf::PodAddress;
use portolan_bind9_wire::{DnsClient, DomainName, ResponseCode, ServerLimits, TypeCode};
use portolan_named_fixture::programs;
use portolan_testkit::process::Processes;
use portolan_testkit::{Builder, OperatorProcess, World};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::world::{JOB, object};

/// How long anything may take on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// A world, and the servers of its pods by instance.
pub(crate) struct Servers {
    pub(crate) world: World,
    all: BTreeMap<String, Server>,
}

/// A pod: its server, or the place for one.
struct Server {
    folder: TempDir,
    dns: u16,
    control: u16,
    child: Option<Child>,
    pods: u32,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
    }
}

impl Server {
    fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _gone = child.kill();
            let _gone = child.wait();
        }
    }
}

fn free_port() -> u16 {
    for _ in 0..100 {
        let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap().port();
        if UdpSocket::bind((Ipv4Addr::LOCALHOST, port)).is_ok() {
            return port;
        }
    }
    panic!("no port is free");
}

/// Asks until there is something.
pub(crate) async fn eventually<T>(what: &str, mut look: impl AsyncFnMut() -> Option<T>) -> T {
    let end = Instant::now() + PATIENCE;
    loop {
        if let Some(found) = look().await {
            return found;
        }
        assert!(Instant::now() < end, "not within {PATIENCE:?}: {what}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// A world for real servers; nothing where there is no `named`.
pub(crate) async fn servers() -> Option<Servers> {
    programs()?;
    let settings = || Settings { pod_address: PodAddress::Own("127.0.0.1".to_owned()), ..Settings::default() };
    let processes =
        Processes::told(vec![OperatorProcess::of("bind9")], move |_, provisions| provisions.with(settings()));
    let world = Builder::of(&JOB).roles(processes).start().await;
    Some(Servers { world, all: BTreeMap::new() })
}

impl Servers {
    pub(crate) async fn apply(&self, kind: &str, key: &str, spec: Value) {
        self.world.cluster.apply(&object(kind, key, spec)).await;
    }

    /// Waits until instances of the namespace `dns` are configured, each as its peers need it, and starts a pod for each.
    pub(crate) async fn run(&mut self, instances: &[&str]) {
        for name in instances {
            let (dns, control) = (free_port(), free_port());
            let server = Server { folder: tempfile::tempdir().unwrap(), dns, control, child: None, pods: 0 };
            self.all.insert((*name).to_owned(), server);
        }
        let mut before = String::new();
        eventually("the configuration of all servers", async || {
            let mut all = String::new();
            for name in instances {
                for id in [format!("ConfigMap/dns/{name}-config"), format!("Secret/dns/{name}-rndc-key")] {
                    all += &self.world.cluster.get(&id).await?["data"].to_string();
                }
                self.service(name).await?;
            }
            let stands = all == before;
            before = all;
            tokio::time::sleep(Duration::from_millis(300)).await;
            stands.then_some(())
        })
        .await;
        for name in instances {
            self.start(name).await;
            self.make_pod(name).await;
        }
    }

    async fn service(&self, instance: &str) -> Option<String> {
        let service = self.world.cluster.get(&format!("Service/dns/{instance}")).await?;
        service["spec"]["clusterIP"].as_str().map(str::to_owned)
    }

    /// Writes an instance's files as its pod has them: in folders and at ports of this test, with Services that lead to them.
    pub(crate) async fn write_files(&self, instance: &str) {
        let server = &self.all[instance];
        let folder = server.folder.path();
        let mut services = Vec::new();
        for (name, other) in &self.all {
            services.extend(self.service(name).await.map(|address| (address, other.dns)));
        }
        let here = |text: &str| {
            let at = |name: &str| folder.join(name).display().to_string();
            let text = text.replace("/etc/bind/config", &at("config")).replace("/etc/bind/keys", &at("keys"));
            let text = text.replace("/var/cache/bind", &at("cache"));
            let text = text.replace("port 5353", &format!("port {}", server.dns));
            let text = text.replace("port 9530", &format!("port {}", server.control));
            services.iter().fold(text, |text, (address, port)| {
                text.replace(&format!("{address} port 53 "), &format!("127.0.0.1 port {port} "))
            })
        };
        let map = self.world.cluster.get(&format!("ConfigMap/dns/{instance}-config")).await.unwrap();
        let secret = self.world.cluster.get(&format!("Secret/dns/{instance}-rndc-key")).await.unwrap();
        for (name, data) in [("config", &map["data"]), ("keys", &secret["data"])] {
            std::fs::create_dir_all(folder.join(name)).unwrap();
            for (file, text) in data.as_object().unwrap() {
                let text = text.as_str().unwrap();
                let text = if name == "keys" { decoded(text) } else { text.to_owned() };
                std::fs::write(folder.join(name).join(file), here(&text)).unwrap();
            }
        }
        std::fs::create_dir_all(folder.join("cache")).unwrap();
    }

    /// Starts the server of an instance.
    pub(crate) async fn start(&mut self, instance: &str) {
        self.write_files(instance).await;
        let server = self.all.get_mut(instance).unwrap();
        let log = std::fs::OpenOptions::new().create(true).append(true).open(server.folder.path().join("log")).unwrap();
        let child = Command::new(programs().unwrap().join("named"))
            .args(["-f", "-c"])
            .arg(server.folder.path().join("config/named.conf"))
            .current_dir(server.folder.path().join("cache"))
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .unwrap();
        server.child = Some(child);
        let at = SocketAddr::from((Ipv4Addr::LOCALHOST, server.control));
        eventually(&format!("{instance} runs"), async || std::net::TcpStream::connect(at).ok()).await;
    }

    /// Ends the server of an instance at once.
    pub(crate) fn kill(&mut self, instance: &str) {
        self.all.get_mut(instance).unwrap().kill();
    }

    /// Takes away all that a server has stored.
    pub(crate) fn lose_disk(&mut self, instance: &str) {
        let cache = self.all[instance].folder.path().join("cache");
        std::fs::remove_dir_all(&cache).unwrap();
        std::fs::create_dir_all(&cache).unwrap();
    }

    /// Makes a pod for the server of an instance in place of the one before; it runs and is not ready.
    pub(crate) async fn make_pod(&mut self, instance: &str) {
        let server = self.all.get_mut(instance).unwrap();
        if server.pods > 0 {
            self.world.cluster.delete(&format!("Pod/dns/{instance}-{}", server.pods)).await;
        }
        server.pods += 1;
        let name = format!("{instance}-{}", server.pods);
        let ports = json!([
            {"name": "dns-tcp", "containerPort": server.dns, "protocol": "TCP"},
            {"name": "dns-udp", "containerPort": server.dns, "protocol": "UDP"},
            {"name": "rndc", "containerPort": server.control, "protocol": "TCP"},
        ]);
        let pod = json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"namespace": "dns", "name": name, "labels": {"app": "bind9", "instance": instance}},
            "spec": {"containers": [{"name": "bind9", "image": "bind9", "ports": ports}]},
        });
        self.world.cluster.apply(&pod).await;
        let status = json!({"status": {"phase": "Running", "podIP": "127.0.0.1"}});
        self.world.cluster.patch_status(&format!("Pod/dns/{name}"), &status).await;
    }

    /// What a server answers anybody; nothing where it does not.
    pub(crate) async fn answers(
        &self,
        instance: &str,
        name: &str,
        kind: TypeCode,
    ) -> Option<(ResponseCode, Vec<String>)> {
        let limits = ServerLimits { datagram: Duration::from_millis(300), ..ServerLimits::default() };
        let client = DnsClient::new((Ipv4Addr::LOCALHOST, self.all[instance].dns).into(), None, limits);
        let answer = client.query(&DomainName::parse(name).unwrap(), kind).await.ok()?;
        let mut records: Vec<String> = answer.records.iter().map(ToString::to_string).collect();
        records.sort();
        Some((answer.code, records))
    }

    /// The serial that a server answers with.
    pub(crate) async fn serial(&self, instance: &str, zone: &str) -> Option<u32> {
        let (_, records) = self.answers(instance, zone, TypeCode::SOA).await?;
        records.first()?.split_whitespace().nth(6)?.parse().ok()
    }

    /// Commands that change something, and updates, that a server took so far.
    pub(crate) fn mutations(&self, instance: &str) -> Vec<String> {
        let harmless = ["'null'", "'status'", "'zonestatus", "'showzone"];
        let log = std::fs::read_to_string(self.all[instance].folder.path().join("log")).unwrap();
        let counts = |line: &&str| {
            let command =
                line.contains("received control channel command") && !harmless.iter().any(|one| line.contains(one));
            command || line.contains("updating zone")
        };
        log.lines().filter(counts).map(str::to_owned).collect()
    }

    /// The log of a server.
    pub(crate) fn log(&self, instance: &str) -> String {
        std::fs::read_to_string(self.all[instance].folder.path().join("log")).unwrap()
    }

    /// Waits until a zone's `Ready` condition says this.
    pub(crate) async fn until_ready(&self, zone: &str, ready: &str) {
        let id = format!("DNSZone/dns/{zone}");
        let end = Instant::now() + PATIENCE;
        while self.world.cluster.ready(&id).await != ready {
            if Instant::now() > end {
                let logs: Vec<String> = self.all.keys().map(|one| format!("== {one}\n{}", self.log(one))).collect();
                let zone = self.world.cluster.get(&id).await.unwrap_or_default();
                panic!("{id} should be {ready}: {:#}\n{}", zone["status"], logs.concat());
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    pub(crate) async fn status(&self, zone: &str) -> Value {
        self.world.cluster.get(&format!("DNSZone/dns/{zone}")).await.unwrap()["status"].clone()
    }
}

fn decoded(text: &str) -> String {
    use base64::Engine as _;
    String::from_utf8(base64::engine::general_purpose::STANDARD.decode(text).unwrap()).unwrap()
}

pub(crate) use portolan_named_fixture::tell;
