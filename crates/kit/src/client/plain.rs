//! One GET over plain HTTP of a server that is not trusted. Nothing of ours is sent, no proxy is asked, no redirect is
//! followed, and the answer is small and comes soon, or there is none. Of a longer one lines are looked for: nothing is
//! kept of it, and the connection ends with the last line that matters.

use std::fmt::Display;
use std::net::SocketAddr;
use std::time::Duration;

use hangar_plan::flow::Unknown;
use http_body_util::{BodyExt as _, Empty, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::task::JoinSet;

/// From the connection to the last byte.
const TIME: Duration = Duration::from_secs(3);
/// Bytes of a body.
const BODY: usize = 4 << 10;
/// Bytes of a page that is searched.
const PAGE: usize = 1 << 20;
/// Bytes of a line that is looked for; longer ones are passed over.
const LINE: usize = 1 << 10;
/// Bytes of all headers; hyper takes no less.
const HEAD: usize = 8 << 10;

/// The body of the answer, whatever its status.
pub async fn get_plain(address: SocketAddr, path: &str) -> Result<Bytes, Unknown> {
    let whole = async |answer: Incoming| {
        let body = Limited::new(answer, BODY).collect().await.map_err(text)?;
        Ok(body.to_bytes())
    };
    within(address, path, exchange(address, path, whole)).await
}

/// What is found first in the lines of the answer, whatever its status; nothing if none has it.
pub async fn find_plain<T>(
    address: SocketAddr,
    path: &str,
    find: impl FnMut(&str) -> Option<T>,
) -> Result<Option<T>, Unknown> {
    let searched = async |answer: Incoming| search(Limited::new(answer, PAGE), find).await;
    within(address, path, exchange(address, path, searched)).await
}

async fn within<T>(
    address: SocketAddr,
    path: &str,
    asked: impl Future<Output = Result<T, String>>,
) -> Result<T, Unknown> {
    let told = match tokio::time::timeout(TIME, asked).await {
        Ok(told) => told,
        Err(_) => Err(format!("no answer within {} s", TIME.as_secs())),
    };
    told.map_err(|why| Unknown::new(format!("http://{address}{path}: {why}")))
}

async fn search<T>(
    mut body: Limited<Incoming>,
    mut find: impl FnMut(&str) -> Option<T>,
) -> Result<Option<T>, String> {
    let mut line: Vec<u8> = Vec::new();
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame.map_err(text)?.into_data() else { continue };
        for part in data.split_inclusive(|byte| *byte == b'\n') {
            // One byte too many is enough to know that it is too long.
            let room = (LINE + 1).saturating_sub(line.len());
            line.extend(part.iter().take(room));
            if part.ends_with(b"\n") {
                let whole = std::mem::take(&mut line);
                let found = str::from_utf8(&whole).ok().filter(|_| whole.len() <= LINE);
                if let Some(found) = found.and_then(|line| find(line.trim_end())) {
                    return Ok(Some(found));
                }
            }
        }
    }
    Ok(None)
}

async fn exchange<T>(
    address: SocketAddr,
    path: &str,
    read: impl AsyncFnOnce(Incoming) -> Result<T, String>,
) -> Result<T, String> {
    let stream = TcpStream::connect(address).await.map_err(text)?;
    let (mut sender, connection) =
        http1::Builder::new().max_buf_size(HEAD).handshake(TokioIo::new(stream)).await.map_err(text)?;
    // Ends with this call.
    let mut running = JoinSet::new();
    running.spawn(connection);
    let request = http::Request::get(path).header(http::header::HOST, address.to_string());
    let request = request.body(Empty::<Bytes>::new()).map_err(text)?;
    let answer = sender.send_request(request).await.map_err(text)?;
    read(answer.into_body()).await
}

fn text(error: impl Display) -> String {
    error.to_string()
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;

    use super::*;

    /// What is made of a server that sends this, and more of the same where it is endless, until nobody listens.
    async fn asked(start: &'static str, more: Option<&'static str>) -> Result<Bytes, Unknown> {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let server = tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut request = [0; 1024];
            let length = stream.read(&mut request).await.unwrap();
            stream.write_all(start.as_bytes()).await.unwrap();
            while let Some(more) = more
                && stream.write_all(more.as_bytes()).await.is_ok()
            {}
            String::from_utf8(request[..length].to_vec()).unwrap()
        });
        let answer = get_plain(address, "/health").await;
        let request = server.await.unwrap();
        assert_eq!(request.to_lowercase(), format!("get /health http/1.1\r\nhost: {address}\r\n\r\n"));
        answer
    }

    #[tokio::test]
    async fn an_answer_is_its_body_whatever_its_status() {
        let answer = asked("HTTP/1.1 503 No\r\nContent-Length: 2\r\n\r\n{}", None).await;
        assert_eq!(answer, Ok(Bytes::from("{}")));
        // Nobody follows it: the listener took one connection.
        let elsewhere = "HTTP/1.1 302 Found\r\nLocation: /other\r\nContent-Length: 0\r\n\r\n";
        assert_eq!(asked(elsewhere, None).await, Ok(Bytes::new()));
    }

    #[tokio::test]
    async fn what_is_too_large_is_no_answer() {
        let body = asked("HTTP/1.1 200 OK\r\n\r\n", Some("more and more and more")).await;
        assert!(body.unwrap_err().why.contains("length limit exceeded"));
        let head = asked("HTTP/1.1 200 OK\r\nX: ", Some("more and more and more")).await;
        assert!(head.unwrap_err().why.contains("too large"));
        asked("SSH-2.0-OpenSSH\r\n", None).await.unwrap_err();
    }

    #[tokio::test]
    async fn a_line_is_found_in_a_page_that_is_not_read_to_its_end() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let serve = async |start: String, more: &str| {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut request = [0; 1024];
            assert_ne!(stream.read(&mut request).await.unwrap(), 0);
            let _ = stream.write_all(format!("HTTP/1.1 200 OK\r\n\r\n{start}").as_bytes()).await;
            while !more.is_empty() && stream.write_all(more.as_bytes()).await.is_ok() {}
        };
        let find = |line: &str| line.strip_prefix("wanted ").map(str::to_owned);
        let long = format!("{} \nwanted 7\nwanted 8\n", "x".repeat(4096));
        for (start, more, expected) in [
            (long.as_str(), "endless\n", Ok(Some("7".to_owned()))),
            ("wan\nwanted", "", Ok(None)),
            ("", "endless\n", Err(())),
            ("", "endless", Err(())),
        ] {
            let asked = find_plain(address, "/metrics", find);
            let (told, ()) = tokio::join!(asked, serve(start.to_owned(), more));
            assert_eq!(told.map_err(drop), expected, "{more}");
        }
    }

    /// A listener that accepts nobody: the kernel does.
    #[tokio::test]
    async fn what_does_not_come_is_not_waited_for() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let answer = get_plain(listener.local_addr().unwrap(), "/health").await;
        assert!(answer.unwrap_err().why.ends_with("no answer within 3 s"));
    }
}
