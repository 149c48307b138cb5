//! Objects of our own kinds: a first tenant with its Secret, the operator's configuration, templates to look at.

use base64::Engine as _;
use serde_json::{Map, Value, json};

use super::{Installation, set};
use crate::chart;

/// Of the kinds of the job that the values are about.
const VERSION: &str = "cfzt.cloudflare.com/v1alpha1";

impl Installation<'_> {
    /// The Secret that is made of the tenant's token.
    pub(super) fn secret(&self) -> Option<Value> {
        let tenant = &self.values.tenant;
        if !tenant.create || tenant.api_token.is_empty() {
            return None;
        }
        let token = base64::engine::general_purpose::STANDARD.encode(tenant.api_token.expose());
        let body = json!({"type": "Opaque", "data": {"token": token}});
        let secret = self.object("v1", "Secret", &self.secret_name(), body);
        Some(self.kept(self.beside_tenant(secret)))
    }

    /// What was asked for of our own kinds.
    pub(super) fn own_objects(&self) -> Vec<Value> {
        let mut all = Vec::new();
        if self.values.operator_config.create {
            let body = json!({"spec": self.values.operator_config.spec});
            all.push(self.own("CloudflareZeroTrustOperatorConfig", "operator-config", body));
        }
        if self.values.tenant.create {
            let body = json!({"spec": self.tenant_spec()});
            all.push(self.beside_tenant(self.own(
                "CloudflareZeroTrustTenant",
                &self.values.tenant.instance_name,
                body,
            )));
        }
        if self.values.example_templates.install {
            let templates = chart::templates().into_iter();
            all.extend(
                templates.map(|(name, spec)| self.own("CloudflareZeroTrustTemplate", name, json!({"spec": spec}))),
            );
        }
        all
    }

    fn own(&self, kind: &str, name: &str, body: Value) -> Value {
        self.kept(self.object(VERSION, kind, name, body))
    }

    fn beside_tenant(&self, mut object: Value) -> Value {
        object["metadata"]["namespace"] = json!(super::first(&[&self.values.tenant.namespace, self.namespace()]));
        object
    }

    fn secret_name(&self) -> String {
        match self.values.tenant.existing_secret.name.as_str() {
            "" => format!("{}-cloudflare-api-token", self.values.tenant.instance_name),
            name => name.to_owned(),
        }
    }

    fn tenant_spec(&self) -> Value {
        let tenant = &self.values.tenant;
        let key = if tenant.api_token.is_empty() { tenant.existing_secret.key.as_str() } else { "token" };
        let mut spec = Map::new();
        set(&mut spec, "accountId", json!(tenant.account_id));
        set(&mut spec, "tunnelId", json!(tenant.tunnel_id));
        set(&mut spec, "zoneId", json!(tenant.zone_id));
        set(&mut spec, "credentialRef", json!({"name": self.secret_name(), "key": key}));
        Value::Object(spec)
    }
}
