//! What was deployed before a configuration replaced it: kept in an annotation of the Deployment, read back from there.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::config_states::ConfigVersion;
use crate::field::ConfigField;

/// The annotation of the Deployment that holds the record.
pub const ANNOTATION: &str = "cfzt.cloudflare.com/operator-config";

/// What a configuration replaced, and when it last did.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct PreviousValues {
    /// The uid of the configuration.
    pub(crate) config: String,
    /// Its generation when something was last changed because of it.
    pub(crate) generation: i64,
    /// When that was.
    pub(crate) at: String,
    /// What it holds, by field.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    fields: BTreeMap<String, HeldField>,
}

/// A field that a configuration holds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct HeldField {
    /// What was deployed; none where the field was absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) before: Option<Value>,
    /// What the configuration asked for.
    pub(crate) asked: Value,
}

impl PreviousValues {
    /// The record of a Deployment. One that cannot be read is none: then what stands is what was deployed.
    pub(crate) fn read(deployment: &Value) -> Option<Self> {
        let text = deployment["metadata"]["annotations"][ANNOTATION].as_str()?;
        serde_json::from_str(text).ok()
    }

    /// The record as the annotation has it.
    pub(crate) fn text(&self) -> String {
        serde_json::to_string(self).expect("a record is plain JSON")
    }

    /// What is held, by field.
    pub(crate) fn held(&self) -> BTreeMap<ConfigField, HeldField> {
        let known = |(name, held): (&String, &HeldField)| Some((ConfigField::parse(name)?, held.clone()));
        self.fields.iter().filter_map(known).collect()
    }

    /// A record of what a configuration holds now.
    pub(crate) fn new(version: ConfigVersion, at: String, fields: &BTreeMap<ConfigField, HeldField>) -> Self {
        let fields = fields.iter().map(|(field, held)| (field.to_string(), held.clone())).collect();
        Self { config: version.uid, generation: version.generation, at, fields }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_record_is_read_as_it_was_written() {
        let held = HeldField { before: None, asked: json!({"name": "LOG_LEVEL", "value": "DEBUG"}) };
        let fields = BTreeMap::from([(ConfigField::Env("LOG_LEVEL".to_owned()), held)]);
        let record = PreviousValues::new(ConfigVersion { uid: "u".to_owned(), generation: 2 }, "t".to_owned(), &fields);

        let read = PreviousValues::read(&json!({"metadata": {"annotations": {ANNOTATION: record.text()}}}));

        assert_eq!(read.as_ref(), Some(&record));
        assert_eq!(read.unwrap().held(), fields);
    }

    #[test]
    fn a_record_that_cannot_be_read_is_none() {
        assert_eq!(PreviousValues::read(&json!({"metadata": {"annotations": {ANNOTATION: "{"}}})), None);
        assert_eq!(PreviousValues::read(&json!({})), None);
    }
}
