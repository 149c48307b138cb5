//! The simulator as its owner sees it: what clients of the API cannot do.

use std::{
    io,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use serde_json::{Value, json};

use crate::{
    Fault, Grant, Options, Quotas, RecordedRequest,
    account::ACCOUNTS,
    crud,
    record::Log,
    state::{State, Who},
    store::id_of,
    table::{Collection, CollectionAction},
    tunnel,
    zone::{ZONES, ZonePlan},
};

/// Who changes things behind the API's back, in audit entries.
const SOMEBODY: Who<'static> = Who { email: "somebody@example.com", interface: "UI" };

/// A Cloudflare API of one's own. Clones are the same simulator.
#[derive(Clone, Debug)]
pub struct Simulator(Arc<Mutex<State>>);

impl Simulator {
    /// An empty simulator. If its recording cannot be opened, an error is logged and nothing is recorded;
    /// [`Simulator::open`] fails instead.
    pub fn new(options: Options) -> Self {
        Self::open(options.clone()).unwrap_or_else(|error| {
            tracing::error!(%error, "Cannot record requests");
            Self(Arc::new(Mutex::new(State::new(options, Log::default()))))
        })
    }

    /// An empty simulator that records where the options say.
    pub fn open(options: Options) -> io::Result<Self> {
        let log = match &options.record {
            Some(path) => Log::to_file(path)?,
            None => Log::default(),
        };
        Ok(Self(Arc::new(Mutex::new(State::new(options, log)))))
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn latency(&self) -> Duration {
        self.lock().options.latency
    }

    /// Changes how long answers take from now on.
    pub fn set_latency(&self, latency: Duration) {
        self.lock().options.latency = latency;
    }

    /// Changes the limit of requests per user from now on; windows begin anew.
    pub fn set_rate_limit(&self, limit: Option<(u32, Duration)>) {
        let mut state = self.lock();
        state.options.rate_limit = limit;
        state.limits.clear();
    }

    /// Changes how many Access objects an account may have from now on.
    pub fn set_quotas(&self, quotas: Quotas) {
        self.lock().options.quotas = quotas;
    }

    /// How long the listings of a collection lag behind writes from now on. Objects asked for by id are always as they are.
    pub fn set_lag(&self, collection: &str, lag: Duration) {
        if let Ok(row) = find(collection) {
            self.lock().lag.set(row.name, lag);
        }
    }

    /// Takes an account's Zero Trust organisation away. Every account begins with one.
    pub fn disable_zero_trust(&self, account: &str) {
        self.lock().without_zero_trust.insert(account.to_owned());
    }

    /// Gives an account a Zero Trust organisation, as its owner does in the dashboard.
    pub fn enable_zero_trust(&self, account: &str) {
        self.lock().without_zero_trust.remove(account);
    }

    /// Adds an account and returns its id.
    pub fn add_account(&self, name: &str) -> String {
        let mut state = self.lock();
        let id = state.ids.next(ACCOUNTS.id);
        add_account(&mut state, &id, name);
        id
    }

    /// Adds an account with a chosen id.
    pub fn add_account_with_id(&self, id: &str, name: &str) {
        add_account(&mut self.lock(), id, name);
    }

    /// Adds an active zone on a plan (`free`, `pro`, `business`, `enterprise`) and returns its id.
    pub fn add_zone(&self, name: &str, account: &str, plan: &str) -> Result<String, String> {
        let mut state = self.lock();
        let id = state.ids.next(ZONES.id);
        add_zone(&mut state, &id, name, account, plan).map(|()| id)
    }

    /// Adds an active zone with a chosen id.
    pub fn add_zone_with_id(&self, id: &str, name: &str, account: &str, plan: &str) -> Result<(), String> {
        add_zone(&mut self.lock(), id, name, account, plan)
    }

    /// Registers a token. From the first one on, others are refused.
    pub fn add_token(&self, token: &str, grant: Grant) {
        self.lock().credentials.add_token(token, grant);
    }

    /// Registers a global key.
    pub fn add_key(&self, email: &str, key: &str, grant: Grant) {
        self.lock().credentials.add_key(email, key, grant);
    }

    /// Takes a token back. Says whether it was registered.
    pub fn revoke_token(&self, token: &str) -> bool {
        self.lock().credentials.revoke(token)
    }

    /// Plans a fault.
    pub fn fault(&self, fault: Fault) {
        self.lock().faults.add(fault);
    }

    /// Forgets all planned faults.
    pub fn clear_faults(&self) {
        self.lock().faults.clear();
    }

    /// Makes an object as somebody else would: by the collection's rules, but neither counted nor recorded.
    /// `collection` is a name or path (`dns_records`, `teamnet/routes`), `scope` the id of its zone or account.
    /// An `id` in the object is kept.
    pub fn put(&self, collection: &str, scope: &str, mut object: Value) -> Result<String, String> {
        let row = find(collection)?;
        let id = object.as_object_mut().and_then(|members| members.remove("id"));
        let id = id.as_ref().and_then(Value::as_str).map(str::to_owned);
        let mut state = self.lock();
        state.remember();
        let made = crud::create(&mut state, row, scope, object, id).map_err(|refusal| describe(&refusal))?;
        state.note(SOMEBODY, row, scope, &[(CollectionAction::Create, &made)]);
        Ok(id_of(&made).to_owned())
    }

    /// Changes an object as nobody could: without any rule. Says whether there is such an object.
    pub fn edit(&self, collection: &str, id: &str, edit: impl FnOnce(&mut Value)) -> bool {
        let mut state = self.lock();
        let Ok(row) = find(collection) else { return false };
        let Some(scope) = state.scope_with(row, id) else { return false };
        let Some(mut value) = state.get(row, &scope, id).cloned() else { return false };
        state.remember();
        edit(&mut value);
        value["id"] = Value::from(id);
        if let Some(modified) = row.times.1 {
            value[modified] = Value::from(state.now());
        }
        state.note(SOMEBODY, row, &scope, &[(CollectionAction::Patch, &value)]);
        state.rows_mut(row, &scope).replace(value).is_some()
    }

    /// Deletes an object as somebody else would, whatever depends on it. Says whether there was one.
    pub fn remove(&self, collection: &str, id: &str) -> bool {
        let mut state = self.lock();
        let Ok(row) = find(collection) else { return false };
        let Some(scope) = state.scope_with(row, id) else { return false };
        let Some(old) = state.get(row, &scope, id).cloned() else { return false };
        state.remember();
        let gone = crud::remove(&mut state, row, &scope, old);
        state.note(SOMEBODY, row, &scope, &[(CollectionAction::Delete, &gone)]);
        true
    }

    /// One object as it is stored.
    pub fn object(&self, collection: &str, id: &str) -> Option<Value> {
        let state = self.lock();
        let row = find(collection).ok()?;
        let scope = state.scope_with(row, id)?;
        state.get(row, &scope, id).cloned()
    }

    /// All objects of a collection in a scope, in the order they were made.
    pub fn objects(&self, collection: &str, scope: &str) -> Vec<Value> {
        let state = self.lock();
        find(collection).map(|row| state.all(row, scope).cloned().collect()).unwrap_or_default()
    }

    /// Connects a client to a tunnel, as `cloudflared` would; returns the client's id.
    pub fn connect(&self, tunnel: &str) -> Option<String> {
        tunnel::connect(&mut self.lock(), tunnel)
    }

    /// All objects, by collection and scope.
    pub fn state(&self) -> Value {
        self.lock().dump()
    }

    /// All requests that are remembered.
    pub fn requests(&self) -> Vec<RecordedRequest> {
        self.lock().log.entries()
    }

    /// How many requests are remembered.
    pub fn request_count(&self) -> usize {
        self.lock().log.len()
    }

    /// All requests since the last call of this.
    pub fn take_requests(&self) -> Vec<RecordedRequest> {
        self.lock().log.take()
    }

    /// Forgets objects, credentials, faults, windows, audit entries and requests. Ids begin anew.
    pub fn reset(&self) {
        let mut state = self.lock();
        let (options, mut log) = (state.options.clone(), std::mem::take(&mut state.log));
        log.take();
        *state = State::new(options, log);
    }
}

fn find(collection: &str) -> Result<&'static Collection, String> {
    Collection::find(collection).ok_or_else(|| format!("there is no collection {collection}"))
}

pub(crate) fn describe(refusal: &crate::reply::Refusal) -> String {
    let failures = refusal.failures.iter().map(|failure| format!("{} ({})", failure.message, failure.code));
    failures.collect::<Vec<_>>().join("; ")
}

pub(crate) fn add_account(state: &mut State, id: &str, name: &str) {
    let made = crud::create(state, &ACCOUNTS, "", json!({"name": name}), Some(id.to_owned()));
    debug_assert!(made.is_ok(), "accounts have no rules that could refuse one");
}

pub(crate) fn add_zone(state: &mut State, id: &str, name: &str, account: &str, plan: &str) -> Result<(), String> {
    let plan = ZonePlan::find(plan).ok_or_else(|| format!("there is no plan {plan}"))?;
    let body = json!({"name": name, "account": {"id": account}});
    let made = crud::create(state, &ZONES, "", body, Some(id.to_owned()));
    let mut zone = made.map_err(|refusal| describe(&refusal))?;
    (zone["status"], zone["activated_on"]) = (json!("active"), zone["created_on"].clone());
    zone["plan"] = plan.to_json();
    state.rows_mut(&ZONES, "").replace(zone);
    Ok(())
}
