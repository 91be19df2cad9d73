//! Authorities: loading, limits, and what they refuse.

use std::time::Duration;

use hangar_pki::{Algorithm, Authority, Certificate, Error, Intent, PrivateKeyPem, Usage, issue};

use crate::{DAY, authority, now};

#[test]
fn a_stored_authority_signs_like_the_first_one() {
    for algorithm in [Algorithm::EcdsaP256, Algorithm::Rsa2048] {
        let first = Authority::self_signed(&Intent::authority("ca", 10 * DAY).algorithm(algorithm), now())
            .expect("an authority");
        let stored = Authority::from_pem(&first.pair().certificate, &first.pair().key).expect("the same one");
        let pair = issue(&stored, &Intent::new("client", Usage::Client, DAY), now()).expect("a leaf");
        let leaf = Certificate::parse(&pair.certificate).expect("readable");
        assert!(leaf.is_signed_by(first.certificate()));
        assert!(leaf.matches_key(&pair.key));
        assert!(!leaf.matches_key(&first.pair().key));
    }
}

#[test]
fn of_a_bundle_the_generation_that_owns_the_key_is_taken() {
    let (old, current) = (authority("ca"), authority("ca"));
    let bundle = format!("{}{}", old.pair().certificate, current.pair().certificate);
    let loaded = Authority::from_pem(&bundle, &current.pair().key).expect("the current one");
    assert_eq!(loaded.certificate(), current.certificate());
    let stranger = authority("ca");
    assert!(matches!(Authority::from_pem(&bundle, &stranger.pair().key), Err(Error::KeyMismatch)));
}

#[test]
fn no_leaf_outlives_its_authority() {
    let short = Authority::self_signed(&Intent::authority("short", 2 * DAY), now()).expect("an authority");
    let intent = Intent::new("client", Usage::Client, 30 * DAY);
    let leaf =
        Certificate::parse(&issue(&short, &intent, now()).expect("a leaf").certificate).expect("readable");
    assert_eq!(leaf.not_after(), short.certificate().not_after());
    assert_eq!(leaf.not_after(), now() + 2 * DAY);

    let refusal = issue(&short, &intent, now() + 2 * DAY).expect_err("expired");
    assert!(matches!(refusal, Error::AuthorityExpired { .. }), "{refusal}");
}

#[test]
fn impossible_intents_name_what_is_wrong() {
    let ca = authority("ca");
    let client = |name: &str| Intent::new(name, Usage::Client, DAY);
    let cases = [
        (client(""), "common name is empty"),
        (client("a").organizations(["x", "y", "z"]), "two organizations"),
        (client("a").organizations(["x", "x"]), "one twice"),
        (client("a").dns_names(["ä.example"]), "not a DNS name"),
        (Intent::new("a", Usage::Client, Duration::ZERO), "shorter than a second"),
        (Intent::new("a", Usage::Client, Duration::MAX), "outside"),
    ];
    for (intent, expected) in cases {
        let refusal = issue(&ca, &intent, now()).expect_err(expected).to_string();
        assert!(refusal.contains(expected), "{refusal}");
    }
    assert!(matches!(Authority::self_signed(&client("leaf"), now()), Err(Error::NotAnAuthority(_))));
}

#[test]
fn unreadable_material_is_an_error_and_never_shown() {
    for text in ["", "not a key", "-----BEGIN PRIVATE KEY-----\nc2VjcmV0\n-----END PRIVATE KEY-----\n"] {
        let key = PrivateKeyPem::new(text);
        let refusal = key.public_key_pem().expect_err("unusable");
        assert!(matches!(refusal, Error::UnusableKey(_)));
        assert!(!refusal.to_string().contains("c2VjcmV0"));
        assert!(matches!(Certificate::parse(text), Err(Error::UnreadableCertificate(_))));
    }
}

#[test]
fn debug_output_holds_no_key() {
    let ca = authority("ca");
    let pair = issue(&ca, &Intent::new("client", Usage::Client, DAY), now()).expect("a leaf");
    let keys = hangar_pki::ServiceAccountKeys::generate().expect("keys");
    let token = hangar_pki::SecretText::new("abcdef.0123456789abcdef");
    let shown = format!("{ca:?} {pair:?} {:?} {keys:?} {token:?}", pair.key);
    for secret in [ca.pair().key.expose(), pair.key.expose(), keys.private.expose()] {
        let line = secret.lines().nth(1).expect("a line of the key");
        assert!(!shown.contains(line) && !shown.contains("PRIVATE KEY"), "{shown}");
    }
    assert!(!shown.contains("abcdef"), "{shown}");
}
