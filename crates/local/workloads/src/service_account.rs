//! A namespace → its account `default`, made again whenever it is missing.

use serde_json::{Value, json};

use crate::serving::text;
use crate::{Controller, Name, Plan, Step, View};

const ACCOUNTS: &str = "serviceaccounts";
const NAME: &str = "default";

/// Every active namespace has the account that pods use where they name none.
pub(crate) struct DefaultServiceAccount;

impl Controller for DefaultServiceAccount {
    fn component(&self) -> &'static str {
        "service-account-controller"
    }

    fn collection(&self) -> &'static str {
        "namespaces"
    }

    fn watches(&self) -> &'static [&'static str] {
        &[ACCOUNTS]
    }

    fn concerned(&self, _view: &dyn View, _collection: &str, account: &Value) -> Vec<Name> {
        let ours = text(account, "/metadata/name") == NAME;
        let namespace = text(account, "/metadata/namespace").to_owned();
        ours.then(|| Name { namespace: String::new(), name: namespace }).into_iter().collect()
    }

    fn plan(&self, view: &dyn View, namespace: &Value) -> Plan {
        let name = text(namespace, "/metadata/name");
        let active = text(namespace, "/status/phase") == "Active";
        if !active || view.get(ACCOUNTS, name, NAME).is_some() {
            return Plan::default();
        }
        let object =
            json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": NAME, "namespace": name}});
        Plan { steps: vec![Step::Create { collection: ACCOUNTS, object }], again_after: None }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{ACCOUNTS, DefaultServiceAccount};
    use crate::testing::World;
    use crate::{Controller as _, Name, View as _};

    fn world(phase: &str) -> World {
        let mut world = World::default();
        world.put("namespaces", json!({"metadata": {"name": "web"}, "status": {"phase": phase}}));
        world
    }

    #[test]
    fn an_active_namespace_gets_its_account_again_and_again() {
        let mut world = world("Active");
        world.settle(&DefaultServiceAccount);
        let account = world.get(ACCOUNTS, "web", "default").unwrap();

        world.remove(ACCOUNTS, &Name { namespace: "web".to_owned(), name: "default".to_owned() });
        let concerned = DefaultServiceAccount.concerned(&world, ACCOUNTS, &account);
        world.settle(&DefaultServiceAccount);

        assert_eq!(concerned, [Name { namespace: String::new(), name: "web".to_owned() }]);
        assert!(world.get(ACCOUNTS, "web", "default").is_some());
    }

    #[test]
    fn a_namespace_that_goes_gets_none() {
        let mut world = world("Terminating");

        world.settle(&DefaultServiceAccount);

        assert!(world.list(ACCOUNTS, "web").is_empty());
    }

    #[test]
    fn other_accounts_concern_nobody() {
        let other = json!({"metadata": {"namespace": "web", "name": "builder"}});

        assert!(DefaultServiceAccount.concerned(&World::default(), ACCOUNTS, &other).is_empty());
    }
}
