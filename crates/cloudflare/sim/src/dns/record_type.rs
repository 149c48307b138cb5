//! The table of record types.

use serde_json::{Map, Value};

use super::{
    content,
    data::{DataForm, DataPart, joined, quoted},
};
use crate::reply::Refusal;

/// A type of record.
#[derive(Debug)]
pub(super) struct RecordType {
    pub(super) name: &'static str,
    pub(super) proxiable: bool,
    /// Whether `priority` is a member of the record itself.
    pub(super) priority: bool,
    pub(super) form: ValueSource,
}

/// Where a record's value is.
#[derive(Debug)]
pub(super) enum ValueSource {
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
    RecordType { name, proxiable: false, priority: false, form: ValueSource::Content(normal) }
}

const fn proxiable(name: &'static str, normal: fn(&str) -> Result<String, Refusal>) -> RecordType {
    RecordType { name, proxiable: true, priority: false, form: ValueSource::Content(normal) }
}

const fn data(
    name: &'static str,
    parts: &'static [(&'static str, DataPart)],
    write: fn(&Map<String, Value>) -> String,
) -> RecordType {
    RecordType { name, proxiable: false, priority: false, form: ValueSource::Data(DataForm { parts, write }) }
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

const BYTE: DataPart = DataPart::Whole(255);
const SHORT: DataPart = DataPart::Whole(65_535);
const METRES: DataPart = DataPart::Number(0.0, 90_000_000.0);
const SERVICE: &[(&str, DataPart)] = &[("priority", SHORT), ("target", DataPart::Host), ("value", DataPart::Maybe)];
const CERTIFICATE: &[(&str, DataPart)] =
    &[("usage", BYTE), ("selector", BYTE), ("matching_type", BYTE), ("certificate", DataPart::Hex)];

static TYPES: [RecordType; 21] = [
    proxiable("A", content::ipv4),
    proxiable("AAAA", content::ipv6),
    proxiable("CNAME", content::cname),
    simple("TXT", content::txt),
    simple("NS", content::ns),
    simple("PTR", content::ptr),
    simple("OPENPGPKEY", content::openpgpkey),
    RecordType { name: "MX", proxiable: false, priority: true, form: ValueSource::Content(content::mx) },
    data("CAA", &[("flags", BYTE), ("tag", DataPart::Text), ("value", DataPart::Text)], |data| {
        format!("{} {}", joined(data, &["flags", "tag"]), quoted(data, "value"))
    }),
    data(
        "CERT",
        &[("type", SHORT), ("key_tag", SHORT), ("algorithm", BYTE), ("certificate", DataPart::Text)],
        |data| joined(data, &["type", "key_tag", "algorithm", "certificate"]),
    ),
    data(
        "DNSKEY",
        &[("flags", SHORT), ("protocol", BYTE), ("algorithm", BYTE), ("public_key", DataPart::Text)],
        |data| joined(data, &["flags", "protocol", "algorithm", "public_key"]),
    ),
    data("DS", &[("key_tag", SHORT), ("algorithm", BYTE), ("digest_type", BYTE), ("digest", DataPart::Hex)], |data| {
        joined(data, &["key_tag", "algorithm", "digest_type", "digest"])
    }),
    data("HTTPS", SERVICE, |data| joined(data, &["priority", "target", "value"])),
    data("SVCB", SERVICE, |data| joined(data, &["priority", "target", "value"])),
    data(
        "LOC",
        &[
            ("lat_degrees", DataPart::Whole(90)),
            ("lat_minutes", DataPart::Number(0.0, 59.0)),
            ("lat_seconds", DataPart::Number(0.0, 59.999)),
            ("lat_direction", DataPart::OneOf(&["N", "S"])),
            ("long_degrees", DataPart::Whole(180)),
            ("long_minutes", DataPart::Number(0.0, 59.0)),
            ("long_seconds", DataPart::Number(0.0, 59.999)),
            ("long_direction", DataPart::OneOf(&["E", "W"])),
            ("altitude", DataPart::Number(-100_000.0, 42_849_672.95)),
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
            ("flags", DataPart::Maybe),
            ("service", DataPart::Maybe),
            ("regex", DataPart::Maybe),
            ("replacement", DataPart::Host),
        ],
        |data| {
            let quoted = ["flags", "service", "regex"].map(|name| quoted(data, name)).join(" ");
            format!("{} {quoted} {}", joined(data, &["order", "preference"]), joined(data, &["replacement"]))
        },
    ),
    data("SMIMEA", CERTIFICATE, |data| joined(data, &["usage", "selector", "matching_type", "certificate"])),
    data("TLSA", CERTIFICATE, |data| joined(data, &["usage", "selector", "matching_type", "certificate"])),
    data("SRV", &[("priority", SHORT), ("weight", SHORT), ("port", SHORT), ("target", DataPart::Host)], |data| {
        joined(data, &["priority", "weight", "port", "target"])
    }),
    data("SSHFP", &[("algorithm", BYTE), ("type", BYTE), ("fingerprint", DataPart::Hex)], |data| {
        joined(data, &["algorithm", "type", "fingerprint"])
    }),
    RecordType {
        name: "URI",
        proxiable: false,
        priority: true,
        form: ValueSource::Data(DataForm {
            parts: &[("weight", SHORT), ("target", DataPart::Text)],
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
