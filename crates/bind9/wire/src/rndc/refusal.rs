//! What a server says when it does not do what a command asks → what is to be done about it. Pure.

use portolan_core::Class;

/// Why a server refuses a command, by what a reconciler does about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RndcRefusal {
    /// The server does not have the zone.
    ZoneNotFound,
    /// The server has the zone already.
    AlreadyExists,
    /// The file that the zone is to be read from is not there.
    FileNotFound,
    /// What stands in the zone's file is no zone that may be served, as an apex NS in it without an address.
    BadZone,
    /// The server has the zone but nothing to answer with: a secondary that was never transferred, a file that did not load.
    NotLoaded,
    /// The configuration is not understood, or names what is not there (a policy, a key, a list). named says more in its log alone.
    BadConfiguration,
    /// The zone is not of the kind that the command is for: `refresh` of a primary, `freeze` of a zone without updates.
    WrongKind,
    /// The zone is frozen already.
    AlreadyFrozen,
    /// The server does not take zones by command (`allow-new-zones no`), or nobody may do that here.
    NotAllowed,
    /// The server does not know the command.
    UnknownCommand,
    /// The key that is to be replaced is not there.
    KeyNotFound,
    /// Anything else.
    Other,
}

impl RndcRefusal {
    /// Reads the two texts of an answer. named has numbers too, but they are those of its own library and differ from version to
    /// version; the texts have stood since 9.11 (tried: 9.18.49).
    pub(crate) fn of(verb: &str, error: &str, text: &str) -> Self {
        let (error, text) = (error.to_ascii_lowercase(), text.to_ascii_lowercase());
        let says = |words: &str| error.contains(words) || text.contains(words);
        let is_configuration = matches!(verb, "addzone" | "modzone");
        if says("already exists") {
            Self::AlreadyExists
        } else if says("file not found") {
            Self::FileNotFound
        } else if says("bad zone") || says("unexpected end of input") || (says("dns_zone_load") && is_configuration) {
            Self::BadZone
        } else if says("zone not loaded") || error == "not loaded" {
            Self::NotLoaded
        } else if says("configure_zone failed") || (is_configuration && error == "failure") {
            // `addzone` with an unknown policy is answered "not found", with this text behind it.
            Self::BadConfiguration
        } else if says("not found") {
            Self::ZoneNotFound
        } else if says("already frozen") {
            Self::AlreadyFrozen
        } else if says("not dynamic")
            || says("not primary")
            || says("not a secondary")
            || says("inappropriate zone type")
        {
            Self::WrongKind
        } else if says("unknown command") {
            Self::UnknownCommand
        } else if says("not allowed") || says("permission denied") || says("read-only") {
            Self::NotAllowed
        } else if says("no matching key") {
            Self::KeyNotFound
        } else if is_configuration
            && (says("syntax") || says("unexpected token") || says("bad number") || says("expected") || says("parse"))
        {
            Self::BadConfiguration
        } else {
            Self::Other
        }
    }

    /// When another try makes sense.
    pub fn class(self) -> Class {
        match self {
            Self::ZoneNotFound | Self::AlreadyExists | Self::FileNotFound | Self::NotLoaded | Self::AlreadyFrozen => {
                Class::Waiting
            }
            Self::BadZone | Self::BadConfiguration | Self::WrongKind | Self::UnknownCommand | Self::KeyNotFound => {
                Class::Invalid
            }
            Self::NotAllowed => Class::Denied,
            Self::Other => Class::Transient,
        }
    }
}
