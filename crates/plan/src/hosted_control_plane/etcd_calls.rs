//! Calls to etcd's members: how each is reached, what they tell about their cluster, and the changes of who belongs to it.
//!
//! Members are called only while there is something to decide (`is_wanted`): a control plane at rest costs no call. What
//! they tell is read anew for every pass and never remembered, because the next change follows from it.
//!
//! A change is one call to one member, which proposes it to the majority. If its answer is lost, the next list tells
//! whether it was done.

use std::collections::BTreeMap;
use std::fmt;
use std::net::SocketAddr;

use super::certificates;
use super::database::DatabaseSize;
use super::etcd::CLIENT_PORT;
use super::material::Material;
use super::membership::MOST_MEMBERS;
use super::observed::{Observed, PodFacts};
use super::validate::Validated;
use super::{alarms, changes, defragmentation, etcd_rollout, restore, trust};
use crate::flow::{Identified, Read, StepId};

/// The number that etcd gives to a member, for as long as it belongs to the cluster; one that comes back has another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MemberId(pub u64);

impl fmt::Display for MemberId {
    /// As etcd's own tools write it.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:x}", self.0)
    }
}

/// How a member is called: where it is, and what proves both ends to each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemberAccess {
    /// The name of its pod, which is the member's own.
    pub member: String,
    pub address: SocketAddr,
    /// What its certificate must be valid for, whatever address it has.
    pub server_name: String,
    /// The Secret with our client certificate, in the control plane's namespace. Its content is read when it is needed.
    pub secret: String,
    /// The certificates that its own must be signed with, in PEM.
    pub trust: String,
}

/// Who belongs to etcd's cluster, as a majority agrees.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MemberList {
    /// By id.
    pub members: Vec<ListedMember>,
    /// What members that answered tell of themselves, by the names of their pods.
    pub told: BTreeMap<String, MemberState>,
}

/// One entry of the list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedMember {
    pub id: MemberId,
    /// The name of its pod; empty until it has started once.
    pub name: String,
    pub peer_urls: Vec<String>,
    /// It receives data and does not vote.
    pub is_learner: bool,
}

/// A member, as it sees itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemberState {
    pub id: MemberId,
    /// Whom it follows, or itself; nobody where it knows of no leader.
    pub leader: Option<MemberId>,
    pub is_learner: bool,
    /// The number of the last change that it has applied.
    pub revision: u64,
    /// What is wrong with it, in its own words.
    pub errors: Vec<String>,
    /// How many changes it has taken and not applied yet.
    pub unapplied: u64,
    /// How large its database is; the quota is told from etcd 3.6 on.
    pub database: DatabaseSize,
}

/// A change of etcd's cluster, or care for one of its members.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EtcdStep {
    /// The member that is called.
    pub through: MemberAccess,
    /// The member that it is about, by the name of its pod.
    pub member: String,
    pub change: MemberChange,
}

/// What is changed about a member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MemberChange {
    /// It is added without a vote.
    AddLearner { peer_url: String },
    /// A learner gets its vote; refused until it has the data.
    Promote(MemberId),
    /// It is removed for good.
    Remove(MemberId),
    /// It leads from now on. To be asked of the leader.
    Lead(MemberId),
    /// It gives back what is free in its database. To be asked of itself; it answers nothing meanwhile.
    Defragment,
    /// The alarm NOSPACE ends, whoever raised it.
    EndNoSpace,
}

impl Identified for EtcdStep {
    fn id(&self) -> StepId {
        let verb = match self.change {
            MemberChange::AddLearner { .. } => "add-learner",
            MemberChange::Promote(_) => "promote",
            MemberChange::Remove(_) => "remove",
            MemberChange::Lead(_) => "move-leader-to",
            MemberChange::Defragment => "defragment",
            MemberChange::EndNoSpace => "end-alarm-through",
        };
        StepId::new(verb, "etcd-member", &self.member)
    }
}

impl MemberList {
    /// Makes the list what it is after a change. Adding answers with the id of the new member, in hexadecimal digits.
    pub(super) fn fold(&mut self, step: &EtcdStep, answer: &str) {
        match &step.change {
            MemberChange::AddLearner { peer_url } => {
                if let Ok(id) = u64::from_str_radix(answer, 16) {
                    self.members.push(ListedMember {
                        id: MemberId(id),
                        name: String::new(),
                        peer_urls: vec![peer_url.clone()],
                        is_learner: true,
                    });
                    self.members.sort_by_key(|member| member.id);
                }
            }
            MemberChange::Promote(id) => {
                for member in self.members.iter_mut().filter(|member| member.id == *id) {
                    member.is_learner = false;
                }
                for state in self.told.values_mut().filter(|state| state.id == *id) {
                    state.is_learner = false;
                }
            }
            MemberChange::Remove(id) => {
                self.members.retain(|member| member.id != *id);
                self.told.retain(|_, state| state.id != *id);
            }
            MemberChange::Lead(id) => {
                for state in self.told.values_mut() {
                    state.leader = Some(*id);
                }
            }
            MemberChange::Defragment => {
                if let Some(state) = self.told.get_mut(&step.member) {
                    state.database.allocated = state.database.in_use;
                }
            }
            MemberChange::EndNoSpace => {
                for state in self.told.values_mut() {
                    state.errors.retain(|error| !alarms::is_no_space(error));
                }
            }
        }
    }
}

/// The members that can be called now, ready or not, in the order of their ordinals. None until there is a certificate
/// that they accept.
pub fn members_to_call(observed: &Observed) -> Vec<MemberAccess> {
    super::validated(observed).map(|validated| reachable(observed, &validated)).unwrap_or_default()
}

pub(super) fn reachable(observed: &Observed, validated: &Validated<'_>) -> Vec<MemberAccess> {
    let Some(trust) = trust::bundle(observed, validated, Material::EtcdAuthority) else { return Vec::new() };
    let issuer = certificates::issuer(observed, validated, Material::OperatorEtcdClient);
    let Read::One(client) = observed.secret(Material::OperatorEtcdClient) else { return Vec::new() };
    let is_accepted = issuer.is_some_and(|issuer| client.issuer == Some(issuer.fingerprint));
    if !client.is_ours || client.is_deleting || client.is_expired(observed.now) || !is_accepted {
        return Vec::new();
    }
    let names = &validated.names;
    let access = |ordinal| {
        let name = names.etcd_pod(ordinal);
        let is_member = |pod: &&PodFacts| pod.name == name && !pod.is_deleting && !restore::is_pod(pod);
        let pod = observed.etcd_pods.iter().find(is_member)?;
        Some(MemberAccess {
            member: name,
            address: SocketAddr::new(pod.address?, CLIENT_PORT),
            server_name: names.etcd_member_host(ordinal),
            secret: names.secret(Material::OperatorEtcdClient),
            trust: trust.clone(),
        })
    };
    (0..MOST_MEMBERS).filter_map(access).collect()
}

/// Whether members have to be called before a plan can be made.
pub(super) fn is_wanted(observed: &Observed) -> bool {
    super::validated(observed).is_some_and(|validated| {
        let is_due = changes::is_due(observed, &validated)
            || etcd_rollout::is_due(observed, &validated)
            || defragmentation::is_due(observed, &validated);
        is_due && !reachable(observed, &validated).is_empty()
    })
}
