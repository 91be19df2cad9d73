//! The life of the certificate, step by step.

use hangar_pki::Usage;

use super::*;

fn start() -> Timestamp {
    "2026-11-15T12:00:00Z".parse().expect("a time")
}

fn intent() -> Intent {
    Intent::new("hangar-webhook", Usage::Server, 90 * DAY).dns_names(["hooks.system.svc"])
}

fn created(now: Timestamp) -> Material {
    Material::create(&intent(), &RenewalPolicy::default(), Vec::new(), now).expect("material")
}

fn step(material: &Material, now: Timestamp, trusted: bool) -> Step {
    material.next(&intent(), now, trusted)
}

fn after(material: &Material, step: Step, now: Timestamp) -> Material {
    let next = material.after(step, &intent(), &RenewalPolicy::default(), now).expect("material");
    // What was written can be read, and is the same.
    let read = Material::read(&next.write()).expect("readable");
    assert_eq!(read.write(), next.write());
    next
}

#[test]
fn fresh_material_waits_for_the_first_renewal() {
    let material = created(start());
    assert_eq!(step(&material, start(), false), Step::WaitUntil(material.serving_certificate().renew_at()));
    let due = material.serving_certificate().renew_at();
    assert_eq!(step(&material, due, false), Step::SignServing);
    let renewed = after(&material, Step::SignServing, due);
    assert_eq!(renewed.bundle(), material.bundle());
    assert_ne!(renewed.serving(), material.serving());
    assert!(matches!(step(&renewed, due, false), Step::WaitUntil(later) if later > due));
}

#[test]
fn an_authority_is_trusted_before_it_is_used_and_until_the_next_change() {
    let first = created(start());
    let due = first.newest().expect("an authority").renew_at();
    // Serving certificates were renewed in between, as they are.
    let first = after(&first, Step::SignServing, due);

    assert_eq!(step(&first, due, true), Step::AddAuthority);
    let both = after(&first, Step::AddAuthority, due);
    assert_eq!(both.trusted.len(), 2);
    assert_eq!(both.serving(), first.serving(), "the new authority signs nothing yet");
    assert_eq!(step(&both, due, false), Step::AwaitTrust);

    assert_eq!(step(&both, due, true), Step::SignServing);
    let signed = after(&both, Step::SignServing, due);
    assert!(signed.serving_certificate().is_signed_by(&signed.trusted[0]));
    assert_eq!(signed.bundle(), both.bundle(), "the old authority is still trusted");
    assert!(matches!(step(&signed, due, true), Step::WaitUntil(_)));

    let again = signed.newest().expect("an authority").renew_at();
    let signed = after(&signed, Step::SignServing, again);
    let third = after(&signed, Step::AddAuthority, again);
    assert_eq!(third.trusted[1..], both.trusted[..1], "the next change drops the oldest");
}

#[test]
fn other_names_need_another_certificate_at_once() {
    let material = created(start());
    let moved = Intent::new("hangar-webhook", Usage::Server, DAY).dns_names(["elsewhere.svc"]);
    assert_eq!(material.next(&moved, start(), false), Step::SignServing);
    let both = after(&material, Step::AddAuthority, start());
    assert_eq!(both.next(&moved, start(), false), Step::SignServing);
}

#[test]
fn damage_is_named_and_old_authorities_are_salvaged() {
    let material = created(start());
    let broken = |change: fn(&mut BTreeMap<String, ByteString>)| {
        let mut data = material.write();
        change(&mut data);
        Material::read(&data).expect_err("broken")
    };
    let strange: fn() -> Material = || created(start());
    assert!(broken(|data| drop(data.remove("tls.key"))).contains("tls.key is missing"));
    assert!(broken(|data| drop(data.insert("ca.crt".into(), ByteString(vec![0xff])))).contains("not text"));
    let other = strange().write();
    let mut mixed = material.write();
    mixed.insert("tls.key".into(), other["tls.key"].clone());
    assert!(Material::read(&mixed).expect_err("mixed").contains("does not belong"));
    let mut mixed = material.write();
    mixed.insert("tls.crt".into(), other["tls.crt"].clone());
    mixed.insert("tls.key".into(), other["tls.key"].clone());
    assert!(Material::read(&mixed).expect_err("mixed").contains("signed by no authority"));

    let salvaged = Material::salvage(&mixed);
    assert_eq!(salvaged, material.trusted);
    let repaired =
        Material::create(&intent(), &RenewalPolicy::default(), salvaged, start()).expect("material");
    assert!(repaired.bundle().contains(&material.bundle()));
    assert!(Material::read(&repaired.write()).is_ok());
}

#[test]
fn debug_output_holds_no_key() {
    let material = created(start());
    let shown = format!("{material:?}");
    for key in ["tls.key", "ca.key"] {
        let text = String::from_utf8(material.write()[key].0.clone()).expect("text");
        assert!(!shown.contains(text.lines().nth(1).expect("a line")), "{shown}");
    }
}
