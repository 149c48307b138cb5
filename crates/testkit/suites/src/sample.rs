//! One object of every kind and shape, with what the lifecycle suite does to it. A new kind gets the whole suite for a
//! sample of its own.

use portolan_cloudflare::kinds::{Row, table};
use serde_json::{Value, json};

use crate::manifests::{self as m, ACCOUNT, TUNNEL, ZONE};
use crate::world::World;

/// How what an object owns comes to Cloudflare, and is known again: what a crash can go wrong with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SampleShape {
    /// In batches with others of its zone, marked.
    Batched,
    /// By requests of its own, marked, only ever changed in place.
    InPlace,
    /// By requests of its own, marked, replaced where its key changes.
    Replaced,
    /// By requests of its own, without a mark.
    Unmarked,
}

/// An object that owns something at Cloudflare.
#[derive(Clone, Copy)]
pub struct Owned {
    /// What it is called in reports.
    pub label: &'static str,
    /// How it comes to Cloudflare.
    pub shape: SampleShape,
    /// Its kind.
    pub kind: &'static str,
    /// The simulator's name of the collection.
    pub collection: &'static str,
    /// The manifest.
    pub manifest: fn() -> Value,
    /// A change of the spec that is made in place.
    pub change: fn(&mut Value),
    /// A change of the spec that needs another remote object, where there is one.
    pub replace: Option<fn(&mut Value)>,
    /// A change that somebody makes in the dashboard.
    pub drift: fn(&mut Value),
    /// An object of the same natural key and content that somebody made.
    pub twin: fn(&World) -> Value,
    /// One of the same natural key with other content, where content is more than the key.
    pub other_twin: Option<fn(&World) -> Value>,
}

impl Owned {
    /// `Kind/namespace/name`.
    pub fn id(&self) -> String {
        m::id(&(self.manifest)())
    }

    /// The manifest after the change.
    pub fn changed(&self) -> Value {
        let mut manifest = (self.manifest)();
        (self.change)(&mut manifest["spec"]);
        manifest
    }

    /// The expression that the paths of its remote objects' requests fit.
    pub fn path(&self) -> String {
        format!("/{}", self.row().remote.path)
    }

    /// Whether what stands for it says so itself.
    pub fn is_marked(&self) -> bool {
        self.row().marked
    }

    /// All that stands for it at Cloudflare: what carries a mark, or where nothing does, what is called as it is.
    pub fn standing(&self, world: &World) -> Vec<Value> {
        if self.is_marked() {
            return world.cloudflare.marked(self.collection);
        }
        let name = (self.twin)(world)["name"].clone();
        world.cloudflare.all(self.collection).into_iter().filter(|one| one["name"] == name).collect()
    }

    fn row(&self) -> Row {
        let mut rows = table().into_iter().filter(|row| row.kind == self.kind);
        rows.next().expect("a sample is of a kind of the table")
    }
}

/// All samples that own something.
pub fn owned() -> Vec<Owned> {
    vec![ADDRESS, MAIL, SERVICE, TEXT, NETWORK, ROUTE, ROUTE_6, GROUP]
}

/// The samples that crash points are tried with: one of each shape, all of them in a soak (`PORTOLAN_SOAK`).
pub fn crashed() -> Vec<Owned> {
    if std::env::var_os("PORTOLAN_SOAK").is_some() { owned() } else { one_of_each_shape(owned()) }
}

fn one_of_each_shape(all: Vec<Owned>) -> Vec<Owned> {
    let mut shapes: Vec<SampleShape> = Vec::new();
    let is_new = |sample: &Owned| {
        let new = !shapes.contains(&sample.shape);
        shapes.extend(new.then_some(sample.shape));
        new
    };
    all.into_iter().filter(is_new).collect()
}

const ADDRESS: Owned = Owned {
    label: "DNSRecord (A)",
    shape: SampleShape::Batched,
    kind: "DNSRecord",
    collection: "dns_records",
    manifest: || m::with(m::record("www", "192.0.2.1"), "proxied", json!(true)),
    change: |spec| spec["content"] = json!("192.0.2.2"),
    replace: Some(|spec| spec["name"] = json!(format!("web.{ZONE}"))),
    drift: |there| there["content"] = json!("203.0.113.9"),
    twin: |_| json!({ "type": "A", "name": format!("www.{ZONE}"), "content": "192.0.2.1", "proxied": true, "ttl": 1 }),
    other_twin: Some(|_| json!({ "type": "A", "name": format!("www.{ZONE}"), "content": "203.0.113.1", "ttl": 1 })),
};

const MAIL: Owned = Owned {
    label: "DNSRecord (MX)",
    manifest: || {
        m::object(
            "DNSRecord",
            "mail",
            json!({
                "name": ZONE, "type": "MX", "content": "mx.example.net", "priority": 0, "ttl": 300, "cloudflare": {},
            }),
        )
    },
    change: |spec| spec["priority"] = json!(20),
    replace: Some(|spec| spec["name"] = json!(format!("lists.{ZONE}"))),
    drift: |there| there["priority"] = json!(7),
    twin: |_| json!({ "type": "MX", "name": ZONE, "content": "mx.example.net", "priority": 0, "ttl": 300 }),
    other_twin: None,
    ..ADDRESS
};

const SERVICE: Owned = Owned {
    label: "DNSRecord (SRV)",
    manifest: || {
        m::object(
            "DNSRecord",
            "sip",
            json!({
                "name": format!("_sip._tcp.{ZONE}"), "type": "SRV", "ttl": 300, "priority": 0, "cloudflare": {},
                "data": { "weight": 0, "port": 0, "target": "sip.example.net" },
            }),
        )
    },
    change: |spec| spec["data"]["port"] = json!(5060),
    replace: None,
    drift: |there| there["data"]["port"] = json!(99),
    twin: |_| {
        json!({
            "type": "SRV", "name": format!("_sip._tcp.{ZONE}"), "ttl": 300,
            "data": { "priority": 0, "weight": 0, "port": 0, "target": "sip.example.net" },
        })
    },
    other_twin: None,
    ..ADDRESS
};

const TEXT: Owned = Owned {
    label: "DNSRecord (TXT)",
    manifest: || {
        let content = format!("v=spf1 \"quoted\" {}", "x".repeat(300));
        m::object(
            "DNSRecord",
            "text",
            json!({
                "name": format!("text.{ZONE}"), "type": "TXT", "content": content, "comment": "ours", "cloudflare": {},
            }),
        )
    },
    change: |spec| spec["comment"] = json!("still ours"),
    replace: None,
    drift: |there| there["comment"] = json!("theirs"),
    twin: |_| {
        let content = format!("v=spf1 \"quoted\" {}", "x".repeat(300));
        json!({ "type": "TXT", "name": format!("text.{ZONE}"), "content": content, "ttl": 1 })
    },
    other_twin: None,
    ..ADDRESS
};

const NETWORK: Owned = Owned {
    label: "VirtualNetwork",
    shape: SampleShape::InPlace,
    kind: "VirtualNetwork",
    collection: "virtual_networks",
    manifest: || m::network("corp"),
    change: |spec| spec["comment"] = json!("all offices"),
    replace: None,
    drift: |there| there["name"] = json!("renamed"),
    twin: |_| json!({ "name": "corp", "comment": "theirs" }),
    other_twin: None,
};

const ROUTE: Owned = Owned {
    label: "NetworkRoute (IPv4)",
    shape: SampleShape::Replaced,
    kind: "NetworkRoute",
    collection: "routes",
    manifest: || m::route("office", "10.1.0.0/16"),
    change: |spec| spec["comment"] = json!("all offices"),
    replace: Some(|spec| spec["network"] = json!("10.2.0.0/16")),
    drift: |there| there["comment"] = json!("theirs"),
    twin: |world| json!({ "network": "10.1.0.0/16", "tunnel_id": tunnel_id(world, TUNNEL), "comment": "theirs" }),
    other_twin: Some(|world| json!({ "network": "10.1.0.0/16", "tunnel_id": another_tunnel(world) })),
};

const ROUTE_6: Owned = Owned {
    label: "NetworkRoute (IPv6)",
    manifest: || m::route("office6", "fd00:1::/48"),
    replace: Some(|spec| spec["network"] = json!("fd00:2::/48")),
    twin: |world| json!({ "network": "fd00:1::/48", "tunnel_id": tunnel_id(world, TUNNEL) }),
    other_twin: Some(|world| json!({ "network": "fd00:1::/48", "tunnel_id": another_tunnel(world) })),
    ..ROUTE
};

const GROUP: Owned = Owned {
    label: "AccessGroup",
    shape: SampleShape::Unmarked,
    kind: "AccessGroup",
    collection: "access_groups",
    manifest: || {
        let include =
            json!([{ "emailDomain": { "domain": "example.com" } }, { "country": { "country": ["CH", "NZ"] } }]);
        m::cluster_object("AccessGroup", "staff", json!({ "include": include, "cloudflare": {} }))
    },
    change: |spec| spec["exclude"] = json!([{ "email": { "email": "guest@example.com" } }]),
    replace: None,
    drift: |there| there["include"] = json!([{ "everyone": {} }]),
    twin: |_| {
        let countries = ["NZ", "CH"].map(|code| json!({ "geo": { "country_code": code } }));
        let domain = json!({ "email_domain": { "domain": "example.com" } });
        json!({ "name": "staff", "include": [countries[0], domain, countries[1]] })
    },
    other_twin: Some(|_| json!({ "name": "staff", "include": [{ "everyone": {} }] })),
};

/// The id of a tunnel at Cloudflare.
pub fn tunnel_id(world: &World, name: &str) -> String {
    let tunnel = world.cloudflare.one("cfd_tunnel", |tunnel| tunnel["name"] == name);
    tunnel["id"].as_str().unwrap_or_default().to_owned()
}

fn another_tunnel(world: &World) -> String {
    let tunnels = world.cloudflare.all("cfd_tunnel");
    if !tunnels.iter().any(|tunnel| tunnel["name"] == "theirs") {
        world.cloudflare.plant("cfd_tunnel", &json!({ "name": "theirs", "config_src": "cloudflare" }));
    }
    tunnel_id(world, "theirs")
}

/// An object that changes what there is one of in an account.
#[derive(Clone, Copy)]
pub struct Single {
    /// Its kind.
    pub kind: &'static str,
    /// The simulator's name of the documents.
    pub document: &'static str,
    /// The manifest.
    pub manifest: fn() -> Value,
    /// How many groups of settings it mentions.
    pub groups: usize,
    /// The groups that it mentions, also after the change.
    pub mentioned: &'static [&'static str],
    /// A change of the spec.
    pub change: fn(&mut Value),
    /// A change of what it mentions that somebody makes in the dashboard.
    pub drift: fn(&mut Value),
    /// One of what it does not mention.
    pub aside: fn(&mut Value),
}

impl Single {
    /// `Kind/name`.
    pub fn id(&self) -> String {
        m::id(&(self.manifest)())
    }

    /// The manifest after the change.
    pub fn changed(&self) -> Value {
        let mut manifest = (self.manifest)();
        (self.change)(&mut manifest["spec"]);
        manifest
    }

    /// The expression that the paths of its requests fit.
    pub fn path(&self) -> String {
        let mut rows = table().into_iter().filter(|row| row.kind == self.kind);
        format!("/{}", rows.next().expect("a sample is of a kind of the table").remote.path)
    }
}

/// All samples of which there is one.
pub fn single() -> Vec<Single> {
    vec![Single {
        kind: "GatewayConfiguration",
        document: "gateway_configuration",
        manifest: || {
            let settings =
                json!({ "blockPage": { "enabled": true, "name": "Ours" }, "tlsDecrypt": { "enabled": true } });
            m::cluster_object("GatewayConfiguration", "gateway", json!({ "settings": settings, "cloudflare": {} }))
        },
        groups: 2,
        mentioned: &["block_page", "tls_decrypt"],
        change: |spec| spec["settings"]["blockPage"]["footerText"] = json!("bye"),
        drift: |there| there["settings"]["tls_decrypt"]["enabled"] = json!(false),
        aside: |there| {
            there["settings"]["block_page"]["header_text"] = json!("theirs");
            there["settings"]["activity_log"]["enabled"] = json!(false);
        },
    }]
}

/// An object that only looks at something.
#[derive(Clone, Copy)]
pub struct Observed {
    /// Its kind.
    pub kind: &'static str,
    /// The manifest.
    pub manifest: fn() -> Value,
    /// What `Ready` says when all is well.
    pub ready: &'static str,
    /// Makes what it looks at.
    pub appear: fn(&World),
}

impl Observed {
    /// `Kind/namespace/name`.
    pub fn id(&self) -> String {
        m::id(&(self.manifest)())
    }
}

const OTHER_ACCOUNT: &str = "b1b1b1b1b1b1b1b1b1b1b1b1b1b1b1b1";

/// All samples that only look.
pub fn observed() -> Vec<Observed> {
    vec![
        Observed {
            kind: "CloudflareCredentials",
            manifest: || m::with(m::credentials("second", "cloudflare-api"), "accountId", json!(OTHER_ACCOUNT)),
            ready: "True/Validated",
            appear: |world| world.cloudflare.simulator.add_account_with_id(OTHER_ACCOUNT, "Second"),
        },
        Observed {
            kind: "CloudflareDomain",
            manifest: || m::domain("example.org"),
            ready: "True/Verified",
            appear: |world| {
                let added = world.cloudflare.simulator.add_zone("example.org", ACCOUNT, "free");
                added.expect("the zone is new");
            },
        },
        Observed {
            kind: "ClusterTunnel",
            manifest: || {
                m::cluster_object(
                    "ClusterTunnel",
                    "wan",
                    json!({ "existingTunnel": { "name": "wan" }, "cloudflare": {} }),
                )
            },
            ready: "True/Reconciled",
            appear: plant_tunnel,
        },
        Observed {
            kind: "Tunnel",
            manifest: || m::object("Tunnel", "wan", json!({ "existingTunnel": { "name": "wan" }, "cloudflare": {} })),
            ready: "True/Reconciled",
            appear: plant_tunnel,
        },
    ]
}

fn plant_tunnel(world: &World) {
    world.cloudflare.plant("cfd_tunnel", &json!({ "name": "wan", "config_src": "cloudflare" }));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_samples_of_one_shape_crash_once() {
        let labels: Vec<&str> = one_of_each_shape(owned()).iter().map(|sample| sample.label).collect();

        assert_eq!(labels, ["DNSRecord (A)", "VirtualNetwork", "NetworkRoute (IPv4)", "AccessGroup"]);
    }
}
