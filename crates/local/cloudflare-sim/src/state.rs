//! Everything the simulator remembers.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::{
    audit::{Audit, Entry},
    auth::Credentials,
    fault::Faults,
    ids::Ids,
    limit::Limits,
    options::Options,
    record::Log,
    store::{Rows, id_of, text},
    table::{Action, COLLECTIONS, Collection, Scope},
    tunnel::Inside,
    zone,
};

/// The world behind the API.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) options: Options,
    pub(crate) ids: Ids,
    pub(crate) credentials: Credentials,
    pub(crate) limits: Limits,
    pub(crate) faults: Faults,
    pub(crate) audit: Audit,
    pub(crate) log: Log,
    /// What a tunnel has beside its object: secret, connections, configuration.
    pub(crate) tunnels: BTreeMap<String, Inside>,
    rows: BTreeMap<(&'static str, String), Rows>,
}

impl State {
    pub(crate) fn new(options: Options, log: Log) -> Self {
        Self {
            ids: Ids::new(options.seed),
            options,
            credentials: Credentials::default(),
            limits: Limits::default(),
            faults: Faults::default(),
            audit: Audit::default(),
            log,
            tunnels: BTreeMap::new(),
            rows: BTreeMap::new(),
        }
    }

    pub(crate) fn now(&self) -> String {
        format!("{:.6}", (self.options.clock)())
    }

    pub(crate) fn rows(&self, collection: &Collection, scope: &str) -> Option<&Rows> {
        self.rows.get(&(collection.name, scope.to_owned()))
    }

    pub(crate) fn rows_mut(&mut self, collection: &'static Collection, scope: &str) -> &mut Rows {
        let place = (collection.name, scope.to_owned());
        self.rows.entry(place).or_insert_with(|| Rows::new(collection.key))
    }

    /// Forgets all objects of a scope.
    pub(crate) fn drop_scope(&mut self, scope: &str) {
        self.rows.retain(|(_, place), _| place != scope);
    }

    pub(crate) fn get(&self, collection: &Collection, scope: &str, id: &str) -> Option<&Value> {
        self.rows(collection, scope)?.get(id)
    }

    /// All objects of a scope.
    pub(crate) fn all<'a>(&'a self, collection: &Collection, scope: &str) -> impl Iterator<Item = &'a Value> + use<'a> {
        self.rows(collection, scope).into_iter().flat_map(Rows::iter)
    }

    /// The scope in which an object with this id is.
    pub(crate) fn scope_with(&self, collection: &Collection, id: &str) -> Option<String> {
        let mut places = self.rows.iter().filter(|((name, _), _)| *name == collection.name);
        places.find(|(_, rows)| rows.get(id).is_some()).map(|((_, scope), _)| scope.clone())
    }

    /// Notes a change in the audit log.
    pub(crate) fn note(
        &mut self,
        who: (&str, &'static str),
        row: &Collection,
        scope: &str,
        did: Action,
        value: &Value,
    ) {
        let zone = match row.scope {
            Scope::Zone => self.get(&zone::ZONES, "", scope),
            Scope::Root | Scope::Account => None,
        };
        let account = match (row.scope, zone) {
            (Scope::Account, _) => scope.to_owned(),
            (Scope::Zone, Some(zone)) => text(&zone["account"], "id").to_owned(),
            (Scope::Zone | Scope::Root, _) => text(&value["account"], "id").to_owned(),
        };
        let zone = zone.map_or(String::new(), |zone| text(zone, "name").to_owned());
        self.audit.add(Entry {
            at: self.now(),
            account,
            zone,
            action: did.word(),
            resource: row.what,
            resource_id: id_of(value).to_owned(),
            email: who.0.to_owned(),
            interface: who.1,
        });
    }

    /// All objects: by collection, then by scope unless the collection has none.
    pub(crate) fn dump(&self) -> Value {
        let mut collections = Map::new();
        for row in COLLECTIONS {
            let places = self.rows.iter().filter(|((name, _), _)| *name == row.name);
            let scopes = places.map(|((_, scope), rows)| (scope.clone(), rows.iter().cloned().collect::<Value>()));
            let value = match row.scope {
                Scope::Root => self.all(row, "").cloned().collect(),
                Scope::Account | Scope::Zone => Value::Object(scopes.collect()),
            };
            collections.insert(row.name.to_owned(), value);
        }
        let documents = self.tunnels.iter().map(|(id, inside)| (id.clone(), inside.configuration.clone()));
        collections.insert("configurations".to_owned(), Value::Object(documents.collect()));
        Value::Object(collections)
    }

    /// How many objects a collection has in all scopes.
    pub(crate) fn count(&self, collection: &Collection) -> usize {
        self.rows.iter().filter(|((name, _), _)| *name == collection.name).map(|(_, rows)| rows.len()).sum()
    }
}
