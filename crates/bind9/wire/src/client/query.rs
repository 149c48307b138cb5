//! A question → its answer: by datagram, again where none comes, and by connection where it does not fit (RFC 1035 §4.2).

use std::{net::SocketAddr, sync::Arc};

use futures::{Stream, StreamExt, stream as streams};
use tokio::net::UdpSocket;

use super::{
    dns::{DnsClient, DnsFault, in_time, verified},
    error::{DnsError, TransportFault},
    stream,
};
use crate::{
    message::{
        DnsMessage, DomainName, Entry, Header, LONGEST_MESSAGE, MessageBuilder, Opcode, Question, ResourceRecord,
        ResponseCode, Section, TypeCode,
    },
    values::Soa,
};

/// Bytes of a datagram that no network takes apart (DNS Flag Day 2020); RFC 6891 says how a server is told.
const DATAGRAM: u16 = 1_232;

/// What a server answers to a question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DnsAnswer {
    /// How it went; NXDOMAIN is an answer too.
    pub code: ResponseCode,
    /// Whether the server has the zone and did not ask others.
    pub is_authoritative: bool,
    /// The records.
    pub records: Vec<ResourceRecord>,
}

impl DnsClient {
    /// Asks for the records of a name and a type.
    pub async fn query(&self, name: &DomainName, kind: TypeCode) -> Result<DnsAnswer, DnsError> {
        let question = Question::of(name.clone(), kind);
        let asked = || format!("asking for {name} {kind}");
        in_time(self.limits.operation, self.ask(&question)).await.map_err(|fault| fault.at(self.server, asked()))
    }

    /// Asks for a zone's SOA record: [`DnsError::NotServed`] where the server has no such zone, [`DnsError::Code`] with SERVFAIL
    /// where it has nothing to answer with yet, and with REFUSED where it has no such zone, or does not tell us.
    pub async fn soa(&self, zone: &DomainName) -> Result<Soa, DnsError> {
        portolan_core::waypoint!();
        let question = Question::of(zone.clone(), TypeCode::SOA);
        let operation = async { soa_in(self.ask(&question).await?, zone) };
        in_time(self.limits.operation, operation)
            .await
            .map_err(|fault| fault.at(self.server, format!("asking for the serial of {zone}")))
    }

    async fn ask(&self, question: &Question) -> Result<DnsAnswer, DnsFault> {
        let _turn = self.questions.take().await?;
        let message = match self.ask_by_datagram(question).await? {
            message if message.header.is_truncated => self.ask_by_connection(question).await?,
            message => message,
        };
        let DnsMessage { header, answers, .. } = message;
        let records = answers.into_iter().filter_map(Entry::into_record).collect();
        Ok(DnsAnswer { code: header.code, is_authoritative: header.is_authoritative, records })
    }

    /// A socket of its own for each question: its port, which nobody can guess, guards the answer where there is no key.
    async fn ask_by_datagram(&self, question: &Question) -> Result<DnsMessage, DnsFault> {
        let local: SocketAddr = if self.server.is_ipv4() { ([0; 4], 0).into() } else { ([0_u16; 8], 0).into() };
        let unreachable = |error: std::io::Error| TransportFault::Unreachable(error.kind());
        let socket = UdpSocket::bind(local).await.map_err(unreachable)?;
        socket.connect(self.server).await.map_err(unreachable)?;
        for _ in 0..self.limits.datagrams.max(1) {
            match in_time(self.limits.datagram, self.send_datagram(&socket, question)).await {
                // Nobody listens there: the next try says so too, or finds that somebody does now.
                Err(DnsFault::Transport(TransportFault::TimedOut(_))) => {}
                answered => return answered,
            }
        }
        Err(TransportFault::TimedOut(self.limits.datagram * self.limits.datagrams.max(1)).into())
    }

    /// What is no answer to this question is not looked at: anybody can send a datagram.
    async fn send_datagram(&self, socket: &UdpSocket, question: &Question) -> Result<DnsMessage, DnsFault> {
        let id = rand::random();
        let (message, mut conversation) = self.sign(question_message(id, question));
        let fault = |error: std::io::Error| TransportFault::Unreachable(error.kind());
        socket.send(&message).await.map_err(fault)?;
        let mut buffer = [0; DATAGRAM as usize];
        loop {
            let length = socket.recv(&mut buffer).await.map_err(fault)?;
            let bytes = &buffer[..length];
            if bytes.first_chunk() != Some(&u16::to_be_bytes(id)) {
                continue;
            }
            let message = DnsMessage::read(&verified(bytes.to_vec(), conversation.as_mut())?)?;
            if answers(&message, question) {
                return Ok(message);
            }
        }
    }

    async fn ask_by_connection(&self, question: &Question) -> Result<DnsMessage, DnsFault> {
        let mut connection = self.connection().await?;
        let (message, mut conversation) = self.sign(question_message(self.next_id(), question));
        let exchange = async {
            stream::write_message(&mut connection, &message).await?;
            stream::read_message(&mut connection).await
        };
        let bytes = stream::within(self.limits.answer, exchange).await?;
        let message = DnsMessage::read(&verified(bytes, conversation.as_mut())?)?;
        if !answers(&message, question) {
            return Err(TransportFault::Unexpected.into());
        }
        self.keep(connection);
        Ok(message)
    }
}

/// Asks many servers for serials, so many at once; answers come as they come.
pub fn soa_of_all(
    asked: impl IntoIterator<Item = (Arc<DnsClient>, DomainName)>,
    at_once: usize,
) -> impl Stream<Item = (SocketAddr, DomainName, Result<Soa, DnsError>)> {
    let ask = |(client, zone): (Arc<DnsClient>, DomainName)| async move {
        let soa = client.soa(&zone).await;
        (client.server(), zone, soa)
    };
    streams::iter(asked).map(ask).buffer_unordered(at_once.max(1))
}

fn question_message(id: u16, question: &Question) -> Vec<u8> {
    let mut builder = MessageBuilder::new(Header::asking(id, Opcode::QUERY), Some(question));
    let room = Entry::empty(DomainName::root(), TypeCode::OPT, DATAGRAM);
    let fits = builder.push_within(Section::Additional, &room, LONGEST_MESSAGE);
    debug_assert!(fits, "a question is short");
    builder.finish()
}

fn answers(message: &DnsMessage, question: &Question) -> bool {
    let is_refusal = message.questions.is_empty() && message.header.code != ResponseCode::NOERROR;
    message.header.is_answer
        && message.header.opcode == Opcode::QUERY
        && (is_refusal || message.questions == std::slice::from_ref(question))
}

fn soa_in(answer: DnsAnswer, zone: &DomainName) -> Result<Soa, DnsFault> {
    match answer.code {
        ResponseCode::NOERROR => {}
        ResponseCode::NXDOMAIN => return Err(DnsFault::NotServed),
        code => return Err(DnsFault::Code(code)),
    }
    let is_soa = |record: &&ResourceRecord| record.kind == TypeCode::SOA && record.name == *zone;
    let record = answer.records.iter().find(is_soa).filter(|_| answer.is_authoritative).ok_or(DnsFault::NotServed)?;
    Ok(Soa::read(&record.data)?)
}
