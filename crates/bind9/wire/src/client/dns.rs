//! One server's DNS port: who may ask it now, and the connections to it.

use std::{
    net::SocketAddr,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicU16, Ordering},
    },
    time::Duration,
};

use tokio::net::TcpStream;

use super::{
    error::{DnsError, TransportFault},
    limits::ServerLimits,
    seconds_now, stream,
    turns::Turns,
};
use crate::{
    message::{DnsMessage, ResponseCode},
    transfer::TransferFault,
    tsig::{Conversation, HmacKey, SignatureFault, VerifyError, sign_request, split},
    update::UpdateRefusal,
};

/// One server's DNS port, asked with a key or without: updates, transfers, questions.
///
/// So many operations at once have a connection each ([`ServerLimits::under_way`]); connections of updates are kept for the next
/// one. Operations of one zone that must not overtake one another are awaited one by one, or sent by
/// [`update_all`](Self::update_all).
#[derive(Debug)]
pub struct DnsClient {
    pub(super) server: SocketAddr,
    pub(super) key: Option<HmacKey>,
    pub(super) limits: ServerLimits,
    pub(super) turns: Turns,
    pub(super) questions: Turns,
    idle: Mutex<Vec<TcpStream>>,
    ids: AtomicU16,
}

impl DnsClient {
    /// The DNS port at an address. With a key everything is signed, and only what is signed with it is believed. Nothing is sent yet.
    pub fn new(server: SocketAddr, key: Option<HmacKey>, limits: ServerLimits) -> Self {
        let [turns, questions] =
            [limits.under_way, limits.questions].map(|at_once| Turns::new(at_once, limits.waiting));
        Self {
            server,
            key,
            limits,
            turns,
            questions,
            idle: Mutex::new(Vec::new()),
            ids: AtomicU16::new(rand::random()),
        }
    }

    /// Where the server is.
    pub fn server(&self) -> SocketAddr {
        self.server
    }

    /// A connection that is still open, or a new one.
    pub(super) async fn connection(&self) -> Result<TcpStream, TransportFault> {
        while let Some(kept) = self.take_idle() {
            if stream::is_fresh(&kept) {
                return Ok(kept);
            }
        }
        stream::connect(self.server, self.limits.connect).await
    }

    fn take_idle(&self) -> Option<TcpStream> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop()
    }

    /// Keeps a connection on which nothing is outstanding.
    pub(super) fn keep(&self, connection: TcpStream) {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if idle.len() < self.limits.under_way {
            idle.push(connection);
        }
    }

    /// An id that no other request has which is under way on a connection. (Datagrams have random ones.)
    pub(super) fn next_id(&self) -> u16 {
        self.ids.fetch_add(1, Ordering::Relaxed)
    }

    /// Signs a request, where there is a key.
    pub(super) fn sign(&self, message: Vec<u8>) -> (Vec<u8>, Option<Conversation>) {
        match &self.key {
            Some(key) => {
                let (message, conversation) = sign_request(message, key, seconds_now());
                (message, Some(conversation))
            }
            None => (message, None),
        }
    }
}

/// The answer without its signature, if that holds.
pub(super) fn verified(bytes: Vec<u8>, conversation: Option<&mut Conversation>) -> Result<Vec<u8>, DnsFault> {
    match conversation {
        Some(conversation) => {
            conversation.verify(&bytes, seconds_now()).map_err(|error| told_unsigned(&bytes).unwrap_or(error.into()))
        }
        None => Ok(bytes),
    }
}

/// An error that came without a signature is not to be trusted, but says more than that it has none.
fn told_unsigned(bytes: &[u8]) -> Option<DnsFault> {
    let (message, signature) = split(bytes).ok()?;
    let code = DnsMessage::read(&message).ok()?.header.code;
    (signature.is_none() && code != ResponseCode::NOERROR).then_some(DnsFault::Code(code))
}

/// Ends an operation that takes too long, whatever it is at.
pub(super) async fn in_time<T>(
    limit: Duration,
    operation: impl Future<Output = Result<T, DnsFault>>,
) -> Result<T, DnsFault> {
    tokio::time::timeout(limit, operation).await.unwrap_or(Err(TransportFault::TimedOut(limit).into()))
}

/// Why an operation failed, before it is known which server was asked what.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum DnsFault {
    Transport(TransportFault),
    Signature(SignatureFault),
    Update(UpdateRefusal, ResponseCode),
    Code(ResponseCode),
    Transfer(TransferFault),
    NotServed,
}

impl DnsFault {
    pub(super) fn at(self, server: SocketAddr, asked: String) -> DnsError {
        match self {
            Self::Transport(fault) => DnsError::Transport { server, asked, fault },
            Self::Signature(fault) => DnsError::Signature { server, asked, fault },
            Self::Update(refusal, code) => DnsError::Update { server, asked, refusal, code },
            Self::Code(code) => DnsError::Code { server, asked, code },
            Self::Transfer(fault) => DnsError::Transfer { server, asked, fault },
            Self::NotServed => DnsError::NotServed { server, asked },
        }
    }
}

impl From<TransportFault> for DnsFault {
    fn from(fault: TransportFault) -> Self {
        Self::Transport(fault)
    }
}

impl From<crate::message::MalformedMessage> for DnsFault {
    fn from(why: crate::message::MalformedMessage) -> Self {
        Self::Transport(why.into())
    }
}

impl From<TransferFault> for DnsFault {
    fn from(fault: TransferFault) -> Self {
        Self::Transfer(fault)
    }
}

impl From<VerifyError> for DnsFault {
    fn from(error: VerifyError) -> Self {
        match error {
            VerifyError::Malformed(why) => Self::Transport(why.into()),
            VerifyError::Fault(fault) => Self::Signature(fault),
        }
    }
}
