//! A namespace → its `ConfigMap` `kube-root-ca.crt`: what pods trust the server by.

use serde_json::{Map, Value, json};

use crate::common::kind::NAMESPACES;
use crate::common::object::{annotation, name, namespace, text};
use crate::common::step::{change, exact_target};
use crate::{Controller, ObjectName, Plan, Step, View};

const MAPS: &str = "configmaps";
const NAME: &str = "kube-root-ca.crt";
const DESCRIPTION: &str = "kubernetes.io/description";
const DESCRIBED: &str = "Contains a CA bundle that can be used to verify the kube-apiserver when using internal endpoints \
                         such as the internal service IP or kubernetes.default.svc. No other usage is guaranteed across \
                         distributions of Kubernetes clusters.";

/// Every namespace knows the certificate of a server that listens.
pub struct RootCertificate {
    /// In PEM.
    pub certificate: String,
}

impl Controller for RootCertificate {
    fn component(&self) -> &'static str {
        "root-ca-certificate-publisher-controller"
    }

    fn collection(&self) -> &'static str {
        NAMESPACES
    }

    fn watches(&self) -> &'static [&'static str] {
        &[MAPS]
    }

    fn reads(&self, collection: &str, name: &str) -> bool {
        collection != MAPS || name == NAME
    }

    fn concerned(&self, _view: &dyn View, _collection: &str, map: &Value) -> Vec<ObjectName> {
        let its_namespace = || ObjectName { namespace: String::new(), name: namespace(map).to_owned() };
        (name(map) == NAME).then(its_namespace).into_iter().collect()
    }

    fn plan(&self, view: &dyn View, namespace: &Value) -> Plan {
        let name = name(namespace);
        if text(namespace, "/status/phase") != "Active" {
            return Plan::default();
        }
        let step = match view.get(MAPS, name, NAME) {
            None => Some(self.create(name)),
            Some(there) => self.update(&there),
        };
        step.into_iter().collect()
    }
}

impl RootCertificate {
    fn create(&self, namespace: &str) -> Step {
        let object = json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": NAME, "namespace": namespace, "annotations": {DESCRIPTION: DESCRIBED}},
            "data": {"ca.crt": self.certificate},
        });
        Step::Create { collection: MAPS, object }
    }

    /// Puts back what someone changed.
    fn update(&self, there: &Value) -> Option<Step> {
        let described = annotation(there, DESCRIPTION).is_some_and(|text| !text.is_empty());
        if there["data"] == json!({"ca.crt": self.certificate}) && described {
            return None;
        }
        let strange = there["data"].as_object().into_iter().flatten().map(|(key, _)| (key.clone(), Value::Null));
        let mut data: Map<String, Value> = strange.collect();
        data.insert("ca.crt".to_owned(), json!(self.certificate));
        let patch = json!({"metadata": {"annotations": {DESCRIPTION: DESCRIBED}}, "data": data});
        Some(change(exact_target(MAPS, there), patch))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{MAPS, NAME, RootCertificate};
    use crate::testing::TestObjects;
    use crate::{ObjectName, View as _};

    #[test]
    fn every_namespace_has_the_certificate_as_it_is_now() {
        let mut world = TestObjects::default();
        world.put("namespaces", json!({"metadata": {"name": "web"}, "status": {"phase": "Active"}}));
        let publisher = |certificate: &str| RootCertificate { certificate: certificate.to_owned() };
        world.settle(&publisher("old"));
        let name = ObjectName { namespace: "web".to_owned(), name: NAME.to_owned() };
        world.patch(MAPS, &name, &json!({"data": {"other": "x"}, "metadata": {"annotations": null}}));

        world.settle(&publisher("new"));

        let map = world.get(MAPS, "web", NAME).unwrap();
        assert_eq!(map["data"], json!({"ca.crt": "new"}));
        assert!(
            map["metadata"]["annotations"]["kubernetes.io/description"].as_str().unwrap().starts_with("Contains a CA")
        );
    }
}
