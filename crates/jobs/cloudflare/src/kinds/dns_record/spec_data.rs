//! `spec.data`: one flat block for all record types, as the older operator has it, with the members it lacked.

use portolan_core::schema;
use portolan_dns::{DataParts, RecordType};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The parts of a record's value; which of them count depends on the record's type.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct DnsRecordData {
    /// SRV: the service, as in the record's name. NAPTR: the services.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 255))]
    pub service: Option<String>,
    /// SRV: the protocol, as in the record's name.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    pub proto: Option<String>,
    /// SRV, HTTPS, SVCB and URI: lower is tried first. The record's own `priority` is used where absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priority: Option<u16>,
    /// SRV and URI: share among equal priorities.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub weight: Option<u16>,
    /// SRV: the service's port.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub port: Option<u16>,
    /// SRV, HTTPS and SVCB: the host. URI: the URI.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 2048))]
    pub target: Option<String>,
    /// CAA: 0, or 128 for critical. DNSKEY: 256 or 257. NAPTR: letters.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::int_or_string")]
    pub flags: Option<Value>,
    /// CAA: `issue`, `issuewild` or `iodef`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    pub tag: Option<String>,
    /// CAA: the authority. HTTPS and SVCB: the parameters, as `alpn="h3,h2"`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 2048))]
    pub value: Option<String>,
    /// CERT, DNSKEY, DS and SSHFP: number of the algorithm.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub algorithm: Option<u8>,
    /// CERT: the certificate in base64. TLSA and SMIMEA: what is matched, in hexadecimal.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 16_384))]
    pub certificate: Option<String>,
    /// CERT and DS: the key tag.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key_tag: Option<u16>,
    /// TLSA and SMIMEA: what is constrained.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<u8>,
    /// TLSA and SMIMEA: which part is matched.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub selector: Option<u8>,
    /// TLSA and SMIMEA: how it is matched.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub matching_type: Option<u8>,
    /// CERT: type of the certificate. SSHFP: type of the fingerprint.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub kind: Option<u16>,
    /// SSHFP: the fingerprint in hexadecimal.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 512))]
    pub fingerprint: Option<String>,
    /// DNSKEY: always 3.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub protocol: Option<u8>,
    /// DNSKEY: the key in base64.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 4096))]
    pub public_key: Option<String>,
    /// DS: how the digest is made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub digest_type: Option<u8>,
    /// DS: the digest in hexadecimal.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 512))]
    pub digest: Option<String>,
    /// NAPTR: rules are tried in this order.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub order: Option<u16>,
    /// NAPTR: preference among rules of the same order.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub preference: Option<u16>,
    /// NAPTR: the substitution.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 255))]
    pub regex: Option<String>,
    /// NAPTR: the next name.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 255))]
    pub replacement: Option<String>,
    /// LOC: degrees of latitude.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(max = 90))]
    pub lat_degrees: Option<u8>,
    /// LOC: minutes of latitude.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(max = 59))]
    pub lat_minutes: Option<u8>,
    /// LOC: seconds of latitude, as `"23.5"`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 16))]
    pub lat_seconds: Option<String>,
    /// LOC: `N` or `S`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1))]
    pub lat_direction: Option<String>,
    /// LOC: degrees of longitude.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(max = 180))]
    pub long_degrees: Option<u8>,
    /// LOC: minutes of longitude.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(max = 59))]
    pub long_minutes: Option<u8>,
    /// LOC: seconds of longitude.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 16))]
    pub long_seconds: Option<String>,
    /// LOC: `E` or `W`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1))]
    pub long_direction: Option<String>,
    /// LOC: metres above the sea.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 16))]
    pub altitude: Option<String>,
    /// LOC: metres across.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 16))]
    pub size: Option<String>,
    /// LOC: metres that the place may be off sideways.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 16))]
    pub precision_horz: Option<String>,
    /// LOC: metres that the place may be off in height.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 16))]
    pub precision_vert: Option<String>,
    /// URI: the URI; `target` does the same.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 2048))]
    pub content: Option<String>,
}

/// The parts that a type takes from the block, by the names that the API gives them.
pub(crate) struct SpecParts<'a> {
    /// The record's type.
    pub(crate) kind: RecordType,
    /// The block.
    pub(crate) data: &'a DnsRecordData,
    /// The record's own priority.
    pub(crate) priority: Option<u16>,
}

impl DataParts for SpecParts<'_> {
    fn text(&self, name: &str) -> Option<String> {
        let Self { kind, data, priority } = self;
        let older = |text: &Option<String>| text.clone().filter(|text| !text.is_empty());
        match name {
            "priority" => data.priority.or(*priority).map(|number| number.to_string()),
            "weight" => number(data.weight),
            "port" => number(data.port),
            "target" if *kind == RecordType::Uri => older(&data.target).or_else(|| older(&data.content)),
            "target" if matches!(kind, RecordType::Https | RecordType::Svcb) => {
                Some(older(&data.target).unwrap_or_else(|| ".".to_owned()))
            }
            "target" => data.target.clone(),
            "flags" => data.flags.as_ref().map(flags),
            "tag" => data.tag.clone(),
            "value" => data.value.clone(),
            "algorithm" => number(data.algorithm),
            "certificate" => data.certificate.clone(),
            "key_tag" => number(data.key_tag),
            "usage" => number(data.usage),
            "selector" => number(data.selector),
            "matching_type" => number(data.matching_type),
            // Before there was a member for it, the type of a fingerprint or certificate went into a neighbour.
            "type" if *kind == RecordType::Sshfp => number(data.kind).or_else(|| number(data.matching_type)),
            "type" => number(data.kind).or_else(|| number(data.usage)),
            "fingerprint" => older(&data.fingerprint).or_else(|| older(&data.certificate)),
            "protocol" => Some(data.protocol.unwrap_or(3).to_string()),
            "public_key" => older(&data.public_key).or_else(|| older(&data.certificate)),
            "digest_type" => number(data.digest_type).or_else(|| number(data.matching_type)),
            "digest" => older(&data.digest).or_else(|| older(&data.certificate)),
            "service" => data.service.clone(),
            "order" => number(data.order),
            "preference" => number(data.preference),
            "regex" => data.regex.clone(),
            "replacement" => data.replacement.clone(),
            "lat_degrees" => number(data.lat_degrees),
            "lat_minutes" => number(data.lat_minutes),
            "lat_seconds" => data.lat_seconds.clone(),
            "lat_direction" => data.lat_direction.clone(),
            "long_degrees" => number(data.long_degrees),
            "long_minutes" => number(data.long_minutes),
            "long_seconds" => data.long_seconds.clone(),
            "long_direction" => data.long_direction.clone(),
            "altitude" => data.altitude.clone(),
            "size" => data.size.clone(),
            "precision_horz" => data.precision_horz.clone(),
            "precision_vert" => data.precision_vert.clone(),
            _ => None,
        }
    }
}

fn number<N: ToString>(number: Option<N>) -> Option<String> {
    number.map(|number| number.to_string())
}

fn flags(flags: &Value) -> String {
    flags.as_str().map_or_else(|| flags.to_string(), str::to_owned)
}
