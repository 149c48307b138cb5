//! Access applications: as they are kept, wanted, compared and written.
//!
//! A PUT replaces the whole application, so what is not ours (identity providers, CORS, tags …) is sent back as it was found.

use jiff::Timestamp;
use portolan_cloudflare_api::{Item, TypedCollection, collections};
use portolan_core::Hostname;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::policy::{KEPT, OwnPolicy, PolicyRole, includes_token, keeping};
use crate::token;

#[cfg(test)]
mod tests;

/// Members of an application that the API alone writes.
const READ_ONLY: [&str; 7] = ["id", "uid", "aud", "created_at", "updated_at", "domain_type", "scim_config"];
/// Optional members that are ours: where they are not wanted they are taken away.
const OPTIONAL: [&str; 4] = ["logo_url", "custom_deny_message", "custom_deny_url", "custom_non_identity_deny_url"];

/// The member that lets preflights pass.
const PREFLIGHT_BYPASS: &str = "options_preflight_bypass";

/// How deep an application for a wildcard reaches; an application may list five names.
const WILDCARD_DEPTHS: usize = 4;

/// An application, whole.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(from = "Value")]
pub struct App(pub(crate) Value);

impl From<Value> for App {
    fn from(raw: Value) -> Self {
        Self(raw)
    }
}

/// An account's applications.
pub static APPS: TypedCollection<App> = TypedCollection::of(collections::ACCESS_APPS);

impl Item for App {
    fn natural_key(&self) -> String {
        self.domain()
    }
}

impl App {
    /// The name that it protects, in lower case.
    pub fn domain(&self) -> String {
        let domain = self.0.get("domain").and_then(Value::as_str).unwrap_or_default();
        domain.trim_end_matches(['/', '.']).to_ascii_lowercase()
    }

    /// How many domains it stands for: its destinations, else the older list, else the one domain.
    pub(crate) fn domains(&self) -> usize {
        let listed = |field: &str| self.0.get(field).and_then(Value::as_array).map(Vec::len);
        listed("destinations").or_else(|| listed("self_hosted_domains")).unwrap_or(1)
    }

    /// Its name; not unique.
    pub fn name(&self) -> &str {
        self.0.get("name").and_then(Value::as_str).unwrap_or_default()
    }

    /// What a token for it says that it is for. A recreated application has another one.
    pub(crate) fn audience(&self) -> Option<&str> {
        self.0.get("aud").and_then(Value::as_str).filter(|audience| !audience.is_empty())
    }

    /// Whether preflights pass without a token.
    pub(crate) fn bypasses_preflights(&self) -> bool {
        self.0.get(PREFLIGHT_BYPASS) == Some(&json!(true))
    }

    /// Its policies in order, as objects; ones that are only named by id become `{"id": …}`.
    pub(crate) fn policies(&self) -> Vec<Value> {
        let mut policies: Vec<Value> = self.0.get("policies").and_then(Value::as_array).cloned().unwrap_or_default();
        for policy in &mut policies {
            if let Some(id) = policy.as_str() {
                *policy = json!({ "id": id });
            }
        }
        policies.sort_by_key(|policy| policy.get("precedence").and_then(Value::as_u64).unwrap_or(u64::MAX));
        policies
    }

    /// Whether it was made at or after a time.
    pub(crate) fn is_made_since(&self, since: Timestamp) -> bool {
        let made = self.0.get("created_at").and_then(Value::as_str).and_then(|time| time.parse().ok());
        made.is_some_and(|made| token::is_since(made, since))
    }

    /// The application for a change's text.
    pub(crate) fn shown(&self) -> Value {
        let mut shown = writable(&self.0);
        shown.remove("destinations");
        shown.remove("self_hosted_domains");
        shown.insert("policies".to_owned(), self.policies().iter().map(policy_shown).collect());
        Value::Object(shown)
    }

    /// The body that takes away the policies which let somebody pass who shows a token.
    pub(crate) fn without_token(&self, token_id: &str) -> Option<Value> {
        let policies = self.policies();
        let kept: Vec<&Value> = policies.iter().filter(|policy| !includes_token(policy, token_id)).collect();
        if kept.len() == policies.len() {
            return None;
        }
        let mut body = writable(&self.0);
        body.insert("policies".to_owned(), kept.into_iter().map(sendable).collect());
        Some(Value::Object(body))
    }
}

fn id(policy: &Value) -> Option<&str> {
    policy.get("id").and_then(Value::as_str)
}

fn is_reusable(policy: &Value) -> bool {
    let linked = policy.get("name").is_none();
    policy.get("reusable").and_then(Value::as_bool).unwrap_or(linked)
}

/// A found policy as it is sent back: a link, or an inline one with its id.
fn sendable(policy: &Value) -> Value {
    let own = ["name", "decision", "include"];
    let inline = own.iter().chain(&KEPT).filter(|_| !is_reusable(policy));
    let fields = ["id", "precedence"].iter().chain(inline);
    fields.filter_map(|field| Some(((*field).to_owned(), policy.get(*field)?.clone()))).collect()
}

/// A found policy for a change's text: what we would write of it.
pub(crate) fn policy_shown(policy: &Value) -> Value {
    let mut shown = sendable(policy);
    if let Some(fields) = shown.as_object_mut() {
        fields.retain(|field, value| !(KEPT.contains(&field.as_str()) && is_empty(Some(value))));
    }
    shown
}

/// What may be sent back of a found application.
fn writable(raw: &Value) -> Map<String, Value> {
    let mut body = raw.as_object().cloned().unwrap_or_default();
    body.retain(|field, value| !READ_ONLY.contains(&field.as_str()) && !value.is_null());
    body
}

/// The policies of a wanted application. The two forms never mix in one application.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Policies {
    /// Only ours, inside the application.
    Inline(Vec<OwnPolicy>),
    /// Somebody's reusable ones, then ours, which are reusable too.
    Linked { theirs: Vec<String>, own: Vec<OwnPolicy> },
}

impl Policies {
    pub(crate) fn own(&self) -> &[OwnPolicy] {
        match self {
            Self::Inline(own) | Self::Linked { own, .. } => own,
        }
    }
}

/// What a request for an application has to know that may come to light only on the way.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Made<'a> {
    /// The service token.
    pub(crate) token_id: Option<&'a str>,
    /// Our own reusable policies, in the order of the wish.
    pub(crate) own_ids: &'a [String],
}

/// An application as it should be.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct AppWish {
    pub(crate) hostname: Hostname,
    pub(crate) name: String,
    pub(crate) settings: Map<String, Value>,
    pub(crate) policies: Policies,
    /// Whether it existed before us: then optional members that we do not want stay.
    pub(crate) adopted: bool,
}

impl AppWish {
    /// The same application, but only with those policies that need nothing that is still to be made.
    pub(crate) fn closed(&self) -> Self {
        let policies = match &self.policies {
            Policies::Inline(own) => {
                Policies::Inline(own.iter().filter(|own| own.role == PolicyRole::Allow).cloned().collect())
            }
            Policies::Linked { theirs, .. } => Policies::Linked { theirs: theirs.clone(), own: Vec::new() },
        };
        Self { policies, ..self.clone() }
    }

    /// Whether preflights will pass without a token at the application that `found` becomes.
    pub(crate) fn bypasses_preflights(&self, found: Option<&App>) -> bool {
        match self.settings.get(PREFLIGHT_BYPASS) {
            Some(wanted) => *wanted == json!(true),
            None => found.is_some_and(App::bypasses_preflights),
        }
    }

    /// The body of the request that makes it.
    pub(crate) fn create(&self, made: Made<'_>) -> Value {
        let mut body = self.settings.clone();
        body.extend(self.fixed());
        self.point(&mut body, self.hostname.as_str());
        body.insert("policies".to_owned(), Value::Array(self.policy_bodies(&[], made)));
        Value::Object(body)
    }

    /// The body of the request that changes the found one into it.
    pub(crate) fn update(&self, found: &App, made: Made<'_>) -> Value {
        let mut body = writable(&found.0);
        if !self.adopted {
            body.retain(|field, _| !OPTIONAL.contains(&field.as_str()));
        }
        self.point(&mut body, &found.domain());
        body.extend(self.settings.clone());
        body.extend(self.fixed());
        body.insert("policies".to_owned(), Value::Array(self.policy_bodies(&found.policies(), made)));
        Value::Object(body)
    }

    fn fixed(&self) -> [(String, Value); 3] {
        [
            ("name".to_owned(), json!(self.name)),
            ("domain".to_owned(), json!(self.hostname.as_str())),
            ("type".to_owned(), json!("self_hosted")),
        ]
    }

    /// The list of destinations follows the application's own domain, and others' entries stay. A list that would only
    /// repeat the domain is left to the API, and so is the older list of domains, which it derives.
    fn point(&self, body: &mut Map<String, Value>, from: &str) {
        body.remove("self_hosted_domains");
        let old = covered(from);
        let mut destinations = destinations(self.hostname.as_str());
        let others = body.remove("destinations");
        let others = others.as_ref().and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        let is_old =
            |domain: &&Value| uri(domain).is_some_and(|uri| old.contains(&uri) || uri == self.hostname.as_str());
        destinations.extend(others.iter().filter(|domain| !is_old(domain)).cloned());
        if destinations.len() > 1 {
            body.insert("destinations".to_owned(), Value::Array(destinations));
        }
    }

    /// Whether the application stands for all that the record and the rule answer for. Its domain alone does not tell: the
    /// destinations do, where there are any; the older list of domains only follows them.
    fn covers(&self, found: &App) -> bool {
        let listed = |field: &str| found.0.get(field).and_then(Value::as_array).cloned().unwrap_or_default();
        let destinations = listed("destinations");
        let domains = if destinations.is_empty() { listed("self_hosted_domains") } else { destinations };
        let domains: Vec<String> = domains.iter().filter_map(uri).collect();
        if domains.is_empty() && !self.hostname.is_wildcard() {
            return true;
        }
        covered(self.hostname.as_str()).iter().all(|name| domains.contains(name))
    }

    /// The complete list of policies, inline ones with the ids that they have.
    fn policy_bodies(&self, found: &[Value], made: Made<'_>) -> Vec<Value> {
        match &self.policies {
            Policies::Inline(own) => {
                let pairs = pair(own, found, made);
                own.iter()
                    .zip(pairs)
                    .enumerate()
                    .map(|(index, (own, found))| {
                        let mut body = keeping(own.inline(index + 1, made.token_id), found);
                        if let Some(id) = found.and_then(id) {
                            body["id"] = json!(id);
                        }
                        body
                    })
                    .collect()
            }
            Policies::Linked { theirs, .. } => {
                let ids = theirs.iter().chain(made.own_ids);
                ids.enumerate().map(|(index, id)| json!({"id": id, "precedence": index + 1})).collect()
            }
        }
    }

    /// What has to be written to make the found application the wanted one.
    pub(crate) fn difference(&self, found: &App, made: Made<'_>) -> AppDifference {
        if !self.has_fields_of(found) {
            return AppDifference::App;
        }
        match &self.policies {
            Policies::Inline(own) => inline_difference(own, &found.policies(), made),
            Policies::Linked { theirs, .. } => {
                let found = found.policies();
                let links: Vec<&str> = found.iter().filter_map(id).collect();
                let wanted: Vec<&str> = theirs.iter().chain(made.own_ids).map(String::as_str).collect();
                if links == wanted && found.len() == wanted.len() { AppDifference::None } else { AppDifference::App }
            }
        }
    }

    fn has_fields_of(&self, found: &App) -> bool {
        let wanted = self.settings.iter().map(|(field, value)| (field.as_str(), value));
        let unwanted = |field: &&str| !self.adopted && !self.settings.contains_key(*field);
        found.domain() == self.hostname.as_str()
            && self.covers(found)
            && found.name() == self.name
            && wanted.into_iter().all(|(field, value)| is_same(found.0.get(field), value))
            && OPTIONAL.iter().filter(|field| unwanted(field)).all(|field| is_empty(found.0.get(*field)))
    }

    /// Ids of our inline policies in an application that was just written; none where one is missing.
    pub(crate) fn inline_ids(&self, found: &[Value]) -> Option<Vec<String>> {
        let Policies::Inline(own) = &self.policies else { return Some(Vec::new()) };
        let of = |own: &OwnPolicy| {
            let named = found.iter().find(|policy| policy.get("name").and_then(Value::as_str) == Some(&own.name));
            named.and_then(id).map(str::to_owned)
        };
        own.iter().map(of).collect()
    }
}

/// The names that an application for a domain has to list. In an application a star is one label; in DNS and in a tunnel's
/// rule it is any number of them: without the deeper names, those would be open.
fn covered(domain: &str) -> Vec<String> {
    match domain.strip_prefix("*.") {
        Some(parent) => (1..=WILDCARD_DEPTHS).map(|depth| format!("{}{parent}", "*.".repeat(depth))).collect(),
        None => vec![domain.to_owned()],
    }
}

fn destinations(domain: &str) -> Vec<Value> {
    covered(domain).into_iter().map(|uri| json!({"type": "public", "uri": uri})).collect()
}

/// The name in an entry of a list of domains or destinations.
fn uri(domain: &Value) -> Option<String> {
    let uri = domain.as_str().or_else(|| domain.get("uri")?.as_str())?;
    Some(uri.trim_end_matches('/').to_ascii_lowercase())
}

/// What has to be written.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum AppDifference {
    /// Nothing.
    None,
    /// One inline policy.
    Policy { id: String, body: Value },
    /// The application.
    App,
}

fn inline_difference(own: &[OwnPolicy], found: &[Value], made: Made<'_>) -> AppDifference {
    let pairs = pair(own, found, made);
    if found.len() != own.len() || found.iter().any(is_reusable) {
        return AppDifference::App;
    }
    let mut different = own.iter().zip(pairs).enumerate().filter(|(_, (own, found))| match found {
        Some(found) => !own.is(found, made.token_id),
        None => true,
    });
    match (different.next(), different.next()) {
        (None, _) => AppDifference::None,
        (Some((index, (own, Some(found)))), None) => match id(found) {
            Some(id) => {
                let body = keeping(own.inline(index + 1, made.token_id), Some(found));
                AppDifference::Policy { id: id.to_owned(), body }
            }
            None => AppDifference::App,
        },
        _ => AppDifference::App,
    }
}

/// Finds the inline policy that each of ours is: by name, else the one with our decision that nobody else is.
fn pair<'a>(own: &[OwnPolicy], found: &'a [Value], made: Made<'_>) -> Vec<Option<&'a Value>> {
    let inline: Vec<&Value> = found.iter().filter(|policy| !is_reusable(policy) && id(policy).is_some()).collect();
    let text = |policy: &Value, field: &str| policy.get(field).and_then(Value::as_str).map(str::to_owned);
    let named =
        |own: &OwnPolicy| inline.iter().copied().find(|policy| text(policy, "name").as_ref() == Some(&own.name));
    let mut pairs: Vec<Option<&Value>> = own.iter().map(named).collect();
    for (index, own) in own.iter().enumerate() {
        if pairs[index].is_some() {
            continue;
        }
        let decision = text(&own.inline(1, made.token_id), "decision");
        let free = |policy: &&Value| !pairs.iter().flatten().any(|taken| id(taken) == id(policy));
        pairs[index] = inline.iter().copied().filter(free).find(|policy| text(policy, "decision") == decision);
    }
    pairs
}

/// Whether a member is as wanted; the API may leave out what is false or empty.
fn is_same(found: Option<&Value>, wanted: &Value) -> bool {
    match found {
        Some(found) if !found.is_null() => found == wanted,
        _ => is_empty(Some(wanted)),
    }
}

/// Whether a member says no more than its absence.
pub(crate) fn is_empty(value: Option<&Value>) -> bool {
    match value {
        None | Some(Value::Null | Value::Bool(false)) => true,
        Some(Value::String(text)) => text.is_empty(),
        Some(Value::Array(list)) => list.is_empty(),
        Some(_) => false,
    }
}
