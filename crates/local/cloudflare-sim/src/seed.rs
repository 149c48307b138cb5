//! A JSON document that says what is there at the start.

use serde::Deserialize;
use serde_json::Value;

use crate::{
    Grant, Level, Simulator,
    simulator::{add_account, add_zone},
};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Seed {
    #[serde(default)]
    accounts: Vec<Account>,
    #[serde(default)]
    zones: Vec<Zone>,
    #[serde(default)]
    tokens: Vec<Token>,
    #[serde(default)]
    keys: Vec<Key>,
    #[serde(default)]
    tunnels: Vec<Scoped>,
    #[serde(default)]
    virtual_networks: Vec<Scoped>,
    #[serde(default)]
    routes: Vec<Scoped>,
    #[serde(default)]
    identity_providers: Vec<Scoped>,
    #[serde(default)]
    service_tokens: Vec<Scoped>,
    #[serde(default)]
    access_groups: Vec<Scoped>,
    #[serde(default)]
    access_policies: Vec<Scoped>,
    #[serde(default)]
    access_apps: Vec<Scoped>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Account {
    id: String,
    name: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Zone {
    id: String,
    name: String,
    account: String,
    #[serde(default = "free")]
    plan: String,
    #[serde(default)]
    records: Vec<Value>,
}

fn free() -> String {
    "free".to_owned()
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Token {
    #[serde(rename = "token")]
    secret: String,
    #[serde(default)]
    email: Option<String>,
    #[serde(default)]
    accounts: Vec<String>,
    #[serde(default)]
    zones: Vec<String>,
    /// Group to `read` or `edit`; all of them when empty.
    #[serde(default)]
    permissions: std::collections::BTreeMap<String, Permission>,
}

/// A global key.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Key {
    email: String,
    #[serde(rename = "key")]
    secret: String,
}

impl std::fmt::Debug for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Key").field("email", &self.email).finish_non_exhaustive()
    }
}

impl std::fmt::Debug for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Token").field("email", &self.email).finish_non_exhaustive()
    }
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Permission {
    Read,
    Edit,
}

/// An object beside the account it is in.
#[derive(Debug, Deserialize)]
struct Scoped {
    account: String,
    #[serde(flatten)]
    object: Value,
}

impl Token {
    fn grant(&self) -> Grant {
        let grant = self.accounts.iter().fold(Grant::all(), |grant, id| grant.account(id));
        let grant = self.zones.iter().fold(grant, |grant, id| grant.zone(id));
        let grant = self.permissions.iter().fold(grant, |grant, (group, permission)| match permission {
            Permission::Read => grant.only(group, Level::Read),
            Permission::Edit => grant.only(group, Level::Edit),
        });
        match &self.email {
            Some(email) => grant.email(email),
            None => grant,
        }
    }
}

impl Simulator {
    /// Adds what a document lists: `accounts`, `zones` with `records`, `tokens`, `keys`, `tunnels`, `virtual_networks`, `routes`,
    /// `identity_providers`, `service_tokens`, `access_groups`, `access_policies`, `access_apps`.
    pub fn seed(&self, seed: Value) -> Result<(), String> {
        let seed: Seed = serde_json::from_value(seed).map_err(|error| format!("the seed is not valid: {error}"))?;
        for account in &seed.accounts {
            add_account(&mut self.lock(), &account.id, &account.name);
        }
        for zone in seed.zones {
            add_zone(&mut self.lock(), &zone.id, &zone.name, &zone.account, &zone.plan)
                .map_err(|error| format!("zone {}: {error}", zone.name))?;
            for record in zone.records {
                self.put("dns_records", &zone.id, record)
                    .map_err(|error| format!("a record of {}: {error}", zone.name))?;
            }
        }
        for token in &seed.tokens {
            self.add_token(&token.secret, token.grant());
        }
        for key in &seed.keys {
            self.add_key(&key.email, &key.secret, Grant::all());
        }
        // What others refer to comes first.
        let scoped = [
            ("cfd_tunnel", seed.tunnels),
            ("virtual_networks", seed.virtual_networks),
            ("routes", seed.routes),
            ("identity_providers", seed.identity_providers),
            ("service_tokens", seed.service_tokens),
            ("access_groups", seed.access_groups),
            ("access_policies", seed.access_policies),
            ("access_apps", seed.access_apps),
        ];
        for (collection, objects) in scoped {
            for Scoped { account, object } in objects {
                self.put(collection, &account, object).map_err(|error| format!("{collection}: {error}"))?;
            }
        }
        Ok(())
    }

    /// Adds an account and two zones to try things with: `Example` with `example.com` (enterprise) and `example.org` (free).
    pub fn seed_example(&self) {
        let seed = serde_json::json!({
            "accounts": [{"id": "0123456789abcdef0123456789abcdef", "name": "Example"}],
            "zones": [
                {"id": "00000000000000000000000000000001", "name": "example.com", "plan": "enterprise",
                 "account": "0123456789abcdef0123456789abcdef"},
                {"id": "00000000000000000000000000000002", "name": "example.org", "plan": "free",
                 "account": "0123456789abcdef0123456789abcdef"},
            ],
        });
        let seeded = self.seed(seed);
        debug_assert!(seeded.is_ok(), "{seeded:?}");
    }
}
