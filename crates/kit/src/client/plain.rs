//! One GET over plain HTTP of a server that is not trusted. Nothing of ours is sent, no proxy is asked, no redirect is
//! followed, and the answer is small and comes soon, or there is none.

use std::fmt::Display;
use std::net::SocketAddr;
use std::time::Duration;

use hangar_plan::flow::Unknown;
use http_body_util::{BodyExt as _, Empty, Limited};
use hyper::body::Bytes;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::task::JoinSet;

/// From the connection to the last byte.
const TIME: Duration = Duration::from_secs(3);
/// Bytes of a body.
const BODY: usize = 4 << 10;
/// Bytes of all headers; hyper takes no less.
const HEAD: usize = 8 << 10;

/// The body of the answer, whatever its status.
pub async fn get_plain(address: SocketAddr, path: &str) -> Result<Bytes, Unknown> {
    let told = match tokio::time::timeout(TIME, exchange(address, path)).await {
        Ok(told) => told,
        Err(_) => Err(format!("no answer within {} s", TIME.as_secs())),
    };
    told.map_err(|why| Unknown::new(format!("http://{address}{path}: {why}")))
}

async fn exchange(address: SocketAddr, path: &str) -> Result<Bytes, String> {
    let stream = TcpStream::connect(address).await.map_err(text)?;
    let (mut sender, connection) =
        http1::Builder::new().max_buf_size(HEAD).handshake(TokioIo::new(stream)).await.map_err(text)?;
    // Ends with this call.
    let mut running = JoinSet::new();
    running.spawn(connection);
    let request = http::Request::get(path).header(http::header::HOST, address.to_string());
    let request = request.body(Empty::<Bytes>::new()).map_err(text)?;
    let answer = sender.send_request(request).await.map_err(text)?;
    let body = Limited::new(answer.into_body(), BODY).collect().await.map_err(text)?;
    Ok(body.to_bytes())
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

    /// A listener that accepts nobody: the kernel does.
    #[tokio::test]
    async fn what_does_not_come_is_not_waited_for() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let answer = get_plain(listener.local_addr().unwrap(), "/health").await;
        assert!(answer.unwrap_err().why.ends_with("no answer within 3 s"));
    }
}
