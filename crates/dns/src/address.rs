//! A text → an address of a source, and what sort of address it is.

use std::net::IpAddr;

/// An address of a source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    /// As it is written into a record.
    pub value: String,
    /// What sort of address it is.
    pub family: Family,
}

/// What sort of address, and so which record type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// IPv4, for A.
    V4,
    /// IPv6, for AAAA.
    V6,
    /// A host name, for CNAME.
    Name,
}

impl Address {
    /// Reads an IP address or a host name.
    pub fn parse(text: &str) -> Self {
        match text.parse() {
            Ok(IpAddr::V4(ip)) => Self { value: ip.to_string(), family: Family::V4 },
            Ok(IpAddr::V6(ip)) => Self { value: ip.to_string(), family: Family::V6 },
            Err(_) => Self { value: text.trim_end_matches('.').to_ascii_lowercase(), family: Family::Name },
        }
    }
}
