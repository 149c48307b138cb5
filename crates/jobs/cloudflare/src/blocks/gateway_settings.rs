//! What holds for all of an account's Gateway: settings as users write them → settings as the API takes them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

blocks! {
    /// Settings in groups. What is not said is nobody's business: whatever it is at Cloudflare, it stays.
    GatewaySettings {
        ;
        /// Whether encrypted traffic is looked into.
        tls_decrypt: Switch,
        /// Whether what is asked for is logged.
        activity_log: Switch,
        /// Scanning for viruses.
        anti_virus: AntiVirus,
        /// What is shown where something is blocked.
        block_page: BlockPage,
        /// How thoroughly bodies are looked into.
        body_scanning: BodyScanning,
        /// Browsing in isolation.
        browser_isolation: BrowserIsolation,
        /// Older form of `browserIsolation.nonIdentityEnabled`.
        non_identity_browser_isolation: Switch,
        /// Encryption as FIPS asks for it.
        fips: Fips,
        /// Whether protocols are told by what is sent.
        protocol_detection: Switch,
        /// The certificate that Gateway signs with.
        custom_certificate: CustomCertificate,
    }
    /// Something that is on or off.
    Switch {
        /// Whether it is on.
        enabled: bool,
    }
    /// Scanning for viruses.
    AntiVirus {
        /// Whether files are scanned: those that come in and those that go out, unless one of the phases is said.
        enabled: bool,
        ;
        /// Whether files are scanned that come in.
        enabled_download_phase: bool,
        /// Whether files are scanned that go out.
        enabled_upload_phase: bool,
        /// Whether files that cannot be scanned are blocked.
        fail_closed: bool,
        /// What users are told.
        notification_settings: NotificationSettings,
    }
    /// What users are told.
    NotificationSettings {
        /// Whether they are told.
        enabled: bool,
        ;
        /// The message.
        #[schemars(length(max = 1024))]
        message: String,
        /// Where they find more.
        #[schemars(length(max = 2048))]
        support_url: String,
    }
    /// What is shown where something is blocked.
    BlockPage {
        /// Whether it is a page of your own.
        enabled: bool,
        ;
        /// Title of the page.
        #[schemars(length(max = 1024))]
        name: String,
        /// Text at its end.
        #[schemars(length(max = 4096))]
        footer_text: String,
        /// Text at its beginning.
        #[schemars(length(max = 4096))]
        header_text: String,
        /// Where its picture is.
        #[schemars(length(max = 2048))]
        logo_path: String,
        /// Its colour, as `#ffffff`.
        #[schemars(length(max = 32))]
        background_color: String,
        /// Whom users may write to.
        #[schemars(length(max = 320))]
        mailto_address: String,
        /// The subject of what they write.
        #[schemars(length(max = 1024))]
        mailto_subject: String,
        /// Whether Cloudflare's line at the end is left out.
        suppress_footer: bool,
    }
    /// How thoroughly bodies are looked into.
    BodyScanning {
        ;
        /// `deep` or `shallow`.
        #[schemars(length(max = 32))]
        inspection_mode: String,
    }
    /// Browsing in isolation.
    BrowserIsolation {
        ;
        /// Whether pages are isolated by their address.
        url_browser_isolation_enabled: bool,
        /// Whether people are isolated who did not log in.
        non_identity_enabled: bool,
    }
    /// Encryption as FIPS asks for it.
    Fips {
        ;
        /// Whether only such ciphers are used.
        tls: bool,
    }
    /// The certificate that Gateway signs with.
    CustomCertificate {
        /// Whether it is your own.
        enabled: bool,
        ;
        /// Its id at Cloudflare.
        #[schemars(length(max = 255))]
        id: String,
    }
}

impl GatewaySettings {
    /// What is mentioned, in the API's words.
    pub fn wire(&self) -> Value {
        let mut all = snake(serde_json::to_value(self).expect("settings are plain JSON"));
        let Some(groups) = all.as_object_mut() else { return all };
        if groups.remove("anti_virus").is_some()
            && let Some(antivirus) = &self.anti_virus
        {
            groups.insert("antivirus".to_owned(), antivirus.wire());
        }
        if groups.remove("non_identity_browser_isolation").is_some()
            && self.non_identity_browser_isolation.as_ref().is_some_and(|older| older.enabled)
        {
            groups.entry("browser_isolation").or_insert_with(|| json!({}))["non_identity_enabled"] = json!(true);
        }
        all
    }
}

impl AntiVirus {
    fn wire(&self) -> Value {
        let (download, upload) = match (self.enabled, self.enabled_download_phase, self.enabled_upload_phase) {
            (false, _, _) => (Some(false), Some(false)),
            (true, None, None) => (Some(true), Some(true)),
            (true, download, upload) => (download, upload),
        };
        let notification = self
            .notification_settings
            .as_ref()
            .map(|told| said(json!({ "enabled": told.enabled, "msg": told.message, "support_url": told.support_url })));
        said(json!({
            "enabled_download_phase": download, "enabled_upload_phase": upload, "fail_closed": self.fail_closed,
            "notification_settings": notification,
        }))
    }
}

/// Without what is not said.
fn said(mut group: Value) -> Value {
    if let Some(members) = group.as_object_mut() {
        members.retain(|_, value| !value.is_null());
    }
    group
}

/// Names as the API writes them: `blockPage` → `block_page`.
fn snake(value: Value) -> Value {
    let name = |name: String| {
        name.chars().fold(String::new(), |mut snake, letter| {
            if letter.is_ascii_uppercase() {
                snake.push('_');
            }
            snake.push(letter.to_ascii_lowercase());
            snake
        })
    };
    match value {
        Value::Object(members) => {
            Value::Object(members.into_iter().map(|(key, value)| (name(key), snake(value))).collect::<Map<_, _>>())
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::from_value;

    use super::*;

    fn wire(settings: Value) -> Value {
        from_value::<GatewaySettings>(settings).unwrap().wire()
    }

    #[test]
    fn only_what_is_mentioned_is_written_in_the_words_of_the_api() {
        let settings = json!({
            "tlsDecrypt": { "enabled": true }, "blockPage": { "enabled": true, "footerText": "bye" }, "fips": { "tls": false },
        });
        let written = json!({
            "tls_decrypt": { "enabled": true }, "block_page": { "enabled": true, "footer_text": "bye" }, "fips": { "tls": false },
        });

        assert_eq!(wire(settings), written);
        assert_eq!(wire(json!({})), json!({}));
    }

    #[test]
    fn scanning_that_is_on_is_on_in_both_phases_unless_one_is_said() {
        let phases = |settings: Value| wire(json!({ "antiVirus": settings }))["antivirus"].clone();
        let both = |on: bool| json!({ "enabled_download_phase": on, "enabled_upload_phase": on });

        assert_eq!(phases(json!({ "enabled": true })), both(true));
        assert_eq!(phases(json!({ "enabled": false, "enabledUploadPhase": true })), both(false));
        assert_eq!(
            phases(json!({ "enabled": true, "enabledUploadPhase": true })),
            json!({ "enabled_upload_phase": true })
        );
        let told = json!({ "enabled": true, "notificationSettings": { "enabled": true, "message": "no" } });
        assert_eq!(phases(told)["notification_settings"], json!({ "enabled": true, "msg": "no" }));
    }

    #[test]
    fn the_older_form_of_isolation_is_the_newer_one() {
        let older = json!({ "nonIdentityBrowserIsolation": { "enabled": true } });
        let off = json!({ "nonIdentityBrowserIsolation": { "enabled": false } });

        assert_eq!(wire(older), json!({ "browser_isolation": { "non_identity_enabled": true } }));
        assert_eq!(wire(off), json!({}));
    }
}
