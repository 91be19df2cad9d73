//! Plans kubeconfigs: those with keys in Secrets, for use from elsewhere, and those without keys in ConfigMaps, for our
//! own pods.
//!
//! Our pods get certificate files beside their kubeconfig. Programs reread files, so a renewal restarts none of them.

use std::time::Duration;

use hangar_api::contract::Endpoint;
use hangar_api::controlplane::v1alpha1::HostedControlPlane;
use serde_json::{Value, json};

use super::certificates::{self, leaf};
use super::exposure::{self, RecordedWay, manager};
use super::material::{Content, Issuer, Material, Usage};
use super::names::Names;
use super::observed::{ClusterFacts, Observed, SecretFacts};
use super::validate::{self, Validated};
use super::{access, endpoint, tenant, trust};
use crate::flow::Read;

/// Our own access is renewed after two thirds of this: a copy of it is of no use the next day.
const ACCESS_LIFETIME: Duration = Duration::from_hours(24);

/// What a kubeconfig of ours says, keys aside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KubeconfigFacts {
    /// URL of the API server.
    pub server: String,
    /// Whom the client trusts, in PEM.
    pub trust: Option<String>,
    /// Another name to expect in the server's certificate.
    pub tls_server_name: Option<String>,
    /// Fingerprint of the client certificate; empty where there is none.
    pub fingerprint: String,
}

impl KubeconfigFacts {
    /// The first field that is not as it was minted: for this server, for clients that trust these (where that is known),
    /// and with the certificate that was noted.
    pub fn difference(&self, server: &str, trust: Option<&str>, noted: &SecretFacts) -> Option<&'static str> {
        if self.server != server {
            Some("clusters[].cluster.server")
        } else if self.tls_server_name.is_some() {
            Some("clusters[].cluster.tls-server-name")
        } else if trust.is_some_and(|trust| self.trust.as_deref() != Some(trust)) {
            Some("clusters[].cluster.certificate-authority-data")
        } else if self.fingerprint != noted.fingerprint {
            Some("users[].user.client-certificate-data")
        } else {
            None
        }
    }
}

/// The server that a kubeconfig of ours names, as far as the control plane itself says: our own goes through the
/// Service, people's through the endpoint that was published.
pub fn server_of(
    material: Material,
    control_plane: &HostedControlPlane,
    cluster: &ClusterFacts,
) -> Option<String> {
    let settings = &control_plane.spec.settings;
    let endpoint = match material {
        Material::OperatorAccess => {
            let way = RecordedWay::recorded(control_plane).ok()?;
            let port = validate::port(settings, cluster, exposure::chosen(way.as_ref(), settings)).ok()?;
            let host = Names::of(control_plane, &cluster.name).ok()?.api_server_host();
            Endpoint { host, port: i32::from(port) }
        }
        _ => settings.control_plane_endpoint.clone().filter(Endpoint::is_valid)?,
    };
    Some(format!("https://{endpoint}"))
}

/// The user of a serial. Its binding names it, so that it can do nothing once a successor is bound.
pub(super) fn administrator(serial: &str) -> String {
    format!("kubernetes-admin:{serial}")
}

/// The serial whose user is bound in the tenant: the kubeconfig's, or that of the next one, because a kubeconfig works from
/// the moment that it exists.
pub(super) fn serial(observed: &Observed, validated: &Validated<'_>) -> Option<String> {
    recorded_serial(observed).or_else(|| next_serial(observed, validated))
}

fn recorded_serial(observed: &Observed) -> Option<String> {
    match observed.secret(Material::Kubeconfig) {
        Read::One(facts) if !facts.is_deleting => {
            let is_serial =
                |text: &String| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
            facts.serial.clone().filter(is_serial)
        }
        _ => None,
    }
}

/// A Secret that is gone was revoked: its successor has another serial. There is none while it could not be minted: each
/// moment has another one, and none is to be bound in vain.
fn next_serial(observed: &Observed, validated: &Validated<'_>) -> Option<String> {
    let is_free = match observed.secret(Material::Kubeconfig) {
        Read::Absent => is_serving(observed),
        Read::One(facts) => facts.is_ours && !facts.is_deleting && facts.problem.is_none(),
        Read::Many(_) | Read::Unknown(_) => false,
    };
    let can_be_minted = observed.clocks.disagreement().is_none()
        && certificates::issuer(observed, validated, Material::Kubeconfig).is_some()
        && trust::bundle(observed, validated, Material::ClusterAuthority).is_some()
        && endpoint::known(observed, validated).is_some();
    (is_free && can_be_minted).then(|| observed.now.as_millisecond().to_string())
}

/// Whether only clocks that disagree keep it from being minted.
pub(super) fn is_withheld(observed: &Observed) -> bool {
    let is_missing = observed.secret(Material::Kubeconfig).is_absent() && is_serving(observed);
    is_missing && observed.clocks.disagreement().is_some()
}

fn is_serving(observed: &Observed) -> bool {
    matches!(&observed.api_server, Read::One(facts) if facts.ready > 0)
}

/// The kubeconfigs that hold keys.
pub(super) fn content(
    observed: &Observed,
    validated: &Validated<'_>,
    material: Material,
    issuer: Issuer,
) -> Option<Content> {
    let names = &validated.names;
    let cluster = names.cluster().to_owned();
    let trust = trust::bundle(observed, validated, Material::ClusterAuthority)?;
    match material {
        Material::OperatorAccess => {
            let mut intent = leaf(validated, access::USER, Usage::Client);
            intent.lifetime = intent.lifetime.min(ACCESS_LIFETIME);
            let server = format!("https://{}", manager(validated));
            let user = "hangar".to_owned();
            Some(Content::Kubeconfig { intent, issuer, trust, cluster, user, server, serial: None })
        }
        Material::Kubeconfig => {
            let endpoint = endpoint::known(observed, validated)?;
            // Published when it works: readers that fail at first try again much later.
            let next = || {
                next_serial(observed, validated).filter(|next| tenant::is_bound(observed, validated, next))
            };
            let serial = recorded_serial(observed).or_else(next)?;
            let intent = leaf(validated, &administrator(&serial), Usage::Client);
            let server = format!("https://{endpoint}");
            let user = format!("{cluster}-admin");
            Some(Content::Kubeconfig { intent, issuer, trust, cluster, user, server, serial: Some(serial) })
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
