//! Datagrams through a forwarded port.

use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::time::Duration;

use portolan_runner::network::forward::Forwards;
use portolan_runner::network::service::Transport;
use tokio::net::UdpSocket;

use crate::support::{in_time, own_address, served, service_name, until};

async fn socket() -> (UdpSocket, SocketAddr) {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let address = socket.local_addr().unwrap();
    (socket, address)
}

/// A client of a port that is open.
async fn client(forwards: &Forwards, listen: SocketAddrV4, backends: &[SocketAddr]) -> UdpSocket {
    forwards.serve(&service_name(), served(Transport::Udp, listen, backends));
    // It is open as soon as nobody else can have it.
    until(|| async { UdpSocket::bind(listen).await.is_err().then_some(()) }).await;
    let (client, _) = socket().await;
    client.connect(listen).await.unwrap();
    client
}

async fn received(socket: &UdpSocket) -> (String, SocketAddr) {
    let mut bytes = [0; 1024];
    let (length, from) = in_time(socket.recv_from(&mut bytes)).await.unwrap();
    (String::from_utf8_lossy(&bytes[..length]).into_owned(), from)
}

#[tokio::test]
async fn a_client_stays_with_its_backend_and_is_answered_from_where_it_asked() {
    let ((one, one_address), (two, two_address)) = (socket().await, socket().await);
    let (forwards, listen) = (Forwards::new(10), own_address());
    let client = client(&forwards, listen, &[one_address, two_address]).await;
    for text in ["a", "b", "c"] {
        client.send(text.as_bytes()).await.unwrap();
    }

    let asked = |socket: UdpSocket| async move {
        let mut texts = Vec::new();
        let mut bytes = [0; 16];
        while let Ok(Ok((length, from))) =
            tokio::time::timeout(Duration::from_millis(500), socket.recv_from(&mut bytes)).await
        {
            texts.push(String::from_utf8_lossy(&bytes[..length]).into_owned());
            socket.send_to(b"answer", from).await.unwrap();
        }
        texts
    };
    let (first, second) = tokio::join!(asked(one), asked(two));

    let all = [first, second];
    assert!(all.contains(&vec!["a".to_owned(), "b".to_owned(), "c".to_owned()]), "{all:?}");
    for _ in 0..3 {
        assert_eq!(received(&client).await, ("answer".to_owned(), listen.into()));
    }
}

#[tokio::test]
async fn an_answer_that_is_still_to_come_comes_after_its_backend_is_gone_from_the_service() {
    let ((old, old_address), (new, new_address)) = (socket().await, socket().await);
    let (forwards, listen) = (Forwards::new(10), own_address());
    let client = client(&forwards, listen, &[old_address]).await;
    client.send(b"first").await.unwrap();
    let (_, from) = received(&old).await;

    forwards.serve(&service_name(), served(Transport::Udp, listen, &[new_address]));
    until(|| async {
        client.send(b"second").await.unwrap();
        let mut bytes = [0; 16];
        tokio::time::timeout(Duration::from_millis(100), new.recv_from(&mut bytes)).await.ok()
    })
    .await
    .unwrap();
    old.send_to(b"late", from).await.unwrap();

    assert_eq!(received(&client).await.0, "late");
}

#[tokio::test]
async fn a_backend_whose_port_is_closed_is_left_for_another() {
    let (gone, closed) = socket().await;
    drop(gone);
    let (backend, address) = socket().await;
    let (forwards, listen) = (Forwards::new(10), own_address());
    let client = client(&forwards, listen, &[closed, address]).await;

    let asked = until(|| async {
        client.send(b"x").await.unwrap();
        let mut bytes = [0; 16];
        tokio::time::timeout(Duration::from_millis(100), backend.recv_from(&mut bytes)).await.ok()
    })
    .await
    .unwrap();

    backend.send_to(b"answer", asked.1).await.unwrap();
    assert_eq!(received(&client).await.0, "answer");
}

#[tokio::test]
async fn more_clients_than_there_are_places_take_those_of_the_idlest() {
    let (backend, address) = socket().await;
    let (forwards, listen) = (Forwards::new(4), own_address());
    let mut clients = Vec::new();
    for number in 0..12 {
        let client = client(&forwards, listen, &[address]).await;
        client.send(format!("{number}").as_bytes()).await.unwrap();
        let (text, from) = received(&backend).await;
        assert_eq!(text, number.to_string());
        backend.send_to(text.as_bytes(), from).await.unwrap();
        assert_eq!(received(&client).await.0, text);
        clients.push(client);
    }
}

#[tokio::test]
async fn a_port_that_closes_is_free_at_once() {
    let (_backend, address) = socket().await;
    let (forwards, listen) = (Forwards::new(4), own_address());
    client(&forwards, listen, &[address]).await;

    forwards.close();

    until(|| async { UdpSocket::bind(listen).await.ok() }).await;
}
