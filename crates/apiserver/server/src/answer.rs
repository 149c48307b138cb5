//! What goes back to the client.

use bytes::Bytes;
use futures::stream::BoxStream;
use http::header::HeaderName;
use http::{HeaderValue, StatusCode};
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::negotiate::{Accepted, ObjectForm, TextFormat};
use crate::registry::Resource;
use crate::request::Query;
use crate::status::status_text;
use crate::table::{self, Include};

/// An answer before it becomes HTTP.
pub(crate) struct Answer {
    pub(crate) code: StatusCode,
    pub(crate) content_type: &'static str,
    pub(crate) body: AnswerContent,
    pub(crate) warnings: Vec<String>,
    /// `Content-Encoding`, where it is compressed.
    pub(crate) encoding: Option<&'static str>,
    /// `ETag`, for documents that clients keep.
    pub(crate) etag: Option<String>,
    /// Further headers; they replace those that every answer has.
    pub(crate) headers: Vec<(HeaderName, HeaderValue)>,
}

/// An answer's body.
pub(crate) enum AnswerContent {
    Full(Bytes),
    /// Made only where the client does not have it already.
    Later(Box<dyn FnOnce() -> Bytes + Send>),
    Stream(BoxStream<'static, Bytes>),
}

impl Answer {
    fn new(code: StatusCode, content_type: &'static str, body: AnswerContent) -> Self {
        Self { code, content_type, body, warnings: Vec::new(), encoding: None, etag: None, headers: Vec::new() }
    }

    /// No body, and no type of one.
    pub(crate) fn empty(code: StatusCode) -> Self {
        Self::new(code, "", AnswerContent::Full(Bytes::new()))
    }

    /// A body that takes time to make.
    pub(crate) fn later(content_type: &'static str, body: impl FnOnce() -> Bytes + Send + 'static) -> Self {
        Self::new(StatusCode::OK, content_type, AnswerContent::Later(Box::new(body)))
    }

    /// With the hash by which clients know it.
    pub(crate) fn known_as(mut self, hash: &str) -> Self {
        self.etag = Some(format!("\"{hash}\""));
        self
    }

    /// With one more header.
    pub(crate) fn with(mut self, name: HeaderName, value: &str) -> Self {
        self.headers.extend(HeaderValue::try_from(value).ok().map(|value| (name, value)));
        self
    }

    /// JSON text that is ready.
    pub(crate) fn json(code: StatusCode, text: Vec<u8>) -> Self {
        Self::new(code, TextFormat::Json.media_type(), AnswerContent::Full(Bytes::from(text)))
    }

    /// Plain text.
    pub(crate) fn text(code: StatusCode, text: impl Into<String>) -> Self {
        Self::new(code, "text/plain; charset=utf-8", AnswerContent::Full(Bytes::from(text.into())))
    }

    /// A stream of JSON lines.
    pub(crate) fn stream(lines: BoxStream<'static, Bytes>) -> Self {
        Self::new(StatusCode::OK, TextFormat::Json.media_type(), AnswerContent::Stream(lines))
    }

    /// Any value, in the client's format.
    pub(crate) fn value(code: StatusCode, value: &Value, accepted: Accepted) -> Self {
        let text = match accepted.format {
            TextFormat::Json if value["kind"] == "Status" => status_text(value),
            TextFormat::Json => {
                let mut text = serde_json::to_vec(value).expect("JSON values are written to memory");
                text.push(b'\n');
                text
            }
            TextFormat::Yaml => serde_saphyr::to_string(value).unwrap_or_default().into_bytes(),
        };
        Self::new(code, accepted.format.media_type(), AnswerContent::Full(Bytes::from(text)))
    }

    /// One object, in the client's shape and format.
    pub(crate) fn object(
        code: StatusCode,
        resource: &Resource,
        object: &Value,
        accepted: Accepted,
        query: &Query,
        now: Timestamp,
    ) -> Self {
        let shaped = match accepted.shape {
            ObjectForm::Object | ObjectForm::Discovery => return Self::value(code, object, accepted),
            ObjectForm::Partial | ObjectForm::PartialList => partial(object),
            ObjectForm::Table => {
                let metadata = json!({"resourceVersion": object["metadata"]["resourceVersion"]});
                table::table(resource, std::slice::from_ref(object), metadata, Include::of(query), now)
            }
        };
        Self::value(code, &shaped, accepted)
    }

    /// A list of objects, in the client's shape and format.
    pub(crate) fn list(
        resource: &Resource,
        objects: &[Value],
        metadata: Value,
        accepted: Accepted,
        query: &Query,
        now: Timestamp,
    ) -> Self {
        let shaped = match accepted.shape {
            ObjectForm::Object | ObjectForm::Discovery => json!({
                "kind": resource.list_kind, "apiVersion": resource.api_version(), "metadata": metadata,
                "items": listed(resource, objects),
            }),
            ObjectForm::Partial | ObjectForm::PartialList => json!({
                "kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1", "metadata": metadata,
                "items": objects.iter().map(partial).collect::<Vec<_>>(),
            }),
            ObjectForm::Table => table::table(resource, objects, metadata, Include::of(query), now),
        };
        Self::value(StatusCode::OK, &shaped, accepted)
    }
}

/// Items as lists hold them: built-in kinds leave their type out.
fn listed(resource: &Resource, objects: &[Value]) -> Vec<Value> {
    let mut items = objects.to_vec();
    if resource.builtin_kind().is_some() {
        for fields in items.iter_mut().filter_map(Value::as_object_mut) {
            fields.remove("kind");
            fields.remove("apiVersion");
        }
    }
    items
}

/// An object's metadata alone.
pub(crate) fn partial(object: &Value) -> Value {
    json!({"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": object["metadata"]})
}
