//! Method and path in, the function that answers out.

use std::{collections::BTreeMap, sync::LazyLock};

use http::Method;

use crate::{
    access::{app_policies, service_token},
    audit,
    auth::{Actor, Level},
    call::{Call, decode},
    crud, dns, network_route,
    reply::{Refusal, Reply, Success},
    rulesets,
    state::State,
    store::text,
    table::{Action, COLLECTIONS, Collection, Scope},
    tunnel, zone,
};

/// What answers a route.
#[derive(Clone, Copy)]
enum Run {
    Row(&'static Collection, Action),
    Special(fn(&mut State, &Call) -> Reply),
}

/// One path that is served.
pub(crate) struct Route {
    pub(crate) method: Method,
    pub(crate) template: String,
    /// The permission it takes; `None` for what every credential may.
    needs: Option<(&'static str, Level)>,
    run: Run,
}

/// A function for a path that no row describes.
type Special = (&'static str, &'static str, Option<(&'static str, Level)>, fn(&mut State, &Call) -> Reply);

const SPECIAL: &[Special] = &[
    ("GET", "/user/tokens/verify", None, verify),
    ("GET", "/accounts/{account_id}/tokens/verify", None, verify),
    ("GET", "/accounts/{account_id}/audit_logs", Some(("audit_logs", Level::Read)), audit::list),
    ("POST", "/zones/{zone_id}/dns_records/batch", Some(("dns", Level::Edit)), dns::batch::run),
    ("GET", "/accounts/{account_id}/cfd_tunnel/{id}/token", Some(("tunnel", Level::Edit)), tunnel::token),
    ("GET", "/accounts/{account_id}/cfd_tunnel/{id}/connections", Some(("tunnel", Level::Read)), tunnel::connections),
    ("DELETE", "/accounts/{account_id}/cfd_tunnel/{id}/connections", Some(("tunnel", Level::Edit)), tunnel::disconnect),
    (
        "GET",
        "/accounts/{account_id}/cfd_tunnel/{id}/configurations",
        Some(("tunnel", Level::Read)),
        tunnel::configuration,
    ),
    ("PUT", "/accounts/{account_id}/cfd_tunnel/{id}/configurations", Some(("tunnel", Level::Edit)), tunnel::configure),
    (
        "POST",
        "/accounts/{account_id}/teamnet/routes/network/{network}",
        Some(("networks", Level::Edit)),
        network_route::create_by_network,
    ),
    (
        "PATCH",
        "/accounts/{account_id}/teamnet/routes/network/{network}",
        Some(("networks", Level::Edit)),
        network_route::patch_by_network,
    ),
    (
        "DELETE",
        "/accounts/{account_id}/teamnet/routes/network/{network}",
        Some(("networks", Level::Edit)),
        network_route::delete_by_network,
    ),
    (
        "GET",
        "/accounts/{account_id}/teamnet/routes/ip/{ip}",
        Some(("networks", Level::Read)),
        network_route::find_by_ip,
    ),
    ("GET", "/accounts/{account_id}/access/apps/{id}/policies", Some(("access_apps", Level::Read)), app_policies::list),
    (
        "POST",
        "/accounts/{account_id}/access/apps/{id}/policies",
        Some(("access_apps", Level::Edit)),
        app_policies::create,
    ),
    (
        "GET",
        "/accounts/{account_id}/access/apps/{id}/policies/{policy_id}",
        Some(("access_apps", Level::Read)),
        app_policies::get,
    ),
    (
        "PUT",
        "/accounts/{account_id}/access/apps/{id}/policies/{policy_id}",
        Some(("access_apps", Level::Edit)),
        app_policies::update,
    ),
    (
        "DELETE",
        "/accounts/{account_id}/access/apps/{id}/policies/{policy_id}",
        Some(("access_apps", Level::Edit)),
        app_policies::delete,
    ),
    (
        "POST",
        "/accounts/{account_id}/access/service_tokens",
        Some(("access_service_tokens", Level::Edit)),
        service_token::create,
    ),
    (
        "PUT",
        "/accounts/{account_id}/access/service_tokens/{id}",
        Some(("access_service_tokens", Level::Edit)),
        service_token::update,
    ),
    (
        "DELETE",
        "/accounts/{account_id}/access/service_tokens/{id}",
        Some(("access_service_tokens", Level::Edit)),
        service_token::delete,
    ),
    (
        "POST",
        "/accounts/{account_id}/access/service_tokens/{id}/rotate",
        Some(("access_service_tokens", Level::Edit)),
        service_token::rotate,
    ),
    (
        "POST",
        "/accounts/{account_id}/access/service_tokens/{id}/refresh",
        Some(("access_service_tokens", Level::Edit)),
        service_token::refresh,
    ),
    (
        "GET",
        "/zones/{zone_id}/rulesets/phases/{phase}/entrypoint",
        Some(("rulesets", Level::Read)),
        rulesets::entrypoint,
    ),
    (
        "PUT",
        "/zones/{zone_id}/rulesets/phases/{phase}/entrypoint",
        Some(("rulesets", Level::Edit)),
        rulesets::put_entrypoint,
    ),
    ("POST", "/zones/{zone_id}/rulesets/{id}/rules", Some(("rulesets", Level::Edit)), rulesets::add_rule),
    ("PATCH", "/zones/{zone_id}/rulesets/{id}/rules/{rule_id}", Some(("rulesets", Level::Edit)), rulesets::edit_rule),
    (
        "DELETE",
        "/zones/{zone_id}/rulesets/{id}/rules/{rule_id}",
        Some(("rulesets", Level::Edit)),
        rulesets::delete_rule,
    ),
];

/// All routes; those with fixed segments come before those with parameters in the same place.
pub(crate) static ROUTES: LazyLock<Vec<Route>> = LazyLock::new(|| {
    let special = SPECIAL.iter().map(|(method, template, needs, run)| Route {
        method: method.parse().expect("the table names methods"),
        template: (*template).to_owned(),
        needs: *needs,
        run: Run::Special(*run),
    });
    special.chain(COLLECTIONS.iter().flat_map(|row| row.actions.iter().map(|action| route(row, *action)))).collect()
});

fn route(row: &'static Collection, action: Action) -> Route {
    let list = row.template();
    let (method, template) = match action {
        Action::List => (Method::GET, list),
        Action::Create => (Method::POST, list),
        Action::Get => (Method::GET, list + "/{id}"),
        Action::Replace => (Method::PUT, list + "/{id}"),
        Action::Patch => (Method::PATCH, list + "/{id}"),
        Action::Delete => (Method::DELETE, list + "/{id}"),
    };
    Route { method, template, needs: Some((row.group, action.level())), run: Run::Row(row, action) }
}

type Params = BTreeMap<&'static str, String>;

impl Route {
    fn fits(&'static self, path: &str) -> Option<Params> {
        let mut params = Params::new();
        let (mut wanted, mut given) = (self.template.split('/'), path.split('/'));
        loop {
            match (wanted.next(), given.next()) {
                (None, None) => return Some(params),
                (Some(name), Some(value)) if name.starts_with('{') && !value.is_empty() => {
                    params.insert(name.trim_matches(['{', '}']), decode(value));
                }
                (Some(fixed), Some(value)) if fixed == value => {}
                _ => return None,
            }
        }
    }
}

/// The route of a request with the values of its parameters.
pub(crate) fn find(method: &Method, path: &str) -> Result<(&'static Route, Params), Refusal> {
    let mut fitting = ROUTES.iter().filter_map(|route| Some((route, route.fits(path)?))).peekable();
    if fitting.peek().is_none() {
        return Err(Refusal::new(404, 7000, "No route for that URI"));
    }
    let found = fitting.find(|(route, _)| route.method == method);
    found.ok_or_else(|| Refusal::new(405, 10405, "Method not allowed for this endpoint"))
}

/// Answers a call whose sender is known.
pub(crate) fn run(state: &mut State, route: &Route, call: &Call) -> Reply {
    admit_scope(state, call)?;
    if let Some((group, level)) = route.needs
        && !call.actor.grant.allows(group, level)
    {
        return Err(Refusal::new(403, 10000, "Authentication error"));
    }
    match route.run {
        Run::Row(row, action) => crud::run(state, row, action, call),
        Run::Special(special) => special(state, call),
    }
}

/// Whether the account or zone in the path exists and the sender sees it.
fn admit_scope(state: &State, call: &Call) -> Result<(), Refusal> {
    if let Some(account) = call.params.get("account_id") {
        let known = Collection::find("accounts").is_some_and(|row| state.get(row, "", account).is_some());
        if !known && !crate::ids::IdForm::Hex.fits(account) {
            return Err(crud::unroutable(&call.path));
        }
        if !known || !call.actor.grant.sees_account(account) {
            return Err(Refusal::new(403, 10000, "Authentication error"));
        }
    }
    if let Some(id) = call.params.get("zone_id") {
        let Some(found) = state.get(&zone::ZONES, "", id) else { return Err(crud::unroutable(&call.path)) };
        if !sees_zone(&call.actor, found) {
            return Err(Refusal::new(403, 10000, "Authentication error"));
        }
    }
    Ok(())
}

fn sees_zone(actor: &Actor, zone: &serde_json::Value) -> bool {
    actor.grant.sees_zone(text(zone, "id"), text(&zone["account"], "id"))
}

/// `GET /user/tokens/verify`
#[expect(clippy::unnecessary_wraps, reason = "the shape of a handler")]
fn verify(_: &mut State, call: &Call) -> Reply {
    Ok(Success::of(&serde_json::json!({"id": call.actor.id, "status": "active"})))
}

impl Scope {
    /// A word for the list of routes.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Root => "everywhere",
            Self::Account => "per account",
            Self::Zone => "per zone",
        }
    }
}
