//! Tests of certificates: a cloud's own authority, an unknown one, and `verify: false`.

use std::{net::SocketAddr, time::Duration};

use hangar_openstack::{CloudConfig, Error, Session, SessionOptions};
use hangar_pki::{Authority, Intent, Usage};

/// A Keystone behind TLS, with a certificate of this authority. It says 503 to everything: that much was trusted.
async fn keystone(authority: &Authority) -> SocketAddr {
    let now = jiff::Timestamp::now();
    let intent = Intent::new("keystone", Usage::Server, Duration::from_secs(3600))
        .ip_addresses(["127.0.0.1".parse().unwrap()]);
    let pair = hangar_pki::issue(authority, &intent, now).unwrap();
    rustls::crypto::aws_lc_rs::default_provider().install_default().ok();
    let tls = axum_server::tls_rustls::RustlsConfig::from_pem(
        pair.certificate.into_bytes(),
        pair.key.expose().as_bytes().to_vec(),
    )
    .await
    .unwrap();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let address = listener.local_addr().unwrap();
    let router = axum::Router::new().fallback(|| async { axum::http::StatusCode::FORBIDDEN });
    let server = axum_server::from_tcp_rustls(listener, tls).unwrap();
    tokio::spawn(server.serve(router.into_make_service()));
    address
}

fn authority() -> Authority {
    Authority::self_signed(&Intent::authority("cloud", Duration::from_secs(3600)), jiff::Timestamp::now())
        .unwrap()
}

fn config(address: SocketAddr, rest: &str) -> CloudConfig {
    let yaml = format!("clouds: {{c: {{auth: {{auth_url: 'https://{address}', token: t}}{rest}}}}}");
    CloudConfig::from_yaml(yaml.as_bytes(), "c").unwrap()
}

async fn outcome(config: CloudConfig) -> Error {
    Session::new(config, SessionOptions::default()).unwrap().authenticate().await.unwrap_err()
}

#[tokio::test]
async fn a_clouds_own_authority_is_trusted_when_given() {
    let authority = authority();
    let address = keystone(&authority).await;
    let stranger = outcome(config(address, "")).await;
    assert!(
        stranger.category() == "CloudUnreachable" && stranger.to_string().contains("UnknownIssuer"),
        "{stranger}"
    );
    let pem = authority.certificate().to_pem();
    assert_eq!(outcome(config(address, "").with_cacert(pem).unwrap()).await.category(), "Forbidden");
    let other = self::authority().certificate().to_pem();
    let outcome_of_other = outcome(config(address, "").with_cacert(other).unwrap()).await;
    assert_eq!(outcome_of_other.category(), "CloudUnreachable");
    assert_eq!(outcome(config(address, ", verify: false")).await.category(), "Forbidden");
}
