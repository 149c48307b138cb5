//! `/accounts/{account_id}/access/apps/{app_id}/policies`: an application's own policies, one by one.

use serde_json::{Value, json};

use super::{
    ACCESS, NOT_FOUND,
    app::APPS,
    app_policies::{is_link, links, own_members, precedence, resolved, sorted, stored},
    invalid,
    policy::{self, POLICIES},
};
use crate::{
    call::RoutedCall,
    crud,
    ids::IdForm,
    reply::{Refusal, Reply, Success, to_text},
    state::State,
    store::id_of,
    table::CollectionAction,
};

/// `GET …/policies`
pub(crate) fn list(state: &mut State, call: &RoutedCall) -> Reply {
    let page = ACCESS.paging.read(call, state.options.largest_page)?;
    let _no_filters = crate::filter::read(call, &[])?;
    let account = call.param("account_id");
    let app = crud::existing(state, &APPS, call)?;
    let (shown, info) = page.cut(stored(app).filter_map(|policy| resolved(state, account, policy)).collect());
    Ok(Success { status: 200, result: to_text(&shown), info: Some(info) })
}

/// `GET …/policies/{policy_id}`
pub(crate) fn get(state: &mut State, call: &RoutedCall) -> Reply {
    let app = crud::existing(state, &APPS, call)?;
    let policy = find(app, call)?;
    let shown = resolved(state, call.param("account_id"), policy).ok_or_else(|| NOT_FOUND.refusal())?;
    Ok(Success::of(&shown))
}

fn find<'a>(app: &'a Value, call: &RoutedCall) -> Result<&'a Value, Refusal> {
    let id = call.param("policy_id");
    match stored(app).find(|policy| id_of(policy) == id) {
        Some(policy) => Ok(policy),
        None if IdForm::Uuid.fits(id) => Err(NOT_FOUND.refusal()),
        None => Err(crud::unroutable(&call.path)),
    }
}

/// `POST …/policies`: one more of the application's own.
pub(crate) fn create(state: &mut State, call: &RoutedCall) -> Reply {
    let app = crud::existing(state, &APPS, call)?.clone();
    let body = call.json()?;
    if body.get("id").is_some() {
        return Err(invalid("a policy that exists cannot be added here: list it among the app's policies"));
    }
    if links(&app).next().is_some() {
        return Err(invalid("reusable and inline policies are mutually exclusive"));
    }
    let last = stored(&app).filter_map(|policy| policy["precedence"].as_u64()).max().unwrap_or_default();
    let made = write(state, call, app, &body, last + 1, None)?;
    Ok(Success::of(&made).with(201))
}

/// `PUT …/policies/{policy_id}`
pub(crate) fn update(state: &mut State, call: &RoutedCall) -> Reply {
    let app = crud::existing(state, &APPS, call)?.clone();
    let old = find(&app, call)?.clone();
    if is_link(&old) {
        return Err(invalid("a reusable policy is changed where it is, not in an app"));
    }
    let place = old["precedence"].as_u64().unwrap_or(1);
    let changed = write(state, call, app, &call.json()?, place, Some(&old))?;
    Ok(Success::of(&changed))
}

/// Stores an application with a policy of its own, new or changed.
fn write(
    state: &mut State,
    call: &RoutedCall,
    mut app: Value,
    body: &Value,
    place: u64,
    old: Option<&Value>,
) -> Result<Value, Refusal> {
    let account = call.param("account_id");
    let Some(members) = body.as_object() else { return Err(invalid("a JSON object is expected")) };
    let place = precedence(body)?.unwrap_or(place);
    let policy = policy::inline(state, account, own_members(members)?, place, old)?;
    let rest = stored(&app).filter(|other| id_of(other) != id_of(&policy)).cloned();
    app["policies"] = sorted(state, rest.chain([policy.clone()]).collect())?;
    state.rows_mut(&APPS, account).replace(app);
    let action = if old.is_some() { CollectionAction::Patch } else { CollectionAction::Create };
    state.note(call.who(), &POLICIES, account, &[(action, &policy)]);
    Ok(policy)
}

/// `DELETE …/policies/{policy_id}`
pub(crate) fn delete(state: &mut State, call: &RoutedCall) -> Reply {
    let account = call.param("account_id");
    let mut app = crud::existing(state, &APPS, call)?.clone();
    let old = find(&app, call)?.clone();
    if is_link(&old) {
        return Err(invalid("a reusable policy is taken out of an app by the app's list of policies"));
    }
    app["policies"] = stored(&app).filter(|policy| id_of(policy) != id_of(&old)).cloned().collect();
    state.rows_mut(&APPS, account).replace(app);
    state.note(call.who(), &POLICIES, account, &[(CollectionAction::Delete, &old)]);
    Ok(Success::of(&json!({"id": id_of(&old)})).with(202))
}
