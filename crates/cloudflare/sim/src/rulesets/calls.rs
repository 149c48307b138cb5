//! Entrypoints by phase, and rules one by one.

use serde_json::{Value, json};

use super::{INVALID, PHASES, RULESETS, next_version, redirect, rules_of, set_rules};
use crate::{
    call::RoutedCall,
    crud,
    field::{self, BodyVerb, MemberType, optional, required},
    reply::{Refusal, Reply, Success},
    state::State,
    store::id_of,
    table::CollectionAction,
};

fn of_phase(state: &State, zone: &str, phase: &str) -> Option<Value> {
    state.rows(&RULESETS, zone)?.by_key(phase).next().cloned()
}

fn phase(call: &RoutedCall) -> Result<&str, Refusal> {
    let phase = call.param("phase");
    if PHASES.contains(&phase) { Ok(phase) } else { Err(Refusal::bad(INVALID, format!("unknown phase {phase}"))) }
}

/// `GET …/phases/{phase}/entrypoint`
pub(crate) fn entrypoint(state: &mut State, call: &RoutedCall) -> Reply {
    let phase = phase(call)?;
    let found = of_phase(state, call.param("zone_id"), phase);
    let none = || Refusal::new(404, 10003, format!("could not find entrypoint ruleset in the {phase} phase"));
    found.map(|ruleset| Success::of(&ruleset)).ok_or_else(none)
}

/// `PUT …/phases/{phase}/entrypoint`: makes the ruleset or replaces its rules.
pub(crate) fn put_entrypoint(state: &mut State, call: &RoutedCall) -> Reply {
    let (zone, phase) = (call.param("zone_id"), phase(call)?);
    let body = call.json()?;
    let sent = &[
        optional("name", MemberType::Text),
        optional("description", MemberType::Text),
        required("rules", MemberType::List),
    ];
    let mut body = Value::Object(field::check(body, sent, BodyVerb::Create, INVALID)?);
    let ruleset = if let Some(old) = of_phase(state, zone, phase) {
        crud::change(state, &RULESETS, zone, BodyVerb::Patch, body, &old)?
    } else {
        (body["kind"], body["phase"]) = (json!("zone"), json!(phase));
        crud::create(state, &RULESETS, zone, body, None)?
    };
    state.note(call.who(), &RULESETS, zone, &[(CollectionAction::Patch, &ruleset)]);
    Ok(Success::of(&ruleset))
}

/// `POST …/{id}/rules`
pub(crate) fn add_rule(state: &mut State, call: &RoutedCall) -> Reply {
    let ruleset = crud::existing(state, &RULESETS, call)?.clone();
    let (body, position) = redirect::take_position(call.json()?)?;
    let rule = redirect::make(state, body, None)?;
    let rules = redirect::place(rules_of(&ruleset), rule, position.as_ref(), usize::MAX)?;
    write(state, call, ruleset, rules)
}

/// `PATCH …/{id}/rules/{rule_id}`: what is not sent stays.
pub(crate) fn edit_rule(state: &mut State, call: &RoutedCall) -> Reply {
    let ruleset = crud::existing(state, &RULESETS, call)?.clone();
    let mut rules = rules_of(&ruleset);
    let at = find(&rules, call)?;
    let old = rules.remove(at);
    let (body, position) = redirect::take_position(call.json()?)?;
    let rule = redirect::edit(state, body, &old)?;
    let rules = redirect::place(rules, rule, position.as_ref(), at)?;
    write(state, call, ruleset, rules)
}

/// `DELETE …/{id}/rules/{rule_id}`
pub(crate) fn delete_rule(state: &mut State, call: &RoutedCall) -> Reply {
    let ruleset = crud::existing(state, &RULESETS, call)?.clone();
    let mut rules = rules_of(&ruleset);
    rules.remove(find(&rules, call)?);
    write(state, call, ruleset, rules)
}

fn find(rules: &[Value], call: &RoutedCall) -> Result<usize, Refusal> {
    let id = call.param("rule_id");
    let place = rules.iter().position(|rule| id_of(rule) == id);
    place.ok_or_else(|| Refusal::new(404, 10003, format!("could not find rule {id} in the ruleset")))
}

/// Stores a new version of a ruleset and answers with it, as every change of a rule does.
fn write(state: &mut State, call: &RoutedCall, mut ruleset: Value, rules: Vec<Value>) -> Reply {
    let zone = call.param("zone_id");
    set_rules(state, zone, &mut ruleset, rules)?;
    ruleset["version"] = Value::from(next_version(&ruleset));
    ruleset["last_updated"] = Value::from(state.now());
    state.rows_mut(&RULESETS, zone).replace(ruleset.clone());
    state.note(call.who(), &RULESETS, zone, &[(CollectionAction::Patch, &ruleset)]);
    Ok(Success::of(&ruleset))
}
