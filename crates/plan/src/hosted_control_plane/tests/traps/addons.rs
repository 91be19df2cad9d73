//! Traps about add-ons that do not run in the tenant.

use super::*;
use conditions::{addons_ready, available, ready};

/// The facts of an add-on, to be changed.
fn addon<'observed>(observed: &'observed mut Observed, name: &str) -> &'observed mut Read<AddonFacts> {
    observed.addons.iter_mut().find(|(addon, _)| addon.name == name).unwrap().1
}

fn set_nodes(observed: &mut Observed, nodes: u32) {
    for tenant in observed.tenant.iter_mut() {
        tenant.nodes = nodes;
    }
}

/// What is said about add-ons, and what follows from it.
fn told(observed: &Observed) -> String {
    let plan = checked(observed);
    let of = |type_: &str| {
        let found = plan.status.conditions.iter().find(|found| found.type_ == type_);
        found.map_or_else(String::new, |found| {
            format!("{type_}: {} {}\n  {}\n", found.status, found.reason, found.message)
        })
    };
    [addons_ready::TYPE, available::TYPE, ready::TYPE].map(of).concat()
}

#[test]
fn add_ons_that_do_not_run_are_told_where_there_are_nodes() {
    let mut stages = vec![("all run", told(&all_ready(&json!({}))))];
    let mut observed = all_ready(&json!({}));
    set_nodes(&mut observed, 0);
    settle(&mut observed);
    observed.addons.clear();
    stages.push(("no nodes", told(&observed)));

    let mut observed = all_ready(&json!({}));
    set_nodes(&mut observed, 3);
    settle(&mut observed);
    let pulling = "coredns-5d4f-x7: coredns: ImagePullBackOff: Back-off pulling image \"coredns/coredns\"";
    *addon(&mut observed, "coredns") =
        Read::One(AddonFacts { trouble: Some(pulling.to_owned()), ..addon_facts(2, 0) });
    stages.push(("CoreDNS cannot be pulled", told(&observed)));
    *addon(&mut observed, "coredns") = Read::One(AddonFacts { updated: 1, ..addon_facts(2, 2) });
    *addon(&mut observed, "kube-proxy") = Read::One(addon_facts(3, 1));
    stages.push(("kube-proxy runs on one of three, CoreDNS is being replaced", told(&observed)));
    *addon(&mut observed, "coredns") = Read::Absent;
    *addon(&mut observed, "kube-proxy") = Read::One(AddonFacts { is_observed: false, ..addon_facts(3, 3) });
    stages.push(("CoreDNS is not there, kube-proxy was changed just now", told(&observed)));
    let stages = stages.into_iter().map(|(name, told)| format!("# {name}\n{told}"));
    insta::assert_snapshot!(stages.collect::<Vec<_>>().join("\n"));
}

#[test]
fn add_ons_that_cannot_be_read_are_as_they_were() {
    let mut observed = all_ready(&json!({}));
    *addon(&mut observed, "coredns") = Read::One(addon_facts(2, 0));
    let status = checked(&observed).status;
    observed.control_plane.status = Some(status.clone());
    let unread: [fn(&mut Observed); 4] = [
        |observed| *addon(observed, "coredns") = Read::unknown("the watch is broken"),
        // Even if another one is known not to run.
        |observed| {
            *addon(observed, "coredns") = Read::unknown("the watch is broken");
            *addon(observed, "kube-proxy") = Read::One(addon_facts(1, 0));
        },
        |observed| observed.addons.clear(),
        |observed| observed.tenant = Read::unknown("it does not answer"),
    ];
    for unread in unread {
        let mut observed = observed.clone();
        unread(&mut observed);
        let plan = checked(&observed);
        let found = |status: &HostedControlPlaneStatus, type_: &str| {
            status.conditions.iter().find(|found| found.type_ == type_).cloned().unwrap()
        };
        for type_ in [addons_ready::TYPE, ready::TYPE] {
            assert_eq!(found(&plan.status, type_), found(&status, type_));
        }
    }
    // Where nothing was said before, nobody knows; and nothing else depends on it.
    observed.control_plane.status = None;
    observed.addons.clear();
    let plan = checked(&observed);
    assert_eq!(condition_status(&plan, addons_ready::TYPE), "Unknown NotReadable");
    assert_eq!(condition_status(&plan, ready::TYPE), "True Ready");
}

#[test]
fn only_add_ons_that_are_ours_are_mentioned() {
    let without = all_ready(&json!({"kubeProxy": {"disabled": true}}));
    let names = |observed: &Observed| -> Vec<String> {
        tenant_addons(observed)
            .into_iter()
            .map(|(addon, selector)| format!("{} {selector}", addon.name))
            .collect()
    };
    assert_eq!(
        names(&without),
        ["konnectivity-agent k8s-app=konnectivity-agent", "coredns k8s-app=kube-dns"]
    );
    let agents_only = all_ready(&json!({"kubeProxy": {"disabled": true}, "coredns": {"disabled": true}}));
    assert_eq!(names(&agents_only), ["konnectivity-agent k8s-app=konnectivity-agent"]);
    assert_eq!(condition_status(&checked(&agents_only), addons_ready::TYPE), "True Running");
    let mut observed = all_ready(&json!({}));
    assert!(names(&observed).contains(&"kube-proxy k8s-app=kube-proxy".to_owned()));
    // What selects them in a tenant.
    let (label, value) = names::ADDONS_SELECTOR.split_once('=').unwrap();
    let addons: BTreeSet<ObjectIdentity> =
        tenant_addons(&observed).into_iter().map(|(addon, _)| addon).collect();
    for object in tenant_objects(&observed) {
        let identity = ObjectIdentity::of(&object);
        if addons.contains(&identity) {
            assert_eq!(identity.namespace, names::ADDONS_NAMESPACE);
            assert_eq!(object.metadata.labels.unwrap().get(label).map(String::as_str), Some(value));
        }
    }
    *addon(&mut observed, "coredns") = Read::One(addon_facts(2, 0));
    let coredns = addons.iter().find(|addon| addon.name == "coredns").unwrap().clone();
    for tenant in observed.tenant.iter_mut() {
        tenant.objects.insert(coredns.clone(), TenantObject::Foreign);
    }
    assert_eq!(condition_status(&checked(&observed), addons_ready::TYPE), "True Running");
}

#[test]
fn what_a_tenant_says_is_one_short_line() {
    assert_eq!(tenants_words("a\n* Ready:\tx\u{1b}[2J  b"), "a * Ready: x [2J b");
    for hostile in ["ä".repeat(1 << 20), "\n".repeat(1 << 20), "x ".repeat(300)] {
        let words = tenants_words(&hostile);
        assert!(words.len() <= 400 && !words.contains('\n'), "{words}");
    }
}
