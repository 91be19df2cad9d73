//! Makes the observation of a KubeadmConfig: from the stores first, then from Secrets and the tenant once its stage
//! needs them.

use std::collections::BTreeMap;
use std::sync::Arc;

use hangar_api::bootstrap::v1beta2::KubeadmConfig;
use hangar_api::cluster::v1beta2::{Cluster, Machine};
use hangar_api::contract::Endpoint;
use hangar_api::names::{CLUSTER_NAME_LABEL, CONTROL_PLANE_LABEL};
use hangar_kit::ObjectKey;
use hangar_kit::watch::Kept;
use hangar_pki::Certificate;
use hangar_plan::flow::Read;
use hangar_plan::kubeadm_bootstrap::{
    ClusterFacts, DataSecret, ID_ANNOTATION, MachineFacts, NOT_READ, Observed, RECORD_KEY, TOKEN_NAMESPACE,
    Token, TokenSecret, Wanted, candidate_ids, keys_of_secrets, secret_name,
};
use k8s_openapi::api::core::v1::Secret;
use kube::{Api, ResourceExt as _};

use crate::context::Context;

/// What the stores show, without a call.
pub(super) fn observe(context: &Context, config: &Kept<KubeadmConfig>) -> Observed {
    let watches = &context.watches;
    let machine = match config.controller::<Machine>() {
        Some(key) => watches.machines().get(&key),
        None => Read::Absent,
    };
    let label = config.labels.get(CLUSTER_NAME_LABEL);
    let named = machine.iter().next().map(|machine| &machine.spec.cluster_name).or(label);
    let cluster = match named {
        Some(name) => watches.clusters().get(&beside(&config.key, name)),
        None => Read::Absent,
    };
    let (uid, now) = (config.uid.clone(), context.ambient.now());
    Observed {
        now,
        clocks: context.handles.clock.at(now),
        fresh_secret: random_secret(),
        free_token_id: candidate_ids(&uid).into_iter().next().unwrap_or_default(),
        machine: machine.map(|machine| machine_facts(&machine)),
        cluster: cluster.map(|cluster| cluster_facts(&cluster)),
        data_secret: watches.secrets().get(&config.key).map(|secret| DataSecret {
            name: secret.key.name.clone(),
            uid: secret.uid.clone(),
            is_ours: secret.owners.iter().any(|owner| owner.uid == uid),
            token_id: secret.annotations.get(ID_ANNOTATION).cloned(),
            recorded_token: Read::unknown(NOT_READ),
        }),
        authority_hashes: Read::unknown(NOT_READ),
        contents: BTreeMap::new(),
        token: Read::unknown(NOT_READ),
        trouble: None,
        config: config.value.clone(),
    }
}

/// The Cluster of a configuration, by which its tenant is known.
pub(super) fn cluster_of(observed: &Observed) -> ObjectKey {
    let name = observed.cluster.iter().next().map(|cluster| cluster.name.clone()).unwrap_or_default();
    ObjectKey { namespace: observed.config.namespace(), name }
}

/// Reads what the plan asks for.
pub(super) async fn read(context: &Context, observed: &mut Observed, wanted: Wanted) {
    let cluster = cluster_of(observed);
    let secrets: Api<Secret> = Api::namespaced(context.client(), cluster.namespace_or_empty());
    match wanted {
        Wanted::Inputs => {
            observed.authority_hashes = authority_hashes(&secrets, &cluster).await;
            for key in keys_of_secrets(&observed.config.spec) {
                let content = content(&secrets, &key.name, &key.key).await;
                observed.contents.insert(key, content);
            }
            let uid = observed.config.uid().unwrap_or_default();
            (observed.free_token_id, observed.token) = find_token(context, &cluster, &uid).await;
        }
        Wanted::Token { id } => {
            observed.token = match tenant(context, &cluster).await {
                Ok(tokens) => read_token(&tokens, &id).await,
                Err(why) => Read::unknown(why),
            };
        }
        Wanted::RecordedToken { secret } => {
            let recorded = recorded_token(&secrets, &secret, &observed.config).await;
            for data in observed.data_secret.iter_mut() {
                data.recorded_token = recorded.clone();
            }
        }
    }
}

/// The tenant's tokens.
async fn tenant(context: &Context, cluster: &ObjectKey) -> Result<Api<Secret>, String> {
    let client = context.tenants.client(cluster).await.map_err(|error| error.to_string())?;
    Ok(Api::namespaced(client, TOKEN_NAMESPACE))
}

/// The token of a configuration, or the id that it can have.
async fn find_token(context: &Context, cluster: &ObjectKey, uid: &str) -> (String, Read<Token>) {
    let tokens = match tenant(context, cluster).await {
        Ok(tokens) => tokens,
        Err(why) => return (String::new(), Read::unknown(why)),
    };
    for id in candidate_ids(uid) {
        match read_token(&tokens, &id).await {
            // Somebody else's token has our id.
            Read::One(token) if token.config_uid != uid => {}
            found => return (id, found),
        }
    }
    (String::new(), Read::unknown("every token id of this configuration is taken by another token"))
}

async fn read_token(tokens: &Api<Secret>, id: &str) -> Read<Token> {
    match tokens.get_opt(&secret_name(id)).await {
        Ok(None) => Read::Absent,
        Ok(Some(secret)) => match Token::read(&secret) {
            Some(token) => Read::One(token),
            None => Read::unknown(format!("the token {id} of the tenant is malformed")),
        },
        Err(error) => Read::unknown(error.to_string()),
    }
}

async fn recorded_token(secrets: &Api<Secret>, name: &str, config: &KubeadmConfig) -> Read<Token> {
    let uid = config.uid().unwrap_or_default();
    let description = format!("join of {}/{}", config.namespace().unwrap_or_default(), config.name_any());
    match content(secrets, name, RECORD_KEY).await {
        Read::One(text) => Read::found(Token::recorded(&text, &uid, &description)),
        Read::Unknown(unknown) => Read::Unknown(unknown),
        Read::Absent | Read::Many(_) => Read::Absent,
    }
}

async fn content(secrets: &Api<Secret>, name: &str, key: &str) -> Read<String> {
    match secrets.get_opt(name).await {
        Err(error) => Read::unknown(error.to_string()),
        Ok(secret) => {
            let data = secret.and_then(|secret| secret.data);
            let value = data.and_then(|mut data| data.remove(key)).map(|value| String::from_utf8(value.0));
            match value {
                None => Read::Absent,
                Some(Ok(text)) => Read::One(text),
                Some(Err(_)) => Read::unknown(format!("the key {key:?} of the Secret {name} is no text")),
            }
        }
    }
}

async fn authority_hashes(secrets: &Api<Secret>, cluster: &ObjectKey) -> Read<Vec<String>> {
    let name = format!("{}-ca", cluster.name);
    let secret = match secrets.get_opt(&name).await {
        Err(error) => return Read::unknown(error.to_string()),
        Ok(None) => return Read::Absent,
        Ok(Some(secret)) => secret,
    };
    let data = secret.data.unwrap_or_default();
    let text = |key: &str| {
        let value = data.get(key).and_then(|value| std::str::from_utf8(&value.0).ok());
        value.filter(|text| !text.is_empty())
    };
    // The key is never used here; a control plane that keeps it elsewhere has something in its place.
    let (Some(certificates), Some(_)) = (text("tls.crt"), text("tls.key")) else { return Read::Absent };
    match Certificate::parse_bundle(certificates) {
        Ok(certificates) => Read::One(certificates.iter().map(Certificate::public_key_hash).collect()),
        Err(error) => Read::unknown(format!("the Secret {name}: {error}")),
    }
}

fn machine_facts(machine: &Kept<Machine>) -> MachineFacts {
    let status = machine.status.as_ref();
    MachineFacts {
        name: machine.key.name.clone(),
        version: machine.spec.version.clone(),
        data_secret_name: machine.spec.bootstrap.data_secret_name.clone(),
        has_node: status.is_some_and(|status| status.node_ref.is_some()),
        is_control_plane: machine.value.labels().contains_key(CONTROL_PLANE_LABEL),
        is_terminating: machine.is_terminating,
    }
}

fn cluster_facts(cluster: &Arc<Kept<Cluster>>) -> ClusterFacts {
    let initialization = cluster.status.as_ref().and_then(|status| status.initialization.as_ref());
    let endpoint = cluster.spec.control_plane_endpoint.clone().unwrap_or_default();
    ClusterFacts {
        name: cluster.key.name.clone(),
        is_paused: cluster.spec.paused == Some(true),
        is_provisioned: initialization.is_some_and(|done| done.infrastructure_provisioned == Some(true)),
        is_initialized: initialization.is_some_and(|done| done.control_plane_initialized == Some(true)),
        endpoint: Endpoint {
            host: endpoint.host.unwrap_or_default(),
            port: endpoint.port.unwrap_or_default(),
        },
    }
}

fn beside(key: &ObjectKey, name: &str) -> ObjectKey {
    ObjectKey { namespace: key.namespace.clone(), name: name.to_owned() }
}

fn random_secret() -> TokenSecret {
    loop {
        // Four times what is needed: a second round is as good as impossible.
        if let Some(secret) = TokenSecret::from_random(&rand::random::<[u8; 64]>()) {
            return secret;
        }
    }
}
