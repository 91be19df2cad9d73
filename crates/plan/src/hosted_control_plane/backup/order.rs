//! Which backup is made now, and from which member.

use std::collections::BTreeMap;

use hangar_api::conditions::{Actor, Waiting};
use hangar_api::controlplane::v1alpha1::EtcdBackup;

use super::{Observed, Work, hashed};
use crate::conditions::who::MANAGEMENT_CLUSTER;
use crate::flow::{Identified, Read, StepId};
use crate::hosted_control_plane::alarms::Alarm;
use crate::hosted_control_plane::etcd_calls::{MemberAccess, members_to_call};
use crate::hosted_control_plane::material::Material;
use crate::hosted_control_plane::membership::Membership;
use crate::hosted_control_plane::observed::PodFacts;

/// A backup to be made.
#[derive(Clone, Debug, PartialEq)]
pub struct Order {
    /// The same until its end is on record, so that nothing is made twice.
    pub identity: String,
    /// The member that it is made from.
    pub through: MemberAccess,
    pub settings: EtcdBackup,
    /// Hash of the settings that decide whether another try may have another end.
    pub settings_hash: String,
    /// What backups are filed under: namespace and name of the Cluster.
    pub owner: (String, String),
    /// What a snapshot alone cannot give back: Secrets by what they hold.
    pub keys: BTreeMap<&'static str, String>,
    /// The request that it is for.
    pub request: Option<String>,
    /// Whether it is the last one before the control plane's deletion.
    pub is_last: bool,
}

/// What is done about backups: none of it waits for the end of one.
#[derive(Clone, Debug, PartialEq)]
pub enum BackupStep {
    /// Begins one beside the passes.
    Make(Box<Order>),
    /// Ends the one that is being made.
    Stop,
}

impl BackupStep {
    /// What there is when it was run.
    pub(in crate::hosted_control_plane) fn begun(&self) -> Work {
        match self {
            Self::Make(_) => Work::Running,
            Self::Stop => Work::None,
        }
    }
}

impl Identified for BackupStep {
    fn id(&self) -> StepId {
        match self {
            Self::Make(_) => StepId::new("begin", "backup", "etcd"),
            Self::Stop => StepId::new("stop", "backup", "etcd"),
        }
    }
}

impl Observed {
    /// Names the backup that is or was to be made. It changes when the end of one is on record, and with the settings.
    pub fn backup_identity(&self) -> Option<String> {
        let backup = super::settings(self)?;
        let status = self.control_plane.status.as_ref().and_then(|status| status.etcd_backup.as_ref());
        let success = status.and_then(|status| status.last_success.as_ref());
        let failure = status.and_then(|status| status.last_failure.as_ref());
        let is_last = self.control_plane.metadata.deletion_timestamp.is_some();
        let parts = [
            self.control_plane.metadata.uid.clone().unwrap_or_default(),
            hashed(backup),
            success.map(|success| success.id.clone()).unwrap_or_default(),
            failure.map(|failure| format!("{} {}", failure.time.0, failure.attempts)).unwrap_or_default(),
            if is_last { "last" } else { "" }.to_owned(),
        ];
        Some(parts.join(" "))
    }
}

pub(super) fn settings_hash(backup: &EtcdBackup) -> String {
    hashed(backup)
}

/// Whose backups they are.
pub(super) fn of(observed: &Observed) -> String {
    let names = observed.names();
    names.map(|names| format!("{}/{}", names.namespace(), names.cluster())).unwrap_or_default()
}

/// The order, or what it waits for.
pub(super) fn order(
    observed: &Observed,
    backup: &EtcdBackup,
    request: Option<String>,
    is_last: bool,
) -> Result<Order, Waiting> {
    let waiting = |what: &str| Waiting::new(Actor::Hangar, what.to_owned());
    let names = observed.names().ok_or_else(|| waiting("the name of its Cluster"))?;
    let identity = observed.backup_identity().ok_or_else(|| waiting("its settings"))?;
    let through = member(observed)?;
    let keys = match &backup.encryption {
        None => BTreeMap::new(),
        Some(_) => Material::IRREPLACEABLE
            .into_iter()
            .map(|material| (material.suffix(), names.secret(material)))
            .collect(),
    };
    Ok(Order {
        identity,
        through,
        settings: backup.clone(),
        settings_hash: hashed(backup),
        owner: (names.namespace().to_owned(), names.cluster().to_owned()),
        keys,
        request,
        is_last,
    })
}

/// A follower that is well, so that the leader is left alone; the leader where there is none.
fn member(observed: &Observed) -> Result<MemberAccess, Waiting> {
    let recorded = Membership::recorded(&observed.control_plane).ok().flatten();
    let Some(recorded) = recorded else {
        return Err(Waiting::new(MANAGEMENT_CLUSTER, "the first start of etcd".to_owned()));
    };
    if let Read::Unknown(unknown) = &observed.etcd_members {
        let waiting = Waiting::new(MANAGEMENT_CLUSTER, "an answer of a member of etcd".to_owned());
        return Err(waiting.because(unknown.to_string()));
    }
    let is_corrupt = observed.etcd_members.iter().any(|member| member.alarms.contains(&Alarm::Corrupt));
    if is_corrupt {
        let on = "a decision about which member has the right data";
        return Err(
            Waiting::new(Actor::Operator, on.to_owned()).because("etcd's members have different data")
        );
    }
    let well: Vec<&PodFacts> = observed
        .etcd_pods
        .iter()
        .filter(|pod| pod.is_ready && !pod.is_deleting && pod.address.is_some())
        .collect();
    let count = i32::try_from(well.len()).unwrap_or(i32::MAX);
    if count < recorded.quorum() {
        let on = format!("a quorum of etcd, {count} of {} members are ready", recorded.members);
        return Err(Waiting::new(MANAGEMENT_CLUSTER, on));
    }
    let is_well = |access: &MemberAccess| well.iter().any(|pod| pod.name == access.member);
    let mut members = members_to_call(observed);
    members.retain(is_well);
    let is_follower = |access: &MemberAccess| {
        let told = observed.etcd_members.iter().find(|member| member.name == access.member);
        told.map_or(1, |member| if member.is_leader { 0 } else { 2 })
    };
    // The last one of the best.
    members.sort_by_key(is_follower);
    members
        .pop()
        .ok_or_else(|| Waiting::new(Actor::Hangar, "a certificate for calls to etcd's members".to_owned()))
}
