//! `Accept` → how an answer is written.

use crate::status::ApiError;

/// The text form of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TextFormat {
    Json,
    Yaml,
}

impl TextFormat {
    pub(crate) fn media_type(self) -> &'static str {
        match self {
            Self::Json => "application/json",
            Self::Yaml => "application/yaml",
        }
    }
}

/// What an answer holds of the objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ObjectForm {
    /// The objects themselves.
    Object,
    /// Rows for people.
    Table,
    /// Metadata only.
    Partial,
    /// Metadata only, of a list.
    PartialList,
    /// Aggregated discovery.
    Discovery,
}

/// What the client takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Accepted {
    pub(crate) format: TextFormat,
    pub(crate) shape: ObjectForm,
}

pub(crate) const PLAIN: Accepted = Accepted { format: TextFormat::Json, shape: ObjectForm::Object };

/// The media types that are named to a client who takes none of them.
pub(crate) const MEDIA_TYPES: [&str; 3] =
    ["application/json", "application/yaml", "application/vnd.kubernetes.protobuf"];

/// Those that a list of objects names, which can be a stream too.
const LIST_MEDIA_TYPES: [&str; 5] = [
    "application/json",
    "application/yaml",
    "application/vnd.kubernetes.protobuf",
    "application/json;stream=watch",
    "application/vnd.kubernetes.protobuf;stream=watch",
];

/// What is asked for: lists can be streamed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MediaTypes {
    One,
    Many,
}

/// Picks the first form that we can write.
pub(crate) fn accept(header: &str, shapes: &[ObjectForm], asked: MediaTypes) -> Result<Accepted, ApiError> {
    if header.trim().is_empty() {
        return Ok(PLAIN);
    }
    let mut offers = header.split(',').filter_map(|offer| read_offer(offer.trim()));
    if let Some(found) = offers.find(|a| a.shape == ObjectForm::Object || shapes.contains(&a.shape)) {
        return Ok(found);
    }
    let known = ["application/json", "application/yaml", "*/*", "application/*", "application/vnd.kubernetes.protobuf"];
    let writable = header.split(',').any(|o| known.contains(&o.split(';').next().unwrap_or_default().trim()));
    Err(match (writable, asked) {
        (true, _) => ApiError::no_such_form(&MEDIA_TYPES),
        (false, MediaTypes::One) => ApiError::not_acceptable(&MEDIA_TYPES),
        (false, MediaTypes::Many) => ApiError::not_acceptable(&LIST_MEDIA_TYPES),
    })
}

fn read_offer(offer: &str) -> Option<Accepted> {
    let mut parts = offer.split(';').map(str::trim);
    let format = match parts.next()? {
        "application/json" | "*/*" | "application/*" => TextFormat::Json,
        "application/yaml" => TextFormat::Yaml,
        _ => return None,
    };
    let mut shape = ObjectForm::Object;
    let (mut group, mut version) = ("", "");
    for (key, value) in parts.filter_map(|p| p.split_once('=')) {
        match (key.trim(), value.trim()) {
            ("as", "Table") => shape = ObjectForm::Table,
            ("as", "PartialObjectMetadata") => shape = ObjectForm::Partial,
            ("as", "PartialObjectMetadataList") => shape = ObjectForm::PartialList,
            ("as", "APIGroupDiscoveryList") => shape = ObjectForm::Discovery,
            ("as", _) => return None,
            ("g", value) => group = value,
            ("v", value) => version = value,
            _ => {}
        }
    }
    let known = match shape {
        ObjectForm::Object => true,
        ObjectForm::Table | ObjectForm::Partial | ObjectForm::PartialList => group == "meta.k8s.io" && version == "v1",
        ObjectForm::Discovery => group == "apidiscovery.k8s.io" && version == "v2",
    };
    known.then_some(Accepted { format, shape })
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [ObjectForm; 3] = [ObjectForm::Table, ObjectForm::Partial, ObjectForm::Discovery];

    #[test]
    fn the_first_form_that_can_be_written_wins() {
        let table = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";
        assert_eq!(accept(table, &ALL, MediaTypes::One).unwrap().shape, ObjectForm::Table);
        assert_eq!(accept(table, &[], MediaTypes::One).unwrap().shape, ObjectForm::Object);
        let go_client = "application/vnd.kubernetes.protobuf,application/json";
        assert_eq!(accept(go_client, &ALL, MediaTypes::One).unwrap(), PLAIN);
        assert_eq!(accept("application/yaml", &ALL, MediaTypes::One).unwrap().format, TextFormat::Yaml);
        assert_eq!(accept("", &ALL, MediaTypes::One).unwrap(), PLAIN);
    }

    #[test]
    fn a_client_that_takes_nothing_of_ours_is_told_what_there_is() {
        let error = accept("application/vnd.kubernetes.protobuf", &ALL, MediaTypes::One).unwrap_err();

        assert_eq!(error.code.as_u16(), 406);
    }
}
