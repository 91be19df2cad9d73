//! Traps about who may do what in the tenant, and how that ends.

use super::*;
use crate::hosted_control_plane::kubeconfigs::KubeconfigFacts;

/// What the administrator's binding names.
fn bound(observed: &Observed) -> String {
    let binding = tenant_object(observed, "ClusterRoleBinding", "hangar:administrator").unwrap();
    let subject = &binding["subjects"][0];
    assert_eq!((&subject["kind"], binding["subjects"].as_array().unwrap().len()), (&json!("User"), 1));
    subject["name"].as_str().unwrap().to_owned()
}

#[test]
fn a_deleted_kubeconfig_is_revoked() {
    let mut observed = all_ready(&json!({}));
    let before = bound(&observed);
    // A renewal revokes nothing.
    secret(&mut observed, Material::Kubeconfig).not_after = Some(observed.now);
    settle(&mut observed);
    assert_eq!(bound(&observed), before);
    observed.secrets.insert(Material::Kubeconfig, Read::Absent);
    observed.now += days(1);
    settle(&mut observed);
    assert_ne!(bound(&observed), before);
    let serial = secret(&mut observed, Material::Kubeconfig).serial.clone().unwrap();
    assert_eq!(bound(&observed), format!("kubernetes-admin:{serial}"));
    assert!(tenant_object(&observed, "ClusterRoleBinding", "kubeadm:cluster-admins").is_none());
}

/// Whoever waits for Available logs in at once.
#[test]
fn nobody_is_called_available_before_the_administrator_can_log_in() {
    let mut observed = api_server_ready(&json!({}));
    settle(&mut observed);
    assert!(observed.secret(Material::Kubeconfig).is_absent(), "the tenant was not reached");
    assert_eq!(condition_status(&checked(&observed), "Available"), "False NoKubeconfig");
    reach_tenant(&mut observed);
    settle(&mut observed);
    assert_eq!(condition_status(&checked(&observed), "Available"), "True Available");
    // Later it is revoked, which takes nothing from others.
    observed.control_plane.status = Some(observed.plan().status);
    observed.secrets.insert(Material::Kubeconfig, Read::Absent);
    observed.tenant = Read::unknown("not reached");
    assert_eq!(condition_status(&checked(&observed), "Available"), "True Available");
    assert_eq!(mints(&checked(&observed)), []);
}

#[test]
fn a_serial_that_somebody_wrote_is_none() {
    let mut observed = all_ready(&json!({}));
    observed.now = observed.now.checked_add(days(1) / 2).unwrap();
    for written in ["", "x", "1:system", "-1"] {
        let mut observed = observed.clone();
        secret(&mut observed, Material::Kubeconfig).serial = Some(written.to_owned());
        // Another user is bound, and gets a kubeconfig then.
        let next = observed.now.as_millisecond().to_string();
        assert_eq!(bound(&observed), format!("kubernetes-admin:{next}"), "{written}");
        assert_eq!(mints(&checked(&observed)), [], "{written}");
        settle(&mut observed);
        assert_eq!(secret(&mut observed, Material::Kubeconfig).serial, Some(next), "{written}");
    }
}

#[test]
fn our_own_access_lives_for_a_day_and_has_no_group() {
    let mut observed = created(&json!({}));
    let mut found = None;
    for _ in 0..40 {
        let plan = checked(&observed);
        for step in &plan.steps {
            if let Step::Own(OwnStep::Mint(mint)) = step {
                found = found.or_else(|| {
                    mint.content.intent().filter(|_| mint.material == Material::OperatorAccess).cloned()
                });
            }
        }
        let Some(step) = plan.steps.iter().next().cloned() else { break };
        observed.fold(&step, &super::super::fixture::outcome(&step));
        if let Step::Own(OwnStep::Mint(mint)) = &step {
            super::super::fixture::complete(&mut observed, mint);
        }
    }
    let intent = found.unwrap();
    assert_eq!((intent.common_name.as_str(), intent.organizations.len()), ("hangar:control-plane", 0));
    assert_eq!(intent.lifetime.as_secs(), 24 * 60 * 60);
    assert_eq!(
        secret(&mut observed, Material::OperatorAccess).renew_at(),
        Some(observed.now + jiff::SignedDuration::from_hours(16))
    );
}

/// The role can do what the plans of any tenant ask for, or that tenant would never be complete.
#[test]
fn our_rights_cover_what_we_keep() {
    let observed = all_ready(&json!({}));
    let role = serde_json::to_value(&tenant_rights(&observed)[0]).unwrap();
    let rules = role["rules"].as_array().unwrap();
    let has = |list: &Value, wanted: &str| list.as_array().unwrap().iter().any(|one| one == wanted);
    let allows = |verb: &str, group: &str, resource: &str, name: &str| {
        rules.iter().any(|rule| {
            has(&rule["verbs"], verb)
                && has(&rule["apiGroups"], group)
                && has(&rule["resources"], resource)
                && (rule.get("resourceNames").is_none() || has(&rule["resourceNames"], name))
        })
    };
    for spec in
        [json!({}), json!({"exposure": {"type": "ClusterIP"}}), json!({"kubeProxy": {"disabled": true}})]
    {
        let observed = all_ready(&spec);
        let kept = tenant_objects(&observed);
        for object in &kept {
            let identity = ObjectIdentity::of(object);
            let group = identity.api_version.split_once('/').map_or("", |(group, _)| group);
            let resource = format!("{}s", identity.kind.to_lowercase().trim_end_matches('s'));
            for verb in ["get", "create", "patch"] {
                assert!(allows(verb, group, &resource, &identity.name), "{verb} {identity}");
            }
            let rbac = "rbac.authorization.k8s.io";
            if identity.kind.ends_with("Role") {
                assert!(allows("escalate", rbac, &resource, &identity.name), "{identity}");
            }
            if let Some(bound) = object.data.get("roleRef") {
                let resource = format!("{}s", bound["kind"].as_str().unwrap().to_lowercase());
                assert!(allows("bind", rbac, &resource, bound["name"].as_str().unwrap()), "{identity}");
            }
        }
        for identity in tenant_leftovers(&observed) {
            let group = identity.api_version.split_once('/').map_or("", |(group, _)| group);
            assert!(
                allows("delete", group, &format!("{}s", identity.kind.to_lowercase()), &identity.name),
                "{identity}"
            );
        }
    }
    assert!(allows("list", "", "nodes", "") && allows("watch", "", "nodes", ""));
    assert!(!role.to_string().contains('*') && !role.to_string().contains("secrets"));
    // What pods say is read where add-ons are, and nowhere else, and so is what Hangar keeps there.
    let addons = serde_json::to_value(&tenant_rights(&observed)[2]).unwrap();
    assert_eq!(addons["metadata"]["namespace"], names::ADDONS_NAMESPACE);
    assert_eq!(
        addons["rules"],
        json!([
            {"apiGroups": ["apps"], "resources": ["daemonsets", "deployments"], "verbs": ["list", "watch"]},
            {"apiGroups": [""], "resources": ["configmaps", "pods", "serviceaccounts"], "verbs": ["list"]},
            {"apiGroups": ["rbac.authorization.k8s.io"], "resources": ["rolebindings", "roles"], "verbs": ["list"]},
        ])
    );
    assert!(
        !allows("list", "", "configmaps", "")
            && !allows("list", "", "pods", "")
            && !allows("list", "apps", "deployments", "")
    );
}

#[test]
fn rights_come_first_and_then_the_tenant_is_asked_again() {
    let mut observed = all_ready(&json!({}));
    let objects =
        tenant_rights(&observed).iter().map(|one| (ObjectIdentity::of(one), TenantObject::Absent)).collect();
    observed.tenant = Read::One(TenantFacts { lacks_rights: true, objects, ..TenantFacts::default() });
    let plan = checked(&observed);
    assert_eq!(condition_status(&plan, conditions::workload_ready::TYPE), "False NoRights");
    let steps: Vec<Step> = plan.steps.iter().cloned().collect();
    assert_eq!(steps.len(), 4);
    for step in steps {
        assert!(matches!(&step, Step::Tenant(step) if step.is_of_rights()), "{step:?}");
        assert_eq!(observed.wanted(), None);
        observed.fold(&step, &super::super::fixture::outcome(&step));
    }
    assert_eq!(observed.wanted(), Some(Wanted::Tenant));
    // A name that somebody else has is not taken from them.
    let objects =
        tenant_rights(&observed).iter().map(|one| (ObjectIdentity::of(one), TenantObject::Foreign)).collect();
    observed.tenant = Read::One(TenantFacts { lacks_rights: true, objects, ..TenantFacts::default() });
    let plan = checked(&observed);
    assert_eq!(
        (plan.steps.len(), condition_status(&plan, conditions::workload_ready::TYPE)),
        (0, "False NameTaken".to_owned())
    );
}

#[test]
fn a_changed_kubeconfig_is_told_first_and_minted_again_then() {
    let mut observed = all_ready(&json!({}));
    for (material, server) in [
        (Material::OperatorAccess, "https://api-demo.team.svc:6443".to_owned()),
        (Material::Kubeconfig, format!("https://{ADDRESS}:6443")),
    ] {
        let trust = Some("certificate of ca\n".to_owned());
        let fingerprint = secret(&mut observed, material).fingerprint.clone();
        let minted = KubeconfigFacts { server, trust, tls_server_name: None, fingerprint };
        let facts = |minted: &KubeconfigFacts| Some(Ok(minted.clone()));
        secret(&mut observed, material).kubeconfig = facts(&minted);
        assert_eq!(mints(&checked(&observed)), [], "{material} is as it was minted");
        let other = |field: &str| {
            let mut other = minted.clone();
            match field {
                "server" => other.server = "https://192.0.2.66".to_owned(),
                "tls-server-name" => other.tls_server_name = Some("elsewhere".to_owned()),
                "certificate-authority-data" => other.trust = None,
                _ => other.fingerprint = "another".to_owned(),
            }
            other
        };
        for field in ["server", "tls-server-name", "certificate-authority-data", "client-certificate-data"] {
            secret(&mut observed, material).kubeconfig = Some(Ok(other(field)));
            let plan = checked(&observed);
            assert_eq!(condition_status(&plan, conditions::certificates_valid::TYPE), "False Edited");
            let told =
                plan.status.conditions.iter().find(|one| one.type_ == conditions::certificates_valid::TYPE);
            let message = &told.unwrap().message;
            assert!(message.contains(&format!("demo-{material}: ")) && message.contains(field), "{message}");
            assert_eq!(mints(&plan), [], "it is told first");
            let before = observed.control_plane.status.replace(plan.status);
            assert_eq!(mints(&checked(&observed)), [material]);
            settle(&mut observed);
            assert_eq!(
                condition_status(&checked(&observed), conditions::certificates_valid::TYPE),
                "True Valid"
            );
            observed.control_plane.status = before;
        }
        // One that cannot be read at all was changed as well.
        secret(&mut observed, material).kubeconfig = Some(Err("users[].user.tokenFile is set".to_owned()));
        assert_eq!(
            condition_status(&checked(&observed), conditions::certificates_valid::TYPE),
            "False Edited"
        );
        secret(&mut observed, material).kubeconfig = facts(&minted);
    }
}
