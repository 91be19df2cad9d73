//! Does what providers and kubelets do by themselves.

use std::collections::BTreeMap;

use hangar_plan::machine::NodeFacts;
use k8s_openapi::api::core::v1::Taint;
use serde_json::json;

use super::Memory;

impl Memory {
    /// What providers and kubelets do.
    pub(super) fn provide(&mut self) {
        let is_theirs = |kind: &str| kind.starts_with("Stub") && !kind.ends_with("Template");
        self.objects
            .retain(|(kind, _), object| !is_theirs(kind) || object.metadata.deletion_timestamp.is_none());
        let mut servers = Vec::new();
        for ((kind, name), object) in self.objects.iter_mut().filter(|((kind, _), _)| is_theirs(kind)) {
            if object.metadata.owner_references.is_none() {
                continue;
            }
            object.metadata.finalizers = Some(vec!["stub".to_owned()]);
            match kind.as_str() {
                "StubCluster" => object.data["status"] = json!({"ready": true}),
                "StubPlane" => {
                    object.data["spec"]["controlPlaneEndpoint"] = json!({"host": "api", "port": 6443});
                    object.data["status"] = json!({"externalManagedControlPlane": true,
                        "initialization": {"controlPlaneInitialized": true},
                        "conditions": [{"type": "Available", "status": "True", "reason": "Serving"}]});
                }
                "StubConfig" => {
                    object.data["status"] = json!({"dataSecretName": name,
                        "initialization": {"dataSecretCreated": true}});
                }
                "StubMachine" => {
                    let id = format!("stub:///{}", object.metadata.uid.as_ref().unwrap().replace('/', "-"));
                    object.data["spec"]["providerID"] = json!(id);
                    object.data["status"] = json!({"initialization": {"provisioned": true}});
                    servers.push((name.clone(), id));
                }
                _ => {}
            }
        }
        for (name, provider_id) in servers {
            let taint = Taint {
                key: hangar_api::names::UNINITIALIZED_TAINT.to_owned(),
                effect: "NoSchedule".to_owned(),
                ..Taint::default()
            };
            let conditions =
                BTreeMap::from([("Ready".to_owned(), ("True".to_owned(), String::new(), String::new()))]);
            self.nodes.entry(name.clone()).or_insert(NodeFacts {
                uid: format!("Node/{name}"),
                name,
                provider_id,
                taints: vec![taint],
                conditions,
                ..NodeFacts::default()
            });
        }
    }
}
