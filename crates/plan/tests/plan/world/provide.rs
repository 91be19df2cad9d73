//! What others do by themselves: providers, kubelets.

use std::collections::BTreeMap;

use hangar_plan::machine::NodeFacts;
use hangar_plan::referred::Referred;
use k8s_openapi::api::core::v1::Taint;
use serde_json::json;

use super::{Memory, Name};

impl Memory {
    /// What providers and kubelets do.
    pub(super) fn provide(&mut self) {
        let going: Vec<(String, Name)> = self
            .foreign
            .iter()
            .filter(|(_, object)| object.is_terminating())
            .map(|(key, _)| key.clone())
            .collect();
        for key in going {
            self.foreign.remove(&key);
        }
        let has_owner = |object: &Referred| object.metadata.owner_references.is_some();
        let mut servers = Vec::new();
        for ((kind, name), object) in self.foreign.iter_mut().filter(|(_, object)| has_owner(object)) {
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
                    let id = format!("stub:///{}", object.uid().replace('/', "-"));
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
                name,
                provider_id,
                taints: vec![taint],
                conditions,
                ..NodeFacts::default()
            });
        }
    }
}
