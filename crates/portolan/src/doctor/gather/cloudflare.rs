//! A token → what Cloudflare says to it: whether it is known, what it may, and what it sees.
//!
//! One request follows the other, and the first one that gets no answer is the last: a network that is down is told once.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use portolan_cloudflare_api::{
    ApiError, Client, Clients, Collection, Credential, Effect, ErrorClass, Lane, Request, RetryPolicy, Settings,
    Transport, collections,
};
use portolan_core::ZoneName;
use portolan_zerotrust::model::zone::{self, Zone};
use serde_json::Value;

use super::wire::OverheardTransport;
use crate::doctor::facts::{
    Api, Certificate, Edits, NameFacts, Observation, Probed, TokenFacts, TunnelFacts, is_spent,
};
use crate::doctor::permission::{PERMISSIONS, Permission, PermissionScope, ProbeAnswer};

/// Longest wait for an answer, with what the budget holds back.
const PATIENCE: Duration = Duration::from_secs(20);
/// The lane that is not spaced: a report is waited for, and is a score of requests.
const LANE: Lane = Lane::Protect;
/// On how many zones permissions are tried.
const MOST_ZONES: usize = 10;

/// Whether permissions to change are tried, too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WriteProbes {
    /// By deleting what cannot exist.
    Tried,
    /// Nothing but reads is sent.
    LeftOut,
}

/// What is looked for with a token.
#[derive(Clone, Debug, Default)]
pub(crate) struct WantedPermissions {
    pub(crate) account_id: String,
    /// The zone that the tenant names.
    pub(crate) zone_id: Option<String>,
    pub(crate) tunnels: Vec<String>,
    pub(crate) names: Vec<NameFacts>,
}

/// The API as all tokens reach it.
pub(crate) struct Cloudflare {
    clients: Clients,
    wire: Arc<OverheardTransport>,
    writes: WriteProbes,
}

impl Cloudflare {
    /// The API at an address. Nothing is repeated: a refusal is an answer, and silence is told.
    pub(crate) fn at(base_url: &str, transport: Arc<dyn Transport>, writes: WriteProbes) -> Self {
        let settings = Settings {
            base_url: base_url.to_owned(),
            retry: RetryPolicy::NONE,
            read_only: writes == WriteProbes::LeftOut,
            ..Settings::default()
        };
        let wire = Arc::new(OverheardTransport::over(transport));
        let clients = Clients::new(settings, wire.clone(), Arc::new(Timestamp::now));
        Self { clients, wire, writes }
    }

    /// Asks everything that is wanted.
    pub(crate) async fn ask(&self, credential: &Credential, wanted: &WantedPermissions) -> Api {
        let mut line = TokenLine { client: self.clients.client(credential), silent: None };
        let started = Instant::now();
        let token = line.verify(&wanted.account_id).await;
        let mut api = Api {
            latency: started.elapsed(),
            token,
            probes: Vec::new(),
            zones: Ok(Vec::new()),
            tunnels: Vec::new(),
            names: wanted.names.clone(),
            certificates: BTreeMap::new(),
            budget: line.client.budget(),
            ahead: None,
            now: Timestamp::now(),
        };
        if api.token.is_active() {
            self.look(&mut line, wanted, &mut api).await;
        }
        api.budget = line.client.budget();
        api.ahead = self.wire.ahead();
        api
    }

    async fn look(&self, line: &mut TokenLine, wanted: &WantedPermissions, api: &mut Api) {
        let listed = line.list(&collections::ZONES, "").await;
        api.zones = read_zones(&listed);
        let zones = to_try(wanted, api.zones.as_deref().unwrap_or_default());
        for permission in &PERMISSIONS {
            match permission.scope {
                PermissionScope::Account => {
                    api.probes.push(self.probe(line, permission, &wanted.account_id, None).await);
                }
                PermissionScope::Zone if zones.is_empty() => api.probes.push(untried(permission)),
                PermissionScope::Zone => {
                    for (id, name) in &zones {
                        api.probes.push(self.probe(line, permission, id, Some(name)).await);
                    }
                }
            }
        }
        for id in &wanted.tunnels {
            api.tunnels.push((id.clone(), line.tunnel(&wanted.account_id, id).await));
        }
        for (id, _) in &zones {
            api.certificates.insert(id.clone(), line.certificates(id).await);
        }
    }

    async fn probe(
        &self,
        line: &mut TokenLine,
        permission: &'static Permission,
        scope_id: &str,
        zone: Option<&String>,
    ) -> Probed {
        let seen = line.send(&permission.read(scope_id)).await;
        let read = ProbeAnswer::of(&seen);
        let change = permission.write(scope_id, seen.as_ref().ok());
        let edits = if change.is_some() { Edits::Yes } else { Edits::No };
        let write = match change.filter(|_| self.writes == WriteProbes::Tried && read == ProbeAnswer::Granted) {
            Some(request) => Some(ProbeAnswer::of(&line.send(&request).await)),
            None => None,
        };
        Probed { permission, zone: zone.cloned(), read: Some(read), write, edits }
    }
}

fn untried(permission: &'static Permission) -> Probed {
    Probed { permission, zone: None, read: None, write: None, edits: Edits::Yes }
}

/// The zones that permissions are tried on, by id and name: those of the names, the tenant's, else any one.
fn to_try(wanted: &WantedPermissions, zones: &[Zone]) -> Vec<(String, String)> {
    let of_names = wanted.names.iter().filter_map(|name| zone::choose(&name.hostname, &wanted.account_id, zones));
    let mut tried: Vec<(String, String)> = Vec::new();
    for zone in of_names {
        let one = (zone.id.clone(), zone.name.to_string());
        if !tried.contains(&one) {
            tried.push(one);
        }
    }
    if let Some(id) = wanted.zone_id.as_ref().filter(|id| tried.iter().all(|(known, _)| known != *id)) {
        let name = zones.iter().find(|zone| zone.id == **id).map_or_else(|| id.clone(), |zone| zone.name.to_string());
        tried.push((id.clone(), name));
    }
    if tried.is_empty() {
        let ours = |zone: &&Zone| zone.account_id.as_deref().is_none_or(|id| id == wanted.account_id);
        tried.extend(zones.iter().find(ours).map(|zone| (zone.id.clone(), zone.name.to_string())));
    }
    tried.truncate(MOST_ZONES);
    tried
}

fn read_zones(listed: &Result<Vec<Value>, ApiError>) -> Observation<Vec<Zone>> {
    let zones = listed.as_ref().map_err(ToString::to_string)?;
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let read = |zone: &Value| {
        Some(Zone {
            id: text(&zone["id"])?,
            name: ZoneName::parse(zone["name"].as_str()?).ok()?,
            account_id: text(&zone["account"]["id"]),
            active: zone["status"] == "active",
        })
    };
    Ok(zones.iter().filter_map(read).collect())
}

/// One token's line.
struct TokenLine {
    client: Client,
    /// Why nothing more is asked.
    silent: Option<ApiError>,
}

impl TokenLine {
    /// A token of a user first, then one of the account.
    async fn verify(&mut self, account_id: &str) -> TokenFacts {
        let of_user = self.send(&Request::get("/user/tokens/verify", &[])).await;
        let refused = match of_user {
            Ok(token) => return known(&token),
            Err(error) if error.class == ErrorClass::Auth => error,
            Err(error) => return TokenFacts::Unreached(error.to_string()),
        };
        match self.send(&Request::get("/accounts/{account_id}/tokens/verify", &[account_id])).await {
            Ok(token) => known(&token),
            Err(error) if matches!(error.class, ErrorClass::Transient | ErrorClass::RateLimit) => {
                TokenFacts::Unreached(error.to_string())
            }
            Err(_) => TokenFacts::Refused(refused.to_string()),
        }
    }

    async fn tunnel(&mut self, account_id: &str, id: &str) -> Observation<Option<TunnelFacts>> {
        match self.send(&collections::TUNNELS.get(account_id, id)).await {
            Ok(tunnel) => Ok(Some(read_tunnel(&tunnel))),
            Err(error) if error.class == ErrorClass::NotFound => Ok(None),
            Err(error) => Err(error.to_string()),
        }
    }

    async fn certificates(&mut self, zone_id: &str) -> Observation<Vec<Certificate>> {
        let packs = self.list(&collections::CERTIFICATE_PACKS, zone_id).await.map_err(|error| error.to_string())?;
        Ok(packs.iter().map(read_certificate).collect())
    }

    async fn list(&mut self, collection: &Collection, scope_id: &str) -> Result<Vec<Value>, ApiError> {
        let client = self.client.clone();
        self.patiently(client.list_all(LANE, collection, scope_id)).await
    }

    async fn send(&mut self, request: &Request) -> Result<Value, ApiError> {
        let client = self.client.clone();
        self.patiently(client.send(LANE, request)).await
    }

    async fn patiently<T>(&mut self, answer: impl Future<Output = Result<T, ApiError>>) -> Result<T, ApiError> {
        if let Some(error) = &self.silent {
            return Err(error.clone());
        }
        let late = || not_asked(format!("no answer for {} s", PATIENCE.as_secs()));
        let answer = tokio::time::timeout(PATIENCE, answer).await.unwrap_or_else(|_| Err(late()));
        self.silent = match &answer {
            Err(error) if error.class == ErrorClass::RateLimit || error.status.is_none() => Some(error.clone()),
            _ if is_spent(self.client.budget()) => Some(not_asked("the budget is spent".to_owned())),
            _ => None,
        };
        answer
    }
}

fn not_asked(message: String) -> ApiError {
    ApiError {
        class: ErrorClass::Transient,
        status: None,
        codes: Vec::new(),
        message,
        pointers: Vec::new(),
        retry_after: None,
        effect: Effect::None,
    }
}

fn known(token: &Value) -> TokenFacts {
    let status = token["status"].as_str().unwrap_or("of unknown status").to_owned();
    TokenFacts::Known { status, expires: token["expires_on"].as_str().and_then(|time| time.parse().ok()) }
}

fn read_tunnel(tunnel: &Value) -> TunnelFacts {
    let text = |name: &str| tunnel[name].as_str().unwrap_or_default().to_owned();
    TunnelFacts {
        name: text("name"),
        config_src: tunnel["config_src"].as_str().map(str::to_owned),
        status: text("status"),
        connections: tunnel["connections"].as_array().map_or(0, Vec::len),
        deleted: !tunnel["deleted_at"].is_null(),
    }
}

fn read_certificate(pack: &Value) -> Certificate {
    let text = |name: &str| pack[name].as_str().unwrap_or_default().to_owned();
    let hosts = pack["hosts"].as_array().into_iter().flatten();
    Certificate {
        kind: text("type"),
        status: text("status"),
        hosts: hosts.filter_map(Value::as_str).map(str::to_owned).collect(),
    }
}
