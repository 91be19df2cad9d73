//! The observation of a control plane: small facts, each behind a read that may have failed.
//!
//! The edge fills it from its stores. It contains no keys, and no more than a decision needs. The executor and the
//! crash sweep both update it with `Planner::fold` after a step; what the step's answer did not say becomes `Unknown`
//! or is left out, never guessed.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use hangar_api::cluster::v1beta2::Cluster;
use hangar_api::contract::Endpoint;
use hangar_api::controlplane::v1alpha1::HostedControlPlane;
use hangar_api::names::CLUSTER_NAME_LABEL;
use hangar_api::reference::ContractVersionedObjectReference;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use super::alarms::Alarm;
use super::backup::Work;
use super::database::DatabaseSize;
use super::etcd_calls::MemberList;
use super::exposure::Ways;
use super::kubeconfigs::KubeconfigFacts;
use super::material::Material;
use super::restore::BackupFacts;
use super::running_addons::AddonFacts;
use super::sources::{Source, SourceFacts};
use super::version::KubernetesVersion;
use super::{Names, names};
use crate::flow::{Clocks, Read, StepId};
pub use crate::inventory::{Found as TenantObject, ObjectIdentity};
use crate::limits::Limits;
use crate::referred;

/// A certificate is renewed in this last part of its validity: the last third.
const RENEWED_IN_LAST: i32 = 3;

/// Everything one plan of a hosted control plane is made from. What another owner manages counts as absent: it has one
/// of our names, is never changed and never deleted.
#[derive(Clone, Debug)]
pub struct Observed {
    pub now: Timestamp,
    /// What it may ask for beyond its namespace.
    pub limits: Arc<Limits>,
    /// That moment by our clock and by the management cluster's.
    pub clocks: Clocks,
    /// The object itself, as the watch shows it.
    pub control_plane: HostedControlPlane,
    /// The Cluster that owns it. Absent: nobody owns it yet.
    pub cluster: Read<ClusterFacts>,
    /// The object behind the Cluster's `infrastructureRef`. Absent: the Cluster names none, or it does not exist yet.
    pub infrastructure: Read<InfrastructureFacts>,
    /// The Secrets by what they hold. What is missing in the map was not read.
    pub secrets: BTreeMap<Material, Read<SecretFacts>>,
    /// Copies of Secrets that cannot be replaced, by what they hold. What is missing in the map was not read.
    pub copies: BTreeMap<Material, Read<SecretFacts>>,
    /// etcd's StatefulSet.
    pub etcd: Read<WorkloadFacts>,
    pub etcd_pods: Read<PodFacts>,
    /// The claims of etcd's volumes, by whomever they were made.
    pub etcd_claims: Read<ClaimFacts>,
    /// The members of etcd that answered. Unknown while none did, with the reason; never Absent.
    pub etcd_members: Read<MemberFacts>,
    /// Who belongs to etcd's cluster, as its members say when they are called. Unknown unless the plan wanted it and one
    /// answered, with the reason; never Absent.
    pub etcd_list: Read<MemberList>,
    /// The API server's Deployment.
    pub api_server: Read<WorkloadFacts>,
    pub api_server_pods: Read<PodFacts>,
    /// The controller manager's Deployment.
    pub controller_manager: Read<WorkloadFacts>,
    /// The scheduler's Deployment.
    pub scheduler: Read<WorkloadFacts>,
    /// The pods of both.
    pub controller_pods: Read<PodFacts>,
    /// The Service that the API server is reached through.
    pub service: Read<ServiceFacts>,
    /// The Service that agents reach the tunnel's server through.
    pub tunnel: Read<ServiceFacts>,
    /// What some ways in need besides.
    pub ways: Ways,
    /// What is in the tenant. Unknown while it cannot be reached, with the reason; never Absent.
    pub tenant: Read<TenantFacts>,
    /// What there is of each add-on that [`super::tenant_addons`] names. What is missing in the map was not read: while
    /// there are no Nodes nobody asks.
    pub addons: BTreeMap<ObjectIdentity, Read<AddonFacts>>,
    /// NetworkPolicies of this control plane, by name.
    pub network_policies: Read<BTreeMap<String, OwnedObject>>,
    /// CiliumNetworkPolicies of this control plane, by name. Absent: the management cluster has no such kind.
    pub cilium_policies: Read<BTreeMap<String, OwnedObject>>,
    /// PodMonitors of this control plane, by name. Absent: the management cluster has no such kind.
    pub pod_monitors: Read<BTreeMap<String, OwnedObject>>,
    /// The backup that is asked for. Absent: there is none of that id or time.
    pub restorable: Read<BackupFacts>,
    /// What there is of the objects that [`super::sources()`] names. What is missing in the map was not read.
    pub sources: BTreeMap<Source, Read<SourceFacts>>,
    /// The image that the manager runs from, where it was told.
    pub manager_image: Option<String>,
    /// The namespace that managers run in, where they run in the management cluster.
    pub manager_namespace: Option<String>,
    /// What there is of the backup that [`Observed::backup_identity`] names.
    pub backup: Work,
    /// What did not work in this pass, steps and objects, in the words of who said so.
    pub troubles: BTreeMap<StepId, String>,
}

#[cfg(test)]
crate::flow::doubt::reads! {
    Observed {
        now, limits, clocks, control_plane, cluster, infrastructure, secrets, copies, etcd, etcd_pods,
        etcd_claims, etcd_members, etcd_list, api_server, api_server_pods, controller_manager, scheduler, controller_pods,
        service, tunnel, ways, tenant, addons, network_policies, cilium_policies, pod_monitors, restorable, sources,
        manager_image, manager_namespace, backup, troubles,
    }
    TenantFacts { lacks_rights, nodes, oldest_kubelet, objects };
    Arc<Limits>, HostedControlPlane, ClusterFacts, InfrastructureFacts, SecretFacts, WorkloadFacts, PodFacts,
    ClaimFacts, KubernetesVersion, MemberFacts, MemberList, ServiceFacts, TenantObject, AddonFacts, OwnedObject, SourceFacts, BackupFacts, Work,
}

/// Why the tenant, or a member of etcd, is unknown while nobody asked it, though it can be asked.
pub const NOT_ASKED: &str = "it was not asked";

impl Observed {
    /// What everything is named, where that can be told: also after a Cluster that is gone, for what is named after it has
    /// to go too.
    pub fn names(&self) -> Option<Names> {
        let metadata = &self.control_plane.metadata;
        let known = self.cluster.iter().next().map(|cluster| cluster.name.clone());
        let owner =
            metadata.owner_references.iter().flatten().find(|owner| referred::is_kind::<Cluster>(owner));
        let label = metadata.labels.as_ref().and_then(|labels| labels.get(CLUSTER_NAME_LABEL));
        let name = known.or_else(|| owner.map(|owner| owner.name.clone())).or_else(|| label.cloned())?;
        Names::of(&self.control_plane, &name).ok()
    }

    /// Whether etcd was on record with data. A record that cannot be read is one.
    pub(super) fn is_bootstrapped(&self) -> bool {
        let annotations = self.control_plane.metadata.annotations.as_ref();
        annotations.is_some_and(|annotations| annotations.contains_key(names::ETCD_ANNOTATION))
    }

    /// Whether something of the management cluster could not be read.
    pub(super) fn has_unread(&self) -> bool {
        let workloads = [&self.etcd, &self.api_server, &self.controller_manager, &self.scheduler];
        self.cluster.is_unknown()
            || self.infrastructure.is_unknown()
            || self.service.is_unknown()
            || self.tunnel.is_unknown()
            || self.etcd_pods.is_unknown()
            || self.etcd_claims.is_unknown()
            || self.api_server_pods.is_unknown()
            || self.controller_pods.is_unknown()
            || self.network_policies.is_unknown()
            || self.cilium_policies.is_unknown()
            || self.pod_monitors.is_unknown()
            || workloads.into_iter().any(Read::is_unknown)
            || self.secrets.values().chain(self.copies.values()).any(Read::is_unknown)
            || self.sources.values().any(Read::is_unknown)
    }
}

/// What a plan needs of the Cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClusterFacts {
    pub name: String,
    /// Whether the whole Cluster is paused.
    pub is_paused: bool,
    /// Whether the Cluster is being deleted.
    pub is_deleting: bool,
    /// Ranges of pods, as written; empty when not given.
    pub pod_ranges: Vec<String>,
    /// Ranges of services, as written; empty when not given.
    pub service_ranges: Vec<String>,
    /// Domain of services, if given.
    pub service_domain: Option<String>,
    /// Port of the API server, if given.
    pub api_server_port: Option<i32>,
    /// The endpoint that the Cluster has; half or empty while it has none.
    pub endpoint: Endpoint,
    /// The HostedControlPlane that the Cluster refers to, if it refers to one.
    pub control_plane: Option<String>,
}

impl ClusterFacts {
    /// The facts of a Cluster.
    pub fn of(cluster: &Cluster) -> Self {
        let network = cluster.spec.cluster_network.clone().unwrap_or_default();
        let endpoint = cluster.spec.control_plane_endpoint.clone().unwrap_or_default();
        let reference = cluster.spec.control_plane_ref.as_ref();
        let reference = reference.filter(|found| found.is::<HostedControlPlane>());
        Self {
            name: cluster.metadata.name.clone().unwrap_or_default(),
            is_paused: cluster.spec.paused.unwrap_or_default(),
            is_deleting: cluster.metadata.deletion_timestamp.is_some(),
            pod_ranges: network.pods.map(|ranges| ranges.cidr_blocks).unwrap_or_default(),
            service_ranges: network.services.map(|ranges| ranges.cidr_blocks).unwrap_or_default(),
            service_domain: network.service_domain,
            api_server_port: network.api_server_port,
            endpoint: Endpoint {
                host: endpoint.host.unwrap_or_default(),
                port: endpoint.port.unwrap_or_default(),
            },
            control_plane: reference.map(|reference| reference.name.clone()),
        }
    }
}

/// What a plan needs of the infrastructure object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InfrastructureFacts {
    /// How the Cluster names it; the namespace is the control plane's.
    pub reference: ContractVersionedObjectReference,
    /// Unique id: a patch is only for the object that was seen.
    pub uid: String,
    /// The endpoint that it has; half or empty while it has none.
    pub endpoint: Endpoint,
}

/// What a plan needs of a Secret that holds a key. All of it is public.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SecretFacts {
    /// Unique id; not known right after minting.
    pub uid: Option<String>,
    /// Whether we made it. One that people brought is used and never changed or deleted.
    pub is_ours: bool,
    /// Whether it is being deleted.
    pub is_deleting: bool,
    /// What it waits for before it is gone.
    pub finalizers: Vec<String>,
    /// Hash of what was asked for when it was minted.
    pub intent: Option<String>,
    /// Fingerprint of the certificate, or of the public key where there is none; anything stable for symmetric keys.
    pub fingerprint: String,
    /// Fingerprint of the authority's certificate that signed it.
    pub issuer: Option<String>,
    /// Start of its validity.
    pub not_before: Option<Timestamp>,
    /// End of its validity.
    pub not_after: Option<Timestamp>,
    /// The certificate in PEM, of authorities only: others have to trust it.
    pub certificate: Option<String>,
    /// The serial of the user, of the administrator's kubeconfig only.
    pub serial: Option<String>,
    /// What a kubeconfig of ours says, or why it cannot be read; nothing where it was not read.
    pub kubeconfig: Option<Result<KubeconfigFacts, String>>,
    /// Why one that people brought cannot be used, where it cannot.
    pub problem: Option<String>,
}

impl SecretFacts {
    /// Reads the facts from a Secret's metadata, where minting noted them. Nothing for one that does not carry them:
    /// people brought it, and it has to be read as a whole.
    pub fn of(metadata: &ObjectMeta) -> Option<Self> {
        let annotations = metadata.annotations.as_ref()?;
        let text = |name: &str| annotations.get(name).cloned();
        let moment = |name: &str| annotations.get(name)?.parse().ok();
        Some(Self {
            uid: metadata.uid.clone(),
            is_ours: true,
            is_deleting: metadata.deletion_timestamp.is_some(),
            finalizers: metadata.finalizers.clone().unwrap_or_default(),
            intent: text(names::INTENT_ANNOTATION),
            fingerprint: text(names::FINGERPRINT_ANNOTATION)?,
            issuer: text(names::ISSUER_ANNOTATION),
            not_before: moment(names::NOT_BEFORE_ANNOTATION),
            not_after: moment(names::NOT_AFTER_ANNOTATION),
            certificate: text(names::CERTIFICATE_ANNOTATION),
            serial: text(names::SERIAL_ANNOTATION),
            kubeconfig: None,
            problem: None,
        })
    }

    /// The annotations that minting notes, so that a watch of metadata is enough.
    pub fn annotations(&self) -> BTreeMap<String, String> {
        let moment = |moment: Option<Timestamp>| moment.map(|moment| moment.to_string());
        [
            (names::INTENT_ANNOTATION, self.intent.clone()),
            (names::FINGERPRINT_ANNOTATION, Some(self.fingerprint.clone())),
            (names::ISSUER_ANNOTATION, self.issuer.clone()),
            (names::NOT_BEFORE_ANNOTATION, moment(self.not_before)),
            (names::NOT_AFTER_ANNOTATION, moment(self.not_after)),
            (names::CERTIFICATE_ANNOTATION, self.certificate.clone()),
            (names::SERIAL_ANNOTATION, self.serial.clone()),
        ]
        .into_iter()
        .filter_map(|(name, value)| Some((name.to_owned(), value?)))
        .collect()
    }

    /// When it should be replaced: after two thirds of its validity, which leaves the last third for retries. As
    /// `hangar_pki::Certificate::renew_at`, which this crate cannot import; a test of `operator` compares them.
    pub fn renew_at(&self) -> Option<Timestamp> {
        let (start, end) = (self.not_before?, self.not_after?);
        end.checked_sub(start.duration_until(end) / RENEWED_IN_LAST).ok()
    }

    /// When half of its validity is over.
    pub fn half_at(&self) -> Option<Timestamp> {
        let (start, end) = (self.not_before?, self.not_after?);
        end.checked_sub(start.duration_until(end) / 2).ok()
    }

    /// Whether our finalizer holds it.
    pub(super) fn is_held(&self) -> bool {
        self.finalizers.iter().any(|finalizer| finalizer == names::KEPT_FINALIZER)
    }

    /// Whether it is past its validity.
    pub fn is_expired(&self, now: Timestamp) -> bool {
        self.not_after.is_some_and(|end| end <= now)
    }

    /// What minting certainly leads to, for observations between a step and the next read.
    pub(super) fn minted(now: Timestamp, lifetime: Option<Duration>) -> Self {
        let end = lifetime
            .and_then(|lifetime| SignedDuration::try_from(lifetime).ok())
            .and_then(|lifetime| now.checked_add(lifetime).ok());
        Self { is_ours: true, not_before: end.map(|_| now), not_after: end, ..Self::default() }
    }
}

/// What a plan needs of a Deployment or StatefulSet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WorkloadFacts {
    pub uid: String,
    /// Whether it is being deleted.
    pub is_deleting: bool,
    /// Whether its controller has seen the latest change: `observedGeneration >= generation`.
    pub is_observed: bool,
    /// Pods wanted, of its spec.
    pub desired: i32,
    pub existing: i32,
    /// Pods of the latest template.
    pub updated: i32,
    /// Pods that are ready.
    pub ready: i32,
    /// Pods that have been ready for a while.
    pub available: i32,
    /// Version of its template: the label [`names::VERSION_LABEL`] of the pod template.
    pub version: Option<String>,
    /// The image of the audit proxy in its template, where there is one.
    pub audit_proxy: Option<String>,
    /// The annotation [`names::RENEWED_ANNOTATION`] of its template.
    pub renewed: Option<String>,
    /// The annotation [`names::QUOTA_ANNOTATION`] of its template.
    pub quota: Option<String>,
    /// The size in its claim template, of a StatefulSet: it cannot be changed.
    pub volume: Option<String>,
    /// The name of its latest template, of StatefulSets, as of when its controller last looked.
    pub revision: Option<String>,
}

impl WorkloadFacts {
    /// Whether all pods are of the latest template, ready or not.
    pub fn is_replaced(&self) -> bool {
        self.is_observed && self.existing <= self.updated
    }

    /// Whether all pods are of the latest template and ready.
    pub fn is_rolled_out(&self) -> bool {
        self.is_replaced() && self.updated >= self.desired && self.ready >= self.desired
    }
}

/// What a plan needs of a pod.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PodFacts {
    pub name: String,
    pub uid: String,
    /// Whether it is being deleted.
    pub is_deleting: bool,
    /// Condition `PodReadyToStartContainers`: its sandbox and volumes are there.
    pub is_ready_to_start: bool,
    pub is_ready: bool,
    /// Its first address, once it has one.
    pub address: Option<IpAddr>,
    /// The label [`names::VERSION_LABEL`].
    pub version: Option<String>,
    /// The annotation [`names::SERVED_ANNOTATION`]: the certificates kubelet was told about.
    pub served: Option<String>,
    /// The annotation [`names::RENEWED_ANNOTATION`].
    pub renewed: Option<String>,
    /// The annotation [`names::QUOTA_ANNOTATION`].
    pub quota: Option<String>,
    /// The name of the template that it was made from, of pods of a StatefulSet.
    pub revision: Option<String>,
    /// When its kube-apiserver started, where it has one that runs.
    pub started_at: Option<Timestamp>,
    /// Why its container does not run, in kubelet's words, where something is wrong.
    pub trouble: Option<String>,
}

impl PodFacts {
    /// What is wrong with the first pod that has trouble.
    pub(super) fn first_trouble(pods: &Read<Self>) -> Option<String> {
        pods.iter().find_map(Self::told)
    }

    /// What is wrong with the first pod that is wanted and not ready: it finds no node, or does not start.
    pub(super) fn first_failing(pods: &Read<Self>) -> Option<String> {
        pods.iter().filter(|pod| !pod.is_ready && !pod.is_deleting).find_map(Self::told)
    }

    pub(super) fn told(&self) -> Option<String> {
        Some(format!("{}: {}", self.name, self.trouble.as_ref()?))
    }
}

/// What a member of etcd told.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MemberFacts {
    /// The name of its pod.
    pub name: String,
    /// The alarms of the cluster.
    pub alarms: BTreeSet<Alarm>,
    /// Whether it leads, as far as it told.
    pub is_leader: bool,
    /// How large its database is, where it told.
    pub database: Option<DatabaseSize>,
}

/// An object that the control plane manages and that nothing but its presence is known of.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OwnedObject {
    pub uid: String,
    /// Whether it is being deleted.
    pub is_deleting: bool,
    /// What whoever enforces it says is wrong with it.
    pub problem: Option<String>,
}

/// What a plan needs of the claim of a volume.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClaimFacts {
    pub name: String,
    pub uid: String,
    pub created_at: Option<Timestamp>,
    /// Whether it is being deleted. It stays while a pod uses it.
    pub is_deleting: bool,
    /// Whether it had a volume that is gone.
    pub is_lost: bool,
    /// The size of its volume, with a file system of that size; nothing while it has none.
    pub size: Option<String>,
    /// The size that it asks for.
    pub requested: Option<String>,
    /// Since when its volume is larger than the file system, which grows when a node mounts it.
    pub unmounted_since: Option<Timestamp>,
    /// Why its volume does not grow, in the words of its driver.
    pub trouble: Option<String>,
}

/// What a plan needs of a Service.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServiceFacts {
    pub uid: String,
    /// Whether it is being deleted.
    pub is_deleting: bool,
    /// Its address in the management cluster.
    pub cluster_ip: Option<String>,
    /// Addresses of the load balancer, as `status.loadBalancer.ingress` has them.
    pub ingress_ips: Vec<String>,
    /// Names of the load balancer.
    pub ingress_hostnames: Vec<String>,
    /// Node ports by port name, where it has some.
    pub node_ports: BTreeMap<String, i32>,
}

/// What a plan needs to know of the tenant.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TenantFacts {
    /// Whether Hangar's own rights there are missing or not as they should be. Then nothing else was read.
    pub lacks_rights: bool,
    /// How many Nodes there are.
    pub nodes: u32,
    /// The oldest version of their kubelets; nothing where none tells a version.
    pub oldest_kubelet: Option<KubernetesVersion>,
    /// What is there of each object that [`super::tenant_objects`] asks for or [`super::tenant_leftovers`] names.
    /// What is missing in the map was not read, and is left alone.
    pub objects: BTreeMap<ObjectIdentity, TenantObject>,
}
