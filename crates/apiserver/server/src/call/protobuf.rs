//! A body of protocol buffers → an object of the resource, or the options of a deletion.

use std::fmt::Write as _;

use portolan_protobuf::{Envelope, ProtobufError};
use serde_json::Value;

use super::Call;
use crate::decode::Decoded;
use crate::status::ApiError;

/// How much of a body is shown to its sender.
const SHOWN_BYTES: usize = 30;

impl Call {
    /// The object in the body, of a kind that can become the resource's.
    pub(super) fn object_from_protobuf(&self) -> Result<Decoded, ApiError> {
        let open = Envelope::open(&self.body);
        let unreadable = |error| self.unrecognized(&format!("{error} ({})", shown(&self.body)));
        let expected = self.resource.api_version();
        let envelope = open.map_err(unreadable)?.or(&expected, &self.resource.kind);
        let group = |api_version: &str| api_version.rsplit_once('/').unwrap_or_default().0.to_owned();
        let version = envelope.api_version.rsplit('/').next().unwrap_or_default();
        let refuse = |why: &str| {
            let (kind, wanted) = (&envelope.kind, &self.resource.kind);
            ApiError::bad_request(format!("{kind} in version {version:?} cannot be handled as a {wanted}: {why}"))
        };
        if self.resource.custom().is_some() {
            return Err(refuse("Object 'Kind' is missing in 'object has no kind field '"));
        }
        let value = envelope.object().map_err(|error| refuse(&explained(&error)))?;
        if envelope.kind != self.resource.kind || group(&envelope.api_version) != group(&expected) {
            return Err(refuse(&self.no_conversion(version, &envelope.kind)));
        }
        Ok(Decoded { value, duplicates: Vec::new() })
    }

    /// The `DeleteOptions` in the body. Those of every version are the same.
    pub(super) fn options_from_protobuf(&self) -> Result<Value, ApiError> {
        let bad = |error: ProtobufError| ApiError::bad_request(explained(&error));
        let envelope = Envelope::open(&self.body).map_err(bad)?.or("v1", "DeleteOptions");
        if envelope.kind != "DeleteOptions" {
            return Err(bad(ProtobufError::Kind { api_version: envelope.api_version, kind: envelope.kind }));
        }
        envelope.object().map_err(bad)
    }
}

/// The error, with the table that the real server looked the kind up in.
fn explained(error: &ProtobufError) -> String {
    let table = match error {
        ProtobufError::Kind { .. } => " in scheme \"pkg/runtime/scheme.go:111\"",
        _ => "",
    };
    format!("{error}{table}")
}

/// The beginning of a body, as text where it looks like JSON.
fn shown(body: &[u8]) -> String {
    let (start, more) = match body.split_at_checked(SHOWN_BYTES) {
        Some((start, rest)) if !rest.is_empty() => (start, " ..."),
        _ => (body, ""),
    };
    let text = match start {
        [] => "<empty>".to_owned(),
        [b'{', ..] => String::from_utf8_lossy(start).into_owned(),
        bytes => bytes.iter().fold(String::new(), |mut text, byte| {
            let _ = write!(text, "{byte:02x}");
            text
        }),
    };
    text + more
}

#[cfg(test)]
mod tests {
    use super::shown;

    #[test]
    fn a_body_is_shown_as_text_or_as_digits() {
        assert_eq!(shown(b""), "<empty>");
        assert_eq!(shown(b"k8s\0"), "6b387300");
        assert_eq!(shown(b"{\"a\":1}"), "{\"a\":1}");
        assert_eq!(shown(&[b'{'; 31]), format!("{} ...", "{".repeat(30)));
    }
}
