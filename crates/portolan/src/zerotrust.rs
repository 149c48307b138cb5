//! What a cluster says of the zerotrust job: tenants, templates, routes, tasks, states.

/// The group of the job's kinds.
pub(crate) use portolan_zerotrust::model::GROUP;
pub(crate) use portolan_zerotrust::names::{Facts, RouteView};

use portolan_cloudflare::shown::{Shown, ShownText};

use crate::failure::{Failure, Outcome};
use crate::health_view::HealthView;
use crate::server::Server;

/// What is shown of a route that is published, as [`RouteView::shown`] tells of it.
pub(crate) const ROUTE: Shown = Shown {
    sort: ShownText::Of(|route| if route["spec"]["protected"] == true { "protected" } else { "open" }.to_owned()),
    name: ShownText::At(&["/spec/hostname"]),
    content: ShownText::At(&["/spec/leadsTo"]),
    ..Shown::named("open", "names")
};

/// Where the job's own objects are.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct NamespaceArgs {
    /// Namespace of the zerotrust job's own objects: tasks, states, shared tenants and templates
    #[arg(
        long = "operator-namespace",
        value_name = "NAME",
        env = "OPERATOR_NAMESPACE",
        default_value = portolan_zerotrust::model::OPERATOR_NAMESPACE,
        value_parser = namespace
    )]
    pub(crate) operator_namespace: String,
}

/// Manifests set variables that they have no value for.
#[expect(clippy::unnecessary_wraps, reason = "the shape of a parser")]
fn namespace(text: &str) -> Result<String, std::convert::Infallible> {
    Ok(match text.trim() {
        "" => portolan_zerotrust::model::OPERATOR_NAMESPACE.to_owned(),
        name => name.to_owned(),
    })
}

/// Reads everything that is known of the job in a cluster.
pub(crate) async fn read(server: &Server, operator_namespace: &str) -> Outcome<Facts> {
    let unread = |problem: portolan_core::Problem| {
        Failure::new(problem.message)
            .next("check that the kubeconfig may list routes, tenants, templates, tasks, config maps and events")
    };
    Facts::read(server.client(), operator_namespace).await.map_err(unread)
}

/// A route as an object with a health.
pub(crate) fn route(view: &RouteView<'_>) -> HealthView {
    HealthView { kind: "HTTPRoute".to_owned(), object: view.shown() }
}

/// Tenants, and routes that ask to be published, with their health.
pub(crate) fn seen(facts: &Facts) -> Vec<HealthView> {
    let tenants = facts.tenants().map(|tenant| HealthView {
        kind: "CloudflareZeroTrustTenant".to_owned(),
        object: serde_json::to_value(tenant).expect("objects are plain JSON"),
    });
    tenants.chain(facts.views().iter().map(route)).collect()
}
