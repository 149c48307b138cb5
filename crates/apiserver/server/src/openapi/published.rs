//! What is served → a hash for each document, counted once for each state of the registry.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::LazyLock;

use portolan_builtin::published::{PublishedLine, TEMPLATE, records};
use ring::digest::{Context, SHA512, digest};

use super::INFO;
use super::accept::Encoding;
use super::custom::CustomDocument;
use super::template::Template;
use super::version3;

/// The documents that there are.
#[derive(Debug)]
pub(crate) struct Published {
    /// Hash by path, `apis/apps/v1`.
    pub(super) documents: BTreeMap<String, String>,
    /// Hash of the one document of version 2.
    pub(super) version_2: String,
}

impl Published {
    /// Those about built-in kinds, and the given ones.
    pub(super) fn of(custom: &[CustomDocument]) -> Self {
        static BUILTIN: LazyLock<BTreeMap<String, String>> = LazyLock::new(builtin);
        let mut documents = BUILTIN.clone();
        if !custom.is_empty() {
            let template = Template::read();
            for document in custom {
                let text = version3::custom(&template, &document.definitions, &document.path, Encoding::Json);
                documents.entry(document.path.clone()).or_insert_with(|| hash(&text));
            }
        }
        let all: Vec<String> = documents.iter().map(|(path, hash)| format!("{path} {hash}\n")).collect();
        let all = all.concat();
        Self { documents, version_2: hash(all.as_bytes()) }
    }
}

/// A document's hash is that of its records, so that no document is put together to count it.
fn builtin() -> BTreeMap<String, String> {
    let mut open: Vec<(String, Vec<usize>, Context)> = Vec::new();
    let mut number = 0;
    for record in records() {
        match record {
            PublishedLine::Document { path, schemas } => {
                let mut context = Context::new(&SHA512);
                context.update(INFO.as_bytes());
                open.push((path, schemas, context));
            }
            PublishedLine::Path { path, item } => {
                if let Some((_, _, context)) = open.last_mut() {
                    context.update(path.as_bytes());
                    context.update(item.as_bytes());
                }
            }
            PublishedLine::Schema { schema, .. } => {
                for (_, schemas, context) in &mut open {
                    if schemas.binary_search(&number).is_ok() {
                        context.update(schema.as_bytes());
                    }
                }
                number += 1;
            }
        }
    }
    let about_builtin = open.into_iter().filter(|(path, _, _)| path != TEMPLATE);
    about_builtin.map(|(path, _, context)| (path, hex(context.finish().as_ref()))).collect()
}

/// A text that changes with the bytes.
pub(crate) fn hash(bytes: &[u8]) -> String {
    hex(digest(&SHA512, bytes).as_ref())
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        // Writing to memory does not fail.
        let _ = write!(text, "{byte:02X}");
        text
    })
}
