//! Validates a specification before it is rendered: everything is checked once, here, and every error names its field.
//!
//! [`Validated`] carries the proof: versions have rows in the tables of `version.rs`, ranges parse and contain the
//! addresses that are taken from them, names fit. Nothing after this can fail.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;

use hangar_api::controlplane::v1alpha1::{
    Certificates, Etcd, ExposureType, GoDuration, HostedControlPlane, HostedControlPlaneSettings,
};
use ipnet::IpNet;

use super::epoch::Epoch;
use super::exposure::{self, RecordedWay};
use super::material::Material;
use super::membership::Membership;
use super::names::Names;
use super::observed::ClusterFacts;
use super::restore::Restoration;
use super::version::{KubernetesVersion, refused_tags};
use super::{audit, authentication, kept, mounts, node_ranges, placement};
use crate::admission::{FieldError, elsewhere_refusal};
use crate::limits::Limits;
use crate::quantity::Quantity;

const YEAR: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// Ranges when a Cluster gives none. Services as kubeadm has them; pods as the existing provider has them.
const DEFAULT_SERVICE_RANGE: &str = "10.96.0.0/12";
const DEFAULT_POD_RANGE: &str = "10.0.0.0/16";
pub(crate) const DEFAULT_DOMAIN: &str = "cluster.local";

/// How many bits of a Service's address are its own: API servers refuse to start with more, up to the minor that keeps
/// each address as an object.
const SERVICE_BITS: u8 = 20;
const ANY_SERVICES: u32 = 34;

/// Where API servers listen, and are reached when nobody says otherwise.
pub const API_SERVER_PORT: u16 = 6443;
/// Where the tunnel's server listens for agents.
pub const KONNECTIVITY_PORT: u16 = 8132;

const DEFAULT_MEMBERS: i32 = 3;
const DEFAULT_VOLUME: &str = "8Gi";

/// How long certificates live.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lifetimes {
    pub cluster_authority: Duration,
    pub other_authorities: Duration,
    pub leaves: Duration,
}

/// What can be rendered.
#[derive(Clone, Debug)]
pub struct Validated<'observed> {
    /// The way of rendering.
    pub epoch: Epoch,
    pub names: Names,
    /// The control plane's own name.
    pub name: String,
    /// The control plane's uid, which owns everything.
    pub uid: String,
    pub version: KubernetesVersion,
    pub replicas: i32,
    pub wanted_members: i32,
    /// What etcd was bootstrapped with, once it was.
    pub bootstrapped: Option<Membership>,
    /// The backup that etcd starts or started from, once it is recorded.
    pub restoration: Option<Restoration>,
    /// The fingerprints of keys that cannot be replaced, once they are recorded.
    pub keys: Option<BTreeMap<Material, String>>,
    /// Size of etcd's volumes, as written.
    pub volume: String,
    /// Size of etcd's volumes in bytes.
    pub volume_bytes: u64,
    /// Ranges of pods: one, or one per family.
    pub pod_ranges: Vec<IpNet>,
    /// Ranges of services: one, or one per family.
    pub service_ranges: Vec<IpNet>,
    pub domain: String,
    /// The address of the `kubernetes` Service in each range of services.
    pub kubernetes_addresses: Vec<IpAddr>,
    /// The address of the name server's Service in each range of services.
    pub dns_addresses: Vec<IpAddr>,
    /// The port of the Service that the API server is reached through.
    pub port: u16,
    /// How the API server is reached.
    pub exposure: ExposureType,
    /// How it was reached when its endpoint was published, once it was.
    pub(crate) way: Option<RecordedWay>,
    /// How long certificates live.
    pub lifetimes: Lifetimes,
    pub settings: &'observed HostedControlPlaneSettings,
    /// What the operator allows, and says of the management cluster.
    pub limits: &'observed Limits,
}

/// Checks a control plane together with its Cluster: all complaints at once, so that people fix them in one go.
pub fn validate<'observed>(
    control_plane: &'observed HostedControlPlane,
    cluster: &ClusterFacts,
    epoch: Epoch,
    limits: &'observed Limits,
) -> Result<Validated<'observed>, Vec<FieldError>> {
    let mut errors = Vec::new();
    let mut keep = |error| errors.push(error);
    let metadata = &control_plane.metadata;
    let settings = &control_plane.spec.settings;
    let names = Names::of(control_plane, &cluster.name).map_err(&mut keep).ok();
    let version = version(&control_plane.spec.version).map_err(&mut keep).ok();
    let pods = ranges("pods", &cluster.pod_ranges, DEFAULT_POD_RANGE).map_err(&mut keep).ok();
    let services = ranges("services", &cluster.service_ranges, DEFAULT_SERVICE_RANGE).map_err(&mut keep).ok();
    let addresses = services.as_deref().and_then(|ranges| service_addresses(ranges).map_err(&mut keep).ok());
    if let (Some(services), Some(version)) = (&services, &version) {
        too_large(services, version).into_iter().for_each(&mut keep);
    }
    if let (Some(pods), Some(services)) = (&pods, &services) {
        node_ranges::errors(settings, pods).into_iter().chain(together(pods, services)).for_each(&mut keep);
    }
    placement::errors(settings).into_iter().for_each(&mut keep);
    let etcd = settings.etcd.clone().unwrap_or_default();
    let volume = volume(&etcd).map_err(&mut keep).ok();
    let members = members(&etcd).map_err(&mut keep).ok();
    let bootstrapped = Membership::recorded(control_plane).map_err(&mut keep).ok().flatten();
    let restoration = Restoration::recorded(control_plane).map_err(&mut keep).ok().flatten();
    let keys = kept::recorded(control_plane).map_err(&mut keep).ok().flatten();
    elsewhere(settings, metadata.namespace.as_deref().unwrap_or_default()).into_iter().for_each(&mut keep);
    let domain = cluster.service_domain.clone().unwrap_or_else(|| DEFAULT_DOMAIN.to_owned());
    refused(settings, Some(&domain), names.as_ref()).into_iter().for_each(&mut keep);
    let way = RecordedWay::recorded(control_plane).map_err(&mut keep).ok().flatten();
    let exposure = exposure::chosen(way.as_ref(), settings);
    let port = port(settings, cluster, exposure).map_err(&mut keep).ok();
    match (names, version, pods, services, addresses, volume, members, port) {
        (
            Some(names),
            Some(version),
            Some(pod_ranges),
            Some(service_ranges),
            Some((kubernetes_addresses, dns_addresses)),
            Some((volume, volume_bytes)),
            Some(wanted_members),
            Some(port),
        ) if errors.is_empty() => Ok(Validated {
            epoch,
            names,
            name: metadata.name.clone().unwrap_or_default(),
            uid: metadata.uid.clone().unwrap_or_default(),
            version,
            replicas: control_plane.spec.replicas.max(1),
            wanted_members,
            bootstrapped,
            restoration,
            keys,
            volume,
            volume_bytes,
            pod_ranges,
            service_ranges,
            domain,
            kubernetes_addresses,
            dns_addresses,
            port,
            exposure,
            way,
            lifetimes: lifetimes(settings.certificates.as_ref()),
            settings,
            limits,
        }),
        _ => Err(errors),
    }
}

/// What is wrong with whose tokens are accepted, with audit, mounts and the tags of images: also asked at admission, as far
/// as domain and names are known there.
pub(crate) fn refused(
    settings: &HostedControlPlaneSettings,
    domain: Option<&str>,
    names: Option<&Names>,
) -> Vec<FieldError> {
    let mut errors = authentication::errors(settings, domain);
    errors.extend(audit::errors(settings, names));
    errors.extend(mounts::errors(settings, names));
    errors.extend(refused_tags(settings));
    errors
}

/// Secrets of other namespaces are not read.
fn elsewhere(settings: &HostedControlPlaneSettings, own: &str) -> Vec<FieldError> {
    let backup = settings.etcd.as_ref().and_then(|etcd| etcd.backup.as_ref());
    let backup = backup.and_then(|backup| backup.secret.namespace.as_deref());
    let api_server = settings.deployment.as_ref().and_then(|deployment| deployment.api_server.as_ref());
    let webhook = api_server.and_then(|api_server| api_server.audit.as_ref()?.webhook.as_ref());
    let targets = webhook.map(|webhook| webhook.targets.as_slice()).unwrap_or_default();
    let audit = targets.iter().enumerate().map(|(index, target)| {
        let namespace = target.authentication.as_ref().and_then(|token| token.secret_namespace.as_deref());
        let field = "spec.deployment.apiServer.audit.webhook.targets";
        (format!("{field}[{index}].authentication.secretNamespace"), namespace)
    });
    let restore = settings.etcd.as_ref().and_then(|etcd| etcd.restore.as_ref()?.secret.as_ref());
    let restore = restore.and_then(|secret| secret.namespace.as_deref());
    let etcd = [("backup", backup), ("restore", restore)];
    let etcd = etcd.map(|(field, namespace)| (format!("spec.etcd.{field}.secret.namespace"), namespace));
    let all = etcd.into_iter().chain(audit);
    all.filter(|(_, namespace)| namespace.is_some_and(|namespace| !namespace.is_empty() && namespace != own))
        .map(|(field, _)| elsewhere_refusal(field, own))
        .collect()
}

fn version(text: &str) -> Result<KubernetesVersion, FieldError> {
    let version = KubernetesVersion::parse(text).ok_or_else(|| {
        let why = "it must be complete, such as v1.34.10: it is the tag of images";
        FieldError::invalid("spec.version", text, why)
    })?;
    KubernetesVersion::refusal("spec.version", &version).map_or(Ok(version), Err)
}

fn ranges(which: &str, written: &[String], default: &str) -> Result<Vec<IpNet>, FieldError> {
    let path = |index: usize| format!("Cluster.spec.clusterNetwork.{which}.cidrBlocks[{index}]");
    let written = if written.is_empty() { vec![default.to_owned()] } else { written.to_vec() };
    let mut ranges: Vec<IpNet> = Vec::new();
    for (index, text) in written.iter().enumerate() {
        let range: IpNet = text.trim().parse().map_err(|_| {
            FieldError::invalid(
                path(index),
                text.as_str(),
                "it must be a network such as 192.168.0.0/16 or fd00::/48",
            )
        })?;
        if ranges.iter().any(|other| other.addr().is_ipv4() == range.addr().is_ipv4()) {
            let why = "one range, or one of each address family";
            return Err(FieldError::invalid(path(index), text.as_str(), why));
        }
        ranges.push(range.trunc());
    }
    Ok(ranges)
}

/// What is wrong with ranges that are fine alone.
fn together(pods: &[IpNet], services: &[IpNet]) -> Vec<FieldError> {
    let overlapping = pods.iter().enumerate().filter_map(|(index, pod)| {
        let service = services.iter().find(|service| pod.contains(*service) || service.contains(pod))?;
        let path = format!("Cluster.spec.clusterNetwork.pods.cidrBlocks[{index}]");
        let why = format!("it overlaps with {service} of services");
        Some(FieldError::invalid(path, pod.to_string(), why))
    });
    let is_of_pods =
        |service: &IpNet| pods.iter().any(|pod| pod.addr().is_ipv4() == service.addr().is_ipv4());
    let lonely = services.iter().enumerate().filter(|(_, service)| !is_of_pods(service));
    let lonely = lonely.map(|(index, service)| {
        let path = format!("Cluster.spec.clusterNetwork.services.cidrBlocks[{index}]");
        let why = "pods have no range of this address family";
        FieldError::invalid(path, service.to_string(), why)
    });
    overlapping.chain(lonely).collect()
}

fn too_large(services: &[IpNet], version: &KubernetesVersion) -> Vec<FieldError> {
    let is_large = |range: &IpNet| range.max_prefix_len() - range.prefix_len() > SERVICE_BITS;
    let large =
        services.iter().enumerate().filter(|(_, range)| version.minor() < ANY_SERVICES && is_large(range));
    let refused = large.map(|(index, range)| {
        let path = format!("Cluster.spec.clusterNetwork.services.cidrBlocks[{index}]");
        let why = format!("it is too large: at most a /12, or a /108 of IPv6, below 1.{ANY_SERVICES}");
        FieldError::invalid(path, range.to_string(), why)
    });
    refused.collect()
}

/// The first address of each range is the API server's, the tenth the name server's: everybody expects that.
fn service_addresses(ranges: &[IpNet]) -> Result<(Vec<IpAddr>, Vec<IpAddr>), FieldError> {
    let addresses = ranges.iter().enumerate().map(|(index, range)| {
        let path = format!("Cluster.spec.clusterNetwork.services.cidrBlocks[{index}]");
        let complaint = |why: &str| Err(FieldError::invalid(path, range.to_string(), why));
        match service_address(range, 1).zip(service_address(range, 10)) {
            Some(addresses) => Ok(addresses),
            None => complaint("it is too small: the name server has its tenth address"),
        }
    });
    addresses.collect()
}

fn service_address(range: &IpNet, offset: u8) -> Option<IpAddr> {
    let address = match range.network() {
        IpAddr::V4(address) => IpAddr::V4(u32::from(address).checked_add(u32::from(offset))?.into()),
        IpAddr::V6(address) => IpAddr::V6(u128::from(address).checked_add(u128::from(offset))?.into()),
    };
    range.contains(&address).then_some(address)
}

fn volume(etcd: &Etcd) -> Result<(String, u64), FieldError> {
    let text = etcd.volume_size.as_ref().map_or(DEFAULT_VOLUME, |size| size.0.as_str());
    Quantity::parse(text)
        .and_then(Quantity::bytes)
        .filter(|bytes| *bytes > 0)
        .map(|bytes| (text.to_owned(), bytes))
        .ok_or_else(|| FieldError::invalid("spec.etcd.volumeSize", text, "it must be a size such as 8Gi"))
}

fn members(etcd: &Etcd) -> Result<i32, FieldError> {
    let members = etcd.replicas.unwrap_or(DEFAULT_MEMBERS);
    if matches!(members, 1 | 3 | 5) {
        Ok(members)
    } else {
        Err(FieldError::invalid(
            "spec.etcd.replicas",
            members,
            "1, 3 or 5 members: other numbers bear no more failures",
        ))
    }
}

/// The port people were promised is the Service's, where it is the Service that people reach.
pub(super) fn port(
    settings: &HostedControlPlaneSettings,
    cluster: &ClusterFacts,
    exposure: ExposureType,
) -> Result<u16, FieldError> {
    let promised =
        settings.control_plane_endpoint.as_ref().map(|endpoint| endpoint.port).filter(|port| *port != 0);
    let (path, port) = match promised.filter(|_| exposure::is_service_reached(exposure)) {
        Some(port) => ("spec.controlPlaneEndpoint.port", port),
        None => (
            "Cluster.spec.clusterNetwork.apiServerPort",
            cluster.api_server_port.unwrap_or(i32::from(API_SERVER_PORT)),
        ),
    };
    let complaint = |why: &str| FieldError::invalid(path, port, why);
    let valid = u16::try_from(port).ok().filter(|port| *port != 0);
    let valid = valid.ok_or_else(|| complaint("it must be a port between 1 and 65535"))?;
    if valid == KONNECTIVITY_PORT {
        return Err(complaint("agents of the tunnel connect there"));
    }
    Ok(valid)
}

fn lifetimes(certificates: Option<&Certificates>) -> Lifetimes {
    let given =
        |duration: Option<GoDuration>, default: Duration| duration.map_or(default, |given| given.0.into());
    let certificates = certificates.cloned().unwrap_or_default();
    Lifetimes {
        cluster_authority: given(certificates.root_ca_certificate_duration, YEAR * 10),
        other_authorities: given(certificates.ca_certificate_duration, YEAR * 10),
        leaves: given(certificates.leaf_certificate_duration, YEAR),
    }
}
