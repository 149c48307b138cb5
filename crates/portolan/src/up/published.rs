//! Objects → what is to be seen of them at Cloudflare. Pure.

use serde_json::Value;

use crate::health_view::{Health, HealthView};

/// One thing at Cloudflare.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Published {
    /// `A`, `network`.
    pub(crate) sort: String,
    pub(crate) name: String,
    /// Where it leads.
    pub(crate) content: String,
    /// Whether Cloudflare stands in front.
    pub(crate) is_proxied: bool,
}

/// Everything that objects which are Ready stand for.
pub(crate) fn published(objects: &[HealthView]) -> Vec<Published> {
    objects.iter().filter(|seen| seen.health() == Health::Ready).filter_map(one).collect()
}

fn one(seen: &HealthView) -> Option<Published> {
    match seen.kind.as_str() {
        "DNSRecord" => Some(record(seen)),
        "HTTPRoute" => Some(Published {
            sort: if seen.object["spec"]["protected"] == true { "protected" } else { "open" }.to_owned(),
            name: seen.text("/spec/hostname").to_owned(),
            content: seen.text("/spec/leadsTo").to_owned(),
            is_proxied: false,
        }),
        "VirtualNetwork" => Some(Published {
            sort: "network".to_owned(),
            name: first(seen, &["/spec/name", "/metadata/name"]).to_owned(),
            content: String::new(),
            is_proxied: false,
        }),
        "NetworkRoute" => Some(Published {
            sort: "route".to_owned(),
            name: seen.text("/spec/network").to_owned(),
            content: format!("tunnel {}", first(seen, &["/status/tunnelName", "/spec/tunnelRef/name"])),
            is_proxied: false,
        }),
        _ => None,
    }
}

fn record(seen: &HealthView) -> Published {
    let content = match first(seen, &["/status/resolvedContent", "/spec/content"]) {
        "" => data(&seen.object["spec"]["data"]),
        content => content.to_owned(),
    };
    Published {
        sort: first(seen, &["/status/resolvedType", "/spec/type"]).to_owned(),
        name: seen.text("/spec/name").to_owned(),
        content,
        is_proxied: seen.object["spec"]["proxied"] == true,
    }
}

fn first<'a>(seen: &'a HealthView, pointers: &[&str]) -> &'a str {
    pointers.iter().map(|pointer| seen.text(pointer)).find(|text| !text.is_empty()).unwrap_or_default()
}

/// `port 443, target sip.example.com`: what a record says that has no single text.
fn data(data: &Value) -> String {
    let Some(fields) = data.as_object() else { return String::new() };
    let shown = fields.iter().filter(|(_, value)| !value.is_null()).map(|(name, value)| match value.as_str() {
        Some(text) => format!("{name} {text}"),
        None => format!("{name} {value}"),
    });
    shown.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn seen(kind: &str, spec: Value, ready: &str) -> HealthView {
        let conditions = json!([{"type": "Ready", "status": ready}]);
        HealthView {
            kind: kind.to_owned(),
            object: json!({"metadata": {"name": "n"}, "spec": spec, "status": {"conditions": conditions}}),
        }
    }

    #[test]
    fn records_show_their_type_content_and_whether_they_are_proxied() {
        let www = seen(
            "DNSRecord",
            json!({"name": "www.example.com", "type": "A", "content": "192.0.2.1", "proxied": true}),
            "True",
        );

        let shown = published(&[www]);

        assert_eq!((shown[0].sort.as_str(), shown[0].content.as_str(), shown[0].is_proxied), ("A", "192.0.2.1", true));
    }

    #[test]
    fn records_without_content_show_their_data() {
        let srv = seen(
            "DNSRecord",
            json!({"name": "_sip._tcp.example.com", "type": "SRV", "data": {"port": 5060, "target": "sip.example.com"}}),
            "True",
        );

        assert_eq!(published(&[srv])[0].content, "port 5060, target sip.example.com");
    }

    #[test]
    fn what_is_not_ready_is_not_published() {
        assert!(published(&[seen("VirtualNetwork", json!({}), "False")]).is_empty());
    }
}
