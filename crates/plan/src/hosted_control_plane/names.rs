//! The names of everything that belongs to a control plane, made from its identity, and our labels and annotations.
//!
//! The identity is recorded when a control plane is claimed; it is the Cluster's name unless another was recorded
//! before. Only [`Names::of`] reads it. Secrets whose names the contract defines are named after the Cluster instead.
//!
//! Another name would orphan data, so a test pins all names. The names of two control planes in one namespace must
//! never collide: no suffix ends in `-` and another suffix, and numbers stand before the identity. Services have
//! prefixes because their names must begin with a letter.

use hangar_api::controlplane::v1alpha1::HostedControlPlane;

use super::material::Material;
use crate::admission::FieldError;
use crate::label::is_label;

/// Which part of a control plane an object belongs to; also selects pods.
pub const COMPONENT_LABEL: &str = "app.kubernetes.io/component";
/// Who made an object.
pub const MANAGED_BY_LABEL: &str = "app.kubernetes.io/managed-by";
/// Value of [`MANAGED_BY_LABEL`].
pub const MANAGED_BY: &str = "hangar";
/// The namespace of add-ons in the tenant.
pub const ADDONS_NAMESPACE: &str = "kube-system";
/// What selects add-ons there.
pub const ADDONS_SELECTOR: &str = "app.kubernetes.io/managed-by=hangar";
/// Which control plane an object belongs to, by its identity; also selects pods, for which it must never change.
pub const INSTANCE_LABEL: &str = "app.kubernetes.io/instance";
/// On pods and their templates: the version they run.
pub const VERSION_LABEL: &str = "app.kubernetes.io/version";

/// On HostedControlPlanes: the epoch that everything of it is rendered with.
pub const EPOCH_ANNOTATION: &str = "hangar.cluster.x-k8s.io/render-epoch";
/// On HostedControlPlanes: what its objects are named after.
pub const IDENTITY_ANNOTATION: &str = "hangar.cluster.x-k8s.io/identity";
/// On HostedControlPlanes: that etcd was bootstrapped, and with whom.
pub const ETCD_ANNOTATION: &str = "hangar.cluster.x-k8s.io/etcd";
/// On HostedControlPlanes: the fingerprints of the keys that cannot be replaced.
pub const KEYS_ANNOTATION: &str = "hangar.cluster.x-k8s.io/keys";
/// On HostedControlPlanes: how the API server is reached, once its endpoint is known.
pub const WAY_ANNOTATION: &str = "hangar.cluster.x-k8s.io/way-in";
/// On HostedControlPlanes: the highest version that an API server served with.
pub const SERVED_VERSION_ANNOTATION: &str = "hangar.cluster.x-k8s.io/served-version";
/// On HostedControlPlanes: the newest etcd that members may have run, once it was changed.
pub const ETCD_VERSION_ANNOTATION: &str = "hangar.cluster.x-k8s.io/etcd-version";
/// On HostedControlPlanes: the backup that etcd starts from, or started from.
pub const RESTORE_ANNOTATION: &str = "hangar.cluster.x-k8s.io/restore";
/// On the template of API server pods: which data they serve, where it was restored. Another value replaces the pods.
pub const RESTORED_ANNOTATION: &str = "hangar.cluster.x-k8s.io/restored";
/// On HostedControlPlanes, by their operator: the uid of the claim of an etcd member that was removed and added again,
/// and begins without data.
pub const REPLACED_MEMBER_ANNOTATION: &str = "hangar.cluster.x-k8s.io/replaced-etcd-member";
/// On Secrets with keys that cannot be replaced, and on their copies: none is gone before its content is elsewhere.
pub const KEPT_FINALIZER: &str = "hangar.cluster.x-k8s.io/kept";
/// On Secrets: hash of what was asked for.
pub const INTENT_ANNOTATION: &str = "hangar.cluster.x-k8s.io/intent";
/// On Secrets: fingerprint of what is in it.
pub const FINGERPRINT_ANNOTATION: &str = "hangar.cluster.x-k8s.io/fingerprint";
/// On Secrets: fingerprint of the authority that signed.
pub const ISSUER_ANNOTATION: &str = "hangar.cluster.x-k8s.io/issuer";
/// On Secrets: start of the certificate's validity.
pub const NOT_BEFORE_ANNOTATION: &str = "hangar.cluster.x-k8s.io/not-before";
/// On Secrets: end of the certificate's validity.
pub const NOT_AFTER_ANNOTATION: &str = "hangar.cluster.x-k8s.io/not-after";
/// On Secrets of authorities: the certificate.
pub const CERTIFICATE_ANNOTATION: &str = "hangar.cluster.x-k8s.io/certificate";
/// On the Secret of the administrator's kubeconfig: the serial of its user. Another one revokes it.
pub const SERIAL_ANNOTATION: &str = "hangar.cluster.x-k8s.io/serial";
/// On API server pods: the certificate that kubelet was asked to bring. A new value makes it look at once.
pub const SERVED_ANNOTATION: &str = "hangar.cluster.x-k8s.io/served-certificate";
/// On the template of etcd's pods, once its volumes have grown: the quota that members read when they start. A new value
/// restarts them, one after the other.
pub const QUOTA_ANNOTATION: &str = "hangar.cluster.x-k8s.io/etcd-quota";
/// On pod templates: what a program reads only when it starts. A new value replaces the pods.
pub const SETTINGS_ANNOTATION: &str = "hangar.cluster.x-k8s.io/settings";
/// On the template of API server pods: when those before it were too old. A new value replaces the pods.
pub const RENEWED_ANNOTATION: &str = "hangar.cluster.x-k8s.io/renewed";
/// On objects of the tenant: hash of what was desired when it was applied.
pub const DESIRED_ANNOTATION: &str = "hangar.cluster.x-k8s.io/desired";

/// The container of the audit proxy, and the command that it runs.
pub const AUDIT_PROXY: &str = "audit-proxy";

/// What follows the name of a Secret in that of its copy.
pub const COPY: &str = "copy";

/// The volume of an etcd member in its pod; the names of claims begin with it.
pub(super) const ETCD_VOLUME: &str = "data";

/// The longest name of a Cluster, and the longest identity. A StatefulSet's name becomes a label value of its pods together with a hash of up to
/// eleven characters, so it has 52, five of which are `-etcd`.
pub const CLUSTER_NAME_LIMIT: usize = 47;

/// Parts of a control plane: values of [`COMPONENT_LABEL`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Component {
    Etcd,
    /// The API server, with the tunnel's server beside it.
    ApiServer,
    ControllerManager,
    Scheduler,
    /// Keys, certificates and kubeconfigs.
    Credentials,
}

impl Component {
    /// Value of the label.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Etcd => "etcd",
            Self::ApiServer => "api-server",
            Self::ControllerManager => "controller-manager",
            Self::Scheduler => "scheduler",
            Self::Credentials => "credentials",
        }
    }
}

/// The names of one control plane's objects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Names {
    cluster: String,
    identity: String,
    namespace: String,
}

impl Names {
    /// The names of a control plane's objects, or what is wrong with what they are made from.
    pub fn of(control_plane: &HostedControlPlane, cluster: &str) -> Result<Self, FieldError> {
        let metadata = &control_plane.metadata;
        let recorded = metadata.annotations.as_ref().and_then(|all| all.get(IDENTITY_ANNOTATION));
        check("Cluster.metadata.name", cluster)?;
        if let Some(identity) = recorded {
            check(&format!("metadata.annotations[{IDENTITY_ANNOTATION}]"), identity)?;
        }
        Ok(Self {
            cluster: cluster.to_owned(),
            identity: recorded.map_or(cluster, String::as_str).to_owned(),
            namespace: metadata.namespace.clone().unwrap_or_default(),
        })
    }

    pub fn cluster(&self) -> &str {
        &self.cluster
    }

    /// What objects are named after.
    pub fn identity(&self) -> &str {
        &self.identity
    }

    /// The namespace of everything.
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    pub fn secret(&self, material: Material) -> String {
        let owner = if material.is_of_contract() { &self.cluster } else { &self.identity };
        format!("{owner}-{}", material.suffix())
    }

    /// The copy of a Secret that was deleted and cannot be replaced, until it is made again.
    pub fn copy(&self, material: Material) -> String {
        format!("{}-{COPY}", self.secret(material))
    }

    /// The ConfigMap of the certificates that are trusted for an authority.
    pub fn trust(&self, authority: Material) -> String {
        format!("{}-{}-trust", self.identity, authority.suffix())
    }

    /// etcd's StatefulSet, PodDisruptionBudget, NetworkPolicy and ConfigMap.
    pub fn etcd(&self) -> String {
        format!("{}-etcd", self.identity)
    }

    /// The pod of an etcd member, which is its name among members as well.
    pub fn etcd_pod(&self, ordinal: i32) -> String {
        format!("{}-etcd-{ordinal}", self.identity)
    }

    /// The claim of an etcd member's volume, as its StatefulSet names it.
    pub fn etcd_claim(&self, ordinal: i32) -> String {
        format!("{ETCD_VOLUME}-{}", self.etcd_pod(ordinal))
    }

    /// The Service that governs etcd's pods.
    pub fn etcd_service(&self) -> String {
        format!("etcd-{}", self.identity)
    }

    /// The Service of one etcd member: its name resolves before the pod has an address.
    pub fn etcd_member_service(&self, ordinal: i32) -> String {
        format!("etcd{ordinal}-{}", self.identity)
    }

    /// The host name of one etcd member.
    pub fn etcd_member_host(&self, ordinal: i32) -> String {
        self.etcd_host(&ordinal.to_string())
    }

    /// The same for an ordinal that is a variable.
    pub(super) fn etcd_host(&self, ordinal: &str) -> String {
        format!("etcd{ordinal}-{}.{}.svc", self.identity, self.namespace)
    }

    /// The API server's Deployment, PodDisruptionBudget, NetworkPolicy, and the ConfigMap of what it reads when it starts.
    pub fn api_server(&self) -> String {
        format!("{}-apiserver", self.identity)
    }

    /// The ConfigMap of whose tokens are accepted, which API servers read again while they run.
    pub fn authentication(&self) -> String {
        format!("{}-authentication", self.identity)
    }

    /// The Service that the API server is reached through.
    pub fn api_server_service(&self) -> String {
        format!("api-{}", self.identity)
    }

    /// The API server's host name in the management cluster.
    pub fn api_server_host(&self) -> String {
        format!("{}.{}.svc", self.api_server_service(), self.namespace)
    }

    /// The Service that agents reach the tunnel's server through.
    pub fn konnectivity_service(&self) -> String {
        format!("konnectivity-{}", self.identity)
    }

    /// What agents call the tunnel's server where it has no name of its own. It is in the certificate from the start,
    /// while the address that agents reach comes late, and the tunnel's server reads its certificate once.
    pub fn konnectivity_host(&self) -> String {
        format!("{}.{}.svc", self.konnectivity_service(), self.namespace)
    }

    /// The controller manager's Deployment, NetworkPolicy and ConfigMap.
    pub fn controller_manager(&self) -> String {
        format!("{}-controller-manager", self.identity)
    }

    /// The scheduler's Deployment, NetworkPolicy and ConfigMap.
    pub fn scheduler(&self) -> String {
        format!("{}-scheduler", self.identity)
    }
}

/// Whether objects can be named after it.
fn check(path: &str, name: &str) -> Result<(), FieldError> {
    if !is_label(name) {
        let why = "objects of the control plane are named after it: lower case letters, digits and dashes";
        return Err(FieldError::invalid(path, name, why));
    }
    if name.len() > CLUSTER_NAME_LIMIT {
        let why = format!(
            "it is too long by {}: with etcd's StatefulSet named after it, pods need label values of 63 characters, \
             which leaves {CLUSTER_NAME_LIMIT} for the name",
            name.len() - CLUSTER_NAME_LIMIT
        );
        return Err(FieldError::invalid(path, name, why));
    }
    Ok(())
}
