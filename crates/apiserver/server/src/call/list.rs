//! `GET` of a collection: selectors, chunks, versions.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::StatusCode;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::Call;
use crate::answer::Answer;
use crate::api;
use crate::negotiate::{ObjectForm, TextFormat};
use crate::registry::Resource;
use crate::selector::{FieldSelector, LabelSelector};
use crate::status::ApiError;
use crate::store::{Range, StoredObject};

/// Which objects a list or watch shows.
#[derive(Clone, Debug)]
pub(super) struct ListSelection {
    pub(super) prefix: String,
    pub(super) labels: LabelSelector,
    pub(super) fields: FieldSelector,
}

/// A list that was asked for.
#[derive(Clone, Debug)]
pub(super) struct ListRange {
    selection: ListSelection,
    limit: usize,
    after: String,
    at: Option<u64>,
}

/// What was found.
pub(super) struct Selected {
    pub(super) objects: Vec<std::sync::Arc<StoredObject>>,
    pub(super) version: u64,
    next: Option<String>,
    remaining: Option<usize>,
}

/// `metadata.continue`, opaque to clients.
#[derive(Serialize, Deserialize)]
struct ContinueToken {
    v: String,
    rv: i64,
    start: String,
}

const TOKEN_VERSION: &str = "meta.k8s.io/v1";

impl Call {
    pub(super) fn list(&self) -> Result<Answer, ApiError> {
        let range = self.list_range()?;
        let selected = self.selected(&range)?;
        if self.accepted.shape == ObjectForm::Object && self.accepted.format == TextFormat::Json {
            return Ok(self.list_text(&selected));
        }
        let objects: Vec<Value> = selected.objects.iter().map(|s| self.api.object(&self.resource, s)).collect();
        let metadata = list_metadata(&selected, &self.resource, self.accepted.shape);
        Ok(Answer::list(&self.resource, &objects, metadata, self.accepted, &self.query, (self.api.clock)()))
    }

    /// A list of given objects, as delete-collection answers it.
    pub(super) fn list_answer(&self, objects: &[Value], version: u64) -> Answer {
        let selected = Selected { objects: Vec::new(), version, next: None, remaining: None };
        let metadata = list_metadata(&selected, &self.resource, self.accepted.shape);
        Answer::list(&self.resource, objects, metadata, self.accepted, &self.query, (self.api.clock)())
    }

    fn list_text(&self, selected: &Selected) -> Answer {
        let size: usize = selected.objects.iter().map(|o| o.body.tail.len() + 64).sum();
        let mut text = Vec::with_capacity(size + 256);
        let head = json!({"kind": self.resource.list_kind, "apiVersion": self.resource.api_version(), "metadata": list_metadata(selected, &self.resource, self.accepted.shape)});
        serde_json::to_writer(&mut text, &head).expect("JSON values are written to memory");
        text.pop();
        text.extend_from_slice(b",\"items\":[");
        // Lists of built-in kinds leave the type of each item out.
        let type_meta = self.resource.custom().map(|_| self.resource.type_meta());
        for (position, stored) in selected.objects.iter().enumerate() {
            if position > 0 {
                text.push(b',');
            }
            api::write_shown(&mut text, &self.resource, stored, type_meta.as_ref());
        }
        text.extend_from_slice(b"]}\n");
        Answer::json(StatusCode::OK, text)
    }

    /// Selectors and the part of the collection that the path names.
    pub(super) fn selection(&self) -> Result<ListSelection, ApiError> {
        let labels = LabelSelector::parse(self.query.get("labelSelector"))?;
        let mut fields = FieldSelector::parse(self.query.get("fieldSelector"))?;
        self.check_fields(&fields)?;
        if self.target.legacy_watch && !self.target.name.is_empty() {
            fields = FieldSelector::parse(&format!("metadata.name={}", self.target.name))?;
        }
        let namespace = &self.target.namespace;
        let prefix = if namespace.is_empty() { String::new() } else { format!("{namespace}/") };
        Ok(ListSelection { prefix, labels, fields })
    }

    fn check_fields(&self, fields: &FieldSelector) -> Result<(), ApiError> {
        for term in fields.terms() {
            let known = match self.resource.builtin_kind() {
                Some(kind) => portolan_builtin::selectors::selectable(kind).contains(&term.field.as_str()),
                None => {
                    matches!(term.field.as_str(), "metadata.name" | "metadata.namespace")
                        || self.resource.custom().is_some_and(|c| c.selectable.contains(&term.field))
                }
            };
            if !known {
                return Err(ApiError::bad_request(self.unknown_field(&term.field)));
            }
        }
        Ok(())
    }

    fn unknown_field(&self, field: &str) -> String {
        let plain = ["metadata.name", "metadata.namespace"];
        match self.resource.builtin_kind() {
            Some(kind) if portolan_builtin::selectable(kind).iter().all(|f| plain.contains(f)) => {
                format!("{field:?} is not a known field selector: only \"metadata.name\", \"metadata.namespace\"")
            }
            _ => format!("field label not supported: {field}"),
        }
    }

    pub(super) fn list_range(&self) -> Result<ListRange, ApiError> {
        let selection = self.selection()?;
        let limit = usize::try_from(self.query.number("limit")?.unwrap_or(0)).unwrap_or(0);
        self.query.number("timeoutSeconds")?;
        let (version, matching) = (self.query.get("resourceVersion"), self.query.get("resourceVersionMatch"));
        let token = self.query.get("continue");
        check_match(version, matching, token, &self.query)?;
        if !token.is_empty() {
            return self.continued(selection, limit, token);
        }
        let current = self.api.store.version();
        let asked = check_version(version, current).map_err(|error| match error.reason {
            "" => ApiError::bad_request(format!("invalid resource version: {}", error.message)),
            _ => error,
        })?;
        // A limit without a match is an old way to ask for an exact version.
        let exact = matching == "Exact" || (matching.is_empty() && limit > 0);
        let at = exact.then_some(asked).flatten();
        Ok(ListRange { selection, limit, after: String::new(), at })
    }

    fn continued(&self, selection: ListSelection, limit: usize, token: &str) -> Result<ListRange, ApiError> {
        let token = read_token(token)?;
        let after = format!("{}{}", selection.prefix, token.start);
        // A negative version means: whatever is there now.
        let at = u64::try_from(token.rv).ok().filter(|v| *v > 0);
        Ok(ListRange { selection, limit, after, at })
    }

    /// The objects of a list.
    pub(super) fn selected(&self, list: &ListRange) -> Result<Selected, ApiError> {
        let ListSelection { prefix, labels, fields } = &list.selection;
        let range = Range { collection: &self.resource.collection, prefix, after: &list.after, at: list.at };
        let mut listing = self.api.store.list(&range).map_err(|_| self.expired(list))?;
        if let Some(name) = fields.exact("metadata.name") {
            listing.objects.retain(|stored| stored.key.name() == name);
        }
        let mut objects = Vec::new();
        let mut next = None;
        let mut passed = 0;
        for stored in &listing.objects {
            if list.limit > 0 && objects.len() == list.limit {
                next = objects.last().map(|last: &std::sync::Arc<StoredObject>| last.key.path.clone());
                break;
            }
            passed += 1;
            if labels.matches(&stored.body.labels) && self.fields_match(fields, stored) {
                objects.push(stored.clone());
            }
        }
        let unfiltered = labels.is_everything() && fields.is_everything();
        let remaining = (next.is_some() && unfiltered).then(|| listing.objects.len() - passed);
        let next = next.map(|path| write_token(&path[prefix.len()..], listing.version));
        Ok(Selected { objects, version: listing.version, next, remaining })
    }

    fn expired(&self, list: &ListRange) -> ApiError {
        if list.after.is_empty() {
            return ApiError::expired("The resourceVersion for the provided list is too old.");
        }
        ApiError::expired(
            "The provided continue parameter is too old to display a consistent list result. You can start a new list \
             without the continue parameter, or use the continue token in this response to retrieve the remainder of \
             the results. Continuing with the provided token results in an inconsistent list - objects that were \
             created, modified, or deleted between the time the first chunk was returned and now may show up in the \
             list.",
        )
        .with_continue(write_token_at(&list.after[list.selection.prefix.len()..], -1))
    }

    pub(super) fn fields_match(&self, fields: &FieldSelector, stored: &StoredObject) -> bool {
        if fields.is_everything() {
            return true;
        }
        let by_key = |field: &str| match field {
            "metadata.name" => Some(stored.key.name().to_owned()),
            "metadata.namespace" => Some(stored.key.namespace().to_owned()),
            _ => None,
        };
        if fields.terms().iter().all(|t| by_key(&t.field).is_some()) {
            return fields.matches(|field| by_key(field).unwrap_or_default());
        }
        let object = self.api.object(&self.resource, stored);
        fields.matches(|field| self.field_value(&object, field))
    }

    fn field_value(&self, object: &Value, field: &str) -> String {
        match self.resource.builtin_kind() {
            Some(kind) => portolan_builtin::selectors::field_value(kind, object, field),
            None => match crate::object::at_path(object, field) {
                Some(Value::String(text)) => text.clone(),
                Some(Value::Null) | None => String::new(),
                Some(other) => other.to_string(),
            },
        }
    }
}

fn list_metadata(selected: &Selected, resource: &Resource, shape: ObjectForm) -> Value {
    let mut metadata = json!({"resourceVersion": selected.version.to_string()});
    if resource.custom().is_some() && shape == ObjectForm::Object {
        metadata["continue"] = json!("");
    }
    if let Some(next) = &selected.next {
        metadata["continue"] = json!(next);
    }
    if let Some(remaining) = selected.remaining {
        metadata["remainingItemCount"] = json!(remaining);
    }
    metadata
}

/// A version that a client asks for: a number that has been reached already.
pub(super) fn check_version(text: &str, current: u64) -> Result<Option<u64>, ApiError> {
    if text.is_empty() || text == "0" {
        return Ok(None);
    }
    let version: u64 = text.parse().map_err(|_| bad_version(text))?;
    if version > current { Err(ApiError::too_large_version(version, current)) } else { Ok(Some(version)) }
}

pub(super) fn bad_version(text: &str) -> ApiError {
    ApiError::unexpected(format!(
        "resourceVersion: Invalid value: {text:?}: strconv.ParseUint: parsing {text:?}: invalid syntax"
    ))
}

fn check_match(version: &str, matching: &str, token: &str, query: &crate::request::Query) -> Result<(), ApiError> {
    use portolan_schema::{FieldError, Path};
    let root = Path::root();
    let path = root.field("resourceVersionMatch");
    let mut errors = Vec::new();
    if query.find("sendInitialEvents").is_some() {
        errors.push(FieldError::forbidden(&root.field("sendInitialEvents"), "sendInitialEvents is forbidden for list"));
    }
    if !matching.is_empty() {
        if version.is_empty() {
            errors.push(FieldError::forbidden(
                &path,
                "resourceVersionMatch is forbidden unless resourceVersion is provided",
            ));
        }
        if !token.is_empty() {
            errors.push(FieldError::forbidden(&path, "resourceVersionMatch is forbidden when continue is provided"));
        }
        if matching != "Exact" && matching != "NotOlderThan" {
            errors.push(FieldError::not_supported(&path, &json!(matching), &["Exact", "NotOlderThan", ""]));
        }
        if matching == "Exact" && version == "0" {
            errors.push(FieldError::forbidden(
                &path,
                "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"",
            ));
        }
    }
    if !token.is_empty() && !version.is_empty() && version != "0" {
        return Err(ApiError::bad_request("specifying resource version is not allowed when using continue"));
    }
    if errors.is_empty() { Ok(()) } else { Err(ApiError::invalid("meta.k8s.io", "ListOptions", "", &errors)) }
}

fn write_token(start: &str, version: u64) -> String {
    write_token_at(start, i64::try_from(version).unwrap_or(i64::MAX))
}

fn write_token_at(start: &str, rv: i64) -> String {
    let token = ContinueToken { v: TOKEN_VERSION.to_owned(), rv, start: start.to_owned() };
    URL_SAFE_NO_PAD.encode(serde_json::to_vec(&token).expect("a token is three plain fields"))
}

fn read_token(text: &str) -> Result<ContinueToken, ApiError> {
    let bad = |why: &str| ApiError::bad_request(format!("invalid continue token: continue key is not valid: {why}"));
    let bytes = URL_SAFE_NO_PAD.decode(text).map_err(|e| bad(&e.to_string()))?;
    let token: ContinueToken = serde_json::from_slice(&bytes).map_err(|e| bad(&e.to_string()))?;
    if token.v != TOKEN_VERSION {
        return Err(bad(&format!("server does not recognize this encoded version {:?}", token.v)));
    }
    if token.rv == 0 || token.start.is_empty() || token.start.starts_with('/') || token.start.contains("..") {
        return Err(bad("incorrect encoded start resourceVersion or key"));
    }
    Ok(token)
}
