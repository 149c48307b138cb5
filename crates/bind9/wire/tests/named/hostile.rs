//! Servers that hang, reset, answer rubbish, answer slowly or too much: an operation ends in its time with a class, and nobody else
//! waits for it.

use std::{future::Future, net::SocketAddr, sync::Arc, time::Duration};

use portolan_bind9_wire::{
    DnsClient, DnsError, RndcClient, RndcError, ServerLimits, TransferBounds, TransportFault, TypeCode, ZoneUpdate,
};
use portolan_core::Class;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream, UdpSocket},
    time::Instant,
};

use crate::support::{add, control_key, dns, eventually, impatient, name, server, update_key};

/// A server that does one thing with every connection.
async fn doing<F: Future<Output = ()> + Send + 'static>(what: impl Fn(TcpStream) -> F + Send + 'static) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(what(stream));
        }
    });
    address
}

async fn hang(mut stream: TcpStream) {
    let mut buffer = [0; 1_024];
    while stream.read(&mut buffer).await.is_ok_and(|read| read > 0) {}
}

async fn reset(stream: TcpStream) {
    drop(stream);
}

/// Bytes that are none of ours, whatever is asked.
async fn rubbish(mut stream: TcpStream) {
    let mut buffer = [0; 1_024];
    let _ = stream.read(&mut buffer).await;
    let _ = stream.write_all(&[0, 9, 1, 2, 3, 4, 5, 6, 7, 8, 9, 0, 0, 0]).await;
    hang(stream).await;
}

/// A length, then a byte at a time.
async fn dribble(mut stream: TcpStream) {
    let _ = stream.write_all(&[0, 0, 0xff, 0xff]).await;
    while stream.write_all(&[0]).await.is_ok() {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// A length that nobody could store.
async fn boast(mut stream: TcpStream) {
    let _ = stream.write_all(&[0xff; 4]).await;
    hang(stream).await;
}

fn update() -> ZoneUpdate {
    ZoneUpdate::new(name("example.com"), vec![add("www.example.com", TypeCode::A, "192.0.2.1")])
}

#[tokio::test]
async fn whatever_a_server_does_a_command_ends_in_its_time() {
    for (what, address) in [
        ("hang", doing(hang).await),
        ("reset", doing(reset).await),
        ("rubbish", doing(rubbish).await),
        ("dribble", doing(dribble).await),
        ("boast", doing(boast).await),
        ("nobody", "127.0.0.1:1".parse().unwrap()),
    ] {
        let rndc = RndcClient::new(address, control_key(), impatient());
        let started = Instant::now();
        let error = rndc.status().await.unwrap_err();
        assert!(started.elapsed() < Duration::from_secs(2), "{what} took {:?}", started.elapsed());
        assert!(error.to_string().starts_with(&format!("status at {address}")), "{error}");
        match what {
            "reset" => assert!(matches!(error, RndcError::KeyRefused { .. }), "{error}"),
            "boast" => {
                assert!(matches!(error, RndcError::Transport { fault: TransportFault::TooMuch(_), .. }), "{error}");
            }
            _ => assert_eq!(error.class(), Class::Transient, "{what}: {error}"),
        }
    }
}

#[tokio::test]
async fn whatever_a_server_does_updates_and_transfers_end_in_their_time() {
    for (what, address) in [
        ("hang", doing(hang).await),
        ("reset", doing(reset).await),
        ("rubbish", doing(rubbish).await),
        ("dribble", doing(dribble).await),
        ("nobody", "127.0.0.1:1".parse().unwrap()),
    ] {
        let dns = DnsClient::new(address, Some(update_key()), impatient());
        let started = Instant::now();
        let updates = dns.update_all(&[update(), update(), update()]).await;
        assert_eq!(updates.len(), 3);
        for error in updates.into_iter().map(Result::unwrap_err) {
            assert!(matches!(error, DnsError::Transport { .. }), "{what}: {error}");
        }
        let error = dns.contents(&name("example.com"), TransferBounds::default()).await.unwrap_err();
        assert!(matches!(error, DnsError::Transport { .. }), "{what}: {error}");
        assert!(started.elapsed() < Duration::from_secs(3), "{what} took {:?}", started.elapsed());
    }
}

#[tokio::test]
async fn a_zone_without_an_end_is_left_in_time() {
    // One message after another without the record that ends it, unsigned.
    let address = doing(|mut stream: TcpStream| async move {
        let mut length = [0; 2];
        let Ok(_) = stream.read_exact(&mut length).await else { return };
        let mut request = vec![0; usize::from(u16::from_be_bytes(length))];
        let Ok(_) = stream.read_exact(&mut request).await else { return };
        let mut first = vec![request[0], request[1], 0x84, 0, 0, 0, 0, 1, 0, 0, 0, 0];
        first.extend(
            b"\x07example\x03com\0\0\x06\0\x01\0\0\0\x3c\0\x16\0\0\0\0\0\x01\0\0\0\x01\0\0\0\x01\0\0\0\x01\0\0\0\x01",
        );
        let mut others = vec![request[0], request[1], 0x84, 0, 0, 0, 0, 1, 0, 0, 0, 0];
        others.extend(b"\x07example\x03com\0\0\x01\0\x01\0\0\0\x3c\0\x04\x7f\0\0\x01");
        let framed = |message: &[u8]| [&u16::try_from(message.len()).unwrap().to_be_bytes()[..], message].concat();
        let _ = stream.write_all(&framed(&first)).await;
        while stream.write_all(&framed(&others)).await.is_ok() {}
    })
    .await;
    let dns = DnsClient::new(address, None, ServerLimits::default());

    let bounds = TransferBounds { records: 5_000, ..TransferBounds::default() };
    let error = dns.contents(&name("example.com"), bounds).await.unwrap_err();
    assert!(error.to_string().contains("more records than are taken"), "{error}");
    let bounds = TransferBounds { time: Duration::from_millis(300), ..TransferBounds::default() };
    let error = dns.contents(&name("example.com"), bounds).await.unwrap_err();
    assert!(error.to_string().contains("no answer within 300ms"), "{error}");
}

#[tokio::test]
async fn datagrams_that_nobody_asked_for_are_not_looked_at() {
    let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let address = socket.local_addr().unwrap();
    tokio::spawn(async move {
        let mut buffer = [0; 1_024];
        while let Ok((length, from)) = socket.recv_from(&mut buffer).await {
            // Another id, then rubbish with the right one: only the second is an answer at all.
            let mut other = buffer[..length].to_vec();
            other[0] ^= 0xff;
            let _ = socket.send_to(&other, from).await;
            let _ = socket.send_to(&buffer[..2], from).await;
        }
    });
    let dns = DnsClient::new(address, None, impatient());

    let error = dns.soa(&name("example.com")).await.unwrap_err();

    assert!(matches!(error, DnsError::Transport { fault: TransportFault::Rubbish(_), .. }), "{error}");
}

#[tokio::test]
async fn a_server_that_stands_still_holds_up_nobody_else_and_gathers_no_crowd() {
    let (Some(stuck), Some(well)) = (server(), server()) else { return };
    let limits = ServerLimits { under_way: 2, waiting: 10, ..impatient() };
    let slow = Arc::new(DnsClient::new(stuck.dns(), Some(update_key()), limits));
    let rndc = Arc::new(RndcClient::new(stuck.control(), control_key(), limits));
    slow.update(&update()).await.unwrap();
    rndc.status().await.unwrap();
    stuck.pause();

    let mut crowd = tokio::task::JoinSet::new();
    for _ in 0..100 {
        let (slow, rndc) = (Arc::clone(&slow), Arc::clone(&rndc));
        crowd.spawn(async move {
            (slow.update(&update()).await.unwrap_err().to_string(), rndc.status().await.unwrap_err().to_string())
        });
    }
    let started = Instant::now();
    dns(&well).update(&update()).await.unwrap();
    assert!(started.elapsed() < Duration::from_secs(2), "{:?}", started.elapsed());
    let said = crowd.join_all().await;

    assert!(said.iter().filter(|(update, _)| update.contains("so much to do")).count() >= 88, "{said:?}");
    assert!(said.iter().any(|(update, _)| update.contains("no answer within")), "{said:?}");
    stuck.resume();
    eventually("it takes updates again", || async { slow.update(&update()).await.ok() }).await;
    eventually("it takes commands again", || async { rndc.status().await.ok() }).await;
}
