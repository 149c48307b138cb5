//! The types of DNS records that can be written.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A type of DNS record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
#[expect(missing_docs, reason = "the names are those of the DNS")]
pub enum RecordType {
    A,
    Aaaa,
    Cname,
    Txt,
    Mx,
    Ns,
    Srv,
    Caa,
    Cert,
    Dnskey,
    Ds,
    Https,
    Loc,
    Naptr,
    Smimea,
    Sshfp,
    Svcb,
    Tlsa,
    Uri,
    /// A type that stands in a zone and that we do not write.
    #[serde(skip)]
    #[schemars(skip)]
    Other,
}

impl RecordType {
    /// Every type that can be written.
    pub const ALL: [Self; 19] = [
        Self::A,
        Self::Aaaa,
        Self::Cname,
        Self::Txt,
        Self::Mx,
        Self::Ns,
        Self::Srv,
        Self::Caa,
        Self::Cert,
        Self::Dnskey,
        Self::Ds,
        Self::Https,
        Self::Loc,
        Self::Naptr,
        Self::Smimea,
        Self::Sshfp,
        Self::Svcb,
        Self::Tlsa,
        Self::Uri,
    ];

    /// Reads a type by its name in capitals.
    pub fn parse(text: &str) -> Self {
        Self::ALL.into_iter().find(|kind| kind.as_str() == text).unwrap_or(Self::Other)
    }

    /// The type's name in capitals.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::A => "A",
            Self::Aaaa => "AAAA",
            Self::Cname => "CNAME",
            Self::Txt => "TXT",
            Self::Mx => "MX",
            Self::Ns => "NS",
            Self::Srv => "SRV",
            Self::Caa => "CAA",
            Self::Cert => "CERT",
            Self::Dnskey => "DNSKEY",
            Self::Ds => "DS",
            Self::Https => "HTTPS",
            Self::Loc => "LOC",
            Self::Naptr => "NAPTR",
            Self::Smimea => "SMIMEA",
            Self::Sshfp => "SSHFP",
            Self::Svcb => "SVCB",
            Self::Tlsa => "TLSA",
            Self::Uri => "URI",
            Self::Other => "OTHER",
        }
    }

    /// Whether it says where a name leads, an address or an alias, so that a proxy can stand in front of it.
    pub fn is_proxiable(self) -> bool {
        matches!(self, Self::A | Self::Aaaa | Self::Cname)
    }

    /// Whether its value has parts ([`Data`](crate::Data)) instead of one text.
    pub fn has_data(self) -> bool {
        !matches!(self, Self::A | Self::Aaaa | Self::Cname | Self::Txt | Self::Mx | Self::Ns | Self::Other)
    }

    /// Whether the priority stands beside the value, not in it.
    pub fn has_priority(self) -> bool {
        matches!(self, Self::Mx | Self::Uri)
    }
}

impl fmt::Display for RecordType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_type_is_read_as_it_is_written() {
        for kind in RecordType::ALL {
            assert_eq!(RecordType::parse(kind.as_str()), kind);
            assert_eq!(serde_json::to_value(kind).unwrap(), kind.as_str());
        }
        assert_eq!(RecordType::parse("OPENPGPKEY"), RecordType::Other);
    }
}
