//! Starts etcd from a backup: once, all members from the same one, and never with a part of it.
//!
//! ```text
//! asked -> which backup is it? (a read) -> recorded -> etcd's pods are those of the restore -> all have their data
//!       -> recorded in etcd's own record -> etcd's pods are members again, on that data
//! ```
//!
//! A restore is a template of etcd's StatefulSet of its own: its pods fetch the backup and make a data directory of it,
//! and do not run etcd. The StatefulSet is deleted, with its pods, between the two kinds, so that there are never pods of
//! both. Where in this a control plane is follows from the records and from which StatefulSet there is.
//!
//! - **Nothing of the present data is touched.** Each generation of etcd has a directory of its own, in which no other one
//!   writes. What is replaced stays on the volume, and until all members have their data the restore can be given up.
//! - **The switch is one write**: etcd's record, which names generation and directory. No member starts on the new data
//!   before it, and none on the old data after it.
//! - **Nothing starts empty where a restore is asked for.** Without data, etcd waits for the backup.
//! - **It runs once.** Each restore makes a new generation, and the consent names the generation that it gives up.
//!
//! The data can be that of a member that has survived, too, where a majority has lost theirs: see [`survivor`].

mod pods;
mod record;
mod survivor;

use hangar_api::conditions::{Finding, Waiting};
use hangar_api::controlplane::v1alpha1::{
    EtcdBackupEncryption, EtcdBackupSecret, EtcdRestore, HostedControlPlane, HostedControlPlaneSettings,
};
use hangar_api::naming;
use jiff::Timestamp;

pub(super) use pods::{server, stateful_set};
pub use record::Restoration;
use record::{LATEST, is_id};
pub(super) use survivor::choices;

use super::conditions::etcd_restored;
use super::membership::Membership;
use super::names::IDENTITY_ANNOTATION;
use super::observed::{ObjectIdentity, Observed, PodFacts, WorkloadFacts};
use super::validate::Validated;
use super::version::etcd_series;
use super::{Draft, NOT_ASKED, etcd, step, volumes};
use crate::admission::FieldError;
use crate::conditions::shared::unread;
use crate::conditions::who::MANAGEMENT_CLUSTER;
use crate::flow::Read;

/// What the version of a template of the restore begins with.
const VERSION: &str = "restore-";

/// A backup, as its manifest tells, for what is asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BackupFacts {
    /// Its id.
    pub id: String,
    /// Whose it is: namespace and name.
    pub from: String,
    /// The version of etcd that it was made with.
    pub etcd_version: String,
    pub is_encrypted: bool,
    /// Whether authorities and keys are part of it.
    pub has_keys: bool,
    /// The URL of the store.
    pub store: String,
    /// Why it cannot be used, or the Secrets that lead to it, where that is so.
    pub problem: Option<String>,
}

/// What the edge looks for.
#[derive(Clone, Debug, PartialEq)]
pub struct Search {
    /// The namespace of the Secrets.
    pub namespace: String,
    /// Whose backup: namespace and name of its Cluster.
    pub from: (String, String),
    /// Its id; the newest one where there is none.
    pub id: Option<String>,
    /// Begun at this time or before it.
    pub before: Option<Timestamp>,
    pub secret: EtcdBackupSecret,
    pub encryption: Option<EtcdBackupEncryption>,
}

impl Observed {
    /// The backup that is asked for; nothing while none is, or where nobody says in which bucket it is.
    pub fn search(&self) -> Option<Search> {
        let validated = super::validated(self)?;
        let asked = given(&validated)?;
        let backup = asked.backup.clone()?;
        let (namespace, name) =
            owner(&validated).split_once('/').map(|(one, other)| (one.to_owned(), other.to_owned()))?;
        Some(Search {
            namespace: validated.names.namespace().to_owned(),
            from: (namespace, name),
            id: Some(backup).filter(|id| id != LATEST),
            before: asked.before.as_ref().map(|time| time.0),
            secret: secret(&validated)?.clone(),
            encryption: encryption(&validated).cloned(),
        })
    }

    /// Whether what is in the tenant is about to be replaced, so that nothing in it should be believed.
    pub fn is_restoring(&self) -> bool {
        super::validated(self).is_some_and(|validated| running(&validated).is_some())
            || self.etcd.iter().any(is_of_restore)
    }
}

/// Where a control plane is with what it asks for.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Stage<'a> {
    /// Nothing is asked for.
    Nothing,
    /// What is asked for was done.
    Done(&'a Restoration),
    /// There is data, of this name, and no consent to replace it.
    Refused(String),
    /// It is not decided yet.
    Asked,
    Running(&'a Restoration),
    /// It was begun for a control plane without data, and something else, or nothing, is asked for now.
    Withdrawn(&'a Restoration),
}

/// What is asked for.
pub(super) fn given<'a>(validated: &Validated<'a>) -> Option<&'a EtcdRestore> {
    validated.settings.etcd.as_ref()?.restore.as_ref()
}

/// The Secret of the store that is asked for, or that of the backups of this control plane.
fn secret<'a>(validated: &Validated<'a>) -> Option<&'a EtcdBackupSecret> {
    access(validated.settings).map(|(secret, _)| secret)
}

/// The key that is asked for, or that of the backups of this control plane.
fn encryption<'a>(validated: &Validated<'a>) -> Option<&'a EtcdBackupEncryption> {
    access(validated.settings)?.1
}

/// Where the backup is, and what opens it: as asked for, or as for the backups of this control plane.
pub fn access(
    settings: &HostedControlPlaneSettings,
) -> Option<(&EtcdBackupSecret, Option<&EtcdBackupEncryption>)> {
    let etcd = settings.etcd.as_ref()?;
    let (asked, own) = (etcd.restore.as_ref()?, etcd.backup.as_ref());
    let secret = asked.secret.as_ref().or(own.map(|backup| &backup.secret))?;
    let encryption = asked.encryption.as_ref().or(own.and_then(|backup| backup.encryption.as_ref()));
    Some((secret, encryption))
}

pub(super) fn stage<'a>(observed: &Observed, validated: &'a Validated<'_>) -> Stage<'a> {
    let record = validated.restoration.as_ref();
    if let Some(running) = running(validated) {
        return Stage::Running(running);
    }
    let begun = record.filter(|record| record.generation > present(validated));
    let data = data(observed, validated);
    let Some(asked) = given(validated) else {
        return match (begun, data) {
            (Some(begun), None) => Stage::Withdrawn(begun),
            _ => Stage::Nothing,
        };
    };
    match data {
        None => begun.map_or(Stage::Asked, Stage::Withdrawn),
        Some(data) if asked.replace.as_ref() == Some(&data) => Stage::Asked,
        Some(data) => {
            match record.filter(|record| begun.is_none() && record.request == record::request(asked)) {
                Some(done) => Stage::Done(done),
                None => Stage::Refused(data),
            }
        }
    }
}

/// What is being restored: it is recorded, not done, and still asked for.
pub(super) fn running<'a>(validated: &'a Validated<'_>) -> Option<&'a Restoration> {
    let record = validated.restoration.as_ref()?;
    let asked = given(validated)?;
    let is_wanted = record.request == record::request(asked)
        && (record.replaces.is_none() || record.replaces == asked.replace);
    (record.generation > present(validated) && is_wanted).then_some(record)
}

/// The generation of etcd that has data; none is zero.
fn present(validated: &Validated<'_>) -> u32 {
    validated.bootstrapped.as_ref().map_or(0, |recorded| recorded.generation)
}

/// The name of the data that there is. A first etcd may have data before that is on record.
fn data(observed: &Observed, validated: &Validated<'_>) -> Option<String> {
    let is_first = matches!(&observed.etcd, Read::One(facts) if !is_of_restore(facts));
    let generation = match &validated.bootstrapped {
        Some(recorded) => recorded.generation,
        None if is_first => Membership::first(1).generation,
        None => return None,
    };
    Some(format!("{}/{generation}", validated.names.identity()))
}

/// The name of the data that a restore would replace, as far as the object itself tells; nothing where there is none.
pub fn data_of(control_plane: &HostedControlPlane) -> Result<Option<String>, FieldError> {
    let annotations = control_plane.metadata.annotations.as_ref();
    let identity = annotations.and_then(|annotations| annotations.get(IDENTITY_ANNOTATION));
    let recorded = Membership::recorded(control_plane)?;
    Ok(recorded.zip(identity).map(|(recorded, identity)| format!("{identity}/{}", recorded.generation)))
}

/// Whether the edge has to look for the backup.
pub(super) fn is_unread(observed: &Observed, validated: &Validated<'_>) -> bool {
    observed.restorable == Read::unknown(NOT_ASKED)
        && is_of_store(validated)
        && stage(observed, validated) == Stage::Asked
}

/// Whether what is asked for is in a store, and somebody says in which.
fn is_of_store(validated: &Validated<'_>) -> bool {
    given(validated).is_some_and(|asked| asked.backup.is_some()) && secret(validated).is_some()
}

/// Whether etcd must not start: it has no data, and is to get that of a backup.
pub(super) fn holds_start(observed: &Observed, validated: &Validated<'_>) -> bool {
    let waits = matches!(stage(observed, validated), Stage::Asked | Stage::Running(_) | Stage::Withdrawn(_));
    waits && data(observed, validated).is_none()
}

/// Whether keys have to wait until it is known whether they are in the backup.
pub(super) fn holds_keys(observed: &Observed, validated: &Validated<'_>) -> bool {
    holds_start(observed, validated) && running(validated).is_none()
}

/// Whether it is the StatefulSet of a restore.
pub(super) fn is_of_restore(facts: &WorkloadFacts) -> bool {
    facts.version.as_deref().is_some_and(|version| version.starts_with(VERSION))
}

/// Whether it is a pod of a restore: it has nothing to do with etcd.
pub(super) fn is_pod(pod: &PodFacts) -> bool {
    pod.version.as_deref().is_some_and(|version| version.starts_with(VERSION))
}

/// The version of the template, which tells the pods of one restore from all others.
pub(super) fn version(restoration: &Restoration) -> String {
    naming::label_value(&format!("{VERSION}{}-{}", restoration.generation, restoration.word()))
}

/// Says where it is, and decides.
pub(super) fn draft(draft: &mut Draft<'_>, validated: &Validated<'_>) {
    let observed = draft.observed;
    let finding = match stage(observed, validated) {
        Stage::Nothing => return draft.forget(etcd_restored::TYPE),
        Stage::Done(done) if done.has_keys || done.replaces.is_some() => {
            etcd_restored::RESTORED.remark(format!("etcd has {}", done.data()))
        }
        Stage::Done(done) => etcd_restored::KEYS_LACKING
            .waits("the keys of before, or spec.etcd.restore to be removed")
            .because(format!(
                "backup {} of {} has no keys: tokens and kubeconfigs of before are not valid, and Secrets that were \
                 stored encrypted cannot be read",
                done.backup, done.from
            )),
        Stage::Refused(data) => etcd_restored::NOT_CONFIRMED
            .waits(format!(
                "spec.etcd.restore to be removed, or spec.etcd.restore.replace: {data} as consent to replace this data"
            ))
            .because(match given(validated).and_then(|asked| asked.member.as_ref()) {
                Some(member) => format!("what {member} does not know would be given up"),
                None => "the control plane has data".to_owned(),
            }),
        Stage::Withdrawn(begun) => etcd_restored::WITHDRAWN
            .waits("spec.etcd.restore as it was, or the deletion of this control plane")
            .because(format!(
                "{} was to be restored, and etcd is not started without data instead",
                begun.data()
            )),
        Stage::Asked => asked(draft, validated),
        Stage::Running(restoration) => progress(observed, validated, restoration),
    };
    draft.say(finding);
}

/// Decides for a backup or a member, once it is known that it can be used.
fn asked(draft: &mut Draft<'_>, validated: &Validated<'_>) -> Finding {
    let record = match decision(draft.observed, validated) {
        Err(finding) => return *finding,
        Ok(record) => record,
    };
    draft.report.decide(
        format!("restore {}", record.data()),
        "it is asked for, and every member takes the one that is recorded",
    );
    draft.step(record.record());
    recording(&record.data())
}

fn recording(data: &str) -> Finding {
    etcd_restored::RESTORING.waits(format!("{data} to be recorded"))
}

/// That etcd's state is not known, if so.
fn unread_etcd(observed: &Observed) -> Option<Finding> {
    let is_unknown = |what, unknown| unread(etcd_restored::TYPE, what, unknown);
    match (&observed.etcd, &observed.etcd_claims) {
        (Read::Unknown(unknown), _) => Some(is_unknown("etcd's StatefulSet", unknown)),
        (_, Read::Unknown(unknown)) => Some(is_unknown("etcd's claims", unknown)),
        _ => None,
    }
}

/// What is recorded for what is asked for, or what that waits for.
fn decision(observed: &Observed, validated: &Validated<'_>) -> Result<Restoration, Box<Finding>> {
    if let Some(member) = given(validated).and_then(|asked| asked.member.as_deref()) {
        return survivor::decision(observed, validated, member);
    }
    if secret(validated).is_none() {
        let finding = etcd_restored::UNUSABLE.waits("spec.etcd.restore.secret, or spec.etcd.backup");
        return Err(Box::new(finding.because("nobody says in which bucket the backup is")));
    }
    let backup = match &observed.restorable {
        Read::Unknown(unknown) => return Err(Box::new(unread(etcd_restored::TYPE, "the backup", unknown))),
        Read::One(backup) => backup,
        Read::Absent | Read::Many(_) => {
            let on = "a backup of that id or time, in that bucket, or another one to be named";
            let why = format!("there is no such backup of {}", owner(validated));
            return Err(Box::new(etcd_restored::NO_BACKUP.waits(on).because(why)));
        }
    };
    if let Some(why) = problem(observed, validated, backup) {
        return Err(Box::new(etcd_restored::UNUSABLE.waits("a backup that can be restored").because(why)));
    }
    let is_known = !observed.etcd.is_unknown() && !observed.etcd_claims.is_unknown();
    let replaces = data(observed, validated);
    // Volumes of another control plane that had this name: `EtcdClusterHealthy` tells of them.
    if !is_known || (replaces.is_none() && !observed.etcd_claims.is_absent()) {
        return Err(Box::new(recording(&format!("backup {}", backup.id))));
    }
    Ok(restoration(validated, backup, replaces))
}

/// Whether members stay who they are: while they are replaced all together, and in a pass that decides for it or would, if
/// the store had answered. What was begun with them goes on when the restore is over, or was given up.
pub(super) fn holds_changes(observed: &Observed, validated: &Validated<'_>) -> bool {
    let may_decide = || {
        (is_of_store(validated) && observed.restorable.is_unknown()) || decision(observed, validated).is_ok()
    };
    running(validated).is_some()
        || observed.etcd.iter().any(is_of_restore)
        || (stage(observed, validated) == Stage::Asked && may_decide())
}

/// The generation of the next restore, which none before it had.
fn next_generation(validated: &Validated<'_>) -> u32 {
    let before = validated.restoration.as_ref().map_or(0, |record| record.generation);
    // The first is what a control plane begins with: its directory is never that of a restore.
    present(validated).max(before).max(1) + 1
}

fn restoration(validated: &Validated<'_>, backup: &BackupFacts, replaces: Option<String>) -> Restoration {
    Restoration {
        generation: next_generation(validated),
        identity: validated.names.identity().to_owned(),
        members: etcd::membership(validated).members,
        request: given(validated).map(record::request).unwrap_or_default(),
        from: backup.from.clone(),
        backup: backup.id.clone(),
        store: backup.store.clone(),
        is_encrypted: backup.is_encrypted,
        has_keys: backup.has_keys,
        survivor: None,
        replaces,
    }
}

/// Whose backup is asked for: as keys in the bucket begin.
pub(super) fn owner(validated: &Validated<'_>) -> String {
    match given(validated).and_then(|asked| asked.from.as_ref()) {
        Some(from) => format!("{}/{}", from.namespace, from.name),
        None => format!("{}/{}", validated.names.namespace(), validated.names.cluster()),
    }
}

/// Why a backup cannot be restored here, where that is so.
fn problem(observed: &Observed, validated: &Validated<'_>, backup: &BackupFacts) -> Option<String> {
    if let Some(problem) = &backup.problem {
        return Some(problem.clone());
    }
    let asked = given(validated)?;
    let has_key = encryption(validated).is_some();
    let id = asked.backup.as_deref();
    let is_asked = backup.from == owner(validated) && (id == Some(LATEST) || id == Some(&backup.id));
    if !is_asked || !is_id(&backup.id) {
        return Some(format!("backup {} of {} is not the one that was asked for", backup.id, backup.from));
    }
    if backup.is_encrypted && !has_key {
        return Some("it is encrypted, and spec.etcd.restore.encryption names no key".to_owned());
    }
    if !backup.is_encrypted && has_key {
        return Some("it is not encrypted, and a key is named: whoever expects an encrypted one must not be given another".to_owned());
    }
    if pods::server(&backup.store).is_none() {
        return Some("the store has no URL".to_owned());
    }
    if observed.manager_image.is_none() {
        return Some(
            "the manager was not told its own image (HANGAR_IMAGE), which fetches the backup".to_owned(),
        );
    }
    let wanted = etcd::wanted_tag(validated);
    match (etcd_series(&backup.etcd_version), etcd_series(&wanted)) {
        (Some(made), Some(read)) if made > read => {
            Some(format!("it was made with etcd {}, and {wanted} reads nothing newer", backup.etcd_version))
        }
        (None, _) => Some("its manifest names no version of etcd".to_owned()),
        _ => None,
    }
}

/// How far the pods are.
fn progress(observed: &Observed, validated: &Validated<'_>, restoration: &Restoration) -> Finding {
    let (data, pods) = (restoration.data(), restoration.pods());
    let facts = match &observed.etcd {
        Read::Unknown(unknown) => return unread(etcd_restored::TYPE, "etcd's StatefulSet", unknown),
        read => read.iter().next(),
    };
    let survivor = restoration.survivor;
    if let Some(why) = survivor.and_then(|ordinal| survivor::obstacle(observed, validated, ordinal)) {
        return survivor::refusal(observed, validated).because(why);
    }
    let wanted = version(restoration);
    let is_its = |facts: &&WorkloadFacts| facts.version.as_ref() == Some(&wanted) && !facts.is_deleting;
    let Some(facts) = facts.filter(is_its) else {
        return etcd_restored::RESTORING
            .by(MANAGEMENT_CLUSTER, format!("etcd's pods to be replaced, to restore {data}"));
    };
    let on = format!("{data} on {pods} volumes, {} are done", facts.ready);
    let pods = observed.etcd_pods.iter().filter(|pod| is_pod(pod) && !pod.is_deleting);
    let trouble = pods.filter(|pod| !pod.is_ready).find_map(PodFacts::told);
    match trouble {
        Some(trouble) => etcd_restored::FAILING.waits(on).because(trouble),
        None => etcd_restored::RESTORING.waiting(Waiting::new(MANAGEMENT_CLUSTER, on)),
    }
}

/// What a restore does with etcd's StatefulSet, while it runs: whether it is to be applied.
pub(super) fn run(
    draft: &mut Draft<'_>,
    validated: &Validated<'_>,
    restoration: &Restoration,
    facts: Option<&WorkloadFacts>,
) -> bool {
    let wanted = version(restoration);
    let observed = draft.observed;
    let survivor = restoration.survivor;
    if survivor.is_some_and(|ordinal| survivor::obstacle(observed, validated, ordinal).is_some()) {
        return false;
    }
    match facts {
        None => true,
        Some(facts) if facts.version.as_ref() != Some(&wanted) => {
            remove(draft, validated, facts, "its pods make way for those of the restore");
            false
        }
        Some(facts) => {
            let is_done = facts.is_observed && !facts.is_deleting && facts.ready >= restoration.pods();
            let claims = match survivor {
                Some(ordinal) => survivor::claims(observed, validated, ordinal),
                None => volumes::uids(observed, &validated.names, restoration.members),
            };
            if let Some(claims) = claims.filter(|_| is_done) {
                let why = "all members that it is for have the data";
                draft.report.decide(format!("switch etcd to generation {}", restoration.generation), why);
                let leaving = leaving(observed, validated, restoration);
                draft.step(restoration.membership(claims, leaving).record());
            }
            !facts.is_deleting
        }
    }
}

/// The claims that no member has afterwards: those of members that were removed, and that of one that was joining in
/// addition.
fn leaving(observed: &Observed, validated: &Validated<'_>, restoration: &Restoration) -> Vec<String> {
    let Some(before) = &validated.bootstrapped else { return Vec::new() };
    let joining = before.joining.as_ref().filter(|joining| joining.ordinal >= restoration.members);
    let claim =
        joining.and_then(|joining| volumes::claim(observed, &validated.names.etcd_claim(joining.ordinal)));
    let claim = claim.filter(|claim| volumes::is_own(observed, claim)).map(|claim| claim.uid.clone());
    before.leaving.iter().cloned().chain(claim).collect()
}

/// Deletes the StatefulSet with its pods. Claims stay.
pub(super) fn remove(draft: &mut Draft<'_>, validated: &Validated<'_>, facts: &WorkloadFacts, why: &str) {
    if facts.is_deleting {
        return;
    }
    let object = ObjectIdentity {
        api_version: "apps/v1".to_owned(),
        kind: "StatefulSet".to_owned(),
        namespace: validated.names.namespace().to_owned(),
        name: validated.names.etcd(),
    };
    draft.report.decide(format!("delete StatefulSet {}", object.name), why);
    draft.step(step::delete(&object, &facts.uid));
}

/// Evicts pods whose second program failed: it leaves a directory that it does not go on with, and only a pod that begins
/// anew has an empty one. The kubelet has waited longer before each of its tries by then.
pub(super) fn begin_again(draft: &mut Draft<'_>) {
    let is_stuck = |pod: &&PodFacts| {
        let words = pod.trouble.as_deref().unwrap_or_default();
        is_pod(pod) && !pod.is_deleting && words.starts_with(pods::STUCK)
    };
    if let Some(pod) = draft.observed.etcd_pods.iter().find(is_stuck) {
        draft.report.decide(format!("evict {}", pod.name), "its next pod begins the restore anew");
        draft.step(step::evict(pod));
    }
}
