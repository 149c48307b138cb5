//! Questions by UDP and TCP → answers from the table of Services, or those of this machine's own servers.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, SocketAddrV4};
use std::sync::{Arc, RwLock};
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream, UdpSocket};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio_util::task::AbortOnDropHandle;

use super::dns::answer::{NameAnswer, answer};
use super::dns::message::{
    NotAsked, RecordContent, ReplyCode, ResolverQuery, ResolverRecord, ResolverReply, read_addresses, read_query,
    write_question, write_refusal, write_reply,
};
use super::dns::resolv_conf::ResolvConf;
use super::table::ServiceTable;

/// Where the resolver is tried to be, one after the other: among the addresses that are given out to those only that ask for them.
const ADDRESSES: std::ops::Range<u8> = 10..20;
const PORT: u16 = 53;
/// Where this machine says whom it asks.
pub(super) const MACHINE: &str = "/etc/resolv.conf";
const MOST_QUESTIONS: usize = 512;
const MOST_CONNECTIONS: usize = 64;
const LONGEST: usize = 65_535;
/// How long a server of this machine may take.
const ANSWERS_WITHIN: Duration = Duration::from_secs(2);
/// How long a client may say nothing on its connection (RFC 7766 §6.2.3).
const SILENT_WITHIN: Duration = Duration::from_secs(10);
const MOST_SERVERS: usize = 3;

/// The resolver, while it listens.
#[derive(Debug)]
pub(super) struct Resolver {
    address: SocketAddrV4,
    _tasks: [AbortOnDropHandle<()>; 2],
}

/// What all questions share.
struct ResolverContext {
    table: Arc<RwLock<ServiceTable>>,
    /// The resolver's own address, so that it does not ask itself.
    own: Ipv4Addr,
    machine: std::path::PathBuf,
    questions: Arc<Semaphore>,
}

impl Resolver {
    /// Listens where it may: at the port that all clients ask at, else at any.
    pub(super) async fn listen(table: Arc<RwLock<ServiceTable>>, machine: std::path::PathBuf) -> io::Result<Self> {
        let (udp, tcp, address) = bound().await?;
        let questions = Arc::new(Semaphore::new(MOST_QUESTIONS));
        let context = Arc::new(ResolverContext { table, own: *address.ip(), machine, questions });
        let udp = AbortOnDropHandle::new(tokio::spawn(by_udp(Arc::new(udp), context.clone())));
        let tcp = AbortOnDropHandle::new(tokio::spawn(by_tcp(tcp, context)));
        Ok(Self { address, _tasks: [udp, tcp] })
    }

    /// Where it listens.
    pub(super) fn address(&self) -> SocketAddrV4 {
        self.address
    }

    /// Its address, where clients find it without being told a port.
    pub(super) fn usual_address(&self) -> Option<Ipv4Addr> {
        (self.address.port() == PORT).then(|| *self.address.ip())
    }
}

/// Both sockets at one address: the usual port at the first address where it is free, else another port.
async fn bound() -> io::Result<(UdpSocket, TcpListener, SocketAddrV4)> {
    let usual = ADDRESSES.map(|last| SocketAddrV4::new(Ipv4Addr::new(127, 78, 0, last), PORT));
    let others = std::iter::repeat_n(SocketAddrV4::new(Ipv4Addr::new(127, 78, 0, ADDRESSES.start), 0), 16);
    let mut failed = io::Error::other("no address was tried");
    for address in usual.chain(others) {
        match bound_at(address).await {
            Ok(bound) => return Ok(bound),
            Err(error) => failed = error,
        }
    }
    Err(failed)
}

async fn bound_at(address: SocketAddrV4) -> io::Result<(UdpSocket, TcpListener, SocketAddrV4)> {
    let udp = UdpSocket::bind(address).await?;
    let SocketAddr::V4(address) = udp.local_addr()? else { return Err(io::Error::other("no address of IPv4")) };
    Ok((udp, TcpListener::bind(address).await?, address))
}

async fn by_udp(socket: Arc<UdpSocket>, context: Arc<ResolverContext>) {
    let mut tasks = JoinSet::new();
    let mut buffer = vec![0; 4096];
    loop {
        while tasks.try_join_next().is_some() {}
        // Somebody who was answered is gone.
        let Ok((length, client)) = socket.recv_from(&mut buffer).await else { continue };
        let question = buffer[..length].to_vec();
        match context.at_once(&question) {
            Handled::Answer(bytes) => drop(socket.send_to(&bytes, client).await),
            Handled::Silence => {}
            Handled::Later(later) => {
                // Who asks more than can be asked for asks again.
                let Ok(place) = context.questions.clone().try_acquire_owned() else { continue };
                let (socket, context) = (socket.clone(), context.clone());
                tasks.spawn(async move {
                    let most = later.query.most_bytes;
                    let bytes = context.finished(later, &question, Carrier::Udp, most).await;
                    let _ = socket.send_to(&bytes, client).await;
                    drop(place);
                });
            }
        }
    }
}

async fn by_tcp(listener: TcpListener, context: Arc<ResolverContext>) {
    let mut connections = JoinSet::new();
    loop {
        let has_place = connections.len() < MOST_CONNECTIONS;
        tokio::select! {
            accepted = listener.accept(), if has_place => match accepted {
                Ok((stream, _)) => drop(connections.spawn(connection(stream, context.clone()))),
                Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
            },
            Some(_) = connections.join_next() => {}
        }
    }
}

/// Questions of one connection, one after the other, until the client has no more.
async fn connection(mut stream: TcpStream, context: Arc<ResolverContext>) {
    while let Ok(Ok(question)) = tokio::time::timeout(SILENT_WITHIN, read_message(&mut stream)).await {
        let bytes = match context.at_once_of(&question, LONGEST) {
            Handled::Answer(bytes) => bytes,
            Handled::Silence => return,
            Handled::Later(later) => context.finished(later, &question, Carrier::Tcp, LONGEST).await,
        };
        if write_message(&mut stream, &bytes).await.is_err() {
            return;
        }
    }
}

async fn read_message(stream: &mut TcpStream) -> io::Result<Vec<u8>> {
    let length = stream.read_u16().await?;
    let mut message = vec![0; usize::from(length)];
    stream.read_exact(&mut message).await?;
    Ok(message)
}

async fn write_message(stream: &mut TcpStream, message: &[u8]) -> io::Result<()> {
    let length = u16::try_from(message.len()).map_err(io::Error::other)?;
    stream.write_all(&[&length.to_be_bytes(), message].concat()).await
}

/// How a question came, and is asked further.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Carrier {
    Udp,
    Tcp,
}

/// What can be done about a question without asking anybody.
enum Handled {
    Answer(Vec<u8>),
    Silence,
    Later(AskedElsewhere),
}

/// A question that another server is to answer.
struct AskedElsewhere {
    query: ResolverQuery,
    /// The aliases that lead to it.
    alias: Option<(ResolverReply, String)>,
}

impl ResolverContext {
    fn at_once(&self, question: &[u8]) -> Handled {
        self.at_once_of(question, 0)
    }

    /// The answer in at least so many bytes, or who else is to be asked.
    fn at_once_of(&self, question: &[u8], least: usize) -> Handled {
        let query = match read_query(question) {
            Ok(query) => query,
            Err(NotAsked::Noise) => return Handled::Silence,
            Err(NotAsked::Refused { id, code }) => return Handled::Answer(write_refusal(id, code)),
        };
        let answer = answer(&self.table.read().expect("nobody panics with it"), &query.name, query.kind);
        match answer {
            NameAnswer::Reply(reply) => Handled::Answer(write_reply(&query, &reply, query.most_bytes.max(least))),
            NameAnswer::Alias { reply, target } => {
                Handled::Later(AskedElsewhere { query, alias: Some((reply, target)) })
            }
            NameAnswer::Elsewhere => Handled::Later(AskedElsewhere { query, alias: None }),
        }
    }

    async fn finished(&self, later: AskedElsewhere, question: &[u8], carrier: Carrier, most: usize) -> Vec<u8> {
        let AskedElsewhere { query, alias } = later;
        let servers = self.servers().await;
        let Some((mut reply, target)) = alias else {
            return match self.asked_of_any(&servers, question, carrier).await {
                Some(answer) => answer,
                None => write_reply(&query, &failure(), most),
            };
        };
        let further = write_question(query.id, &target, query.kind);
        let answer = self.asked_of_any(&servers, &further, carrier).await.unwrap_or_default();
        let named = |content: RecordContent| ResolverRecord { name: target.clone(), seconds: 5, content };
        reply.answers.extend(read_addresses(&answer, query.id).into_iter().map(named));
        write_reply(&query, &reply, most)
    }

    /// The servers of this machine, without this one.
    async fn servers(&self) -> Vec<IpAddr> {
        let text = tokio::fs::read_to_string(&self.machine).await.unwrap_or_default();
        let parsed = ResolvConf::read(&text).servers.into_iter().filter_map(|server| server.parse::<IpAddr>().ok());
        parsed.filter(|server| *server != IpAddr::V4(self.own)).take(MOST_SERVERS).collect()
    }

    /// The first answer of any of them.
    async fn asked_of_any(&self, servers: &[IpAddr], question: &[u8], carrier: Carrier) -> Option<Vec<u8>> {
        for server in servers {
            let asked = ask(SocketAddr::new(*server, PORT), question, carrier);
            match tokio::time::timeout(ANSWERS_WITHIN, asked).await {
                Ok(Ok(answer)) => return Some(answer),
                Ok(Err(error)) => tracing::debug!(%server, %error, "A server of this machine could not be asked"),
                Err(_) => tracing::debug!(%server, "A server of this machine did not answer in time"),
            }
        }
        None
    }
}

fn failure() -> ResolverReply {
    let (answers, authority, additional) = (Vec::new(), Vec::new(), Vec::new());
    ResolverReply { code: ReplyCode::ServerFailure, answers, authority, additional }
}

/// Asks a server. What does not answer this question is passed over.
async fn ask(server: SocketAddr, question: &[u8], carrier: Carrier) -> io::Result<Vec<u8>> {
    if carrier == Carrier::Tcp {
        let mut stream = TcpStream::connect(server).await?;
        write_message(&mut stream, question).await?;
        return read_message(&mut stream).await;
    }
    let from = if server.is_ipv6() { "[::]:0" } else { "0.0.0.0:0" };
    let socket = UdpSocket::bind(from).await?;
    socket.connect(server).await?;
    socket.send(question).await?;
    let mut buffer = vec![0; LONGEST];
    loop {
        let length = socket.recv(&mut buffer).await?;
        if buffer[..length].get(..2) == question.get(..2) {
            return Ok(buffer[..length].to_vec());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::dns::message::kinds;
    use crate::network::testing::put_service;
    use serde_json::json;

    /// A server of this machine at an address of its own, which answers every question with one address. None where this process
    /// may not listen on the port.
    async fn machines_server() -> Option<(Ipv4Addr, AbortOnDropHandle<()>)> {
        let [_, _, high, low] = std::process::id().to_be_bytes();
        let address = Ipv4Addr::new(127, 92, high, low);
        let socket = UdpSocket::bind((address, PORT)).await.ok()?;
        let serving = tokio::spawn(async move {
            let mut buffer = [0; 512];
            while let Ok((length, client)) = socket.recv_from(&mut buffer).await {
                let query = read_query(&buffer[..length]).unwrap();
                let content = RecordContent::A(Ipv4Addr::new(192, 0, 2, 7));
                let answers = vec![ResolverRecord { name: query.name.clone(), seconds: 60, content }];
                let reply = ResolverReply { code: ReplyCode::NoError, answers, ..failure() };
                socket.send_to(&write_reply(&query, &reply, 512), client).await.unwrap();
            }
        });
        Some((address, AbortOnDropHandle::new(serving)))
    }

    async fn addresses(resolver: &Resolver, name: &str) -> Vec<RecordContent> {
        let question = write_question(9, name, kinds::A);
        let asked = ask(SocketAddr::V4(resolver.address()), &question, Carrier::Udp);
        let answer = tokio::time::timeout(Duration::from_secs(60), asked).await.unwrap().unwrap();
        read_addresses(&answer, 9)
    }

    #[tokio::test]
    async fn other_names_and_what_aliases_lead_to_are_asked_of_the_machines_servers() {
        let mut table = ServiceTable::of_node("here");
        put_service(&mut table, "far", &json!({"type": "ExternalName", "externalName": "far.example"}));
        let Some((server, _serving)) = machines_server().await else {
            assert!(!rustix::process::geteuid().is_root(), "root may listen there");
            return;
        };
        let folder = tempfile::tempdir().unwrap();
        let machine = folder.path().join("resolv.conf");
        std::fs::write(&machine, format!("nameserver {server}\n")).unwrap();

        let resolver = Resolver::listen(Arc::new(RwLock::new(table)), machine).await.unwrap();

        let there = [RecordContent::A(Ipv4Addr::new(192, 0, 2, 7))];
        assert_eq!(addresses(&resolver, "example.com").await, there);
        assert_eq!(addresses(&resolver, "far.shop.svc.cluster.local").await, there);
    }

    #[tokio::test]
    async fn without_a_server_that_answers_other_names_cannot_be_told() {
        let table = Arc::new(RwLock::new(ServiceTable::default()));
        let resolver = Resolver::listen(table, "/does/not/exist".into()).await.unwrap();
        let question = write_question(9, "example.com", kinds::A);

        let asked = ask(SocketAddr::V4(resolver.address()), &question, Carrier::Tcp);
        let answer = tokio::time::timeout(Duration::from_secs(60), asked).await.unwrap().unwrap();

        assert_eq!(answer[3] & 0xF, 2, "SERVFAIL");
    }
}
