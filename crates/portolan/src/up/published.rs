//! Objects → what is to be seen of them at Cloudflare. Pure.

use portolan_cloudflare::kind::Management;
use portolan_cloudflare::kinds;
use portolan_cloudflare::shown::Shown;

use crate::health_view::{Health, HealthView};
use crate::zerotrust;

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
    let mut shown: Vec<(&str, Shown)> = kinds::table()
        .iter()
        .filter(|row| row.management == Management::Owned)
        .map(|row| (row.kind, row.shown))
        .collect();
    shown.push(("HTTPRoute", zerotrust::ROUTE));
    let of = |seen: &HealthView| {
        let (_, shown) = shown.iter().find(|(kind, _)| *kind == seen.kind)?;
        Some(one(seen, shown))
    };
    objects.iter().filter(|seen| seen.health() == Health::Ready).filter_map(of).collect()
}

fn one(seen: &HealthView, shown: &Shown) -> Published {
    Published {
        sort: shown.sort.of(&seen.object),
        name: shown.name.of(&seen.object),
        content: shown.content.of(&seen.object),
        is_proxied: seen.object["spec"]["proxied"] == true,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

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
