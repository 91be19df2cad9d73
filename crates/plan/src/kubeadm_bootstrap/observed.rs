//! The observation of one KubeadmConfig, and the stage that follows from it.

use std::collections::BTreeMap;

use hangar_api::bootstrap::SecretKey;
use hangar_api::bootstrap::v1beta2::{KubeadmConfig, KubeadmConfigSpec};
use hangar_api::conditions::{Bad, Finding};
use hangar_api::contract::Endpoint;
use jiff::Timestamp;

use super::conditions::{authority, data_secret_available as reasons};
use super::{Token, TokenSecret};
use crate::conditions::shared;
use crate::flow::{Clocks, Read, Unknown};
use crate::referred;

/// Why a read says nothing that nobody asked for yet.
pub const NOT_READ: &str = "not read";

/// A key of a Secret that a file or a password comes from.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct KeyOfSecret {
    /// Name of the Secret.
    pub name: String,
    pub key: String,
}

impl From<&SecretKey> for KeyOfSecret {
    fn from(key: &SecretKey) -> Self {
        Self { name: key.name.clone(), key: key.key.clone() }
    }
}

/// What matters of the Machine that owns the configuration.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MachineFacts {
    pub name: String,
    /// Kubernetes version, with or without a leading `v`.
    pub version: Option<String>,
    /// The data Secret it uses already.
    pub data_secret_name: Option<String>,
    /// Whether its Node is there.
    pub has_node: bool,
    /// Whether it belongs to a control plane.
    pub is_control_plane: bool,
    /// Whether it is being deleted.
    pub is_terminating: bool,
}

/// What matters of the Cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClusterFacts {
    pub name: String,
    /// Whether its controllers are stopped.
    pub is_paused: bool,
    /// Whether its infrastructure is there.
    pub is_provisioned: bool,
    /// Whether its control plane has answered once.
    pub is_initialized: bool,
    /// Where its API server is reached.
    pub endpoint: Endpoint,
}

/// What is known of the data Secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DataSecret {
    pub name: String,
    pub uid: String,
    /// Whether the configuration owns it.
    pub is_ours: bool,
    /// The token to care for.
    pub token_id: Option<String>,
    /// The token as the data has it; read only when the tenant's is gone.
    pub recorded_token: Read<Token>,
}

/// Everything a plan looks at. Later parts are read only from a certain [`Stage`] on and are `Unknown` before.
#[derive(Clone, Debug)]
pub struct Observed {
    pub config: KubeadmConfig,
    pub now: Timestamp,
    /// That moment by our clock and by the management cluster's.
    pub clocks: Clocks,
    /// Random, in case a token is made.
    pub fresh_secret: TokenSecret,
    /// An id that no other token of the tenant has, in case a token is made.
    pub free_token_id: String,
    /// The Machine that owns the configuration; absent while none does.
    pub machine: Read<MachineFacts>,
    /// The Cluster that its label names.
    pub cluster: Read<ClusterFacts>,
    /// The Secret of the configuration's name.
    pub data_secret: Read<DataSecret>,
    /// Hashes of the public keys of the Cluster's certificate authorities, from [`Stage::Render`] on.
    pub authority_hashes: Read<Vec<String>>,
    /// Contents that come from Secrets, from [`Stage::Render`] on.
    pub contents: BTreeMap<KeyOfSecret, Read<String>>,
    /// The token in the tenant, from [`Stage::Render`] on.
    pub token: Read<Token>,
    /// What the last step that did not work said.
    pub trouble: Option<String>,
}

#[cfg(test)]
crate::flow::doubt::reads! {
    Observed {
        config, now, clocks, fresh_secret, free_token_id, machine, cluster, data_secret, authority_hashes, contents, token,
        trouble,
    }
    DataSecret { name, uid, is_ours, token_id, recorded_token };
    KubeadmConfig, MachineFacts, ClusterFacts, Token, TokenSecret,
}

/// How far a configuration has come.
#[derive(Clone, Debug, PartialEq)]
pub enum Stage {
    /// Nothing may be changed.
    Paused,
    /// Somebody else provides the data, or the configuration is going away.
    Leave,
    /// Something must happen elsewhere first.
    Wait(Finding),
    /// The data can be made.
    Render,
    /// The data is there.
    Care(DataSecret),
}

/// What has to be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// The authority, the contents of files and the token: everything that data is made from.
    Inputs,
    /// The token that the data has, in the tenant.
    Token { id: String },
    /// The token as the data Secret has it: the tenant's is gone.
    RecordedToken { secret: String },
}

impl Observed {
    /// How far it has come, from what the stores show.
    pub fn stage(&self) -> Stage {
        if self.paused().is_some() {
            return Stage::Paused;
        }
        let machine = match &self.machine {
            Read::Unknown(unknown) => return unread("the Machine", unknown),
            Read::One(machine) => Some(machine),
            Read::Absent | Read::Many(_) => None,
        };
        let cluster = match &self.cluster {
            Read::Unknown(unknown) => return unread("the Cluster", unknown),
            Read::One(cluster) => Some(cluster),
            Read::Absent | Read::Many(_) => None,
        };
        if self.config.metadata.deletion_timestamp.is_some() {
            return Stage::Leave;
        }
        let Some(machine) = machine else {
            return waits(reasons::WAITING_FOR_MACHINE, "a Machine that uses this configuration");
        };
        let Some(cluster) = cluster else {
            return waits(reasons::WAITING_FOR_CLUSTER, "the Cluster that the label names");
        };
        match &self.data_secret {
            Read::Unknown(unknown) => return unread("the data Secret", unknown),
            Read::One(data) if data.is_ours => return Stage::Care(data.clone()),
            Read::One(data) => {
                let why = format!("the Secret {} belongs to something else", data.name);
                let taken = reasons::SECRET_NAME_TAKEN.waits("that Secret to be deleted or renamed");
                return Stage::Wait(taken.because(why));
            }
            Read::Absent | Read::Many(_) => {}
        }
        if machine.data_secret_name.as_deref().is_some_and(|name| name != self.name()) || machine.has_node {
            return Stage::Leave;
        }
        if !cluster.is_provisioned {
            return waits(reasons::WAITING_FOR_INFRASTRUCTURE, "the Cluster's infrastructure");
        }
        if !cluster.is_initialized {
            return waits(reasons::WAITING_FOR_CONTROL_PLANE, "the first answer of the control plane");
        }
        if !cluster.endpoint.is_valid() {
            return waits(reasons::WAITING_FOR_ENDPOINT, "the Cluster's endpoint");
        }
        Stage::Render
    }

    /// Whether nothing may be changed: until when.
    pub(super) fn paused(&self) -> Option<&'static str> {
        let is_cluster_paused = self.cluster.iter().any(|cluster| cluster.is_paused);
        referred::paused_by(&self.config.metadata, is_cluster_paused)
    }

    pub(super) fn name(&self) -> &str {
        self.config.metadata.name.as_deref().unwrap_or_default()
    }

    pub(super) fn namespace(&self) -> &str {
        self.config.metadata.namespace.as_deref().unwrap_or_default()
    }

    pub(super) fn uid(&self) -> &str {
        self.config.metadata.uid.as_deref().unwrap_or_default()
    }

    pub(super) fn cluster_name(&self) -> Option<String> {
        self.cluster.iter().next().map(|cluster| cluster.name.clone())
    }

    pub(super) fn has_node(&self) -> bool {
        self.machine.iter().any(|machine| machine.has_node)
    }

    pub(super) fn is_machine_leaving(&self) -> bool {
        self.machine.iter().any(|machine| machine.is_terminating)
    }

    /// The first content that cannot be had.
    pub(super) fn missing_content(&self) -> Option<Finding> {
        if let Some(finding) = self.missing_authority() {
            return Some(finding);
        }
        keys_of_secrets(&self.config.spec).into_iter().find_map(|key| match self.contents.get(&key) {
            Some(Read::One(_)) => None,
            Some(Read::Unknown(unknown)) => {
                Some(shared::unread(reasons::TYPE, &format!("the Secret {}", key.name), unknown))
            }
            _ => {
                let on = format!("the key {:?} of the Secret {}", key.key, key.name);
                Some(reasons::WAITING_FOR_SECRET.waits(on))
            }
        })
    }

    fn missing_authority(&self) -> Option<Finding> {
        if super::join::needs_no_authority(&self.config.spec) {
            return None;
        }
        match &self.authority_hashes {
            Read::One(hashes) if !hashes.is_empty() => None,
            Read::Unknown(unknown) => {
                Some(shared::unread(reasons::TYPE, "the certificate authority", unknown))
            }
            _ => {
                let secret = format!("{}-ca", self.cluster_name().unwrap_or_default());
                let on = format!("tls.crt and tls.key in the Secret {secret}");
                Some(authority::WAITING_FOR_CERTIFICATES.waits(on))
            }
        }
    }
}

fn waits(reason: Bad, on: &str) -> Stage {
    Stage::Wait(reason.waits(on))
}

fn unread(what: &str, unknown: &Unknown) -> Stage {
    Stage::Wait(shared::unread(reasons::TYPE, what, unknown))
}

/// The Secrets' keys that a configuration takes contents from.
pub fn keys_of_secrets(spec: &KubeadmConfigSpec) -> Vec<KeyOfSecret> {
    let files = spec.files.iter().flatten().filter_map(|file| file.content_from.as_ref());
    let users = spec.users.iter().flatten().filter_map(|user| user.passwd_from.as_ref());
    let mut keys: Vec<KeyOfSecret> = files
        .map(|source| (&source.secret).into())
        .chain(users.map(|source| (&source.secret).into()))
        .collect();
    keys.sort();
    keys.dedup();
    keys
}
