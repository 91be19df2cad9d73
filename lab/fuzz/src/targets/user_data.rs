//! A KubeadmConfig becomes user data that says what the KubeadmConfig says.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hangar_api::bootstrap::v1beta2::KubeadmConfig;
use hangar_api::contract::Endpoint;
use hangar_plan::flow::{Action, Clocks, Planner, Read, Step};
use hangar_plan::kubeadm_bootstrap::{
    ClusterFacts, MachineFacts, Observed, Token, TokenSecret, candidate_ids,
};
use jiff::Timestamp;
use serde_json::Value;

use super::text;

/// What stands before the YAML.
const HEAD: &str = "## template: jinja\n#cloud-config\n";

pub(super) fn run(input: &[u8]) {
    let Some(config) = text(input).and_then(|text| serde_saphyr::from_str::<KubeadmConfig>(text).ok()) else {
        return;
    };
    let files = config.spec.files.clone().unwrap_or_default();
    for step in &observed(config).plan().steps {
        let Step::Write(write) = step else { continue };
        let Action::Create { object, .. } = &write.action else { continue };
        let data = object.data.pointer("/data/value").and_then(Value::as_str).unwrap_or_default();
        let Ok(rendered) = STANDARD.decode(data) else { panic!("the data is not in base64") };
        let Some(body) = text(&rendered).and_then(|text| text.strip_prefix(HEAD)) else {
            panic!("the data begins with something else");
        };
        let read: Value = match serde_saphyr::from_str(body) {
            Ok(read) => read,
            Err(error) => panic!("user data is no YAML: {error}\n{body}"),
        };
        // Nothing in a file's content ends the file and begins something else.
        for (file, written) in files.iter().zip(read["write_files"].as_array().into_iter().flatten()) {
            if let Some(content) = file.content.as_deref().filter(|_| file.content_from.is_none()) {
                assert_eq!(written["content"].as_str(), Some(content));
            }
        }
    }
}

/// Everything that the data waits for is there.
fn observed(config: KubeadmConfig) -> Observed {
    let id = candidate_ids("uid-1").into_iter().next().unwrap_or_default();
    let secret = TokenSecret::stored("0123456789abcdef");
    Observed {
        config,
        now: Timestamp::UNIX_EPOCH,
        clocks: Clocks::alone(Timestamp::UNIX_EPOCH),
        fresh_secret: secret.clone(),
        free_token_id: id.clone(),
        machine: Read::One(MachineFacts {
            name: "worker".to_owned(),
            version: Some("v1.35.0".to_owned()),
            ..MachineFacts::default()
        }),
        cluster: Read::One(ClusterFacts {
            name: "demo".to_owned(),
            is_paused: false,
            is_provisioned: true,
            is_initialized: true,
            endpoint: Endpoint { host: "192.0.2.1".to_owned(), port: 6443 },
        }),
        data_secret: Read::Absent,
        authority_hashes: Read::One(vec!["sha256:aa".to_owned()]),
        contents: BTreeMap::new(),
        token: Read::One(Token {
            id,
            secret,
            config_uid: "uid-1".to_owned(),
            description: String::new(),
            expires: None,
        }),
        trouble: None,
    }
}
