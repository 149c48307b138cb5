//! `pod-echo --port N`: a server that answers every request with what it was asked, for pods of images that do the same.
//!
//! It stands for such images in examples and tests: by TCP it reads a request's head, answers 200, and closes; by UDP it sends each
//! datagram back. Both name the pod in front of that where `--name` asks for it. Told to end, it serves until nobody has
//! come for a while, as servers do that are replaced.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream, UdpSocket};
use tokio::signal::unix::{SignalKind, signal};
use tokio::task::JoinSet;

use crate::network::ADDRESS_VARIABLE;

/// The command by which the runner's own executable becomes this server.
pub const ECHO_COMMAND: &str = "pod-echo";

const USUAL_PORT: u16 = 8080;
/// Lines that are read of a request at most, and letters of a line.
const LONGEST_HEAD: usize = 64;
const LONGEST_DATAGRAM: usize = 65_536;
/// How long nobody may have come before it ends, and how long it goes on at most.
const QUIET: Duration = Duration::from_millis(300);
const MOST_DRAINING: Duration = Duration::from_secs(5);

/// What is answered.
#[derive(Clone, Debug, PartialEq, Eq)]
struct EchoAnswer {
    /// In the place of the request.
    text: Option<String>,
    /// Before it.
    name: Option<String>,
}

/// Serves until it is ended.
pub fn serve(arguments: &[String]) -> ExitCode {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let served = runtime.and_then(|runtime| runtime.block_on(serve_until_ended(arguments)));
    match served {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("listening on {}: {error}: name another port with --port", address_of(arguments));
            ExitCode::FAILURE
        }
    }
}

async fn serve_until_ended(arguments: &[String]) -> io::Result<()> {
    let address = address_of(arguments);
    let tcp = TcpListener::bind(address).await?;
    let udp = UdpSocket::bind(address).await?;
    let mut told = signal(SignalKind::terminate())?;
    println!("listening on {address}");
    let answer = Arc::new(answer_of(arguments));
    let mut requests = JoinSet::new();
    let mut datagram = vec![0; LONGEST_DATAGRAM];
    let mut ends: Option<tokio::time::Instant> = None;
    loop {
        let quiet_until = tokio::time::Instant::now() + QUIET;
        tokio::select! {
            accepted = tcp.accept() => if let Ok((stream, _)) = accepted {
                requests.spawn(answer_request(stream, answer.clone()));
            },
            received = udp.recv_from(&mut datagram) => if let Ok((length, client)) = received {
                // A client that goes away is its own affair.
                let _ = udp.send_to(&answer.bytes(&datagram[..length]), client).await;
            },
            Some(_) = requests.join_next() => {}
            _ = told.recv(), if ends.is_none() => ends = Some(quiet_until + MOST_DRAINING),
            () = tokio::time::sleep_until(ends.map_or(quiet_until, |ends| ends.min(quiet_until))), if ends.is_some() => break,
        }
    }
    while requests.join_next().await.is_some() {}
    Ok(())
}

/// The pod's own address where a runner says it, else this machine's.
fn address_of(arguments: &[String]) -> SocketAddr {
    let own = std::env::var(ADDRESS_VARIABLE).ok().and_then(|text| text.parse().ok());
    SocketAddr::new(own.unwrap_or(IpAddr::V4(Ipv4Addr::LOCALHOST)), port_of(arguments))
}

/// `--port N`, `--port=N`, `-listen=:N`.
fn port_of(arguments: &[String]) -> u16 {
    let written = value_of(arguments, "port").or_else(|| value_of(arguments, "listen"));
    written.and_then(|value| value.rsplit(':').next()?.parse().ok()).unwrap_or(USUAL_PORT)
}

/// `--text=TEXT`: what to answer in the place of the request; `--name=NAME`: what to put before it.
fn answer_of(arguments: &[String]) -> EchoAnswer {
    let text = |name| value_of(arguments, name).map(str::to_owned);
    EchoAnswer { text: text("text"), name: text("name") }
}

fn value_of<'a>(arguments: &'a [String], name: &str) -> Option<&'a str> {
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        let Some(after) = argument.trim_start_matches('-').strip_prefix(name) else { continue };
        match after.strip_prefix('=') {
            Some(value) => return Some(value),
            None if after.is_empty() => return rest.next().map(String::as_str),
            None => {}
        }
    }
    None
}

impl EchoAnswer {
    fn bytes(&self, request: &[u8]) -> Vec<u8> {
        let name = self.name.iter().flat_map(|name| [name.as_bytes(), b" "]);
        let text = self.text.as_deref().map_or(request, str::as_bytes);
        name.chain([text]).collect::<Vec<_>>().concat()
    }
}

async fn answer_request(stream: TcpStream, answer: Arc<EchoAnswer>) -> io::Result<()> {
    let mut stream = BufReader::new(stream);
    let mut head = String::new();
    for _ in 0..LONGEST_HEAD {
        let mut line = String::new();
        stream.read_line(&mut line).await?;
        let line = line.trim_end();
        if line.is_empty() {
            break;
        }
        head.push_str(line);
        head.push('\n');
    }
    let body = answer.bytes(head.as_bytes());
    let head = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    stream.write_all(&[head.as_bytes(), &body].concat()).await?;
    stream.shutdown().await
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arguments(arguments: &[&str]) -> Vec<String> {
        arguments.iter().map(|text| (*text).to_owned()).collect()
    }

    #[test]
    fn the_port_is_named_as_such_servers_have_it_named() {
        let port = |given: &[&str]| port_of(&arguments(given));

        assert_eq!(port(&["--port", "81"]), 81);
        assert_eq!(port(&["-port=82"]), 82);
        assert_eq!(port(&["-text=x", "-listen=:83"]), 83);
        assert_eq!(port(&["--portal=1"]), USUAL_PORT);
    }

    #[test]
    fn the_answer_is_the_request_or_a_text_behind_a_name() {
        let answer = |given: &[&str]| String::from_utf8(answer_of(&arguments(given)).bytes(b"asked")).unwrap();

        assert_eq!(answer(&[]), "asked");
        assert_eq!(answer(&["-text=told"]), "told");
        assert_eq!(answer(&["--name", "web-0"]), "web-0 asked");
    }
}
