//! Names of field managers, and the checks on `managedFields` that a client sends.

use portolan_schema::{ErrorKind, FieldError, Path};
use serde_json::{Value, json};

use crate::ssa::scalar;

const MAX_MANAGER_BYTES: usize = 128;
const MAX_SUBRESOURCE_BYTES: usize = 256;

/// Checks the `fieldManager` of a request. The empty name is none.
pub fn validate_field_manager(name: &str, path: &Path<'_>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if name.len() > MAX_MANAGER_BYTES {
        errors.push(too_long(path, MAX_MANAGER_BYTES));
    }
    for (position, c) in name.char_indices().filter(|(_, c)| !scalar::is_printable(*c)) {
        let detail = format!("invalid character {} (at position {position})", code_point(c));
        errors.push(FieldError {
            kind: ErrorKind::Invalid,
            field: path.to_string(),
            value: Some(scalar::quoted(name)),
            detail,
        });
    }
    errors
}

fn too_long(path: &Path<'_>, bytes: usize) -> FieldError {
    FieldError {
        kind: ErrorKind::TooLong,
        field: path.to_string(),
        value: None,
        detail: format!("may not be more than {bytes} bytes"),
    }
}

/// `U+000A`, with the character where it can be shown.
fn code_point(c: char) -> String {
    let code = format!("U+{:04X}", u32::from(c));
    if scalar::is_printable(c) { format!("{code} '{c}'") } else { code }
}

/// Checks the entries of `metadata.managedFields`.
pub fn validate_managed_fields(entries: &[Value], path: &Path<'_>) -> Vec<FieldError> {
    entries.iter().enumerate().flat_map(|(index, entry)| validate_entry(entry, &path.index(index))).collect()
}

fn validate_entry(entry: &Value, path: &Path<'_>) -> Vec<FieldError> {
    let text = |name: &str| entry.get(name).and_then(Value::as_str).unwrap_or_default();
    let mut errors = Vec::new();
    let operation = text("operation");
    if !matches!(operation, "Apply" | "Update") {
        errors.push(FieldError::invalid(&path.field("operation"), &json!(operation), "must be `Apply` or `Update`"));
    }
    let fields_type = text("fieldsType");
    if !matches!(fields_type, "" | "FieldsV1") {
        errors.push(FieldError::invalid(&path.field("fieldsType"), &json!(fields_type), "must be `FieldsV1`"));
    }
    errors.extend(validate_field_manager(text("manager"), &path.field("manager")));
    if text("subresource").len() > MAX_SUBRESOURCE_BYTES {
        errors.push(too_long(&path.field("subresource"), MAX_SUBRESOURCE_BYTES));
    }
    errors
}

/// The manager of a request: the one it names, else the program in front of the user agent's first slash.
pub fn manager_or_user_agent(manager: &str, user_agent: &str) -> String {
    if !manager.is_empty() {
        return manager.to_owned();
    }
    let program = user_agent.split('/').next().unwrap_or_default();
    let mut name = String::new();
    for c in program.chars().filter(|c| scalar::is_printable(*c)) {
        if name.len() + c.len_utf8() > MAX_MANAGER_BYTES {
            break;
        }
        name.push(c);
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(errors: &[FieldError]) -> Vec<String> {
        errors.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn names_of_managers_are_short_and_printable() {
        let root = Path::root();
        let path = root.field("fieldManager");

        assert!(validate_field_manager("kubectl-edit é", &path).is_empty());
        assert_eq!(
            words(&validate_field_manager("a\nb", &path)),
            [r#"fieldManager: Invalid value: "a\nb": invalid character U+000A (at position 1)"#]
        );
        assert_eq!(
            words(&validate_field_manager(&"x".repeat(129), &path)),
            ["fieldManager: Too long: may not be more than 128 bytes"]
        );
    }

    #[test]
    fn entries_name_a_known_operation_and_fields_type() {
        let entries = [json!({"operation": "Merge", "fieldsType": "FieldsV2"}), json!({"operation": "Apply"})];
        let (root, metadata) = (Path::root(), "metadata");
        let metadata = root.field(metadata);
        let path = metadata.field("managedFields");

        assert_eq!(
            words(&validate_managed_fields(&entries, &path)),
            [
                r#"metadata.managedFields[0].operation: Invalid value: "Merge": must be `Apply` or `Update`"#,
                r#"metadata.managedFields[0].fieldsType: Invalid value: "FieldsV2": must be `FieldsV1`"#,
            ]
        );
    }

    #[test]
    fn the_user_agents_program_stands_in_for_a_manager() {
        assert_eq!(manager_or_user_agent("me", "kubectl/v1"), "me");
        assert_eq!(manager_or_user_agent("", "kubectl/v1.36 (linux)"), "kubectl");
        assert_eq!(manager_or_user_agent("", "a\tb"), "ab");
        assert_eq!(manager_or_user_agent("", &"é".repeat(100)).len(), 128);
    }
}
