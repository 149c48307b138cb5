//! A zone, or the version that is there already → what a server has of it, message by message (RFC 5936, RFC 1995).

use std::time::Duration;

use tokio::{net::TcpStream, sync::OwnedSemaphorePermit, time::Instant};

use super::{
    dns::{DnsClient, DnsFault, in_time, verified},
    error::{DnsError, TransportFault},
    limits::TransferBounds,
    stream,
};
use crate::{
    message::{
        DnsMessage, DomainName, Entry, Header, LONGEST_MESSAGE, MessageBuilder, Opcode, Question, ResourceRecord,
        ResponseCode, Section, TypeCode,
    },
    transfer::{TransferEvent, TransferFault, TransferReader},
    tsig::Conversation,
    values::{Serial, Soa},
};

/// A transfer under way. One message is read at a time, when it is asked for; dropped, it ends.
#[derive(Debug)]
pub struct ZoneTransfer {
    server: std::net::SocketAddr,
    asked: String,
    connection: TcpStream,
    conversation: Option<Conversation>,
    id: u16,
    reader: TransferReader,
    bounds: TransferBounds,
    answer: Duration,
    deadline: Instant,
    records: u64,
    bytes: u64,
    is_first: bool,
    _turn: OwnedSemaphorePermit,
}

/// All of a zone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ZoneContents {
    /// Its version and who is responsible.
    pub soa: Soa,
    /// Its other records, as they came.
    pub records: Vec<ResourceRecord>,
}

impl DnsClient {
    /// Begins a transfer: of all of a zone, or of what changed since a version (then the server may still send all of it).
    pub async fn transfer(
        &self,
        zone: &DomainName,
        since: Option<Serial>,
        bounds: TransferBounds,
    ) -> Result<ZoneTransfer, DnsError> {
        portolan_core::waypoint!();
        let kind = if since.is_some() { TypeCode::IXFR } else { TypeCode::AXFR };
        let asked = format!("transferring {zone} ({kind})");
        let begun = in_time(self.limits.operation, self.begin(zone, since)).await;
        let (turn, connection, conversation, id) = begun.map_err(|fault| fault.at(self.server, asked.clone()))?;
        Ok(ZoneTransfer {
            server: self.server,
            asked,
            connection,
            conversation,
            id,
            reader: TransferReader::new(zone.clone(), since),
            bounds,
            answer: self.limits.answer,
            deadline: Instant::now() + bounds.time,
            records: 0,
            bytes: 0,
            is_first: true,
            _turn: turn,
        })
    }

    /// All of a zone, in memory.
    pub async fn contents(&self, zone: &DomainName, bounds: TransferBounds) -> Result<ZoneContents, DnsError> {
        let mut transfer = self.transfer(zone, None, bounds).await?;
        let mut contents = ZoneContentsBuilder::default();
        while let Some(events) = transfer.next().await? {
            for event in events {
                contents.take(event);
            }
        }
        contents
            .finish()
            .ok_or_else(|| DnsFault::Transfer(TransferFault::NoSoa).at(self.server, transfer.asked.clone()))
    }

    async fn begin(
        &self,
        zone: &DomainName,
        since: Option<Serial>,
    ) -> Result<(OwnedSemaphorePermit, TcpStream, Option<Conversation>, u16), DnsFault> {
        let turn = self.turns.take().await?;
        let mut connection = stream::connect(self.server, self.limits.connect).await?;
        let id = self.next_id();
        let (message, conversation) = self.sign(request(id, zone, since));
        stream::within(self.limits.answer, stream::write_message(&mut connection, &message)).await?;
        Ok((turn, connection, conversation, id))
    }
}

/// A question for all of a zone, or for what changed: then the version that is there stands in a SOA record (RFC 1995 §3).
fn request(id: u16, zone: &DomainName, since: Option<Serial>) -> Vec<u8> {
    let kind = if since.is_some() { TypeCode::IXFR } else { TypeCode::AXFR };
    let question = Question::of(zone.clone(), kind);
    let mut builder = MessageBuilder::new(Header::asking(id, Opcode::QUERY), Some(&question));
    if let Some(serial) = since {
        let root = DomainName::root;
        let soa = Soa { primary: root(), mailbox: root(), serial, refresh: 0, retry: 0, expire: 0, negative_ttl: 0 };
        let record = ResourceRecord { name: zone.clone(), kind: TypeCode::SOA, ttl: 0, data: soa.to_data() };
        let fits = builder.push_within(Section::Authority, &record.into(), LONGEST_MESSAGE);
        debug_assert!(fits, "a question is short");
    }
    builder.finish()
}

impl ZoneTransfer {
    /// What the next messages say, or nothing after the last one. Nothing is handed out before a signature covers it, where there is a
    /// key. An error ends the transfer.
    pub async fn next(&mut self) -> Result<Option<Vec<TransferEvent>>, DnsError> {
        if self.reader.is_complete() {
            return Ok(None);
        }
        let fault = match tokio::time::timeout_at(self.deadline, self.next_sealed()).await {
            // A server that always has more to say is always ready, and would never be late.
            Ok(Ok(events)) if Instant::now() < self.deadline => return Ok(Some(events)),
            Ok(Err(fault)) => fault,
            _ => TransportFault::TimedOut(self.bounds.time).into(),
        };
        Err(fault.at(self.server, self.asked.clone()))
    }

    async fn next_sealed(&mut self) -> Result<Vec<TransferEvent>, DnsFault> {
        let mut events = Vec::new();
        loop {
            let bytes = stream::within(self.answer, stream::read_message(&mut self.connection)).await?;
            self.count(bytes.len(), 0)?;
            let message = DnsMessage::read(&verified(bytes, self.conversation.as_mut())?)?;
            self.read(message, &mut events)?;
            let is_sealed = self.conversation.as_ref().is_none_or(Conversation::is_sealed);
            if is_sealed && (!events.is_empty() || self.reader.is_complete()) {
                return Ok(events);
            }
        }
    }

    fn read(&mut self, message: DnsMessage, events: &mut Vec<TransferEvent>) -> Result<(), DnsFault> {
        let DnsMessage { header, answers, .. } = message;
        if !header.is_answer || header.id != self.id || header.opcode != Opcode::QUERY {
            return Err(TransportFault::Unexpected.into());
        }
        if header.code != ResponseCode::NOERROR {
            return Err(DnsFault::Code(header.code));
        }
        if std::mem::take(&mut self.is_first) && answers.is_empty() {
            return Err(TransferFault::NoSoa.into());
        }
        self.count(0, answers.len())?;
        let records: Vec<ResourceRecord> = answers.into_iter().filter_map(Entry::into_record).collect();
        let count = records.len();
        for (at, record) in records.into_iter().enumerate() {
            self.reader.take(record, at + 1 == count, events)?;
        }
        Ok(())
    }

    fn count(&mut self, bytes: usize, records: usize) -> Result<(), TransportFault> {
        self.bytes += bytes as u64;
        self.records += records as u64;
        if self.bytes > self.bounds.bytes {
            return Err(TransportFault::TooMuch("the zone has more bytes than are taken"));
        }
        if self.records > self.bounds.records {
            return Err(TransportFault::TooMuch("the zone has more records than are taken"));
        }
        Ok(())
    }
}

#[derive(Default)]
struct ZoneContentsBuilder {
    soa: Option<Soa>,
    records: Vec<ResourceRecord>,
}

impl ZoneContentsBuilder {
    fn take(&mut self, event: TransferEvent) {
        match event {
            TransferEvent::Whole(soa) => self.soa = Some(soa),
            TransferEvent::Added(record) => self.records.push(record),
            _ => {}
        }
    }

    fn finish(self) -> Option<ZoneContents> {
        Some(ZoneContents { soa: self.soa?, records: self.records })
    }
}
