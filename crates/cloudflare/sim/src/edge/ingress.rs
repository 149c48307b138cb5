//! A tunnel and a request in, the first rule that takes it out.

use regex::Regex;
use serde_json::{Map, Value};

use super::{
    decision::{EdgeOutcome, EdgeRule},
    failure,
    request::EdgeRequest,
    resolve::RequestDestination,
    view::{StateView, TunnelView},
};
use crate::store::{flag, text};

/// What a tunnel does with a request.
pub(super) struct IngressMatch {
    pub(super) rule: Option<EdgeRule>,
    pub(super) outcome: EdgeOutcome,
}

impl IngressMatch {
    fn nothing(outcome: EdgeOutcome) -> Self {
        Self { rule: None, outcome }
    }
}

/// `audience` is the tag of the application that let the request through, as its assertion carries it.
pub(super) fn find(
    view: StateView<'_>,
    zone: &Value,
    target: &RequestDestination,
    request: &EdgeRequest,
    audience: &str,
) -> IngressMatch {
    let id = match target {
        RequestDestination::Tunnel(id) => id,
        RequestDestination::Outside(address) => {
            return IngressMatch::nothing(failure::outside(format!(
                "the origin {address} cannot be reached from here"
            )));
        }
    };
    let tunnel = match usable(view, zone, id) {
        Ok(tunnel) => tunnel,
        Err(outcome) => return IngressMatch::nothing(outcome),
    };
    let Some(rule) = first(tunnel.config, request) else {
        return IngressMatch::nothing(failure::tunnel(format!("no rule of tunnel {id} takes {}", request.host)));
    };
    let outcome = serve(&rule, &Assertion { audience, team: &view.team(&tunnel.account) });
    IngressMatch { rule: Some(rule), outcome }
}

fn usable<'a>(view: StateView<'a>, zone: &Value, id: &str) -> Result<TunnelView<'a>, EdgeOutcome> {
    let Some(tunnel) = view.tunnel(id) else {
        return Err(failure::tunnel(format!("there is no tunnel {id}")));
    };
    if tunnel.account != text(&zone["account"], "id") {
        return Err(failure::tunnel(format!("tunnel {id} belongs to another account than the zone")));
    }
    let local = text(tunnel.object, "config_src") == "local";
    if local || tunnel.config.is_null() {
        let place = if local { "beside its client" } else { "nowhere yet" };
        return Err(failure::tunnel(format!("the configuration of tunnel {id} is {place}")));
    }
    Ok(tunnel)
}

fn first(config: &Value, request: &EdgeRequest) -> Option<EdgeRule> {
    let rules = config["ingress"].as_array()?;
    let (index, rule) = rules.iter().enumerate().find(|(_, rule)| takes(rule, request))?;
    let mut settings = config["originRequest"].as_object().cloned().unwrap_or_default();
    // The tunnel's client looks at this one on rules only.
    settings.remove("access");
    settings.extend(rule["originRequest"].as_object().cloned().unwrap_or_default());
    Some(EdgeRule {
        index,
        hostname: text(rule, "hostname").to_owned(),
        path: text(rule, "path").to_owned(),
        service: text(rule, "service").to_owned(),
        settings,
    })
}

fn takes(rule: &Value, request: &EdgeRequest) -> bool {
    takes_host(text(rule, "hostname"), &request.host) && takes_path(text(rule, "path"), &request.path)
}

/// A wildcard takes names of any depth below it.
fn takes_host(pattern: &str, host: &str) -> bool {
    match pattern.strip_prefix('*') {
        _ if pattern.is_empty() => true,
        Some(rest) => rest.is_empty() || host.ends_with(&rest.to_ascii_lowercase()),
        None => pattern.eq_ignore_ascii_case(host),
    }
}

fn takes_path(pattern: &str, path: &str) -> bool {
    pattern.is_empty() || Regex::new(pattern).is_ok_and(|pattern| pattern.is_match(path))
}

/// The token that a request carries.
struct Assertion<'a> {
    /// Tag of the application; empty where the request carries none.
    audience: &'a str,
    /// The team whose keys signed it.
    team: &'a str,
}

fn serve(rule: &EdgeRule, assertion: &Assertion<'_>) -> EdgeOutcome {
    if let Some((status, reason)) = unassured(&rule.settings, assertion) {
        return EdgeOutcome::Refused { status, reason };
    }
    match rule.service.as_str() {
        "hello_world" | "hello-world" => EdgeOutcome::Hello,
        service => match service.strip_prefix("http_status:").and_then(|code| code.parse().ok()) {
            Some(status) => EdgeOutcome::Status { status },
            None => EdgeOutcome::Origin { service: service.to_owned() },
        },
    }
}

/// A rule may ask for the assertion of certain applications: 403 where there is none or one of another application, 502
/// where it cannot be verified by the keys of the team that the rule names.
/// (`cloudflared`: `ingress/middleware/jwtvalidator.go`, `applyIngressMiddleware` in `proxy/proxy.go`.)
fn unassured(settings: &Map<String, Value>, assertion: &Assertion<'_>) -> Option<(u16, String)> {
    let access = settings.get("access").filter(|access| flag(access, "required"))?;
    let mut tags = access["audTag"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let (status, reason) = match assertion {
        Assertion { audience: "", .. } => (403, "the rule asks for an assertion of Access, and there is none"),
        Assertion { team, .. } if text(access, "teamName") != *team => {
            (502, "the rule names another team than the one that signed the assertion")
        }
        Assertion { audience, .. } if tags.any(|tag| tag == *audience) => return None,
        Assertion { .. } => (403, "the rule asks for the assertion of another Access application"),
    };
    Some((status, reason.to_owned()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn taken(config: Value, host: &str, path: &str) -> Option<usize> {
        first(&config, &EdgeRequest::get(host, path, &[])).map(|rule| rule.index)
    }

    #[test]
    fn the_first_rule_whose_name_and_path_fit_takes_the_request() {
        let config = json!({"ingress": [
            {"hostname": "a.example.com", "path": "^/api", "service": "http://one"},
            {"hostname": "a.example.com", "service": "http://two"},
            {"hostname": "*.example.com", "service": "http://three"},
            {"service": "http_status:404"},
        ]});

        assert_eq!(taken(config.clone(), "a.example.com", "/api/v1"), Some(0));
        assert_eq!(taken(config.clone(), "a.example.com", "/x/api"), Some(1));
        assert_eq!(taken(config.clone(), "b.c.example.com", "/"), Some(2));
        assert_eq!(taken(config.clone(), "example.com", "/"), Some(3));
        assert_eq!(taken(config, "notexample.com", "/"), Some(3));
    }

    #[test]
    fn a_rule_has_the_tunnels_settings_and_its_own() {
        let config = json!({
            "originRequest": {"noTLSVerify": true, "connectTimeout": 3, "access": {"required": true, "audTag": ["x"]}},
            "ingress": [{"service": "http://x", "originRequest": {"connectTimeout": 5}}],
        });

        let rule = first(&config, &EdgeRequest::get("a.b", "/", &[])).unwrap();

        assert_eq!(Value::from(rule.settings), json!({"noTLSVerify": true, "connectTimeout": 5}));
    }

    #[test]
    fn a_rule_that_asks_for_an_assertion_refuses_others() {
        let rule = |audience: &str, team: &str| {
            let settings = json!({"access": {"required": true, "teamName": "t", "audTag": ["tag"]}});
            let settings = settings.as_object().cloned().unwrap();
            let rule = EdgeRule {
                index: 0,
                hostname: String::new(),
                path: String::new(),
                service: "hello_world".into(),
                settings,
            };
            serve(&rule, &Assertion { audience, team })
        };

        assert_eq!(rule("tag", "t"), EdgeOutcome::Hello);
        assert!(matches!(rule("other", "t"), EdgeOutcome::Refused { status: 403, .. }));
        assert!(matches!(rule("", "t"), EdgeOutcome::Refused { status: 403, .. }));
        assert!(matches!(rule("tag", "other"), EdgeOutcome::Refused { status: 502, .. }));
    }
}
