//! Plans kubeconfigs: those with keys in Secrets, for use from elsewhere, and those without keys in ConfigMaps, for our
//! own pods.
//!
//! Our pods get certificate files beside their kubeconfig. Programs reread files, so a renewal restarts none of them.

use serde_json::{Value, json};

use super::certificates::leaf;
use super::exposure::manager;
use super::material::{Content, Issuer, Material, Usage};
use super::observed::Observed;
use super::validate::Validated;
use super::{endpoint, trust};
use crate::flow::Read;

/// The group that kubeadm gives administrators: bound to everything, and can be unbound.
pub(super) const ADMINISTRATORS: &str = "kubeadm:cluster-admins";

/// The kubeconfigs that hold keys.
pub(super) fn content(
    observed: &Observed,
    validated: &Validated<'_>,
    material: Material,
    issuer: Issuer,
) -> Option<Content> {
    let names = &validated.names;
    let cluster = names.cluster().to_owned();
    let trust = trust::bundle(observed, Material::ClusterAuthority)?;
    match material {
        Material::OperatorAccess => {
            let mut intent = leaf(validated, "hangar:control-plane", Usage::Client);
            // The first role bindings have to be written by somebody who needs none.
            intent.organizations.push("system:masters".to_owned());
            let server = format!("https://{}", manager(validated));
            Some(Content::Kubeconfig { intent, issuer, trust, cluster, user: "hangar".to_owned(), server })
        }
        Material::Kubeconfig => {
            let endpoint = endpoint::known(observed, validated)?;
            // Published when it works: readers that fail at first try again much later.
            let is_serving = matches!(&observed.api_server, Read::One(facts) if facts.ready > 0);
            let is_there = matches!(observed.secret(material), Read::One(_));
            if !is_serving && !is_there {
                return None;
            }
            let mut intent = leaf(validated, "kubernetes-admin", Usage::Client);
            intent.organizations.push(ADMINISTRATORS.to_owned());
            let server = format!("https://{endpoint}");
            let user = format!("{cluster}-admin");
            Some(Content::Kubeconfig { intent, issuer, trust, cluster, user, server })
        }
        _ => None,
    }
}

/// A kubeconfig for a pod of ours: all files are in one directory.
pub(super) fn for_pod(validated: &Validated<'_>, server: &str, directory: &str) -> Value {
    let cluster = validated.names.cluster();
    json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{
            "name": cluster,
            "cluster": {"server": server, "certificate-authority": format!("{directory}/ca.crt")},
        }],
        "users": [{
            "name": "pod",
            "user": {
                "client-certificate": format!("{directory}/client.crt"),
                "client-key": format!("{directory}/client.key"),
            },
        }],
        "contexts": [{"name": "pod", "context": {"cluster": cluster, "user": "pod"}}],
        "current-context": "pod",
    })
}

/// A kubeconfig for a pod of the tenant: its account's token, and the address that needs no Service to work.
pub(super) fn for_account(server: &str) -> Value {
    let mounted = "/var/run/secrets/kubernetes.io/serviceaccount";
    json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{
            "name": "default",
            "cluster": {"server": server, "certificate-authority": format!("{mounted}/ca.crt")},
        }],
        "users": [{"name": "default", "user": {"tokenFile": format!("{mounted}/token")}}],
        "contexts": [{"name": "default", "context": {"cluster": "default", "user": "default"}}],
        "current-context": "default",
    })
}
