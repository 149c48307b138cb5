//! The text of a DNS name, or its bytes on the wire → the name, equal to every other spelling of it (RFC 4343).

use std::{
    cmp::Ordering,
    fmt::{self, Write},
    hash::{Hash, Hasher},
    str::FromStr,
};

use portolan_core::{Hostname, InvalidName, ZoneName};

/// Bytes of a name on the wire (RFC 1035 §2.3.4).
const LONGEST_NAME: usize = 255;
/// Bytes of a label (RFC 1035 §2.3.4).
const LONGEST_LABEL: usize = 63;

/// Any name of the DNS, always absolute. The spelling is kept; case does not count when names are compared.
#[derive(Clone)]
pub struct DomainName(Box<[u8]>);

impl DomainName {
    /// The name above all others.
    pub fn root() -> Self {
        Self(Box::new([0]))
    }

    /// Reads a name as zone files have it, `\.` and `\DDD` included; it is absolute with or without the dot at its end.
    pub fn parse(text: &str) -> Result<Self, InvalidName> {
        if text == "." {
            return Ok(Self::root());
        }
        let body = text.strip_suffix('.').filter(|body| !ends_in_escape(body)).unwrap_or(text);
        let mut name = NameBuilder::default();
        let mut label = Vec::new();
        let mut rest = body.as_bytes();
        loop {
            match rest {
                [] => break,
                [b'.', more @ ..] => {
                    name.push(&label).map_err(|why| invalid(text, why))?;
                    label.clear();
                    rest = more;
                    if rest.is_empty() {
                        return Err(invalid(text, EMPTY_LABEL));
                    }
                }
                _ => {
                    let (byte, more) = unescaped(rest).ok_or_else(|| {
                        invalid(text, "a backslash must be followed by a character or by three digits up to 255")
                    })?;
                    label.push(byte);
                    rest = more;
                }
            }
        }
        name.push(&label).map_err(|why| invalid(text, why))?;
        Ok(name.finish())
    }

    /// The bytes on the wire, without compression.
    pub fn wire(&self) -> &[u8] {
        &self.0
    }

    /// The labels from left to right, without the root's.
    pub fn labels(&self) -> Labels<'_> {
        Labels(&self.0)
    }

    /// How many labels it has; the root has none.
    pub fn depth(&self) -> usize {
        self.labels().count()
    }

    /// Whether it is the other name or lies below it.
    pub fn is_in(&self, zone: &Self) -> bool {
        self.suffixes().any(|suffix| suffix.eq_ignore_ascii_case(&zone.0))
    }

    /// The name without its first label; the root has nothing above it.
    pub fn parent(&self) -> Option<Self> {
        self.suffixes().nth(1).map(|suffix| Self(suffix.into()))
    }

    /// The name one label below.
    pub fn child(&self, label: &str) -> Result<Self, InvalidName> {
        let mut name = NameBuilder::default();
        name.push(label.as_bytes()).map_err(|why| invalid(label, why))?;
        for above in self.labels() {
            name.push(above).map_err(|why| invalid(label, why))?;
        }
        Ok(name.finish())
    }

    /// In lower case, as it is compared and signed (RFC 4034 §6.2).
    pub fn canonical(&self) -> Self {
        Self(self.0.to_ascii_lowercase().into())
    }

    /// The name, then what is left when its labels are taken off one by one, down to the root.
    pub(crate) fn suffixes(&self) -> impl Iterator<Item = &[u8]> {
        let mut rest = Some(&self.0[..]);
        std::iter::from_fn(move || {
            let suffix = rest?;
            let width = usize::from(*suffix.first()?);
            rest = (width > 0).then(|| suffix.get(width + 1..)).flatten();
            Some(suffix)
        })
    }
}

/// The labels of a name.
#[derive(Clone)]
pub struct Labels<'a>(&'a [u8]);

impl<'a> Iterator for Labels<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        let (width, rest) = self.0.split_first()?;
        if *width == 0 {
            return None;
        }
        let (label, rest) = rest.split_at_checked(usize::from(*width))?;
        self.0 = rest;
        Some(label)
    }
}

/// Labels that become a name.
#[derive(Default)]
pub(crate) struct NameBuilder(Vec<u8>);

impl NameBuilder {
    pub(crate) fn push(&mut self, label: &[u8]) -> Result<(), &'static str> {
        if label.is_empty() {
            return Err(EMPTY_LABEL);
        }
        if label.len() > LONGEST_LABEL {
            return Err("a label has at most 63 bytes");
        }
        if self.0.len() + label.len() + 2 > LONGEST_NAME {
            return Err("a name has at most 255 bytes");
        }
        self.0.push(u8::try_from(label.len()).expect("a label is at most 63 bytes long"));
        self.0.extend_from_slice(label);
        Ok(())
    }

    pub(crate) fn finish(mut self) -> DomainName {
        self.0.push(0);
        DomainName(self.0.into())
    }
}

const EMPTY_LABEL: &str = "between two dots, and before the first one, there must be a label";

fn invalid(text: &str, why: &'static str) -> InvalidName {
    InvalidName::new("DNS name", text, why)
}

/// Whether the dot after this text is an escaped one.
fn ends_in_escape(body: &str) -> bool {
    body.bytes().rev().take_while(|byte| *byte == b'\\').count() % 2 == 1
}

/// The next byte of a text with escapes, and what follows it.
pub(crate) fn unescaped(text: &[u8]) -> Option<(u8, &[u8])> {
    match text {
        [b'\\', a, b, c, rest @ ..] if [a, b, c].iter().all(|digit| digit.is_ascii_digit()) => {
            let number = [a, b, c].iter().fold(0_u16, |sum, digit| sum * 10 + u16::from(**digit - b'0'));
            Some((u8::try_from(number).ok()?, rest))
        }
        [b'\\', digit, ..] if digit.is_ascii_digit() => None,
        [b'\\'] | [] => None,
        [b'\\', byte, rest @ ..] | [byte, rest @ ..] => Some((*byte, rest)),
    }
}

/// Writes a byte so that it is read back as itself.
pub(crate) fn write_escaped(f: &mut impl Write, byte: u8, special: &[u8]) -> fmt::Result {
    match byte {
        _ if special.contains(&byte) => write!(f, "\\{}", char::from(byte)),
        b'!'..=b'~' => f.write_char(char::from(byte)),
        _ => write!(f, "\\{byte:03}"),
    }
}

impl fmt::Display for DomainName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.len() == 1 {
            return f.write_str(".");
        }
        for label in self.labels() {
            for byte in label {
                write_escaped(f, *byte, b".\\\"();@$")?;
            }
            f.write_char('.')?;
        }
        Ok(())
    }
}

impl fmt::Debug for DomainName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{self}\"")
    }
}

impl FromStr for DomainName {
    type Err = InvalidName;

    fn from_str(text: &str) -> Result<Self, InvalidName> {
        Self::parse(text)
    }
}

impl From<&Hostname> for DomainName {
    fn from(name: &Hostname) -> Self {
        Self::parse(name.as_str()).expect("a host name has labels of at most 63 bytes, 253 with their dots")
    }
}

impl From<&ZoneName> for DomainName {
    fn from(name: &ZoneName) -> Self {
        Self::parse(name.as_str()).expect("a zone name has labels of at most 63 bytes, 253 with their dots")
    }
}

// Length bytes are below `A`, so that names can be compared with them as if they were text.
impl PartialEq for DomainName {
    fn eq(&self, other: &Self) -> bool {
        self.0.eq_ignore_ascii_case(&other.0)
    }
}

impl Eq for DomainName {}

impl Hash for DomainName {
    fn hash<H: Hasher>(&self, state: &mut H) {
        for byte in &self.0 {
            state.write_u8(byte.to_ascii_lowercase());
        }
    }
}

impl PartialOrd for DomainName {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// The order of a zone: what is above comes first (RFC 4034 §6.1).
impl Ord for DomainName {
    fn cmp(&self, other: &Self) -> Ordering {
        let lower = |label: &[u8]| label.to_ascii_lowercase();
        let [one, other]: [Vec<&[u8]>; 2] = [self, other].map(|name| name.labels().collect());
        for (one, other) in one.iter().rev().zip(other.iter().rev()) {
            // Most labels of two names of a zone are the same, in the same spelling.
            if one != other {
                match lower(one).cmp(&lower(other)) {
                    Ordering::Equal => {}
                    order => return order,
                }
            }
        }
        one.len().cmp(&other.len())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn name(text: &str) -> DomainName {
        DomainName::parse(text).unwrap()
    }

    #[test]
    fn names_are_equal_whatever_their_case_and_keep_their_spelling() {
        assert_eq!(name("WWW.Example.COM"), name("www.example.com."));
        assert_eq!(name("WWW.Example.COM").to_string(), "WWW.Example.COM.");
        assert_eq!(name(".").to_string(), ".");
    }

    #[test]
    fn escapes_stand_for_bytes_and_are_written_again() {
        let odd = name(r"a\.b.\000x.example\.");

        assert_eq!(odd.labels().collect::<Vec<_>>(), [&b"a.b"[..], b"\0x", b"example."]);
        assert_eq!(odd.to_string(), r"a\.b.\000x.example\..");
    }

    #[test]
    fn a_name_that_cannot_be_sent_is_refused_with_the_reason() {
        for (text, why) in [
            ("", "must be a label"),
            ("a..b", "must be a label"),
            (".a", "must be a label"),
            (&"x".repeat(64), "at most 63 bytes"),
            (&vec!["x".repeat(63); 4].join("."), "at most 255 bytes"),
            (r"a\25", "three digits"),
            (r"a\256", "three digits"),
        ] {
            let said = DomainName::parse(text).unwrap_err().to_string();
            assert!(said.contains(why), "{text}: {said}");
        }
    }

    #[test]
    fn a_name_lies_in_the_zones_above_it_alone() {
        let www = name("www.example.com");

        assert!(www.is_in(&name("EXAMPLE.com")) && www.is_in(&www) && www.is_in(&DomainName::root()));
        assert!(!www.is_in(&name("ample.com")) && !name("com").is_in(&www));
        assert_eq!(www.parent(), Some(name("example.com")));
        assert_eq!(DomainName::root().parent(), None);
        assert_eq!(name("example.com").child("www").unwrap(), www);
    }

    #[test]
    fn a_zone_is_sorted_from_its_apex_downwards() {
        let mut names = ["z.example", "a.b.example", "example", "*.z.example", "Z.a.example", "b.example"].map(name);
        names.sort();
        assert_eq!(
            names.map(|name| name.to_string()),
            ["example.", "Z.a.example.", "b.example.", "a.b.example.", "z.example.", "*.z.example."]
        );
    }

    proptest! {
        #[test]
        fn any_name_is_read_as_it_is_written(labels in prop::collection::vec(prop::collection::vec(any::<u8>(), 1..20), 0..9)) {
            let mut builder = NameBuilder::default();
            for label in &labels {
                builder.push(label).unwrap();
            }
            let name = builder.finish();
            let read = DomainName::parse(&name.to_string()).unwrap();
            prop_assert_eq!(read.wire(), name.wire());
        }

        #[test]
        fn any_text_is_a_name_or_refused(text in ".{0,300}") {
            if let Ok(name) = DomainName::parse(&text) {
                prop_assert!(name.wire().len() <= LONGEST_NAME);
            }
        }
    }
}
