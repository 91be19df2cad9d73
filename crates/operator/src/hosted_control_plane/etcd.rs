//! Calls etcd's members, with the certificate that is in a Secret of the control plane.
//!
//! The key is read for each use and is in memory as long as that lasts. A write is sent only while the lease outlasts
//! it, and once: if its answer is lost, the next pass reads the list of members again. What is called, and when, the plan
//! decides (`hangar_plan`'s `etcd_calls`); a preview calls nobody.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use hangar_etcd::{
    AlarmKind, CallGate, ClusterMember, Credentials, Limits, Member, MemberOptions, MemberStatus, Membership,
};
use hangar_plan::flow::{Outcome, Read, Unknown};
use hangar_plan::hosted_control_plane::etcd_calls::{
    EtcdStep, ListedMember, MemberAccess, MemberChange, MemberId, MemberList, MemberState, members_to_call,
};
use hangar_plan::hosted_control_plane::material::keys;
use hangar_plan::hosted_control_plane::{DatabaseSize, Observed, OwnStep};
use k8s_openapi::api::core::v1::Secret;
use kube::Api;

use super::{ControlPlanes, material};
use crate::context::{Context, Handles};
use crate::gates::{Counted, Fence};
use crate::reconcile::{Case, RunOwn, WRITE_LIMIT, answer};

/// A member that does not answer a read within this is away: others wait for the same worker.
const READ_LIMIT: Duration = Duration::from_secs(3);
/// etcd gives up a change after seven seconds and says so; the answer has to be heard.
const CHANGE_LIMIT: Duration = Duration::from_secs(9);
/// A member that is asked to defragment does so to the end, whoever still waits for its answer: the next pass sees whether
/// it has. A worker does not wait for minutes.
const DEFRAGMENT_LIMIT: Duration = Duration::from_secs(9);
/// A step is a read of a Secret, a connection and a change.
const STEP_LIMIT: Duration = Duration::from_secs(20);
const CONNECT_LIMIT: Duration = Duration::from_secs(3);

/// Who is asked about each call to a member.
fn gates(handles: &Handles) -> Vec<Arc<dyn CallGate>> {
    let mut gates: Vec<Arc<dyn CallGate>> = vec![
        Arc::new(Fence(Arc::clone(&handles.leadership))),
        Arc::new(Counted(handles.metrics.calls.clone())),
    ];
    gates.extend(handles.etcd_gates.iter().cloned());
    gates
}

/// How long reads of members may take.
fn read_limits() -> Limits {
    Limits { connect: CONNECT_LIMIT, call: READ_LIMIT, ..Limits::default() }
}

/// Members that can be called, in the order given. They share one certificate, which is read now.
pub(super) async fn members(
    context: &Context,
    namespace: &str,
    accesses: &[MemberAccess],
    limits: Limits,
) -> Result<Vec<Member>, Outcome> {
    let Some(first) = accesses.first() else { return Ok(Vec::new()) };
    let api: Api<Secret> = Api::namespaced(context.client(), namespace);
    let secret = api.get(&first.secret).await.map_err(answer::kubernetes)?;
    let unusable = |problem: String| {
        Outcome::failed("UnusableCertificate", format!("Secret {}: {problem}", first.secret))
    };
    let certificate = material::text(&secret, keys::CERTIFICATE).map_err(unusable)?;
    let key = material::text(&secret, keys::PRIVATE_KEY).map_err(unusable)?;
    let gates = gates(&context.handles);
    let member = |access: &MemberAccess| {
        let credentials = Credentials::new(access.trust.clone(), certificate.clone(), key.clone());
        let server_name = Some(access.server_name.clone());
        let options = MemberOptions { limits, server_name, gates: gates.clone() };
        let url = format!("https://{}", access.address);
        Member::new(&access.member, &url, &credentials, options).map_err(|error| answer::etcd(&error))
    };
    accesses.iter().map(member).collect()
}

impl ControlPlanes {
    /// Who belongs to the cluster, and how each member that can be called sees itself.
    pub(super) async fn look_at_member_list(
        &self,
        case: &Case<'_, Self>,
        observed: &Observed,
    ) -> Read<MemberList> {
        if self.is_rehearsed {
            return Read::unknown("a preview does not call etcd");
        }
        let accesses = members_to_call(observed);
        let members = match members(case.context, case.namespace(), &accesses, read_limits()).await {
            Ok(members) => members,
            Err(outcome) => return Read::unknown(outcome.to_string()),
        };
        let told = async {
            let states = join_all(members.iter().map(Member::status)).await;
            let told = members.iter().zip(states);
            told.filter_map(|(member, state)| Some((member.name().to_owned(), self::state(state.ok()?))))
                .collect::<BTreeMap<_, _>>()
        };
        // All at once: one that is away costs its time limit once.
        let (told, lists) = tokio::join!(told, join_all(members.iter().map(Member::members)));
        listed(lists).map(|members| MemberList { members, told: told.clone() })
    }
}

/// The list that a majority agreed on. Every member that answers has the same one: a removed member refuses.
fn listed(answers: Vec<Result<Membership, hangar_etcd::Error>>) -> Read<Vec<ListedMember>> {
    let mut why = None;
    for answer in answers {
        match answer {
            Ok(list) => return Read::One(list.members.into_iter().map(entry).collect()),
            Err(error) => {
                why.get_or_insert_with(|| answer::words(&error));
            }
        }
    }
    Read::Unknown(Unknown::new(why.unwrap_or_else(|| "no member of etcd can be called".to_owned())))
}

fn entry(member: ClusterMember) -> ListedMember {
    let ClusterMember { id, name, peer_urls, is_learner, client_urls: _ } = member;
    ListedMember { id: MemberId(id.number()), name, peer_urls, is_learner }
}

fn state(status: MemberStatus) -> MemberState {
    MemberState {
        id: MemberId(status.member.number()),
        leader: status.leader.map(|leader| MemberId(leader.number())),
        is_learner: status.is_learner,
        revision: status.revision.number(),
        errors: status.errors,
        unapplied: status.raft_index.saturating_sub(status.raft_applied_index),
        database: DatabaseSize {
            allocated: status.database_size,
            in_use: status.database_in_use,
            quota: status.database_quota.unwrap_or_default(),
        },
    }
}

impl RunOwn<ControlPlanes> for OwnStep {
    fn limit(&self) -> Duration {
        match self {
            Self::Mint(_) | Self::Backup(_) => WRITE_LIMIT,
            Self::Etcd(_) => STEP_LIMIT,
        }
    }

    async fn run(&self, case: &Case<'_, ControlPlanes>) -> Outcome {
        match self {
            Self::Mint(mint) => mint.run(case).await,
            Self::Etcd(step) => change(case, step).await.unwrap_or_else(|outcome| outcome),
            Self::Backup(step) => case.edge.back_up(case, step),
        }
    }

    async fn rehearse(&self, case: &Case<'_, ControlPlanes>) -> Outcome {
        match self {
            Self::Mint(mint) => mint.rehearse(case).await,
            // What it would follow from is unknown to previews.
            Self::Etcd(_) | Self::Backup(_) => Outcome::failed("NotSent", "a preview does not call etcd"),
        }
    }
}

/// Each member that was full has raised an alarm of its own.
async fn end_no_space(member: &Member) -> Result<(), hangar_etcd::Error> {
    for alarm in member.alarms().await?.into_iter().filter(|alarm| alarm.kind == AlarmKind::NoSpace) {
        member.disarm(alarm).await?;
    }
    Ok(())
}

/// Makes the change that a step asks for.
async fn change(case: &Case<'_, ControlPlanes>, step: &EtcdStep) -> Result<Outcome, Outcome> {
    let (call, defragment) = (CHANGE_LIMIT, DEFRAGMENT_LIMIT);
    let limits = Limits { connect: CONNECT_LIMIT, call, defragment, ..Limits::default() };
    let members =
        members(case.context, case.namespace(), std::slice::from_ref(&step.through), limits).await?;
    let Some(member) = members.first() else { return Ok(Outcome::Stale) };
    let number = |id: MemberId| hangar_etcd::MemberId::new(id.0);
    tracing::info!(control_plane = %case.key(), member = step.member, change = ?step.change, "etcd is changed");
    let answer = match &step.change {
        MemberChange::AddLearner { peer_url } => {
            let added = member.add_learner(std::slice::from_ref(peer_url)).await;
            return Ok(added.map_or_else(
                |error| answer::etcd(&error),
                |added| Outcome::Created(added.member.id.to_string()),
            ));
        }
        MemberChange::Promote(id) => member.promote(number(*id)).await.map(drop),
        MemberChange::Remove(id) => member.remove(number(*id)).await.map(drop),
        MemberChange::Lead(id) => member.move_leader(number(*id)).await,
        MemberChange::Defragment => member.defragment().await,
        MemberChange::EndNoSpace => end_no_space(member).await,
    };
    Ok(answer.map_or_else(|error| answer::etcd(&error), |()| Outcome::Done))
}
