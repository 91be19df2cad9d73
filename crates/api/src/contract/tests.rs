//! The same facts, read from either contract's fields.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{
    Address, BootstrapConfiguration, Choice, Contract, ControlPlane, Endpoint, FailureDomain,
    InfrastructureCluster, InfrastructureMachine, ReplicaCounts, VersionCount, chosen,
};

const BOTH: [Contract; 2] = [Contract::V1Beta1, Contract::V1Beta2];

fn labels(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(name, value)| (format!("cluster.x-k8s.io/{name}"), (*value).to_owned())).collect()
}

#[test]
fn the_newest_contract_is_chosen_and_in_it_the_highest_version() {
    let choice = |contract, version: &str| Some(Choice { contract, version: version.to_owned() });
    let table = [
        (labels(&[("v1beta1", "v1beta1")]), choice(Contract::V1Beta1, "v1beta1")),
        (labels(&[("v1beta1", "v1alpha1"), ("v1beta2", "v1alpha1")]), choice(Contract::V1Beta2, "v1alpha1")),
        (
            labels(&[("v1beta1", "v1beta2"), ("v1beta2", "v1alpha2_v1alpha10")]),
            choice(Contract::V1Beta2, "v1alpha10"),
        ),
        (labels(&[("v1beta1", "v1beta1"), ("v1beta2", "")]), choice(Contract::V1Beta1, "v1beta1")),
        (labels(&[("v1alpha4", "v1alpha4"), ("provider", "x")]), None),
    ];
    for (labels, expected) in table {
        assert_eq!(chosen(&labels), expected, "{labels:?}");
    }
}

#[test]
fn our_own_definitions_choose_what_they_implement() {
    for definition in crate::crd::all() {
        let choice = chosen(&definition.metadata.labels.unwrap()).unwrap();
        let is_infrastructure = definition.spec.group == "infrastructure.cluster.x-k8s.io";
        let expected = if is_infrastructure { Contract::V1Beta1 } else { Contract::V1Beta2 };
        assert_eq!(choice.contract, expected, "{}", definition.spec.names.kind);
        assert!(
            definition.spec.versions.iter().any(|version| version.name == choice.version && version.served)
        );
    }
}

#[test]
fn infrastructure_clusters() {
    let old = json!({
        "spec": {"controlPlaneEndpoint": {"host": "a", "port": 6443}},
        "status": {"ready": true, "failureDomains": {"z1": {"controlPlane": true, "attributes": {"k": "v"}}, "z2": {}}},
    });
    let new = json!({
        "spec": {"controlPlaneEndpoint": {"host": "a", "port": 6443}},
        "status": {"initialization": {"provisioned": true}, "failureDomains": [
            {"name": "z1", "controlPlane": true, "attributes": {"k": "v"}}, {"name": "z2"}, {"controlPlane": true}]},
    });
    let attributes = BTreeMap::from([("k".to_owned(), "v".to_owned())]);
    let domains = BTreeMap::from([
        ("z1".to_owned(), FailureDomain { control_plane: true, attributes }),
        ("z2".to_owned(), FailureDomain::default()),
    ]);
    for (object, contract) in [(&old, Contract::V1Beta1), (&new, Contract::V1Beta2)] {
        let cluster = InfrastructureCluster::new(object, contract);
        assert!(cluster.is_provisioned() && !cluster.is_managed_elsewhere());
        assert_eq!(cluster.endpoint(), Some(Endpoint { host: "a".to_owned(), port: 6443 }));
        assert_eq!(cluster.failure_domains(), domains);
    }
    // One contract's fields say nothing to a reader of the other.
    for (object, contract) in [(&old, Contract::V1Beta2), (&new, Contract::V1Beta1)] {
        let cluster = InfrastructureCluster::new(object, contract);
        assert!(!cluster.is_provisioned());
        assert_eq!(cluster.failure_domains(), BTreeMap::new());
    }
    let elsewhere = json!({"metadata": {"annotations": {"cluster.x-k8s.io/managed-by": "x"}}});
    assert!(InfrastructureCluster::new(&elsewhere, Contract::V1Beta2).is_managed_elsewhere());
}

#[test]
fn an_endpoint_is_there_when_both_halves_are() {
    let table = [
        (json!({"host": "", "port": 6443}), None),
        (json!({"host": "a", "port": 0}), None),
        (json!({"host": "a"}), None),
        (json!(null), None),
        (json!({"host": "a", "port": 443}), Some("a:443")),
        (json!({"host": "fd00::1", "port": 443}), Some("[fd00::1]:443")),
    ];
    for (endpoint, expected) in table {
        let object = json!({"spec": {"controlPlaneEndpoint": endpoint}});
        for contract in BOTH {
            let read = ControlPlane::new(&object, contract).endpoint();
            assert_eq!(read.map(|endpoint| endpoint.to_string()).as_deref(), expected);
        }
    }
}

#[test]
fn infrastructure_machines() {
    let old = json!({
        "spec": {"providerID": "openstack:///1", "failureDomain": "z1"},
        "status": {"ready": true, "addresses": [{"type": "InternalIP", "address": "10.0.0.1"}, {"type": "Hostname"}]},
    });
    let new = json!({
        "spec": {"providerID": "openstack:///1"},
        "status": {"initialization": {"provisioned": true}, "failureDomain": "z1",
            "addresses": [{"type": "InternalIP", "address": "10.0.0.1"}]},
    });
    for (object, contract) in [(&old, Contract::V1Beta1), (&new, Contract::V1Beta2)] {
        let machine = InfrastructureMachine::new(object, contract);
        assert!(machine.is_provisioned());
        assert_eq!(machine.provider_id(), Some("openstack:///1"));
        assert_eq!(machine.failure_domain(), Some("z1"));
        let address = Address { type_: "InternalIP".to_owned(), address: "10.0.0.1".to_owned() };
        assert_eq!(machine.addresses(), [address]);
    }
}

#[test]
fn bootstrap_configurations() {
    let old = json!({"status": {"ready": true, "dataSecretName": "s"}});
    let new = json!({"status": {"initialization": {"dataSecretCreated": true}, "dataSecretName": "s"}});
    for (object, contract) in [(&old, Contract::V1Beta1), (&new, Contract::V1Beta2)] {
        let configuration = BootstrapConfiguration::new(object, contract);
        assert!(configuration.is_data_secret_created());
        assert_eq!(configuration.data_secret_name(), Some("s"));
    }
}

#[test]
fn control_planes() {
    let condition = |type_: &str| json!([{"type": type_, "status": "True"}]);
    let old = json!({
        "spec": {"replicas": 3, "version": "v1.34.0"},
        "status": {"initialized": true, "ready": true, "externalManagedControlPlane": true, "version": "v1.33.0",
            "replicas": 4, "readyReplicas": 3, "unavailableReplicas": 1, "updatedReplicas": 2,
            "conditions": condition("Ready")},
    });
    let new = json!({
        "spec": {"replicas": 3, "version": "v1.34.0"},
        "status": {"initialization": {"controlPlaneInitialized": true}, "externalManagedControlPlane": true,
            "version": "v1.33.0", "replicas": 4, "readyReplicas": 3, "availableReplicas": 3, "upToDateReplicas": 2,
            "conditions": condition("Available")},
    });
    let counts = ReplicaCounts {
        desired: Some(3),
        current: Some(4),
        ready: Some(3),
        available: Some(3),
        up_to_date: Some(2),
    };
    for (object, contract) in [(&old, Contract::V1Beta1), (&new, Contract::V1Beta2)] {
        let plane = ControlPlane::new(object, contract);
        assert!(plane.is_initialized() && plane.is_externally_managed());
        assert_eq!((plane.desired_version(), plane.version()), (Some("v1.34.0"), Some("v1.33.0")));
        assert_eq!(plane.versions(), [VersionCount { version: "v1.33.0".to_owned(), replicas: None }]);
        assert_eq!(plane.replicas(), counts);
        assert_eq!(plane.available_condition().map(|condition| condition.status).as_deref(), Some("True"));
    }
    let listed = json!({"status": {"version": "v1.33.0", "versions": [
        {"version": "v1.34.0", "replicas": 1}, {"version": "v1.33.0", "replicas": 2}, {"replicas": 3}]}});
    let versions: Vec<_> = ControlPlane::new(&listed, Contract::V1Beta2).versions();
    assert_eq!(
        versions.iter().map(|count| (count.version.as_str(), count.replicas)).collect::<Vec<_>>(),
        [("v1.34.0", Some(1)), ("v1.33.0", Some(2))],
    );
}

#[test]
fn nothing_and_nonsense_read_as_not_there() {
    for object in
        [json!({}), json!(null), json!({"spec": [], "status": "x"}), json!({"status": {"ready": "true"}})]
    {
        let object: &Value = &object;
        for contract in BOTH {
            let plane = ControlPlane::new(object, contract);
            assert!(!plane.is_initialized() && !plane.is_externally_managed());
            assert_eq!(plane.replicas(), ReplicaCounts::default());
            assert!(plane.versions().is_empty() && plane.available_condition().is_none());
            assert!(!InfrastructureCluster::new(object, contract).is_provisioned());
            assert!(InfrastructureMachine::new(object, contract).addresses().is_empty());
            assert_eq!(BootstrapConfiguration::new(object, contract).data_secret_name(), None);
        }
    }
}

/// The status that our own control plane writes says the same to readers of both contracts.
#[test]
fn our_control_plane_reads_the_same_under_both_contracts() {
    use crate::controlplane::v1alpha1::{HostedControlPlaneInitialization, HostedControlPlaneStatus};
    let status = HostedControlPlaneStatus {
        initialization: Some(HostedControlPlaneInitialization { control_plane_initialized: Some(true) }),
        initialized: Some(true),
        external_managed_control_plane: Some(true),
        version: Some("v1.33.0".to_owned()),
        replicas: Some(2),
        ready_replicas: Some(2),
        available_replicas: Some(1),
        unavailable_replicas: Some(1),
        up_to_date_replicas: Some(0),
        updated_replicas: Some(0),
        ..HostedControlPlaneStatus::default()
    };
    let object = json!({"spec": {"replicas": 2, "version": "v1.33.0"}, "status": status});
    let [old, new] = BOTH.map(|contract| ControlPlane::new(&object, contract));
    assert!(old.is_initialized() && new.is_initialized());
    assert_eq!(old.replicas(), new.replicas());
    assert_eq!(new.replicas().up_to_date, Some(0));
}
