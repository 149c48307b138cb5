//! Method and path in, the function that answers out.

use std::{collections::BTreeMap, sync::LazyLock};

use http::Method;

use crate::{
    access,
    auth::{Actor, RightLevel},
    call::{RoutedCall, decode},
    crud,
    reply::{Refusal, Reply},
    special::SPECIAL,
    state::State,
    store::text,
    table::{Below, COLLECTIONS, Collection, CollectionAction},
    zone,
};

/// What answers a route.
#[derive(Clone, Copy)]
enum Responder {
    Row(&'static Collection, CollectionAction),
    Special(fn(&mut State, &RoutedCall) -> Reply),
}

/// One path that is served.
pub(crate) struct SimRoute {
    pub(crate) method: Method,
    pub(crate) template: String,
    /// The permission it takes; `None` for what every credential may.
    needs: Option<(&'static str, RightLevel)>,
    run: Responder,
}

/// All routes; those with fixed segments come before those with parameters in the same place.
pub(crate) static ROUTES: LazyLock<Vec<SimRoute>> = LazyLock::new(|| {
    let special = SPECIAL.iter().map(|(method, template, needs, run)| SimRoute {
        method: method.parse().expect("the table names methods"),
        template: (*template).to_owned(),
        needs: *needs,
        run: Responder::Special(*run),
    });
    special.chain(COLLECTIONS.iter().flat_map(|row| row.actions.iter().map(|action| route(row, *action)))).collect()
});

fn route(row: &'static Collection, action: CollectionAction) -> SimRoute {
    let list = row.template();
    let (method, template) = match action {
        CollectionAction::List => (Method::GET, list),
        CollectionAction::Create => (Method::POST, list),
        CollectionAction::Get => (Method::GET, list + "/{id}"),
        CollectionAction::Replace => (Method::PUT, list + "/{id}"),
        CollectionAction::Patch => (Method::PATCH, list + "/{id}"),
        CollectionAction::Delete => (Method::DELETE, list + "/{id}"),
    };
    SimRoute { method, template, needs: Some((row.group, action.level())), run: Responder::Row(row, action) }
}

type Params = BTreeMap<&'static str, String>;

impl SimRoute {
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
pub(crate) fn find(method: &Method, path: &str) -> Result<(&'static SimRoute, Params), Refusal> {
    let mut fitting = ROUTES.iter().filter_map(|route| Some((route, route.fits(path)?))).peekable();
    if fitting.peek().is_none() {
        return Err(Refusal::new(404, 7000, "No route for that URI"));
    }
    let found = fitting.find(|(route, _)| route.method == method);
    found.ok_or_else(|| Refusal::new(405, 10405, "Method not allowed for this endpoint"))
}

/// Answers a call whose sender is known.
pub(crate) fn run(state: &mut State, route: &SimRoute, call: &RoutedCall) -> Reply {
    admit_scope(state, call)?;
    if let Some((group, level)) = route.needs
        && !call.actor.grant.allows(group, level)
    {
        return Err(not_permitted(route, call));
    }
    if state.without_zero_trust.contains(call.param("account_id")) && route.template.contains("/access/") {
        return Err(access::not_enabled());
    }
    match route.run {
        Responder::Row(row, action) => crud::run(state, row, action, call),
        Responder::Special(special) => special(state, call),
    }
}

/// The answer to a credential that lacks the route's permission. The list of zones has words of its own.
fn not_permitted(route: &SimRoute, call: &RoutedCall) -> Refusal {
    match route.run {
        Responder::Row(row, CollectionAction::List) if row.name == zone::ZONES.name => {
            let (actor, permission) = (&call.actor.id, "com.cloudflare.api.account.zone.list");
            let message =
                format!("Actor 'com.cloudflare.api.token.{actor}' requires permission '{permission}' to list zones");
            Refusal::new(403, 0, message)
        }
        Responder::Row(..) | Responder::Special(_) => Refusal::new(403, 10000, "Authentication error"),
    }
}

/// Whether the account or zone in the path exists and the sender sees it.
fn admit_scope(state: &State, call: &RoutedCall) -> Result<(), Refusal> {
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
        let Some(found) = state.get(&zone::ZONES, "", id) else { return Err(no_such_zone(state, call, id)) };
        if !sees_zone(&call.actor, found) {
            return Err(Refusal::new(403, 10000, "Authentication error"));
        }
    }
    Ok(())
}

/// The answer to what is asked of a zone that is not there.
fn no_such_zone(state: &State, call: &RoutedCall, id: &str) -> Refusal {
    let hides = state.options.hides_vanished_zones && zone::ZONES.id.fits(id);
    if hides { crud::hidden() } else { crud::unroutable(&call.path) }
}

fn sees_zone(actor: &Actor, zone: &serde_json::Value) -> bool {
    actor.grant.sees_zone(text(zone, "id"), text(&zone["account"], "id"))
}

impl Below {
    /// A word for the list of routes.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Root => "everywhere",
            Self::Account => "per account",
            Self::Zone => "per zone",
        }
    }
}
