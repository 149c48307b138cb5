//! All objects as one document, to be kept and taken up again.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

use crate::{Simulator, access::secret::Secrets, ids::Ids, store::id_of, table::Collection, tunnel::Inside};

/// Objects by collection and scope, in the order they were made, and what tunnels and tokens have beside them.
#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct SimSnapshot {
    /// How often the world was taken up again; ids go on from another place each time.
    generation: u64,
    objects: BTreeMap<String, BTreeMap<String, Vec<Value>>>,
    tunnels: BTreeMap<String, Inside>,
    /// Snapshots from before there were service tokens lack it.
    #[serde(default)]
    service_tokens: BTreeMap<String, Secrets>,
    #[serde(default)]
    without_zero_trust: BTreeSet<String>,
}

impl Simulator {
    /// All objects, with the secrets of tunnels: keep it where only its owner reads it. Credentials, faults, limits,
    /// audit entries and requests are not part of it.
    pub fn snapshot(&self) -> Value {
        let state = self.lock();
        let snapshot = SimSnapshot {
            generation: state.generation,
            objects: state.export(),
            tunnels: state.tunnels.clone(),
            service_tokens: state.service_tokens.clone(),
            without_zero_trust: state.without_zero_trust.clone(),
        };
        serde_json::to_value(snapshot).expect("objects are JSON")
    }

    /// Replaces all objects by those of a snapshot.
    pub fn restore(&self, snapshot: Value) -> Result<(), String> {
        let snapshot: SimSnapshot =
            serde_json::from_value(snapshot).map_err(|error| format!("the snapshot is not valid: {error}"))?;
        let mut rows = Vec::new();
        for (name, scopes) in snapshot.objects {
            let row = Collection::find(&name).ok_or_else(|| format!("there is no collection {name}"))?;
            for (scope, objects) in scopes {
                if objects.iter().any(|object| id_of(object).is_empty()) {
                    return Err(format!("an object of {name} has no id"));
                }
                rows.push((row, scope, objects));
            }
        }
        let mut state = self.lock();
        state.clear_objects();
        state.generation = snapshot.generation + 1;
        state.ids = Ids::new(state.options.seed.wrapping_add(state.generation));
        state.tunnels = snapshot.tunnels;
        state.service_tokens = snapshot.service_tokens;
        state.without_zero_trust = snapshot.without_zero_trust;
        for (row, scope, objects) in rows {
            for object in objects {
                state.rows_mut(row, &scope).insert(object);
            }
        }
        Ok(())
    }
}
