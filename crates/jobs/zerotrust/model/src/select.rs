//! A route → its tenant and templates. Evaluated for each route alone: no other route can change the outcome.

use std::collections::BTreeSet;
use std::sync::Arc;

use portolan_core::{ObjectKey, Problem, text};

use crate::reasons;
use crate::route::RouteInput;
use crate::template::CloudflareZeroTrustTemplate as Template;
use crate::tenant::CloudflareZeroTrustTenant as Tenant;

/// The template that is used where a route names none.
pub const DEFAULT_TEMPLATE: &str = "default";

/// What a route says that is to be published without any template, named or not.
pub const NO_TEMPLATE: &str = "none";

/// What is known of a template. That there is none means less protection: it is never taken for granted.
#[derive(Clone, Debug)]
pub enum Sought {
    /// It is there.
    Found(Arc<Template>),
    /// There is none.
    Absent,
    /// Nobody can tell, and why.
    Unknown(&'static str),
}

impl From<Option<Arc<Template>>> for Sought {
    fn from(found: Option<Arc<Template>>) -> Self {
        found.map_or(Self::Absent, Self::Found)
    }
}

/// The tenants and templates that there are.
pub trait Catalogue {
    /// All tenants.
    fn tenants(&self) -> Vec<Arc<Tenant>>;
    /// One tenant.
    fn tenant(&self, key: &ObjectKey) -> Option<Arc<Tenant>>;
    /// One template.
    fn template(&self, key: &ObjectKey) -> Sought;
}

/// What a route is published with.
#[derive(Clone, Debug)]
pub struct Selected {
    /// Its tenant.
    pub tenant: Arc<Tenant>,
    /// Its template.
    pub template: Option<Arc<Template>>,
    /// The tenant's base template.
    pub base: Option<Arc<Template>>,
}

/// Selects a route's tenant and templates.
pub fn select(route: &RouteInput, catalogue: &impl Catalogue, operator_namespace: &str) -> Result<Selected, Problem> {
    portolan_core::waypoint!();
    let selection = TenantSelection::new(route, catalogue, operator_namespace);
    let tenant = selection.tenant()?;
    let places = selection.places(Some(&tenant));
    let template = selection.template(&places)?;
    let base = match (&template, selection.declines()) {
        (None, true) => None,
        _ => selection.find(&base_of(&tenant), &places)?,
    };
    Ok(Selected { tenant, template, base })
}

impl Selected {
    /// The templates that settings come from.
    pub fn templates(&self) -> BTreeSet<ObjectKey> {
        [&self.template, &self.base].into_iter().flatten().map(|one| one.key()).collect()
    }
}

/// Whether every template that took part in what stands, and would again, is still there. One that is gone or cannot be
/// read may have been all the protection there was, and one of the same name elsewhere is another one.
pub fn still_there(
    route: &RouteInput,
    selected: &Selected,
    took_part: &BTreeSet<ObjectKey>,
    catalogue: &impl Catalogue,
    operator_namespace: &str,
) -> Result<(), Problem> {
    let selection = TenantSelection::new(route, catalogue, operator_namespace);
    let declined = selection.declines() && !took_part.iter().any(|key| key.name == NO_TEMPLATE);
    if declined && selected.template.is_none() {
        return Ok(());
    }
    let places = selection.places(Some(&selected.tenant));
    let names = [selection.template_name().to_owned(), base_of(&selected.tenant)];
    let in_force = |key: &&ObjectKey| names.contains(&key.name) && places.iter().any(|place| place == namespace(key));
    for key in took_part.iter().filter(in_force) {
        match catalogue.template(key) {
            Sought::Found(_) => {}
            Sought::Absent => return Err(gone(key)),
            Sought::Unknown(why) => return Err(unknown(key, why)),
        }
    }
    Ok(())
}

fn base_of(tenant: &Tenant) -> String {
    format!("base-{}", tenant.key().name)
}

fn gone(key: &ObjectKey) -> Problem {
    let message = format!(
        "template {key} took part in what stands and is gone: what stands stays as it is. Make it again (an empty one \
         will do), or set the annotation {}: \"{NO_TEMPLATE}\" to publish the route without templates",
        crate::annotations::name("template")
    );
    Problem::waiting(reasons::TEMPLATE_NOT_FOUND, message)
}

fn unknown(key: &ObjectKey, why: &str) -> Problem {
    let message =
        format!("nobody can tell what template {key} says: {why}; the route stays as it is until it can be read");
    Problem::waiting(reasons::TEMPLATE_NOT_FOUND, message)
}

/// Selects a route's tenant alone: it is known where a template or the hostname is wrong, too.
pub fn select_tenant(
    route: &RouteInput,
    catalogue: &impl Catalogue,
    operator_namespace: &str,
) -> Result<Arc<Tenant>, Problem> {
    TenantSelection::new(route, catalogue, operator_namespace).tenant()
}

struct TenantSelection<'a, C> {
    route: &'a RouteInput,
    catalogue: &'a C,
    own: &'a str,
    operator: &'a str,
}

impl<'a, C: Catalogue> TenantSelection<'a, C> {
    fn new(route: &'a RouteInput, catalogue: &'a C, operator: &'a str) -> Self {
        Self { route, catalogue, own: namespace(&route.key), operator }
    }

    /// Named by the route, else by its template, else the only one of its namespace.
    fn tenant(&self) -> Result<Arc<Tenant>, Problem> {
        if let Some(name) = self.route.input("tenant") {
            return self.named(name, "annotation tenant");
        }
        let hinted = self.find(self.template_name(), &self.places(None))?;
        let hint = hinted.as_ref().and_then(|template| template.spec.tenant_ref.as_deref()).map(str::trim);
        match (hint.filter(|hint| !hint.is_empty()), &hinted) {
            (Some(name), Some(template)) => self.named(name, &format!("tenantRef of template {}", template.key())),
            _ => self.only(),
        }
    }

    fn named(&self, name: &str, who: &str) -> Result<Arc<Tenant>, Problem> {
        let keys = match name.split_once('/') {
            Some((namespace, name)) => vec![ObjectKey::namespaced(namespace.trim(), name.trim())],
            None => self.places(None).into_iter().map(|place| ObjectKey::namespaced(place, name)).collect(),
        };
        let Some(tenant) = keys.iter().find_map(|key| self.catalogue.tenant(key)) else {
            let message = format!("there is no tenant {} ({who})", text::join_or(&keys));
            return Err(Problem::waiting(reasons::TENANT_NOT_FOUND, message));
        };
        if tenant.allows(self.own, self.operator) {
            return Ok(tenant);
        }
        let message = format!(
            "tenant {} takes no routes of namespace {}: add it to the tenant's spec.allowedNamespaces; what is published \
             stays as it is",
            tenant.key(),
            self.own
        );
        Err(Problem::waiting(reasons::NAMESPACE_NOT_ALLOWED, message))
    }

    fn only(&self) -> Result<Arc<Tenant>, Problem> {
        let all = self.catalogue.tenants();
        let mut here: Vec<Arc<Tenant>> =
            all.into_iter().filter(|tenant| namespace(&tenant.key()) == self.own).collect();
        here.sort_by_key(|tenant| tenant.key());
        match here.as_slice() {
            [only] => Ok(only.clone()),
            [] => {
                let message = format!("namespace {} has no tenant; name one in the annotation tenant", self.own);
                Err(Problem::waiting(reasons::TENANT_NOT_FOUND, message))
            }
            several => {
                let names = several.iter().map(|tenant| tenant.key().name);
                let message = format!(
                    "namespace {} has several tenants: name {} in the annotation tenant",
                    self.own,
                    text::join_or(names)
                );
                Err(Problem::invalid(reasons::TENANT_AMBIGUOUS, message))
            }
        }
    }

    /// The template that the route names must be there: nothing is published with less than was asked for.
    fn template(&self, places: &[String]) -> Result<Option<Arc<Template>>, Problem> {
        let name = self.template_name();
        match self.find(name, places)? {
            None if self.route.input("template").is_some() && !self.declines() => {
                let places = text::join_or(places);
                let message = format!(
                    "there is no template {name} in namespace {places}; the route stays as it is until there is one"
                );
                Err(Problem::waiting(reasons::TEMPLATE_NOT_FOUND, message))
            }
            found => Ok(found),
        }
    }

    fn template_name(&self) -> &str {
        self.route.input("template").unwrap_or(DEFAULT_TEMPLATE)
    }

    /// Whether the route says that it wants no template. One of that very name is one nevertheless.
    fn declines(&self) -> bool {
        self.template_name() == NO_TEMPLATE
    }

    /// The first that is there. Where nobody can tell, there may be one.
    fn find(&self, name: &str, places: &[String]) -> Result<Option<Arc<Template>>, Problem> {
        for place in places {
            let key = ObjectKey::namespaced(place, name);
            match self.catalogue.template(&key) {
                Sought::Found(template) => return Ok(Some(template)),
                Sought::Absent => {}
                Sought::Unknown(why) => return Err(unknown(&key, why)),
            }
        }
        Ok(None)
    }

    /// Where templates are looked for: with the route, with its tenant, with the operator.
    fn places(&self, tenant: Option<&Tenant>) -> Vec<String> {
        let of_tenant = tenant.map_or(self.own.to_owned(), |tenant| namespace(&tenant.key()).to_owned());
        distinct([self.own.to_owned(), of_tenant, self.operator.to_owned()])
    }
}

fn namespace(key: &ObjectKey) -> &str {
    key.namespace.as_deref().unwrap_or_default()
}

fn distinct(places: impl IntoIterator<Item = String>) -> Vec<String> {
    let mut all = Vec::new();
    for place in places {
        if !all.contains(&place) {
            all.push(place);
        }
    }
    all
}

#[cfg(test)]
mod tests;
