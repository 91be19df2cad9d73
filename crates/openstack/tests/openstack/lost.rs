//! Tests at the socket whether a failed request counts as sent.

use std::{net::SocketAddr, time::Duration};

use hangar_openstack::{Error, Limits, NetworkCreate, NetworkId, NetworkQuery, SessionOptions};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpSocket, TcpStream},
};

use crate::fixture::Cloud;

/// What a Neutron does with each connection, after it has read a request.
#[derive(Clone, Copy)]
enum Behaviour {
    Hangs,
    Closes,
    AnswersByHalf,
}

/// A Neutron that never gives a whole answer. The receiver hears of every request that arrived.
async fn neutron(behaviour: Behaviour) -> (SocketAddr, tokio::sync::mpsc::UnboundedReceiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (sender, receiver) = tokio::sync::mpsc::unbounded_channel();
    tokio::spawn(async move {
        let mut kept = Vec::new();
        while let Ok((mut stream, _)) = listener.accept().await {
            sender.send(head(&mut stream).await).ok();
            match behaviour {
                Behaviour::Hangs => kept.push(stream),
                Behaviour::Closes => {}
                Behaviour::AnswersByHalf => {
                    stream
                        .write_all(b"HTTP/1.1 201 Created\r\ncontent-length: 100\r\n\r\n{\"netw")
                        .await
                        .unwrap();
                }
            }
        }
    });
    (address, receiver)
}

async fn head(stream: &mut TcpStream) -> String {
    let mut text = Vec::new();
    let mut buffer = [0; 4096];
    // Requests here are small: head and body come in one or two pieces, and the body ends with a brace.
    loop {
        let count = stream.read(&mut buffer).await.unwrap();
        text.extend_from_slice(&buffer[..count]);
        let text = String::from_utf8_lossy(&text);
        let is_whole =
            if text.starts_with("POST") { text.ends_with('}') } else { text.ends_with("\r\n\r\n") };
        if count == 0 || is_whole {
            return text.lines().next().unwrap_or_default().to_owned();
        }
    }
}

fn body() -> NetworkCreate {
    NetworkCreate { name: "n".to_owned(), ..NetworkCreate::default() }
}

#[tokio::test]
async fn a_connection_that_dies_after_the_request_may_have_done_it() {
    for behaviour in [Behaviour::Closes, Behaviour::AnswersByHalf] {
        let cloud = Cloud::start().await;
        let (address, mut arrived) = neutron(behaviour).await;
        cloud.set_network_url(format!("http://{address}"));
        let error = cloud.session().network().create(&body()).await.unwrap_err();
        assert!(matches!(error, Error::Lost { .. }), "{error}");
        assert!(error.is_lost() && error.is_retryable());
        assert_eq!(arrived.recv().await.unwrap(), "POST /v2.0/networks HTTP/1.1");
        assert!(arrived.try_recv().is_err(), "sent once");
    }
}

#[tokio::test]
async fn no_connection_means_nothing_was_sent() {
    let cloud = Cloud::start().await;
    // Bound and not listening: nobody else can have the port.
    let closed = TcpSocket::new_v4().unwrap();
    closed.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    cloud.set_network_url(format!("http://{}", closed.local_addr().unwrap()));
    let error = cloud.session().network().create(&body()).await.unwrap_err();
    assert!(matches!(error, Error::Unreached { .. }), "{error}");
    assert!(!error.is_lost() && error.is_retryable());
}

#[tokio::test]
async fn a_call_without_an_answer_ends() {
    let cloud = Cloud::start().await;
    let (address, mut arrived) = neutron(Behaviour::Hangs).await;
    cloud.set_network_url(format!("http://{address}"));
    // Long enough to connect and send on a busy machine.
    let limit = Duration::from_secs(1);
    let limits = Limits::default().with_writes_within(limit);
    let session = cloud.session_with(SessionOptions { limits, ..SessionOptions::default() });
    let error = session.network().create(&body()).await.unwrap_err();
    assert!(matches!(error, Error::TimedOut { limit: told, .. } if told == limit), "{error}");
    assert!(error.is_lost());
    assert_eq!(arrived.recv().await.unwrap(), "POST /v2.0/networks HTTP/1.1");
}

#[tokio::test]
async fn a_read_is_repeated_and_nothing_is_ever_lost_by_it() {
    let cloud = Cloud::start().await;
    let (address, mut arrived) = neutron(Behaviour::Closes).await;
    cloud.set_network_url(format!("http://{address}"));
    let error = cloud.session().network().list(&NetworkQuery::default()).await.unwrap_err();
    assert!(matches!(error, Error::Lost { .. }) && !error.is_lost(), "{error}");
    for _ in 0..3 {
        assert_eq!(arrived.recv().await.unwrap(), "GET /v2.0/networks HTTP/1.1");
    }
    assert!(arrived.try_recv().is_err());
}

#[tokio::test]
async fn a_lost_delete_is_lost_too() {
    let cloud = Cloud::start().await;
    let (address, _arrived) = neutron(Behaviour::Closes).await;
    cloud.set_network_url(format!("http://{address}"));
    assert!(cloud.session().network().delete(&NetworkId::from("n")).await.unwrap_err().is_lost());
}
