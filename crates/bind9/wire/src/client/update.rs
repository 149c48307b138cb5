//! Updates of a zone → whether each was made (RFC 2136), over TCP, in their order.

use std::collections::VecDeque;

use tokio::net::TcpStream;

use super::{
    dns::{DnsClient, DnsFault, in_time, verified},
    error::{DnsError, TransportFault},
    stream,
};
use crate::{
    message::{DnsMessage, Opcode},
    tsig::Conversation,
    update::{UpdateRefusal, ZoneUpdate},
};

/// An update that is sent and not answered yet.
struct Outstanding {
    id: u16,
    at: usize,
    conversation: Option<Conversation>,
}

impl DnsClient {
    /// Sends one update: it is made as a whole, or not at all. An update without a key is refused before it is sent.
    ///
    /// NOERROR does not prove that the zone is as asked: named leaves out some changes without a word, as a CNAME beside other data
    /// or the last NS of an apex (tried: 9.18.49). Read back what matters.
    pub async fn update(&self, update: &ZoneUpdate) -> Result<(), DnsError> {
        let results = self.update_all(std::slice::from_ref(update)).await;
        results.into_iter().next().unwrap_or(Ok(()))
    }

    /// Sends updates in their order, the next ones while the first are still being made; each is made whatever became of others.
    ///
    /// Once the connection fails, what was not answered by then is reported with that fault; see
    /// [`TransportFault::may_have_happened`].
    pub async fn update_all(&self, updates: &[ZoneUpdate]) -> Vec<Result<(), DnsError>> {
        portolan_core::waypoint!();
        let mut results: Vec<Option<Result<(), DnsFault>>> = updates.iter().map(|_| None).collect();
        let broken = self.send_all(updates, &mut results).await.err();
        let left = broken.unwrap_or(DnsFault::Transport(TransportFault::Closed));
        let named = |(update, result): (&ZoneUpdate, Option<Result<(), DnsFault>>)| {
            let result = result.unwrap_or_else(|| Err(left.clone()));
            result.map_err(|fault| fault.at(self.server, format!("updating {}", update.zone)))
        };
        updates.iter().zip(results).map(named).collect()
    }

    async fn send_all(
        &self,
        updates: &[ZoneUpdate],
        results: &mut [Option<Result<(), DnsFault>>],
    ) -> Result<(), DnsFault> {
        let (_turn, mut connection) = in_time(self.limits.operation, async {
            let turn = self.turns.take().await?;
            Ok((turn, self.connection().await?))
        })
        .await?;
        let mut outstanding = VecDeque::new();
        let mut next = 0;
        while next < updates.len() || !outstanding.is_empty() {
            if next < updates.len() && outstanding.len() < self.limits.pipelined.max(1) {
                match self.send(&mut connection, &updates[next], next).await? {
                    Ok(sent) => outstanding.push_back(sent),
                    Err(fault) => results[next] = Some(Err(fault)),
                }
                next += 1;
                continue;
            }
            let (at, result) = self.receive(&mut connection, &mut outstanding).await?;
            results[at] = Some(result);
        }
        self.keep(connection);
        Ok(())
    }

    /// Sends one; what is wrong with it alone is not what is wrong with the connection.
    async fn send(
        &self,
        connection: &mut TcpStream,
        update: &ZoneUpdate,
        at: usize,
    ) -> Result<Result<Outstanding, DnsFault>, DnsFault> {
        let id = self.next_id();
        let key = self.key.as_ref();
        let Some(message) = key.and_then(|key| update.message(id, key).ok()) else {
            let why = if key.is_none() {
                "an update needs a key"
            } else {
                "an update has at most 65,535 bytes with its signature"
            };
            return Ok(Err(TransportFault::NotSent(why).into()));
        };
        let (message, conversation) = self.sign(message);
        stream::within(self.limits.answer, stream::write_message(connection, &message)).await?;
        Ok(Ok(Outstanding { id, at, conversation }))
    }

    async fn receive(
        &self,
        connection: &mut TcpStream,
        outstanding: &mut VecDeque<Outstanding>,
    ) -> Result<(usize, Result<(), DnsFault>), DnsFault> {
        let bytes = stream::within(self.limits.answer, stream::read_message(connection)).await?;
        let id = bytes.first_chunk().map_or(0, |id| u16::from_be_bytes(*id));
        let place = outstanding.iter().position(|sent| sent.id == id);
        let sent = place.and_then(|place| outstanding.remove(place));
        let mut sent = sent.ok_or(TransportFault::Unexpected)?;
        Ok((sent.at, result_of(bytes, &mut sent)))
    }
}

fn result_of(bytes: Vec<u8>, sent: &mut Outstanding) -> Result<(), DnsFault> {
    let message = DnsMessage::read(&verified(bytes, sent.conversation.as_mut())?)?;
    if !message.header.is_answer || message.header.opcode != Opcode::UPDATE {
        return Err(TransportFault::Unexpected.into());
    }
    match UpdateRefusal::of(message.header.code) {
        None => Ok(()),
        Some(refusal) => Err(DnsFault::Update(refusal, message.header.code)),
    }
}
