//! A zone's key → what its parent says of it: the tag, and the DS record. Pure.

use sha2::{Digest, Sha256, Sha384};

use crate::message::{DomainName, RecordData};

/// Flag of a key that signs the zone (RFC 4034 §2.1.1), and of one that a parent is to know (RFC 4034 §2.1.1, SEP).
const ZONE_KEY: u16 = 0x0100;
const ENTRY_POINT: u16 = 0x0001;

/// How a DS record is made of a key (RFC 4509, RFC 6605). SHA-1 is left out: RFC 8624 §3.3 says not to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are those of the algorithms")]
pub enum DsDigest {
    Sha256,
    Sha384,
}

impl RecordData {
    /// The tag of a DNSKEY record (RFC 4034 appendix B).
    pub fn key_tag(&self) -> u16 {
        let weighed = |(at, byte): (usize, &u8)| if at % 2 == 0 { u32::from(*byte) << 8 } else { u32::from(*byte) };
        // A record's data has at most 65,535 bytes, so the sum stays below 2^31.
        let sum: u32 = self.as_bytes().iter().enumerate().map(weighed).sum();
        let [_, _, high, low] = (sum + (sum >> 16)).to_be_bytes();
        u16::from_be_bytes([high, low])
    }

    /// Whether a DNSKEY record is one that the parent zone is to know: it signs, and is an entry point.
    pub fn is_entry_point(&self) -> bool {
        let flags = self.as_bytes().first_chunk().map_or(0, |flags| u16::from_be_bytes(*flags));
        flags & ZONE_KEY != 0 && flags & ENTRY_POINT != 0
    }

    /// The DS record that a parent zone has for a DNSKEY record (RFC 4034 §5.1.4). `None` where the data is too short for one.
    pub fn to_ds(&self, zone: &DomainName, digest: DsDigest) -> Option<Self> {
        let algorithm = *self.as_bytes().get(3)?;
        let signed = [zone.canonical().wire(), self.as_bytes()].concat();
        let (number, hash) = match digest {
            DsDigest::Sha256 => (2, Sha256::digest(signed).to_vec()),
            DsDigest::Sha384 => (4, Sha384::digest(signed).to_vec()),
        };
        Some(Self([&self.key_tag().to_be_bytes()[..], &[algorithm, number], &hash].concat().into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TypeCode;

    #[test]
    fn a_ds_record_is_that_of_the_rfcs() {
        // RFC 6605 §6.1 and §6.2: a key of ECDSAP256SHA256 and its DS.
        let key = "257 3 13 GojIhhXUN/u4v54ZQqGSnyhWJwaubCvTmeexv7bR6edbkrSqQpF64cYbcB7wNcP+e+MAnLr+Wi9xMWyQLc8NAA==";
        let key = RecordData::parse(TypeCode::DNSKEY, key).unwrap();
        let zone = DomainName::parse("Example.NET").unwrap();

        let ds = key.to_ds(&zone, DsDigest::Sha256).unwrap();

        assert_eq!(key.key_tag(), 55_648);
        assert!(key.is_entry_point());
        assert_eq!(
            ds.to_text(TypeCode::DS),
            "55648 13 2 b4c8c1fe2e7477127b27115656ad6256f424625bf5c1e2770ce6d6e37df61d17"
        );
        assert_eq!(RecordData::from_bytes(TypeCode::DNSKEY, &[1, 1]).unwrap().to_ds(&zone, DsDigest::Sha384), None);
    }
}
