//! Tenants and routes of a cluster → what is to be asked at Cloudflare, and with which token.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use portolan_cloudflare_api::Credential;
use portolan_core::{Hostname, ObjectKey};
use portolan_zerotrust::model::settings::{ALLOW_GROUPS, HTTP_REDIRECT, PROXIED};
use portolan_zerotrust::model::{CloudflareZeroTrustTenant as Tenant, Enabled, Settings};
use serde_json::Value;

use super::cloudflare::{Cloudflare, WantedPermissions};
use crate::doctor::facts::{Account, Inside, NameFacts, Secret, TokenNeeds};
use crate::failure::{Failure, Outcome};
use crate::kinds::segment;
use crate::server::{CallError, Server, ServerRequest};
use crate::zerotrust::{Facts, RouteView};

/// Which tenants and names are looked at.
#[derive(Debug, Default)]
pub(crate) struct Choice {
    pub(crate) tenant: Option<ObjectKey>,
    pub(crate) hostname: Option<Hostname>,
}

/// A tenant, and what its routes want.
pub(crate) struct TenantSubject {
    tenant: Tenant,
    wanted: WantedPermissions,
    needs: TokenNeeds,
}

/// Notes what the routes of a cluster say about themselves.
pub(crate) fn note(facts: &Facts, inside: &mut Inside) {
    inside.tenants = Ok(facts.tenants().count());
    let enabled = facts.views().into_iter().filter(is_enabled);
    for view in enabled {
        inside.enabled_routes += 1;
        if let Err(problem) = view.settings().and_then(|_| view.input.hostname()) {
            inside.stray_routes.push((view.key(), format!("{}: {}", problem.reason, problem.message)));
        }
    }
}

fn is_enabled(view: &RouteView<'_>) -> bool {
    view.input.enabled() == Enabled::Yes && !view.input.deleting
}

/// The tenants to look at, with what is wanted of each.
pub(crate) fn subjects(facts: &Facts, choice: &Choice) -> Outcome<Vec<TenantSubject>> {
    let views: Vec<RouteView<'_>> = facts.views().into_iter().filter(is_enabled).collect();
    let all = facts.tenants().map(|tenant| subject(tenant, &views));
    let chosen = |subject: &TenantSubject| choice.tenant.as_ref().is_none_or(|key| *key == subject.tenant.key());
    let mut subjects: Vec<TenantSubject> = all.filter(chosen).collect();
    if let (Some(key), true) = (&choice.tenant, subjects.is_empty()) {
        return Err(Failure::new(format!("there is no tenant {key}"))
            .next("`portolan get cloudflarezerotrusttenants -A` lists them; write NAMESPACE/NAME"));
    }
    match &choice.hostname {
        None => Ok(subjects),
        Some(hostname) => {
            let has_it = |subject: &TenantSubject| subject.wanted.names.iter().any(|name| name.hostname == *hostname);
            if subjects.iter().any(has_it) {
                subjects.retain(has_it);
            }
            only(subjects, hostname)
        }
    }
}

/// One name, looked at with the one tenant that it can be meant for.
fn only(mut subjects: Vec<TenantSubject>, hostname: &Hostname) -> Outcome<Vec<TenantSubject>> {
    if subjects.len() > 1 {
        return Err(Failure::new(format!("no route asks for {hostname}, and there are {} tenants", subjects.len()))
            .next("say which one would publish it: --tenant NAMESPACE/NAME"));
    }
    for subject in &mut subjects {
        let known = subject.wanted.names.iter().find(|name| name.hostname == *hostname).cloned();
        subject.wanted.names = vec![known.unwrap_or(NameFacts { hostname: hostname.clone(), at_the_edge: true })];
    }
    Ok(subjects)
}

fn subject(tenant: &Tenant, views: &[RouteView<'_>]) -> TenantSubject {
    let key = tenant.key();
    let is_its = |view: &&RouteView<'_>| view.tenant.as_ref().is_some_and(|tenant: &Arc<Tenant>| tenant.key() == key);
    let mut wanted = WantedPermissions {
        account_id: tenant.spec.account_id.clone(),
        zone_id: tenant.spec.zone_id.clone().filter(|id| !id.is_empty()),
        tunnels: vec![tenant.spec.tunnel_id.clone()],
        names: Vec::new(),
    };
    let (mut groups, mut redirects) = (false, false);
    for view in views.iter().filter(is_its) {
        let (Ok(settings), Ok(hostname)) = (view.settings(), view.input.hostname()) else { continue };
        groups |= settings.asks_for_access() && settings.list(&ALLOW_GROUPS).iter().any(|group| is_a_name(group));
        redirects |= settings.flag(&HTTP_REDIRECT) && settings.field(&HTTP_REDIRECT).layer.is_user();
        add_tunnel(&mut wanted.tunnels, &settings);
        let name = NameFacts { hostname, at_the_edge: !settings.is_dns_only() || settings.flag(&PROXIED) };
        if !wanted.names.contains(&name) {
            wanted.names.push(name);
        }
    }
    TenantSubject {
        tenant: tenant.clone(),
        wanted,
        needs: TokenNeeds { groups: groups.into(), redirects: redirects.into() },
    }
}

/// Ids need no looking up, and the word `everyone` neither.
fn is_a_name(group: &str) -> bool {
    group != "everyone" && uuid::Uuid::try_parse(group).is_err()
}

fn add_tunnel(tunnels: &mut Vec<String>, settings: &Settings) {
    let id = settings.tunnel_id();
    if !settings.is_dns_only() && !id.is_empty() && tunnels.iter().all(|known| known != id) {
        tunnels.push(id.to_owned());
    }
}

/// Looks at a tenant: its Secret, and Cloudflare by the token in it.
pub(crate) async fn look(server: &Server, cloudflare: &Cloudflare, subject: &TenantSubject) -> Account {
    let (secret, credential) = credential(server, &subject.tenant).await;
    let api = match &credential {
        Some(credential) => Some(cloudflare.ask(credential, &subject.wanted).await),
        None => None,
    };
    Account {
        subject: format!("tenant {}", subject.tenant.key()),
        id: subject.wanted.account_id.clone(),
        zone_id: subject.wanted.zone_id.clone(),
        needs: subject.needs,
        secret,
        api,
    }
}

async fn credential(server: &Server, tenant: &Tenant) -> (Secret, Option<Credential>) {
    let reference = tenant.credential();
    let (namespace, name, key) = (&reference.namespace, &reference.name, reference.key());
    let path = format!("/api/v1/namespaces/{}/secrets/{}", segment(namespace), segment(name));
    let secret = match server.call(ServerRequest::get(&path)).await {
        Ok(answer) => answer.body,
        Err(CallError::Refused { code: 404, .. }) => {
            return (Secret::Missing(format!("there is no Secret {namespace}/{name}")), None);
        }
        Err(error) => return (Secret::Unreadable(Failure::from(error).what().to_owned()), None),
    };
    match token(&secret, key) {
        Some(credential) => (Secret::Found(format!("Secret {namespace}/{name}, key {key}")), Some(credential)),
        None => (Secret::Missing(format!("Secret {namespace}/{name} has no value under the key {key}")), None),
    }
}

fn token(secret: &Value, key: &str) -> Option<Credential> {
    let bytes = STANDARD.decode(secret["data"][key].as_str()?).ok()?;
    let text = String::from_utf8(bytes).ok()?;
    (!text.trim().is_empty()).then(|| Credential::token(&text))
}
