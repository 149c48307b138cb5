//! Why an operation failed, by what is to be done about it. Every message says which server, and what it was asked.

use std::{io, net::SocketAddr, time::Duration};

use portolan_core::Class;

use crate::{
    message::{MalformedMessage, ResponseCode},
    rndc::RndcRefusal,
    transfer::TransferFault,
    tsig::SignatureFault,
    update::UpdateRefusal,
};

/// Why nothing useful came back.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TransportFault {
    /// There is no connection to be had.
    #[error("cannot be reached: {0}")]
    Unreachable(io::ErrorKind),
    /// It took too long. Whether it was done is not known.
    #[error("no answer within {0:?}")]
    TimedOut(Duration),
    /// The connection ended before the answer. Whether it was done is not known.
    #[error("closed the connection before it answered")]
    Closed,
    /// What came is no answer.
    #[error("answered what cannot be read: {0}")]
    Rubbish(MalformedMessage),
    /// What came answers something else.
    #[error("answered what it was not asked")]
    Unexpected,
    /// What came is more than is taken.
    #[error("has more to say than is taken: {0}")]
    TooMuch(&'static str),
    /// What was to be sent cannot be.
    #[error("was not asked, for {0}")]
    NotSent(&'static str),
    /// So much is waiting for this server already that this was not even tried.
    #[error("has so much to do already that this was not sent")]
    Busy,
}

impl TransportFault {
    /// Whether it may have happened all the same.
    pub fn may_have_happened(&self) -> bool {
        matches!(self, Self::TimedOut(_) | Self::Closed | Self::Rubbish(_) | Self::Unexpected)
    }

    pub(crate) fn of(error: &io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::UnexpectedEof
            | io::ErrorKind::ConnectionReset
            | io::ErrorKind::ConnectionAborted
            | io::ErrorKind::BrokenPipe => Self::Closed,
            kind => Self::Unreachable(kind),
        }
    }
}

impl From<MalformedMessage> for TransportFault {
    fn from(why: MalformedMessage) -> Self {
        Self::Rubbish(why)
    }
}

/// Why a command failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RndcError {
    /// Nothing useful came back.
    #[error("{verb} at {server}: the control channel {fault}")]
    Transport {
        /// The server.
        server: SocketAddr,
        /// The command's first word.
        verb: &'static str,
        /// What happened.
        fault: TransportFault,
    },
    /// The server hung up on our first word: it does not know the key or has another secret or algorithm for it, its clock differs
    /// by more than five minutes, or it allows this address nothing. It does not say which.
    #[error(
        "{verb} at {server}: the control channel does not take the key {key}: compare secret, algorithm and clocks, and `controls` in the server's configuration"
    )]
    KeyRefused {
        /// The server.
        server: SocketAddr,
        /// The command's first word.
        verb: &'static str,
        /// The key's name.
        key: String,
    },
    /// The answer was signed with another key.
    #[error("{verb} at {server}: the answer is not signed by the key {key}: something else listens there")]
    Forged {
        /// The server.
        server: SocketAddr,
        /// The command's first word.
        verb: &'static str,
        /// The key's name.
        key: String,
    },
    /// The server says no.
    #[error("{verb} at {server}: {said}")]
    Refused {
        /// The server.
        server: SocketAddr,
        /// The command's first word.
        verb: &'static str,
        /// What is to be done about it.
        refusal: RndcRefusal,
        /// The server's words.
        said: String,
    },
}

impl RndcError {
    /// The server's own no, if it was one.
    pub fn refusal(&self) -> Option<RndcRefusal> {
        match self {
            Self::Refused { refusal, .. } => Some(*refusal),
            _ => None,
        }
    }

    /// When another try makes sense.
    pub fn class(&self) -> Class {
        match self {
            Self::Transport { fault: TransportFault::TooMuch(_) | TransportFault::NotSent(_), .. } => Class::Invalid,
            Self::Transport { .. } => Class::Transient,
            Self::KeyRefused { .. } | Self::Forged { .. } => Class::Denied,
            Self::Refused { refusal, .. } => refusal.class(),
        }
    }
}

/// Why an update, a transfer or a question failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DnsError {
    /// Nothing useful came back.
    #[error("{asked} at {server}: the server {fault}")]
    Transport {
        /// The server.
        server: SocketAddr,
        /// What it was asked.
        asked: String,
        /// What happened.
        fault: TransportFault,
    },
    /// The server does not take our signature, or we do not take its.
    #[error("{asked} at {server}: {fault}")]
    Signature {
        /// The server.
        server: SocketAddr,
        /// What it was asked.
        asked: String,
        /// What is wrong with it.
        fault: SignatureFault,
    },
    /// The server does not make the update.
    #[error("{asked} at {server}: {code}")]
    Update {
        /// The server.
        server: SocketAddr,
        /// What it was asked.
        asked: String,
        /// What is to be done about it.
        refusal: UpdateRefusal,
        /// The code it answered.
        code: ResponseCode,
    },
    /// The server answers a question or a transfer with an error.
    #[error("{asked} at {server}: {code}")]
    Code {
        /// The server.
        server: SocketAddr,
        /// What it was asked.
        asked: String,
        /// The code it answered.
        code: ResponseCode,
    },
    /// What came is no transfer of the zone.
    #[error("{asked} at {server}: {fault}")]
    Transfer {
        /// The server.
        server: SocketAddr,
        /// What it was asked.
        asked: String,
        /// What is wrong with it.
        fault: TransferFault,
    },
    /// The server answers, but not with its own SOA record: it does not have the zone.
    #[error("{asked} at {server}: the server does not have the zone")]
    NotServed {
        /// The server.
        server: SocketAddr,
        /// What it was asked.
        asked: String,
    },
}

impl DnsError {
    /// Why an update was refused, if it was.
    pub fn update_refusal(&self) -> Option<UpdateRefusal> {
        match self {
            Self::Update { refusal, .. } => Some(*refusal),
            _ => None,
        }
    }

    /// What is wrong with a signature, if something is.
    pub fn signature_fault(&self) -> Option<&SignatureFault> {
        match self {
            Self::Signature { fault, .. } => Some(fault),
            _ => None,
        }
    }

    /// The code that the server answered, if it answered one.
    pub fn code(&self) -> Option<ResponseCode> {
        match self {
            Self::Update { code, .. } | Self::Code { code, .. } => Some(*code),
            _ => None,
        }
    }

    /// When another try makes sense.
    pub fn class(&self) -> Class {
        match self {
            Self::Transport { fault: TransportFault::TooMuch(_) | TransportFault::NotSent(_), .. } => Class::Invalid,
            Self::Signature { .. } | Self::Code { code: ResponseCode::REFUSED, .. } => Class::Denied,
            Self::Update { refusal, .. } => class_of_update(*refusal),
            Self::Code { code: ResponseCode::NOTAUTH, .. } | Self::NotServed { .. } => Class::Waiting,
            Self::Transport { .. } | Self::Code { .. } | Self::Transfer { .. } => Class::Transient,
        }
    }
}

fn class_of_update(refusal: UpdateRefusal) -> Class {
    match refusal {
        UpdateRefusal::Refused => Class::Denied,
        UpdateRefusal::NotAuthoritative | UpdateRefusal::Prerequisite(_) => Class::Waiting,
        UpdateRefusal::NotInZone | UpdateRefusal::NotUnderstood => Class::Invalid,
        UpdateRefusal::ServerFailed | UpdateRefusal::Other(_) => Class::Transient,
    }
}
