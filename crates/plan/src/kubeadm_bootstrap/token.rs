//! Bootstrap tokens: `id.secret`, a Secret in the tenant's kube-system.
//!
//! The id is not secret (the tenant publishes it with the signature of its cluster information), so it may follow from
//! an identity; the other half is random. The id has only six characters, so two in one tenant may collide. Therefore
//! each KubeadmConfig has a short list of candidates, and a label says to which KubeadmConfig a token belongs.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp, Unit};
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use sha2::{Digest, Sha256};

/// On the data Secret: the id of the token to care for.
pub const ID_ANNOTATION: &str = "hangar.cluster.x-k8s.io/bootstrap-token-id";
/// On the token: the uid of the KubeadmConfig it was made for.
pub const CONFIG_LABEL: &str = "hangar.cluster.x-k8s.io/kubeadm-config";
/// In the data Secret: the token, so that one that vanished is made again as the machine knows it.
pub const RECORD_KEY: &str = "bootstrap-token";
/// Where the tenant looks for tokens.
pub const TOKEN_NAMESPACE: &str = "kube-system";
/// Upstream's default: long enough for a machine to boot, short enough to be worth little when found.
pub const TTL: Duration = Duration::from_secs(15 * 60);

/// How many ids are tried before a collision is reported.
const CANDIDATES: u32 = 4;
const ALPHABET: &[u8; 36] = b"abcdefghijklmnopqrstuvwxyz0123456789";
const ID_LENGTH: usize = 6;
const SECRET_LENGTH: usize = 16;
/// Nodes that join with it are in this group; kubeadm's roles are bound to it.
const GROUP: &str = "system:bootstrappers:kubeadm:default-node-token";

/// The half of a token that nobody else may know. It prints as dots.
#[derive(Clone, PartialEq, Eq)]
pub struct TokenSecret(String);

impl TokenSecret {
    /// From random bytes. Bytes above the alphabet's largest multiple would favour some characters; they are skipped,
    /// so enough must be given: none is returned when they do not suffice.
    pub fn from_random(bytes: &[u8]) -> Option<Self> {
        let limit = u8::try_from(256 / ALPHABET.len() * ALPHABET.len()).ok()?;
        let characters = bytes.iter().filter(|byte| **byte < limit);
        let text: String = characters.map(|byte| character(*byte)).take(SECRET_LENGTH).collect();
        (text.len() == SECRET_LENGTH).then_some(Self(text))
    }

    /// As a tenant stored it.
    pub fn stored(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text itself.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for TokenSecret {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("TokenSecret(...)")
    }
}

/// A token, as it is or as it shall be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Token {
    pub id: String,
    pub secret: TokenSecret,
    /// The KubeadmConfig it is for.
    pub config_uid: String,
    /// For people who list tokens.
    pub description: String,
    /// When it ends; never when absent.
    pub expires: Option<Timestamp>,
}

impl fmt::Display for Token {
    /// The whole token, with its secret: for the machine alone.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}.{}", self.id, self.secret.expose())
    }
}

impl Token {
    /// True when less than five sixths of its life are left: looked at every third, it never comes near its end.
    pub fn needs_extension(&self, now: Timestamp) -> bool {
        self.expires.is_some_and(|expires| {
            let left = Duration::try_from(expires.duration_since(now)).unwrap_or_default();
            left < TTL / 6 * 5
        })
    }

    /// A token as the tenant keeps it; nothing when it is malformed.
    pub fn read(secret: &Secret) -> Option<Self> {
        let data = secret.data.as_ref()?;
        let text = |key: &str| data.get(key).and_then(|value| String::from_utf8(value.0.clone()).ok());
        let labels = secret.metadata.labels.as_ref();
        Some(Self {
            id: text("token-id")?,
            secret: TokenSecret(text("token-secret")?),
            config_uid: labels.and_then(|labels| labels.get(CONFIG_LABEL)).cloned().unwrap_or_default(),
            description: text("description").unwrap_or_default(),
            expires: text("expiration").and_then(|text| text.parse().ok()),
        })
    }

    /// A token from the record in the data Secret.
    pub fn recorded(text: &str, config_uid: &str, description: &str) -> Option<Self> {
        let (id, secret) = text.split_once('.')?;
        Some(Self {
            id: id.to_owned(),
            secret: TokenSecret::stored(secret),
            config_uid: config_uid.to_owned(),
            description: description.to_owned(),
            expires: None,
        })
    }
}

/// When a token made or extended now ends. Whole seconds, as they are stored.
pub(super) fn expiry(now: Timestamp) -> Timestamp {
    let end = SignedDuration::try_from(TTL).ok().and_then(|ttl| now.checked_add(ttl).ok()).unwrap_or(now);
    end.round(Unit::Second).unwrap_or(end)
}

/// The ids that a KubeadmConfig's token may have, in order of preference. Pinned by a test: another id would orphan the
/// token of a crashed run.
pub fn candidate_ids(config_uid: &str) -> Vec<String> {
    (0..CANDIDATES)
        .map(|attempt| {
            let digest = Sha256::digest(format!("bootstrap-token/{config_uid}/{attempt}"));
            digest.iter().take(ID_LENGTH).map(|byte| character(*byte)).collect()
        })
        .collect()
}

fn character(byte: u8) -> char {
    char::from(ALPHABET[usize::from(byte) % ALPHABET.len()])
}

/// The name of a token's Secret.
pub fn secret_name(id: &str) -> String {
    format!("bootstrap-token-{id}")
}

pub fn object(token: &Token) -> Secret {
    let mut data = BTreeMap::from([
        ("token-id", token.id.clone()),
        ("token-secret", token.secret.expose().to_owned()),
        ("usage-bootstrap-signing", "true".to_owned()),
        ("usage-bootstrap-authentication", "true".to_owned()),
        ("auth-extra-groups", GROUP.to_owned()),
        ("description", token.description.clone()),
    ]);
    if let Some(expires) = token.expires {
        data.insert("expiration", expires.to_string());
    }
    Secret {
        metadata: ObjectMeta {
            name: Some(secret_name(&token.id)),
            namespace: Some(TOKEN_NAMESPACE.to_owned()),
            labels: Some([(CONFIG_LABEL.to_owned(), token.config_uid.clone())].into()),
            ..ObjectMeta::default()
        },
        type_: Some("bootstrap.kubernetes.io/token".to_owned()),
        string_data: Some(data.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()),
        ..Secret::default()
    }
}
