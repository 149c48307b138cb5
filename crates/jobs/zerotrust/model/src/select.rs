//! A route → its tenant and templates. Evaluated for each route alone: no other route can change the outcome.

use std::sync::Arc;

use portolan_core::{ObjectKey, Problem, text};

use crate::reasons;
use crate::route::RouteInput;
use crate::template::CloudflareZeroTrustTemplate as Template;
use crate::tenant::CloudflareZeroTrustTenant as Tenant;

/// The template that is used where a route names none.
pub const DEFAULT_TEMPLATE: &str = "default";

/// The tenants and templates that there are.
pub trait Catalogue {
    /// All tenants.
    fn tenants(&self) -> Vec<Arc<Tenant>>;
    /// One tenant.
    fn tenant(&self, key: &ObjectKey) -> Option<Arc<Tenant>>;
    /// One template.
    fn template(&self, key: &ObjectKey) -> Option<Arc<Template>>;
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
    let selection = Selection::new(route, catalogue, operator_namespace);
    let tenant = selection.tenant()?;
    let places = selection.places(Some(&tenant));
    let template = selection.template(&places)?;
    let base = selection.find(&format!("base-{}", tenant.key().name), &places);
    Ok(Selected { tenant, template, base })
}

/// Selects a route's tenant alone: it is known where a template or the hostname is wrong, too.
pub fn select_tenant(
    route: &RouteInput,
    catalogue: &impl Catalogue,
    operator_namespace: &str,
) -> Result<Arc<Tenant>, Problem> {
    Selection::new(route, catalogue, operator_namespace).tenant()
}

struct Selection<'a, C> {
    route: &'a RouteInput,
    catalogue: &'a C,
    own: &'a str,
    operator: &'a str,
}

impl<'a, C: Catalogue> Selection<'a, C> {
    fn new(route: &'a RouteInput, catalogue: &'a C, operator: &'a str) -> Self {
        Self { route, catalogue, own: namespace(&route.key), operator }
    }

    /// Named by the route, else by its template, else the only one of its namespace.
    fn tenant(&self) -> Result<Arc<Tenant>, Problem> {
        if let Some(name) = self.route.input("tenant") {
            return self.named(name, "annotation tenant");
        }
        let name = self.route.input("template").unwrap_or(DEFAULT_TEMPLATE);
        let hinted = self.find(name, &self.places(None));
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
        if tenant.allows(self.own) {
            return Ok(tenant);
        }
        let message = format!(
            "tenant {} takes no routes of namespace {}: its spec.allowedNamespaces does not name it",
            tenant.key(),
            self.own
        );
        Err(Problem::waiting(reasons::TENANT_NOT_FOUND, message))
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
        let Some(name) = self.route.input("template") else { return Ok(self.find(DEFAULT_TEMPLATE, places)) };
        self.find(name, places).map(Some).ok_or_else(|| {
            let places = text::join_or(places);
            let message = format!(
                "there is no template {name} in namespace {places}; the route stays as it is until there is one"
            );
            Problem::waiting(reasons::TEMPLATE_NOT_FOUND, message)
        })
    }

    fn find(&self, name: &str, places: &[String]) -> Option<Arc<Template>> {
        places.iter().find_map(|place| self.catalogue.template(&ObjectKey::namespaced(place, name)))
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
