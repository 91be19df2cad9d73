//! Kubeconfigs, read back as any Kubernetes client reads them.

use base64::Engine;
use hangar_pki::{Credentials, Intent, Kubeconfig, SecretText, Trust, Usage, issue};
use serde_json::{Value, json};

use crate::{DAY, authority, now};

fn sample(credentials: Credentials, trust: Trust) -> Kubeconfig {
    Kubeconfig {
        cluster: "prod".into(),
        user: "prod-admin".into(),
        server: "https://192.0.2.1:6443".into(),
        trust,
        tls_server_name: Some("prod.default.clusters.example.test".into()),
        credentials,
        namespace: None,
    }
}

#[test]
fn embedded_material_survives_the_way_through_yaml_and_json() {
    let ca = authority("kubernetes");
    let pair = issue(&ca, &Intent::new("admin", Usage::Client, DAY), now()).expect("a certificate");
    let kubeconfig =
        sample(Credentials::Certificate(pair.clone()), Trust::Embedded(ca.pair().certificate.clone()));
    let from_yaml: Value = serde_saphyr::from_str(&kubeconfig.to_yaml().expect("text")).expect("yaml");
    let from_json: Value = serde_json::from_str(&kubeconfig.to_json().expect("text")).expect("json");
    assert_eq!(from_yaml, from_json);

    let encode = |text: &str| base64::engine::general_purpose::STANDARD.encode(text);
    let expected = json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "prod", "cluster": {
            "server": "https://192.0.2.1:6443",
            "tls-server-name": "prod.default.clusters.example.test",
            "certificate-authority-data": encode(&ca.pair().certificate),
        }}],
        "users": [{"name": "prod-admin", "user": {
            "client-certificate-data": encode(&pair.certificate),
            "client-key-data": encode(pair.key.expose()),
        }}],
        "contexts": [{"name": "prod-admin@prod", "context": {"cluster": "prod", "user": "prod-admin"}}],
        "current-context": "prod-admin@prod",
    });
    assert_eq!(from_json, expected);
}

#[test]
fn files_and_tokens_are_named_as_clients_expect() {
    let user = |credentials| {
        let text = sample(credentials, Trust::File("/etc/ca.crt".into())).to_json().expect("text");
        let value: Value = serde_json::from_str(&text).expect("json");
        assert_eq!(value["clusters"][0]["cluster"]["certificate-authority"], "/etc/ca.crt");
        value["users"][0]["user"].clone()
    };
    let files = Credentials::CertificateFiles { certificate: "/a.crt".into(), key: "/a.key".into() };
    assert_eq!(user(files), json!({"client-certificate": "/a.crt", "client-key": "/a.key"}));
    assert_eq!(user(Credentials::Token(SecretText::new("yes"))), json!({"token": "yes"}));
    assert_eq!(user(Credentials::TokenFile("/token".into())), json!({"tokenFile": "/token"}));
    assert_eq!(user(Credentials::Anonymous), json!({}));
}

#[test]
fn tokens_that_look_like_other_yaml_types_stay_strings() {
    for token in ["yes", "0123456", "1e3", "null", "2026-01-01"] {
        let text = sample(Credentials::Token(SecretText::new(token)), Trust::System).to_yaml().expect("text");
        let value: Value = serde_saphyr::from_str(&text).expect("yaml");
        assert_eq!(value["users"][0]["user"]["token"], token);
    }
}
