//! A tenant's Secret → a client that can only read, and what is wrong where there is none.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use portolan_cloudflare_api::objects::Tunnel;
use portolan_cloudflare_api::{
    ApiError, Credential, Entry, ErrorClass, Freshness, Identity, Lane, Reader, Readers, collections,
};
use portolan_core::{ObjectKey, Problem, ZoneName, reasons as core};
use portolan_engine::Secrets;
use portolan_exposure::{TunnelState, UNUSABLE_KEPT, unusable};
use portolan_zerotrust_model::{CloudflareZeroTrustTenant as Tenant, SecretRef, reasons};
use secrecy::ExposeSecret as _;
use tokio::time::Instant;

use crate::zones;

/// How old a list may be that a tunnel is said to be missing from.
const RECENT: Duration = Duration::from_secs(2);
/// How soon a tunnel that is missing is looked for again.
const LOOK_AGAIN: Duration = Duration::from_secs(60);

/// How long a refused credential is not tried again, unless it changes.
const REFUSED: Duration = Duration::from_secs(290);

type ZoneNames = BTreeMap<(Identity, String), (Instant, Option<ZoneName>)>;

/// Reads credentials.
#[derive(Clone)]
pub(crate) struct CredentialReader {
    readers: Readers,
    secrets: Secrets,
    /// Credentials that Cloudflare refused, and when.
    refused: Arc<Mutex<BTreeMap<Identity, (Instant, Problem)>>>,
    /// Names of zones that were asked for one by one, and when; none where that is not allowed.
    zones: Arc<Mutex<ZoneNames>>,
    /// Tunnels that were found usable, where they cannot be listed.
    checked: Arc<Mutex<BTreeSet<(Identity, String, String)>>>,
}

impl CredentialReader {
    pub(crate) fn new(readers: Readers, secrets: Secrets) -> Self {
        Self { readers, secrets, refused: Arc::default(), zones: Arc::default(), checked: Arc::default() }
    }

    /// The reading client of a credential.
    pub(crate) async fn reader(&self, credential: &SecretRef) -> Result<Reader, Problem> {
        portolan_core::waypoint!();
        let (namespace, name, key) = (&credential.namespace, &credential.name, credential.key());
        // A name that is a path would lead to another namespace's Secret.
        let found = if name.contains('/') { None } else { self.secrets.find(namespace, name).await? };
        let Some(values) = found else {
            let message =
                format!("Secret not found: {namespace}/{name}; create it with the API token under the key {key}");
            return Err(Problem::waiting(reasons::CREDENTIAL_NOT_FOUND, message));
        };
        let Some(token) = values.get(key) else {
            let message =
                format!("Secret {namespace}/{name} has no value under the key {key}; put the API token there");
            return Err(Problem::waiting(reasons::CREDENTIAL_KEY_MISSING, message));
        };
        Ok(self.readers.reader_of(&credential.to_string(), &Credential::token(token.expose_secret())))
    }

    /// A problem where Cloudflare refused the credential a moment ago: it is not asked again for every route.
    pub(crate) fn not_refused(&self, reader: &Reader) -> Result<(), Problem> {
        let refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        match refused.get(reader.identity()) {
            Some((since, problem)) if since.elapsed() < REFUSED => Err(problem.clone()),
            _ => Ok(()),
        }
    }

    /// What a refused read means; that the credential itself was refused is remembered.
    pub(crate) fn problem(&self, reader: &Reader, error: &ApiError, doing: &str) -> Problem {
        let problem = api_problem(error, doing);
        if error.class == ErrorClass::Auth {
            let mut refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
            refused.insert(reader.identity().clone(), (Instant::now(), problem.clone()));
        }
        problem
    }

    /// Whether a tenant's credential and tunnel can be used. The list of tunnels is the one that publishing uses too: at
    /// rest nothing is asked.
    pub(crate) async fn check(&self, tenant: &Tenant) -> Result<(), Problem> {
        let reader = self.reader(&tenant.credential()).await?;
        self.not_refused(&reader)?;
        let (account, id) = (&tenant.spec.account_id, &tenant.spec.tunnel_id);
        let known = unusable(&reader, account, id);
        if let Some(Some(state)) = known.within(UNUSABLE_KEPT) {
            return state.check(id).map_err(|problem| problem.with_retry_after(LOOK_AGAIN));
        }
        let tunnels = reader.records(&collections::TUNNELS, account);
        for age in [Freshness::Any, Freshness::Within(RECENT)] {
            match tunnels.refresh(Lane::Change, age).await {
                Ok(()) => {}
                Err(error) if matches!(error.class, ErrorClass::Auth | ErrorClass::NotFound) => {
                    return self.check_one(&reader, account, id).await;
                }
                Err(error) => return Err(self.problem(&reader, &error, "listing the account's tunnels")),
            }
            let found = tunnels.with(|snapshot| snapshot.get(id).map(|entry| TunnelState::of(&entry.item)));
            if found == Some(TunnelState::Usable) {
                return Ok(());
            }
            if age != Freshness::Any {
                // One that a list does not show yet may be there all the same: publishing looks at the tunnel itself.
                if found.is_some() {
                    known.note(found);
                }
                let state = found.unwrap_or(TunnelState::Missing);
                return state.check(id).map_err(|problem| problem.with_retry_after(LOOK_AGAIN));
            }
        }
        Ok(())
    }

    /// A token may be allowed to see a tunnel and not the list. What was found stays known.
    async fn check_one(&self, reader: &Reader, account: &str, id: &str) -> Result<(), Problem> {
        let key = (reader.identity().clone(), account.to_owned(), id.to_owned());
        if self.checked.lock().unwrap_or_else(PoisonError::into_inner).contains(&key) {
            return Ok(());
        }
        let state = match reader.get(Lane::Change, &collections::TUNNELS.get(account, id)).await {
            Ok(found) => {
                Entry::<Tunnel>::read(found).map_or(TunnelState::Missing, |entry| TunnelState::of(&entry.item))
            }
            Err(error) if error.class == ErrorClass::NotFound => TunnelState::Missing,
            Err(error) => return Err(self.problem(reader, &error, &format!("reading tunnel {id}"))),
        };
        if state != TunnelState::Usable {
            unusable(reader, account, id).note(Some(state));
        }
        state.check(id).map_err(|problem| problem.with_retry_after(LOOK_AGAIN))?;
        self.checked.lock().unwrap_or_else(PoisonError::into_inner).insert(key);
        Ok(())
    }

    /// The name of one zone; none where the credential may not read it. What was found stays known for a while.
    pub(crate) async fn zone(&self, reader: &Reader, id: &str) -> Result<Option<ZoneName>, Problem> {
        let key = (reader.identity().clone(), id.to_owned());
        let known = self.zones.lock().unwrap_or_else(PoisonError::into_inner).get(&key).cloned();
        if let Some((_, name)) = known.filter(|(since, _)| since.elapsed() < zones::FOUND) {
            return Ok(name);
        }
        let name = match reader.get(Lane::Change, &collections::ZONES.get("", id)).await {
            Ok(found) => found["name"].as_str().and_then(|name| ZoneName::parse(name).ok()),
            Err(error) if error.class == ErrorClass::Auth => None,
            Err(error) if error.class == ErrorClass::NotFound => {
                let message = format!("the tenant's zoneId {id} is no zone at Cloudflare: change it, or take it away");
                return Err(Problem::waiting(reasons::ZONE_NOT_FOUND, message).with_retry_after(LOOK_AGAIN));
            }
            Err(error) => return Err(self.problem(reader, &error, &format!("reading zone {id}"))),
        };
        let mut zones = self.zones.lock().unwrap_or_else(PoisonError::into_inner);
        zones.insert(key, (Instant::now(), name.clone()));
        Ok(name)
    }

    /// A Secret changed or went.
    pub(crate) fn forget(&self, secret: &ObjectKey) {
        self.secrets.forget(secret);
        self.refused.lock().unwrap_or_else(PoisonError::into_inner).clear();
        self.zones.lock().unwrap_or_else(PoisonError::into_inner).clear();
        self.checked.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
}

/// What a refused read means, in this job's words.
fn api_problem(error: &ApiError, doing: &str) -> Problem {
    let message = format!("{doing}: {error}");
    match error.class {
        ErrorClass::Auth => Problem::denied(reasons::CREDENTIAL_INVALID, message),
        ErrorClass::RateLimit => {
            let problem = Problem::transient(core::RATE_LIMITED, format!("Rate limit exceeded: {message}"));
            match error.retry_after {
                Some(pause) => problem.with_retry_after(pause),
                None => problem,
            }
        }
        ErrorClass::NotFound
        | ErrorClass::Conflict
        | ErrorClass::Validation
        | ErrorClass::Quota
        | ErrorClass::Transient
        | ErrorClass::Unknown => Problem::transient(reasons::CLOUDFLARE_API_ERROR, message),
    }
}
