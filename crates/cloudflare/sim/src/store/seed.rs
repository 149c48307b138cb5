//! A JSON document that says what is there at the start.

use serde::Deserialize;
use serde_json::Value;

use crate::{
    Grant, RightLevel, Simulator,
    auth::GROUPS,
    simulator::{add_account, add_zone, describe},
};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Seed {
    #[serde(default)]
    accounts: Vec<SeedAccount>,
    #[serde(default)]
    zones: Vec<SeedZone>,
    #[serde(default)]
    tokens: Vec<SeedToken>,
    #[serde(default)]
    keys: Vec<SeedKey>,
    #[serde(default)]
    tunnels: Vec<SeedTunnel>,
    #[serde(default)]
    virtual_networks: Vec<Scoped>,
    #[serde(default)]
    routes: Vec<Scoped>,
    #[serde(default)]
    identity_providers: Vec<Scoped>,
    #[serde(default)]
    service_tokens: Vec<ServiceToken>,
    #[serde(default)]
    access_tags: Vec<Scoped>,
    #[serde(default)]
    gateway_lists: Vec<Scoped>,
    #[serde(default)]
    access_groups: Vec<Scoped>,
    #[serde(default)]
    access_policies: Vec<Scoped>,
    #[serde(default)]
    access_apps: Vec<Scoped>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct SeedAccount {
    id: String,
    name: String,
    /// Whether it has a Zero Trust organisation.
    #[serde(default = "yes")]
    zero_trust: bool,
}

fn yes() -> bool {
    true
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct SeedZone {
    id: String,
    name: String,
    account: String,
    #[serde(default = "free")]
    plan: String,
    #[serde(default)]
    records: Vec<Value>,
    /// Certificates beside the universal one.
    #[serde(default)]
    certificate_packs: Vec<Value>,
}

fn free() -> String {
    "free".to_owned()
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SeedToken {
    #[serde(rename = "token")]
    secret: String,
    /// The user it belongs to. All tokens and keys of a user share one limit of requests.
    #[serde(default)]
    email: Option<String>,
    #[serde(default)]
    accounts: Vec<String>,
    #[serde(default)]
    zones: Vec<String>,
    /// Group to `read` or `edit`; all of them when empty.
    #[serde(default)]
    permissions: std::collections::BTreeMap<String, Permission>,
    #[serde(default)]
    expires_on: Option<jiff::Timestamp>,
    #[serde(default)]
    disabled: bool,
    /// `user` or `account`.
    #[serde(default)]
    owner: TokenOwner,
}

#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
enum TokenOwner {
    #[default]
    User,
    Account,
}

/// A global key.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SeedKey {
    email: String,
    #[serde(rename = "key")]
    secret: String,
}

impl std::fmt::Debug for SeedKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Key").field("email", &self.email).finish_non_exhaustive()
    }
}

impl std::fmt::Debug for SeedToken {
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

/// A tunnel with its configuration.
#[derive(Debug, Deserialize)]
struct SeedTunnel {
    account: String,
    #[serde(default)]
    config: Option<Value>,
    #[serde(flatten)]
    object: Value,
}

/// A service token with the credentials that somebody has.
#[derive(Deserialize)]
struct ServiceToken {
    account: String,
    #[serde(default)]
    client_id: Option<String>,
    #[serde(default)]
    client_secret: Option<String>,
    #[serde(flatten)]
    object: Value,
}

impl std::fmt::Debug for ServiceToken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ServiceToken").field("client_id", &self.client_id).finish_non_exhaustive()
    }
}

impl SeedToken {
    /// A permission that nothing asks for is a slip of the pen, and would quietly leave another one out.
    fn check(&self) -> Result<(), String> {
        match self.permissions.keys().find(|group| !GROUPS.contains(&group.as_str())) {
            None => Ok(()),
            Some(group) => {
                let all = GROUPS.join(", ");
                Err(format!("a token has a permission for {group}, which is no group; there are {all}"))
            }
        }
    }

    fn grant(&self) -> Grant {
        let grant = self.accounts.iter().fold(Grant::all(), |grant, id| grant.account(id));
        let grant = self.zones.iter().fold(grant, |grant, id| grant.zone(id));
        let grant = self.permissions.iter().fold(grant, |grant, (group, permission)| match permission {
            Permission::Read => grant.only(group, RightLevel::Read),
            Permission::Edit => grant.only(group, RightLevel::Edit),
        });
        let grant = if self.disabled { grant.disabled() } else { grant };
        let grant = if self.owner == TokenOwner::Account { grant.of_account() } else { grant };
        let grant = match self.expires_on {
            Some(time) => grant.expires_on(time),
            None => grant,
        };
        match &self.email {
            Some(email) => grant.email(email),
            None => grant,
        }
    }
}

impl Simulator {
    /// Adds what a document lists: `accounts` (`zero_trust: false` for one without Access), `zones` with `records` and `certificate_packs`, `tokens`, `keys`, `tunnels` with
    /// their `config`, `virtual_networks`, `routes`, `identity_providers`, `service_tokens` with their `client_id` and
    /// `client_secret`, `access_tags`, `gateway_lists`, `access_groups`, `access_policies`, `access_apps`.
    pub fn seed(&self, seed: Value) -> Result<(), String> {
        let seed: Seed = serde_json::from_value(seed).map_err(|error| format!("the seed is not valid: {error}"))?;
        for account in &seed.accounts {
            add_account(&mut self.lock(), &account.id, &account.name);
            if !account.zero_trust {
                self.disable_zero_trust(&account.id);
            }
        }
        for zone in seed.zones {
            add_zone(&mut self.lock(), &zone.id, &zone.name, &zone.account, &zone.plan)
                .map_err(|error| format!("zone {}: {error}", zone.name))?;
            for record in zone.records {
                self.put("dns_records", &zone.id, record)
                    .map_err(|error| format!("a record of {}: {error}", zone.name))?;
            }
            for pack in zone.certificate_packs {
                self.put("certificate_packs", &zone.id, pack)
                    .map_err(|error| format!("a certificate pack of {}: {error}", zone.name))?;
            }
        }
        for token in &seed.tokens {
            token.check()?;
            self.add_token(&token.secret, token.grant());
        }
        for key in &seed.keys {
            self.add_key(&key.email, &key.secret, Grant::all());
        }
        // What others refer to comes first.
        for tunnel in seed.tunnels {
            self.seed_tunnel(tunnel)?;
        }
        for token in seed.service_tokens {
            self.seed_service_token(token)?;
        }
        let scoped = [
            ("virtual_networks", seed.virtual_networks),
            ("routes", seed.routes),
            ("identity_providers", seed.identity_providers),
            ("access_tags", seed.access_tags),
            ("gateway_lists", seed.gateway_lists),
            ("access_groups", seed.access_groups),
            ("access_policies", seed.access_policies),
        ];
        for (collection, objects) in scoped {
            for Scoped { account, object } in objects {
                self.put(collection, &account, object).map_err(|error| format!("{collection}: {error}"))?;
            }
        }
        seed.access_apps.into_iter().try_for_each(|app| self.seed_app(app))
    }

    fn seed_tunnel(&self, tunnel: SeedTunnel) -> Result<(), String> {
        let id =
            self.put("cfd_tunnel", &tunnel.account, tunnel.object).map_err(|error| format!("cfd_tunnel: {error}"))?;
        let Some(config) = tunnel.config else { return Ok(()) };
        let written = crate::tunnel::write_configuration(&mut self.lock(), &id, config);
        written.map(drop).map_err(|refusal| format!("the configuration of tunnel {id}: {}", describe(&refusal)))
    }

    fn seed_service_token(&self, token: ServiceToken) -> Result<(), String> {
        let made = self.put("service_tokens", &token.account, token.object);
        let id = made.map_err(|error| format!("service_tokens: {error}"))?;
        if let Some(client_id) = token.client_id {
            self.edit("service_tokens", &id, |token| token["client_id"] = Value::from(client_id));
        }
        if let Some(secret) = token.client_secret {
            crate::access::secret::know_secret(&mut self.lock(), &id, &secret);
        }
        Ok(())
    }

    /// Policies of the application's own keep the ids that the seed gives them.
    fn seed_app(&self, Scoped { account, mut object }: Scoped) -> Result<(), String> {
        let policies = object["policies"].as_array_mut().into_iter().flatten();
        let own = policies.filter(|policy| policy.get("decision").is_some());
        let ids: Vec<Option<Value>> =
            own.map(|policy| policy.as_object_mut().and_then(|members| members.remove("id"))).collect();
        let made = self.put("access_apps", &account, object).map_err(|error| format!("access_apps: {error}"))?;
        self.edit("access_apps", &made, |app| {
            let policies = app["policies"].as_array_mut().into_iter().flatten();
            for (policy, id) in policies.zip(ids).filter_map(|(policy, id)| Some((policy, id?))) {
                policy["id"] = id;
            }
        });
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{EdgeRequest, Options};

    const ACCOUNT: &str = "0123456789abcdef0123456789abcdef";
    const TUNNEL: &str = "11111111-2222-3333-4444-555555555555";

    fn seed() -> Value {
        json!({
            "accounts": [{"id": ACCOUNT, "name": "Example"}],
            "zones": [{"id": "00000000000000000000000000000001", "name": "example.com", "account": ACCOUNT, "plan": "pro", "records": [
                {"type": "CNAME", "name": "api.example.com", "content": format!("{TUNNEL}.cfargotunnel.com"), "ttl": 1, "proxied": true},
            ]}],
            "tunnels": [{"account": ACCOUNT, "id": TUNNEL, "name": "edge", "config_src": "cloudflare", "config": {"ingress": [
                {"hostname": "api.example.com", "service": "http://api:80"}, {"service": "http_status:404"},
            ]}}],
            "service_tokens": [{"account": ACCOUNT, "id": "70000000-0000-4000-8000-000000000001", "name": "api",
                "client_id": "known.access", "client_secret": "known-secret"}],
            "access_apps": [{"account": ACCOUNT, "name": "api", "domain": "api.example.com", "type": "self_hosted", "policies": [
                {"id": "50000000-0000-4000-8000-000000000001", "name": "token", "decision": "non_identity", "precedence": 1,
                 "include": [{"service_token": {"token_id": "70000000-0000-4000-8000-000000000001"}}]},
            ]}],
        })
    }

    #[test]
    fn what_a_seed_says_of_tunnels_tokens_and_policies_stands() {
        let simulator = Simulator::new(Options::default());
        simulator.seed(seed()).unwrap();

        let headers = [("CF-Access-Client-Id", "known.access"), ("CF-Access-Client-Secret", "known-secret")];
        assert!(simulator.decide(&EdgeRequest::get("api.example.com", "/", &headers)).is_served());
        let wrong = [("CF-Access-Client-Id", "known.access"), ("CF-Access-Client-Secret", "another")];
        assert!(!simulator.decide(&EdgeRequest::get("api.example.com", "/", &wrong)).is_served());
        let apps = simulator.objects("access_apps", ACCOUNT);
        assert_eq!(apps[0]["policies"][0]["id"], "50000000-0000-4000-8000-000000000001");
    }

    #[test]
    fn a_configuration_that_could_not_run_is_refused() {
        let mut bad = seed();
        bad["tunnels"][0]["config"]["ingress"][1] = Value::Null;

        let refused = Simulator::new(Options::default()).seed(bad).unwrap_err();

        assert!(refused.contains(TUNNEL), "{refused}");
    }
}
