//! The stored roles and bindings → a [`Policy`], kept up to date by following their collections.

use std::sync::{Arc, Mutex};

use portolan_rbac::{Binding, Policy, Rule};
use serde_json::Value;

use crate::encode::{self, TypeMeta};
use crate::store::{Compacted, Event, EventKind, Range, Store, StoredObject, Watch};

/// Events that are read at once.
const BATCH: usize = 1024;

#[derive(Clone, Copy)]
enum PolicyPart {
    ClusterRoles,
    Roles,
    ClusterBindings,
    Bindings,
}

const PARTS: [(PolicyPart, &str); 4] = [
    (PolicyPart::ClusterRoles, "clusterroles.rbac.authorization.k8s.io"),
    (PolicyPart::Roles, "roles.rbac.authorization.k8s.io"),
    (PolicyPart::ClusterBindings, "clusterrolebindings.rbac.authorization.k8s.io"),
    (PolicyPart::Bindings, "rolebindings.rbac.authorization.k8s.io"),
];

/// A policy that follows the store. Nothing is read before the first question.
#[derive(Default)]
pub(super) struct Followed {
    state: Mutex<Option<PolicyState>>,
}

struct PolicyState {
    policy: Arc<Policy>,
    watches: Vec<(PolicyPart, Watch)>,
}

impl Followed {
    /// The policy as of the last write.
    pub(super) fn now(&self, store: &Store) -> Arc<Policy> {
        let mut state = self.state.lock().expect("nothing panics while the policy is followed");
        if let Some(state) = state.as_mut()
            && state.catch_up().is_ok()
        {
            return state.policy.clone();
        }
        // At the beginning, or where the history no longer reaches back.
        loop {
            if let Ok(fresh) = PolicyState::read(store) {
                let policy = fresh.policy.clone();
                *state = Some(fresh);
                return policy;
            }
        }
    }
}

impl PolicyState {
    fn read(store: &Store) -> Result<Self, Compacted> {
        let mut policy = Policy::default();
        let mut watches = Vec::with_capacity(PARTS.len());
        for (part, collection) in PARTS {
            let listing = store.list(&Range { collection, prefix: "", after: "", at: None })?;
            watches.push((part, store.watch(&Arc::from(collection), listing.version)?));
            for stored in &listing.objects {
                put(&mut policy, part, stored);
            }
        }
        Ok(Self { policy: Arc::new(policy), watches })
    }

    fn catch_up(&mut self) -> Result<(), Compacted> {
        for (part, watch) in &mut self.watches {
            loop {
                let (events, _) = watch.ready(BATCH)?;
                for event in &events {
                    see(Arc::make_mut(&mut self.policy), *part, event);
                }
                if events.len() < BATCH {
                    break;
                }
            }
        }
        Ok(())
    }
}

fn see(policy: &mut Policy, part: PolicyPart, event: &Event) {
    match event.kind {
        EventKind::Added | EventKind::Modified => put(policy, part, &event.object),
        EventKind::Deleted => remove(policy, part, &event.object),
    }
}

fn put(policy: &mut Policy, part: PolicyPart, stored: &StoredObject) {
    let object = read(stored);
    let (namespace, name) = (stored.key.namespace().to_owned(), stored.key.name().to_owned());
    match part {
        PolicyPart::ClusterRoles => {
            policy.cluster_roles.insert(name, Rule::parse_all(&object).into());
        }
        PolicyPart::Roles => {
            policy.roles.insert((namespace, name), Rule::parse_all(&object).into());
        }
        PolicyPart::ClusterBindings => {
            policy.cluster_bindings.insert(name, Arc::new(Binding::parse(&object)));
        }
        PolicyPart::Bindings => {
            policy.bindings.entry(namespace).or_default().insert(name, Arc::new(Binding::parse(&object)));
        }
    }
}

fn remove(policy: &mut Policy, part: PolicyPart, stored: &StoredObject) {
    let (namespace, name) = (stored.key.namespace(), stored.key.name());
    match part {
        PolicyPart::ClusterRoles => {
            policy.cluster_roles.remove(name);
        }
        PolicyPart::Roles => {
            policy.roles.remove(&(namespace.to_owned(), name.to_owned()));
        }
        PolicyPart::ClusterBindings => {
            policy.cluster_bindings.remove(name);
        }
        PolicyPart::Bindings => {
            if let Some(bindings) = policy.bindings.get_mut(namespace) {
                bindings.remove(name);
                if bindings.is_empty() {
                    policy.bindings.remove(namespace);
                }
            }
        }
    }
}

fn read(stored: &StoredObject) -> Value {
    encode::object_of(stored, &TypeMeta { kind: String::new(), api_version: String::new() })
}

#[cfg(test)]
mod tests {
    use portolan_rbac::{AccessTarget, Attributes, User};
    use serde_json::json;

    use super::*;
    use crate::store::{Expect, StoreKey, StoreWrite, Write};

    async fn write(store: &Store, collection: &str, name: &str, object: Value) {
        let key = StoreKey::new(&Arc::from(collection), "", name);
        let expect = store.get(&key).map_or(Expect::Absent, |there| Expect::Version(there.version));
        let change = if object.is_null() { StoreWrite::Delete } else { StoreWrite::Put(encode::body_of(object)) };
        store.write(Write { key, expect, change }).await.unwrap();
    }

    fn may(followed: &Followed, store: &Store) -> bool {
        let user = User::new("bob", ["x"]);
        let target = AccessTarget::Path("/metrics".to_owned());
        followed.now(store).decide(&Attributes { user: &user, verb: "get".to_owned(), target }).allowed
    }

    #[tokio::test]
    async fn a_binding_counts_from_its_write_to_its_deletion() {
        let (store, followed) = (Store::in_memory(), Followed::default());
        let role = json!({"metadata": {"name": "r"}, "rules": [{"verbs": ["get"], "nonResourceURLs": ["/metrics"]}]});
        let binding = json!({
            "metadata": {"name": "b"}, "roleRef": {"kind": "ClusterRole", "name": "r"},
            "subjects": [{"kind": "User", "name": "bob"}],
        });
        assert!(!may(&followed, &store));

        write(&store, "clusterroles.rbac.authorization.k8s.io", "r", role).await;
        write(&store, "clusterrolebindings.rbac.authorization.k8s.io", "b", binding).await;
        assert!(may(&followed, &store));

        write(&store, "clusterrolebindings.rbac.authorization.k8s.io", "b", Value::Null).await;
        assert!(!may(&followed, &store));
    }

    #[tokio::test]
    async fn a_history_that_was_forgotten_is_read_anew() {
        let (store, followed) = (Store::in_memory(), Followed::default());
        assert!(!may(&followed, &store));
        let role = json!({"metadata": {"name": "r"}, "rules": [{"verbs": ["get"], "nonResourceURLs": ["*"]}]});
        let binding = json!({
            "metadata": {"name": "b"}, "roleRef": {"kind": "ClusterRole", "name": "r"},
            "subjects": [{"kind": "Group", "name": "x"}],
        });
        write(&store, "clusterroles.rbac.authorization.k8s.io", "r", role).await;
        write(&store, "clusterrolebindings.rbac.authorization.k8s.io", "b", binding).await;

        store.compact(store.version());

        assert!(may(&followed, &store));
    }
}
