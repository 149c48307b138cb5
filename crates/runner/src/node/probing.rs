//! Probes of containers → commands, requests and connections, and what they say.

use std::time::Duration;

use k8s_openapi::api::core::v1::{Container, HTTPGetAction, Probe};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;

use super::commands::SideCommands;
use super::worker::{PodFact, PodWorker};
use crate::pod::probes::{ProbeKind, ProbeOutcome};

impl PodWorker {
    /// Begins a probe; what it says comes as a fact.
    pub(super) fn probe(&mut self, container: &str, kind: ProbeKind) {
        let began = self.context.now();
        let Some(spec) = self.container(container) else { return };
        let Some(probe) = kind.of(&spec).cloned() else { return };
        let Some(running) = self.record.container_mut(container).running_mut() else { return };
        let history = running.probes.of(kind).without(began);
        running.probes.put(history);
        let id = running.id.clone();
        let (teller, container, beside) = (self.teller.clone(), container.to_owned(), self.side_commands(container));
        tokio::spawn(async move {
            let Some(beside) = beside else { return };
            let outcome = outcome_of(&probe, &beside).await.map(|()| ProbeOutcome::Success);
            // The worker may be gone by now.
            let _ = teller.send(PodFact::Probed { container, id, kind, began, outcome });
        });
    }
}

async fn outcome_of(probe: &Probe, beside: &SideCommands) -> Result<(), String> {
    let within = Duration::from_secs(u64::try_from(probe.timeout_seconds.unwrap_or(1)).unwrap_or(1).max(1));
    if let Some(exec) = &probe.exec {
        let end = beside.run(&exec.command.clone().unwrap_or_default(), Some(within)).await?;
        return if end.exit_code == 0 { Ok(()) } else { Err(end.output) };
    }
    let asked = async {
        if let Some(get) = &probe.http_get {
            return asked_by_http(get, beside).await;
        }
        if let Some(socket) = &probe.tcp_socket {
            let port = port_number(&socket.port, &beside.container)?;
            let host = socket.host.as_deref().filter(|host| !host.is_empty()).unwrap_or(beside.address());
            return TcpStream::connect((host, port))
                .await
                .map(drop)
                .map_err(|error| format!("dial tcp {host}:{port}: {error}"));
        }
        Err("this sort of probe cannot be made here: use exec, httpGet or tcpSocket".to_owned())
    };
    let late = |_| Err("context deadline exceeded".to_owned());
    tokio::time::timeout(within, asked).await.unwrap_or_else(late)
}

async fn asked_by_http(get: &HTTPGetAction, beside: &SideCommands) -> Result<(), String> {
    if get.scheme.as_deref().is_some_and(|scheme| scheme.eq_ignore_ascii_case("https")) {
        return Err("probes by HTTPS cannot be made here: use HTTP, exec or tcpSocket".to_owned());
    }
    let port = port_number(&get.port, &beside.container)?;
    let host = get.host.as_deref().filter(|host| !host.is_empty()).unwrap_or(beside.address());
    let headers: Vec<(String, String)> =
        get.http_headers.iter().flatten().map(|header| (header.name.clone(), header.value.clone())).collect();
    let code = http_answer(host, port, get.path.as_deref().unwrap_or("/"), &headers).await?;
    if (200..400).contains(&code) { Ok(()) } else { Err(format!("HTTP probe failed with statuscode: {code}")) }
}

/// The number of a port that is given as one, or by a name of the container's.
pub(super) fn port_number(port: &IntOrString, container: &Container) -> Result<u16, String> {
    let number = match port {
        IntOrString::Int(number) => Some(*number),
        IntOrString::String(name) => {
            let named = container.ports.iter().flatten().find(|one| one.name.as_deref() == Some(name));
            named.map(|one| one.container_port).or_else(|| name.parse().ok())
        }
    };
    number.and_then(|number| u16::try_from(number).ok()).ok_or_else(|| format!("couldn't find port {port:?}"))
}

/// The code of the answer to a GET. Nothing else of it is read.
pub(super) async fn http_answer(
    host: &str,
    port: u16,
    path: &str,
    headers: &[(String, String)],
) -> Result<u16, String> {
    let failed = |error: std::io::Error| format!("Get \"http://{host}:{port}{path}\": {error}");
    let mut stream = TcpStream::connect((host, port)).await.map_err(failed)?;
    let has_host = headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("host"));
    let own_host = if has_host { String::new() } else { format!("Host: {host}:{port}\r\n") };
    let others: Vec<String> = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    let others = others.concat();
    let slash = if path.starts_with('/') { "" } else { "/" };
    let request = format!(
        "GET {slash}{path} HTTP/1.1\r\n{own_host}{others}User-Agent: kube-probe/portolan\r\nAccept: */*\r\nConnection: close\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).await.map_err(failed)?;
    let mut first = String::new();
    BufReader::new(stream).read_line(&mut first).await.map_err(failed)?;
    let code = first.split_ascii_whitespace().nth(1).and_then(|code| code.parse().ok());
    code.ok_or_else(|| format!("Get \"http://{host}:{port}{path}\": malformed HTTP response"))
}
