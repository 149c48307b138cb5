//! The number of a record type ↔ its name, for every type there is; unknown ones are `TYPE65280` (RFC 3597 §5).

use std::{fmt, str::FromStr};

use portolan_core::InvalidName;
use portolan_dns::RecordType;

/// A type of record as the wire has it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TypeCode(pub u16);

macro_rules! types {
    ($($name:ident = $number:literal $text:literal $(is $type:ident)?;)+) => {
        #[expect(missing_docs, reason = "the names are those of the DNS")]
        impl TypeCode {
            $(pub const $name: Self = Self($number);)+

            const NAMES: &'static [(Self, &'static str)] = &[$((Self::$name, $text),)+];

            /// The type as the vocabulary of records has it.
            pub fn record_type(self) -> RecordType {
                match self {
                    $($(Self::$name => RecordType::$type,)?)+
                    _ => RecordType::Other,
                }
            }

            /// The number of a type that can be written.
            pub fn of(kind: RecordType) -> Option<Self> {
                match kind {
                    $($(RecordType::$type => Some(Self::$name),)?)+
                    RecordType::Other => None,
                }
            }
        }
    };
}

types! {
    A = 1 "A" is A;
    NS = 2 "NS" is Ns;
    CNAME = 5 "CNAME" is Cname;
    SOA = 6 "SOA";
    PTR = 12 "PTR";
    HINFO = 13 "HINFO";
    MX = 15 "MX" is Mx;
    TXT = 16 "TXT" is Txt;
    RP = 17 "RP";
    AFSDB = 18 "AFSDB";
    AAAA = 28 "AAAA" is Aaaa;
    LOC = 29 "LOC" is Loc;
    SRV = 33 "SRV" is Srv;
    NAPTR = 35 "NAPTR" is Naptr;
    KX = 36 "KX";
    CERT = 37 "CERT" is Cert;
    DNAME = 39 "DNAME";
    OPT = 41 "OPT";
    DS = 43 "DS" is Ds;
    SSHFP = 44 "SSHFP" is Sshfp;
    RRSIG = 46 "RRSIG";
    NSEC = 47 "NSEC";
    DNSKEY = 48 "DNSKEY" is Dnskey;
    NSEC3 = 50 "NSEC3";
    NSEC3PARAM = 51 "NSEC3PARAM";
    TLSA = 52 "TLSA" is Tlsa;
    SMIMEA = 53 "SMIMEA" is Smimea;
    CDS = 59 "CDS";
    CDNSKEY = 60 "CDNSKEY";
    SVCB = 64 "SVCB" is Svcb;
    HTTPS = 65 "HTTPS" is Https;
    SPF = 99 "SPF";
    TSIG = 250 "TSIG";
    IXFR = 251 "IXFR";
    AXFR = 252 "AXFR";
    ANY = 255 "ANY";
    URI = 256 "URI" is Uri;
    CAA = 257 "CAA" is Caa;
    // A type of its own by which named keeps the state of signing in a zone.
    PRIVATE = 65534 "TYPE65534";
}

impl TypeCode {
    /// Whether a server that signs writes these records by itself, so that nobody else ever asked for them.
    pub fn is_made_by_signing(self) -> bool {
        [Self::RRSIG, Self::NSEC, Self::NSEC3, Self::NSEC3PARAM, Self::DNSKEY, Self::CDS, Self::CDNSKEY, Self::PRIVATE]
            .contains(&self)
    }
}

impl fmt::Display for TypeCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match Self::NAMES.iter().find(|(code, _)| code == self) {
            Some((_, name)) => f.write_str(name),
            None => write!(f, "TYPE{}", self.0),
        }
    }
}

impl fmt::Debug for TypeCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl FromStr for TypeCode {
    type Err = InvalidName;

    fn from_str(text: &str) -> Result<Self, InvalidName> {
        let upper = text.to_ascii_uppercase();
        let known = Self::NAMES.iter().find(|(_, name)| *name == upper).map(|(code, _)| *code);
        let numbered = || upper.strip_prefix("TYPE")?.parse().ok().map(Self);
        known
            .or_else(numbered)
            .ok_or_else(|| InvalidName::new("record type", text, "it is not a type's name, nor TYPE and a number"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_type_of_the_vocabulary_has_its_number_and_its_name() {
        for kind in RecordType::ALL {
            let code = TypeCode::of(kind).unwrap();
            assert_eq!(code.record_type(), kind);
            assert_eq!(code.to_string(), kind.as_str());
            assert_eq!(kind.as_str().parse(), Ok(code));
        }
    }

    #[test]
    fn a_type_that_nobody_knows_is_its_number() {
        assert_eq!("TYPE65280".parse(), Ok(TypeCode(65280)));
        assert_eq!(TypeCode(65280).to_string(), "TYPE65280");
        assert_eq!("type28".parse(), Ok(TypeCode::AAAA));
        assert!("TYPE65536".parse::<TypeCode>().is_err() && "WKS?".parse::<TypeCode>().is_err());
    }
}
