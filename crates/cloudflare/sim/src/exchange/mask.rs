//! Takes secrets out of what is recorded.

use serde_json::Value;

const MASK: &str = "***";
const NAMES: [&str; 8] =
    ["tunnel_secret", "TunnelSecret", "token", "secret", "client_secret", "password", "private_key", "api_key"];

/// Replaces the values of members whose names tell of a secret.
pub(crate) fn mask(value: &mut Value) {
    match value {
        Value::Object(members) => {
            for (name, member) in members.iter_mut() {
                if NAMES.contains(&name.as_str()) && !member.is_null() {
                    *member = Value::from(MASK);
                } else {
                    mask(member);
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(mask),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Whether answers on this path may hold secrets, so that they must be looked through.
pub(crate) fn is_sensitive(path: &str) -> bool {
    ["/cfd_tunnel", "tokens", "/identity_providers"].iter().any(|part| path.contains(part))
}

/// Takes secrets out of an answer. The answer of `…/token` is itself one.
pub(crate) fn mask_answer(path: &str, answer: &mut Value) {
    mask(answer);
    if path.ends_with("/token") && answer["result"].is_string() {
        answer["result"] = Value::from(MASK);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn secrets_are_masked_at_any_depth() {
        let mut body = json!({"name": "t", "tunnel_secret": "canary", "more": [{"token": "canary"}]});
        mask(&mut body);
        assert!(!body.to_string().contains("canary"), "{body}");
        assert_eq!(body["name"], "t");

        let mut answer = json!({"result": "canary"});
        mask_answer("/accounts/a/cfd_tunnel/t/token", &mut answer);
        assert!(!answer.to_string().contains("canary"));
    }
}
