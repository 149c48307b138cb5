//! A DNS record as the API shows it ↔ what is written and compared of it. Small, since zones have tens of thousands.
//!
//! A record that comes from the API is brought into the same spelling as one that we want, so that records that mean
//! the same are equal: content follows from data, proxied records have an automatic TTL, tags have no order.

use portolan_dns::value::{host, spelled};
use portolan_dns::{Data, RecordType};
use serde::ser::SerializeMap;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::{Value, json};

use portolan_core::{Item, MarkField};

/// TTL that lets Cloudflare choose.
pub const AUTOMATIC_TTL: u32 = 1;
/// The types that say where a name leads.
const ADDRESSES: [RecordType; 3] = [RecordType::A, RecordType::Aaaa, RecordType::Cname];
/// Characters of a comment where nothing is known of the zone's plan.
const SHORTEST_COMMENT_LIMIT: usize = 100;

/// A record at Cloudflare.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(from = "RecordWire")]
pub struct DnsRecord {
    /// Its type.
    pub kind: RecordType,
    /// Its full name.
    pub name: Box<str>,
    /// Its value, for types without parts.
    pub content: Option<Box<str>>,
    /// Its value, for types with parts.
    pub data: Option<Box<Data>>,
    /// Seconds that it may be kept; 1 is automatic.
    pub ttl: u32,
    /// Whether Cloudflare stands in front of it.
    pub proxied: bool,
    /// Which of several is tried first, for MX and URI.
    pub priority: Option<u16>,
    /// Free text; carries our mark.
    pub comment: Box<str>,
    /// Tags, sorted.
    pub tags: Box<[Box<str>]>,
}

/// A record as the API writes it.
#[derive(Deserialize)]
struct RecordWire {
    #[serde(rename = "type", default)]
    kind: String,
    #[serde(default)]
    name: String,
    content: Option<String>,
    data: Option<Value>,
    ttl: Option<f64>,
    proxied: Option<bool>,
    priority: Option<f64>,
    comment: Option<String>,
    tags: Option<Vec<String>>,
}

impl From<RecordWire> for DnsRecord {
    fn from(wire: RecordWire) -> Self {
        let kind = RecordType::parse(&wire.kind);
        let whole = |number: f64| format!("{number:.0}");
        let mut body = Self {
            kind,
            name: wire.name.into(),
            content: wire.content.map(Into::into),
            data: wire.data.and_then(|data| Data::read(kind, &data)).map(Box::new),
            ttl: wire.ttl.and_then(|ttl| whole(ttl).parse().ok()).unwrap_or(AUTOMATIC_TTL),
            proxied: wire.proxied.unwrap_or_default(),
            priority: wire.priority.and_then(|priority| whole(priority).parse().ok()),
            comment: wire.comment.unwrap_or_default().into(),
            tags: wire.tags.unwrap_or_default().into_iter().map(Into::into).collect(),
        };
        body.normalise();
        body
    }
}

impl DnsRecord {
    /// The value as zone files have it, for keys and for people.
    pub fn value(&self) -> String {
        match (&self.data, &self.content) {
            (Some(data), _) => data.to_text(),
            (None, Some(content)) => content.to_string(),
            (None, None) => String::new(),
        }
    }

    fn normalise_value(&mut self) {
        if self.kind.has_data() {
            if self.data.is_none() {
                let text = self.content.as_deref().unwrap_or_default();
                self.data = Data::read_text(self.kind, text, self.priority).map(Box::new);
            }
            if self.data.is_some() {
                self.content = None;
            }
            return;
        }
        self.data = None;
        let content = self.content.as_deref().unwrap_or_default();
        self.content = Some(spelled(self.kind, content).into());
    }
}

impl Serialize for DnsRecord {
    /// The body of a request: only what the type has, but zeros and empty comments too.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("type", self.kind.as_str())?;
        map.serialize_entry("name", &self.name)?;
        if let Some(content) = &self.content {
            map.serialize_entry("content", content)?;
        }
        if let Some(data) = &self.data {
            map.serialize_entry("data", &data.to_json())?;
        }
        map.serialize_entry("ttl", &self.ttl)?;
        if self.kind.is_proxiable() {
            map.serialize_entry("proxied", &self.proxied)?;
        }
        if let Some(priority) = self.priority {
            map.serialize_entry("priority", &priority)?;
        }
        map.serialize_entry("comment", &self.comment)?;
        if !self.tags.is_empty() {
            map.serialize_entry("tags", &self.tags)?;
        }
        map.end()
    }
}

impl Item for DnsRecord {
    const MARK: Option<MarkField<Self>> = Some(MarkField {
        limit: SHORTEST_COMMENT_LIMIT,
        text: |record| &record.comment,
        set: |record, text| record.comment = text.into(),
    });

    /// Type and name for addresses and aliases; with the value for the types of which a name has many.
    fn natural_key(&self) -> String {
        if self.kind.is_proxiable() {
            format!("{} {}", self.kind, self.name)
        } else {
            format!("{} {} {}", self.kind, self.name, self.value())
        }
    }

    /// The name alone: what matters is who stands at a name.
    fn place_key(&self) -> String {
        self.name.to_string()
    }

    fn label(&self) -> String {
        format!("{} {}", self.kind, self.name)
    }

    fn normalise(&mut self) {
        portolan_core::waypoint!();
        self.name = host(&self.name).into();
        self.normalise_value();
        if !self.kind.has_priority() {
            self.priority = None;
        }
        self.proxied &= self.kind.is_proxiable();
        if self.proxied {
            self.ttl = AUTOMATIC_TTL;
        }
        self.tags.sort_unstable();
    }

    /// Addresses and aliases of one name that different people publish split its visitors.
    fn rival_keys(&self) -> Vec<String> {
        let others = ADDRESSES.into_iter().filter(|kind| self.kind.is_proxiable() && *kind != self.kind);
        others.map(|kind| format!("{kind} {}", self.name)).collect()
    }

    fn replaces(&self, old: &Self) -> bool {
        self.kind != old.kind || self.name != old.name
    }

    fn update_body(&self, old: &Self) -> Value {
        let mut body = self.create_body();
        if self.tags.is_empty() && !old.tags.is_empty() {
            body["tags"] = json!([]);
        }
        body
    }
}
