//! Finds the kubeconfig of a tenant: in the Secret that the contract names after the Cluster, or in our own Secret of
//! its control plane.
//!
//! The text is read by [`Kubeconfig::read`], which takes nothing but data. A kubeconfig that Hangar minted is used only
//! as it was minted: for the control plane's server, with the trusted authorities and the noted certificate. A
//! kubeconfig of another provider is used as it is.
//!
//! A kubeconfig may name a Service of the management cluster, which a manager outside of that cluster cannot resolve.
//! Such a manager connects to the endpoint instead, and still checks the certificate for the Service's name.

use std::sync::Arc;
use std::time::Duration;

use hangar_api::cluster::v1beta2::Cluster;
use hangar_api::contract::Endpoint;
use hangar_api::controlplane::v1alpha1::HostedControlPlane;
use hangar_api::names::{CLUSTER_NAME_LABEL, SECRET_VALUE_KEY};
use hangar_kit::ObjectKey;
use hangar_kit::client::{self, Connection, KubeconfigSource};
use hangar_kit::error::{Error, Result};
use hangar_kit::watch::Kept;
use hangar_pki::{Certificate, Credentials, Kubeconfig, Trust};
use hangar_plan::flow::Read;
use hangar_plan::hosted_control_plane::names::CERTIFICATE_ANNOTATION;
use hangar_plan::hosted_control_plane::{
    ClusterFacts, Epoch, KubeconfigFacts, Material, Names, Recorded, SecretFacts, server_of,
};
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::{Api, Client, Config};

use super::Watches;

/// How names of Services end in our kubeconfigs.
const SERVICE_DOMAIN: &str = ".svc";
/// An endpoint that was published, or a store that was started, is there within this time.
const UNKNOWN_FOR: Duration = Duration::from_secs(2);

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

    /// The kubeconfig in its Secret, if it may be used, with its revision.
    pub(crate) async fn kubeconfig(&self, cluster: &ObjectKey) -> Result<(Kubeconfig, String)> {
        let key = self.secret(cluster);
        let api: Api<Secret> =
            Api::namespaced(self.client.clone(), key.namespace.as_deref().unwrap_or_default());
        let secret =
            api.get(&key.name).await.map_err(|source| Error::api(format!("read Secret {key}"), source))?;
        let malformed = |problem: String| Error::Malformed { what: format!("Secret {key}"), problem };
        let kubeconfig = read(&secret).map_err(malformed)?;
        if let Some(problem) = self.problem(cluster, &kubeconfig, &secret.metadata)? {
            return Err(malformed(problem));
        }
        let metadata = secret.metadata;
        let uid = metadata.uid.unwrap_or_default();
        let version = metadata.resource_version.unwrap_or_default();
        Ok((kubeconfig, self.revision_of(cluster, &uid, &version)))
    }

    /// How to connect with a kubeconfig of this tenant.
    pub(crate) fn connect(&self, kubeconfig: &Kubeconfig, cluster: &ObjectKey) -> Result<Config> {
        let mut config = client::connection(kubeconfig)?;
        self.redirect(&mut config, cluster);
        Ok(config)
    }

    /// Why a kubeconfig is not used, where it says something else than what was minted.
    fn problem(
        &self,
        cluster: &ObjectKey,
        kubeconfig: &Kubeconfig,
        metadata: &ObjectMeta,
    ) -> Result<Option<String>> {
        let Some(noted) = SecretFacts::of(metadata) else {
            // The contract's comes from any provider.
            let is_anybodys = self.material.is_of_contract();
            return Ok((!is_anybodys).then(|| "it was not minted by Hangar".to_owned()));
        };
        let minted = |found: &HostedControlPlane| {
            let Read::One(kept) = self.watches.clusters().get(cluster) else { return None };
            let server = server_of(self.material, found, &ClusterFacts::of(&kept.value))?;
            let authority = Names::of(found, &cluster.name).ok()?.secret(Material::ClusterAuthority);
            let key = ObjectKey { namespace: cluster.namespace.clone(), name: authority };
            // People's own authority is compared when plans look at the Secret.
            let noted = self.watches.secrets().get(&key);
            Some((
                server,
                noted.iter().find_map(|kept| kept.annotations.get(CERTIFICATE_ANNOTATION).cloned()),
            ))
        };
        let Some((server, trust)) = self.of_control_plane(cluster, minted) else {
            let why = "its control plane has no endpoint here yet".to_owned();
            let (tenant, retry_after) = (cluster.to_string(), UNKNOWN_FOR);
            return Err(Error::TenantUnavailable { tenant, why, retry_after });
        };
        let field = facts(kubeconfig).difference(&server, trust.as_deref(), &noted);
        Ok(field.map(|field| format!("{field} is not what Hangar minted, so it is not used")))
    }
}

/// The kubeconfig in a Secret.
pub(crate) fn read(secret: &Secret) -> Result<Kubeconfig, String> {
    let value = secret.data.as_ref().and_then(|data| data.get(SECRET_VALUE_KEY));
    let value = value.ok_or_else(|| format!("it has no key {SECRET_VALUE_KEY:?}"))?;
    let text = std::str::from_utf8(&value.0).map_err(|_| format!("{SECRET_VALUE_KEY:?} is not a text"))?;
    Kubeconfig::read(text).map_err(|error| error.to_string())
}

/// What a kubeconfig says, keys aside.
pub(crate) fn facts(kubeconfig: &Kubeconfig) -> KubeconfigFacts {
    let certificate = match &kubeconfig.credentials {
        Credentials::Certificate(pair) => Certificate::parse(&pair.certificate).ok(),
        _ => None,
    };
    KubeconfigFacts {
        server: kubeconfig.server.clone(),
        trust: match &kubeconfig.trust {
            Trust::Embedded(pem) => Some(pem.clone()),
            Trust::System | Trust::File(_) => None,
        },
        tls_server_name: kubeconfig.tls_server_name.clone(),
        fingerprint: certificate.map(|certificate| certificate.fingerprint()).unwrap_or_default(),
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
        let (kubeconfig, revision) = self.kubeconfig(cluster).await?;
        Ok(Connection { config: self.connect(&kubeconfig, cluster)?, revision })
    }
}
