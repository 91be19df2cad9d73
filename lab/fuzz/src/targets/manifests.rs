//! Manifests, from YAML through the schema to the types that controllers read.

use std::sync::LazyLock;

use hangar_operator::preview::Given;
use hangar_plan::preview::schema;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::text;

static DEFINITIONS: LazyLock<Vec<CustomResourceDefinition>> = LazyLock::new(hangar_api::crd::all);

pub(super) fn run(input: &[u8]) {
    let Some(given) = text(input).and_then(|text| Given::read(text, "file", "default").ok()) else { return };
    for given in given {
        let mut object = given.object;
        let (group, version) = object["apiVersion"]
            .as_str()
            .and_then(|version| version.split_once('/'))
            .map(|(group, version)| (group.to_owned(), version.to_owned()))
            .unwrap_or_default();
        let kind = object["kind"].as_str().unwrap_or_default().to_owned();
        let definition =
            DEFINITIONS.iter().find(|crd| crd.spec.group == group && crd.spec.names.kind == kind);
        if let Some(schema) = definition.and_then(|definition| schema::of(definition, &version)) {
            schema::default(schema, &mut object);
            schema::check(schema, &object);
        }
        read(&kind, object);
    }
}

/// Reads an object as its kind; what was read is written and read again as the same.
fn read(kind: &str, object: Value) {
    use hangar_api::bootstrap::v1beta2::{KubeadmConfig, KubeadmConfigTemplate};
    use hangar_api::cluster::v1beta2::{Cluster, Machine, MachineDeployment, MachineSet};
    use hangar_api::controlplane::v1alpha1::HostedControlPlane;
    use hangar_api::infrastructure::v1beta1::{OpenStackCluster, OpenStackMachine, OpenStackMachineTemplate};
    match kind {
        "Cluster" => same::<Cluster>(object),
        "HostedControlPlane" => same::<HostedControlPlane>(object),
        "KubeadmConfig" => same::<KubeadmConfig>(object),
        "KubeadmConfigTemplate" => same::<KubeadmConfigTemplate>(object),
        "Machine" => same::<Machine>(object),
        "MachineDeployment" => same::<MachineDeployment>(object),
        "MachineSet" => same::<MachineSet>(object),
        "OpenStackCluster" => same::<OpenStackCluster>(object),
        "OpenStackMachine" => same::<OpenStackMachine>(object),
        "OpenStackMachineTemplate" => same::<OpenStackMachineTemplate>(object),
        _ => {}
    }
}

fn same<T: DeserializeOwned + serde::Serialize>(object: Value) {
    let Ok(typed) = serde_json::from_value::<T>(object) else { return };
    let Ok(written) = serde_json::to_value(&typed) else { panic!("what was read cannot be written") };
    let again = match serde_json::from_value::<T>(written.clone()) {
        Ok(again) => serde_json::to_value(&again).ok(),
        Err(error) => panic!("what was written cannot be read: {error}"),
    };
    assert_eq!(again, Some(written));
}
