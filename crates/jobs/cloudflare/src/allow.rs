//! Whom credentials and domains serve: namespaces by name, record names by pattern. A list that is absent limits nothing.
//!
//! Pure. What stood before a list was narrowed is neither changed nor taken away; its object says why it is not looked
//! after any more, and can be deleted as ever.

use portolan_core::{Hostname, Problem, allow};

use crate::kinds::{CloudflareCredentials, CloudflareDomain};
use crate::reasons::NOT_ALLOWED;

/// The limits of one object.
struct ObjectLimits<'a> {
    /// How users call the object.
    label: String,
    namespaces: Option<&'a [String]>,
    domains: Option<&'a [String]>,
}

/// Whether credentials may be used for an object of a namespace (none: of the cluster).
pub(crate) fn credentials_serve(credentials: &CloudflareCredentials, namespace: Option<&str>) -> Result<(), Problem> {
    of_credentials(credentials).serve(namespace)
}

/// Whether credentials may publish a name.
pub(crate) fn credentials_publish(credentials: &CloudflareCredentials, name: &Hostname) -> Result<(), Problem> {
    of_credentials(credentials).publish(name)
}

/// Whether objects of a namespace may publish a name in a domain.
pub(crate) fn domain_takes(domain: &CloudflareDomain, namespace: Option<&str>, name: &Hostname) -> Result<(), Problem> {
    let limits = ObjectLimits {
        label: format!("CloudflareDomain {}", domain.metadata.name.as_deref().unwrap_or_default()),
        namespaces: domain.spec.allowed_namespaces.as_deref(),
        domains: domain.spec.allowed_domains.as_deref(),
    };
    limits.serve(namespace)?;
    limits.publish(name)
}

fn of_credentials(credentials: &CloudflareCredentials) -> ObjectLimits<'_> {
    ObjectLimits {
        label: format!("CloudflareCredentials {}", credentials.metadata.name.as_deref().unwrap_or_default()),
        namespaces: credentials.spec.allowed_namespaces.as_deref(),
        domains: credentials.spec.allowed_domains.as_deref(),
    }
}

impl ObjectLimits<'_> {
    fn serve(&self, namespace: Option<&str>) -> Result<(), Problem> {
        // Objects of the cluster are made by who may make credentials, too.
        let (Some(namespace), Some(allowed)) = (namespace, self.namespaces) else { return Ok(()) };
        if allow::names_namespace(allowed, namespace) {
            return Ok(());
        }
        Err(self.refused(&format!("namespace {namespace}"), "allowedNamespaces"))
    }

    fn publish(&self, name: &Hostname) -> Result<(), Problem> {
        match self.domains {
            Some(allowed) if !allow::names_hostname(allowed, name) => {
                Err(self.refused(&format!("the name {name}"), "allowedDomains"))
            }
            Some(_) | None => Ok(()),
        }
    }

    /// Says nothing of who else is served.
    fn refused(&self, what: &str, list: &str) -> Problem {
        let message = format!(
            "{} does not serve {what}; nothing was changed. Ask for it in its spec.{list}, or use another one",
            self.label
        );
        Problem::denied(NOT_ALLOWED, message)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, from_value, json};

    use super::*;

    fn credentials(spec: Value) -> CloudflareCredentials {
        let mut object = json!({
            "apiVersion": "networking.cloudflare-operator.io/v1alpha2", "kind": "CloudflareCredentials",
            "metadata": { "name": "prod" }, "spec": { "accountId": "a1", "secretRef": { "name": "cf" } },
        });
        object["spec"].as_object_mut().unwrap().extend(spec.as_object().unwrap().clone());
        from_value(object).unwrap()
    }

    fn name(name: &str) -> Hostname {
        Hostname::parse(name).unwrap()
    }

    #[test]
    fn finding_13_credentials_without_lists_serve_all_as_ever() {
        let all = credentials(json!({}));

        assert!(credentials_serve(&all, Some("sandbox")).is_ok());
        assert!(credentials_publish(&all, &name("login.example.com")).is_ok());
    }

    #[test]
    fn finding_13_credentials_serve_the_namespaces_that_they_name_and_objects_of_the_cluster() {
        let some = credentials(json!({ "allowedNamespaces": ["shop"] }));
        let none = credentials(json!({ "allowedNamespaces": [] }));

        assert!(credentials_serve(&some, Some("shop")).is_ok());
        assert!(credentials_serve(&some, None).is_ok());
        let refused = credentials_serve(&some, Some("sandbox")).unwrap_err();
        assert_eq!(refused.reason, "NotAllowed");
        assert!(!refused.message.contains("shop"), "others are not named: {refused}");
        assert!(credentials_serve(&none, Some("shop")).is_err());
    }

    #[test]
    fn finding_13_names_are_published_where_a_pattern_says_so() {
        let shop = credentials(json!({ "allowedDomains": ["*.shop.example.com", "shop.example.com"] }));

        for allowed in ["shop.example.com", "www.shop.example.com", "*.shop.example.com"] {
            assert!(credentials_publish(&shop, &name(allowed)).is_ok(), "{allowed}");
        }
        for refused in ["login.example.com", "example.com", "*.example.com", "evilshop.example.com"] {
            assert!(credentials_publish(&shop, &name(refused)).is_err(), "{refused}");
        }
    }

    #[test]
    fn finding_13_a_domain_has_lists_of_its_own() {
        let domain: CloudflareDomain = from_value(json!({
            "apiVersion": "networking.cloudflare-operator.io/v1alpha2", "kind": "CloudflareDomain",
            "metadata": { "name": "example-com" },
            "spec": { "domain": "example.com", "allowedNamespaces": ["shop"], "allowedDomains": ["*.example.com"] },
        }))
        .unwrap();

        assert!(domain_takes(&domain, Some("shop"), &name("www.example.com")).is_ok());
        assert!(domain_takes(&domain, Some("shop"), &name("example.com")).is_err());
        assert!(domain_takes(&domain, Some("sandbox"), &name("www.example.com")).is_err());
    }
}
