//! The openssl command, as an independent reader and as a source of keys in other encodings. If it is not installed
//! these tests say so and pass.

use std::path::Path;
use std::process::Command;

use hangar_pki::{Authority, Certificate, Intent, PrivateKeyPem, ServiceAccountKeys, Usage, issue};

use crate::{DAY, authority};

/// Runs openssl in `directory`; nothing if the command does not exist on this machine.
fn openssl(directory: &Path, arguments: &str) -> Option<(bool, String)> {
    let output = Command::new("openssl").args(arguments.split_whitespace()).current_dir(directory).output();
    match output {
        Ok(output) => {
            let text = [output.stdout, output.stderr].concat();
            Some((output.status.success(), String::from_utf8_lossy(&text).into_owned()))
        }
        Err(error) => {
            eprintln!("openssl is not at hand, skipped: {error}");
            None
        }
    }
}

fn expect_success(directory: &Path, arguments: &str) -> Option<String> {
    let (succeeded, text) = openssl(directory, arguments)?;
    assert!(succeeded, "openssl {arguments}: {text}");
    Some(text)
}

#[test]
fn openssl_accepts_the_chain_and_reads_the_extensions() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path();
    let ca = Authority::self_signed(&Intent::authority("kubernetes", 100 * DAY), jiff::Timestamp::now())
        .expect("an authority");
    let intent = Intent::new("kube-apiserver", Usage::Server, 50 * DAY).dns_names(["kubernetes.default.svc"]);
    let pair = issue(&ca, &intent, jiff::Timestamp::now()).expect("a certificate");
    std::fs::write(path.join("ca.crt"), &ca.pair().certificate).expect("written");
    std::fs::write(path.join("other.crt"), &authority("kubernetes").pair().certificate).expect("written");
    std::fs::write(path.join("leaf.crt"), &pair.certificate).expect("written");

    let strict = "verify -x509_strict -purpose sslserver -verify_hostname kubernetes.default.svc";
    if expect_success(path, &format!("{strict} -CAfile ca.crt leaf.crt")).is_none() {
        return;
    }
    let (accepted, _) = openssl(path, &format!("{strict} -CAfile other.crt leaf.crt")).expect("present");
    assert!(!accepted, "another authority was accepted");
    let (accepted, _) =
        openssl(path, "verify -x509_strict -purpose sslclient -CAfile ca.crt leaf.crt").expect("present");
    assert!(!accepted, "a server certificate was accepted for a client");

    let text = expect_success(path, "x509 -in leaf.crt -noout -text").expect("present");
    for expected in [
        "X509v3 Authority Key Identifier",
        "X509v3 Subject Key Identifier",
        "CA:FALSE",
        "TLS Web Server Authentication",
        "Digital Signature",
    ] {
        assert!(text.contains(expected), "{expected} in {text}");
    }

    // The way kubeadm's documentation computes the discovery hash.
    expect_success(path, "x509 -pubkey -in ca.crt -noout -out ca.pub");
    expect_success(path, "pkey -pubin -in ca.pub -outform der -out ca.der");
    let digest = expect_success(path, "dgst -sha256 -hex ca.der").expect("present");
    let digest = digest.split_whitespace().last().expect("a digest");
    assert_eq!(ca.certificate().public_key_hash(), format!("sha256:{digest}"));
}

#[test]
fn authorities_with_keys_in_other_encodings_are_loaded() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path();
    let self_sign = "req -new -x509 -subj /O=Example/CN=given -days 30 -addext keyUsage=critical,keyCertSign";
    let keys = [
        ("sec1 with parameters", "ecparam -genkey -name prime256v1 -out"),
        ("sec1 p384", "ecparam -genkey -noout -name secp384r1 -out"),
        ("pkcs1", "genrsa -traditional -out"),
        ("pkcs8 rsa", "genpkey -algorithm RSA -pkeyopt rsa_keygen_bits:2048 -out"),
    ];
    for (name, command) in keys {
        if expect_success(path, &format!("{command} ca.key")).is_none() {
            return;
        }
        expect_success(path, &format!("{self_sign} -key ca.key -out ca.crt"));
        let key = PrivateKeyPem::new(std::fs::read_to_string(path.join("ca.key")).expect("a key"));
        let certificate = std::fs::read_to_string(path.join("ca.crt")).expect("a certificate");
        let given = Authority::from_pem(&certificate, &key).unwrap_or_else(|error| panic!("{name}: {error}"));
        let pair = issue(&given, &Intent::new("client", Usage::Client, DAY), jiff::Timestamp::now())
            .unwrap_or_else(|error| panic!("{name}: {error}"));
        let leaf = Certificate::parse(&pair.certificate).expect("readable");
        assert!(leaf.is_signed_by(given.certificate()), "{name}");
        std::fs::write(path.join("leaf.crt"), &pair.certificate).expect("written");
        expect_success(path, "verify -CAfile ca.crt leaf.crt");
    }
}

#[test]
fn a_token_signed_with_the_private_key_verifies_with_the_public_one() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path();
    let keys = ServiceAccountKeys::generate().expect("keys");
    std::fs::write(path.join("sa.key"), keys.private.expose()).expect("written");
    std::fs::write(path.join("sa.pub"), &keys.public).expect("written");
    std::fs::write(path.join("token"), "header.claims").expect("written");
    if expect_success(path, "dgst -sha256 -sign sa.key -out signature token").is_none() {
        return;
    }
    expect_success(path, "dgst -sha256 -verify sa.pub -signature signature token");
    let text = expect_success(path, "pkey -in sa.key -noout -text").expect("present");
    assert!(text.contains("2048 bit"), "{text}");
}
