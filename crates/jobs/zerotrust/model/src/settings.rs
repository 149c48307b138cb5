//! Annotations, templates and tenant → settings, merged field by field; every field knows who said it.
//!
//! Highest first: annotation, its older names, the route's template, the tenant's base template, the tenant's defaults,
//! what is built in. A list that is said replaces the lists below it. Who says who may pass asks for Access.

mod table;

use std::collections::BTreeMap;
use std::fmt;

use portolan_core::{Hostname, ObjectKey, Problem, reasons as core, text};
use serde::Serialize;
use serde_json::{Value, json};

use crate::annotations::{Input, ROUTE_INPUTS};
use crate::origin;
use crate::origin_tls::OriginTls;
use crate::reasons;
use crate::route::RouteInput;
use crate::select::Selected;
use crate::target::{self, AddressSource};
use crate::template::{AccessSettings, ServiceRef};

pub use table::*;

/// Who said something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Layer {
    /// The route's annotation.
    Annotation,
    /// The route's annotation under an older name.
    Alias(&'static str),
    /// The route's template.
    Template(ObjectKey),
    /// The tenant's base template.
    Base(ObjectKey),
    /// The tenant.
    Tenant(ObjectKey),
    /// Nobody in so many words, but somebody by another setting.
    Implied {
        /// The other setting.
        by: &'static str,
        /// Who said that.
        layer: Box<Layer>,
    },
    /// Nobody: it is built in.
    BuiltIn,
}

impl Layer {
    /// Whether a user said it, wherever.
    pub fn is_user(&self) -> bool {
        *self != Self::BuiltIn
    }

    /// Whether a user meant it for certain. The definitions of older operators wrote their defaults into every template.
    pub fn is_deliberate(&self) -> bool {
        match self {
            Self::Annotation | Self::Alias(_) | Self::Tenant(_) => true,
            Self::Implied { layer, .. } => layer.is_deliberate(),
            Self::Template(_) | Self::Base(_) | Self::BuiltIn => false,
        }
    }

    /// Whether the route itself says it.
    pub fn is_route(&self) -> bool {
        match self {
            Self::Annotation | Self::Alias(_) => true,
            Self::Implied { layer, .. } => layer.is_route(),
            Self::Template(_) | Self::Base(_) | Self::Tenant(_) | Self::BuiltIn => false,
        }
    }
}

impl fmt::Display for Layer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Annotation => f.write_str("annotation"),
            Self::Alias(alias) => write!(f, "annotation {alias}"),
            Self::Template(key) => write!(f, "template {key}"),
            Self::Base(key) => write!(f, "base template {key}"),
            Self::Tenant(key) => write!(f, "tenant {key}"),
            Self::Implied { by, layer } => write!(f, "asked for by {by}, {layer}"),
            Self::BuiltIn => f.write_str("built in"),
        }
    }
}

/// A value, and who said it.
#[derive(Clone, Debug, PartialEq)]
pub struct Sourced {
    /// The value; null where nobody says one.
    pub value: Value,
    /// Who said it.
    pub layer: Layer,
}

/// All settings of a route, merged.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    route: ObjectKey,
    fields: BTreeMap<&'static str, Sourced>,
}

/// Merges what the route, its templates and its tenant say.
pub fn settings(route: &RouteInput, selected: &Selected) -> Result<Settings, Problem> {
    portolan_core::waypoint!();
    let layers = Layers::of(selected);
    let (mut fields, mut wrong) = (BTreeMap::new(), Vec::new());
    for setting in SETTINGS {
        match layers.merge(setting, route) {
            Ok(field) => drop(fields.insert(setting.name, field)),
            Err(problem) => wrong.push(problem),
        }
    }
    let is_on = fields.get(ACCESS.name).is_some_and(|field| field.value == true);
    if let Some(asked) = layers.asks_for_access(route).filter(|_| !is_on) {
        fields.insert(ACCESS.name, asked);
    }
    wrong.extend(ROUTE_INPUTS.iter().filter_map(|input| unreadable(input, route)));
    wrong.extend(unknown(route));
    match wrong.first() {
        None => Ok(Settings { route: route.key.clone(), fields }),
        Some(first) => {
            let all: Vec<&str> = wrong.iter().map(|problem| problem.message.as_str()).collect();
            Err(Problem::invalid(first.reason, all.join("; ")))
        }
    }
}

/// What templates and tenant say, as JSON, so that a setting is a place in it.
struct Layers {
    objects: Vec<(Layer, Value)>,
}

impl Layers {
    fn of(selected: &Selected) -> Self {
        let mut objects = Vec::new();
        if let Some(template) = &selected.template {
            objects.push((Layer::Template(template.key()), plain(&template.spec)));
        }
        if let Some(base) = &selected.base {
            objects.push((Layer::Base(base.key()), plain(&base.spec)));
        }
        objects.push((Layer::Tenant(selected.tenant.key()), plain(&selected.tenant.spec)));
        Self { objects }
    }

    fn merge(&self, setting: &Setting, route: &RouteInput) -> Result<Sourced, Problem> {
        if let Some(text) = route.inputs.get(setting.name) {
            return annotated(setting, text, route);
        }
        for (layer, object) in &self.objects {
            let place = if matches!(layer, Layer::Tenant(_)) { setting.tenant } else { setting.template };
            let Some(value) = object.pointer(place).filter(|value| says_something(value, place)) else { continue };
            let value = setting.shape.check(value.clone()).map_err(|advice| {
                let message = format!("{layer} has {value} for {}: {advice}", setting.name);
                Problem::invalid(core::INVALID_CONFIG, message)
            })?;
            return Ok(Sourced { value, layer: layer.clone() });
        }
        Ok(Sourced { value: setting.built_in.value(), layer: Layer::BuiltIn })
    }

    /// Whoever says who may pass asks for Access. The same layer can say that it is off nevertheless; one below cannot,
    /// since older definitions wrote that into every template.
    fn asks_for_access(&self, route: &RouteInput) -> Option<Sourced> {
        let implied = |by: &Setting, layer: Layer| {
            let layer = Layer::Implied { by: by.name, layer: Box::new(layer) };
            Some(Sourced { value: json!(true), layer })
        };
        if route.inputs.contains_key(ACCESS.name) {
            return None;
        }
        if let Some(by) = asking().find(|setting| route_asks(setting, route)) {
            return implied(by, layer_of(by, route));
        }
        for (layer, object) in self.objects.iter().filter(|(layer, _)| !matches!(layer, Layer::Tenant(_))) {
            let said = |setting: &Setting| {
                object.pointer(setting.template).filter(|value| says_something(value, setting.template))
            };
            if said(&ACCESS).is_some() {
                return None;
            }
            let asks =
                |setting: &&Setting| said(setting).is_some_and(|value| setting.name != TOKEN.name || *value == true);
            if let Some(by) = asking().find(asks) {
                return implied(by, layer.clone());
            }
        }
        None
    }
}

/// The settings that nobody would say who does not want Access.
fn asking() -> impl Iterator<Item = &'static Setting> {
    SETTINGS.iter().filter(|setting| {
        setting.name.starts_with("access.") && setting.name != ACCESS.name || setting.name == TOKEN.name
    })
}

fn route_asks(setting: &Setting, route: &RouteInput) -> bool {
    route.inputs.get(setting.name).is_some_and(|text| setting.name != TOKEN.name || text == "true")
}

/// Under which name the route says a setting.
fn layer_of(setting: &Setting, route: &RouteInput) -> Layer {
    route.aliases.get(setting.name).copied().map_or(Layer::Annotation, Layer::Alias)
}

/// A field that is null, or a text that is blank, says nothing: older definitions wrote blank texts by themselves.
fn says_something(value: &Value, place: &str) -> bool {
    !place.is_empty() && !value.is_null() && value.as_str().is_none_or(|text| !text.trim().is_empty())
}

fn annotated(setting: &Setting, text: &str, route: &RouteInput) -> Result<Sourced, Problem> {
    let alias = route.aliases.get(setting.name).copied();
    let layer = layer_of(setting, route);
    let value =
        setting.shape.read(text).map_err(|advice| invalid_annotation(alias.unwrap_or(setting.name), text, &advice))?;
    Ok(Sourced { value, layer })
}

/// What is wrong with an annotation that is no setting.
fn unreadable(input: &Input, route: &RouteInput) -> Option<Problem> {
    let text = route.input(input.suffix)?;
    input.shape.read(text).err().map(|advice| invalid_annotation(input.suffix, text, &advice))
}

/// What is wrong with annotations that nothing reads: whoever wrote them meant something that would not happen.
fn unknown(route: &RouteInput) -> impl Iterator<Item = Problem> {
    route.unknown.iter().map(|suffix| {
        let (name, shown) = (crate::annotations::name(text::truncate(suffix, 100)), "the route stays as it is");
        let message = match crate::annotations::nearest(suffix) {
            Some(near) => {
                format!("nothing reads annotation {name}, did you mean {near}? Correct or remove it; {shown}")
            }
            None => format!("nothing reads annotation {name}. Correct or remove it; {shown}"),
        };
        Problem::invalid(reasons::UNKNOWN_ANNOTATION, message)
    })
}

fn invalid_annotation(suffix: &str, value: &str, advice: &str) -> Problem {
    let name = crate::annotations::name(suffix);
    let message = format!("annotation {name} is {:?}: {advice}", text::shorten(value, 100));
    Problem::invalid(reasons::INVALID_ANNOTATION, message)
}

fn plain(value: &impl Serialize) -> Value {
    serde_json::to_value(value).expect("specs are plain JSON")
}

impl Settings {
    /// A setting's value, and who said it.
    pub fn field(&self, setting: &Setting) -> &Sourced {
        self.fields.get(setting.name).expect("every setting of the table was merged")
    }

    /// Whether it is on.
    pub fn flag(&self, setting: &Setting) -> bool {
        self.field(setting).value.as_bool().unwrap_or(false)
    }

    /// Its text, if it says something.
    pub fn text(&self, setting: &Setting) -> Option<&str> {
        self.field(setting).value.as_str().map(str::trim).filter(|text| !text.is_empty())
    }

    /// Its number.
    pub fn number(&self, setting: &Setting) -> Option<i64> {
        self.field(setting).value.as_i64()
    }

    /// Its texts, those that say something.
    pub fn list(&self, setting: &Setting) -> Vec<String> {
        let items = self.field(setting).value.as_array().into_iter().flatten().filter_map(Value::as_str);
        items.map(str::trim).filter(|item| !item.is_empty()).map(str::to_owned).collect()
    }

    /// Whether the name is a record of its own, without a tunnel.
    pub fn is_dns_only(&self) -> bool {
        self.flag(&DNS_ONLY)
    }

    /// Whether Access was asked for.
    pub fn asks_for_access(&self) -> bool {
        self.flag(&ACCESS)
    }

    /// Whether Access was asked for by saying who may pass, not in so many words.
    pub fn implies_access(&self) -> bool {
        matches!(self.field(&ACCESS).layer, Layer::Implied { .. })
    }

    /// Whether a service token was asked for.
    pub fn asks_for_token(&self) -> bool {
        self.flag(&TOKEN)
    }

    /// The tunnel.
    pub fn tunnel_id(&self) -> &str {
        self.text(&TUNNEL_ID).unwrap_or_default()
    }

    /// Where the address of a name without a tunnel comes from.
    pub fn target(&self) -> Result<AddressSource, Problem> {
        if !self.is_dns_only() {
            return Ok(AddressSource::None);
        }
        if let Some(text) = self.text(&TARGET_IP) {
            return target::address(text).map(AddressSource::Static);
        }
        let service: Option<ServiceRef> =
            serde_json::from_value(self.field(&TARGET_SERVICE).value.clone()).unwrap_or(None);
        let service = service.filter(|service| !service.name.is_empty()).ok_or_else(|| {
            let message = "the name has no tunnel and no address: set the annotation dnsIp, \
                           or staticIp or ingressServiceRef in its template";
            Problem::invalid(reasons::INVALID_TARGET_IP, message)
        })?;
        let namespace = service.namespace.filter(|namespace| !namespace.is_empty()).or(self.route.namespace.clone());
        Ok(AddressSource::Service(ObjectKey { namespace, name: service.name }))
    }

    /// How the origin is spoken to.
    pub(crate) fn origin_tls(&self, hostname: &Hostname) -> OriginTls {
        OriginTls {
            no_tls_verify: Some(self.flag(&NO_TLS_VERIFY)),
            origin_server_name: self.text(&ORIGIN_SERVER_NAME).and_then(|text| origin::name_of(text, hostname)),
            ca_pool: self.text(&CA_POOL).map(str::to_owned),
            tls_timeout: self.number(&TLS_TIMEOUT),
            http2_origin: Some(self.flag(&HTTP2_ORIGIN)),
            match_sni_to_host: Some(self.flag(&MATCH_SNI)),
        }
    }

    /// The Access application that was asked for.
    pub(crate) fn access(&self) -> AccessSettings {
        let text = |setting| self.text(setting).map(str::to_owned);
        let list = |setting| Some(self.list(setting));
        let flag = |setting| Some(self.flag(setting));
        AccessSettings {
            enabled: flag(&ACCESS),
            session_duration: text(&SESSION_DURATION),
            existing_policy_names: list(&POLICY_NAMES),
            existing_policy_ids: list(&POLICY_IDS),
            allow_emails: list(&ALLOW_EMAILS),
            allow_groups: list(&ALLOW_GROUPS),
            auto_redirect_to_identity: flag(&AUTO_REDIRECT),
            enable_binding_cookie: flag(&BINDING_COOKIE),
            http_only_cookie_attribute: flag(&HTTP_ONLY_COOKIE),
            same_site_cookie_attribute: text(&SAME_SITE_COOKIE),
            logo_url: text(&LOGO_URL),
            skip_interstitial: flag(&SKIP_INTERSTITIAL),
            app_launcher_visible: flag(&APP_LAUNCHER),
            service_auth_401_redirect: flag(&SERVICE_AUTH_401),
            custom_deny_message: text(&DENY_MESSAGE),
            custom_deny_url: text(&DENY_URL),
            custom_non_identity_deny_url: text(&NON_IDENTITY_DENY_URL),
        }
    }

    /// Whether somebody may pass: by address, group or policy.
    pub fn lets_somebody_pass(&self) -> bool {
        PASSES.iter().any(|setting| !self.list(setting).is_empty())
    }

    /// One line for each setting that somebody said, or that is on: `origin.url = "http://…" (template shop/web)`.
    pub fn lines(&self) -> Vec<String> {
        let said = SETTINGS.iter().map(|setting| (setting, self.field(setting)));
        let said = said.filter(|(_, field)| field.layer.is_user() || !is_nothing(&field.value));
        said.map(|(setting, field)| format!("{} = {} ({})", setting.name, field.value, field.layer)).collect()
    }
}

fn is_nothing(value: &Value) -> bool {
    value.is_null() || *value == json!([]) || *value == json!("")
}

#[cfg(test)]
mod tests;
