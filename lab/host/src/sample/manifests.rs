//! The sample's manifests.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use crate::error::{Error, Result};

/// With `${NAMES}` in it, so that users can read and copy it as it is.
const TEMPLATE: &str = include_str!("cluster.yaml");

/// What the sample is made of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sample {
    /// The Cluster's name.
    pub name: String,
    pub namespace: String,
    /// The Kubernetes version of control plane and workers.
    pub version: String,
    /// Where the cloud's identity service answers.
    pub auth_url: String,
    /// Who we are there.
    pub username: String,
    /// How we show it.
    pub password: String,
    /// The project that owns what is made.
    pub project: String,
    pub region: String,
    /// The network that leads outside.
    pub external_network: String,
    /// The size of a worker.
    pub flavor: String,
    /// What a worker runs.
    pub image: String,
}

impl Sample {
    /// For the question whether manifests would be taken.
    pub(crate) fn of_nothing(version: &str) -> Self {
        let nothing = || "nothing".to_owned();
        Self {
            name: nothing(),
            namespace: "default".to_owned(),
            version: version.to_owned(),
            auth_url: nothing(),
            username: nothing(),
            password: nothing(),
            project: nothing(),
            region: nothing(),
            external_network: nothing(),
            flavor: nothing(),
            image: nothing(),
        }
    }
}

/// The manifests, as a person would write them. They are applied all at once: no order is needed.
pub fn manifests(sample: &Sample) -> Result<Vec<Value>> {
    let words = BTreeMap::from([
        ("NAME", &sample.name),
        ("NAMESPACE", &sample.namespace),
        ("VERSION", &sample.version),
        ("AUTH_URL", &sample.auth_url),
        ("USERNAME", &sample.username),
        ("PASSWORD", &sample.password),
        ("PROJECT", &sample.project),
        ("REGION", &sample.region),
        ("EXTERNAL_NETWORK", &sample.external_network),
        ("FLAVOR", &sample.flavor),
        ("IMAGE", &sample.image),
    ]);
    let mut text = TEMPLATE.to_owned();
    for (word, value) in words {
        text = text.replace(&format!("${{{word}}}"), value);
    }
    let failed = |message: String| Error::Rendering { what: "the sample", message };
    text.split("\n---\n")
        .map(|document| serde_saphyr::from_str(document).map_err(|error| failed(error.to_string())))
        .map(|object| object.map(encoded))
        .collect()
}

/// Plain text of a Secret as it is stored: what is written only would always look like a change.
fn encoded(mut object: Value) -> Value {
    let plain = object.as_object_mut().and_then(|fields| fields.remove("stringData"));
    if let Some(Value::Object(plain)) = plain {
        let encode = |value: &Value| Value::from(STANDARD.encode(value.as_str().unwrap_or_default()));
        object["data"] = plain.iter().map(|(key, value)| (key.clone(), encode(value))).collect();
    }
    object
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_is_filled_in_and_every_document_is_an_object() {
        let word = |text: &str| text.to_owned();
        let sample = Sample {
            name: word("demo"),
            namespace: word("default"),
            version: word("v1.34.10"),
            auth_url: word("http://100.72.0.5:5000/identity/v3"),
            username: word("hangar"),
            password: word("secret"),
            project: word("hangar"),
            region: word("RegionOne"),
            external_network: word("external"),
            flavor: word("small"),
            image: word("kubernetes-v1.34.10"),
        };
        let objects = manifests(&sample).unwrap();
        let kinds: Vec<&str> = objects.iter().map(|object| object["kind"].as_str().unwrap()).collect();
        assert_eq!(
            kinds,
            [
                "Secret",
                "Cluster",
                "HostedControlPlane",
                "OpenStackCluster",
                "KubeadmConfigTemplate",
                "OpenStackMachineTemplate",
                "MachineDeployment"
            ]
        );
        assert!(!format!("{objects:?}").contains("${"));
    }
}
