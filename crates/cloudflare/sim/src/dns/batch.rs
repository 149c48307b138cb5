//! `POST /zones/{zone_id}/dns_records/batch`: many changes or none.
//!
//! Always in the order deletes, patches, puts, posts. The first refusal takes everything back and says which
//! operation it was about.

use serde_json::{Map, Value};

use super::RECORDS;
use crate::{
    call::RoutedCall,
    crud,
    field::BodyVerb,
    reply::{Refusal, Reply, Success, array},
    state::State,
    store::{Undo, id_of, text},
    table::CollectionAction,
    zone::{ZONES, ZonePlan},
};

const STEPS: [&str; 4] = ["deletes", "patches", "puts", "posts"];

pub(crate) fn run(state: &mut State, call: &RoutedCall) -> Reply {
    let body = call.json()?;
    let steps = read(&body)?;
    let zone = call.param("zone_id").to_owned();
    let limit = state.get(&ZONES, "", &zone).map_or(0, |zone| ZonePlan::of(zone).batch);
    let operations: usize = steps.iter().map(|(_, operations)| operations.len()).sum();
    if operations > limit {
        let message = format!("Batch has {operations} operations, exceeding the limit of {limit}.");
        return Err(Refusal::bad(9208, message));
    }
    let mut undo = Vec::new();
    let done = apply(state, &zone, &steps, &mut undo);
    match done {
        Ok(done) => Ok(finish(state, call, &zone, &done)),
        Err(refusal) => {
            state.rows_mut(&RECORDS, &zone).undo(undo);
            Err(refusal)
        }
    }
}

type BatchSteps<'a> = Vec<(&'static str, &'a [Value])>;

fn read(body: &Value) -> Result<BatchSteps<'_>, Refusal> {
    let wrong = |message: String| Refusal::bad(9207, format!("Request body is invalid: {message}."));
    let members = body.as_object().ok_or_else(|| wrong("a JSON object is expected".into()))?;
    if let Some(name) = members.keys().find(|name| !STEPS.contains(&name.as_str())) {
        return Err(wrong(format!("unknown field \"{name}\"")));
    }
    let operations = |name: &'static str| match members.get(name) {
        None | Some(Value::Null) => Ok((name, &[][..])),
        Some(Value::Array(operations)) => Ok((name, operations.as_slice())),
        Some(_) => Err(wrong(format!("{name} must be an array"))),
    };
    STEPS.into_iter().map(operations).collect()
}

type BatchResult = Vec<(&'static str, Vec<Value>)>;

fn apply(state: &mut State, zone: &str, steps: &BatchSteps<'_>, undo: &mut Vec<Undo>) -> Result<BatchResult, Refusal> {
    let mut done = Vec::new();
    for (step, operations) in steps {
        let mut results = Vec::with_capacity(operations.len());
        for (place, operation) in operations.iter().enumerate() {
            let (result, back) =
                one(state, zone, step, operation).map_err(|refusal| refusal.at(&format!("/{step}/{place}")))?;
            results.push(result);
            undo.push(back);
        }
        done.push((*step, results));
    }
    Ok(done)
}

fn one(state: &mut State, zone: &str, step: &str, operation: &Value) -> Result<(Value, Undo), Refusal> {
    if step == "posts" {
        let made = crud::create(state, &RECORDS, zone, operation.clone(), None)?;
        let back = Undo::Insert(id_of(&made).to_owned());
        return Ok((made, back));
    }
    let id = text(operation, "id");
    if id.is_empty() {
        return Err(Refusal::bad(9207, "id is a required field."));
    }
    let old = state.get(&RECORDS, zone, id).cloned().ok_or_else(|| RECORDS.not_found.refusal())?;
    let body = without_id(operation);
    let verb = match step {
        "patches" => BodyVerb::Patch,
        "puts" => BodyVerb::Replace,
        _ if body.is_empty() => {
            let back = state.rows_mut(&RECORDS, zone).remove(id);
            return back.map(|back| (old, back)).ok_or_else(|| RECORDS.not_found.refusal());
        }
        _ => return Err(Refusal::bad(9207, "Request body is invalid: a delete has an id alone.")),
    };
    let new = crud::change(state, &RECORDS, zone, verb, Value::Object(body), &old)?;
    Ok((new, Undo::Replace(old)))
}

fn without_id(operation: &Value) -> Map<String, Value> {
    let members = operation.as_object().into_iter().flatten();
    members.filter(|(name, _)| *name != "id").map(|(name, value)| (name.clone(), value.clone())).collect()
}

fn finish(state: &mut State, call: &RoutedCall, zone: &str, done: &BatchResult) -> Success {
    let action = |step: &str| match step {
        "deletes" => CollectionAction::Delete,
        "posts" => CollectionAction::Create,
        _ => CollectionAction::Patch,
    };
    let changes: Vec<_> =
        done.iter().flat_map(|(step, results)| results.iter().map(|result| (action(step), result))).collect();
    state.note(call.who(), &RECORDS, zone, &changes);
    let stored = |result: &Value| state.rows(&RECORDS, zone).and_then(|rows| rows.stored(id_of(result)));
    let text = |result: &Value| stored(result).map_or_else(|| result.to_string(), |stored| stored.text.to_string());
    let member = |(step, results): &(&str, Vec<Value>)| {
        if results.is_empty() {
            format!("\"{step}\":null")
        } else {
            format!("\"{step}\":{}", array(results.iter().map(|result| text(result).into())))
        }
    };
    Success {
        status: 200,
        result: format!("{{{}}}", done.iter().map(member).collect::<Vec<_>>().join(",")),
        info: None,
    }
}
