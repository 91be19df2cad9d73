//! Reading back what was minted.

use std::time::Duration;

use hangar_pki::{Algorithm, Certificate, Intent, ServiceAccountKeys, Usage, issue};

use crate::{DAY, authority, now};

fn sample() -> Intent {
    Intent::new("system:node:worker-1", Usage::Client, 90 * DAY)
        .organizations(["system:nodes", "extra"])
        .dns_names(["worker-1"])
        .ip_addresses(["192.0.2.7".parse().expect("an address")])
}

#[test]
fn a_certificate_is_what_its_intent_says() {
    let ca = authority("ca");
    let pair = issue(&ca, &sample(), now()).expect("a certificate");
    let certificate = Certificate::parse(&pair.certificate).expect("readable");
    assert_eq!(certificate.difference_from(&sample()), None);
    assert_eq!(certificate.subject().common_name, "system:node:worker-1");
    assert_eq!(certificate.subject().organizations, ["system:nodes", "extra"]);
    assert_eq!(Certificate::parse(&certificate.to_pem()).expect("readable"), certificate);

    let other = |change: fn(&mut Intent)| {
        let mut intent = sample();
        change(&mut intent);
        certificate.difference_from(&intent)
    };
    assert_eq!(other(|intent| intent.common_name = "b".into()), Some("common name"));
    assert_eq!(other(|intent| intent.organizations.reverse()), Some("organizations"));
    assert_eq!(other(|intent| intent.dns_names.clear()), Some("DNS names"));
    assert_eq!(other(|intent| intent.ip_addresses.clear()), Some("IP addresses"));
    assert_eq!(other(|intent| intent.usage = Usage::Server), Some("usage"));
    assert_eq!(other(|intent| intent.algorithm = Algorithm::Rsa2048), Some("key algorithm"));
    assert_eq!(other(|intent| intent.lifetime = DAY), None);
}

#[test]
fn renewal_is_due_after_two_thirds_and_never_at_birth() {
    let ca = authority("ca");
    for lifetime in [Duration::from_secs(30), Duration::from_mins(10), DAY, 365 * DAY] {
        let pair = issue(&ca, &Intent::new("a", Usage::Client, lifetime), now()).expect("a certificate");
        let certificate = Certificate::parse(&pair.certificate).expect("readable");
        let due = now().duration_until(certificate.renew_at()).as_secs_f64() / lifetime.as_secs_f64();
        assert!((0.6..0.68).contains(&due), "{lifetime:?}: due after {due} of the lifetime");
        assert!(certificate.is_valid_at(certificate.renew_at()));
        assert_eq!(certificate.not_after(), now() + lifetime);
    }
}

#[test]
fn serials_and_keys_are_never_repeated() {
    let ca = authority("ca");
    let read = || {
        let pair = issue(&ca, &sample(), now()).expect("a certificate");
        Certificate::parse(&pair.certificate).expect("readable")
    };
    let (first, second) = (read(), read());
    assert_ne!(first.serial(), second.serial());
    assert_eq!(first.serial().len(), 32);
    assert_ne!(first.public_key_hash(), second.public_key_hash());
    assert_ne!(first.fingerprint(), second.fingerprint());
}

#[test]
fn service_account_keys_are_completed_from_the_private_half() {
    let keys = ServiceAccountKeys::generate().expect("keys");
    assert!(keys.public.starts_with("-----BEGIN PUBLIC KEY-----"));
    let completed = ServiceAccountKeys::from_private(keys.private.clone()).expect("keys");
    assert_eq!(completed, keys);
}
