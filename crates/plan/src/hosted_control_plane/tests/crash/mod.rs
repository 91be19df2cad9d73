//! Crash sweeps over creation, the objects in the tenant, scale, upgrades and deletion: the end is the same, no key that
//! must stay is minted twice, nothing is deleted before what needs it, and no version comes before the one that it needs.
//!
//! Plans are pure, so the plan of a state is made once and remembered; otherwise the sweep would plan tens of thousands
//! of times.

mod act;
mod members;
mod seen;
mod space;
mod world;

use std::rc::Rc;

use serde_json::json;

use super::super::*;
use super::fixture::{control_plane, now, through_gateway};
use crate::flow::crash::{World as _, sweep};
use crate::flow::{Next, Rounds, Setbacks};
use world::{Clusters, TENANT_OBJECTS};

/// More than any run needs.
const LIMIT: usize = 400;

#[test]
fn creating_survives_every_crash() {
    let world = Clusters::new();
    let swept = sweep(&world, LIMIT).unwrap();
    assert!(swept.points > 150, "{}", swept.points);
    let mut end = world.clone();
    converge(&mut end);
    let (objects, lines, _, violations, _) = end.end_state();
    assert_eq!(violations, Vec::<String>::new());
    assert!(lines.contains(&"Available=False".to_owned()), "nobody could log in yet: {lines:?}");
    assert!(objects.len() > 15, "{}", objects.len());
    let etcd = &end.objects
        [&ObjectIdentity { api_version: "v1".to_owned(), ..Clusters::identity("ConfigMap", "demo-etcd") }];
    assert!(etcd.1.data.to_string().contains("initial-cluster-state: existing"), "{:?}", etcd.1.data);
    // Names came late and cost the API server's certificate a second time, nothing else.
    let again: Vec<_> = end.minted.iter().filter(|(_, times)| **times > 1).collect();
    assert_eq!(again, [(&Material::ApiServer, &2)]);
}

#[test]
fn furnishing_the_tenant_survives_every_crash() {
    let mut world = Clusters::new();
    converge(&mut world);
    world.is_reachable = true;
    let swept = sweep(&world, LIMIT).unwrap();
    // And the kubeconfig, once its user is bound.
    assert_eq!(swept.trace.len(), TENANT_OBJECTS + 1, "{:?}", swept.trace);
    converge(&mut world);
    let (_, lines, tenant, violations, _) = world.end_state();
    assert!(lines.contains(&"Available=True".to_owned()), "{lines:?}");
    assert_eq!(violations, Vec::<String>::new());
    assert_eq!(tenant.len(), TENANT_OBJECTS);
    assert!(lines.contains(&"WorkloadReady=True".to_owned()), "{lines:?}");
}

#[test]
fn deleting_survives_every_crash() {
    let mut world = Clusters::new();
    converge(&mut world);
    world.control_plane.metadata.deletion_timestamp =
        Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(now()));
    let swept = sweep(&world, LIMIT).unwrap();
    assert!(swept.trace.len() > 20, "{:?}", swept.trace);
    converge(&mut world);
    assert_eq!(world.violations, Vec::<String>::new());
    assert_eq!((world.secrets.len(), world.claims.len()), (0, 0));
    assert_eq!(world.control_plane.metadata.finalizers, Some(Vec::new()));
    for kind in ["Deployment", "StatefulSet"] {
        assert!(!world.objects.keys().any(|object| object.kind == kind));
    }
}

/// Whoever gives addresses, or has the Gateway, comes when everything else is there.
#[test]
fn every_way_in_survives_every_crash() {
    let name = json!({"host": "api.team.clusters.example.com", "port": 443});
    for (more, is_named, endpoint) in [
        (json!({}), false, "192.0.2.10:6443"),
        (json!({}), true, "api-demo.example.net:6443"),
        (json!({"exposure": {"type": "ClusterIP"}}), false, "10.0.0.7:6443"),
        (json!({"exposure": {"type": "NodePort"}}), false, "10.0.0.5:31000"),
        (through_gateway(), true, "demo.team.clusters.example.com:443"),
        (
            json!({"gateway": through_gateway()["gateway"], "controlPlaneEndpoint": name}),
            false,
            "api.team.clusters.example.com:443",
        ),
    ] {
        let mut world = Clusters { is_named, ..Clusters::reached_by(&more) };
        converge(&mut world);
        assert!(!world.end_state().1.contains(&"EndpointReady=True".to_owned()), "{more}");
        world.is_exposed = true;
        sweep(&world, LIMIT).unwrap();
        converge(&mut world);
        let (_, lines, _, violations, _) = world.end_state();
        assert_eq!(violations, Vec::<String>::new());
        assert!(lines.contains(&"EndpointReady=True".to_owned()), "{more}: {lines:?}");
        assert!(!lines.contains(&"RoutesReady=False".to_owned()), "{more}: {lines:?}");
        let published = world.control_plane.spec.settings.control_plane_endpoint.clone().unwrap();
        assert_eq!((published.to_string().as_str(), &published), (endpoint, &world.infrastructure));
    }
}

/// Under a name that people gave, from each way to each other one.
#[test]
fn every_change_of_the_way_in_survives_every_crash() {
    let ways = [
        json!({"gateway": through_gateway()["gateway"]}),
        json!({"exposure": {"type": "LoadBalancer"}}),
        json!({"exposure": {"type": "NodePort"}}),
        json!({"exposure": {"type": "ClusterIP"}}),
    ];
    let pairs = ways.iter().flat_map(|before| ways.iter().map(move |after| (before, after)));
    let pairs = pairs.filter(|(before, after)| before != after).map(|(before, after)| (before, after, false));
    // And from and to a load balancer that has a name.
    let named = [(&ways[0], &ways[1], true), (&ways[1], &ways[2], true)];
    // The states before a change are the same for several.
    let plans = Rc::default();
    for (before, after, is_named) in pairs.chain(named) {
        let mut spec = before.clone();
        spec["controlPlaneEndpoint"] = json!({"host": "api.team.clusters.example.com", "port": 443});
        let mut world = Clusters { plans: Rc::clone(&plans), is_named, ..Clusters::reached_by(&spec) };
        world.is_exposed = true;
        converge(&mut world);
        let wanted = control_plane(after).spec.settings;
        let settings = &mut world.control_plane.spec.settings;
        (settings.gateway, settings.exposure) = (wanted.gateway, wanted.exposure);
        sweep(&world, LIMIT).unwrap();
        converge(&mut world);
        assert_eq!(world.violations, Vec::<String>::new());
        let has_routes = world.objects.keys().any(|object| object.kind == "TLSRoute");
        assert_eq!(has_routes, after.get("gateway").is_some(), "{before} {after}");
        let published = world.control_plane.spec.settings.control_plane_endpoint.clone().unwrap();
        assert_eq!(published.to_string(), "api.team.clusters.example.com:443");
    }
    // And not where nodes use an address.
    let mut world = Clusters::reached_by(&json!({}));
    world.is_exposed = true;
    converge(&mut world);
    world.control_plane.spec.settings.gateway = control_plane(&through_gateway()).spec.settings.gateway;
    let swept = sweep(&world, LIMIT).unwrap();
    assert_eq!(swept.trace.len(), 0, "{:?}", swept.trace);
}

/// Somebody deletes keys that cannot be replaced: they come back as they were.
#[test]
fn a_deleted_key_survives_every_crash() {
    for materials in [
        &[Material::ClusterAuthority][..],
        &[Material::ServiceAccountKeys, Material::EncryptionConfiguration],
    ] {
        let mut world = Clusters::new();
        converge(&mut world);
        let fingerprints = |world: &Clusters| -> Vec<String> {
            world.secrets.values().map(|facts| facts.fingerprint.clone()).collect()
        };
        let (before, minted) = (fingerprints(&world), world.minted.clone());
        for material in materials {
            world.secrets.get_mut(material).unwrap().is_deleting = true;
        }
        let swept = sweep(&world, LIMIT).unwrap();
        // A copy, its release, the Secret, and the end of the copy in two steps.
        assert_eq!(swept.trace.len(), 5 * materials.len(), "{:?}", swept.trace);
        converge(&mut world);
        assert_eq!((fingerprints(&world), &world.minted), (before, &minted));
        assert!(world.secrets.values().all(|facts| !facts.is_deleting) && world.copies.is_empty());
        assert_eq!(world.violations, Vec::<String>::new());
    }
}

/// A control plane that runs, with three members and two API servers, and whose tenant can be reached.
fn running(version: &str) -> Clusters {
    let mut world = Clusters { is_reachable: true, ..Clusters::new() };
    world.control_plane.spec.version = version.to_owned();
    converge(&mut world);
    assert!(world.end_state().1.contains(&"RollingOut=False".to_owned()), "{:?}", world.end_state().1);
    world
}

/// Sweeps what follows from a change, and returns the world after it.
fn swept(mut world: Clusters, change: impl FnOnce(&mut Clusters)) -> (Clusters, Vec<String>) {
    change(&mut world);
    let swept = sweep(&world, LIMIT).unwrap();
    for _ in 0..2 {
        converge(&mut world);
    }
    assert_eq!(world.violations, Vec::<String>::new());
    (world, swept.trace.iter().map(ToString::to_string).collect())
}

#[test]
fn scaling_survives_every_crash() {
    for replicas in [1, 3] {
        let (world, _) = swept(running("v1.34.10"), |world| world.control_plane.spec.replicas = replicas);
        assert_eq!(world.servers.len(), usize::try_from(replicas).unwrap());
        assert!(world.end_state().1.contains(&"ScalingUp=False".to_owned()));
    }
}

#[test]
fn an_upgrade_survives_every_crash() {
    let (world, trace) =
        swept(running("v1.33.0"), |world| world.control_plane.spec.version = "v1.34.10".to_owned());
    assert!(world.servers.iter().chain(world.controllers.values()).all(|version| version == "v1.34.10"));
    assert!(!trace.iter().any(|step| step.starts_with("evict")), "etcd stays: {trace:?}");
    let lines = world.end_state().1;
    assert!(lines.contains(&"RollingOut=False".to_owned()), "{lines:?}");
    assert_eq!(
        world.control_plane.metadata.annotations.unwrap()[names::SERVED_VERSION_ANNOTATION],
        "v1.34.10"
    );
}

/// Each member once, the leader last, and API servers after them.
#[test]
fn an_upgrade_that_takes_etcd_along_survives_every_crash() {
    let (world, trace) =
        swept(running("v1.36.4"), |world| world.control_plane.spec.version = "v1.37.1".to_owned());
    let position = |step: &str| trace.iter().position(|found| found.contains(step)).unwrap();
    let evictions: Vec<&String> = trace.iter().filter(|step| step.starts_with("evict")).collect();
    assert_eq!(evictions.len(), 3, "{trace:?}");
    assert!(evictions[2].contains("demo-etcd-0"), "{evictions:?}");
    let order =
        ["etcd-version", "StatefulSet", "evict", "Deployment team/demo-apiserver", "controller-manager"];
    let positions: Vec<usize> = order.iter().map(|step| position(step)).collect();
    assert!(positions.is_sorted(), "{order:?} {positions:?} {trace:?}");
    assert!(world.members.values().all(|version| version == "3.7.3-0"));
    assert!(world.servers.iter().chain(world.controllers.values()).all(|version| version == "v1.37.1"));
}

/// API servers of the new version do not start. etcd's step is not taken back, and nothing else has happened.
#[test]
fn an_upgrade_that_is_taken_back_survives_every_crash() {
    let (before, after) = ("v1.36.4", "v1.37.1");
    let mut world = running(before);
    world.broken = Some(after);
    let (stopped, _) = swept(world, |world| world.control_plane.spec.version = after.to_owned());
    let conditions = stopped.observe().observed.plan().status.conditions;
    let rolling = conditions.iter().find(|found| found.type_ == "RollingOut").unwrap();
    assert_eq!(rolling.reason, "Stopped");
    assert!(rolling.message.contains("ImagePullBackOff"), "{}", rolling.message);
    assert!(
        rolling.message.contains("v1.36.4 serves on, and spec.version can be set back"),
        "{}",
        rolling.message
    );
    assert!(stopped.servers.iter().all(|version| version == before));
    let members = stopped.members.clone();
    assert!(members.values().all(|version| version == "3.7.3-0"));
    let (back, _) = swept(stopped, |world| world.control_plane.spec.version = before.to_owned());
    assert!(back.servers.iter().chain(back.controllers.values()).all(|version| version == before));
    assert_eq!((back.stuck, back.members), (None, members));
}

fn asking(restore: &serde_json::Value) -> Clusters {
    let backup = json!({"schedule": "@daily", "secret": {"name": "bucket"}});
    let etcd = json!({"replicas": 3, "backup": backup, "restore": restore});
    Clusters { control_plane: control_plane(&json!({"etcd": etcd, "replicas": 2})), ..Clusters::new() }
}

fn backup(has_keys: bool) -> BackupFacts {
    BackupFacts {
        id: "20261118T194500Z".to_owned(),
        from: "team/demo".to_owned(),
        etcd_version: "3.6.16".to_owned(),
        is_encrypted: false,
        has_keys,
        store: "https://s3.example.org".to_owned(),
        problem: None,
    }
}

#[test]
fn starting_from_a_backup_survives_every_crash() {
    for has_keys in [true, false] {
        let mut world = Clusters { backup: Some(backup(has_keys)), ..asking(&json!({"backup": "latest"})) };
        if has_keys {
            let trace;
            (world, trace) = swept(world, |_| {});
            let records = trace.iter().filter(|step| step.contains("hangar.cluster.x-k8s.io/restore"));
            assert_eq!(records.count(), 1, "{trace:?}");
        } else {
            (0..2).for_each(|_| converge(&mut world));
        }
        for volume in world.volumes.values() {
            let found: Vec<_> = volume.iter().map(|(name, content)| format!("{name}: {content}")).collect();
            assert_eq!(found, ["data-2: backup 20261118T194500Z"]);
        }
        assert!(world.members.len() == 3 && world.members.values().all(|version| version == "3.6.16-0"));
        assert_eq!(world.servers.len(), 2);
        let plan = world.observe().observed.plan();
        let restored = plan.status.conditions.iter().find(|found| found.type_ == "EtcdRestored").unwrap();
        assert_eq!(restored.reason, if has_keys { "Restored" } else { "KeysLacking" });
    }
}

/// What is replaced is still on the volumes.
#[test]
fn replacing_data_survives_every_crash() {
    let mut world =
        Clusters { is_reachable: true, backup: Some(backup(false)), ..asking(&json!({"backup": "latest"})) };
    let restore = world.control_plane.spec.settings.etcd.as_mut().unwrap().restore.take();
    converge(&mut world);
    let keys = world.secrets.clone();
    let (world, _) = swept(world, |world| {
        let etcd = world.control_plane.spec.settings.etcd.as_mut().unwrap();
        etcd.restore = restore;
        etcd.restore.as_mut().unwrap().replace = Some("demo/1".to_owned());
    });
    for volume in world.volumes.values() {
        let found: Vec<_> = volume.iter().map(|(name, content)| format!("{name}: {content}")).collect();
        assert_eq!(found, ["data: written here", "data-2: backup 20261118T194500Z"]);
    }
    assert!(world.members.values().all(|version| version == "3.6.16-0"));
    let fingerprint = |secrets: &std::collections::BTreeMap<Material, SecretFacts>| {
        Material::IRREPLACEABLE.map(|material| secrets[&material].fingerprint.clone())
    };
    assert_eq!(fingerprint(&world.secrets), fingerprint(&keys));
}

/// A fault-free run, every plan of it checked.
fn converge(world: &mut Clusters) {
    for _ in 0..6 {
        let mut seen = world.observe();
        super::checker::checked(&seen.observed);
        let (mut rounds, setbacks) = (Rounds::default(), Setbacks::default());
        loop {
            let steps = world.plan(&seen);
            let Next::Run(step) = rounds.next(&steps, &setbacks, now()) else { break };
            let outcome = world.run(step);
            world.fold(&mut seen, step, &outcome);
            rounds.ran(step.id(), outcome);
        }
        world.settle();
    }
}
