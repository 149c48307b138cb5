//! A request's headers → the protocol that its streams speak, and what the answer says of it.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::header::{self, HeaderMap, HeaderName};
use ring::digest::{SHA1_FOR_LEGACY_USE_ONLY, digest};

use crate::status::ApiError;

/// What streams are for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StreamPurpose {
    /// The streams of a program.
    Exec,
    /// Connections to ports.
    Forward,
}

/// How streams are carried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StreamProtocol {
    /// Channels of a WebSocket.
    Channels,
    /// SPDY in the messages of a WebSocket (KEP 4006).
    TunnelledSpdy,
    /// SPDY on the connection itself, as clients before 1.30 have it.
    Spdy,
}

/// What was agreed on.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Handshake {
    pub(crate) protocol: StreamProtocol,
    /// Headers of the answer.
    pub(crate) headers: Vec<(HeaderName, String)>,
}

/// RFC 6455, section 1.3.
const WEB_SOCKET_SALT: &str = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
const STREAM_VERSION: HeaderName = HeaderName::from_static("x-stream-protocol-version");

impl StreamPurpose {
    /// The names of protocols that are spoken on a WebSocket.
    fn web_socket_protocols(self) -> &'static [(&'static str, StreamProtocol)] {
        match self {
            Self::Exec => {
                &[("v5.channel.k8s.io", StreamProtocol::Channels), ("v4.channel.k8s.io", StreamProtocol::Channels)]
            }
            Self::Forward => &[
                ("SPDY/3.1+portforward.k8s.io", StreamProtocol::TunnelledSpdy),
                ("v4.channel.k8s.io", StreamProtocol::Channels),
            ],
        }
    }

    /// The names of protocols that are spoken on SPDY.
    fn spdy_protocols(self) -> &'static [&'static str] {
        match self {
            Self::Exec => &["v5.channel.k8s.io", "v4.channel.k8s.io"],
            Self::Forward => &["portforward.k8s.io"],
        }
    }
}

/// Agrees on a protocol: the first of the client's that is known.
///
/// # Errors
/// A request that asks for no upgrade, or for none that is known.
pub(crate) fn handshake(request: &HeaderMap, purpose: StreamPurpose) -> Result<Handshake, ApiError> {
    let upgrades = words(request, &header::CONNECTION).any(|word| word.eq_ignore_ascii_case("upgrade"));
    let wanted = |protocol: &str| words(request, &header::UPGRADE).any(|word| word.eq_ignore_ascii_case(protocol));
    if upgrades && wanted("websocket") {
        return web_socket(request, purpose);
    }
    if upgrades && wanted("SPDY/3.1") {
        return spdy(request, purpose);
    }
    Err(ApiError::bad_request("Upgrade request required"))
}

fn web_socket(request: &HeaderMap, purpose: StreamPurpose) -> Result<Handshake, ApiError> {
    let key = request.get(header::SEC_WEBSOCKET_KEY).and_then(|key| key.to_str().ok());
    let key = key.ok_or_else(|| ApiError::bad_request("a WebSocket needs the header Sec-WebSocket-Key"))?;
    let known = purpose.web_socket_protocols();
    let found =
        words(request, &header::SEC_WEBSOCKET_PROTOCOL).find_map(|asked| known.iter().find(|(name, _)| *name == asked));
    let names = known.iter().map(|(name, _)| *name);
    let (name, protocol) = found.ok_or_else(|| unknown(names.collect()))?;
    let hash = digest(&SHA1_FOR_LEGACY_USE_ONLY, format!("{key}{WEB_SOCKET_SALT}").as_bytes());
    let headers = vec![
        (header::CONNECTION, "Upgrade".to_owned()),
        (header::UPGRADE, "websocket".to_owned()),
        (header::SEC_WEBSOCKET_ACCEPT, STANDARD.encode(hash)),
        (header::SEC_WEBSOCKET_PROTOCOL, (*name).to_owned()),
    ];
    Ok(Handshake { protocol: *protocol, headers })
}

fn spdy(request: &HeaderMap, purpose: StreamPurpose) -> Result<Handshake, ApiError> {
    let known = purpose.spdy_protocols();
    let found = words(request, &STREAM_VERSION).find(|asked| known.contains(asked));
    let name = found.ok_or_else(|| unknown(known.to_vec()))?;
    let headers = vec![
        (header::CONNECTION, "Upgrade".to_owned()),
        (header::UPGRADE, "SPDY/3.1".to_owned()),
        (STREAM_VERSION, name.to_owned()),
    ];
    Ok(Handshake { protocol: StreamProtocol::Spdy, headers })
}

fn unknown(known: Vec<&str>) -> ApiError {
    ApiError::bad_request(format!(
        "unable to upgrade: unable to negotiate protocol: server accepts [{}]",
        known.join(" ")
    ))
}

/// The parts of a header between commas, of all its lines.
fn words<'r>(request: &'r HeaderMap, name: &HeaderName) -> impl Iterator<Item = &'r str> {
    let lines = request.get_all(name).into_iter().filter_map(|value| value.to_str().ok());
    lines.flat_map(|line| line.split(',')).map(str::trim).filter(|word| !word.is_empty())
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn request(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        let pairs = pairs.iter();
        pairs.map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value))).collect()
    }

    fn web_socket_for(protocols: &'static str) -> HeaderMap {
        request(&[
            ("connection", "keep-alive, Upgrade"),
            ("upgrade", "websocket"),
            ("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ=="),
            ("sec-websocket-protocol", protocols),
        ])
    }

    fn value<'h>(handshake: &'h Handshake, name: &HeaderName) -> &'h str {
        let found = handshake.headers.iter().find(|(one, _)| one == name);
        found.map_or("", |(_, value)| value)
    }

    #[test]
    fn a_web_socket_is_accepted_with_the_first_protocol_that_is_known() {
        let asked = web_socket_for("v9.channel.k8s.io, v5.channel.k8s.io,v4.channel.k8s.io");

        let agreed = handshake(&asked, StreamPurpose::Exec).unwrap();

        assert_eq!(agreed.protocol, StreamProtocol::Channels);
        assert_eq!(value(&agreed, &header::SEC_WEBSOCKET_PROTOCOL), "v5.channel.k8s.io");
        // The example of RFC 6455.
        assert_eq!(value(&agreed, &header::SEC_WEBSOCKET_ACCEPT), "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
    }

    #[test]
    fn ports_are_forwarded_by_spdy_in_a_web_socket_by_channels_and_by_spdy_alone() {
        let of = |headers: &HeaderMap| handshake(headers, StreamPurpose::Forward).unwrap().protocol;
        let alone = request(&[
            ("connection", "Upgrade"),
            ("upgrade", "SPDY/3.1"),
            ("x-stream-protocol-version", "portforward.k8s.io"),
        ]);

        assert_eq!(of(&web_socket_for("SPDY/3.1+portforward.k8s.io")), StreamProtocol::TunnelledSpdy);
        assert_eq!(of(&web_socket_for("v4.channel.k8s.io")), StreamProtocol::Channels);
        assert_eq!(of(&alone), StreamProtocol::Spdy);
    }

    #[test]
    fn what_asks_for_no_upgrade_or_an_unknown_one_is_told_what_is_known() {
        let message = |headers: &HeaderMap| handshake(headers, StreamPurpose::Exec).unwrap_err().message;

        assert_eq!(message(&request(&[])), "Upgrade request required");
        assert_eq!(message(&request(&[("connection", "upgrade"), ("upgrade", "h2c")])), "Upgrade request required");
        assert!(message(&web_socket_for("graphql")).ends_with("[v5.channel.k8s.io v4.channel.k8s.io]"));
        let old =
            [("connection", "Upgrade"), ("upgrade", "SPDY/3.1"), ("x-stream-protocol-version", "v2.channel.k8s.io")];
        assert!(message(&request(&old)).contains("unable to negotiate protocol"));
    }
}
