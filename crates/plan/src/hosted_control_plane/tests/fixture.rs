//! Observations for the tests: a control plane of the Cluster `demo`, at each stage of its life.

use std::sync::Arc;

use hangar_api::contract::Endpoint;
use hangar_api::controlplane::v1alpha1::HostedControlPlane;
use hangar_api::reference::ContractVersionedObjectReference;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::super::etcd_calls::{ListedMember, MemberId, MemberList, MemberState};
use super::super::exposure::{ClassFacts, GatewayFacts, RouteApi, RouteFacts, RouteVersion, Ways};
use super::super::*;
use super::checker;
use crate::flow::{Clocks, Outcome, Read};
use crate::limits::Limits;

pub(super) const ADDRESS: &str = "192.0.2.10";
pub(super) const TUNNEL_ADDRESS: &str = "192.0.2.11";

/// What the scenarios ask for beyond the defaults.
const LIMITS: &str = "
serviceAnnotations: [a, share]
loadBalancerClasses: [example.org/lb]
priorityClasses: [high]
registries: [registry.k8s.io, registry.example.org]
tolerations: [tenants]
";

pub(super) fn now() -> Timestamp {
    "2026-01-02T03:04:05Z".parse().unwrap()
}

pub(super) fn days(days: i64) -> SignedDuration {
    SignedDuration::from_hours(days * 24)
}

/// A control plane as somebody writes it; `spec` is merged over the least that is needed.
pub(super) fn control_plane(spec: &Value) -> HostedControlPlane {
    let mut object = json!({
        "apiVersion": "controlplane.cluster.x-k8s.io/v1alpha1",
        "kind": "HostedControlPlane",
        "metadata": {
            "name": "demo-plane",
            "namespace": "team",
            "uid": "11111111-1111-1111-1111-111111111111",
            "generation": 3,
            "ownerReferences": [{
                "apiVersion": "cluster.x-k8s.io/v1beta2",
                "kind": "Cluster",
                "name": "demo",
                "uid": "22222222-2222-2222-2222-222222222222",
            }],
        },
        "spec": {"version": "v1.34.10", "replicas": 1, "etcd": {"replicas": 1}},
    });
    if let (Some(target), Some(more)) = (object["spec"].as_object_mut(), spec.as_object()) {
        target.extend(more.clone());
    }
    serde_json::from_value(object).unwrap()
}

/// First look: nothing is there.
pub(super) fn created(spec: &Value) -> Observed {
    let control_plane = control_plane(spec);
    let named = sources(&control_plane.spec.settings).into_iter();
    Observed {
        now: now(),
        limits: Arc::new(Limits::parse(LIMITS).unwrap()),
        clocks: Clocks::alone(now()),
        control_plane,
        cluster: Read::One(ClusterFacts {
            name: "demo".to_owned(),
            pod_ranges: vec!["10.244.0.0/16".to_owned()],
            service_ranges: vec!["10.96.0.0/16".to_owned()],
            control_plane: Some("demo-plane".to_owned()),
            ..ClusterFacts::default()
        }),
        infrastructure: Read::One(InfrastructureFacts {
            reference: ContractVersionedObjectReference {
                api_group: "infrastructure.cluster.x-k8s.io".to_owned(),
                kind: "OpenStackCluster".to_owned(),
                name: "demo".to_owned(),
            },
            uid: "33333333-3333-3333-3333-333333333333".to_owned(),
            endpoint: Endpoint::default(),
        }),
        secrets: Material::ALL.into_iter().map(|material| (material, Read::Absent)).collect(),
        copies: Material::IRREPLACEABLE.into_iter().map(|material| (material, Read::Absent)).collect(),
        etcd: Read::Absent,
        etcd_pods: Read::Absent,
        etcd_claims: Read::Absent,
        etcd_members: Read::unknown("no member has an address"),
        etcd_list: Read::unknown("nobody wanted it"),
        api_server: Read::Absent,
        api_server_pods: Read::Absent,
        controller_manager: Read::Absent,
        scheduler: Read::Absent,
        controller_pods: Read::Absent,
        service: Read::Absent,
        tunnel: Read::Absent,
        ways: ways(),
        tenant: Read::unknown("it has no kubeconfig yet"),
        addons: std::collections::BTreeMap::new(),
        network_policies: Read::Absent,
        cilium_policies: Read::Absent,
        pod_monitors: Read::Absent,
        restorable: Read::unknown(NOT_ASKED),
        sources: named.map(|source| (source, Read::One(source_facts(&["token", "file"])))).collect(),
        manager_namespace: Some("hangar-system".to_owned()),
        manager_image: Some("registry.example.org/hangar:v1".to_owned()),
        backup: backup::Work::None,
        troubles: std::collections::BTreeMap::new(),
    }
}

/// No Gateway API, and nothing that was looked for.
pub(super) fn ways() -> Ways {
    Ways { route_api: Read::Absent, ..Ways::unknown("this way in does not need it") }
}

/// A Gateway as it should be, with the names of `spec`s below.
pub(super) fn gateway() -> Value {
    json!({
        "apiVersion": "gateway.networking.k8s.io/v1",
        "kind": "Gateway",
        "metadata": {"name": "shared", "namespace": "gateways", "generation": 2},
        "spec": {
            "gatewayClassName": "example",
            "listeners": [
                {"name": "web", "protocol": "HTTP", "port": 80},
                {
                    "name": "tls", "protocol": "TLS", "port": 443, "hostname": "*.clusters.example.com",
                    "tls": {"mode": "Passthrough"},
                    "allowedRoutes": {"namespaces": {"from": "All"}},
                },
            ],
        },
        "status": {
            "addresses": [{"value": "192.0.2.80"}],
            "conditions": [
                {"type": "Accepted", "status": "True", "reason": "Accepted", "observedGeneration": 2},
                {"type": "Programmed", "status": "True", "reason": "Programmed", "observedGeneration": 2},
            ],
        },
    })
}

/// What a control plane asks for that is reached through it.
pub(super) fn through_gateway() -> Value {
    json!({"gateway": {"namespace": "gateways", "name": "shared"}})
}

/// Sees this Gateway, and its class, which is accepted.
pub(super) fn see_gateway(observed: &mut Observed, gateway: &Value) {
    let accepted = json!({
        "apiVersion": "gateway.networking.k8s.io/v1", "kind": "GatewayClass", "metadata": {"name": "example"},
        "status": {"conditions": [{"type": "Accepted", "status": "True", "reason": "Accepted"}]},
    });
    let ways = &mut observed.ways;
    ways.route_api = Read::One(RouteApi { version: Some(RouteVersion::V1Alpha2) });
    ways.gateway = Read::One(GatewayFacts::of(&serde_json::from_value(gateway.clone()).unwrap()));
    ways.class = Read::One(ClassFacts::of(&serde_json::from_value(accepted).unwrap()));
    for read in [&mut ways.route, &mut ways.tunnel_route] {
        if read.is_unknown() {
            *read = Read::Absent;
        }
    }
}

/// The Gateway's controller has accepted both routes.
pub(super) fn accept_routes(observed: &mut Observed) {
    let conditions = json!([
        {"type": "Accepted", "status": "True", "reason": "Accepted", "observedGeneration": 1},
        {"type": "ResolvedRefs", "status": "True", "reason": "ResolvedRefs", "observedGeneration": 1},
    ]);
    answer_routes(observed, &conditions);
}

/// The Gateway's controller says this of both routes.
pub(super) fn answer_routes(observed: &mut Observed, conditions: &Value) {
    let route = |name: &str| {
        let parent = json!({"namespace": "gateways", "name": "shared", "sectionName": "tls"});
        let route = json!({
            "apiVersion": "gateway.networking.k8s.io/v1alpha2", "kind": "TLSRoute",
            "metadata": {"name": name, "namespace": "team", "uid": format!("uid of {name}"), "generation": 1},
            "status": {"parents": [{"parentRef": parent, "controllerName": "example", "conditions": conditions}]},
        });
        Read::One(RouteFacts::of(&serde_json::from_value(route).unwrap()))
    };
    observed.ways.route = route("api-demo");
    observed.ways.tunnel_route = route("konnectivity-demo");
}

/// A ConfigMap or a Secret of users, with something in each of these keys.
pub(super) fn source_facts(keys: &[&str]) -> SourceFacts {
    SourceFacts { keys: keys.iter().map(|key| ((*key).to_owned(), format!("hash of {key}"))).collect() }
}

/// Runs what can be run without the outside doing anything. Steps of one frontier are independent: all of them are run
/// before it is planned again.
pub(super) fn settle(observed: &mut Observed) {
    let mut tried = std::collections::BTreeSet::new();
    loop {
        let plan = checker::checked(observed);
        let steps: Vec<Step> =
            plan.steps.iter().filter(|step| !tried.contains(&flow::Identified::id(*step))).cloned().collect();
        if steps.is_empty() {
            return;
        }
        for step in steps {
            tried.insert(flow::Identified::id(&step));
            observed.fold(&step, &outcome(&step));
            if let Step::Own(OwnStep::Mint(mint)) = &step {
                complete(observed, mint);
            }
        }
    }
}

/// Whether a step does this to that.
pub(super) fn is(step: &Step, verb: &str, kind: &str) -> bool {
    let id = flow::Identified::id(step);
    id.verb == verb && id.kind == kind
}

pub(super) fn outcome(step: &Step) -> Outcome {
    match step {
        Step::Own(OwnStep::Mint(mint)) => Outcome::Created(fingerprint(mint)),
        Step::Tenant(TenantStep::Apply { uid: None, object }) => {
            Outcome::Created(format!("uid of {}", ObjectIdentity::of(object)))
        }
        _ => Outcome::Done,
    }
}

pub(super) fn fingerprint(mint: &Mint) -> String {
    format!("{}-{}", mint.material, &mint.intent[..8])
}

/// What a read shows and an answer does not: uids and public certificates.
pub(super) fn complete(observed: &mut Observed, mint: &Mint) {
    if let Some(Read::One(copy)) = observed.copies.get_mut(&mint.material) {
        copy.uid.get_or_insert_with(|| format!("uid of the copy of {}", mint.material));
    }
    if let Some(Read::One(facts)) = observed.secrets.get_mut(&mint.material) {
        facts.uid.get_or_insert_with(|| format!("uid of {}", mint.material));
        if mint.material.is_authority() {
            facts.certificate = Some(format!("certificate of {}\n", mint.material));
        }
    }
}

/// Everything is applied, and etcd's first pod has its sandbox.
pub(super) fn etcd_started(spec: &Value) -> Observed {
    let mut observed = created(spec);
    settle(&mut observed);
    let tag = etcd_tag(&observed);
    observed.etcd = Read::One(workload("etcd", members(&observed), 0, tag));
    observed.etcd_pods = Read::One(pod("demo-etcd-0", tag));
    observed.etcd_claims = Read::found((0..members(&observed)).map(claim));
    give_volumes(&mut observed);
    let service = |uid: &str| Read::One(ServiceFacts { uid: uid.to_owned(), ..ServiceFacts::default() });
    observed.service = service("uid of service");
    observed.tunnel = service("uid of tunnel");
    observed
}

/// Volumes as they were asked for.
fn give_volumes(observed: &mut Observed) {
    let etcd = observed.control_plane.spec.settings.etcd.as_ref();
    let Some(size) = etcd.and_then(|etcd| etcd.volume_size.clone()) else { return };
    observed.etcd.iter_mut().for_each(|facts| facts.volume = Some(size.0.clone()));
    for claim in observed.etcd_claims.iter_mut() {
        (claim.size, claim.requested) = (Some(size.0.clone()), Some(size.0.clone()));
    }
}

/// Of the wanted version.
fn etcd_tag(observed: &Observed) -> &'static str {
    KubernetesVersion::parse(&observed.control_plane.spec.version).unwrap().etcd_tag(Epoch::CURRENT)
}

fn members(observed: &Observed) -> i32 {
    let etcd = observed.control_plane.spec.settings.etcd.as_ref();
    etcd.and_then(|etcd| etcd.replicas).unwrap_or(3)
}

/// The first API server is ready; the load balancer has an address.
pub(super) fn api_server_ready(spec: &Value) -> Observed {
    let mut observed = etcd_started(spec);
    let version = observed.control_plane.spec.version.clone();
    let members = members(&observed);
    observed.etcd = Read::One(workload("etcd", members, members, etcd_tag(&observed)));
    give_volumes(&mut observed);
    observed.api_server = Read::One(workload("api-server", 1, 1, &version));
    let mut pod = pod("demo-apiserver-1", &version);
    pod.is_ready = true;
    observed.api_server_pods = Read::One(pod);
    if let Read::One(service) = &mut observed.service {
        service.ingress_ips = vec![ADDRESS.to_owned()];
        service.cluster_ip = Some("10.0.0.7".to_owned());
    }
    if let Read::One(service) = &mut observed.tunnel {
        service.ingress_ips = vec![TUNNEL_ADDRESS.to_owned()];
        service.cluster_ip = Some("10.0.0.8".to_owned());
    }
    observed
}

/// Everything is there.
pub(super) fn all_ready(spec: &Value) -> Observed {
    let mut observed = api_server_ready(spec);
    let version = observed.control_plane.spec.version.clone();
    observed.controller_manager = Read::One(workload("controller-manager", 1, 1, &version));
    observed.scheduler = Read::One(workload("scheduler", 1, 1, &version));
    observed.tenant = Read::One(TenantFacts::default());
    settle(&mut observed);
    reach_tenant(&mut observed);
    settle(&mut observed);
    if let Read::One(cluster) = &mut observed.cluster {
        cluster.endpoint = Endpoint { host: ADDRESS.to_owned(), port: 6443 };
    }
    observed.control_plane.status = Some(observed.plan().status);
    observed
}

/// The tenant answers, and has nothing of what is asked for.
pub(super) fn reach_tenant(observed: &mut Observed) {
    let known = match &observed.tenant {
        Read::One(tenant) => tenant.objects.clone(),
        _ => std::collections::BTreeMap::new(),
    };
    let asked = tenant_objects(observed)
        .iter()
        .map(ObjectIdentity::of)
        .chain(tenant_leftovers(observed))
        .collect::<Vec<_>>();
    let objects = asked
        .into_iter()
        .map(|object| {
            let state = known.get(&object).cloned().unwrap_or(TenantObject::Absent);
            (object, state)
        })
        .collect();
    observed.tenant = Read::One(TenantFacts { nodes: 1, objects, ..TenantFacts::default() });
    run_addons(observed);
}

/// One pod of each add-on is wanted and ready.
pub(super) fn run_addons(observed: &mut Observed) {
    let all = tenant_addons(observed).into_iter();
    observed.addons = all.map(|(addon, _)| (addon, Read::One(addon_facts(1, 1)))).collect();
}

pub(super) fn addon_facts(desired: i32, ready: i32) -> AddonFacts {
    AddonFacts { generation: 1, is_observed: true, desired, updated: desired, ready, trouble: None }
}

pub(super) fn workload(name: &str, desired: i32, ready: i32, version: &str) -> WorkloadFacts {
    WorkloadFacts {
        uid: format!("uid of {name}"),
        is_deleting: false,
        is_observed: true,
        desired,
        existing: desired,
        updated: desired,
        ready,
        available: ready,
        version: Some(version.to_owned()),
        audit_proxy: None,
        renewed: None,
        quota: None,
        volume: (name == "etcd" || name == "demo-etcd").then(|| "8Gi".to_owned()),
        revision: None,
    }
}

pub(super) fn pod(name: &str, version: &str) -> PodFacts {
    PodFacts {
        name: name.to_owned(),
        uid: format!("uid of {name}"),
        is_ready_to_start: true,
        version: Some(version.to_owned()),
        ..PodFacts::default()
    }
}

/// So many members that are well and follow this one, as etcd itself lists them.
pub(super) fn listed(observed: &mut Observed, members: i32, leader: i32) {
    let id = |ordinal: i32| MemberId(u64::try_from(ordinal).unwrap() + 1);
    let list = MemberList {
        members: (0..members)
            .map(|ordinal| ListedMember {
                id: id(ordinal),
                name: format!("demo-etcd-{ordinal}"),
                peer_urls: vec![format!("https://etcd{ordinal}-demo.team.svc:2380")],
                is_learner: false,
            })
            .collect(),
        told: (0..members)
            .map(|ordinal| {
                let (id, leader) = (id(ordinal), Some(id(leader)));
                let state = MemberState {
                    id,
                    leader,
                    is_learner: false,
                    revision: 1,
                    errors: Vec::new(),
                    unapplied: 0,
                    database: DatabaseSize::default(),
                };
                (format!("demo-etcd-{ordinal}"), state)
            })
            .collect(),
    };
    observed.etcd_list = Read::One(list);
}

pub(super) fn claim(ordinal: i32) -> ClaimFacts {
    let name = format!("data-demo-etcd-{ordinal}");
    let uid = format!("uid of {name}");
    let size = Some("8Gi".to_owned());
    ClaimFacts { name, uid, requested: size.clone(), size, ..ClaimFacts::default() }
}

/// The Cluster is deleted, and its control plane with it.
pub(super) fn delete(observed: &mut Observed) {
    let now = k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(observed.now);
    observed.control_plane.metadata.deletion_timestamp = Some(now);
    for cluster in observed.cluster.iter_mut() {
        cluster.is_deleting = true;
    }
}

/// The facts of a Secret, to be changed.
pub(super) fn secret(observed: &mut Observed, material: Material) -> &mut SecretFacts {
    match observed.secrets.get_mut(&material) {
        Some(Read::One(facts)) => facts,
        other => panic!("{material} is {other:?}"),
    }
}
