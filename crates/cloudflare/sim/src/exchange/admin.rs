//! `/`, `/health` and `/admin/…`: the simulator's own pages, beside the API.

use std::{fmt::Write, time::Duration};

use bytes::Bytes;
use http::{Method, Request, Response};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::{
    Simulator,
    answer::json_response,
    fault::Described,
    routes::ROUTES,
    table::{COLLECTIONS, Collection},
};

/// The answer to a request that is not for the API, or nothing.
pub(crate) fn answer(simulator: &Simulator, request: &Request<Bytes>) -> Option<Response<Bytes>> {
    let answer = match (request.method(), request.uri().path()) {
        (&Method::GET, "/") => return Some(page(simulator)),
        (&Method::GET, "/health" | "/healthz") => Ok(json!({"status": "ok"})),
        (&Method::GET, "/admin/state") => Ok(simulator.state()),
        (&Method::GET, "/admin/requests") => Ok(requests(simulator)),
        (&Method::DELETE, "/admin/requests") => {
            simulator.take_requests();
            Ok(json!({"ok": true}))
        }
        (&Method::POST, "/admin/reset") => {
            simulator.reset();
            Ok(json!({"ok": true}))
        }
        (&Method::POST, "/admin/seed") => {
            parse(request).and_then(|seed| simulator.seed(seed)).map(|()| json!({"ok": true}))
        }
        (&Method::POST, "/admin/faults") => plan_faults(simulator, request),
        (&Method::DELETE, "/admin/faults") => {
            simulator.clear_faults();
            Ok(json!({"ok": true}))
        }
        (&Method::POST, "/admin/quotas") => {
            parse(request).map(|quotas| simulator.set_quotas(quotas)).map(|()| json!({"ok": true}))
        }
        (&Method::POST, "/admin/rate-limit") => parse(request).map(|limit: Limit| {
            simulator.set_rate_limit(Some((limit.requests, Duration::from_secs(limit.seconds))));
            json!({"ok": true})
        }),
        (&Method::POST, "/admin/objects") => parse(request).and_then(|edit: AdminEdit| edit.run(simulator)),
        (_, path) if path.starts_with("/admin/") => Err("there is no such admin page".to_owned()),
        _ => return None,
    };
    Some(match answer {
        Ok(value) => json_response(200, Bytes::from(value.to_string())),
        Err(error) => json_response(400, Bytes::from(json!({"error": error}).to_string())),
    })
}

fn requests(simulator: &Simulator) -> Value {
    simulator.requests().iter().map(crate::RecordedRequest::to_json).collect()
}

fn parse<T: for<'a> Deserialize<'a>>(request: &Request<Bytes>) -> Result<T, String> {
    serde_json::from_slice(request.body()).map_err(|error| format!("the body is not valid: {error}"))
}

/// One fault or a list of them.
fn plan_faults(simulator: &Simulator, request: &Request<Bytes>) -> Result<Value, String> {
    let value: Value = parse(request)?;
    let described = match value {
        Value::Array(faults) => faults,
        fault => vec![fault],
    };
    for fault in described {
        let fault: Described = serde_json::from_value(fault).map_err(|error| error.to_string())?;
        simulator.fault(fault.fault()?);
    }
    Ok(json!({"ok": true, "faults": simulator.lock().faults.len()}))
}

/// How many requests a user may send in a window.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Limit {
    requests: u32,
    seconds: u64,
}

/// A change behind the API's back.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct AdminEdit {
    /// `put`, `edit` or `remove`.
    action: String,
    collection: String,
    #[serde(default)]
    scope: String,
    #[serde(default)]
    id: String,
    /// The object to put, or the members to change.
    #[serde(default)]
    object: Value,
}

impl AdminEdit {
    fn run(self, simulator: &Simulator) -> Result<Value, String> {
        let missing = || format!("there is no {} with id {}", self.collection, self.id);
        match self.action.as_str() {
            "put" => simulator.put(&self.collection, &self.scope, self.object).map(|id| json!({"id": id})),
            "edit" => {
                let members = self.object.as_object().cloned().unwrap_or_default();
                let merge = |value: &mut Value| {
                    for (name, member) in members {
                        value[name] = member;
                    }
                };
                let edited = simulator.edit(&self.collection, &self.id, merge);
                if edited { Ok(json!({"id": self.id})) } else { Err(missing()) }
            }
            "remove" if simulator.remove(&self.collection, &self.id) => Ok(json!({"id": self.id})),
            "remove" => Err(missing()),
            other => Err(format!("action: \"{other}\" is neither put, edit nor remove")),
        }
    }
}

/// What is served, and how much of it there is.
fn page(simulator: &Simulator) -> Response<Bytes> {
    let state = simulator.lock();
    let mut text = String::from(HEAD);
    for row in COLLECTIONS {
        let Collection { name, scope, .. } = row;
        let _ = write!(text, "<tr><td>{name}</td><td>{}</td><td>{}</td></tr>", scope.word(), state.count(row));
    }
    let (requests, audit, faults) = (state.log.len(), state.audit.len(), state.faults.len());
    let _ = write!(text, "</table><p>{requests} requests, {audit} audit entries, {faults} faults planned.</p>");
    text.push_str("<h2>Routes below /client/v4</h2><pre>");
    for route in ROUTES.iter() {
        let _ = writeln!(text, "{:6} {}", route.method.as_str(), route.template);
    }
    text.push_str("</pre></body></html>");
    drop(state);
    let mut response = json_response(200, Bytes::from(text));
    let html = "text/html; charset=UTF-8".parse().expect("a fixed header value is valid");
    response.headers_mut().insert(http::header::CONTENT_TYPE, html);
    response
}

const HEAD: &str = "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\"><title>Cloudflare simulator</title>\
<style>body{font:15px/1.5 system-ui;margin:2rem auto;max-width:60rem}td,th{padding:.1rem 1rem .1rem 0;text-align:left}\
</style></head><body><h1>Cloudflare simulator</h1>\
<p><a href=\"/admin/state\">State</a> · <a href=\"/admin/requests\">Requests</a></p>\
<table><tr><th>Collection</th><th>Scope</th><th>Objects</th></tr>";
