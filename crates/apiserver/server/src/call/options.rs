//! Query parameters of writes, checked as the real server checks them.

use portolan_schema::{FieldError, Path};
use serde_json::json;

use super::Call;
use crate::status::ApiError;

/// What to do about fields that the schema does not know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FieldValidation {
    Ignore,
    Warn,
    Strict,
}

/// The options of create, update and patch.
#[derive(Clone, Debug)]
pub(crate) struct WriteOptions {
    pub(crate) dry_run: bool,
    pub(crate) manager: String,
    pub(crate) field_validation: FieldValidation,
    pub(crate) force: bool,
}

impl WriteOptions {
    pub(crate) fn of_controller(manager: &str) -> Self {
        Self { dry_run: false, manager: manager.to_owned(), field_validation: FieldValidation::Ignore, force: false }
    }
}

impl Call {
    /// Reads `dryRun`, `fieldManager`, `fieldValidation` and `force`; `kind` is such as `CreateOptions`.
    pub(crate) fn write_options(&self, kind: &str, apply: bool) -> Result<WriteOptions, ApiError> {
        let mut errors = Vec::new();
        let root = Path::root();
        let manager = self.query.get("fieldManager");
        let force = self.query.find("force").is_some();
        if kind == "PatchOptions" {
            if apply && manager.is_empty() {
                errors.push(FieldError::required(&root.field("fieldManager"), "is required for apply patch"));
            }
            if !apply && force {
                errors.push(FieldError::forbidden(&root.field("force"), "may not be specified for non-apply patch"));
            }
        }
        errors.extend(portolan_patch::ssa::validate_field_manager(manager, &root.field("fieldManager")));
        let dry_run = self.dry_run(&mut errors);
        let field_validation = match self.query.get("fieldValidation") {
            "" | "Warn" => FieldValidation::Warn,
            "Ignore" => FieldValidation::Ignore,
            "Strict" => FieldValidation::Strict,
            other => {
                let path = root.field("fieldValidation");
                errors.push(FieldError::not_supported(&path, &json!(other), &["", "Ignore", "Strict", "Warn"]));
                FieldValidation::Warn
            }
        };
        if !errors.is_empty() {
            return Err(ApiError::invalid("meta.k8s.io", kind, "", &errors));
        }
        let manager = portolan_patch::ssa::manager_or_user_agent(manager, &self.user_agent);
        Ok(WriteOptions { dry_run, manager, field_validation, force: self.query.flag("force") })
    }

    pub(crate) fn dry_run(&self, errors: &mut Vec<FieldError>) -> bool {
        let values: Vec<&str> = self.query.all("dryRun").collect();
        let root = Path::root();
        let path = root.field("dryRun");
        for value in values.iter().filter(|v| **v != "All") {
            errors.push(FieldError::not_supported(&path, &json!([value]), &["All"]));
        }
        !values.is_empty()
    }
}
