//! Certificates from files.

use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use hangar_kit::metrics::Metrics;
use hangar_kit::webhook::{CertificateDirectory, CertificateSlot, Error, WebhookServer, Webhooks};
use hangar_pki::{Authority, Certificate, Intent, KeyPairPem, Usage, issue};
use jiff::Timestamp;
use rustls::RootCertStore;
use rustls::pki_types::CertificateDer;
use tokio_util::sync::CancellationToken;

use super::fixture::eventually;

const DAY: Duration = Duration::from_hours(24);

/// A connection of a client that trusts `bundle`, after the handshake.
pub(super) fn connect(
    address: SocketAddr,
    bundle: &str,
) -> Result<rustls::StreamOwned<rustls::ClientConnection, TcpStream>, String> {
    let mut roots = RootCertStore::empty();
    for authority in Certificate::parse_bundle(bundle).map_err(|error| error.to_string())? {
        roots.add(CertificateDer::from(authority.der().to_vec())).map_err(|error| error.to_string())?;
    }
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?
        .with_root_certificates(roots)
        .with_no_client_auth();
    let mut connection = rustls::ClientConnection::new(Arc::new(config), address.ip().into())
        .map_err(|error| error.to_string())?;
    let mut stream = TcpStream::connect(address).map_err(|error| error.to_string())?;
    while connection.is_handshaking() {
        connection.complete_io(&mut stream).map_err(|error| error.to_string())?;
    }
    Ok(rustls::StreamOwned::new(connection, stream))
}

/// The certificate a client gets that trusts `bundle`, or why it hung up.
pub(super) async fn served(address: SocketAddr, bundle: &str) -> Result<Certificate, String> {
    let bundle = bundle.to_owned();
    let handshake = move || {
        let stream = connect(address, &bundle)?;
        let chain = stream.conn.peer_certificates().ok_or("no certificate")?;
        Certificate::from_der(&chain[0]).map_err(|error| error.to_string())
    };
    tokio::task::spawn_blocking(handshake).await.expect("no panic")
}

fn pair(authority: &Authority) -> KeyPairPem {
    let intent = Intent::new("files", Usage::Server, DAY).ip_addresses([[127, 0, 0, 1].into()]);
    issue(authority, &intent, Timestamp::now()).expect("a certificate")
}

#[tokio::test(flavor = "multi_thread")]
async fn files_are_used_as_given_and_again_when_they_change() {
    let directory = tempfile::tempdir().expect("a directory");
    let write = |name: &str, text: &str| std::fs::write(directory.path().join(name), text).expect("written");
    let authority =
        Authority::self_signed(&Intent::authority("files", DAY), Timestamp::now()).expect("an authority");
    let bundle = authority.pair().certificate.clone();
    let (metrics, slot, stop) = (Metrics::new(), CertificateSlot::new(), CancellationToken::new());
    let files = CertificateDirectory::new(directory.path()).every(Duration::from_millis(20));

    let missing = files.follow(&slot, &metrics.certificates, &stop).await.expect_err("nothing there");
    assert!(matches!(&missing, Error::File { path, .. } if path.ends_with("tls.crt")), "{missing}");

    let server = WebhookServer::start(
        ([127, 0, 0, 1], 0).into(),
        Webhooks::new(metrics.webhook.clone()),
        &slot,
        stop.clone(),
    )
    .expect("listening");
    assert!(served(server.address(), &bundle).await.is_err(), "nothing to serve with yet");

    let first = pair(&authority);
    write("tls.crt", &first.certificate);
    write("tls.key", first.key.expose());
    let following = tokio::spawn({
        let (slot, stop) = (slot.clone(), stop.clone());
        async move { files.follow(&slot, &metrics.certificates, &stop).await }
    });
    let expected = |pair: &KeyPairPem| Certificate::parse(&pair.certificate).expect("readable");
    eventually("the first certificate", async || {
        (served(server.address(), &bundle).await.ok()? == expected(&first)).then_some(())
    })
    .await;

    // Half of the new pair must not disturb what is served.
    let second = pair(&authority);
    write("tls.crt", &second.certificate);
    for _ in 0..10 {
        assert_eq!(served(server.address(), &bundle).await.expect("served"), expected(&first));
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    write("tls.key", second.key.expose());
    eventually("the second certificate", async || {
        (served(server.address(), &bundle).await.ok()? == expected(&second)).then_some(())
    })
    .await;

    stop.cancel();
    following.await.expect("no panic").expect("stopped");
    server.stopped().await.expect("stopped");
}
