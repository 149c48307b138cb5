//! A state that is lost, rebuilt: ids from the route's annotations, each proven at Cloudflare before it is believed.
//!
//! Whoever may edit a route may write anything into its annotations, so they prove nothing by themselves. They say where to
//! look, and stay on the route until what they name is recorded again or gone.

use std::collections::BTreeMap;

use kube::ResourceExt as _;
use portolan_core::{Hostname, Mark, Problem};
use portolan_exposure::{Conventions, Elsewhere, Footprint, Fresh, gather, recover, stands};
use portolan_zerotrust_model::{CloudflareZeroTrustTenant as Tenant, State, annotations, names, select_tenant};

use crate::route_context::RouteContext;
use crate::shared::RoutesContext;
use crate::zones;

/// The outputs that name something at Cloudflare.
const IDS: &[&str] =
    &["hostnameRouteId", "cnameRecordId", "accessAppId", "accessPolicyIds", "serviceTokenId", "dnsRecordId"];

/// What became of a state that nobody has, though the route's annotations name things.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) enum Recovery {
    /// There is nothing to recover.
    #[default]
    Needless,
    /// What is proven to be ours.
    Found(Box<State>),
    /// Things stand that the annotations name, and nothing proves that they are ours.
    Unproven,
    /// It could not be looked.
    Unknown,
}

impl Recovery {
    /// Whether the annotations are all that is known of things that may stand.
    pub(crate) fn keeps_annotations(&self) -> bool {
        matches!(self, Self::Found(_) | Self::Unproven | Self::Unknown)
    }
}

/// The ids in a route's annotations, by suffix.
pub(crate) fn ids(annotated: &BTreeMap<String, String>) -> BTreeMap<&'static str, String> {
    let id = |suffix: &&'static str| {
        let text = annotated.get(&annotations::name(suffix))?.trim();
        (!text.is_empty()).then(|| (*suffix, text.to_owned()))
    };
    IDS.iter().filter_map(id).collect()
}

impl RoutesContext {
    /// Looks for what a route's annotations name, where no state does.
    pub(crate) async fn recover(&self, subject: &RouteContext) -> Result<Recovery, Problem> {
        let (Some(route), Some(input)) = (&subject.route, &subject.input) else { return Ok(Recovery::Needless) };
        let ids = ids(route.annotations());
        if ids.is_empty() || !subject.is_clean() || self.is_cleared(&subject.key) {
            return Ok(Recovery::Needless);
        }
        // Nothing can stand for a route that has no name.
        let Ok(hostname) = input.hostname() else { return Ok(Recovery::Unproven) };
        let tenant = select_tenant(input, self, self.namespace())?;
        let claimed = self.claimed(&ids, &hostname, &tenant).await?;
        let reader = self.credentials.reader(&tenant.credential()).await?;
        let mark = self.mark_of(subject);
        let live = gather(&reader, &mark, None, &claimed, Fresh::after_now()).await?;
        let adopt = input.input("adopt").is_some_and(|text| !text.eq_ignore_ascii_case("false"));
        let proven = recover(&claimed, &conventions(&subject.key.name), &mark, &live, &self.elsewhere(subject), adopt);
        if proven.is_empty() {
            return Ok(if stands(&claimed, &live) { Recovery::Unproven } else { Recovery::Needless });
        }
        let mut state = State::new("", subject.key.clone());
        state.uid = Some(input.uid.clone());
        state.tenant = Some(tenant.key());
        state.credential = Some(tenant.credential());
        state.token_secret_name = proven.service_token_id.as_ref().map(|_| names::token_secret(&subject.key));
        state.footprint = proven;
        Ok(Recovery::Found(Box::new(state)))
    }

    /// What the annotations say, at the place where the route's name would be.
    async fn claimed(
        &self,
        ids: &BTreeMap<&'static str, String>,
        hostname: &Hostname,
        tenant: &Tenant,
    ) -> Result<Footprint, Problem> {
        let reader = self.credentials.reader(&tenant.credential()).await?;
        let only = tenant.spec.zone_id.as_deref().filter(|id| !id.is_empty());
        let question = zones::ZoneQuestion { hostname, account: &tenant.spec.account_id, only };
        let id = |suffix: &str| ids.get(suffix).cloned();
        Ok(Footprint {
            account_id: Some(tenant.spec.account_id.clone()),
            hostname: Some(hostname.to_string()),
            zone_id: zones::look_up(&self.credentials, &reader, &question).await?,
            tunnel_id: Some(tenant.spec.tunnel_id.clone()),
            cname_record_id: id("cnameRecordId"),
            dns_record_id: id("dnsRecordId"),
            access_app_id: id("accessAppId"),
            service_token_id: id("serviceTokenId"),
            ..Footprint::default()
        })
    }

    fn mark_of(&self, subject: &RouteContext) -> Mark {
        Mark {
            kind: "HTTPRoute".to_owned(),
            key: subject.key.clone(),
            owner: self.context.owner.clone(),
            adopted: false,
        }
    }

    /// What the states of other routes record.
    fn elsewhere(&self, subject: &RouteContext) -> Elsewhere {
        let mut elsewhere = Elsewhere::default();
        for known in self.state_index.all().iter().filter(|known| known.state.route != subject.key) {
            let left = known.state.leftovers.iter().map(|leftover| &leftover.footprint);
            for footprint in left.chain([&known.state.footprint]) {
                elsewhere.token_ids.extend(footprint.service_token_id.clone());
                elsewhere.app_ids.extend(footprint.access_app_id.clone());
                elsewhere.app_ids.extend(footprint.former.iter().filter_map(|former| former.access_app_id.clone()));
            }
        }
        elsewhere
    }
}

/// The names that a route's application, policies and token have.
fn conventions(route: &str) -> Conventions {
    Conventions {
        app: route.to_owned(),
        policies: vec![format!("{route}-allow-policy"), format!("{route}-service-auth")],
        token: format!("{route}-service-token"),
    }
}
