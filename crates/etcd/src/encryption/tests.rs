use proptest::prelude::*;

use super::*;

const CONTEXT: &str = "default/demo/20261118T194500Z";
const ENCRYPTED_CHUNK: usize = CHUNK + TAG;

fn key(byte: u8) -> BackupKey {
    BackupKey::new(&[byte; KEY]).unwrap()
}

fn encrypt(plain: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut encryptor = Encryptor::begin(&key(1), CONTEXT, &mut out).unwrap();
    encryptor.push(plain, &mut out).unwrap();
    encryptor.finish(&mut out).unwrap();
    out
}

fn open(encrypted: &[u8]) -> Result<Vec<u8>, EncryptionFault> {
    open_with(&key(1), CONTEXT, encrypted, 10_000)
}

fn open_with(
    key: &BackupKey,
    context: &str,
    encrypted: &[u8],
    piece: usize,
) -> Result<Vec<u8>, EncryptionFault> {
    let mut out = Vec::new();
    let mut decryptor = Decryptor::new(key, context);
    for bytes in encrypted.chunks(piece) {
        decryptor.push(bytes, &mut out)?;
    }
    decryptor.finish(&mut out)?;
    Ok(out)
}

fn plain(length: usize) -> Vec<u8> {
    (0..length).map(|place| u8::try_from(place % 253).unwrap()).collect()
}

#[test]
fn what_was_encrypted_is_opened_whatever_its_length() {
    for length in [0, 1, CHUNK - 1, CHUNK, CHUNK + 1, 3 * CHUNK] {
        let encrypted = encrypt(&plain(length));
        let chunks = length.div_ceil(CHUNK).max(1);
        assert_eq!(encrypted.len(), HEADER + length + chunks * TAG);
        assert_eq!(open(&encrypted).unwrap(), plain(length), "{length}");
    }
}

#[test]
fn the_same_bytes_are_encrypted_differently_each_time() {
    assert_ne!(encrypt(b"same")[HEADER..], encrypt(b"same")[HEADER..]);
}

#[test]
fn an_object_cut_off_between_chunks_is_known_to_be_cut_off() {
    let encrypted = encrypt(&plain(3 * CHUNK + 5));
    for chunks in 0..=3 {
        let error = open(&encrypted[..HEADER + chunks * ENCRYPTED_CHUNK]).unwrap_err();
        assert_eq!(error, EncryptionFault::CutOff, "{chunks}");
    }
}

#[test]
fn an_object_cut_off_anywhere_does_not_open() {
    let encrypted = encrypt(&plain(2 * CHUNK));
    let edges = [HEADER, HEADER + ENCRYPTED_CHUNK, HEADER + 2 * ENCRYPTED_CHUNK];
    let places = edges.iter().flat_map(|edge| (edge - 20)..(edge + 20).min(encrypted.len()));
    for place in places.chain(0..HEADER) {
        let error = open(&encrypted[..place]).unwrap_err();
        assert!(
            matches!(
                error,
                EncryptionFault::CutOff | EncryptionFault::Altered | EncryptionFault::NotEncrypted
            ),
            "{place}: {error}"
        );
    }
}

#[test]
fn chunks_in_another_order_do_not_open() {
    let encrypted = encrypt(&plain(3 * CHUNK));
    let chunk = |number: usize| {
        &encrypted[HEADER + number * ENCRYPTED_CHUNK..HEADER + (number + 1) * ENCRYPTED_CHUNK]
    };
    let header = &encrypted[..HEADER];
    for order in [&[1, 0, 2][..], &[0, 0, 2], &[0, 2], &[0, 1, 2, 2], &[0, 1, 1]] {
        let mixed: Vec<u8> =
            header.iter().chain(order.iter().flat_map(|number| chunk(*number))).copied().collect();
        assert_eq!(open(&mixed).unwrap_err(), EncryptionFault::Altered, "{order:?}");
    }
}

#[test]
fn a_wrong_key_is_told_from_damage() {
    let encrypted = encrypt(&plain(100));
    assert_eq!(open_with(&key(2), CONTEXT, &encrypted, 64).unwrap_err(), EncryptionFault::WrongKey);
    let mut damaged = encrypted.clone();
    *damaged.last_mut().unwrap() ^= 1;
    assert_eq!(open(&damaged).unwrap_err(), EncryptionFault::Altered);
    let other_backup = open_with(&key(1), "default/demo/20200101T000000Z", &encrypted, 64);
    assert_eq!(other_backup.unwrap_err(), EncryptionFault::Altered);
}

#[test]
fn what_is_not_encrypted_is_said_to_be_so() {
    for bytes in [&b""[..], b"<html>", &[0; 5000]] {
        assert_eq!(open(bytes).unwrap_err(), EncryptionFault::NotEncrypted, "{bytes:?}");
    }
    let mut newer = encrypt(b"x");
    newer[8] = 17;
    assert_eq!(open(&newer).unwrap_err(), EncryptionFault::UnknownFormat);
}

#[test]
fn a_key_is_read_as_bytes_or_as_text_and_never_shown() {
    let key = key(7);
    let text = secrecy::ExposeSecret::expose_secret(&key.to_base64()).to_owned();
    assert_eq!(BackupKey::new(format!("{text}\n").as_bytes()).unwrap().name(), key.name());
    assert_eq!(key.name().len(), 16);
    assert!(!format!("{key:?}").contains("07"), "{key:?}");
    for wrong in [&b"short"[..], &[1; 31], &[1; 33], b""] {
        assert!(BackupKey::new(wrong).is_err());
    }
    assert_ne!(BackupKey::generate().unwrap().name(), BackupKey::generate().unwrap().name());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn opening_does_not_depend_on_how_bytes_are_cut(length in 0..2 * CHUNK + 9, piece in 1_usize..100_000) {
        let encrypted = encrypt(&plain(length));
        prop_assert_eq!(open_with(&key(1), CONTEXT, &encrypted, piece).unwrap(), plain(length));
    }

    #[test]
    fn no_changed_bit_is_accepted(length in 0..CHUNK + 9, place in any::<prop::sample::Index>(), bit in 0_u8..8) {
        let mut encrypted = encrypt(&plain(length));
        let place = place.index(encrypted.len());
        encrypted[place] ^= 1 << bit;
        prop_assert!(open(&encrypted).is_err());
    }
}
