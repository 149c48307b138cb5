//! What these tests have in common: keys, names, a server with a zone that can be updated, and clients for it.

use std::{future::Future, net::SocketAddr, time::Duration};

use portolan_bind9_wire::{
    DnsClient, DomainName, HmacAlgorithm, HmacKey, RecordData, ResourceRecord, RndcClient, ServerLimits, TypeCode,
    ZoneChange,
};
use portolan_named_fixture::{NamedConfiguration, NamedServer};

pub(crate) const SECRET: &str = "c2VjcmV0LXNlY3JldC1zZWNyZXQtc2VjcmV0LXNlY3I=";
/// A zone as short as one can be.
pub(crate) const SEED: &str = "$TTL 300\n@ SOA ns1 hostmaster 1 3600 600 604800 60\n@ NS ns1\nns1 A 192.0.2.53\n";

pub(crate) fn name(text: &str) -> DomainName {
    DomainName::parse(text).unwrap()
}

pub(crate) fn key(key_name: &str, secret: &str) -> HmacKey {
    HmacKey::new(key_name, HmacAlgorithm::Sha256, secret).unwrap()
}

pub(crate) fn update_key() -> HmacKey {
    key("update", SECRET)
}

pub(crate) fn control_key() -> HmacKey {
    let (name, algorithm, secret) = NamedConfiguration::control_key();
    HmacKey::new(name, algorithm.parse().unwrap(), secret).unwrap()
}

/// A server with the zone `example.com`, which the key `update` may change and fetch.
pub(crate) fn configuration() -> NamedConfiguration {
    NamedConfiguration::default()
        .with_key("update", "hmac-sha256", SECRET)
        .with_options("allow-transfer { key update; };")
        .with_statements("zone \"example.com\" { type primary; file \"example.zone\"; allow-update { key update; }; };")
        .with_file("example.zone", SEED)
        .with_file("seed.zone", SEED)
}

pub(crate) fn server() -> Option<NamedServer> {
    NamedServer::start(configuration())
}

pub(crate) fn rndc(server: &NamedServer) -> RndcClient {
    RndcClient::new(server.control(), control_key(), ServerLimits::default())
}

pub(crate) fn dns(server: &NamedServer) -> DnsClient {
    DnsClient::new(server.dns(), Some(update_key()), ServerLimits::default())
}

/// Limits for servers that do not answer.
pub(crate) fn impatient() -> ServerLimits {
    let step = Duration::from_millis(200);
    ServerLimits {
        connect: step,
        answer: step,
        datagram: step,
        datagrams: 2,
        operation: Duration::from_secs(2),
        ..ServerLimits::default()
    }
}

pub(crate) fn record(owner: &str, kind: TypeCode, text: &str) -> ResourceRecord {
    ResourceRecord { name: name(owner), kind, ttl: 300, data: RecordData::parse(kind, text).unwrap() }
}

pub(crate) fn add(owner: &str, kind: TypeCode, text: &str) -> ZoneChange {
    ZoneChange::Add(record(owner, kind, text))
}

/// The values of a name and a type, as a server answers them, sorted.
pub(crate) async fn values(server: SocketAddr, owner: &str, kind: TypeCode) -> Vec<String> {
    let client = DnsClient::new(server, None, ServerLimits::default());
    let answer = client.query(&name(owner), kind).await.unwrap();
    let mut values: Vec<_> = answer.records.iter().map(|record| record.data.to_text(record.kind)).collect();
    values.sort();
    values
}

/// Asks until it holds; the test fails when it does not within half a minute.
pub(crate) async fn eventually<T, F: Future<Output = Option<T>>>(what: &str, mut look: impl FnMut() -> F) -> T {
    let deadline = tokio::time::Instant::now() + Duration::from_secs(30);
    loop {
        if let Some(found) = look().await {
            return found;
        }
        assert!(tokio::time::Instant::now() < deadline, "it never came to this: {what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}
