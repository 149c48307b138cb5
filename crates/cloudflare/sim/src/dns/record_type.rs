//! The table of record types.

use serde_json::{Map, Value};

use super::{
    content,
    data::{DataForm, Part, joined, quoted},
};
use crate::reply::Refusal;

/// A type of record.
#[derive(Debug)]
pub(super) struct RecordType {
    pub(super) name: &'static str,
    pub(super) proxiable: bool,
    /// Whether `priority` is a member of the record itself.
    pub(super) priority: bool,
    pub(super) form: Form,
}

/// Where a record's value is.
#[derive(Debug)]
pub(super) enum Form {
    /// In `content`, normalised by this.
    Content(fn(&str) -> Result<String, Refusal>),
    /// In `data`; `content` is made from it.
    Data(DataForm),
}

impl RecordType {
    pub(super) fn find(name: &str) -> Option<&'static Self> {
        TYPES.iter().find(|kind| kind.name == name)
    }
}

const fn simple(name: &'static str, normal: fn(&str) -> Result<String, Refusal>) -> RecordType {
    RecordType { name, proxiable: false, priority: false, form: Form::Content(normal) }
}

const fn proxiable(name: &'static str, normal: fn(&str) -> Result<String, Refusal>) -> RecordType {
    RecordType { name, proxiable: true, priority: false, form: Form::Content(normal) }
}

const fn data(
    name: &'static str,
    parts: &'static [(&'static str, Part)],
    write: fn(&Map<String, Value>) -> String,
) -> RecordType {
    RecordType { name, proxiable: false, priority: false, form: Form::Data(DataForm { parts, write }) }
}

/// Names of all types, as `type` may have them.
pub(super) const TYPE_NAMES: [&str; 21] = [
    "A",
    "AAAA",
    "CAA",
    "CERT",
    "CNAME",
    "DNSKEY",
    "DS",
    "HTTPS",
    "LOC",
    "MX",
    "NAPTR",
    "NS",
    "OPENPGPKEY",
    "PTR",
    "SMIMEA",
    "SRV",
    "SSHFP",
    "SVCB",
    "TLSA",
    "TXT",
    "URI",
];

const BYTE: Part = Part::Whole(255);
const SHORT: Part = Part::Whole(65_535);
const METRES: Part = Part::Number(0.0, 90_000_000.0);
const SERVICE: &[(&str, Part)] = &[("priority", SHORT), ("target", Part::Host), ("value", Part::Maybe)];
const CERTIFICATE: &[(&str, Part)] =
    &[("usage", BYTE), ("selector", BYTE), ("matching_type", BYTE), ("certificate", Part::Hex)];

static TYPES: [RecordType; 21] = [
    proxiable("A", content::ipv4),
    proxiable("AAAA", content::ipv6),
    proxiable("CNAME", content::cname),
    simple("TXT", content::txt),
    simple("NS", content::ns),
    simple("PTR", content::ptr),
    simple("OPENPGPKEY", content::openpgpkey),
    RecordType { name: "MX", proxiable: false, priority: true, form: Form::Content(content::mx) },
    data("CAA", &[("flags", BYTE), ("tag", Part::Text), ("value", Part::Text)], |data| {
        format!("{} {}", joined(data, &["flags", "tag"]), quoted(data, "value"))
    }),
    data("CERT", &[("type", SHORT), ("key_tag", SHORT), ("algorithm", BYTE), ("certificate", Part::Text)], |data| {
        joined(data, &["type", "key_tag", "algorithm", "certificate"])
    }),
    data("DNSKEY", &[("flags", SHORT), ("protocol", BYTE), ("algorithm", BYTE), ("public_key", Part::Text)], |data| {
        joined(data, &["flags", "protocol", "algorithm", "public_key"])
    }),
    data("DS", &[("key_tag", SHORT), ("algorithm", BYTE), ("digest_type", BYTE), ("digest", Part::Hex)], |data| {
        joined(data, &["key_tag", "algorithm", "digest_type", "digest"])
    }),
    data("HTTPS", SERVICE, |data| joined(data, &["priority", "target", "value"])),
    data("SVCB", SERVICE, |data| joined(data, &["priority", "target", "value"])),
    data(
        "LOC",
        &[
            ("lat_degrees", Part::Whole(90)),
            ("lat_minutes", Part::Number(0.0, 59.0)),
            ("lat_seconds", Part::Number(0.0, 59.999)),
            ("lat_direction", Part::OneOf(&["N", "S"])),
            ("long_degrees", Part::Whole(180)),
            ("long_minutes", Part::Number(0.0, 59.0)),
            ("long_seconds", Part::Number(0.0, 59.999)),
            ("long_direction", Part::OneOf(&["E", "W"])),
            ("altitude", Part::Number(-100_000.0, 42_849_672.95)),
            ("size", METRES),
            ("precision_horz", METRES),
            ("precision_vert", METRES),
        ],
        location,
    ),
    data(
        "NAPTR",
        &[
            ("order", SHORT),
            ("preference", SHORT),
            ("flags", Part::Maybe),
            ("service", Part::Maybe),
            ("regex", Part::Maybe),
            ("replacement", Part::Host),
        ],
        |data| {
            let quoted = ["flags", "service", "regex"].map(|name| quoted(data, name)).join(" ");
            format!("{} {quoted} {}", joined(data, &["order", "preference"]), joined(data, &["replacement"]))
        },
    ),
    data("SMIMEA", CERTIFICATE, |data| joined(data, &["usage", "selector", "matching_type", "certificate"])),
    data("TLSA", CERTIFICATE, |data| joined(data, &["usage", "selector", "matching_type", "certificate"])),
    data("SRV", &[("priority", SHORT), ("weight", SHORT), ("port", SHORT), ("target", Part::Host)], |data| {
        joined(data, &["priority", "weight", "port", "target"])
    }),
    data("SSHFP", &[("algorithm", BYTE), ("type", BYTE), ("fingerprint", Part::Hex)], |data| {
        joined(data, &["algorithm", "type", "fingerprint"])
    }),
    RecordType {
        name: "URI",
        proxiable: false,
        priority: true,
        form: Form::Data(DataForm {
            parts: &[("weight", SHORT), ("target", Part::Text)],
            write: |data| format!("{} {}", joined(data, &["weight"]), quoted(data, "target")),
        }),
    },
];

fn location(data: &Map<String, Value>) -> String {
    let metres = |name: &str| format!("{:.2}m", data.get(name).and_then(Value::as_f64).unwrap_or_default());
    let angle = |side: &str| ["degrees", "minutes", "seconds", "direction"].map(|part| format!("{side}_{part}"));
    let (north, east) = (angle("lat"), angle("long"));
    let place = joined(data, &north.iter().chain(&east).map(String::as_str).collect::<Vec<_>>());
    format!("{place} {}", ["altitude", "size", "precision_horz", "precision_vert"].map(metres).join(" "))
}
