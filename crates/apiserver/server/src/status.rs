//! Answers that say what went wrong, as `Status` objects with the real server's codes, reasons and words.

use http::StatusCode;
use portolan_schema::FieldError;
use serde_json::{Value, json};

/// A failed request.
#[derive(Clone, Debug, PartialEq)]
pub struct ApiError {
    /// The HTTP status.
    pub code: StatusCode,
    /// `Status.reason`; empty where the real server gives none.
    pub reason: &'static str,
    /// The sentence for people.
    pub message: String,
    /// `Status.details`.
    pub details: Option<Box<Details>>,
    /// Answered as plain text, as for paths that no API serves.
    pub plain: bool,
    /// `metadata.continue`: how to go on with a list whose version is gone.
    pub next: Option<String>,
}

/// What the failure is about.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Details {
    /// The object's name.
    pub name: String,
    /// Its group.
    pub group: String,
    /// Its kind, or its plural where the request did not get far enough to know the kind.
    pub kind: String,
    /// Its uid.
    pub uid: String,
    /// One by one, what is wrong.
    pub causes: Vec<Cause>,
    /// When to come again.
    pub retry_after_seconds: u32,
}

/// One thing that is wrong.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Cause {
    /// A `CauseType`.
    pub reason: String,
    /// The sentence.
    pub message: String,
    /// The field.
    pub field: String,
}

impl From<&FieldError> for Cause {
    fn from(error: &FieldError) -> Self {
        Self { reason: error.kind.reason().to_owned(), message: error.body(), field: error.field.clone() }
    }
}

/// What an error is about: group and plural.
#[derive(Clone, Copy, Debug)]
pub struct About<'a> {
    /// The API group, empty for the core.
    pub group: &'a str,
    /// The plural.
    pub plural: &'a str,
    /// The object's name.
    pub name: &'a str,
}

impl About<'_> {
    /// `deployments.apps "web"`.
    fn quoted(&self) -> String {
        format!("{} {:?}", self.qualified(), self.name)
    }

    fn qualified(&self) -> String {
        if self.group.is_empty() { self.plural.to_owned() } else { format!("{}.{}", self.plural, self.group) }
    }

    fn details(&self) -> Details {
        Details {
            name: self.name.to_owned(),
            group: self.group.to_owned(),
            kind: self.plural.to_owned(),
            ..Details::default()
        }
    }
}

impl ApiError {
    fn new(code: StatusCode, reason: &'static str, message: impl Into<String>) -> Self {
        Self { code, reason, message: message.into(), details: None, plain: false, next: None }
    }

    fn with(mut self, details: Details) -> Self {
        self.details = Some(Box::new(details));
        self
    }

    /// 400.
    pub fn bad_request(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "BadRequest", message)
    }

    /// 401.
    pub fn unauthorized() -> Self {
        Self::new(StatusCode::UNAUTHORIZED, "Unauthorized", "Unauthorized")
    }

    /// 403 for an object that may not be written.
    pub fn forbidden(about: About<'_>, why: &str) -> Self {
        let message = if about.name.is_empty() {
            format!("{} is forbidden: {why}", about.qualified())
        } else {
            format!("{} is forbidden: {why}", about.quoted())
        };
        Self::new(StatusCode::FORBIDDEN, "Forbidden", message).with(about.details())
    }

    /// 404 for an object.
    pub fn not_found(about: About<'_>) -> Self {
        Self::new(StatusCode::NOT_FOUND, "NotFound", format!("{} not found", about.quoted())).with(about.details())
    }

    /// 404 for a path that no API serves.
    pub fn no_such_path() -> Self {
        Self { plain: true, ..Self::new(StatusCode::NOT_FOUND, "", "404 page not found\n") }
    }

    /// 404 for a resource whose group and version exist.
    pub fn no_such_resource() -> Self {
        Self::new(StatusCode::NOT_FOUND, "NotFound", "the server could not find the requested resource")
            .with(Details::default())
    }

    /// 405.
    pub fn method_not_allowed() -> Self {
        Self::new(
            StatusCode::METHOD_NOT_ALLOWED,
            "MethodNotAllowed",
            "the server does not allow this method on the requested resource",
        )
        .with(Details::default())
    }

    /// 405 while a kind goes away.
    pub(crate) fn kind_is_going() -> Self {
        Self::new(
            StatusCode::METHOD_NOT_ALLOWED,
            "MethodNotAllowed",
            "create not allowed while custom resource definition is terminating",
        )
    }

    /// 406.
    pub fn not_acceptable(accepted: &[&str]) -> Self {
        let message = format!("406: Not Acceptable\n\nAvailable representations: {}", accepted.join(", "));
        Self::new(StatusCode::NOT_ACCEPTABLE, "NotAcceptable", message).with(Details::default())
    }

    /// 406 for a form of a media type that is written in other forms only.
    pub fn no_such_form(accepted: &[&str]) -> Self {
        let message = format!("only the following media types are accepted: {}", accepted.join(", "));
        Self::new(StatusCode::NOT_ACCEPTABLE, "NotAcceptable", message)
    }

    /// 406 for a list of one object.
    pub fn not_a_list(kind: &str) -> Self {
        let message =
            format!("you requested PartialObjectMetadataList, but the requested object is not a list (*core.{kind})");
        Self::new(StatusCode::NOT_ACCEPTABLE, "NotAcceptable", message)
    }

    /// 409 for a name that is taken.
    pub fn already_exists(about: About<'_>) -> Self {
        Self::new(StatusCode::CONFLICT, "AlreadyExists", format!("{} already exists", about.quoted()))
            .with(about.details())
    }

    /// 409.
    pub fn conflict(about: About<'_>, why: &str) -> Self {
        let message = format!("Operation cannot be fulfilled on {}: {why}", about.quoted());
        Self::new(StatusCode::CONFLICT, "Conflict", message).with(about.details())
    }

    /// 409 because someone else wrote first.
    pub fn modified(about: About<'_>) -> Self {
        Self::conflict(
            about,
            "the object has been modified; please apply your changes to the latest version and try again",
        )
    }

    /// 409 of a server-side apply.
    pub fn apply_conflict(message: String, causes: Vec<Cause>) -> Self {
        Self::new(StatusCode::CONFLICT, "Conflict", message).with(Details { causes, ..Details::default() })
    }

    /// 410.
    pub fn expired(message: impl Into<String>) -> Self {
        Self::new(StatusCode::GONE, "Expired", message)
    }

    /// 413.
    pub fn too_large(limit: usize) -> Self {
        Self::new(
            StatusCode::PAYLOAD_TOO_LARGE,
            "RequestEntityTooLarge",
            format!("Request entity too large: limit is {limit}"),
        )
    }

    /// 413 for a patch.
    pub fn too_many_operations(most: usize, given: usize) -> Self {
        Self::new(
            StatusCode::PAYLOAD_TOO_LARGE,
            "RequestEntityTooLarge",
            format!("Request entity too large: The allowed maximum operations in a JSON patch is {most}, got {given}"),
        )
    }

    /// 415.
    pub fn unsupported_media_type(accepted: &[&str]) -> Self {
        let list = accepted.join(", ");
        let message =
            format!("the body of the request was in an unknown format - accepted media types include: {list}");
        Self::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "UnsupportedMediaType", message)
    }

    /// 415 for a patch.
    pub fn unsupported_patch() -> Self {
        Self::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "UnsupportedMediaType", "415: Unsupported Media Type")
            .with(Details::default())
    }

    /// 422 with every wrong field.
    pub fn invalid(group: &str, kind: &str, name: &str, errors: &[FieldError]) -> Self {
        // The same sentence is said once, though it may have several causes.
        let mut texts: Vec<String> = Vec::new();
        for text in errors.iter().map(ToString::to_string) {
            if !texts.contains(&text) {
                texts.push(text);
            }
        }
        let list = match texts.as_slice() {
            [] => "<nil>".to_owned(),
            [only] => only.clone(),
            many => format!("[{}]", many.join(", ")),
        };
        let details = Details {
            name: name.to_owned(),
            group: group.to_owned(),
            kind: kind.to_owned(),
            causes: errors.iter().map(Cause::from).collect(),
            ..Details::default()
        };
        Self::new(
            StatusCode::UNPROCESSABLE_ENTITY,
            "Invalid",
            format!("{kind}{} {name:?} is invalid: {list}", dotted(group)),
        )
        .with(details)
    }

    /// 422 for a patch that does not fit.
    pub fn unprocessable(message: impl Into<String>) -> Self {
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, "Invalid", message).with(Details::default())
    }

    /// 429.
    pub fn too_many_requests(message: impl Into<String>) -> Self {
        let details = Details { retry_after_seconds: 1, ..Details::default() };
        Self::new(StatusCode::TOO_MANY_REQUESTS, "TooManyRequests", message).with(details)
    }

    /// 500.
    pub fn internal(message: impl std::fmt::Display) -> Self {
        let message = format!("Internal error occurred: {message}");
        let cause =
            Cause { message: message.trim_start_matches("Internal error occurred: ").to_owned(), ..Cause::default() };
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "InternalError", message)
            .with(Details { causes: vec![cause], ..Details::default() })
    }

    /// 500 without a reason, for what the server did not expect.
    pub fn unexpected(message: impl Into<String>) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "", message)
    }

    /// 501.
    pub(crate) fn not_implemented(message: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_IMPLEMENTED, "MethodNotAllowed", message)
    }

    /// 504.
    pub fn too_large_version(version: u64, current: u64) -> Self {
        let cause = Cause {
            reason: "ResourceVersionTooLarge".to_owned(),
            message: "Too large resource version".to_owned(),
            ..Cause::default()
        };
        Self::new(
            StatusCode::GATEWAY_TIMEOUT,
            "Timeout",
            format!("Timeout: Too large resource version: {version}, current: {current}"),
        )
        .with(Details { causes: vec![cause], retry_after_seconds: 1, ..Details::default() })
    }

    /// With a token to go on from.
    pub(crate) fn with_continue(mut self, token: String) -> Self {
        self.next = Some(token);
        self
    }

    /// The `Status` object.
    pub fn status(&self) -> Value {
        let mut status = json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": self.message, "code": self.code.as_u16(),
        });
        if !self.reason.is_empty() {
            status["reason"] = json!(self.reason);
        }
        if let Some(details) = &self.details {
            status["details"] = details.to_json();
        }
        if let Some(next) = &self.next {
            status["metadata"]["continue"] = json!(next);
        }
        status
    }
}

fn dotted(group: &str) -> String {
    if group.is_empty() { String::new() } else { format!(".{group}") }
}

impl Details {
    fn to_json(&self) -> Value {
        let mut json = json!({});
        let texts = [("name", &self.name), ("group", &self.group), ("kind", &self.kind), ("uid", &self.uid)];
        for (key, text) in texts.into_iter().filter(|(_, text)| !text.is_empty()) {
            json[key] = json!(text);
        }
        if !self.causes.is_empty() {
            json["causes"] = self.causes.iter().map(Cause::to_json).collect();
        }
        if self.retry_after_seconds > 0 {
            json["retryAfterSeconds"] = json!(self.retry_after_seconds);
        }
        json
    }
}

impl Cause {
    fn to_json(&self) -> Value {
        let mut json = json!({"message": self.message});
        if !self.reason.is_empty() {
            json["reason"] = json!(self.reason);
        }
        if !self.field.is_empty() {
            json["field"] = json!(self.field);
        }
        json
    }
}

/// The text of a `Status`, its fields in the order in which the real server writes them.
pub(crate) fn status_text(status: &Value) -> Vec<u8> {
    const ORDER: [&str; 14] = [
        "kind",
        "apiVersion",
        "metadata",
        "status",
        "name",
        "group",
        "message",
        "reason",
        "field",
        "details",
        "uid",
        "causes",
        "retryAfterSeconds",
        "code",
    ];
    let mut text = Vec::new();
    write_ordered(&mut text, status, &ORDER);
    text.push(b'\n');
    text
}

fn write_ordered(out: &mut Vec<u8>, value: &Value, order: &[&str]) {
    match value {
        Value::Object(fields) => {
            let place = |name: &str| order.iter().position(|known| *known == name).unwrap_or(order.len());
            let mut names: Vec<&String> = fields.keys().collect();
            // A cause begins with its reason, and what an object is called comes before its kind.
            let is_status = fields.contains_key("apiVersion");
            names.sort_by_key(|name| match name.as_str() {
                "kind" if !is_status => place("group") * 2 + 1,
                "reason" if !is_status => 0,
                other => place(other) * 2,
            });
            out.push(b'{');
            for (index, name) in names.into_iter().enumerate() {
                if index > 0 {
                    out.push(b',');
                }
                out.extend_from_slice(Value::from(name.as_str()).to_string().as_bytes());
                out.push(b':');
                write_ordered(out, &fields[name], order);
            }
            out.push(b'}');
        }
        Value::Array(items) => {
            out.push(b'[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.push(b',');
                }
                write_ordered(out, item, order);
            }
            out.push(b']');
        }
        other => out.extend_from_slice(other.to_string().as_bytes()),
    }
}

/// The answer to a request that did what it should and has nothing to show.
pub(crate) fn succeeded(code: StatusCode) -> Value {
    json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": code.as_u16()})
}

/// The answer to a delete that removed the object.
pub fn deleted(about: About<'_>, uid: &str) -> Value {
    let mut details = about.details();
    uid.clone_into(&mut details.uid);
    json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details.to_json()})
}
