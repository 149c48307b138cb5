//! The kinds' definitions and annotations → their reference for users, in `docs/reference`.

use std::fmt::Write as _;

use portolan_core::job::JobSheet;
use portolan_zerotrust_model::annotations::{self, PREFIX};
use portolan_zerotrust_model::settings::{BuiltIn, SETTINGS, Setting};
use serde_json::{Map, Value};

use crate::metrics;

/// All pages: name of the file, and what is in it.
pub(crate) fn pages(jobs: &[&JobSheet]) -> Vec<(String, String)> {
    let mut pages: Vec<(String, String)> = jobs.iter().map(|job| page_of(job)).collect();
    pages.push(("metrics.md".to_owned(), metrics::page(jobs)));
    pages
}

fn page_of(job: &JobSheet) -> (String, String) {
    match job.group {
        // Its users write annotations, which are no kind.
        portolan_zerotrust_model::GROUP => ("zero-trust.md".to_owned(), zero_trust(job)),
        _ => (format!("{}.md", job.name), kinds(job)),
    }
}

fn kinds(job: &JobSheet) -> String {
    let mut page = format!("# Kinds of `{}`\n\n", job.group);
    page.push_str(PREFACE);
    kinds_of(&mut page, job);
    page
}

fn zero_trust(job: &JobSheet) -> String {
    let mut page = format!("# Annotations of routes and kinds of `{}`\n\n", portolan_zerotrust_model::GROUP);
    page.push_str(PREFACE);
    inputs(&mut page);
    settings(&mut page);
    outputs(&mut page);
    kinds_of(&mut page, job);
    page
}

const PREFACE: &str = "Generated from the types by `make reference`; the definitions themselves are printed by `portolan crds`.\n\
                       Fields marked * are required.\n";

fn inputs(page: &mut String) {
    line(page, "\n## Annotations that you write\n");
    line(page, &format!("On an `HTTPRoute`, each behind the prefix `{PREFIX}`.\n"));
    line(page, "| annotation | value | meaning |\n|---|---|---|");
    for input in annotations::ROUTE_INPUTS {
        line(page, &format!("| `{}` | {} | {} |", input.suffix, input.shape.as_str(), input.doc));
    }
}

fn settings(page: &mut String) {
    line(page, "\n## Settings\n");
    line(
        page,
        "Each is taken from the first place that says it: the route's annotation, an older name of it, the route's",
    );
    line(
        page,
        "template, the template `base-{tenant}`, the tenant's defaults, and what holds where nobody says anything.\n",
    );
    line(
        page,
        "| annotation | value | older names | in templates | in tenants | else | meaning |\n|---|---|---|---|---|---|---|",
    );
    for setting in SETTINGS {
        line(page, &setting_row(setting));
    }
}

fn setting_row(setting: &Setting) -> String {
    // Places in objects are JSON pointers there, and dotted here.
    let code = |text: &str| match text.trim_start_matches('/') {
        "" => String::new(),
        text => format!("`{}`", text.replace('/', ".")),
    };
    let older: Vec<String> = setting.aliases.iter().map(|alias| code(alias)).collect();
    let built_in = match setting.built_in {
        BuiltIn::Nothing => String::new(),
        other => code(&other.value().to_string()),
    };
    let (value, older, doc) = (setting.shape.as_str(), older.join(", "), setting.doc);
    let (template, tenant) = (code(setting.template), code(setting.tenant));
    format!("| {} | {value} | {older} | {template} | {tenant} | {built_in} | {doc} |", code(setting.name))
}

fn outputs(page: &mut String) {
    line(page, "\n## Annotations that are written back\n");
    line(page, "What you write into these has no effect: the true value is restored.\n");
    line(page, "| annotation | meaning |\n|---|---|");
    for (suffix, doc) in annotations::OUTPUTS {
        line(page, &format!("| `{suffix}` | {doc} |"));
    }
}

fn kinds_of(page: &mut String, job: &JobSheet) {
    for definition in (job.definitions)() {
        let spec = &definition["spec"];
        kind(page, spec, &(job.permissions)(&text(&spec["names"]["kind"])));
    }
}

fn kind(page: &mut String, spec: &Value, permissions: &[&str]) {
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
    if !permissions.is_empty() {
        line(page, &format!("A token that serves it needs the permission `{}`.\n", permissions.join("`, `")));
    }
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
