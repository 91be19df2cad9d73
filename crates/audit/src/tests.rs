//! The proxy with plain receivers and a tunnel that repeats what it hears.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, UnixListener, UnixStream};
use tokio_util::sync::CancellationToken;

use crate::Settings;
use crate::settings::Target;

const AUTHORITY: &str = "own.invalid:80";
const PATH: &str = "/nobody-knows";

/// Requests that a receiver got: heads and bodies.
type Got = Arc<Mutex<Vec<String>>>;

/// A port where nobody answers yet, and nobody else can.
fn away() -> (u16, TcpSocket) {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    (socket.local_addr().unwrap().port(), socket)
}

/// A receiver that answers with this status.
fn receiver(status: &'static str) -> (u16, Got) {
    let (port, socket) = away();
    (port, receives(status, socket))
}

fn receives(status: &'static str, socket: TcpSocket) -> Got {
    let (listener, got) = (socket.listen(8).unwrap(), Got::default());
    let seen = Arc::clone(&got);
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut text = String::new();
            let mut buffer = [0; 4096];
            while !text.ends_with("END") {
                match stream.read(&mut buffer).await {
                    Ok(length) if length > 0 => text += &String::from_utf8_lossy(&buffer[..length]),
                    _ => break,
                }
            }
            seen.lock().unwrap().push(text);
            let answer = format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
            let _ = stream.write_all(answer.as_bytes()).await;
        }
    });
    got
}

struct Proxy {
    directory: tempfile::TempDir,
    stop: CancellationToken,
    running: tokio::task::JoinHandle<()>,
}

impl Proxy {
    fn start(waits: bool, targets: Vec<Target>) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        let settings = Settings {
            listen: path("egress.sock"),
            tunnel: path("tunnel.sock"),
            authority: AUTHORITY.to_owned(),
            path: PATH.to_owned(),
            waits,
            targets,
        };
        let stop = CancellationToken::new();
        let stopped = stop.clone();
        let running = tokio::spawn(async move { crate::run(&settings, stopped).await.unwrap() });
        Self { directory, stop, running }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    async fn connect(&self, authority: &str) -> (UnixStream, String) {
        let mut stream = eventually(async || UnixStream::connect(self.path("egress.sock")).await.ok()).await;
        let ask = format!("CONNECT {authority} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n");
        stream.write_all(ask.as_bytes()).await.unwrap();
        let mut answer = vec![0; 1024];
        let length = stream.read(&mut answer).await.unwrap();
        (stream, String::from_utf8_lossy(&answer[..length]).into_owned())
    }

    /// Sends records as an API server does; the status of the answer.
    async fn post(&self, records: &str) -> String {
        self.post_at(PATH, records).await
    }

    async fn post_at(&self, path: &str, records: &str) -> String {
        let (mut stream, answer) = self.connect(AUTHORITY).await;
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        let length = records.len();
        let request = format!(
            "POST {path}?timeout=30s HTTP/1.1\r\nHost: x\r\nContent-Length: {length}\r\n\r\n{records}"
        );
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = vec![0; 1024];
        let length = stream.read(&mut answer).await.unwrap();
        let answer = String::from_utf8_lossy(&answer[..length]).into_owned();
        answer.split(' ').nth(1).unwrap_or_default().to_owned()
    }
}

fn target(port: u16, token_file: Option<&Path>) -> Target {
    let token_file = token_file.map(Path::to_owned);
    Target { server: format!("http://127.0.0.1:{port}/in"), certificate_authority: None, token_file }
}

async fn eventually<T>(mut look: impl AsyncFnMut() -> Option<T>) -> T {
    for _ in 0..1000 {
        if let Some(found) = look().await {
            return found;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("it never came");
}

fn count(got: &Got) -> usize {
    got.lock().unwrap().len()
}

#[tokio::test]
async fn what_is_for_others_goes_to_the_tunnel_byte_for_byte() {
    let proxy = Proxy::start(false, vec![]);
    let (_, answer) = proxy.connect("10.0.0.1:443").await;
    assert!(answer.starts_with("HTTP/1.1 503"), "there is no tunnel: {answer}");
    let tunnel = UnixListener::bind(proxy.path("tunnel.sock")).unwrap();
    tokio::spawn(async move {
        let (mut stream, _) = tunnel.accept().await.unwrap();
        let (mut read, mut write) = stream.split();
        tokio::io::copy(&mut read, &mut write).await.unwrap();
    });
    let (mut stream, answer) = proxy.connect("10.0.0.1:443").await;
    assert_eq!(answer, "CONNECT 10.0.0.1:443 HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n");
    stream.write_all(&[0, 255, 13, 10]).await.unwrap();
    stream.shutdown().await.unwrap();
    let mut rest = Vec::new();
    stream.read_to_end(&mut rest).await.unwrap();
    assert_eq!(rest, [0, 255, 13, 10]);
}

#[tokio::test]
async fn a_tenant_s_webhook_with_our_name_finds_nobody_who_speaks_tls() {
    let (port, got) = receiver("200 OK");
    let proxy = Proxy::start(true, vec![target(port, None)]);
    let (mut stream, _) = proxy.connect(AUTHORITY).await;
    stream.write_all(&[0x16, 3, 1, 0, 4, 1, 0, 0, 0]).await.unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await.unwrap();
    assert!(!answer.starts_with(&[0x16]), "{answer:?}");
    // A record that would have come of it would be before this one.
    assert_eq!(proxy.post("records END").await, "200");
    assert_eq!(count(&got), 1);
}

#[tokio::test]
async fn a_redirect_of_a_tenant_s_webhook_sends_no_records() {
    let (port, got) = receiver("200 OK");
    let proxy = Proxy::start(true, vec![target(port, None)]);
    for path in ["/", "/audit", "/nobody-know", "/nobody-knows/more"] {
        assert_eq!(proxy.post_at(path, "forged END").await, "404", "{path}");
    }
    assert_eq!(count(&got), 0);
}

#[tokio::test]
async fn a_receiver_that_is_away_delays_no_other_and_gets_its_records_later() {
    let (one, first) = receiver("200 OK");
    let (free, socket) = away();
    let proxy = Proxy::start(false, vec![target(free, None), target(one, None)]);
    assert_eq!(proxy.post("records 1 END").await, "200");
    eventually(async || (count(&first) == 1).then_some(())).await;
    let second = receives("200 OK", socket);
    eventually(async || (count(&second) == 1).then_some(())).await;
    assert!(second.lock().unwrap()[0].contains("records 1 END"));
    // What is queued at the end is sent.
    assert_eq!(proxy.post("records 2 END").await, "200");
    proxy.stop.cancel();
    proxy.running.await.unwrap();
    assert_eq!((count(&first), count(&second)), (2, 2));
}

#[tokio::test]
async fn who_waits_is_told_of_a_failure_and_a_second_try_goes_where_it_failed() {
    let (one, first) = receiver("200 OK");
    let (free, socket) = away();
    let proxy = Proxy::start(true, vec![target(one, None), target(free, None)]);
    assert_eq!(proxy.post("records END").await, "503");
    assert_eq!(proxy.post("records END").await, "503");
    let second = receives("204 No Content", socket);
    assert_eq!(proxy.post("records END").await, "200");
    assert_eq!((count(&first), count(&second)), (1, 1));
}

#[tokio::test]
async fn a_token_is_read_again_and_without_it_nothing_is_sent() {
    let (port, got) = receiver("200 OK");
    let tokens = tempfile::tempdir().unwrap();
    let file = tokens.path().join("token");
    let proxy = Proxy::start(true, vec![target(port, Some(&file))]);
    assert_eq!(proxy.post("records END").await, "503");
    assert_eq!(count(&got), 0);
    for token in ["first", "second"] {
        std::fs::write(&file, format!("{token}\n")).unwrap();
        assert_eq!(proxy.post("records END").await, "200");
        let last = got.lock().unwrap().last().cloned().unwrap();
        assert!(last.to_lowercase().contains(&format!("authorization: bearer {token}\r\n")), "{last}");
        assert!(last.starts_with("POST /in HTTP/1.1"), "{last}");
    }
}
