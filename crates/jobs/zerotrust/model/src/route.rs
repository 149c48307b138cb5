//! `HTTPRoute` → what it asks for: its annotations in one spelling, its first backend, its place in time.

use std::collections::BTreeMap;
use std::net::IpAddr;

use jiff::Timestamp;
use kube::ResourceExt;
use portolan_core::{Hostname, ObjectKey, Problem, text};

use crate::annotations::{self, PREFIX};
use crate::gateway::{BackendRef, HttpRoute};
use crate::reasons;

/// What a route asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RouteInput {
    /// Namespace and name.
    pub key: ObjectKey,
    /// Tells a route from a later one of the same name.
    pub uid: String,
    /// When it was made.
    pub created: Timestamp,
    /// Counts its changes.
    pub generation: i64,
    /// What its users say: known annotations without the prefix, under their present names, in one spelling.
    pub inputs: BTreeMap<String, String>,
    /// The older names that inputs stand under.
    pub aliases: BTreeMap<&'static str, &'static str>,
    /// Annotations under our prefix that nobody reads.
    pub unknown: Vec<String>,
    /// What was written back: annotations without the prefix.
    pub outputs: BTreeMap<String, String>,
    /// The first backend of its first rule.
    pub backend: Option<BackendRef>,
    /// Why that backend cannot stand for the whole route.
    pub beyond_backend: Option<&'static str>,
    /// The names that a gateway answers for.
    pub hostnames: Vec<String>,
    /// Whether it is being deleted.
    pub deleting: bool,
}

/// Whether a route is to be published.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Enabled {
    /// Yes.
    Yes,
    /// No.
    No,
    /// No; but what is said is neither yes nor no.
    Unclear(String),
    /// No; but an annotation that nothing reads looks as if it were meant to say so.
    Misspelt(String),
}

impl RouteInput {
    /// Reads a route.
    pub fn read(route: &HttpRoute) -> Self {
        portolan_core::waypoint!();
        let meta = &route.metadata;
        let mut input = Self {
            key: ObjectKey::namespaced(route.namespace().unwrap_or_default(), route.name_any()),
            uid: meta.uid.clone().unwrap_or_default(),
            created: meta.creation_timestamp.as_ref().map_or(Timestamp::UNIX_EPOCH, |time| time.0),
            generation: meta.generation.unwrap_or_default(),
            inputs: BTreeMap::new(),
            aliases: BTreeMap::new(),
            unknown: Vec::new(),
            outputs: BTreeMap::new(),
            backend: route.spec.rules.first().and_then(|rule| rule.backend_refs.first()).cloned(),
            beyond_backend: route.spec.beyond_one_backend(),
            hostnames: route.spec.hostnames.clone(),
            deleting: meta.deletion_timestamp.is_some(),
        };
        let ours =
            route.annotations().iter().filter_map(|(name, value)| Some((name.strip_prefix(PREFIX)?, value.as_str())));
        input.take(&ours.collect());
        input
    }

    fn take(&mut self, ours: &BTreeMap<&str, &str>) {
        let mut known = Vec::new();
        for input in annotations::inputs() {
            known.push(input.suffix);
            known.extend(input.aliases);
            let alias = input.aliases.iter().find(|alias| ours.contains_key(**alias));
            let Some(text) = ours.get(input.suffix).or_else(|| ours.get(*alias?)) else { continue };
            if let (None, Some(alias)) = (ours.get(input.suffix), alias) {
                self.aliases.insert(input.suffix, alias);
            }
            self.inputs.insert(input.suffix.to_owned(), input.shape.normalised(text));
        }
        if let Some(text) = self.inputs.get_mut("hostname")
            && let Ok(name) = hostname(text)
        {
            *text = name.to_string();
        }
        if let Some(text) = self.inputs.get_mut("enabled") {
            text.make_ascii_lowercase();
        }
        for (suffix, text) in ours {
            if annotations::is_output(suffix) {
                self.outputs.insert((*suffix).to_owned(), (*text).to_owned());
            } else if !known.contains(suffix) {
                self.unknown.push((*suffix).to_owned());
            }
        }
    }

    /// A known annotation that says something.
    pub fn input(&self, suffix: &str) -> Option<&str> {
        self.inputs.get(suffix).map(String::as_str).filter(|text| !text.is_empty())
    }

    /// Whether the route is to be published.
    pub fn enabled(&self) -> Enabled {
        let raw = self.input("enabled").unwrap_or_default();
        match raw {
            "true" => Enabled::Yes,
            "" => self.misspelt().map_or(Enabled::No, Enabled::Misspelt),
            "false" => Enabled::No,
            _ => Enabled::Unclear(raw.to_owned()),
        }
    }

    /// An annotation that nothing reads and that is nearly `enabled`.
    fn misspelt(&self) -> Option<String> {
        self.unknown.iter().find(|suffix| annotations::nearest(suffix) == Some("enabled")).cloned()
    }

    /// Why it cannot be told whether the route is to be published.
    pub fn unclear(&self) -> Option<Problem> {
        let said = "write \"true\" to publish the route or \"false\" to take it down";
        match self.enabled() {
            Enabled::Yes | Enabled::No => None,
            Enabled::Unclear(text) => {
                let message = format!("annotation {PREFIX}enabled is {:?}: {said}", text::shorten(&text, 100));
                Some(Problem::invalid(reasons::INVALID_ANNOTATION, message))
            }
            Enabled::Misspelt(suffix) => {
                let name = annotations::name(text::truncate(&suffix, 100));
                let message = format!("nothing reads annotation {name}, did you mean {PREFIX}enabled? {said}");
                Some(Problem::invalid(reasons::UNKNOWN_ANNOTATION, message))
            }
        }
    }

    /// The name to publish.
    pub fn hostname(&self) -> Result<Hostname, Problem> {
        let text = self.input("hostname").ok_or_else(|| {
            let message =
                format!("annotation {PREFIX}hostname is missing; write the name to publish, as app.example.com");
            Problem::invalid(reasons::INVALID_HOSTNAME, message)
        })?;
        hostname(text)
    }

    /// Whether what exists under the name may be taken over.
    pub fn adopts(&self) -> bool {
        self.input("adopt") == Some("true")
    }

    /// Whether the route may get a finalizer.
    pub fn allows_finalizer(&self) -> bool {
        self.input("finalizer") != Some("false")
    }
}

/// A name that can be published; the problem says what to write.
pub fn hostname(text: &str) -> Result<Hostname, Problem> {
    let name = text.trim().to_lowercase();
    let name = name.strip_suffix('.').unwrap_or(&name);
    let bare = name.strip_prefix("*.").unwrap_or(name);
    let refuse = |why: String| {
        let message = format!("hostname {:?} is not valid: {why}", text::shorten(text, 280));
        Err(Problem::invalid(reasons::INVALID_HOSTNAME, message))
    };
    if name.contains("://") {
        refuse("write the name alone, without a scheme, as app.example.com".to_owned())
    } else if name.contains(',') || name.contains(char::is_whitespace) {
        refuse("write one name; each further name needs a route of its own".to_owned())
    } else if bare.parse::<IpAddr>().is_ok() {
        refuse("it is an address; write a name, as app.example.com".to_owned())
    } else if name.contains('/') {
        refuse("write the name alone, without a path, as app.example.com".to_owned())
    } else if name.contains(':') {
        refuse("write the name alone, without a port, as app.example.com".to_owned())
    } else if !name.is_ascii() {
        let hint = Hostname::parse(name).map(|name| format!(", as {name}")).unwrap_or_default();
        refuse(format!("write an international name in punycode{hint}"))
    } else if !bare.contains('.') {
        refuse("it has too few parts; write a full name, as app.example.com".to_owned())
    } else if name.contains('_') {
        refuse("names of web sites hold letters, digits and hyphens only".to_owned())
    } else {
        Hostname::parse(name).map_err(|invalid| Problem::invalid(reasons::INVALID_HOSTNAME, invalid.to_string()))
    }
}

#[cfg(test)]
mod tests;
