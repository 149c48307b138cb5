//! A real `named` with files that the model made, and what it is told when they change.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use portolan_bind9_model::conf::{FileSet, PodAddress, ServerFiles, files};
use portolan_bind9_model::keys::{FreshSecrets, KeyPolicy, KeyRing};
use portolan_bind9_model::settings::settings;
use portolan_core::ObjectKey;
use portolan_named_fixture::{programs, tell};
use serde_json::{Value, from_value, json};
use tempfile::TempDir;

use super::*;

/// A server that runs with our files; it ends with the test, by its process id.
struct Server {
    folder: TempDir,
    dns: u16,
    control: u16,
    child: Child,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _gone = self.child.kill();
        let _gone = self.child.wait();
    }
}

impl Server {
    /// Starts a server with some files; nothing where there is no `named`.
    async fn start(files: &ServerFiles) -> Option<Self> {
        let named = programs()?.join("named");
        let folder = tempfile::tempdir().unwrap();
        let (dns, control) = (free_port(), free_port());
        write(files, folder.path(), dns, control);
        let child = Command::new(named)
            .args(["-f", "-c"])
            .arg(folder.path().join("config/named.conf"))
            .stdout(Stdio::null())
            .stderr(std::fs::File::create(folder.path().join("log")).unwrap())
            .spawn()
            .unwrap();
        let server = Self { folder, dns, control, child };
        server.comes_up().await;
        Some(server)
    }

    async fn comes_up(&self) {
        for _ in 0..600 {
            if std::net::TcpStream::connect(self.address()).is_ok() {
                return;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        panic!("named does not come up: {}", std::fs::read_to_string(self.folder.path().join("log")).unwrap());
    }

    fn address(&self) -> SocketAddr {
        (Ipv4Addr::LOCALHOST, self.control).into()
    }

    fn write(&self, files: &ServerFiles) {
        write(files, self.folder.path(), self.dns, self.control);
    }
}

fn free_port() -> u16 {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap().port()
}

/// The files as a pod has them, in folders and at ports of this test.
fn write(files: &ServerFiles, folder: &Path, dns: u16, control: u16) {
    let here = |text: &str| {
        let text = text.replace("/etc/bind/config", &folder.join("config").display().to_string());
        let text = text.replace("/etc/bind/keys", &folder.join("keys").display().to_string());
        let text = text.replace("/var/cache/bind", &folder.join("cache").display().to_string());
        text.replace("port 5353", &format!("port {dns}")).replace("port 9530", &format!("port {control}"))
    };
    for (name, all) in [("config", &files.plain), ("keys", &files.secret)] {
        std::fs::create_dir_all(folder.join(name)).unwrap();
        std::fs::create_dir_all(folder.join("cache")).unwrap();
        for (file, text) in all {
            std::fs::write(folder.join(name).join(file), here(text)).unwrap();
        }
    }
}

fn policy() -> KeyPolicy {
    KeyPolicy { algorithm: RndcAlgorithm::HmacSha256, rotate_after_hours: None, given: None }
}

fn fresh(letter: char) -> FreshSecrets {
    let secret = |number: u8| format!("{letter}{number}{}=", "A".repeat(41));
    FreshSecrets { control: secret(1), update: secret(2), transfer: secret(3) }
}

fn server_key() -> ObjectKey {
    ObjectKey::namespaced("dns", "a")
}

fn ring() -> KeyRing {
    KeyRing::created(&server_key(), &policy(), fresh('a'), jiff::Timestamp::UNIX_EPOCH)
}

fn made(config: Value, ring: &KeyRing) -> ServerFiles {
    let spec = from_value(json!({"clusterRef": "", "role": "primary", "config": config})).unwrap();
    let (settings, address) = (settings(&spec, None, None), PodAddress::Own("127.0.0.1".to_owned()));
    let set = FileSet {
        server: server_key(),
        settings: &settings,
        ring,
        further: &[],
        following: &[],
        followers: &[],
        address,
        given: BTreeMap::new(),
    };
    files(&set).unwrap()
}

#[tokio::test]
async fn scenario_66_a_server_says_which_files_it_runs_with_and_takes_others_without_a_restart() {
    let (ring, first) = (ring(), made(json!({}), &ring()));
    let Some(server) = Server::start(&first).await else {
        tell("there is no named: a server was not told anything");
        return;
    };
    let key = &ring.current.control;
    assert!(ask_with(server.address(), key, &first.version).await.unwrap());

    let second = made(json!({"allowQuery": ["10.0.0.0/8"], "recursion": true}), &ring);
    assert!(!ask_with(server.address(), key, &second.version).await.unwrap(), "its files have not reached it");
    server.write(&second);
    assert!(ask_with(server.address(), key, &second.version).await.unwrap());
}

#[tokio::test]
async fn scenario_59_while_keys_are_renewed_both_are_taken_and_then_the_new_ones_alone() {
    let before = ring();
    let Some(server) = Server::start(&made(json!({}), &before)).await else {
        tell("there is no named: no key was renewed");
        return;
    };
    let rotated = before.clone().rotated(&server_key(), &policy(), fresh('b'), jiff::Timestamp::UNIX_EPOCH);
    let (old, new) = (&before.current.control, &rotated.current.control);
    let overlap = made(json!({}), &rotated);
    assert!(matches!(ask_with(server.address(), new, &overlap.version).await, Err(RndcError::KeyRefused { .. })));

    server.write(&overlap);
    assert!(ask_with(server.address(), old, &overlap.version).await.unwrap());
    assert!(ask_with(server.address(), new, &overlap.version).await.unwrap());

    let retired = made(json!({}), &rotated.clone().retired());
    server.write(&retired);
    assert!(ask_with(server.address(), new, &retired.version).await.unwrap());
    assert!(ask_with(server.address(), old, &retired.version).await.is_err());
}
