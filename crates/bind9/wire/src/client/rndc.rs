//! A command → what the server says, over one connection that lives as long as it can.

use std::{net::SocketAddr, time::Duration};

use tokio::{net::TcpStream, sync::Mutex};

use super::{
    error::{RndcError, TransportFault},
    limits::ServerLimits,
    seconds_now, stream,
    turns::Turns,
};
use crate::{
    message::DomainName,
    rndc::{
        CommandEnvelope, DnssecStatus, Frame, FrameFault, JournalFile, KnownKey, LONGEST_ANSWER, LONGEST_COMMAND,
        RndcCommand, RndcRefusal, ServerStatus, ZoneFiles, ZoneStatus, read, write,
    },
    tsig::HmacKey,
};

/// How long a server that hung up is given to be gone.
const SECOND_THOUGHT: Duration = Duration::from_millis(100);

/// One server's control channel. Commands go out one at a time, over one connection that is made when it is first needed and again
/// when it is gone; who asks while another's command is under way waits for its turn.
///
/// Every command may be repeated: what has happened already is refused as [`RndcRefusal::AlreadyExists`] or
/// [`RndcRefusal::ZoneNotFound`]. A command is never sent twice here.
#[derive(Debug)]
pub struct RndcClient {
    server: SocketAddr,
    key: HmacKey,
    limits: ServerLimits,
    turns: Turns,
    connection: Mutex<Option<ControlConnection>>,
}

/// A connection whose nonce is known.
#[derive(Debug)]
struct ControlConnection {
    stream: TcpStream,
    nonce: u32,
    serial: u32,
}

/// Why one exchange failed, before it is known which command it was.
enum Failure {
    Transport(TransportFault),
    KeyRefused,
    Forged,
}

impl From<TransportFault> for Failure {
    fn from(fault: TransportFault) -> Self {
        Self::Transport(fault)
    }
}

impl From<FrameFault> for Failure {
    fn from(fault: FrameFault) -> Self {
        match fault {
            FrameFault::Malformed(why) => Self::Transport(why.into()),
            FrameFault::Forged => Self::Forged,
        }
    }
}

impl RndcClient {
    /// The control channel at an address, spoken to with a key. Nothing is sent yet.
    pub fn new(server: SocketAddr, key: HmacKey, limits: ServerLimits) -> Self {
        let turns = Turns::new(1, limits.waiting);
        Self { server, key, limits, turns, connection: Mutex::new(None) }
    }

    /// Where the server is.
    pub fn server(&self) -> SocketAddr {
        self.server
    }

    /// Sends a command and returns the server's words.
    pub async fn call(&self, command: &RndcCommand) -> Result<String, RndcError> {
        portolan_core::waypoint!();
        let (server, verb) = (self.server, command.verb());
        let key = || self.key.name().to_string();
        let frame = self.exchange(&command.line()).await.map_err(|failure| match failure {
            Failure::Transport(fault) => RndcError::Transport { server, verb, fault },
            Failure::KeyRefused => RndcError::KeyRefused { server, verb, key: key() },
            Failure::Forged => RndcError::Forged { server, verb, key: key() },
        })?;
        match refusal_in(verb, &frame) {
            Some((refusal, said)) => Err(RndcError::Refused { server, verb, refusal, said }),
            None => Ok(frame.text.unwrap_or_default()),
        }
    }

    /// One command at a time; a connection that failed in whatever way, or whose command was given up, is not used again.
    async fn exchange(&self, line: &str) -> Result<Frame, Failure> {
        if line.len() > LONGEST_COMMAND - 1_024 {
            return Err(TransportFault::NotSent("a command has at most 31 KiB").into());
        }
        let whole = async {
            let _turn = self.turns.take().await?;
            let mut kept = self.connection.lock().await;
            let open = kept.take().filter(|connection| stream::is_fresh(&connection.stream));
            let mut connection = match open {
                Some(connection) => connection,
                None => self.connect().await?,
            };
            let frame = connection.send(line, &self.key, self.limits).await?;
            *kept = Some(connection);
            Ok(frame)
        };
        let limit = self.limits.operation;
        tokio::time::timeout(limit, whole).await.unwrap_or(Err(TransportFault::TimedOut(limit).into()))
    }

    /// A server that does not like our signature hangs up, and so does one that is just ending: only one that does it twice is said to
    /// refuse the key.
    async fn connect(&self) -> Result<ControlConnection, Failure> {
        for _ in 0..2 {
            match self.greet().await {
                Err(Failure::Transport(TransportFault::Closed)) => tokio::time::sleep(SECOND_THOUGHT).await,
                greeted => return greeted,
            }
        }
        Err(Failure::KeyRefused)
    }

    /// The first command asks for the nonce that every later one repeats.
    async fn greet(&self) -> Result<ControlConnection, Failure> {
        let stream = stream::connect(self.server, self.limits.connect).await?;
        // Serials that another connection used within the same seconds would be taken for a replay.
        let mut connection = ControlConnection { stream, nonce: 0, serial: rand::random() };
        let envelope = CommandEnvelope { serial: connection.serial, now: seconds_now(), nonce: None };
        let greeting = write("null", envelope, &self.key);
        let body = stream::within(self.limits.answer, connection.exchange(&greeting)).await?;
        let frame = read(&body, &self.key)?;
        connection.nonce = frame.nonce.ok_or(Failure::Forged)?;
        Ok(connection)
    }

    /// How the server is.
    pub async fn status(&self) -> Result<ServerStatus, RndcError> {
        Ok(ServerStatus::read(&self.call(&RndcCommand::Status).await?))
    }

    /// Makes a zone from its statement in braces. It is there, loaded, and answers when this returns; a secondary gets it later.
    pub async fn add_zone(&self, zone: &DomainName, configuration: &str) -> Result<(), RndcError> {
        self.done(RndcCommand::AddZone(zone.clone(), configuration.to_owned())).await
    }

    /// Gives a zone another configuration; what it serves and its journal stay.
    pub async fn modify_zone(&self, zone: &DomainName, configuration: &str) -> Result<(), RndcError> {
        self.done(RndcCommand::ModifyZone(zone.clone(), configuration.to_owned())).await
    }

    /// Takes a zone away.
    pub async fn delete_zone(&self, zone: &DomainName, files: ZoneFiles) -> Result<(), RndcError> {
        self.done(RndcCommand::DeleteZone(zone.clone(), files)).await
    }

    /// A zone's configuration as a statement: `zone "z" { type primary; … };`.
    pub async fn show_zone(&self, zone: &DomainName) -> Result<String, RndcError> {
        self.call(&RndcCommand::ShowZone(zone.clone())).await
    }

    /// How a zone is; one that has nothing to answer with is refused as [`RndcRefusal::NotLoaded`].
    pub async fn zone_status(&self, zone: &DomainName) -> Result<ZoneStatus, RndcError> {
        Ok(ZoneStatus::read(&self.call(&RndcCommand::ZoneStatus(zone.clone())).await?))
    }

    /// Has the server read its configuration again.
    pub async fn reconfigure(&self) -> Result<(), RndcError> {
        self.done(RndcCommand::Reconfigure).await
    }

    /// Has a secondary get all of a zone, whatever its serial is.
    pub async fn retransfer(&self, zone: &DomainName) -> Result<(), RndcError> {
        self.done(RndcCommand::Retransfer(zone.clone())).await
    }

    /// Has secondaries be told of a zone again.
    pub async fn notify(&self, zone: &DomainName) -> Result<(), RndcError> {
        self.done(RndcCommand::Notify(zone.clone())).await
    }

    /// Has a secondary look at its primaries' serial now.
    pub async fn refresh(&self, zone: &DomainName) -> Result<(), RndcError> {
        self.done(RndcCommand::Refresh(zone.clone())).await
    }

    /// Has a zone be written to its file.
    pub async fn sync(&self, zone: &DomainName, journal: JournalFile) -> Result<(), RndcError> {
        self.done(RndcCommand::Sync(zone.clone(), journal)).await
    }

    /// Has a zone be written to its file and take no updates.
    pub async fn freeze(&self, zone: &DomainName) -> Result<(), RndcError> {
        self.done(RndcCommand::Freeze(zone.clone())).await
    }

    /// Has a frozen zone be read from its file and take updates.
    pub async fn thaw(&self, zone: &DomainName) -> Result<(), RndcError> {
        self.done(RndcCommand::Thaw(zone.clone())).await
    }

    /// How a zone's keys are.
    pub async fn dnssec_status(&self, zone: &DomainName) -> Result<DnssecStatus, RndcError> {
        Ok(DnssecStatus::read(&self.call(&RndcCommand::DnssecStatus(zone.clone())).await?))
    }

    /// Has a key be replaced from now on.
    pub async fn roll_key(&self, zone: &DomainName, tag: u16) -> Result<(), RndcError> {
        self.done(RndcCommand::DnssecRollover(zone.clone(), tag)).await
    }

    /// Which keys the server knows.
    pub async fn known_keys(&self) -> Result<Vec<KnownKey>, RndcError> {
        Ok(KnownKey::read_all(&self.call(&RndcCommand::TsigList).await?))
    }

    async fn done(&self, command: RndcCommand) -> Result<(), RndcError> {
        self.call(&command).await.map(drop)
    }
}

/// `dnssec -rollover` of a key that is not there has the result of one that went well (9.18.49).
fn refusal_in(verb: &str, frame: &Frame) -> Option<(RndcRefusal, String)> {
    let text = frame.text.as_deref().unwrap_or_default();
    let error = frame.error.as_deref().unwrap_or_default();
    let hidden = verb == "dnssec" && text.starts_with("Error executing");
    if frame.result == 0 && !hidden {
        return None;
    }
    let said: Vec<&str> = [error, text].into_iter().filter(|said| !said.is_empty()).collect();
    let said = if said.is_empty() { format!("result {}", frame.result) } else { said.join(": ").replace('\n', " ") };
    Some((RndcRefusal::of(verb, error, text), said))
}

impl ControlConnection {
    async fn send(&mut self, line: &str, key: &HmacKey, limits: ServerLimits) -> Result<Frame, Failure> {
        self.serial = self.serial.wrapping_add(1);
        let envelope = CommandEnvelope { serial: self.serial, now: seconds_now(), nonce: Some(self.nonce) };
        let body = stream::within(limits.answer, self.exchange(&write(line, envelope, key))).await?;
        let frame = read(&body, key)?;
        if frame.serial == Some(self.serial) { Ok(frame) } else { Err(Failure::Forged) }
    }

    async fn exchange(&mut self, bytes: &[u8]) -> Result<Vec<u8>, TransportFault> {
        stream::write_all(&mut self.stream, bytes).await?;
        stream::read_frame(&mut self.stream, LONGEST_ANSWER).await
    }
}
