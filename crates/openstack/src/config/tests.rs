use proptest::prelude::*;
use serde_json::json;

use super::*;

/// The file of a guide that users follow, as it is.
const SLOPPY: &str = r#"
clouds:
  mycloud_dev2:
    auth:
      auth_url: https://test1.mycloud.com:5000
      project_name: Default Project 37137
      username: someone
      password: 00123
      version: 3
      domain_name: CCP_Domain_37137
      user_domain_name: "CCP_Domain_37137"
      project_name: "dev2"
      tenant_name: "dev2"
    region_name: Kna1
    cacert: /path/to/cacert.pem
"#;

fn config(auth: &str, rest: &str) -> Result<CloudConfig, ConfigError> {
    let yaml = format!("clouds:\n  c:\n    auth: {{auth_url: 'http://k/identity/v3/', {auth}}}\n{rest}");
    CloudConfig::from_yaml(yaml.as_bytes(), "c")
}

#[test]
fn a_sloppy_file_is_read_as_other_tools_read_it() {
    let config = CloudConfig::from_yaml(SLOPPY.as_bytes(), "mycloud_dev2").unwrap();
    assert_eq!(config.auth_url(), "https://test1.mycloud.com:5000/v3");
    assert_eq!(config.region(), Some("Kna1"));
    assert!(config.cacert.is_none(), "a path on somebody's laptop");
    let domain = json!({ "name": "CCP_Domain_37137" });
    assert_eq!(
        config.login(),
        json!({ "auth": {
            "identity": {
                "methods": ["password"],
                "password": { "user": { "name": "someone", "domain": domain, "password": "00123" } },
            },
            "scope": { "project": { "name": "dev2", "domain": domain } },
        } })
    );
}

#[test]
fn every_way_to_log_in_has_its_body() {
    let cases = [
        (
            "application_credential_id: a, application_credential_secret: s, project_name: ignored",
            json!({ "identity": {
                "methods": ["application_credential"],
                "application_credential": { "id": "a", "secret": "s" },
            } }),
        ),
        (
            "application_credential_name: a, application_credential_secret: s, username: u, user_domain_id: d",
            json!({ "identity": {
                "methods": ["application_credential"],
                "application_credential": { "name": "a", "secret": "s", "user": { "name": "u", "domain": { "id": "d" } } },
            } }),
        ),
        (
            "token: t, project_id: p",
            json!({
                "identity": { "methods": ["token"], "token": { "id": "t" } },
                "scope": { "project": { "id": "p" } },
            }),
        ),
        (
            "user_id: u, password: s, tenant_id: p",
            json!({
                "identity": { "methods": ["password"], "password": { "user": { "id": "u", "password": "s" } } },
                "scope": { "project": { "id": "p" } },
            }),
        ),
        (
            "username: u, password: s, project_name: p, default_domain: dd, project_domain_name: pd",
            json!({
                "identity": { "methods": ["password"], "password": {
                    "user": { "name": "u", "domain": { "id": "dd" }, "password": "s" },
                } },
                "scope": { "project": { "name": "p", "domain": { "name": "pd" } } },
            }),
        ),
        (
            "username: u, password: s",
            json!({ "identity": { "methods": ["password"], "password": {
                "user": { "name": "u", "domain": { "id": "default" }, "password": "s" },
            } } }),
        ),
        (
            "username: u, password: s, domain_id: d",
            json!({
                "identity": { "methods": ["password"], "password": {
                    "user": { "name": "u", "domain": { "id": "d" }, "password": "s" },
                } },
                "scope": { "domain": { "id": "d" } },
            }),
        ),
    ];
    for (auth, body) in cases {
        let config = config(auth, "").unwrap();
        assert_eq!(config.login()["auth"], body, "{auth}");
        assert_eq!(config.auth_url(), "http://k/identity/v3");
    }
}

#[test]
fn settings_have_several_spellings() {
    let user = "username: u, password: s";
    let interface = |rest: &str| config(user, rest).map(|config| config.interface);
    assert_eq!(interface(""), Ok(Interface::Public));
    assert_eq!(interface("    interface: internal"), Ok(Interface::Internal));
    assert_eq!(interface("    endpoint_type: adminURL"), Ok(Interface::Admin));
    assert_eq!(interface("    endpoint_type: publicURL\n    interface: internal"), Ok(Interface::Internal));
    assert!(interface("    interface: sideways").is_err());
    let verified = |rest: &str| config(user, rest).map(|config| config.is_verified);
    assert_eq!(verified(""), Ok(true));
    assert_eq!(verified("    verify: false"), Ok(false));
    assert_eq!(verified("    verify: \"False\""), Ok(false));
    let region = |rest: &str| config(user, rest).unwrap().region.clone();
    assert_eq!(region("    regions: [one, two]").as_deref(), Some("one"));
    assert_eq!(region("    regions: [{name: one, values: {}}]").as_deref(), Some("one"));
    assert_eq!(region("    region_name: ''"), None);
    assert_eq!(config(user, "").unwrap().with_region("other").region(), Some("other"));
}

#[test]
fn what_is_wrong_is_named() {
    let message = |auth: &str, rest: &str| config(auth, rest).unwrap_err().to_string();
    assert_eq!(message("username: u", ""), "clouds.yaml: auth.password is missing");
    assert_eq!(message("password: s", ""), "clouds.yaml: auth.username is missing");
    assert_eq!(
        message("application_credential_secret: s", ""),
        "clouds.yaml: auth.application_credential_id is missing"
    );
    assert_eq!(
        message("username: u", "    auth_type: v3oidcpassword"),
        "clouds.yaml: auth_type \"v3oidcpassword\" is not supported; password, token and v3applicationcredential are"
    );
    let missing = CloudConfig::from_yaml(b"clouds: {a: {}, b: {}}", "c").unwrap_err();
    assert_eq!(missing.to_string(), "clouds.yaml: no cloud \"c\"; it has a, b");
    let odd = CloudConfig::from_yaml(b"clouds: {a: {}, 'hunter2, hunter2': {}}", "c").unwrap_err();
    assert_eq!(odd.to_string(), "clouds.yaml: no cloud \"c\"; it has a", "what is no name is not told");
    let many: Vec<_> = (0..12).map(|number| format!("cloud{number:02}: {{}}")).collect();
    let many =
        CloudConfig::from_yaml(format!("clouds: {{{}}}", many.join(", ")).as_bytes(), "c").unwrap_err();
    assert!(many.to_string().ends_with("cloud08, cloud09 and 2 more"), "{many}");
    let url = CloudConfig::from_yaml(b"clouds: {c: {auth: {auth_url: keystone}}}", "c").unwrap_err();
    assert_eq!(url.to_string(), "clouds.yaml: auth_url: an http or https address is needed");
    let config = config("token: t", "").unwrap();
    assert_eq!(config.with_cacert("no pem").unwrap_err(), ConfigError::NoCertificate);
}

#[test]
fn an_error_in_the_file_quotes_nothing_of_it() {
    let yaml = b"clouds:\n  c:\n    auth:\n      password: [hunter2hunter2\n";
    let error = CloudConfig::from_yaml(yaml, "c").unwrap_err();
    assert!(matches!(error, ConfigError::NotYaml { .. }));
    assert!(!format!("{error} {error:?}").contains("hunter2"));
    let error = CloudConfig::from_yaml(b"clouds: {c: {auth: hunter2}}", "c").unwrap_err();
    assert!(!format!("{error} {error:?}").contains("hunter2"));
}

#[test]
fn every_difference_changes_the_fingerprint() {
    let user = "username: u, password: s";
    let all = [
        config(user, "").unwrap(),
        config("username: u, password: t", "").unwrap(),
        config(user, "    verify: false").unwrap(),
        config(user, "    interface: internal").unwrap(),
        config(user, "").unwrap().with_region("r"),
    ];
    let prints: std::collections::BTreeSet<_> = all.iter().map(CloudConfig::fingerprint).collect();
    assert_eq!(prints.len(), all.len());
    assert_eq!(config(user, "").unwrap().fingerprint(), all[0].fingerprint());
}

proptest! {
    #[test]
    fn no_secret_shows(secret in "[A-Za-z0-9]{12,40}", kind in 0..3) {
        let auth = match kind {
            0 => format!("username: u, password: '{secret}'"),
            1 => format!("application_credential_id: a, application_credential_secret: '{secret}'"),
            _ => format!("token: '{secret}'"),
        };
        let config = config(&auth, "").unwrap();
        prop_assert!(config.login().to_string().contains(&secret), "the test looks for the right thing");
        let shown = format!("{config:?} {:#?}", config.fingerprint());
        prop_assert!(!shown.contains(&secret));
    }
}
