//! A cluster's objects of the zerotrust job, read once.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;
use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{ConfigMap, Event, Secret};
use kube::api::{ApiResource, DynamicObject, ListParams};
use kube::{Api, Client, ResourceExt};
use portolan_core::{ObjectKey, Problem, reasons, text};
use portolan_zerotrust_model::{
    Catalogue, CloudflareTask, CloudflareZeroTrustTemplate as Template, CloudflareZeroTrustTenant as Tenant, Enabled,
    HttpRoute, RouteInput, Selected, Sought, State, select, select_tenant, still_there,
};
use serde::de::DeserializeOwned;

use super::route::{Incident, RouteView};

/// Everything that is known of the job in a cluster.
pub struct Facts {
    operator_namespace: String,
    tenants: BTreeMap<ObjectKey, Arc<Tenant>>,
    templates: BTreeMap<ObjectKey, Arc<Template>>,
    /// Templates that do not fit their definition.
    malformed: BTreeSet<ObjectKey>,
    routes: Vec<HttpRoute>,
    tasks: Vec<CloudflareTask>,
    states: Vec<State>,
    incidents: BTreeMap<ObjectKey, Incident>,
}

impl Facts {
    /// Reads them. A kind that the server does not have counts as one without objects.
    pub async fn read(client: &Client, operator_namespace: &str) -> Result<Self, Problem> {
        let client = || client.clone();
        let everything = ListParams::default();
        let tenants: Vec<Tenant> = list(&Api::all(client()), &everything).await?;
        let kind = ApiResource::erase::<Template>(&());
        let templates: Vec<DynamicObject> = list(&Api::all_with(client(), &kind), &everything).await?;
        let (templates, malformed) = read_templates(templates);
        let maps: Vec<ConfigMap> = list(&Api::namespaced(client(), operator_namespace), &everything).await?;
        let of_routes = ListParams::default().fields("involvedObject.kind=HTTPRoute");
        let events: Vec<Event> = list(&Api::all(client()), &of_routes).await?;
        Ok(Self {
            operator_namespace: operator_namespace.to_owned(),
            tenants: tenants.into_iter().map(|tenant| (tenant.key(), Arc::new(tenant))).collect(),
            templates,
            malformed,
            routes: list(&Api::all(client()), &everything).await?,
            tasks: list(&Api::namespaced(client(), operator_namespace), &everything).await?,
            states: maps.iter().filter(|map| State::is_one(map)).filter_map(|map| State::read(map).ok()).collect(),
            incidents: latest(&events),
        })
    }

    /// All tenants.
    pub fn tenants(&self) -> impl Iterator<Item = &Tenant> {
        self.tenants.values().map(AsRef::as_ref)
    }

    /// Every route that asks to be published or has been, with all that is known of it.
    pub fn views(&self) -> Vec<RouteView<'_>> {
        let inputs = self.routes.iter().map(RouteInput::read);
        let views = inputs.map(|input| self.view(input));
        views.filter(|view| view.input.enabled() != Enabled::No || view.state.is_some()).collect()
    }

    fn view(&self, input: RouteInput) -> RouteView<'_> {
        let namespace = input.key.namespace.as_deref().unwrap_or_default();
        let is_its = |task: &&CloudflareTask| {
            let reference = task.spec.httproute_ref.as_ref();
            reference.is_some_and(|route| route.namespace == namespace && route.name == input.key.name)
        };
        RouteView {
            tasks: self.tasks.iter().filter(is_its).collect(),
            state: self.states.iter().find(|state| state.route == input.key),
            incident: self.incidents.get(&input.key),
            tenant: select_tenant(&input, self, &self.operator_namespace).ok(),
            selected: self.selected(&input),
            input,
        }
    }

    /// The tenant and the templates of a route; a problem where a template is gone that took part in what stands.
    fn selected(&self, input: &RouteInput) -> Result<Selected, Problem> {
        let selected = select(input, self, &self.operator_namespace)?;
        let state = self.states.iter().find(|state| state.route == input.key);
        if let Some(took_part) = state.and_then(|state| state.templates.as_ref()) {
            still_there(input, &selected, took_part, self, &self.operator_namespace)?;
        }
        Ok(selected)
    }
}

impl Catalogue for Facts {
    fn tenants(&self) -> Vec<Arc<Tenant>> {
        self.tenants.values().cloned().collect()
    }

    fn tenant(&self, key: &ObjectKey) -> Option<Arc<Tenant>> {
        self.tenants.get(key).cloned()
    }

    fn template(&self, key: &ObjectKey) -> Sought {
        if self.malformed.contains(key) {
            return Sought::Unknown("it does not fit its definition; correct it");
        }
        self.templates.get(key).cloned().into()
    }
}

/// Templates by key, and those that do not fit their definition.
fn read_templates(objects: Vec<DynamicObject>) -> (BTreeMap<ObjectKey, Arc<Template>>, BTreeSet<ObjectKey>) {
    let (mut templates, mut malformed) = (BTreeMap::new(), BTreeSet::new());
    for object in objects {
        let key = ObjectKey::namespaced(object.namespace().unwrap_or_default(), object.name_any());
        match object.try_parse::<Template>() {
            Ok(template) => drop(templates.insert(key, Arc::new(template))),
            Err(_) => drop(malformed.insert(key)),
        }
    }
    (templates, malformed)
}

/// The last event of each route.
fn latest(events: &[Event]) -> BTreeMap<ObjectKey, Incident> {
    let mut latest: BTreeMap<ObjectKey, Incident> = BTreeMap::new();
    for event in events {
        let involved = &event.involved_object;
        let key = ObjectKey::namespaced(
            involved.namespace.clone().unwrap_or_default(),
            involved.name.clone().unwrap_or_default(),
        );
        let incident = Incident::of(event);
        if latest.get(&key).is_none_or(|known| known.at <= incident.at) {
            latest.insert(key, incident);
        }
    }
    latest
}

impl Incident {
    fn of(event: &Event) -> Self {
        let series = event.series.as_ref().and_then(|series| series.last_observed_time.as_ref()).map(|time| time.0);
        let last = event.last_timestamp.as_ref().map(|time| time.0);
        let first = event.event_time.as_ref().map(|time| time.0);
        let made = event.creation_timestamp().map(|time| time.0);
        Self {
            at: [series, last, first, made].into_iter().flatten().max().unwrap_or(Timestamp::UNIX_EPOCH),
            is_warning: event.type_.as_deref() == Some("Warning"),
            reason: event.reason.clone().unwrap_or_default(),
            message: event.message.clone().unwrap_or_default(),
        }
    }
}

async fn list<K>(api: &Api<K>, parameters: &ListParams) -> Result<Vec<K>, Problem>
where
    K: Clone + DeserializeOwned + Debug,
{
    match api.list(parameters).await {
        Ok(found) => Ok(found.items),
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(Vec::new()),
        Err(kube::Error::Api(status)) => Err(unread(&status.message)),
        Err(error) => Err(unread(&text::chain(&error))),
    }
}

fn unread(why: &str) -> Problem {
    Problem::transient(reasons::API_ERROR, format!("reading the cluster: {why}"))
}

/// Whether a Secret is there.
pub(super) async fn has_secret(client: &Client, namespace: &str, name: &str) -> bool {
    let api: Api<Secret> = Api::namespaced(client.clone(), namespace);
    api.get_metadata_opt(name).await.ok().flatten().is_some()
}

#[cfg(test)]
mod tests {
    use serde_json::{from_value, json};

    use super::*;

    /// A route that is published with a template that is not there.
    fn facts(malformed: &[&str]) -> Facts {
        let tenant: Tenant = from_value(json!({
            "apiVersion": "cfzt.cloudflare.com/v1alpha1", "kind": "CloudflareZeroTrustTenant",
            "metadata": {"name": "prod", "namespace": "apps"},
            "spec": {"accountId": "a", "tunnelId": "t", "credentialRef": {"name": "token"}},
        }))
        .unwrap();
        let route: HttpRoute = from_value(json!({
            "metadata": {"name": "web", "namespace": "apps", "annotations": {
                "cfzt.cloudflare.com/enabled": "true", "cfzt.cloudflare.com/hostname": "web.example.com"}},
            "spec": {},
        }))
        .unwrap();
        let key = |name: &str| ObjectKey::namespaced("apps", name);
        let mut state = State::new("cfzt-apps-web", key("web"));
        state.templates = Some([key("base-prod")].into());
        Facts {
            operator_namespace: "ops".to_owned(),
            tenants: [(tenant.key(), Arc::new(tenant))].into(),
            templates: BTreeMap::new(),
            malformed: malformed.iter().map(|name| key(name)).collect(),
            routes: vec![route],
            tasks: Vec::new(),
            states: vec![state],
            incidents: BTreeMap::new(),
        }
    }

    #[test]
    fn finding_2_a_template_that_is_gone_or_broken_is_named() {
        for (malformed, told) in [(&[][..], "is gone"), (&["base-prod"], "does not fit its definition")] {
            let facts = facts(malformed);
            let verdict = facts.views()[0].verdict();

            assert_eq!(verdict.reason, "TemplateNotFound");
            assert!(
                verdict.message.contains("apps/base-prod") && verdict.message.contains(told),
                "{}",
                verdict.message
            );
        }
    }
}
