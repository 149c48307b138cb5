//! A namespace → its account `default`, made again whenever it is missing.

use serde_json::{Value, json};

use crate::common::kind::NAMESPACES;
use crate::common::object::{name, namespace, text};
use crate::{Controller, ObjectName, Plan, Step, View};

const ACCOUNTS: &str = "serviceaccounts";
const NAME: &str = "default";

/// Every active namespace has the account that pods use where they name none.
pub(crate) struct DefaultServiceAccount;

impl Controller for DefaultServiceAccount {
    fn component(&self) -> &'static str {
        "service-account-controller"
    }

    fn collection(&self) -> &'static str {
        NAMESPACES
    }

    fn watches(&self) -> &'static [&'static str] {
        &[ACCOUNTS]
    }

    fn concerned(&self, _view: &dyn View, _collection: &str, account: &Value) -> Vec<ObjectName> {
        let its_namespace = || ObjectName { namespace: String::new(), name: namespace(account).to_owned() };
        (name(account) == NAME).then(its_namespace).into_iter().collect()
    }

    fn plan(&self, view: &dyn View, namespace: &Value) -> Plan {
        let name = name(namespace);
        let active = text(namespace, "/status/phase") == "Active";
        if !active || view.get(ACCOUNTS, name, NAME).is_some() {
            return Plan::default();
        }
        let object =
            json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": NAME, "namespace": name}});
        [Step::Create { collection: ACCOUNTS, object }].into_iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{ACCOUNTS, DefaultServiceAccount};
    use crate::testing::TestObjects;
    use crate::{Controller as _, ObjectName, View as _};

    fn world(phase: &str) -> TestObjects {
        let mut world = TestObjects::default();
        world.put("namespaces", json!({"metadata": {"name": "web"}, "status": {"phase": phase}}));
        world
    }

    #[test]
    fn an_active_namespace_gets_its_account_again_and_again() {
        let mut world = world("Active");
        world.settle(&DefaultServiceAccount);
        let account = world.get(ACCOUNTS, "web", "default").unwrap();

        world.remove(ACCOUNTS, &ObjectName { namespace: "web".to_owned(), name: "default".to_owned() });
        let concerned = DefaultServiceAccount.concerned(&world, ACCOUNTS, &account);
        world.settle(&DefaultServiceAccount);

        assert_eq!(concerned, [ObjectName { namespace: String::new(), name: "web".to_owned() }]);
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

        assert!(DefaultServiceAccount.concerned(&TestObjects::default(), ACCOUNTS, &other).is_empty());
    }
}
