//! Everything the simulator remembers.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};
use tokio::time::Instant;

use crate::{
    access::secret::Secrets,
    audit::{Audit, AuditEntry},
    auth::RegisteredCredentials,
    fault::Faults,
    ids::Ids,
    lag::{Lag, Scopes},
    limit::UserLimits,
    options::Options,
    record::Log,
    store::{Rows, id_of, text},
    table::{Below, COLLECTIONS, Collection, CollectionAction},
    tunnel::Inside,
    zone,
};

/// Who changes something, and by what means.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Who<'a> {
    pub(crate) email: &'a str,
    pub(crate) interface: &'static str,
}

/// The world behind the API.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) options: Options,
    pub(crate) ids: Ids,
    /// How often a snapshot was restored.
    pub(crate) generation: u64,
    pub(crate) credentials: RegisteredCredentials,
    pub(crate) limits: UserLimits,
    pub(crate) faults: Faults,
    pub(crate) audit: Audit,
    pub(crate) log: Log,
    /// What a tunnel has beside its object: secret, connections, configuration.
    pub(crate) tunnels: BTreeMap<String, Inside>,
    /// Accounts whose owner never chose a team name, so that they have no Access.
    pub(crate) without_zero_trust: BTreeSet<String>,
    /// What is known of the secrets of service tokens.
    pub(crate) service_tokens: BTreeMap<String, Secrets>,
    /// What listings still show.
    pub(crate) lag: Lag,
    rows: BTreeMap<&'static str, Scopes>,
}

impl State {
    pub(crate) fn new(options: Options, log: Log) -> Self {
        Self {
            ids: Ids::new(options.seed),
            options,
            generation: 0,
            credentials: RegisteredCredentials::default(),
            limits: UserLimits::default(),
            faults: Faults::default(),
            audit: Audit::default(),
            log,
            tunnels: BTreeMap::new(),
            without_zero_trust: BTreeSet::new(),
            service_tokens: BTreeMap::new(),
            lag: Lag::default(),
            rows: BTreeMap::new(),
        }
    }

    pub(crate) fn now(&self) -> String {
        format!("{:.6}", (self.options.clock)())
    }

    pub(crate) fn rows(&self, collection: &Collection, scope: &str) -> Option<&Rows> {
        self.rows.get(collection.name)?.get(scope)
    }

    /// The objects of a scope as a listing shows them now.
    pub(crate) fn listed(&self, collection: &Collection, scope: &str) -> Option<&Rows> {
        match self.lag.shown(collection.name, Instant::now()) {
            Some(scopes) => scopes.get(scope),
            None => self.rows(collection, scope),
        }
    }

    /// Keeps what listings still have to show, before anything changes.
    pub(crate) fn remember(&mut self) {
        self.lag.remember(Instant::now(), &self.rows);
    }

    pub(crate) fn rows_mut(&mut self, collection: &'static Collection, scope: &str) -> &mut Rows {
        let scopes = self.rows.entry(collection.name).or_default();
        scopes.entry(scope.to_owned()).or_insert_with(|| Rows::new(collection.key))
    }

    /// Forgets all objects of a scope.
    pub(crate) fn drop_scope(&mut self, scope: &str) {
        for scopes in self.rows.values_mut() {
            scopes.remove(scope);
        }
    }

    pub(crate) fn get(&self, collection: &Collection, scope: &str, id: &str) -> Option<&Value> {
        self.rows(collection, scope)?.get(id)
    }

    /// All objects of a scope.
    pub(crate) fn all<'a>(&'a self, collection: &Collection, scope: &str) -> impl Iterator<Item = &'a Value> + use<'a> {
        self.rows(collection, scope).into_iter().flat_map(Rows::iter)
    }

    fn scopes<'a>(&'a self, collection: &Collection) -> impl Iterator<Item = (&'a String, &'a Rows)> + use<'a> {
        self.rows.get(collection.name).into_iter().flatten()
    }

    /// The scope in which an object with this id is.
    pub(crate) fn scope_with(&self, collection: &Collection, id: &str) -> Option<String> {
        self.scopes(collection).find(|(_, rows)| rows.get(id).is_some()).map(|(scope, _)| scope.clone())
    }

    /// Notes changes in the audit log.
    pub(crate) fn note(&mut self, who: Who<'_>, row: &Collection, scope: &str, did: &[(CollectionAction, &Value)]) {
        let zone = match row.scope {
            Below::Zone => self.get(&zone::ZONES, "", scope),
            Below::Root | Below::Account => None,
        };
        let account = zone.map(|zone| text(&zone["account"], "id").to_owned());
        let zone = zone.map_or(String::new(), |zone| text(zone, "name").to_owned());
        let at = self.now();
        for (action, value) in did {
            let own = || match row.scope {
                Below::Account => scope.to_owned(),
                Below::Zone | Below::Root => text(&value["account"], "id").to_owned(),
            };
            self.audit.add(AuditEntry {
                at: at.clone(),
                account: account.clone().unwrap_or_else(own),
                zone: zone.clone(),
                action: action.word(),
                resource: row.what,
                resource_id: id_of(value).to_owned(),
                email: who.email.to_owned(),
                interface: who.interface,
            });
        }
    }

    /// Forgets all objects.
    pub(crate) fn clear_objects(&mut self) {
        self.rows.clear();
        self.tunnels.clear();
        self.service_tokens.clear();
    }

    /// All objects by collection and scope.
    pub(crate) fn export(&self) -> BTreeMap<String, BTreeMap<String, Vec<Value>>> {
        let objects = |scopes: &BTreeMap<String, Rows>| {
            scopes.iter().map(|(scope, rows)| (scope.clone(), rows.iter().cloned().collect())).collect()
        };
        self.rows.iter().map(|(name, scopes)| ((*name).to_owned(), objects(scopes))).collect()
    }

    /// All objects: by collection, then by scope unless the collection has none. Scopes without objects are left out, so that
    /// a world from which everything was deleted looks as it did before.
    pub(crate) fn dump(&self) -> Value {
        let mut collections = Map::new();
        for row in COLLECTIONS {
            let scopes = self.scopes(row).filter(|(_, rows)| rows.len() > 0);
            let scopes = scopes.map(|(scope, rows)| (scope.clone(), rows.iter().cloned().collect::<Value>()));
            let value = match row.scope {
                Below::Root => self.all(row, "").cloned().collect(),
                Below::Account | Below::Zone => Value::Object(scopes.collect()),
            };
            collections.insert(row.name.to_owned(), value);
        }
        let documents = self.tunnels.iter().map(|(id, inside)| (id.clone(), inside.configuration.clone()));
        collections.insert("configurations".to_owned(), Value::Object(documents.collect()));
        Value::Object(collections)
    }

    /// How many objects a collection has in all scopes.
    pub(crate) fn count(&self, collection: &Collection) -> usize {
        self.scopes(collection).map(|(_, rows)| rows.len()).sum()
    }
}
