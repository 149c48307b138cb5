//! The kinds' definitions → their reference for users, `docs/reference/cloudflare.md`.

use std::fmt::Write as _;

use portolan_cloudflare::kinds;
use serde_json::{Map, Value};

/// The page.
pub(crate) fn page() -> String {
    let mut page = String::from(
        "# Kinds of `networking.cloudflare-operator.io`\n\n\
         Generated from the types by `make reference`; the definitions themselves are printed by `portolan crds`.\n\
         Fields marked * are required.\n",
    );
    for definition in kinds::crds() {
        let definition = serde_json::to_value(definition).expect("definitions are plain JSON");
        kind(&mut page, &definition["spec"]);
    }
    page
}

fn kind(page: &mut String, spec: &Value) {
    let names = &spec["names"];
    let scope = if spec["scope"] == "Namespaced" { "in a namespace" } else { "of the cluster" };
    let short: Vec<&str> = items(&names["shortNames"]).filter_map(Value::as_str).collect();
    let short = if short.is_empty() { String::new() } else { format!(", short `{}`", short.join("`, `")) };
    line(page, &format!("\n## {}\n", text(&names["kind"])));
    // The last version is the one that is stored.
    let Some(version) = items(&spec["versions"]).find(|version| version["storage"] == true) else { return };
    let schema = &version["schema"]["openAPIV3Schema"];
    line(page, &format!("{}\n", text(&schema["description"])));
    line(page, &format!("An object {scope}; version `{}`{short}.\n", text(&version["name"])));
    for part in ["spec", "status"] {
        let Some(fields) = schema.pointer(&format!("/properties/{part}")) else { continue };
        line(page, &format!("`{part}`\n"));
        line(page, "| field | type | meaning |\n|---|---|---|");
        rows(page, fields, "");
        let mut rules = Vec::new();
        collect_rules(fields, &mut rules);
        if !rules.is_empty() {
            line(page, "\nChecked when the object is applied:\n");
            for rule in &rules {
                line(page, &format!("- {rule}"));
            }
        }
        line(page, "");
    }
}

/// A row for each field, below it those of its parts.
fn rows(page: &mut String, schema: &Value, above: &str) {
    let required: Vec<&str> = items(&schema["required"]).filter_map(Value::as_str).collect();
    for (name, field) in properties(schema) {
        let star = if required.contains(&name.as_str()) { "*" } else { "" };
        let path = format!("{above}{name}");
        let meaning = text(&field["description"]).replace('\n', " ").replace('|', "\\|");
        line(page, &format!("| `{path}`{star} | {} | {meaning}{} |", shape(field), default(field)));
        // Conditions are the same everywhere.
        if name != "conditions" {
            rows(page, field, &format!("{path}."));
            rows(page, &field["items"], &format!("{path}[]."));
        }
    }
}

fn shape(field: &Value) -> String {
    let choices: Vec<&str> = items(&field["enum"]).filter_map(Value::as_str).collect();
    if !choices.is_empty() {
        return format!("one of `{}`", choices.join("`, `"));
    }
    match field["type"].as_str() {
        Some("array") => format!("list of {}", shape(&field["items"])),
        Some(kind) => kind.to_owned(),
        None => "any".to_owned(),
    }
}

fn default(field: &Value) -> String {
    match &field["default"] {
        Value::Null => String::new(),
        value => format!(" (`{value}` where absent)"),
    }
}

fn collect_rules(schema: &Value, rules: &mut Vec<String>) {
    for rule in items(&schema["x-kubernetes-validations"]) {
        let message = text(&rule["message"]);
        if !message.is_empty() && !rules.contains(&message) {
            rules.push(message);
        }
    }
    for (_, field) in properties(schema) {
        collect_rules(field, rules);
        collect_rules(&field["items"], rules);
    }
}

fn properties(schema: &Value) -> impl Iterator<Item = (&String, &Value)> {
    schema.get("properties").and_then(Value::as_object).into_iter().flat_map(Map::iter)
}

fn items(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn line(page: &mut String, text: &str) {
    writeln!(page, "{text}").expect("a String takes everything");
}
