//! A TLS Secret → why its certificate and key cannot serve. Looks for the PEM blocks, not into them.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use crate::value::text;

/// What is wrong with the pair of a Secret of type `kubernetes.io/tls`.
pub(super) fn problem(secret: &Value) -> Option<String> {
    if text(secret, "type") != "kubernetes.io/tls" {
        return None;
    }
    let blocks_of = |key: &str| {
        let decoded = STANDARD.decode(text(&secret["data"], key)).unwrap_or_default();
        blocks(&String::from_utf8_lossy(&decoded))
    };
    of_certificate(&blocks_of("tls.crt")).or_else(|| of_key(&blocks_of("tls.key")))
}

fn of_certificate(blocks: &[String]) -> Option<String> {
    match blocks {
        found if found.iter().any(|label| label == "CERTIFICATE") => None,
        [] => Some("tls: failed to find any PEM data in certificate input".to_owned()),
        [only] if only.ends_with("PRIVATE KEY") => Some(
            "tls: failed to find certificate PEM data in certificate input, but did find a private key; PEM inputs may \
             have been switched"
                .to_owned(),
        ),
        others => Some(format!(
            "tls: failed to find \"CERTIFICATE\" PEM block in certificate input after skipping PEM blocks of the following \
             types: [{}]",
            others.join(" ")
        )),
    }
}

fn of_key(blocks: &[String]) -> Option<String> {
    match blocks {
        found if found.iter().any(|label| label == "PRIVATE KEY" || label.ends_with(" PRIVATE KEY")) => None,
        [] => Some("tls: failed to find any PEM data in key input".to_owned()),
        [only] if only == "CERTIFICATE" => {
            Some("tls: found a certificate rather than a key in the PEM for the private key".to_owned())
        }
        others => Some(format!(
            "tls: failed to find PEM block with type ending in \"PRIVATE KEY\" in key input after skipping PEM blocks of \
             the following types: [{}]",
            others.join(" ")
        )),
    }
}

/// The labels of the PEM blocks whose content can be read.
fn blocks(pem: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut lines = pem.lines();
    while let Some(line) = lines.next() {
        let Some(label) = line.trim_end().strip_prefix("-----BEGIN ").and_then(|rest| rest.strip_suffix("-----"))
        else {
            continue;
        };
        let end = format!("-----END {label}-----");
        let body: Vec<&str> = lines.clone().map(str::trim).take_while(|line| *line != end).collect();
        let closed = lines.clone().any(|line| line.trim() == end);
        let content: String = body.iter().filter(|line| !line.contains(':')).copied().collect();
        if closed && STANDARD.decode(content).is_ok() {
            found.push(label.to_owned());
            lines.by_ref().take(body.len() + 1).for_each(drop);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const CERTIFICATE: &str = "-----BEGIN CERTIFICATE-----\nAAAA\nBBBB\n-----END CERTIFICATE-----\n";
    const KEY: &str = "-----BEGIN EC PRIVATE KEY-----\nProc-Type: 4\n\nAAAA\n-----END EC PRIVATE KEY-----\n";

    fn told(certificate: &str, key: &str) -> Option<String> {
        let data = json!({"tls.crt": STANDARD.encode(certificate), "tls.key": STANDARD.encode(key)});
        problem(&json!({"type": "kubernetes.io/tls", "data": data}))
    }

    #[test]
    fn a_pair_that_has_both_blocks_is_not_told() {
        assert_eq!(told(CERTIFICATE, KEY), None);
        assert_eq!(problem(&json!({"type": "Opaque", "data": {}})), None);
    }

    #[test]
    fn what_is_missing_or_switched_is_told() {
        assert_eq!(told("", KEY).unwrap(), "tls: failed to find any PEM data in certificate input");
        assert_eq!(told(CERTIFICATE, "x").unwrap(), "tls: failed to find any PEM data in key input");
        assert!(told(KEY, CERTIFICATE).unwrap().ends_with("PEM inputs may have been switched"));
        assert!(told(CERTIFICATE, CERTIFICATE).unwrap().starts_with("tls: found a certificate rather than a key"));
        let request = CERTIFICATE.replace("CERTIFICATE", "CERTIFICATE REQUEST");
        assert!(told(&format!("{request}{KEY}"), KEY).unwrap().ends_with("[CERTIFICATE REQUEST EC PRIVATE KEY]"));
    }

    #[test]
    fn a_block_without_an_end_is_no_block() {
        assert_eq!(blocks("-----BEGIN A-----\nAAAA\n-----BEGIN B-----\nAAAA\n-----END B-----"), ["B"]);
    }
}
