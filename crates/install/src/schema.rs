//! The schema of the values, from their types; and values held against it: which place is wrong, and what is allowed.
//!
//! Helm holds values against the same schema, so that both refuse the same.

use portolan_core::job::JobSheet;
use regex::Regex;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

use crate::Invalid;
use crate::values::{Values, ordered};

/// How wide a description is, as comments of `values.yaml` are.
const WIDTH: usize = 112;

/// The schema: plain, without references, with the jobs that there are.
pub(crate) fn schema(jobs: &[&JobSheet]) -> Value {
    let settings = SchemaSettings::draft07().with(|settings| settings.inline_subschemas = true);
    let mut schema = settings.into_generator().into_root_schema_for::<Values>().to_value();
    plain(&mut schema);
    name_jobs(&mut schema["properties"]["controllers"], &ordered(jobs));
    schema
}

/// Says of the value that chooses jobs which there are, and what each does.
fn name_jobs(field: &mut Value, jobs: &[&JobSheet]) {
    let names: Vec<&str> = jobs.iter().map(|job| job.name).collect();
    let said: Vec<String> = jobs.iter().map(|job| format!("{} (`{}`)", job.about, job.name)).collect();
    field["description"] = json!(wrapped(&format!("The jobs that run: {}.", said.join(", "))));
    field["items"] = json!({"description": "A job that runs.", "enum": names, "type": "string"});
}

/// The text in lines of at most [`WIDTH`] characters.
fn wrapped(text: &str) -> String {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split(' ') {
        match lines.last_mut() {
            Some(line) if line.chars().count() + word.chars().count() < WIDTH => line.extend([" ", word]),
            _ => lines.push(word.to_owned()),
        }
    }
    lines.join("\n")
}

/// Takes out what says nothing here, and says of every field whether it can be missing: a null takes the default away.
fn plain(schema: &mut Value) {
    let Some(fields) = schema.as_object_mut() else { return };
    for name in ["default", "format", "title"] {
        fields.remove(name);
    }
    if let Some(choices) = fields.remove("oneOf") {
        let names = choices.as_array().into_iter().flatten().map(|choice| choice["const"].clone());
        fields.insert("enum".to_owned(), names.collect());
        fields.insert("type".to_owned(), json!("string"));
    }
    if let Some(items) = fields.get_mut("items") {
        plain(items);
    }
    if let Some(properties) = fields.get_mut("properties").and_then(Value::as_object_mut) {
        properties.values_mut().for_each(plain);
        let required: Vec<&String> =
            properties.iter().filter(|(_, field)| empty(field).is_none()).map(|(name, _)| name).collect();
        let required = json!(required);
        fields.insert("required".to_owned(), required);
    }
}

/// What stands for nothing at a place; none where something must be said.
fn empty(field: &Value) -> Option<Value> {
    match field["type"].as_str()? {
        "object" if field.get("properties").is_none() => Some(json!({})),
        "array" if field.get("minItems").is_none() => Some(json!([])),
        "string" if field.get("enum").is_none() && problem(field, &json!("")).is_none() => Some(json!("")),
        _ => None,
    }
}

/// Fails at the first place that is wrong. Places that were taken away by a null are empty afterwards.
pub(crate) fn check(jobs: &[&JobSheet], values: &mut Value) -> Result<(), Invalid> {
    walk(&schema(jobs), values, "")
}

fn walk(schema: &Value, value: &mut Value, path: &str) -> Result<(), Invalid> {
    if let Some(problem) = problem(schema, value) {
        return Err(Invalid::at(path, problem));
    }
    match value {
        Value::Object(fields) => object(schema, fields, path),
        Value::Array(elements) => elements
            .iter_mut()
            .enumerate()
            .try_for_each(|(index, element)| walk(&schema["items"], element, &format!("{path}[{index}]"))),
        _ => Ok(()),
    }
}

fn object(schema: &Value, fields: &mut Map<String, Value>, path: &str) -> Result<(), Invalid> {
    let none = Map::new();
    let known = schema["properties"].as_object().unwrap_or(&none);
    let below = |name: &str| if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
    for (name, field) in known {
        match (fields.get_mut(name), empty(field)) {
            (Some(value), _) => walk(field, value, &below(name))?,
            (None, Some(empty)) => drop(fields.insert(name.clone(), empty)),
            (None, None) => return Err(Invalid::at(below(name), "it may not be null")),
        }
    }
    for (name, value) in fields.iter_mut().filter(|(name, _)| !known.contains_key(*name)) {
        if schema["additionalProperties"] == false {
            return Err(Invalid::at(below(name), unknown(name, known)));
        }
        walk(&schema["additionalProperties"], value, &below(name))?;
    }
    Ok(())
}

/// What is wrong with a value itself, if anything.
fn problem(schema: &Value, value: &Value) -> Option<String> {
    let kind = schema["type"].as_str();
    let fits = match kind {
        Some("object") => value.is_object(),
        Some("array") => value.is_array(),
        Some("string") => value.is_string(),
        Some("boolean") => value.is_boolean(),
        Some("integer") => value.is_i64() || value.is_u64(),
        _ => true,
    };
    if !fits {
        return Some(format!("it is {}, and must be {}", named(value), wanted(kind.unwrap_or_default())));
    }
    out_of_choice(schema, value)
        .or_else(|| out_of_range(schema, value))
        .or_else(|| too_short(schema, value))
        .or_else(|| out_of_pattern(schema, value))
}

fn out_of_choice(schema: &Value, value: &Value) -> Option<String> {
    let choices = schema["enum"].as_array()?;
    let names: Vec<&str> = choices.iter().filter_map(Value::as_str).collect();
    (!choices.contains(value)).then(|| format!("it is {value}, and must be one of {}", names.join(", ")))
}

fn out_of_range(schema: &Value, value: &Value) -> Option<String> {
    let (number, least) = (value.as_i64()?, schema["minimum"].as_i64().unwrap_or(i64::MIN));
    let most = schema["maximum"].as_i64().unwrap_or(i64::MAX);
    (!(least..=most).contains(&number)).then(|| format!("it is {number}, and must be from {least} to {most}"))
}

fn too_short(schema: &Value, value: &Value) -> Option<String> {
    let short = value.as_str().is_some_and(str::is_empty) && schema["minLength"].as_u64() > Some(0);
    let few = value.as_array().is_some_and(Vec::is_empty) && schema["minItems"].as_u64() > Some(0);
    if short || few {
        return Some("it may not be empty".to_owned());
    }
    let list = value.as_array().filter(|_| schema["uniqueItems"] == true)?;
    let twice = list.iter().enumerate().find(|(index, element)| list[..*index].contains(element))?;
    Some(format!("{} stands there twice", twice.1))
}

fn out_of_pattern(schema: &Value, value: &Value) -> Option<String> {
    let (text, pattern) = (value.as_str()?, schema["pattern"].as_str()?);
    let fits = Regex::new(pattern).is_ok_and(|pattern| pattern.is_match(text));
    (!fits).then(|| format!("it is {value}, and must look like {pattern}"))
}

fn named(value: &Value) -> &'static str {
    match value {
        Value::Null => "nothing",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "a map",
    }
}

fn wanted(kind: &str) -> &'static str {
    match kind {
        "object" => "a map",
        "array" => "a list",
        "string" => "a text (put it into quotes)",
        "boolean" => "true or false",
        _ => "a whole number",
    }
}

fn unknown(name: &str, known: &Map<String, Value>) -> String {
    let near = known.keys().map(|other| (distance(name, other), other)).min();
    if let Some((_, near)) = near.filter(|(distance, other)| *distance <= 2.max(other.len() / 3)) {
        return format!("there is no such value; did you mean {near}?");
    }
    let names: Vec<&str> = known.keys().map(String::as_str).collect();
    format!("there is no such value; here stand {}", names.join(", "))
}

/// How many letters must change to get from one word to the other.
fn distance(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.to_lowercase().chars().collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (index, letter) in one.to_lowercase().chars().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], index + 1);
        for (column, with) in other.iter().enumerate() {
            let replaced = diagonal + usize::from(letter != *with);
            diagonal = row[column + 1];
            row[column + 1] = replaced.min(diagonal + 1).min(row[column] + 1);
        }
    }
    row.last().copied().unwrap_or_default()
}
