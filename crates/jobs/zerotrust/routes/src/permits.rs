//! Whether a route may have what it asks for: its tenant is asked, and namespaces whose Services it refers to.

use std::net::IpAddr;
use std::time::Duration;

use k8s_openapi::api::core::v1::Namespace;
use kube::Api;
use kube::api::{ApiResource, DynamicObject, ListParams};
use kube::core::GroupVersionKind;
use portolan_core::{Hostname, ObjectKey, Problem};
use portolan_engine::{in_time, kubernetes_problem};
use portolan_zerotrust_model::gateway::{GATEWAY_GROUP, GRANT_VERSIONS, ReferenceGrantSpec};
use portolan_zerotrust_model::permits::{self, Guard, Reference};
use portolan_zerotrust_model::{RouteInput, Selected, Settings, reasons};

use crate::shared::RoutesContext;

/// How soon a namespace is asked again that does not permit a reference.
const ASK_AGAIN: Duration = Duration::from_secs(30);

impl RoutesContext {
    /// A problem where the route's tenant, the operator's configuration or a Service's namespace does not permit what it
    /// asks for.
    pub(crate) async fn permit(
        &self,
        route: &RouteInput,
        hostname: &Hostname,
        selected: &Selected,
        settings: &Settings,
    ) -> Result<(), Problem> {
        let named = permits::origin_address(route, hostname, settings).is_some();
        let api_server = if named { self.api_server().await? } else { &[] };
        let references = permits::permit(route, hostname, selected, settings, &self.guard(api_server))?;
        for reference in &references {
            self.granted(route, reference).await?;
        }
        Ok(())
    }

    /// Whether its tenant lets a route have its name, as far as can be told without asking anybody.
    pub(crate) fn may_have(&self, route: &RouteInput, selected: &Selected) -> bool {
        let Ok(hostname) = route.hostname() else { return false };
        portolan_zerotrust_model::settings(route, selected)
            .and_then(|settings| permits::permit(route, &hostname, selected, &settings, &self.guard(&[])))
            .is_ok()
    }

    fn guard<'a>(&'a self, api_server: &'a [IpAddr]) -> Guard<'a> {
        Guard { operator_namespace: self.namespace(), allow_origins: &self.settings.allow_origins, api_server }
    }

    /// The addresses of the cluster's API server, asked for once.
    async fn api_server(&self) -> Result<&[IpAddr], Problem> {
        let found = self.api_server.get_or_try_init(|| async {
            let service = self.service(&ObjectKey::namespaced("default", "kubernetes")).await?;
            let spec = service.and_then(|service| service.spec).unwrap_or_default();
            let said = spec.cluster_ips.unwrap_or_default().into_iter().chain(spec.cluster_ip);
            let told = said.filter_map(|address| address.parse().ok());
            Ok::<_, Problem>(self.settings.api_server.iter().copied().chain(told).collect::<Vec<IpAddr>>())
        });
        found.await.map(Vec::as_slice)
    }

    async fn granted(&self, route: &RouteInput, reference: &Reference) -> Result<(), Problem> {
        let (own, service) = (route.key.namespace.as_deref().unwrap_or_default(), &reference.service);
        let there = service.namespace.as_deref().unwrap_or_default();
        if own == there || (!reference.certain && !self.exists(there).await?) {
            return Ok(());
        }
        if self.grants(there).await?.iter().any(|grant| grant.permits(own, &service.name)) {
            return Ok(());
        }
        let message = format!(
            "the route leads to Service {service}, and namespace {there} does not permit it: it needs a ReferenceGrant from \
             HTTPRoute in {own} to that Service, or the tenant lists the origin in spec.allowedOrigins"
        );
        Err(Problem::waiting(reasons::REF_NOT_PERMITTED, message).with_retry_after(ASK_AGAIN))
    }

    async fn exists(&self, namespace: &str) -> Result<bool, Problem> {
        let api: Api<Namespace> = Api::all(self.client());
        let found = in_time(api.get_metadata_opt(namespace)).await;
        let doing = format_args!("reading namespace {namespace}");
        found.map(|found| found.is_some()).map_err(|error| kubernetes_problem(doing, &error))
    }

    /// What a namespace lets others refer to: nothing, where the cluster does not know the kind.
    async fn grants(&self, namespace: &str) -> Result<Vec<ReferenceGrantSpec>, Problem> {
        for version in GRANT_VERSIONS {
            let kind = GroupVersionKind::gvk(GATEWAY_GROUP, version, "ReferenceGrant");
            let resource = ApiResource::from_gvk(&kind);
            let api: Api<DynamicObject> = Api::namespaced_with(self.client(), namespace, &resource);
            match in_time(api.list(&ListParams::default())).await {
                Ok(found) => return Ok(found.items.iter().filter_map(grant).collect()),
                Err(kube::Error::Api(refused)) if refused.code == 404 => {}
                Err(error) => {
                    let doing = format_args!("reading the ReferenceGrants of namespace {namespace}");
                    return Err(kubernetes_problem(doing, &error));
                }
            }
        }
        Ok(Vec::new())
    }
}

/// One that cannot be read grants nothing.
fn grant(object: &DynamicObject) -> Option<ReferenceGrantSpec> {
    let going = object.metadata.deletion_timestamp.is_some();
    serde_json::from_value(object.data.get("spec")?.clone()).ok().filter(|_| !going)
}
