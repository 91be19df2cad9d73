//! Traps about files of the API server: whose tokens are accepted, audit, and what users mount.

use super::super::fixture::source_facts;
use super::*;

pub(super) fn issuers() -> Value {
    json!({
        "https://login.example.org": {
            "audiences": ["kubernetes", "dashboard"],
            "certificateAuthority": "-----BEGIN CERTIFICATE-----\nMAA=\n-----END CERTIFICATE-----\n",
            "claimValidationRules": [
                {"expression": "claims.email_verified == true", "message": "verify the address"},
                {"expression": "claims.hd == 'example.org'"},
            ],
            "claimMappings": {"username": "claims.email", "groups": "dyn(claims.groups).map(g, 'oidc:' + g)"},
        },
        "https://ci.example.org:8443/jobs": {
            "audiences": ["kubernetes"],
            "claimMappings": {"username": "'ci:' + claims.sub"},
        },
    })
}

pub(super) fn audited() -> Value {
    json!({"deployment": {"apiServer": {"audit": {
        "mode": "blocking",
        "policy": {
            "apiVersion": "audit.k8s.io/v1", "kind": "Policy", "metadata": {"name": "mine"},
            "omitStages": ["RequestReceived"],
            "rules": [
                {"level": "None", "nonResourceURLs": ["/healthz*"]},
                {"level": "Metadata", "resources": [{"group": "", "resources": ["secrets"]}]},
                {"level": "Request"},
            ],
        },
        "log": {"maxSize": 10, "maxBackups": 3, "maxAge": 7},
        "webhook": {"targets": [
            {"server": "https://audit.example.org/in", "authentication": {"secretName": "audit-token"}},
            {"server": "http://collector.logs.svc:8080"},
        ]},
    }}}})
}

fn mounted() -> Value {
    json!({"deployment": {"apiServer": {"mounts": {
        "admission": {"path": "/etc/kubernetes/admission", "configMap": {
            "name": "admission", "defaultMode": 0o444, "items": [{"key": "file", "path": "admission.yaml"}],
        }},
        "extra": {"path": "/etc/extra", "secret": {"secretName": "extra"}},
    }}}})
}

/// Whose tokens are accepted.
fn authentication(plan: &Plan) -> Value {
    let data = &object(plan, "ConfigMap", "demo-authentication")["data"];
    serde_saphyr::from_str(data["authentication.yaml"].as_str().unwrap()).unwrap()
}

fn template(plan: &Plan) -> Value {
    object(plan, "Deployment", "demo-apiserver")["spec"]["template"].clone()
}

fn refreshes(plan: &Plan) -> usize {
    plan.steps.iter().filter(|step| is(step, "refresh", "pod")).count()
}

fn message(plan: &Plan, type_: &str) -> String {
    let found = plan.status.conditions.iter().find(|condition| condition.type_ == type_);
    found.map(|condition| condition.message.clone()).unwrap_or_default()
}

#[test]
fn issuers_are_written_in_one_order_and_in_the_version_that_the_api_server_reads() {
    let plan = checked(&all_ready(&json!({"oidcProviders": issuers()})));
    let written = authentication(&plan);
    assert_eq!(written["apiVersion"], "apiserver.config.k8s.io/v1");
    assert!(
        arguments(&plan, "demo-apiserver")
            .contains("--authentication-config=/etc/kubernetes/configuration/authentication.yaml")
    );
    insta::assert_snapshot!(golden::documents([written]));
    for (version, api) in [("v1.33.0", "v1beta1"), ("v1.31.4", "v1beta1"), ("v1.37.1", "v1")] {
        let plan = checked(&all_ready(&json!({"version": version, "oidcProviders": issuers()})));
        let written = authentication(&plan);
        assert_eq!(written["apiVersion"], format!("apiserver.config.k8s.io/{api}"), "{version}");
    }
    assert_eq!(condition_status(&plan, "SettingsEffective"), "");
}

#[test]
fn another_issuer_replaces_no_pods_and_kubelet_is_asked_to_bring_the_file_at_once() {
    let mut observed = all_ready(&json!({"oidcProviders": issuers()}));
    let before = checked(&observed);
    assert_eq!(refreshes(&before), 0);
    observed.control_plane.spec.settings.oidc_providers.remove("https://ci.example.org:8443/jobs");
    let after = checked(&observed);
    assert_ne!(authentication(&before), authentication(&after));
    assert_eq!(template(&before), template(&after));
    assert_eq!(refreshes(&after), 1);
    settle(&mut observed);
    assert_eq!(refreshes(&checked(&observed)), 0, "once is enough");
}

#[test]
fn the_cluster_s_own_issuer_is_refused_by_the_domain_that_it_has() {
    let provider = json!({"audiences": ["a"], "claimMappings": {"username": "claims.sub"}});
    let own = "https://kubernetes.default.svc.tenant.example";
    let mut observed = all_ready(&json!({"oidcProviders": {own: provider}}));
    assert_eq!(condition_status(&checked(&observed), "SpecificationValid"), "True Valid");
    for cluster in observed.cluster.iter_mut() {
        cluster.service_domain = Some("tenant.example".to_owned());
    }
    let plan = checked(&observed);
    assert_eq!(condition_status(&plan, "SpecificationValid"), "False Invalid");
    let told = message(&plan, "SpecificationValid");
    assert!(told.contains("spec.oidcProviders[https://kubernetes.default.svc.tenant.example]"), "{told}");
}

#[test]
fn records_go_to_files_and_through_the_proxy_to_receivers() {
    let plan = checked(&all_ready(&audited()));
    let flags = arguments(&plan, "demo-apiserver");
    let audit: Vec<&String> = flags.iter().filter(|flag| flag.starts_with("--audit-")).collect();
    let template = template(&plan);
    let pod = &template["spec"];
    let volumes = pod["volumes"].as_array().unwrap().iter();
    let volumes: Vec<&Value> =
        volumes.filter(|volume| volume["name"].as_str().unwrap().starts_with("audit")).collect();
    let data = &object(&plan, "ConfigMap", "demo-apiserver")["data"];
    insta::assert_snapshot!(golden::documents([
        json!({"flags": audit, "proxy": pod["containers"][2], "volumes": volumes}),
        json!({"files": data}),
    ]));
    // The tunnel's server speaks the protocol that can be handed on.
    assert!(pod["containers"][0]["args"].to_string().contains("--mode=http-connect"));
    assert_eq!(condition_status(&plan, "SettingsEffective"), "");
    // Without receivers nothing of that.
    let mut without = audited();
    without["deployment"]["apiServer"]["audit"].as_object_mut().unwrap().remove("webhook");
    let plan = checked(&all_ready(&without));
    let text = format!("{}{}", self::template(&plan), object(&plan, "ConfigMap", "demo-apiserver"));
    for word in ["audit-proxy", "HTTPConnect", "http-connect", "audit-webhook"] {
        assert!(!text.contains(word), "{word}");
    }
    without["deployment"]["apiServer"]["audit"].as_object_mut().unwrap().remove("log");
    let plan = checked(&all_ready(&without));
    assert!(arguments(&plan, "demo-apiserver").contains("--audit-log-path=-"));
}

#[test]
fn a_token_that_is_missing_is_named_and_stops_no_api_server() {
    for (read, told) in [
        (Read::Absent, "Secret audit-token does not exist"),
        (Read::One(source_facts(&["other"])), "Secret audit-token has no key token"),
    ] {
        let mut observed = etcd_started(&audited());
        for found in observed.sources.values_mut() {
            *found = read.clone();
        }
        let plan = checked(&observed);
        assert_eq!(kinds(&plan, "Deployment"), ["demo-apiserver"]);
        assert_eq!(condition_status(&plan, "SettingsEffective"), "False SourceMissing");
        let message = message(&plan, "SettingsEffective");
        assert!(
            message.contains("spec.deployment.apiServer.audit.webhook.targets[0].authentication"),
            "{message}"
        );
        assert!(message.contains(told), "{message}");
    }
    // Another token is read again by the proxy.
    let mut observed = all_ready(&audited());
    let before = template(&checked(&observed));
    for found in observed.sources.values_mut() {
        *found = Read::One(SourceFacts { keys: [("token".to_owned(), "another".to_owned())].into() });
    }
    assert_eq!(before, template(&checked(&observed)));
}

#[test]
fn a_newer_manager_leaves_the_proxy_and_a_newer_api_server_takes_it_along() {
    let image = |plan: &Plan| template(plan)["spec"]["containers"][2]["image"].as_str().unwrap().to_owned();
    let mut observed = all_ready(&audited());
    assert_eq!(image(&checked(&observed)), "registry.example.org/hangar:v1");
    for facts in observed.api_server.iter_mut() {
        facts.audit_proxy = Some("registry.example.org/hangar:v1".to_owned());
    }
    observed.manager_image = Some("registry.example.org/hangar:v2".to_owned());
    assert_eq!(image(&checked(&observed)), "registry.example.org/hangar:v1");
    observed.control_plane.spec.version = "v1.34.11".to_owned();
    assert_eq!(image(&checked(&observed)), "registry.example.org/hangar:v2");
    // A manager that does not know itself says so, and what runs stays.
    let mut observed = etcd_started(&audited());
    observed.manager_image = None;
    let plan = checked(&observed);
    assert_eq!(condition_status(&plan, "SpecificationValid"), "False Invalid");
    assert!(message(&plan, "SpecificationValid").contains("audit.webhook.image"));
}

/// Trap: kubelet ends pods on a disk that is full, and knows of the files only what is asked for.
#[test]
fn files_of_records_have_room_on_the_disk_that_is_asked_for() {
    let asked = |resources: &Value| {
        let mut spec = audited();
        spec["deployment"]["apiServer"]["resources"] = resources.clone();
        let plan = checked(&all_ready(&spec));
        container(&plan, "Deployment", "demo-apiserver")["resources"].clone()
    };
    // Three files beside the present one, and a moment with one more.
    assert_eq!(asked(&Value::Null)["requests"]["ephemeral-storage"], "50Mi");
    let memory = json!({"requests": {"memory": "1Gi"}});
    assert_eq!(asked(&memory)["requests"], json!({"memory": "1Gi", "ephemeral-storage": "50Mi"}));
    let own = json!({"limits": {"ephemeral-storage": "1Gi"}});
    assert_eq!(asked(&own)["limits"]["ephemeral-storage"], "1Gi");
    assert_eq!(asked(&own)["requests"], Value::Null, "Kubernetes makes one of the limit");
    let plan = checked(&all_ready(&json!({})));
    assert_eq!(
        container(&plan, "Deployment", "demo-apiserver")["resources"]["requests"].get("ephemeral-storage"),
        None
    );
}

#[test]
fn an_image_of_the_proxy_is_in_the_registry_of_all_images() {
    let image = |of_all: Option<&str>, image: Value| {
        let mut spec = audited();
        spec["deployment"]["apiServer"]["audit"]["webhook"]["image"] = image;
        spec["imageRegistry"] = json!(of_all);
        let plan = checked(&all_ready(&spec));
        template(&plan)["spec"]["containers"][2]["image"].as_str().unwrap().to_owned()
    };
    let mirror = Some("registry.example.org/mirror");
    let own = json!({"repository": "team/hangar"});
    assert_eq!(image(mirror, own), "registry.example.org/mirror/team/hangar:v1");
    let elsewhere = json!({"registry": "registry.k8s.io", "repository": "hangar", "tag": "v2"});
    assert_eq!(image(mirror, elsewhere), "registry.k8s.io/hangar:v2");
    // The manager's own is not mirrored.
    assert_eq!(image(mirror, json!({})), "registry.example.org/hangar:v1");
    assert_eq!(image(mirror, json!({"tag": "v2"})), "registry.example.org/hangar:v2");
}

#[test]
fn other_content_of_a_mount_replaces_the_pods_and_other_keys_do_not() {
    let mut observed = all_ready(&mounted());
    let before = template(&checked(&observed));
    let admission = Source { kind: SourceKind::ConfigMap, name: "admission".to_owned() };
    let keys = |file: &str, other: &str| SourceFacts {
        keys: [("file".to_owned(), file.to_owned()), ("other".to_owned(), other.to_owned())].into(),
    };
    observed.sources.insert(admission.clone(), Read::One(keys("hash of file", "x")));
    assert_eq!(before, template(&checked(&observed)), "it is not mounted");
    observed.sources.insert(admission, Read::One(keys("another", "x")));
    let after = template(&checked(&observed));
    assert_ne!(before["metadata"]["annotations"], after["metadata"]["annotations"]);
    assert_eq!(before["spec"], after["spec"]);
    let volumes = before["spec"]["volumes"].as_array().unwrap().iter();
    let given: Vec<&Value> =
        volumes.filter(|volume| volume["name"].as_str().unwrap().starts_with("given-")).collect();
    assert_eq!(given[0]["configMap"]["defaultMode"], 0o444, "{given:?}");
    assert_eq!(given[0]["configMap"]["optional"], false);
    assert_eq!(given[1]["secret"]["secretName"], "extra");
}

#[test]
fn while_a_mounted_object_is_missing_what_runs_is_not_touched() {
    let extra = Source { kind: SourceKind::Secret, name: "extra".to_owned() };
    let admission = Source { kind: SourceKind::ConfigMap, name: "admission".to_owned() };
    for (source, read, told) in [
        (&extra, Read::Absent, Some("spec.deployment.apiServer.mounts[extra]: Secret extra does not exist")),
        (
            &admission,
            Read::One(source_facts(&["other"])),
            Some("spec.deployment.apiServer.mounts[admission]: ConfigMap admission has no key file"),
        ),
        (&extra, Read::unknown("the API server is away"), None),
    ] {
        for mut observed in [etcd_started(&mounted()), all_ready(&mounted())] {
            observed.sources.insert(source.clone(), read.clone());
            let plan = checked(&observed);
            assert!(!kinds(&plan, "Deployment").contains(&"demo-apiserver".to_owned()), "{source}");
            if let Some(told) = told {
                assert_eq!(condition_status(&plan, "SettingsEffective"), "False SourceMissing");
                assert!(message(&plan, "SettingsEffective").contains(told), "{plan:?}");
            }
            if observed.api_server.is_absent() {
                assert_eq!(condition_status(&plan, "APIServerReady"), "False NotCreated");
                assert!(message(&plan, "APIServerReady").contains(&source.to_string()));
            }
        }
    }
    let mut optional = mounted();
    optional["deployment"]["apiServer"]["mounts"]["extra"]["secret"]["optional"] = json!(true);
    let mut observed = etcd_started(&optional);
    observed.sources.insert(extra, Read::Absent);
    let plan = checked(&observed);
    assert_eq!(kinds(&plan, "Deployment"), ["demo-apiserver"]);
    assert_eq!(condition_status(&plan, "SettingsEffective"), "");
}

/// Trap: a pod that starts again reads what is there then, and its flags are those of its own template.
#[test]
fn files_that_are_read_at_the_start_wait_with_the_deployment_and_issuers_do_not() {
    let mut spec = mounted();
    spec["oidcProviders"] = issuers();
    spec["deployment"]["apiServer"]["audit"] = audited()["deployment"]["apiServer"]["audit"].clone();
    let mut observed = all_ready(&spec);
    let extra = Source { kind: SourceKind::Secret, name: "extra".to_owned() };
    let there = observed.sources.insert(extra.clone(), Read::Absent).unwrap();
    let before = authentication(&checked(&observed));
    let settings = &mut observed.control_plane.spec.settings;
    settings.oidc_providers.remove("https://ci.example.org:8443/jobs");
    let api_server = settings.deployment.as_mut().unwrap().api_server.as_mut().unwrap();
    api_server.audit.as_mut().unwrap().webhook = None;
    let plan = checked(&observed);
    let is_written = |plan: &Plan, kind: &str| kinds(plan, kind).contains(&"demo-apiserver".to_owned());
    assert!(!is_written(&plan, "Deployment") && !is_written(&plan, "ConfigMap"), "both or none");
    assert_ne!(authentication(&plan), before);
    assert_eq!(refreshes(&plan), 1);
    observed.sources.insert(extra.clone(), there);
    let plan = checked(&observed);
    assert!(is_written(&plan, "Deployment") && is_written(&plan, "ConfigMap"));
    // Before there is a Deployment nobody reads them, and its first pod finds them.
    let mut observed = created(&spec);
    settle(&mut observed);
    observed.sources.insert(extra, Read::Absent);
    let plan = checked(&observed);
    assert!(!is_written(&plan, "Deployment") && is_written(&plan, "ConfigMap"));
}
