//! Traps about trust and rights.

use super::*;

#[test]
fn three_roots_know_nothing_of_each_other() {
    let mut observed = created(&json!({}));
    let mut roots = BTreeSet::new();
    settle(&mut observed);
    for material in Material::ALL.into_iter().filter(|material| material.is_authority()) {
        assert_eq!(material.issuer(), None);
        roots.insert(secret(&mut observed, material).fingerprint.clone());
    }
    assert_eq!(roots.len(), 3);
    let mut observed = etcd_started(&json!({}));
    observed.etcd_pods = Read::One(pod("demo-etcd-0", "3.6.16-0"));
    let plan = checked(&observed);
    let etcd = object(&plan, "StatefulSet", "demo-etcd").to_string();
    // etcd trusts its own authority, and nothing of the kubernetes authority is near it.
    assert!(etcd.contains("demo-etcd-trust\"") && !etcd.contains("demo-ca"));
}

/// Trap: what has no selection is dialled from the API server's pod, so a webhook by URL was a request to anybody in the
/// management network, with the answer in the error.
#[test]
fn what_a_tenant_names_is_dialled_through_the_tunnel() {
    let plan = checked(&all_ready(&json!({})));
    let egress = object(&plan, "ConfigMap", "demo-apiserver")["data"]["egress.yaml"].as_str().unwrap();
    let egress: Value = serde_saphyr::from_str(egress).unwrap();
    let deployment = object(&plan, "Deployment", "demo-apiserver").to_string();
    let mut names = BTreeSet::new();
    for selection in egress["egressSelections"].as_array().unwrap() {
        names.insert(selection["name"].as_str().unwrap());
        let socket = selection["connection"]["transport"]["uds"]["udsName"].as_str().unwrap();
        assert!(deployment.contains(&format!("--uds-name={socket}")), "{selection}");
    }
    // Not etcd: it is in the management cluster.
    assert_eq!(names, ["cluster", "controlplane"].into());
}

#[test]
fn a_node_renews_its_own_certificate_only() {
    let observed = all_ready(&json!({}));
    let binding =
        |name: &str| tenant_object(&observed, "ClusterRoleBinding", name).unwrap()["roleRef"]["name"].clone();
    assert!(
        binding("kubeadm:node-autoapprove-certificate-rotation")
            .as_str()
            .unwrap()
            .ends_with(":selfnodeclient")
    );
    assert!(binding("kubeadm:node-autoapprove-bootstrap").as_str().unwrap().ends_with(":nodeclient"));
    assert!(
        arguments(&checked(&observed), "demo-apiserver")
            .contains("--enable-admission-plugins=NodeRestriction")
    );
}

#[test]
fn the_tunnel_is_nobodys_master() {
    let mut observed = created(&json!({}));
    let mut groups = Vec::new();
    loop {
        let plan = checked(&observed);
        let Some(step) = plan.steps.iter().next().cloned() else { break };
        if let Step::Own(OwnStep::Mint(mint)) = &step
            && let Some(intent) = mint.content.intent()
        {
            groups.push((mint.material, intent.organizations.clone()));
        }
        observed.fold(&step, &super::super::fixture::outcome(&step));
        if let Step::Own(OwnStep::Mint(mint)) = &step {
            super::super::fixture::complete(&mut observed, mint);
        }
    }
    let masters: Vec<_> =
        groups.iter().filter(|(_, groups)| groups.iter().any(|group| group == "system:masters")).collect();
    assert!(masters.is_empty(), "nobody who is stored is: {masters:?}");
    let delegator =
        tenant_object(&all_ready(&json!({})), "ClusterRoleBinding", "system:konnectivity-server").unwrap();
    assert_eq!(delegator["subjects"][0]["kind"], "User");
}

/// A rotation adds a certificate to what is trusted before it changes who signs: nobody signs anything again for it.
#[test]
fn a_bundle_grows_without_its_signer() {
    let mut observed = all_ready(&json!({}));
    let files = |plan: &Plan| object(plan, "Deployment", "demo-controller-manager").to_string();
    let before = files(&checked(&observed));
    let signer = json!({"key": "tls.key", "path": "signer.key"}).to_string();
    assert!(
        before.contains(&signer)
            && before.contains("--cluster-signing-cert-file=/etc/kubernetes/pki/signer.crt")
    );
    assert!(before.contains("--root-ca-file=/etc/kubernetes/pki/ca.crt"));
    secret(&mut observed, Material::ClusterAuthority).certificate = Some("one\ntwo\n".to_owned());
    let plan = checked(&observed);
    assert_eq!(object(&plan, "ConfigMap", "demo-ca-trust")["data"]["ca.crt"], "one\ntwo\n");
    assert_eq!(mints(&plan), [Material::OperatorAccess, Material::Kubeconfig], "they carry it");
    assert_eq!(files(&plan), before, "a file changes, no pod");
    let info = tenant_object(&observed, "ConfigMap", "cluster-info").unwrap().to_string();
    assert!(info.contains("b25lCnR3bwo="), "{info}");
    // The bundle of an authority that was not seen is left as it is.
    observed.secrets.insert(Material::EtcdAuthority, Read::unknown("a timeout"));
    assert!(!kinds(&checked(&observed), "ConfigMap").contains(&"demo-etcd-trust".to_owned()));
}

/// Trap: an API server that also trusts the management cluster's issuer would let every pod of that cluster in, as
/// whatever ServiceAccount of the same name the tenant has. The issuers may well have the same name, so what counts is the
/// key: the tenant's own and no other, and users cannot add one.
#[test]
fn no_token_of_the_management_cluster_opens_a_tenant() {
    let smuggled = [
        "service-account-issuer",
        "service_account_issuer",
        "--service-account-issuer",
        "service-account-key-file",
        "service-account-signing-key-file",
        "service-account-jwks-uri",
        "client-ca-file",
        "requestheader-client-ca-file",
    ];
    let given: Value =
        smuggled.map(|name| (name.to_owned(), json!("https://kubernetes.default.svc"))).into_iter().collect();
    for spec in [json!({}), json!({"deployment": {"apiServer": {"args": given}}})] {
        let plan = checked(&all_ready(&spec));
        let flags = arguments(&plan, "demo-apiserver");
        let named = |prefix: &str| -> Vec<&str> {
            let wanted = flags.iter().filter_map(|flag| flag.strip_prefix("--"));
            wanted.filter(|flag| flag.starts_with(prefix)).collect()
        };
        assert_eq!(
            named("service-account-"),
            [
                "service-account-issuer=https://kubernetes.default.svc.cluster.local",
                "service-account-jwks-uri=https://kubernetes.default.svc.cluster.local/openid/v1/jwks",
                "service-account-key-file=/etc/kubernetes/pki/sa.pub",
                "service-account-signing-key-file=/etc/kubernetes/pki/sa.key",
            ]
        );
        for way in ["authentication-", "api-audiences", "oidc-", "token-auth-"] {
            assert_eq!(named(way), [] as [&str; 0], "{way}");
        }
        // Without audiences of its own an API server accepts its issuer's alone, and the key is the tenant's own Secret.
        let deployment = object(&plan, "Deployment", "demo-apiserver");
        let pod = &deployment["spec"]["template"]["spec"];
        assert_eq!(pod["automountServiceAccountToken"], false);
        assert!(!deployment.to_string().contains("\"serviceAccountToken\""), "{deployment}");
        let keys = json!([{"key": "tls.crt", "path": "sa.pub"}, {"key": "tls.key", "path": "sa.key"}]);
        let own = json!({"secret": {"items": keys, "name": "demo-sa"}}).to_string();
        assert!(deployment.to_string().contains(&own), "{deployment}");
        assert_eq!(deployment.to_string().matches("\"sa.pub\"").count(), 1, "one source of the key");
    }
}
