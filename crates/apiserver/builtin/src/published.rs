//! The `OpenAPI` documents that the real server publishes, record by record, out of one compressed file.
//!
//! The file is text, one record a line with tabs between its parts: a document with the numbers of its schemas, then
//! its paths, then the next document; at the end all schemas, each once. It is unpacked anew for every reader, and only
//! what a reader keeps stays in memory. Custom resources have a document, too, with names to be replaced.

use std::io::{BufRead as _, BufReader, Lines};

use flate2::read::ZlibDecoder;

/// The path of the document about custom resources.
pub const TEMPLATE: &str = "apis/group.template/version1";

/// One line of the data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PublishedLine {
    /// A document starts.
    Document {
        /// `api/v1`, `apis/apps/v1`, `apis/apps` …
        path: String,
        /// Which of the schemas it holds, by number, ascending.
        schemas: Vec<usize>,
    },
    /// A path of the document before it.
    Path {
        /// `/api/v1/pods` …
        path: String,
        /// The path item, in JSON.
        item: String,
    },
    /// A schema; they are numbered from zero in their order, and two of the same name follow each other.
    Schema {
        /// `io.k8s.api.core.v1.Pod` …
        name: String,
        /// The schema, in JSON.
        schema: String,
    },
}

impl PublishedLine {
    /// The line of a record.
    pub fn line(&self) -> String {
        match self {
            Self::Document { path, schemas } => {
                let numbers: Vec<String> = schemas.iter().map(usize::to_string).collect();
                format!("document\t{path}\t{}", numbers.join(" "))
            }
            Self::Path { path, item } => format!("path\t{path}\t{item}"),
            Self::Schema { name, schema } => format!("schema\t{name}\t{schema}"),
        }
    }

    fn parse(line: &str) -> Option<Self> {
        let (kind, rest) = line.split_once('\t')?;
        let (name, rest) = rest.split_once('\t')?;
        let (name, rest) = (name.to_owned(), rest.to_owned());
        Some(match kind {
            "document" => {
                let schemas = rest.split_whitespace().filter_map(|number| number.parse().ok()).collect();
                Self::Document { path: name, schemas }
            }
            "path" => Self::Path { path: name, item: rest },
            "schema" => Self::Schema { name, schema: rest },
            _ => return None,
        })
    }
}

/// Reads compressed records.
pub struct PublishedRecords<'a> {
    lines: Lines<BufReader<ZlibDecoder<&'a [u8]>>>,
}

impl<'a> PublishedRecords<'a> {
    /// The records in compressed bytes.
    pub fn of(compressed: &'a [u8]) -> Self {
        Self { lines: BufReader::new(ZlibDecoder::new(compressed)).lines() }
    }
}

impl Iterator for PublishedRecords<'_> {
    type Item = PublishedLine;

    /// Ends at the first line that is no record, which is the end.
    fn next(&mut self) -> Option<PublishedLine> {
        self.lines.next()?.ok().as_deref().and_then(PublishedLine::parse)
    }
}

/// Every record of the generated data.
pub fn records() -> PublishedRecords<'static> {
    PublishedRecords::of(include_bytes!("../data/openapi.zlib"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::KINDS;

    #[test]
    fn every_kind_of_the_table_is_published_with_words() {
        let schemas: Vec<(String, String)> = records()
            .filter_map(|record| match record {
                PublishedLine::Schema { name, schema } => Some((name, schema)),
                PublishedLine::Document { .. } | PublishedLine::Path { .. } => None,
            })
            .collect();

        for kind in KINDS {
            let found = schemas.iter().find(|(name, _)| name == kind.definition);
            assert!(found.is_some_and(|(_, schema)| schema.contains("\"description\"")), "{}", kind.definition);
        }
    }

    #[test]
    fn documents_name_schemas_that_are_there() {
        let count = records().filter(|record| matches!(record, PublishedLine::Schema { .. })).count();

        let named = records().filter_map(|record| match record {
            PublishedLine::Document { schemas, .. } => schemas.last().copied(),
            PublishedLine::Path { .. } | PublishedLine::Schema { .. } => None,
        });

        assert_eq!(named.max(), Some(count - 1));
    }

    #[test]
    fn a_record_is_read_as_it_was_written() {
        let record = PublishedLine::Document { path: "api/v1".to_owned(), schemas: vec![0, 3, 17] };

        assert_eq!(PublishedLine::parse(&record.line()), Some(record));
    }
}
