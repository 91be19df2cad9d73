//! A server with TLS in a network of a tenant, as webhooks and aggregated APIs are.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;

use hangar_machine::net::Netns;
use hangar_pki::KeyPairPem;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use serde_json::{Value, json};

/// A request with the JSON document in it, if it has one.
pub(crate) struct Request {
    pub(crate) path: String,
    pub(crate) body: Value,
}

/// What it is answered with; nothing means that there is no such thing.
type Answer = fn(&Request) -> Option<Value>;

/// Answers from now on, one request a connection.
pub(crate) fn serve(network: &Netns, address: SocketAddr, pair: &KeyPairPem, answer: Answer) {
    let certificate = CertificateDer::from_pem_slice(pair.certificate.as_bytes()).unwrap();
    let key = PrivateKeyDer::from_pem_slice(pair.key.expose().as_bytes()).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let settings = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)
        .unwrap();
    let settings = Arc::new(settings);
    let listener = network.listen_tcp(address).unwrap();
    std::thread::spawn(move || {
        for connection in listener.incoming().flatten() {
            let settings = settings.clone();
            // The API server sees a connection that ends, and says so.
            std::thread::spawn(move || exchange(settings, connection, answer));
        }
    });
}

/// The review of a webhook, answered.
pub(crate) fn verdict(request: &Request, allowed: bool, message: &str) -> Value {
    json!({
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "response": {
            "uid": request.body["request"]["uid"], "allowed": allowed, "status": {"message": message},
        },
    })
}

/// A webhook that the API server must ask before a ConfigMap is made in the namespace `default`.
pub(crate) fn webhook(name: &str, client: &Value) -> Value {
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": name},
        "webhooks": [{
            "name": name,
            "admissionReviewVersions": ["v1"],
            "clientConfig": client,
            "failurePolicy": "Fail",
            "matchPolicy": "Exact",
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "default"}},
            "rules": [{
                "apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"],
            }],
            "sideEffects": "None",
            "timeoutSeconds": 5,
        }],
    })
}

fn exchange(settings: Arc<rustls::ServerConfig>, connection: TcpStream, answer: Answer) -> io::Result<()> {
    let session = rustls::ServerConnection::new(settings).map_err(io::Error::other)?;
    let mut stream = rustls::StreamOwned::new(session, connection);
    let request = read(&mut stream)?;
    let (status, body) = match answer(&request) {
        Some(body) => ("200 OK", body.to_string()),
        None => ("404 Not Found", String::new()),
    };
    write!(
        stream,
        "HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    )?;
    stream.conn.send_close_notify();
    stream.flush()
}

fn read(stream: &mut impl Read) -> io::Result<Request> {
    let mut bytes = Vec::new();
    let mut part = [0; 4096];
    loop {
        let text = String::from_utf8_lossy(&bytes);
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.lines().find_map(|line| {
                let (name, value) = line.split_once(':')?;
                name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse::<usize>().ok())?
            });
            if body.len() >= length.unwrap_or_default() {
                let path = head.split(' ').nth(1).unwrap_or_default().split('?').next().unwrap_or_default();
                let body = serde_json::from_str(body).unwrap_or_default();
                return Ok(Request { path: path.to_owned(), body });
            }
        }
        let count = stream.read(&mut part)?;
        if count == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        bytes.extend_from_slice(&part[..count]);
    }
}
