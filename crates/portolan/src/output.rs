//! Objects → YAML, JSON or names.

use clap::ValueEnum;
use serde_json::{Value, json};

use crate::failure::{Failure, Outcome};
use crate::kinds::ServedKind;

/// How objects are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum OutputFormat {
    /// Columns chosen by the server
    Table,
    /// All columns the server has
    Wide,
    /// Whole objects as YAML
    Yaml,
    /// Whole objects as JSON
    Json,
    /// One KIND/NAME a line
    Name,
}

/// Objects as one text. Many are wrapped in a `List`.
pub(crate) fn render(format: OutputFormat, kind: &ServedKind, objects: &[Value], wrap: Wrap) -> Outcome<String> {
    if format == OutputFormat::Name {
        return Ok(objects.iter().map(|object| named(kind, object) + "\n").collect());
    }
    let document = match (wrap, objects) {
        (Wrap::Single, [object]) => object.clone(),
        (Wrap::Single | Wrap::List, _) => json!({"apiVersion": "v1", "kind": "List", "items": objects}),
    };
    if format == OutputFormat::Json { json_text(&document) } else { yaml_text(&document) }
}

/// Whether a lone object stands for itself.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Wrap {
    /// One object was asked for by name.
    Single,
    /// A collection was asked for.
    List,
}

fn named(kind: &ServedKind, object: &Value) -> String {
    kind.object(object["metadata"]["name"].as_str().unwrap_or_default())
}

/// A value as JSON text for people.
pub(crate) fn json_text(document: &Value) -> Outcome<String> {
    let text =
        serde_json::to_string_pretty(document).map_err(|error| Failure::new(format!("writing JSON: {error}")))?;
    Ok(text + "\n")
}

/// A value as YAML text.
pub(crate) fn yaml_text(document: &Value) -> Outcome<String> {
    let text = serde_saphyr::to_string(document).map_err(|error| Failure::new(format!("writing YAML: {error}")))?;
    Ok(if text.ends_with('\n') { text } else { text + "\n" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn yaml_that_was_written_reads_back_the_same() {
        let object = json!({"a": {"yes": "yes", "no": false, "n": "012", "t": "two\nlines\n", "e": {}, "l": [], "s": " x",
            "colon": "a: b", "hash": "#x", "date": "2026-01-01T00:00:00Z", "null": "null", "tilde": "~", "long": "w ".repeat(200),
            "octal": "0644", "float": "1e3", "empty": "", "tab": "a\tb", "nl": "\n", "trail": "x \ny\n\n"}});
        let text = yaml_text(&object).unwrap();
        let options = serde_saphyr::options! { legacy_octal_numbers: true };
        let back: Value = serde_saphyr::from_str_with_options(&text, options).unwrap();

        assert_eq!(back, object, "{text}");
    }
}
