//! `AccessGroup` ↔ `accounts/{account}/access/groups/{id}`
//!
//! Names are not unique and nothing carries a mark, so a creation is noted in the status first. A group that something names
//! cannot be deleted (12130): its object waits.

use kube::ResourceExt;
use portolan_cloudflare_api::objects::{AccessGroup as Remote, OptionalWish};
use portolan_core::ownership::Ownership;

use crate::blocks::{AccessRules, CloudflareDetails, given};
use crate::kind::prelude::*;
use crate::sheet::{StateWords, UnmarkedStatus};

/// People under a name, for policies.
#[derive(CustomResource, Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[kube(group = "networking.cloudflare-operator.io", version = "v1alpha2", kind = "AccessGroup")]
#[kube(status = "AccessGroupStatus", shortname = "accessgrp", category = "cloudflare")]
#[kube(printcolumn = r#"{"name":"GroupID","type":"string","jsonPath":".status.groupId"}"#)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = schema::plain)]
pub struct AccessGroupSpec {
    /// Name at Cloudflare; the object's own where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 255))]
    pub name: Option<String>,
    /// Who belongs to it.
    #[serde(flatten)]
    pub rules: AccessRules,
    /// Whether new applications let it in.
    #[serde(default)]
    pub is_default: bool,
    /// Who asks Cloudflare, and about which account.
    pub cloudflare: CloudflareDetails,
}

status! {
    /// What became of an `AccessGroup`.
    AccessGroupStatus: UnmarkedStatus {
        /// Id of the group.
        group_id: String,
    }
}

impl Kind for AccessGroup {
    type Body = Remote;

    const SHEET: Sheet = Sheet {
        id: "groupId",
        ownership: Ownership::Intent,
        states: StateWords::UPPER,
        ..Sheet::owned("AccessGroup", "Access group", finalizer!("accessgroup"))
    };
    const REMOTE: &'static TypedCollection<Self::Body> = &collections::ACCESS_GROUPS;

    fn cloudflare(&self) -> Option<&CloudflareDetails> {
        Some(&self.spec.cloudflare)
    }

    fn remote_name(&self) -> Option<String> {
        Some(given(self.spec.name.as_ref()).unwrap_or_else(|| self.name_any()))
    }

    fn refers(&self) -> Vec<SpecReference> {
        self.spec.rules.refers()
    }

    fn desired(&self, resolved: &Resolved) -> Result<Vec<Remote>, Problem> {
        let [include, exclude, require] = self.spec.rules.wire(&resolved.targets)?;
        Ok(vec![Remote {
            name: self.remote_name().unwrap_or_default().into(),
            include,
            exclude,
            require,
            default: OptionalWish(self.spec.is_default.then_some(true)),
            ..Remote::default()
        }])
    }
}

#[cfg(test)]
mod tests {
    use portolan_cloudflare_api::Item as _;
    use serde_json::from_value;

    use super::*;

    #[test]
    fn all_three_lists_are_written_and_the_default_only_where_it_is_asked_for() {
        let group = |is_default: bool| {
            let spec = json!({ "include": [{ "everyone": true }], "isDefault": is_default, "cloudflare": {} });
            let object: AccessGroup = from_value(json!({ "metadata": { "name": "staff" }, "spec": spec })).unwrap();
            object.desired(&Resolved::default()).unwrap().remove(0)
        };
        let body = json!({ "name": "staff", "include": [{ "everyone": {} }], "exclude": [], "require": [] });

        assert_eq!(group(false).create_body(), body);
        assert_eq!(group(true).update_body(&group(false))["is_default"], json!(true));
        assert_eq!(group(true), from_value(body).unwrap());
    }
}
