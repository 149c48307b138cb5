//! The checks on a tunnel's configuration: rules, services, origin settings.

use regex::Regex;
use serde_json::{Map, Value};

use crate::{dns::name::is_domain, field::MemberType, reply::Refusal};

type Checked = Result<(), String>;

/// Refuses a configuration that `cloudflared` could not run.
pub(crate) fn check(config: &Value) -> Result<(), Refusal> {
    config_members(config).map_err(|message| Refusal::bad(1056, format!("Bad Configuration: {message}")))
}

fn config_members(config: &Value) -> Checked {
    for (name, value) in members(config) {
        match name.as_str() {
            "ingress" => rules(value)?,
            "originRequest" => origin(value, "originRequest")?,
            "warp-routing" if value.is_object() => {}
            _ => return Err(format!("unknown field \"{name}\" in config")),
        }
    }
    Ok(())
}

fn members(value: &Value) -> &Map<String, Value> {
    static NONE: std::sync::LazyLock<Map<String, Value>> = std::sync::LazyLock::new(Map::new);
    value.as_object().unwrap_or(&NONE)
}

fn rules(ingress: &Value) -> Checked {
    let rules = ingress.as_array().ok_or("ingress must be an array")?;
    let Some(last) = rules.last() else { return Err("No ingress rules were specified in the config file".into()) };
    for (index, one) in rules.iter().enumerate() {
        let number = index + 1;
        rule(one).map_err(|message| format!("Rule #{number}: {message}"))?;
        if index + 1 < rules.len() && matches_all(one) {
            return Err(format!(
                "Rule #{number} is matching the hostname '', but this will match every hostname, meaning the rules \
                 which follow it will never be triggered."
            ));
        }
    }
    if matches_all(last) {
        Ok(())
    } else {
        Err("The last ingress rule must match all URLs (i.e. it should not have a hostname or path filter)".into())
    }
}

fn matches_all(rule: &Value) -> bool {
    let member = |name: &str| rule.get(name).and_then(Value::as_str).unwrap_or_default();
    matches!(member("hostname"), "" | "*") && member("path").is_empty()
}

fn rule(rule: &Value) -> Checked {
    let members = rule.as_object().ok_or("must be an object")?;
    for (name, value) in members {
        match (name.as_str(), value.as_str()) {
            ("hostname", Some(text)) => hostname(text)?,
            ("path", Some(text)) => path(text)?,
            ("service", Some(text)) => service(text)?,
            ("originRequest", _) => origin(value, "originRequest")?,
            ("hostname" | "path" | "service", None) => return Err(format!("{name} must be a string")),
            _ => return Err(format!("unknown field \"{name}\"")),
        }
    }
    if members.contains_key("service") { Ok(()) } else { Err("service is missing".into()) }
}

fn hostname(text: &str) -> Checked {
    if text.contains(':') {
        return Err("Hostname cannot contain a port".into());
    }
    let plain = text.strip_prefix("*.").unwrap_or(text);
    if plain.contains('*') && text != "*" {
        return Err("Hostname patterns can have at most one wildcard character (\"*\") and it can only be used for \
                    subdomains, e.g. \"*.example.com\""
            .into());
    }
    if text.is_empty() || text == "*" || is_domain(plain) {
        Ok(())
    } else {
        Err(format!("{text} is not a valid hostname"))
    }
}

fn path(text: &str) -> Checked {
    Regex::new(text).map(drop).map_err(|_| format!("path {text} is not a valid regular expression"))
}

const SCHEMES: [&str; 9] = ["http", "https", "ws", "wss", "tcp", "ssh", "rdp", "smb", "quic"];

fn service(text: &str) -> Checked {
    if let Some(code) = text.strip_prefix("http_status:") {
        return match code.parse() {
            Ok(100..=999u16) => Ok(()),
            _ => Err(format!("{text} is not a valid HTTP status code")),
        };
    }
    if matches!(text, "hello_world" | "hello-world" | "bastion" | "socks-proxy") {
        return Ok(());
    }
    if let Some(path) = text.strip_prefix("unix:").or_else(|| text.strip_prefix("unix+tls:")) {
        return if path.is_empty() { Err(format!("{text} has no path")) } else { Ok(()) };
    }
    address(text)
}

fn address(text: &str) -> Checked {
    let wrong = || format!("{text} is an invalid address, please make sure it has a scheme and a hostname");
    let (scheme, rest) = text.split_once("://").ok_or_else(wrong)?;
    let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
    if !SCHEMES.contains(&scheme) || authority.is_empty() {
        return Err(wrong());
    }
    if !path.is_empty() {
        return Err(format!(
            "{text} is an invalid address, ingress rules don't support proxying to a different path on the origin \
             service. The path will be the same as the eyeball request's path"
        ));
    }
    let (host, port) = host_and_port(authority);
    let port_fits = port.is_none_or(|port| port.parse::<u16>().is_ok_and(|port| port > 0));
    if host.is_empty() || host.contains([' ', '/', '@']) || !port_fits { Err(wrong()) } else { Ok(()) }
}

/// IPv6 addresses are in brackets.
fn host_and_port(authority: &str) -> (&str, Option<&str>) {
    match authority.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => (host, Some(port)),
        _ => (authority, None),
    }
}

/// Settings of the connection to the origin, with their types.
const ORIGIN: [(&str, MemberType); 19] = [
    ("access", MemberType::Object),
    ("bastionMode", MemberType::Bool),
    ("caPool", MemberType::Text),
    ("connectTimeout", MemberType::Number),
    ("disableChunkedEncoding", MemberType::Bool),
    ("http2Origin", MemberType::Bool),
    ("httpHostHeader", MemberType::Text),
    ("keepAliveConnections", MemberType::Number),
    ("keepAliveTimeout", MemberType::Number),
    ("matchSNItoHost", MemberType::Bool),
    ("noHappyEyeballs", MemberType::Bool),
    ("noTLSVerify", MemberType::Bool),
    ("originServerName", MemberType::Text),
    ("proxyAddress", MemberType::Text),
    ("proxyPort", MemberType::Number),
    ("proxyType", MemberType::OneOf(&["", "socks"])),
    ("tcpKeepAlive", MemberType::Number),
    ("tlsTimeout", MemberType::Number),
    ("ipRules", MemberType::Any),
];

fn origin(value: &Value, place: &str) -> Checked {
    let settings = value.as_object().ok_or_else(|| format!("{place} must be an object"))?;
    for (name, setting) in settings {
        let Some((_, kind)) = ORIGIN.iter().find(|(known, _)| known == name) else {
            return Err(format!("unknown field \"{name}\" in {place}"));
        };
        let whole = *kind != MemberType::Number || setting.as_u64().is_some();
        if !kind.fits(setting) || !whole {
            return Err(format!("{place}.{name} has the wrong type"));
        }
        if name == "access" {
            access(setting)?;
        }
    }
    Ok(())
}

fn access(access: &Value) -> Checked {
    for (name, value) in members(access) {
        let fits = match name.as_str() {
            "required" => value.is_boolean(),
            "teamName" => value.is_string(),
            "audTag" => MemberType::Texts.fits(value),
            _ => return Err(format!("unknown field \"{name}\" in access")),
        };
        if !fits {
            return Err(format!("access.{name} has the wrong type"));
        }
    }
    let has = |name: &str| access.get(name).is_some();
    if has("audTag") && has("teamName") { Ok(()) } else { Err("access needs audTag and teamName".into()) }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn refused(config: Value) -> String {
        check(&config).unwrap_err().failures[0].message.clone()
    }

    fn with_service(service: &str) -> Value {
        json!({"ingress": [{"hostname": "a.example.com", "service": service}, {"service": "http_status:404"}]})
    }

    #[test]
    fn services_that_can_be_reached_are_accepted() {
        for service in [
            "http://localhost:8080",
            "https://10.0.0.1",
            "tcp://[2001:db8::1]:22",
            "unix:/run/x.sock",
            "http_status:503",
            "hello_world",
            "http://app.ns.svc:80/",
        ] {
            assert_eq!(check(&with_service(service)), Ok(()), "{service}");
        }
        for service in ["localhost:80", "http://", "http://x/path", "http_status:99", "ftp://x", "http://x:0", ""] {
            assert!(check(&with_service(service)).is_err(), "{service}");
        }
    }

    #[test]
    fn the_last_rule_and_no_other_catches_all() {
        let catch_all = json!({"service": "http_status:404"});
        let one = json!({"hostname": "a.example.com", "service": "http://x"});

        assert!(refused(json!({"ingress": [one]})).contains("last ingress rule"));
        assert!(refused(json!({"ingress": []})).contains("No ingress rules"));
        assert!(refused(json!({"ingress": [catch_all, one, catch_all]})).contains("Rule #1"));
        assert_eq!(check(&json!({"ingress": [one, catch_all]})), Ok(()));
    }

    #[test]
    fn bad_names_paths_and_settings_are_refused() {
        let rule = |rule: Value| refused(json!({"ingress": [rule, {"service": "http_status:404"}]}));

        assert!(rule(json!({"hostname": "a.*.b", "service": "http://x"})).contains("wildcard"));
        assert!(rule(json!({"hostname": "a.b:80", "service": "http://x"})).contains("port"));
        assert!(rule(json!({"hostname": "a.b", "path": "(", "service": "http://x"})).contains("regular"));
        assert!(rule(json!({"hostname": "a.b"})).contains("service is missing"));
        let settings = json!({"hostname": "a.b", "service": "http://x", "originRequest": {"noTLSVerify": "yes"}});
        assert!(rule(settings).contains("noTLSVerify"));
        let settings = json!({"hostname": "a.b", "service": "http://x", "originRequest": {"connectTimeout": "30s"}});
        assert!(rule(settings).contains("connectTimeout"));
        let settings =
            json!({"hostname": "a.b", "service": "http://x", "originRequest": {"access": {"required": true}}});
        assert!(rule(settings).contains("audTag"));
        assert!(refused(json!({"ingres": []})).contains("ingres"));
    }
}
