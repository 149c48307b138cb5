//! The annotations of routes: those that users write, those that are written back, and how values are read.

use portolan_core::text::distance;
use serde_json::{Value, json};

use crate::duration;
use crate::settings::SETTINGS;

/// What all annotations and labels of the job begin with.
pub const PREFIX: &str = "cfzt.cloudflare.com/";
/// What annotations of an older operator's framework begin with; they are dropped.
pub const OLDER_PREFIX: &str = "kopf.cfzt.cloudflare.com/";
/// The annotation in which that framework keeps what it saw last, where it was not told another name. Other programs with
/// the same framework use it too: it goes together with the framework's finalizer, never alone.
pub const OLDER_MEMORY: &str = "kopf.zalando.org/last-handled-configuration";

/// The whole name of an annotation or label.
pub fn name(suffix: &str) -> String {
    format!("{PREFIX}{suffix}")
}

/// What the value of an annotation looks like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueSyntax {
    /// Yes or no.
    Flag,
    /// Any text.
    Text,
    /// Where requests go.
    Url,
    /// Texts separated by commas.
    List,
    /// Seconds, from 1 to 300.
    Seconds,
    /// Seconds that DNS answers may be kept.
    Ttl,
    /// How long something lasts, as `24h`.
    Duration,
    /// How long a token lasts, as `8760h` or `forever`.
    Lifetime,
    /// One of some words.
    Choice(&'static [&'static str]),
    /// A tunnel's id.
    Uuid,
    /// A reference to a Service; templates only.
    Service,
}

impl ValueSyntax {
    /// Reads a value as users write it; the error says what to write.
    pub fn read(self, text: &str) -> Result<Value, String> {
        let text = text.trim();
        match self {
            Self::Flag => flag(text).map(Value::Bool).ok_or_else(|| "write \"true\" or \"false\"".to_owned()),
            Self::List => Ok(json!(list(text))),
            Self::Seconds | Self::Ttl => {
                let number: i64 = text.parse().map_err(|_| "write a number of seconds".to_owned())?;
                self.check(json!(number))
            }
            Self::Text | Self::Url | Self::Duration | Self::Lifetime | Self::Choice(_) | Self::Uuid => {
                self.check(json!(text))
            }
            Self::Service => Err("this can only be said in a template".to_owned()),
        }
    }

    /// Takes a value as an object holds it; the error says what to write.
    pub fn check(self, value: Value) -> Result<Value, String> {
        let text = value.as_str().map(str::trim);
        let fits = match self {
            Self::Flag => value.is_boolean(),
            Self::List => value.is_array(),
            Self::Text | Self::Url => value.is_string(),
            Self::Service => value.is_object(),
            Self::Seconds => value.as_i64().is_some_and(|seconds| (1..=300).contains(&seconds)),
            Self::Ttl => value.as_i64().is_some_and(|ttl| ttl == 1 || (60..=86_400).contains(&ttl)),
            Self::Duration => text.is_some_and(|text| duration::parse(text).is_some()),
            Self::Lifetime => text.is_some_and(|text| text == "forever" || duration::parse(text).is_some()),
            Self::Choice(words) => text.is_some_and(|text| words.contains(&text.to_lowercase().as_str())),
            Self::Uuid => text.is_some_and(is_uuid),
        };
        match (fits, self) {
            (true, Self::Choice(_) | Self::Uuid) => Ok(json!(text.unwrap_or_default().to_lowercase())),
            (true, _) => Ok(value),
            (false, _) => Err(self.advice()),
        }
    }

    /// What to write, in words.
    pub fn advice(self) -> String {
        match self {
            Self::Flag => "write \"true\" or \"false\"".to_owned(),
            Self::Text => "write a text".to_owned(),
            Self::Url => "write a URL, as http://web.shop.svc:80".to_owned(),
            Self::List => "write texts separated by commas".to_owned(),
            Self::Seconds => "write 1 to 300 seconds".to_owned(),
            Self::Ttl => "write 1 (automatic), or 60 to 86400 seconds".to_owned(),
            Self::Duration => "write a duration in hours, minutes and seconds, as 24h or 1h30m".to_owned(),
            Self::Lifetime => "write a duration in hours, as 8760h, or forever".to_owned(),
            Self::Choice(words) => format!("write {}", portolan_core::text::join_or(words)),
            Self::Uuid => "write the tunnel's UUID, as 11111111-2222-3333-4444-555555555555".to_owned(),
            Self::Service => "write the Service's name".to_owned(),
        }
    }

    /// The one spelling of a value that can be read, so that only a change of meaning counts as a change.
    pub(crate) fn normalised(self, text: &str) -> String {
        match self.read(text) {
            Ok(Value::Bool(flag)) => flag.to_string(),
            Ok(Value::Array(_)) => list(text).join(","),
            Ok(Value::String(text)) => text,
            _ => text.trim().to_owned(),
        }
    }

    /// The shape in one word, for the reference.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Flag => "boolean",
            Self::Text => "text",
            Self::Url => "URL",
            Self::List => "comma-separated list",
            Self::Seconds | Self::Ttl => "seconds",
            Self::Duration | Self::Lifetime => "duration",
            Self::Choice(_) => "choice",
            Self::Uuid => "UUID",
            Self::Service => "Service",
        }
    }
}

fn flag(text: &str) -> Option<bool> {
    match text.to_ascii_lowercase().as_str() {
        "true" | "1" | "yes" | "on" => Some(true),
        "false" | "0" | "no" | "off" => Some(false),
        _ => None,
    }
}

fn list(text: &str) -> Vec<String> {
    crate::task::comma_separated(text)
}

/// Whether the text is a UUID, in any case.
pub(crate) fn is_uuid(text: &str) -> bool {
    let groups: Vec<&str> = text.split('-').collect();
    let lengths: Vec<usize> = groups.iter().map(|group| group.len()).collect();
    lengths == [8, 4, 4, 4, 12] && groups.concat().bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// An annotation that users write.
#[derive(Clone, Copy, Debug)]
pub struct Input {
    /// Its name behind the prefix.
    pub suffix: &'static str,
    /// What its value looks like.
    pub shape: ValueSyntax,
    /// Other names for the same, which count less.
    pub aliases: &'static [&'static str],
    /// What it is for.
    pub doc: &'static str,
}

/// The annotations that are only the route's own business; those of [`SETTINGS`] come besides.
pub const ROUTE_INPUTS: &[Input] = &[
    route("enabled", ValueSyntax::Text, "`\"true\"` publishes the route; anything else leaves it alone."),
    route("hostname", ValueSyntax::Text, "The name to publish, as `app.example.com` or `*.example.com`."),
    route(
        "tenant",
        ValueSyntax::Text,
        "The tenant, as `name` or `namespace/name`; else the template's, else the only one.",
    ),
    route(
        "template",
        ValueSyntax::Text,
        "The template; `default` where absent, if there is one; `none` for none at all, not even `base-{tenant}`.",
    ),
    route(
        "adopt",
        ValueSyntax::Flag,
        "Take over what exists under the name at Cloudflare; it is released later, not deleted.",
    ),
    route("finalizer", ValueSyntax::Flag, "`\"false\"` publishes without a finalizer on the route."),
    route("serviceToken.rotate", ValueSyntax::Text, "Any new value asks for a new client secret, once."),
    route(
        "serviceToken.rotateOverlap",
        ValueSyntax::Duration,
        "How long the old client secret goes on working; 1h where absent.",
    ),
];

const fn route(suffix: &'static str, shape: ValueSyntax, doc: &'static str) -> Input {
    Input { suffix, shape, aliases: &[], doc }
}

/// All annotations that users write, in the order of the reference.
pub fn inputs() -> impl Iterator<Item = Input> {
    let settings = SETTINGS.iter().filter(|setting| setting.shape != ValueSyntax::Service);
    let settings = settings.map(|one| Input { suffix: one.name, shape: one.shape, aliases: one.aliases, doc: one.doc });
    ROUTE_INPUTS.iter().copied().chain(settings)
}

/// Annotations that are written back, and what they hold.
pub const OUTPUTS: &[(&str, &str)] = &[
    ("hostnameRouteId", "The tunnel's UUID, while a rule stands in it."),
    ("cnameRecordId", "Id of the CNAME record."),
    ("accessAppId", "Id of the Access application."),
    ("accessPolicyIds", "Ids of its policies that are ours, separated by commas."),
    ("serviceTokenId", "Id of the service token."),
    ("serviceTokenSecretName", "The Secret with its credentials, in the route's namespace."),
    ("dnsRecordId", "Id of the A record of a name without a tunnel."),
    ("dnsRecordIp", "The address in it."),
    ("lastReconcile", "When the route was last brought in line, in UTC."),
    ("status", "`Error` or `Pending` while something is wrong."),
    ("statusMessage", "What is wrong, and what to do."),
];

/// The annotation that users write whose name is most like another one, without the prefix; none where nothing is like it.
pub fn nearest(suffix: &str) -> Option<&'static str> {
    let names = inputs().flat_map(|input| [&[input.suffix], input.aliases].concat());
    let near = names.map(|known| (distance(suffix, known), known)).min_by_key(|(distance, _)| *distance)?;
    Some(near).filter(|(distance, known)| *distance <= (known.len() / 3).max(2)).map(|(_, known)| known)
}

/// Whether an annotation (without the prefix) is written back and never read.
pub fn is_output(suffix: &str) -> bool {
    OUTPUTS.iter().any(|(output, _)| *output == suffix)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_annotation_says_what_it_is_for() {
        let docs: Vec<&str> = inputs().map(|input| input.doc).chain(OUTPUTS.iter().map(|(_, doc)| *doc)).collect();

        assert!(docs.iter().all(|doc| doc.ends_with('.') && !doc.starts_with(' ')), "{docs:#?}");
    }

    #[test]
    fn settings_point_at_fields_that_exist() {
        let definitions = crate::crds().into_iter().map(|definition| serde_json::to_value(definition).unwrap());
        let definitions: Vec<Value> = definitions.collect();
        let has = |kind: &str, path: &str| {
            let definition = definitions.iter().find(|one| one["spec"]["names"]["kind"] == kind).unwrap();
            let spec = &definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"];
            path.split('/').skip(1).try_fold(spec, |schema, part| schema.get("properties")?.get(part)).is_some()
        };

        for setting in SETTINGS {
            assert!(has("CloudflareZeroTrustTemplate", setting.template), "{}", setting.name);
            assert!(has("CloudflareZeroTrustTenant", setting.tenant), "{}", setting.name);
        }
    }
}
