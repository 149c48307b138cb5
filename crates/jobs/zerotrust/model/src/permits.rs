//! What a tenant and the operator let a route ask for, and whom else has to be asked. Pure.
//!
//! A route *at home* is in its tenant's namespace. Words of administrators are those of the tenant, and of templates in its
//! namespace or the operator's; a template beside a route that is not at home is the route's own word.

use std::net::IpAddr;

use portolan_core::{Hostname, ObjectKey, Problem, allow, text};

use crate::origin::{self, Origin, Reaches};
use crate::reasons;
use crate::route::RouteInput;
use crate::select::Selected;
use crate::settings::{
    ACCESS, HTTP_HOST_HEADER, Layer, ORIGIN_SERVER_NAME, ORIGIN_URL, Settings, TARGET_IP, TARGET_SERVICE, TUNNEL_ID,
};
use crate::target::AddressSource;

/// What the operator's own configuration and the cluster say.
#[derive(Clone, Copy, Debug, Default)]
pub struct Guard<'a> {
    /// Where the operator lives.
    pub operator_namespace: &'a str,
    /// Origins that are allowed though they reach what protects the cluster.
    pub allow_origins: &'a [String],
    /// Addresses of the API server.
    pub api_server: &'a [IpAddr],
}

/// A Service of another namespace that a route refers to: that namespace has to permit it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reference {
    /// The Service.
    pub service: ObjectKey,
    /// Whether it is one for certain; else only where its namespace exists.
    pub certain: bool,
}

/// Whether a route may have what it asks for; answers whom else has to be asked.
pub fn permit(
    route: &RouteInput,
    hostname: &Hostname,
    selected: &Selected,
    settings: &Settings,
    guard: &Guard<'_>,
) -> Result<Vec<Reference>, Problem> {
    let asks = Asks { route, hostname, selected, settings, guard };
    asks.hostname()?;
    asks.adoption()?;
    asks.access()?;
    if settings.is_dns_only() { asks.target() } else { asks.tunnel().and_then(|()| asks.origin()) }
}

/// The machine that requests would go to, where it is named by its address.
pub fn origin_address(route: &RouteInput, hostname: &Hostname, settings: &Settings) -> Option<IpAddr> {
    Origin::parse(&origin::resolve(route, settings, hostname).ok()?)?.address()
}

/// What a route asks for, and of whom.
struct Asks<'a> {
    route: &'a RouteInput,
    hostname: &'a Hostname,
    selected: &'a Selected,
    settings: &'a Settings,
    guard: &'a Guard<'a>,
}

impl Asks<'_> {
    fn own_namespace(&self) -> &str {
        self.route.key.namespace.as_deref().unwrap_or_default()
    }

    fn tenant_namespace(&self) -> String {
        self.selected.tenant.key().namespace.unwrap_or_default()
    }

    fn is_at_home(&self) -> bool {
        self.own_namespace() == self.tenant_namespace()
    }

    fn is_of_administrators(&self, layer: &Layer) -> bool {
        match layer {
            Layer::Tenant(_) => true,
            Layer::Template(key) | Layer::Base(key) => {
                let place = key.namespace.as_deref().unwrap_or_default();
                place == self.tenant_namespace() || place == self.guard.operator_namespace
            }
            Layer::Annotation | Layer::Alias(_) | Layer::Implied { .. } | Layer::BuiltIn => false,
        }
    }

    /// A refusal that the tenant could lift.
    fn refuse(&self, reason: &'static str, what: &str, field: &str) -> Problem {
        let message = format!("{what}; tenant {} does not allow it: see its spec.{field}", self.selected.tenant.key());
        Problem::invalid(reason, message)
    }

    fn hostname(&self) -> Result<(), Problem> {
        match &self.selected.tenant.spec.allowed_hostnames {
            Some(patterns) if !allow::names_hostname(patterns, self.hostname) => {
                let what = format!("the route asks for {}", self.hostname);
                Err(self.refuse(reasons::HOSTNAME_NOT_ALLOWED, &what, "allowedHostnames"))
            }
            _ => Ok(()),
        }
    }

    fn tunnel(&self) -> Result<(), Problem> {
        let (spec, id) = (&self.selected.tenant.spec, self.settings.tunnel_id());
        let said = self.settings.field(&TUNNEL_ID).layer.is_route() && id != spec.tunnel_id;
        let listed = spec.allowed_tunnels.as_ref().map(|all| all.iter().any(|one| one.trim() == id));
        if !said || listed.unwrap_or_else(|| self.is_at_home()) {
            return Ok(());
        }
        Err(self.refuse(reasons::TUNNEL_NOT_ALLOWED, &format!("the route asks for tunnel {id}"), "allowedTunnels"))
    }

    fn adoption(&self) -> Result<(), Problem> {
        if !self.route.adopts() || self.selected.tenant.spec.allow_adoption.unwrap_or_else(|| self.is_at_home()) {
            return Ok(());
        }
        let what = "the route asks to take over what exists under its name (adopt)";
        Err(self.refuse(reasons::ADOPTION_NOT_ALLOWED, what, "allowAdoption"))
    }

    fn access(&self) -> Result<(), Problem> {
        if self.selected.tenant.spec.require_access != Some(true) || self.settings.asks_for_access() {
            return Ok(());
        }
        let layer = &self.settings.field(&ACCESS).layer;
        let what = format!("{} would stand without Access (access.enabled: {layer})", self.hostname);
        Err(self.refuse(reasons::ACCESS_REQUIRED, &what, "requireAccess"))
    }

    /// Where a name without a tunnel points to.
    fn target(&self) -> Result<Vec<Reference>, Problem> {
        match self.settings.target()? {
            AddressSource::None => Ok(Vec::new()),
            AddressSource::Static(ip) => {
                let origin = Origin::parse(&format!("dns://{ip}")).ok_or_else(|| self.unreadable(&ip.to_string()))?;
                let is_admins = self.is_of_administrators(&self.settings.field(&TARGET_IP).layer);
                if is_admins || self.lists(&origin).unwrap_or_else(|| self.is_at_home()) {
                    return Ok(Vec::new());
                }
                Err(self.not_allowed(&origin))
            }
            AddressSource::Service(service) => {
                let is_admins = self.is_of_administrators(&self.settings.field(&TARGET_SERVICE).layer);
                Ok(if is_admins { Vec::new() } else { self.reference(service, true) })
            }
        }
    }

    fn origin(&self) -> Result<Vec<Reference>, Problem> {
        let url = origin::resolve(self.route, self.settings, self.hostname)?;
        let origin = Origin::parse(&url).ok_or_else(|| self.unreadable(&url))?;
        self.unguarded(&origin)?;
        self.own_name(&origin)?;
        let layer = &self.settings.field(&ORIGIN_URL).layer;
        if self.is_of_administrators(layer) {
            return Ok(Vec::new());
        }
        let listed = self.lists(&origin);
        if listed == Some(false) {
            return Err(self.not_allowed(&origin));
        }
        match origin.reaches() {
            // A backend is a reference by the Gateway API's own rules, whatever the tenant lists.
            Reaches::Service { namespace, name } if listed.is_none() || !layer.is_user() => {
                Ok(self.reference(ObjectKey::namespaced(namespace, name), true))
            }
            _ if listed == Some(true) => Ok(Vec::new()),
            Reaches::Perhaps { namespace, name } if self.is_at_home() => {
                Ok(self.reference(ObjectKey::namespaced(namespace, name), false))
            }
            Reaches::Machine if self.is_at_home() => Ok(Vec::new()),
            Reaches::Nothing => Ok(Vec::new()),
            Reaches::Service { .. } | Reaches::Perhaps { .. } | Reaches::Machine => Err(self.not_allowed(&origin)),
        }
    }

    /// A gateway tells its names apart by what requests call it: a route of another namespace calls it by its own name, or
    /// it would lead to whatever stands behind the gateway.
    fn own_name(&self, origin: &Origin) -> Result<(), Problem> {
        let own = matches!(origin.reaches(), Reaches::Service { namespace, .. } if namespace == self.own_namespace());
        if own || self.is_at_home() {
            return Ok(());
        }
        for setting in [&HTTP_HOST_HEADER, &ORIGIN_SERVER_NAME] {
            let Some(text) = self.settings.text(setting) else { continue };
            let name = origin::substitute(text, self.hostname);
            let is_own = name.eq_ignore_ascii_case(self.hostname.as_str());
            if !is_own && !self.is_of_administrators(&self.settings.field(setting).layer) {
                let what = format!("the origin would be called {:?} ({})", text::shorten(&name, 200), setting.name);
                let message =
                    format!("{what}; a route that is not in its tenant's namespace calls it {}", self.hostname);
                return Err(Problem::invalid(reasons::ORIGIN_NOT_ALLOWED, message));
            }
        }
        Ok(())
    }

    /// What protects the cluster is for the operator's own configuration to allow, whoever names it.
    fn unguarded(&self, origin: &Origin) -> Result<(), Problem> {
        let Some(why) = origin.guarded(self.guard.api_server) else { return Ok(()) };
        if origin::is_listed(self.guard.allow_origins, origin, self.own_namespace()) {
            return Ok(());
        }
        let message = format!(
            "nothing is published that leads to {:?}: {why}. Only the operator's own configuration can allow it \
             (--allow-origins)",
            text::shorten(&origin.text, 200)
        );
        Err(Problem::invalid(reasons::ORIGIN_REFUSED, message))
    }

    /// Whether the tenant lists an origin; none where it has no list.
    fn lists(&self, origin: &Origin) -> Option<bool> {
        let list = self.selected.tenant.spec.allowed_origins.as_ref()?;
        Some(origin::is_listed(list, origin, self.own_namespace()))
    }

    fn reference(&self, service: ObjectKey, certain: bool) -> Vec<Reference> {
        let own = service.namespace.as_deref() == Some(self.own_namespace());
        if own && certain { Vec::new() } else { vec![Reference { service, certain }] }
    }

    fn not_allowed(&self, origin: &Origin) -> Problem {
        let what = format!("requests would go to {:?}", text::shorten(&origin.text, 200));
        self.refuse(reasons::ORIGIN_NOT_ALLOWED, &what, "allowedOrigins")
    }

    fn unreadable(&self, url: &str) -> Problem {
        let message = format!(
            "origin {:?} can be read in several ways; write it as http://web.shop.svc:80",
            text::shorten(url, 200)
        );
        Problem::invalid(reasons::ORIGIN_UNRESOLVED, message)
    }
}

#[cfg(test)]
mod tests;
