//! `Accept` → how an answer is written.

use crate::status::ApiError;

/// The text form of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    Json,
    Yaml,
}

impl Format {
    pub(crate) fn media_type(self) -> &'static str {
        match self {
            Self::Json => "application/json",
            Self::Yaml => "application/yaml",
        }
    }
}

/// What an answer holds of the objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
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
    pub(crate) format: Format,
    pub(crate) shape: Shape,
}

pub(crate) const PLAIN: Accepted = Accepted { format: Format::Json, shape: Shape::Object };

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
pub(crate) enum Asked {
    One,
    Many,
}

/// Picks the first form that we can write.
pub(crate) fn accept(header: &str, shapes: &[Shape], asked: Asked) -> Result<Accepted, ApiError> {
    if header.trim().is_empty() {
        return Ok(PLAIN);
    }
    let mut offers = header.split(',').filter_map(|offer| read_offer(offer.trim()));
    if let Some(found) = offers.find(|a| a.shape == Shape::Object || shapes.contains(&a.shape)) {
        return Ok(found);
    }
    let known = ["application/json", "application/yaml", "*/*", "application/*", "application/vnd.kubernetes.protobuf"];
    let writable = header.split(',').any(|o| known.contains(&o.split(';').next().unwrap_or_default().trim()));
    Err(match (writable, asked) {
        (true, _) => ApiError::no_such_form(&MEDIA_TYPES),
        (false, Asked::One) => ApiError::not_acceptable(&MEDIA_TYPES),
        (false, Asked::Many) => ApiError::not_acceptable(&LIST_MEDIA_TYPES),
    })
}

fn read_offer(offer: &str) -> Option<Accepted> {
    let mut parts = offer.split(';').map(str::trim);
    let format = match parts.next()? {
        "application/json" | "*/*" | "application/*" => Format::Json,
        "application/yaml" => Format::Yaml,
        _ => return None,
    };
    let mut shape = Shape::Object;
    let (mut group, mut version) = ("", "");
    for (key, value) in parts.filter_map(|p| p.split_once('=')) {
        match (key.trim(), value.trim()) {
            ("as", "Table") => shape = Shape::Table,
            ("as", "PartialObjectMetadata") => shape = Shape::Partial,
            ("as", "PartialObjectMetadataList") => shape = Shape::PartialList,
            ("as", "APIGroupDiscoveryList") => shape = Shape::Discovery,
            ("as", _) => return None,
            ("g", value) => group = value,
            ("v", value) => version = value,
            _ => {}
        }
    }
    let known = match shape {
        Shape::Object => true,
        Shape::Table | Shape::Partial | Shape::PartialList => group == "meta.k8s.io" && version == "v1",
        Shape::Discovery => group == "apidiscovery.k8s.io" && version == "v2",
    };
    known.then_some(Accepted { format, shape })
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Shape; 3] = [Shape::Table, Shape::Partial, Shape::Discovery];

    #[test]
    fn the_first_form_that_can_be_written_wins() {
        let table = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";
        assert_eq!(accept(table, &ALL, Asked::One).unwrap().shape, Shape::Table);
        assert_eq!(accept(table, &[], Asked::One).unwrap().shape, Shape::Object);
        let go_client = "application/vnd.kubernetes.protobuf,application/json";
        assert_eq!(accept(go_client, &ALL, Asked::One).unwrap(), PLAIN);
        assert_eq!(accept("application/yaml", &ALL, Asked::One).unwrap().format, Format::Yaml);
        assert_eq!(accept("", &ALL, Asked::One).unwrap(), PLAIN);
    }

    #[test]
    fn a_client_that_takes_nothing_of_ours_is_told_what_there_is() {
        let error = accept("application/vnd.kubernetes.protobuf", &ALL, Asked::One).unwrap_err();

        assert_eq!(error.code.as_u16(), 406);
    }
}
