//! Values of the record types that have parts: as parts by name, and as the text of a zone file.
//!
//! Reading is lenient (numbers may be texts, parts that are numbers may be missing and are 0 then), writing is exact and
//! sends zeros. Names, hexadecimal and base64 parts have one spelling, so that equal values are equal.

use serde_json::{Value, json};

use crate::loc::Location;
use crate::record_type::RecordType;
use crate::value::{base64, hex, host, quote, service_parameters, words};

/// The value of a record with parts.
#[derive(Clone, Debug, PartialEq)]
pub enum Data {
    /// Where a service is.
    Srv {
        /// Lower is tried first.
        priority: u16,
        /// Share among equal priorities.
        weight: u16,
        /// The service's port.
        port: u16,
        /// Its host; `.` for none.
        target: Box<str>,
    },
    /// Who may issue certificates.
    Caa {
        /// 128 is critical.
        flags: u8,
        /// `issue`, `issuewild` or `iodef`.
        tag: Box<str>,
        /// The authority, or where to report.
        value: Box<str>,
    },
    /// A certificate.
    Cert {
        /// Its type.
        kind: u16,
        /// Its key tag.
        key_tag: u16,
        /// Its algorithm.
        algorithm: u8,
        /// It, in base64.
        certificate: Box<str>,
    },
    /// A key that signs zones.
    Dnskey {
        /// 256 or 257.
        flags: u16,
        /// Always 3.
        protocol: u8,
        /// Its algorithm.
        algorithm: u8,
        /// It, in base64.
        public_key: Box<str>,
    },
    /// The digest of a key below a delegation.
    Ds {
        /// The key's tag.
        key_tag: u16,
        /// The key's algorithm.
        algorithm: u8,
        /// How the digest is made.
        digest_type: u8,
        /// It, in hexadecimal.
        digest: Box<str>,
    },
    /// HTTPS and SVCB.
    Service {
        /// 0 for an alias.
        priority: u16,
        /// The host; `.` for the record's own name.
        target: Box<str>,
        /// Parameters.
        value: Box<str>,
    },
    /// A place on Earth.
    Loc(Box<Location>),
    /// A rewriting rule.
    Naptr(Box<Naptr>),
    /// TLSA and SMIMEA.
    Association {
        /// What is constrained.
        usage: u8,
        /// Which part is matched.
        selector: u8,
        /// How it is matched.
        matching_type: u8,
        /// What is matched, in hexadecimal.
        certificate: Box<str>,
    },
    /// The fingerprint of an SSH host key.
    Sshfp {
        /// The key's algorithm.
        algorithm: u8,
        /// How the fingerprint is made.
        kind: u8,
        /// It, in hexadecimal.
        fingerprint: Box<str>,
    },
    /// A URI; its priority stands beside it.
    Uri {
        /// Share among equal priorities.
        weight: u16,
        /// The URI.
        target: Box<str>,
    },
}

/// The parts of a NAPTR record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Naptr {
    /// Rules are tried in this order.
    pub order: u16,
    /// Preference among rules of the same order.
    pub preference: u16,
    /// What comes next.
    pub flags: Box<str>,
    /// The services.
    pub service: Box<str>,
    /// The substitution.
    pub regex: Box<str>,
    /// The next name.
    pub replacement: Box<str>,
}

/// Parts as they come in, by name.
pub trait DataParts {
    /// A part that is a text.
    fn text(&self, name: &str) -> Option<String>;

    /// A part that is a number.
    fn number(&self, name: &str) -> Option<f64> {
        self.text(name)?.trim().trim_end_matches('m').parse().ok()
    }
}

impl DataParts for Value {
    fn text(&self, name: &str) -> Option<String> {
        match self.get(name)? {
            Value::String(text) => Some(text.clone()),
            Value::Number(number) => Some(number.to_string()),
            _ => None,
        }
    }
}

/// A number of a part that may be missing. Out of range is as bad as unreadable.
fn whole<N: TryFrom<u64> + Default>(parts: &impl DataParts, name: &str) -> Option<N> {
    let Some(number) = parts.number(name) else { return parts.text(name).is_none().then(N::default) };
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked before the cast")]
    let exact = (number.fract() == 0.0 && (0.0..=65_535.0).contains(&number)).then_some(number as u64)?;
    N::try_from(exact).ok()
}

fn word(parts: &impl DataParts, name: &str) -> Option<String> {
    parts.text(name).filter(|text| !text.is_empty())
}

impl Data {
    /// Reads the parts of a type, by their names, as `key_tag`. `None` where something is missing or unreadable.
    pub fn read(kind: RecordType, parts: &impl DataParts) -> Option<Self> {
        Some(match kind {
            RecordType::Srv => Self::Srv {
                priority: whole(parts, "priority")?,
                weight: whole(parts, "weight")?,
                port: whole(parts, "port")?,
                target: host(&word(parts, "target")?).into(),
            },
            RecordType::Caa => Self::Caa {
                flags: whole(parts, "flags")?,
                tag: word(parts, "tag")?.to_ascii_lowercase().into(),
                value: parts.text("value")?.into(),
            },
            RecordType::Cert => Self::Cert {
                kind: whole(parts, "type")?,
                key_tag: whole(parts, "key_tag")?,
                algorithm: whole(parts, "algorithm")?,
                certificate: base64(&word(parts, "certificate")?).into(),
            },
            RecordType::Dnskey => Self::Dnskey {
                flags: whole(parts, "flags")?,
                protocol: whole(parts, "protocol")?,
                algorithm: whole(parts, "algorithm")?,
                public_key: base64(&word(parts, "public_key")?).into(),
            },
            RecordType::Ds => Self::Ds {
                key_tag: whole(parts, "key_tag")?,
                algorithm: whole(parts, "algorithm")?,
                digest_type: whole(parts, "digest_type")?,
                digest: hex(&word(parts, "digest")?).into(),
            },
            RecordType::Https | RecordType::Svcb => Self::Service {
                priority: whole(parts, "priority")?,
                target: host(&word(parts, "target")?).into(),
                value: service_parameters(&parts.text("value").unwrap_or_default()).into(),
            },
            RecordType::Loc => Self::Loc(Box::new(Location::read(parts)?)),
            RecordType::Naptr => Self::Naptr(Box::new(Naptr::read(parts)?)),
            RecordType::Tlsa | RecordType::Smimea => Self::Association {
                usage: whole(parts, "usage")?,
                selector: whole(parts, "selector")?,
                matching_type: whole(parts, "matching_type")?,
                certificate: hex(&word(parts, "certificate")?).into(),
            },
            RecordType::Sshfp => Self::Sshfp {
                algorithm: whole(parts, "algorithm")?,
                kind: whole(parts, "type")?,
                fingerprint: hex(&word(parts, "fingerprint")?).into(),
            },
            RecordType::Uri => Self::Uri { weight: whole(parts, "weight")?, target: word(parts, "target")?.into() },
            RecordType::A
            | RecordType::Aaaa
            | RecordType::Cname
            | RecordType::Txt
            | RecordType::Mx
            | RecordType::Ns
            | RecordType::Other => return None,
        })
    }

    /// Reads a value as zone files have it. SRV and URI may come without their priority, which then stands elsewhere.
    pub fn read_text(kind: RecordType, text: &str, priority: Option<u16>) -> Option<Self> {
        portolan_core::waypoint!();
        if kind == RecordType::Loc {
            return Location::read_text(text).map(|location| Self::Loc(Box::new(location)));
        }
        let words = words(text);
        let names = order(kind);
        let beside = matches!(kind, RecordType::Srv | RecordType::Uri);
        let left_out = usize::from(beside && words.len() + 1 == names.len());
        Self::read(kind, &Words { names: &names[left_out..], there: &words, priority })
    }

    /// The parts by their names.
    pub fn to_json(&self) -> Value {
        match self {
            Self::Srv { priority, weight, port, target } => {
                json!({ "priority": priority, "weight": weight, "port": port, "target": target })
            }
            Self::Caa { flags, tag, value } => json!({ "flags": flags, "tag": tag, "value": value }),
            Self::Cert { kind, key_tag, algorithm, certificate } => {
                json!({ "type": kind, "key_tag": key_tag, "algorithm": algorithm, "certificate": certificate })
            }
            Self::Dnskey { flags, protocol, algorithm, public_key } => {
                json!({ "flags": flags, "protocol": protocol, "algorithm": algorithm, "public_key": public_key })
            }
            Self::Ds { key_tag, algorithm, digest_type, digest } => {
                json!({ "key_tag": key_tag, "algorithm": algorithm, "digest_type": digest_type, "digest": digest })
            }
            Self::Service { priority, target, value } => {
                json!({ "priority": priority, "target": target, "value": value })
            }
            Self::Loc(location) => location.to_json(),
            Self::Naptr(naptr) => naptr.to_json(),
            Self::Association { usage, selector, matching_type, certificate } => {
                json!({ "usage": usage, "selector": selector, "matching_type": matching_type, "certificate": certificate })
            }
            Self::Sshfp { algorithm, kind, fingerprint } => {
                json!({ "algorithm": algorithm, "type": kind, "fingerprint": fingerprint })
            }
            Self::Uri { weight, target } => json!({ "weight": weight, "target": target }),
        }
    }

    /// The value as zone files have it.
    pub fn to_text(&self) -> String {
        match self {
            Self::Srv { priority, weight, port, target } => format!("{priority} {weight} {port} {target}"),
            Self::Caa { flags, tag, value } => format!("{flags} {tag} {}", quote(value)),
            Self::Cert { kind, key_tag, algorithm, certificate } => {
                format!("{kind} {key_tag} {algorithm} {certificate}")
            }
            Self::Dnskey { flags, protocol, algorithm, public_key } => {
                format!("{flags} {protocol} {algorithm} {public_key}")
            }
            Self::Ds { key_tag, algorithm, digest_type, digest } => {
                format!("{key_tag} {algorithm} {digest_type} {digest}")
            }
            Self::Service { priority, target, value } => format!("{priority} {target} {value}").trim_end().to_owned(),
            Self::Loc(location) => location.to_text(),
            Self::Naptr(naptr) => naptr.to_text(),
            Self::Association { usage, selector, matching_type, certificate } => {
                format!("{usage} {selector} {matching_type} {certificate}")
            }
            Self::Sshfp { algorithm, kind, fingerprint } => format!("{algorithm} {kind} {fingerprint}"),
            Self::Uri { weight, target } => format!("{weight} {}", quote(target)),
        }
    }
}

impl Naptr {
    fn read(parts: &impl DataParts) -> Option<Self> {
        let text = |name: &str| parts.text(name).unwrap_or_default().into();
        let replacement = word(parts, "replacement").or_else(|| word(parts, "regex").map(|_| ".".to_owned()))?;
        Some(Self {
            order: whole(parts, "order")?,
            preference: whole(parts, "preference")?,
            flags: text("flags"),
            service: text("service"),
            regex: text("regex"),
            replacement: host(&replacement).into(),
        })
    }

    fn to_json(&self) -> Value {
        let Self { order, preference, flags, service, regex, replacement } = self;
        json!({
            "order": order, "preference": preference, "flags": flags, "service": service,
            "regex": regex, "replacement": replacement,
        })
    }

    fn to_text(&self) -> String {
        let (flags, service, regex) = (quote(&self.flags), quote(&self.service), quote(&self.regex));
        format!("{} {} {flags} {service} {regex} {}", self.order, self.preference, self.replacement)
    }
}

/// The parts of a type in the order of zone files. The last one takes all words that are left.
fn order(kind: RecordType) -> &'static [&'static str] {
    match kind {
        RecordType::Srv => &["priority", "weight", "port", "target"],
        RecordType::Caa => &["flags", "tag", "value"],
        RecordType::Cert => &["type", "key_tag", "algorithm", "certificate"],
        RecordType::Dnskey => &["flags", "protocol", "algorithm", "public_key"],
        RecordType::Ds => &["key_tag", "algorithm", "digest_type", "digest"],
        RecordType::Https | RecordType::Svcb => &["priority", "target", "value"],
        RecordType::Naptr => &["order", "preference", "flags", "service", "regex", "replacement"],
        RecordType::Tlsa | RecordType::Smimea => &["usage", "selector", "matching_type", "certificate"],
        RecordType::Sshfp => &["algorithm", "type", "fingerprint"],
        RecordType::Uri => &["priority", "weight", "target"],
        RecordType::A
        | RecordType::Aaaa
        | RecordType::Cname
        | RecordType::Txt
        | RecordType::Mx
        | RecordType::Ns
        | RecordType::Loc
        | RecordType::Other => &[],
    }
}

/// The words of a zone file's line as parts.
struct Words<'a> {
    names: &'a [&'static str],
    there: &'a [String],
    priority: Option<u16>,
}

impl DataParts for Words<'_> {
    fn text(&self, name: &str) -> Option<String> {
        let Some(at) = self.names.iter().position(|there| *there == name) else {
            return self.priority.filter(|_| name == "priority").map(|priority| priority.to_string());
        };
        let is_last = at + 1 == self.names.len();
        if is_last { Some(self.there.get(at..)?.join(" ")) } else { self.there.get(at).cloned() }
    }
}

#[cfg(test)]
mod tests;
