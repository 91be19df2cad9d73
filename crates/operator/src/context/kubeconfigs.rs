//! Finds the kubeconfig of a tenant: in the Secret that the contract names after the Cluster, or in our own Secret of
//! its control plane.
//!
//! A kubeconfig may name a Service of the management cluster, which a manager outside of that cluster cannot resolve.
//! Such a manager connects to the endpoint instead, and still checks the certificate for the Service's name.

use std::sync::Arc;

use hangar_api::cluster::v1beta2::Cluster;
use hangar_api::contract::Endpoint;
use hangar_api::controlplane::v1alpha1::HostedControlPlane;
use hangar_api::names::{CLUSTER_NAME_LABEL, SECRET_VALUE_KEY};
use hangar_kit::ObjectKey;
use hangar_kit::client::{Connection, KubeconfigSource};
use hangar_kit::error::{Error, Result};
use hangar_kit::watch::Kept;
use hangar_plan::flow::Read;
use hangar_plan::hosted_control_plane::{Epoch, Material, Names, Recorded};
use k8s_openapi::api::core::v1::Secret;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Api, Client, Config};

use super::Watches;

/// How names of Services end in our kubeconfigs.
const SERVICE_DOMAIN: &str = ".svc";

/// Finds the Secret of a kubeconfig and reads it when it has changed. The key is the Cluster's.
pub(crate) struct KubeconfigSecrets {
    client: Client,
    watches: Arc<Watches>,
    material: Material,
    is_outside: bool,
}

impl KubeconfigSecrets {
    pub(super) fn new(client: Client, watches: Arc<Watches>, material: Material) -> Self {
        // Kubernetes tells every pod where its API server is, and nobody else. The contract's kubeconfig has the
        // endpoint in it anyway.
        let is_outside =
            std::env::var_os("KUBERNETES_SERVICE_HOST").is_none() && material != Material::Kubeconfig;
        Self { client, watches, material, is_outside }
    }

    /// Where people reach the tenant: from the Cluster, or from its control plane while the Cluster has not heard of it.
    fn endpoint(&self, cluster: &ObjectKey) -> Option<Endpoint> {
        if let Read::One(kept) = self.watches.clusters().get(cluster)
            && let Some(endpoint) = &kept.spec.control_plane_endpoint
        {
            let endpoint = Endpoint {
                host: endpoint.host.clone().unwrap_or_default(),
                port: endpoint.port.unwrap_or_default(),
            };
            if endpoint.is_valid() {
                return Some(endpoint);
            }
        }
        self.of_control_plane(cluster, |found| {
            found.spec.settings.control_plane_endpoint.clone().filter(Endpoint::is_valid)
        })
    }

    /// What the Cluster's control plane says; of several, the first that says something.
    fn of_control_plane<T>(
        &self,
        cluster: &ObjectKey,
        asked: impl Fn(&HostedControlPlane) -> Option<T>,
    ) -> Option<T> {
        let is_its_own = |kept: &Kept<_>| {
            kept.key.namespace == cluster.namespace
                && (kept.owners.iter().any(|owner| owner.is::<Cluster>() && owner.name == cluster.name)
                    || kept.labels.get(CLUSTER_NAME_LABEL) == Some(&cluster.name))
        };
        let all = self.watches.control_planes().all();
        all.iter().filter(|kept| is_its_own(kept)).find_map(|kept| asked(&kept.value))
    }

    /// Replaces the name of a Service by the endpoint, where only that can be reached.
    fn redirect(&self, config: &mut Config, cluster: &ObjectKey) {
        let host = config.cluster_url.host().unwrap_or_default().to_owned();
        if !self.is_outside || !host.ends_with(SERVICE_DOMAIN) {
            return;
        }
        if let Some(endpoint) = self.endpoint(cluster)
            && let Ok(url) = format!("https://{endpoint}").parse()
        {
            config.cluster_url = url;
            config.tls_server_name = Some(host);
        }
    }

    /// A new endpoint is new connection data where we go by it.
    fn revision_of(&self, cluster: &ObjectKey, uid: &str, version: &str) -> String {
        let detour = if self.is_outside { self.endpoint(cluster) } else { None };
        let detour = detour.map(|endpoint| format!("/{endpoint}")).unwrap_or_default();
        format!("{uid}/{version}{detour}")
    }

    fn secret(&self, cluster: &ObjectKey) -> ObjectKey {
        let named = |found: &HostedControlPlane| {
            // One that was never claimed has no Secrets.
            let is_claimed = Epoch::recorded(found) != Recorded::Nothing;
            let names = Names::of(found, &cluster.name).ok().filter(|_| is_claimed)?;
            Some(names.secret(self.material))
        };
        let by_identity =
            if self.material.is_of_contract() { None } else { self.of_control_plane(cluster, named) };
        let name = by_identity.unwrap_or_else(|| format!("{}-{}", cluster.name, self.material.suffix()));
        ObjectKey { namespace: cluster.namespace.clone(), name }
    }
}

impl KubeconfigSource for KubeconfigSecrets {
    fn revision(&self, cluster: &ObjectKey) -> Option<String> {
        match self.watches.secrets().get(&self.secret(cluster)) {
            Read::One(kept) if !kept.is_terminating => {
                Some(self.revision_of(cluster, &kept.uid, &kept.resource_version))
            }
            _ => None,
        }
    }

    async fn connection(&self, cluster: &ObjectKey) -> Result<Connection> {
        let key = self.secret(cluster);
        let api: Api<Secret> =
            Api::namespaced(self.client.clone(), key.namespace.as_deref().unwrap_or_default());
        let secret =
            api.get(&key.name).await.map_err(|source| Error::api(format!("read Secret {key}"), source))?;
        let malformed = |problem: String| Error::Malformed { what: format!("Secret {key}"), problem };
        let value = secret.data.as_ref().and_then(|data| data.get(SECRET_VALUE_KEY));
        let value = value.ok_or_else(|| malformed(format!("it has no key {SECRET_VALUE_KEY:?}")))?;
        let text = std::str::from_utf8(&value.0).map_err(|error| malformed(error.to_string()))?;
        let kubeconfig = Kubeconfig::from_yaml(text).map_err(|error| malformed(error.to_string()))?;
        if let Some(field) = reaches_out(&kubeconfig) {
            return Err(malformed(format!("{field} is set; only data in the kubeconfig itself is used")));
        }
        let mut config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default())
            .await
            .map_err(|error| malformed(error.to_string()))?;
        let metadata = secret.metadata;
        let uid = metadata.uid.unwrap_or_default();
        let version = metadata.resource_version.unwrap_or_default();
        self.redirect(&mut config, cluster);
        Ok(Connection { config, revision: self.revision_of(cluster, &uid, &version) })
    }
}

/// A field by which a kubeconfig would start a program, open a file or lead through another host. It comes from a
/// namespace, and its author must not act in the place of whoever reads it.
fn reaches_out(kubeconfig: &Kubeconfig) -> Option<&'static str> {
    let users = kubeconfig.auth_infos.iter().filter_map(|user| user.auth_info.as_ref()).flat_map(|user| {
        [
            (user.exec.is_some(), "user.exec"),
            (user.auth_provider.is_some(), "user.auth-provider"),
            (user.token_file.is_some(), "user.tokenFile"),
            (user.client_certificate.is_some(), "user.client-certificate"),
            (user.client_key.is_some(), "user.client-key"),
        ]
    });
    let clusters =
        kubeconfig.clusters.iter().filter_map(|cluster| cluster.cluster.as_ref()).flat_map(|cluster| {
            [
                (cluster.certificate_authority.is_some(), "cluster.certificate-authority"),
                (cluster.proxy_url.is_some(), "cluster.proxy-url"),
            ]
        });
    users.chain(clusters).find_map(|(is_set, field)| is_set.then_some(field))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kubeconfig_starts_no_program_and_opens_no_file() {
        let of = |cluster: &str, user: &str| {
            let text = format!(
                "clusters: [{{name: c, cluster: {{server: 'https://192.0.2.1'{cluster}}}}}]\n\
                 users: [{{name: u, user: {{token: t{user}}}}}]\n\
                 contexts: [{{name: x, context: {{cluster: c, user: u}}}}]\ncurrent-context: x\n"
            );
            reaches_out(&Kubeconfig::from_yaml(&text).unwrap())
        };
        assert_eq!(of(", certificate-authority-data: AA==", ", client-key-data: AA=="), None);
        let exec = ", exec: {apiVersion: client.authentication.k8s.io/v1, command: /bin/sh}";
        for (cluster, user, field) in [
            ("", exec, "user.exec"),
            ("", ", auth-provider: {name: gcp, config: {}}", "user.auth-provider"),
            ("", ", tokenFile: /var/run/token", "user.tokenFile"),
            ("", ", client-certificate: /etc/c.crt", "user.client-certificate"),
            ("", ", client-key: /etc/c.key", "user.client-key"),
            (", certificate-authority: /etc/ca.crt", "", "cluster.certificate-authority"),
            (", proxy-url: 'http://192.0.2.9'", "", "cluster.proxy-url"),
        ] {
            assert_eq!(of(cluster, user), Some(field));
        }
    }
}
