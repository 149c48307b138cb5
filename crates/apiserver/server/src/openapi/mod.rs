//! `/openapi/v3` and `/openapi/v2`: what is served → documents in the words of the real server, known by their hash.
//!
//! Documents about built-in kinds are data, those about custom resources are made from their definitions. Neither is
//! kept: a document is put together when a client asks for it, and clients keep it until its hash changes.

mod accept;
mod builtin;
mod custom;
mod gnostic;
mod parameters;
mod published;
mod structural;
mod swagger;
mod template;
mod version2;
mod version3;

use std::sync::Arc;

use http::StatusCode;
use http::header::{CACHE_CONTROL, EXPIRES, LOCATION, VARY};
use jiff::ToSpan as _;

use accept::{Encoding, Specification};
pub(crate) use published::{Published, hash};

use crate::answer::Answer;
use crate::api::Api;
use crate::call::Incoming;
use crate::registry::Registry;
use crate::request::Query;
use crate::status::ApiError;

/// The version that documents name, as the real server's do.
const INFO: &str = r#"{"title":"Kubernetes","version":"1.36"}"#;

/// What answers any method on a path below `/openapi`.
pub(crate) fn answer(api: &Arc<Api>, incoming: &Incoming) -> Result<Answer, ApiError> {
    let registry = api.registry();
    match incoming.path.as_str() {
        "/openapi/v2" => Ok(version_2(api, &registry, incoming)),
        "/openapi/v3" => Ok(index(&published(api, &registry))),
        other => match other.strip_prefix("/openapi/v3/") {
            Some(path) => Ok(document(api, &registry, incoming, path)),
            None => Err(ApiError::no_such_path()),
        },
    }
}

/// The hashes of everything that a registry serves.
fn published(api: &Api, registry: &Registry) -> Arc<Published> {
    registry.published(|| Published::of(&custom::documents(api, registry)))
}

/// Where each document is. The real server does not say that this is JSON.
fn index(published: &Published) -> Answer {
    let url = |(path, hash): (&String, &String)| {
        format!(r#""{path}":{{"serverRelativeURL":"{}"}}"#, relative_url(path, hash))
    };
    let paths: Vec<String> = published.documents.iter().map(url).collect();
    Answer::text(StatusCode::OK, format!(r#"{{"paths":{{{}}}}}"#, paths.join(",")))
}

fn relative_url(path: &str, hash: &str) -> String {
    format!("/openapi/v3/{path}?hash={hash}")
}

/// One document of version 3.
fn document(api: &Arc<Api>, registry: &Arc<Registry>, incoming: &Incoming, path: &str) -> Answer {
    let published = published(api, registry);
    let Some(hash) = published.documents.get(path).cloned() else {
        return Answer::empty(StatusCode::NOT_FOUND);
    };
    let encoding = match accept::negotiate(&incoming.accept, Specification::Version3) {
        Ok(encoding) => encoding,
        Err(code) => return Answer::empty(code).with(VARY, "Accept"),
    };
    let asked = Query::parse(&incoming.query).get("hash").to_owned();
    if !asked.is_empty() && asked != hash {
        return moved(path, &hash, encoding);
    }
    let (api, registry, path) = (api.clone(), registry.clone(), path.to_owned());
    let expires = (!asked.is_empty()).then(|| in_a_year(&api));
    let body = move || version3::document(&custom::definitions_of(&api, &registry, &path), &path, encoding);
    let answer = Answer::later(encoding.media_type(Specification::Version3), body).known_as(&hash).with(VARY, "Accept");
    match expires {
        Some(expires) => answer.with(CACHE_CONTROL, "public, immutable").with(EXPIRES, &expires),
        None => answer,
    }
}

/// A hash that is no longer, or not yet, the document's.
fn moved(path: &str, hash: &str, encoding: Encoding) -> Answer {
    let mut answer = Answer::empty(StatusCode::MOVED_PERMANENTLY).known_as(hash).with(VARY, "Accept");
    answer.content_type = encoding.media_type(Specification::Version3);
    answer.with(LOCATION, &relative_url(path, hash))
}

/// RFC 1123 with the zone's name, as the real server writes it.
fn in_a_year(api: &Api) -> String {
    let now = (api.clock)().to_zoned(jiff::tz::TimeZone::UTC);
    now.checked_add(1.year()).unwrap_or(now).strftime("%a, %d %b %Y %H:%M:%S UTC").to_string()
}

/// The one document of version 2.
fn version_2(api: &Arc<Api>, registry: &Arc<Registry>, incoming: &Incoming) -> Answer {
    let encoding = match accept::negotiate(&incoming.accept, Specification::Version2) {
        Ok(encoding) => encoding,
        Err(code) => return Answer::empty(code).with(VARY, "Accept"),
    };
    let hash = published(api, registry).version_2.clone();
    let (api, registry) = (api.clone(), registry.clone());
    let body = move || version2::document(&custom::definitions(&api, &registry), encoding);
    Answer::later(encoding.media_type(Specification::Version2), body).known_as(&hash).with(VARY, "Accept")
}
