//! Connections through a forwarded port.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use portolan_runner::network::forward::Forwards;
use portolan_runner::network::service::Transport;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpSocket, TcpStream};

use crate::support::{in_time, own_address, served, service_name, until};

async fn listener() -> (TcpListener, SocketAddr) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    (listener, address)
}

async fn connected(address: impl Into<SocketAddr>) -> TcpStream {
    let address = address.into();
    until(|| async { TcpStream::connect(address).await.ok() }).await
}

#[tokio::test]
async fn each_side_ends_its_half_and_the_other_goes_on() {
    let (backend, address) = listener().await;
    let (forwards, listen) = (Forwards::new(10), own_address());
    forwards.serve(&service_name(), served(Transport::Tcp, listen, &[address]));
    let mut client = connected(listen).await;
    let (mut server, _) = in_time(backend.accept()).await.unwrap();

    client.write_all(b"question").await.unwrap();
    client.shutdown().await.unwrap();
    let mut asked = String::new();
    in_time(server.read_to_string(&mut asked)).await.unwrap();
    server.write_all(b"answer after the end").await.unwrap();
    drop(server);
    let mut told = String::new();
    in_time(client.read_to_string(&mut told)).await.unwrap();

    assert_eq!((asked.as_str(), told.as_str()), ("question", "answer after the end"));
}

#[tokio::test]
async fn who_reads_slowly_gets_everything_and_slows_the_sender_down() {
    const SENT: usize = 32 * 1024 * 1024;
    let (backend, address) = listener().await;
    let (forwards, listen) = (Forwards::new(10), own_address());
    forwards.serve(&service_name(), served(Transport::Tcp, listen, &[address]));
    let mut client = connected(listen).await;
    let (mut server, _) = in_time(backend.accept()).await.unwrap();

    let mut sent = 0;
    let chunk = vec![7; 64 * 1024];
    // Nobody reads: what is between the two sides is full at some time, and holds far less than all.
    while let Ok(Ok(count)) = tokio::time::timeout(Duration::from_secs(1), server.write(&chunk)).await {
        sent += count;
        assert!(sent < SENT, "the sender is slowed down");
    }
    drop(server);
    let mut received = Vec::new();
    in_time(client.read_to_end(&mut received)).await.unwrap();

    assert_eq!(received.len(), sent);
}

#[tokio::test]
async fn a_backend_that_refuses_is_passed_over() {
    let (gone, refuses) = listener().await;
    drop(gone);
    let (backend, address) = listener().await;
    let (forwards, listen) = (Forwards::new(10), own_address());
    forwards.serve(&service_name(), served(Transport::Tcp, listen, &[refuses, address]));

    for _ in 0..4 {
        let mut client = connected(listen).await;
        client.write_all(b"x").await.unwrap();
        let (mut server, _) = in_time(backend.accept()).await.unwrap();
        assert_eq!(in_time(server.read_u8()).await.unwrap(), b'x');
    }
}

#[tokio::test]
async fn where_nobody_serves_clients_are_refused_and_where_all_refuse_they_are_told() {
    let (gone, refuses) = listener().await;
    drop(gone);
    let (forwards, listen) = (Forwards::new(10), own_address());
    forwards.serve(&service_name(), served(Transport::Tcp, listen, &[refuses]));
    let mut client = connected(listen).await;
    let told = in_time(client.read(&mut [0; 8])).await;
    assert_eq!(told.unwrap_err().kind(), std::io::ErrorKind::ConnectionReset);

    forwards.serve(&service_name(), served(Transport::Tcp, listen, &[]));

    until(|| async { TcpStream::connect(listen).await.is_err().then_some(()) }).await;
    assert_eq!(forwards.troubles(), Vec::<String>::new());
}

#[tokio::test]
async fn a_backend_that_goes_keeps_its_connections_and_gets_no_new_ones() {
    let ((old, old_address), (new, new_address)) = (listener().await, listener().await);
    let (forwards, listen) = (Forwards::new(10), own_address());
    forwards.serve(&service_name(), served(Transport::Tcp, listen, &[old_address]));
    let mut client = connected(listen).await;
    let (mut server, _) = in_time(old.accept()).await.unwrap();

    forwards.serve(&service_name(), served(Transport::Tcp, listen, &[new_address]));
    let _next = connected(listen).await;
    in_time(new.accept()).await.unwrap();
    client.write_all(b"still").await.unwrap();
    let mut still = [0; 5];
    in_time(server.read_exact(&mut still)).await.unwrap();

    assert_eq!(&still, b"still");
}

#[tokio::test]
async fn when_a_service_goes_its_port_closes_and_its_connections_end() {
    let (backend, address) = listener().await;
    let (forwards, listen) = (Forwards::new(10), own_address());
    forwards.serve(&service_name(), served(Transport::Tcp, listen, &[address]));
    let mut client = connected(listen).await;
    let (mut server, _) = in_time(backend.accept()).await.unwrap();

    forwards.serve(&service_name(), Vec::new());

    assert!(in_time(server.read(&mut [0; 8])).await.map_or(true, |count| count == 0));
    assert!(in_time(client.read(&mut [0; 8])).await.map_or(true, |count| count == 0));
    until(|| async { TcpStream::connect(listen).await.is_err().then_some(()) }).await;
}

#[tokio::test]
async fn a_port_that_another_program_has_is_told_and_taken_when_it_is_free() {
    let listen = own_address();
    let other = TcpListener::bind(listen).await.unwrap();
    let (backend, address) = listener().await;
    let forwards = Forwards::new(10);
    forwards.serve(&service_name(), served(Transport::Tcp, listen, &[address]));
    let told = until(|| async { forwards.troubles().pop() }).await;
    assert!(told.contains(&listen.to_string()) && told.contains("another program has it"), "{told}");

    drop(other);

    let _client = connected(listen).await;
    in_time(backend.accept()).await.unwrap();
    assert_eq!(forwards.troubles(), Vec::<String>::new());
}

#[tokio::test]
async fn more_clients_than_there_are_places_wait_until_one_is_free() {
    let (backend, address) = listener().await;
    let (forwards, listen) = (Forwards::new(1), own_address());
    forwards.serve(&service_name(), served(Transport::Tcp, listen, &[address]));
    let first = connected(listen).await;
    let (server, _) = in_time(backend.accept()).await.unwrap();
    let _second = connected(listen).await;
    assert!(tokio::time::timeout(Duration::from_millis(200), backend.accept()).await.is_err());

    drop((first, server));

    in_time(backend.accept()).await.unwrap();
}

#[tokio::test]
async fn with_session_affinity_each_client_comes_back_to_its_backend_and_clients_are_shared_out() {
    let ((one, one_address), (two, two_address)) = (listener().await, listener().await);
    let (forwards, listen) = (Forwards::new(10), own_address());
    let mut ports = served(Transport::Tcp, listen, &[one_address, two_address]);
    ports[0].affinity = Some(Duration::from_secs(600));
    forwards.serve(&service_name(), ports);
    drop(until(|| async { TcpStream::connect(listen).await.ok() }).await);
    let next = || async {
        tokio::select! {
            accepted = one.accept() => accepted.map(|(stream, _)| ("one", stream)),
            accepted = two.accept() => accepted.map(|(stream, _)| ("two", stream)),
        }
    };
    // That of the look.
    in_time(next()).await.unwrap();

    let mut backends = Vec::new();
    for last in [5, 6] {
        for _ in 0..3 {
            let client = TcpSocket::new_v4().unwrap();
            client.bind(SocketAddr::from((Ipv4Addr::new(127, 0, 0, last), 0))).unwrap();
            let _client = in_time(client.connect(listen.into())).await.unwrap();
            backends.push(in_time(next()).await.unwrap().0);
        }
    }

    assert!(backends[..3] == [backends[0]; 3] && backends[3..] == [backends[3]; 3], "{backends:?}");
    assert_ne!(backends[0], backends[3], "{backends:?}");
}
