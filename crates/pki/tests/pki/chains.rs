//! Certificate chains, verified as a TLS peer does.

use std::sync::Arc;
use std::time::Duration;

use hangar_pki::{Algorithm, Authority, Certificate, Intent, Usage, issue};
use jiff::Timestamp;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::ServerCertVerifier;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::WebPkiClientVerifier;
use rustls::{CertificateError, RootCertStore};

use crate::{DAY, authority, now};

fn roots(authority: &Authority) -> Arc<RootCertStore> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from(authority.certificate().der().to_vec())).expect("a trust anchor");
    Arc::new(roots)
}

fn unix(moment: Timestamp) -> UnixTime {
    UnixTime::since_unix_epoch(Duration::from_secs(moment.as_second().cast_unsigned()))
}

fn accept_server(
    authority: &Authority,
    certificate: &Certificate,
    name: &str,
    moment: Timestamp,
) -> Result<(), rustls::Error> {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let verifier =
        WebPkiServerVerifier::builder_with_provider(roots(authority), provider).build().expect("a verifier");
    verifier
        .verify_server_cert(
            &CertificateDer::from(certificate.der()),
            &[],
            &ServerName::try_from(name.to_owned()).expect("a server name"),
            &[],
            unix(moment),
        )
        .map(|_| ())
}

fn accept_client(
    authority: &Authority,
    certificate: &Certificate,
    moment: Timestamp,
) -> Result<(), rustls::Error> {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let verifier =
        WebPkiClientVerifier::builder_with_provider(roots(authority), provider).build().expect("a verifier");
    verifier.verify_client_cert(&CertificateDer::from(certificate.der()), &[], unix(moment)).map(|_| ())
}

fn server_intent(algorithm: Algorithm) -> Intent {
    Intent::new("kube-apiserver", Usage::Server, 365 * DAY)
        .dns_names(["kubernetes.default.svc", "*.clusters.example.test"])
        .ip_addresses(["10.96.0.1".parse().expect("an address"), "fd00::1".parse().expect("an address")])
        .algorithm(algorithm)
}

fn minted(authority: &Authority, intent: &Intent) -> Certificate {
    Certificate::parse(&issue(authority, intent, now()).expect("a certificate").certificate)
        .expect("readable")
}

#[test]
fn a_server_certificate_is_accepted_for_each_of_its_names() {
    for algorithm in [Algorithm::EcdsaP256, Algorithm::Rsa2048] {
        let authority = authority("kubernetes");
        let certificate = minted(&authority, &server_intent(algorithm));
        for name in ["kubernetes.default.svc", "a.clusters.example.test", "10.96.0.1", "fd00::1"] {
            accept_server(&authority, &certificate, name, now())
                .unwrap_or_else(|error| panic!("{algorithm:?} {name}: {error}"));
        }
        for name in ["kubernetes", "a.b.clusters.example.test", "10.96.0.2", "fd00::2"] {
            let refusal = accept_server(&authority, &certificate, name, now()).expect_err(name);
            assert!(
                matches!(
                    refusal,
                    rustls::Error::InvalidCertificate(CertificateError::NotValidForNameContext { .. })
                ),
                "{name}: {refusal}"
            );
        }
    }
}

#[test]
fn another_authority_of_the_same_name_is_refused() {
    let (ours, other) = (authority("kubernetes"), authority("kubernetes"));
    let certificate = minted(&ours, &server_intent(Algorithm::EcdsaP256));
    assert!(accept_server(&ours, &certificate, "kubernetes.default.svc", now()).is_ok());
    let refusal = accept_server(&other, &certificate, "kubernetes.default.svc", now()).expect_err("refused");
    assert!(
        matches!(
            refusal,
            rustls::Error::InvalidCertificate(
                CertificateError::BadSignature | CertificateError::UnknownIssuer
            )
        ),
        "{refusal}"
    );
    assert!(certificate.is_signed_by(ours.certificate()));
    assert!(!certificate.is_signed_by(other.certificate()));
}

#[test]
fn usages_are_separate() {
    let authority = authority("etcd-ca");
    let with = |usage| {
        minted(
            &authority,
            &Intent::new("member", usage, DAY).dns_names(["member.test"]).organizations(["etcd"]),
        )
    };
    let server =
        |certificate: &Certificate| accept_server(&authority, certificate, "member.test", now()).is_ok();
    let client = |certificate: &Certificate| accept_client(&authority, certificate, now()).is_ok();

    let (only_server, only_client, both) =
        (with(Usage::Server), with(Usage::Client), with(Usage::ServerAndClient));
    assert_eq!((server(&only_server), client(&only_server)), (true, false));
    assert_eq!((server(&only_client), client(&only_client)), (false, true));
    assert_eq!((server(&both), client(&both)), (true, true));
}

#[test]
fn validity_ends_when_the_lifetime_does_and_starts_a_little_earlier() {
    let authority = authority("kubernetes");
    let certificate = minted(&authority, &server_intent(Algorithm::EcdsaP256));
    let at = |moment: Timestamp| accept_server(&authority, &certificate, "kubernetes.default.svc", moment);
    let minutes = |count: i64| jiff::SignedDuration::from_mins(count);
    let end = now() + 365 * DAY;

    assert!(at(now() - minutes(4)).is_ok());
    assert!(at(end - minutes(1)).is_ok());
    for (moment, expected) in [(now() - minutes(6), "not valid yet"), (end + minutes(1), "expired")] {
        let refusal = at(moment).expect_err(expected).to_string();
        assert!(refusal.contains(expected), "{moment}: {refusal}");
    }
}

#[test]
fn an_intermediate_authority_can_sign_and_a_leaf_cannot() {
    let root = authority("root");
    let pair = issue(&root, &Intent::authority("intermediate", 100 * DAY), now()).expect("an intermediate");
    let intermediate = Authority::from_pem(&pair.certificate, &pair.key).expect("an authority");
    let leaf = minted(&intermediate, &server_intent(Algorithm::EcdsaP256));
    assert!(leaf.is_signed_by(intermediate.certificate()) && !leaf.is_signed_by(root.certificate()));

    let pair = issue(&root, &server_intent(Algorithm::EcdsaP256), now()).expect("a leaf");
    let refusal = Authority::from_pem(&pair.certificate, &pair.key).expect_err("a leaf is no authority");
    assert!(matches!(refusal, hangar_pki::Error::NotAnAuthority(_)), "{refusal}");
}
