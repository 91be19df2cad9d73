//! Tests the life of the certificate, step by step.

use hangar_pki::Usage;

use super::*;

fn start() -> Timestamp {
    "2026-11-15T12:00:00Z".parse().expect("a time")
}

fn intent() -> Intent {
    Intent::new("hangar-webhook", Usage::Server, 90 * DAY).dns_names(["hooks.system.svc"])
}

fn created(now: Timestamp) -> WebhookCertificates {
    WebhookCertificates::create(&intent(), &RenewalPolicy::default(), Salvage::default(), now)
        .expect("certificates")
}

fn step(certificates: &WebhookCertificates, now: Timestamp, trusted: bool) -> RenewalStep {
    certificates.next(&intent(), now, trusted)
}

fn after(certificates: &WebhookCertificates, step: RenewalStep, now: Timestamp) -> WebhookCertificates {
    let next = certificates.after(step, &intent(), &RenewalPolicy::default(), now).expect("certificates");
    // What was written can be read, and is the same.
    let read = WebhookCertificates::read(&next.write()).expect("readable");
    assert_eq!(read.write(), next.write());
    next
}

#[test]
fn fresh_material_waits_for_the_first_renewal() {
    let certificates = created(start());
    assert_eq!(
        step(&certificates, start(), false),
        RenewalStep::WaitUntil(certificates.serving_certificate().renew_at())
    );
    let due = certificates.serving_certificate().renew_at();
    assert_eq!(step(&certificates, due, false), RenewalStep::SignServing);
    let renewed = after(&certificates, RenewalStep::SignServing, due);
    assert_eq!(renewed.bundle(), certificates.bundle());
    assert_ne!(renewed.serving(), certificates.serving());
    assert!(matches!(step(&renewed, due, false), RenewalStep::WaitUntil(later) if later > due));
}

#[test]
fn an_authority_is_trusted_before_it_is_used_and_until_the_next_change() {
    let first = created(start());
    let due = first.newest().expect("an authority").renew_at();
    // Serving certificates were renewed in between, as they are.
    let first = after(&first, RenewalStep::SignServing, due);

    assert_eq!(step(&first, due, true), RenewalStep::AddAuthority);
    let both = after(&first, RenewalStep::AddAuthority, due);
    assert_eq!(both.trusted.len(), 2);
    assert_eq!(both.serving(), first.serving(), "the new authority signs nothing yet");
    assert_eq!(step(&both, due, false), RenewalStep::AwaitTrust);

    assert_eq!(step(&both, due, true), RenewalStep::SignServing);
    let signed = after(&both, RenewalStep::SignServing, due);
    assert!(signed.serving_certificate().is_signed_by(&signed.trusted[0]));
    assert_eq!(signed.bundle(), both.bundle(), "the old authority is still trusted");
    assert!(matches!(step(&signed, due, true), RenewalStep::WaitUntil(_)));

    let again = signed.newest().expect("an authority").renew_at();
    let signed = after(&signed, RenewalStep::SignServing, again);
    let third = after(&signed, RenewalStep::AddAuthority, again);
    assert_eq!(third.trusted[1..], both.trusted[..1], "the next change drops the oldest");
}

#[test]
fn a_path_is_accepted_before_it_is_announced_and_until_the_next_change() {
    let first = created(start());
    let old = first.announced().expect("a token").clone();
    let both = after(&first, RenewalStep::AddAuthority, start());
    assert_eq!(both.announced(), Some(&old), "replicas may not have read the new one yet");
    assert_eq!(both.tokens()[1..], *std::slice::from_ref(&old));
    let signed = after(&both, RenewalStep::SignServing, start());
    let new = signed.announced().expect("a token").clone();
    assert_ne!(new, old);
    assert_eq!(signed.tokens(), [new.clone(), old.clone()], "some API server may still call the old one");
    let third = after(&signed, RenewalStep::AddAuthority, start());
    assert_eq!((third.announced(), third.tokens().len()), (Some(&new), 2));
    assert!(!third.tokens().contains(&old));
}

#[test]
fn other_names_need_another_certificate_at_once() {
    let certificates = created(start());
    let moved = Intent::new("hangar-webhook", Usage::Server, DAY).dns_names(["elsewhere.svc"]);
    assert_eq!(certificates.next(&moved, start(), false), RenewalStep::SignServing);
    let both = after(&certificates, RenewalStep::AddAuthority, start());
    assert_eq!(both.next(&moved, start(), false), RenewalStep::SignServing);
}

#[test]
fn damage_is_named_and_old_authorities_are_salvaged() {
    let certificates = created(start());
    let broken = |change: fn(&mut BTreeMap<String, ByteString>)| {
        let mut data = certificates.write();
        change(&mut data);
        WebhookCertificates::read(&data).expect_err("broken")
    };
    let strange: fn() -> WebhookCertificates = || created(start());
    assert!(broken(|data| drop(data.remove("tls.key"))).contains("tls.key is missing"));
    assert!(broken(|data| drop(data.insert("ca.crt".into(), ByteString(vec![0xff])))).contains("not text"));
    let other = strange().write();
    let mut mixed = certificates.write();
    mixed.insert("tls.key".into(), other["tls.key"].clone());
    assert!(WebhookCertificates::read(&mixed).expect_err("mixed").contains("does not belong"));
    let mut mixed = certificates.write();
    mixed.insert("tls.crt".into(), other["tls.crt"].clone());
    mixed.insert("tls.key".into(), other["tls.key"].clone());
    assert!(WebhookCertificates::read(&mixed).expect_err("mixed").contains("signed by no authority"));

    let salvaged = WebhookCertificates::salvage(&mixed);
    assert_eq!(salvaged.trusted, certificates.trusted);
    let repaired = WebhookCertificates::create(&intent(), &RenewalPolicy::default(), salvaged, start())
        .expect("certificates");
    assert!(repaired.bundle().contains(&certificates.bundle()));
    assert!(WebhookCertificates::read(&repaired.write()).is_ok());
    assert_eq!(repaired.announced(), certificates.announced(), "API servers call it, and replicas accept it");
    assert!(broken(|data| drop(data.remove("path-tokens"))).contains("path-tokens is missing"));
    assert!(
        broken(|data| drop(data.insert("path-tokens".into(), ByteString(Vec::new())))).contains("no token")
    );
}

#[test]
fn debug_output_holds_no_key() {
    let certificates = created(start());
    let shown = format!("{certificates:?}");
    assert!(!shown.contains(certificates.announced().expect("a token").text()));
    for key in ["tls.key", "ca.key"] {
        let text = String::from_utf8(certificates.write()[key].0.clone()).expect("text");
        assert!(!shown.contains(text.lines().nth(1).expect("a line")), "{shown}");
    }
}
