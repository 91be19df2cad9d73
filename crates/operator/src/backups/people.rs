//! What `hangar backup` does for people: it finds a Cluster's store, and asks the controller for a backup.
//!
//! A backup is made by the controller alone, so that only one runs at a time. What asks for it is an annotation with a
//! token; the status tells which token was answered last.

use hangar_api::cluster::v1beta2::Cluster;
use hangar_api::controlplane::v1alpha1::{
    Etcd, EtcdBackup, EtcdBackupSecret, EtcdBackupStatus, EtcdBackupSuccess, HostedControlPlane,
};
use hangar_api::names::BACKUP_REQUESTED_ANNOTATION;
use hangar_api::reference::ContractVersionedObjectReference;
use hangar_etcd::{BackupStore, Owner};
use k8s_openapi::api::core::v1::Secret;
use kube::api::{Patch, PatchParams};
use kube::{Api, Client};
use serde_json::json;

/// Why something cannot be done, for people.
#[derive(Debug, thiserror::Error)]
pub enum Fault {
    #[error("cannot read {what}")]
    Read { what: String, source: Box<kube::Error> },
    #[error("cannot write {what}")]
    Write { what: String, source: Box<kube::Error> },
    #[error("{0}")]
    Strange(String),
    #[error("there is no {0}")]
    Missing(String),
    #[error("Cluster {0} has no HostedControlPlane")]
    NoControlPlane(String),
    #[error("HostedControlPlane {0} has no spec.etcd.backup: it makes no backups")]
    NotConfigured(String),
    #[error(
        "HostedControlPlane {0} has neither spec.etcd.backup nor spec.etcd.restore.secret: nobody knows where backups are"
    )]
    NoStore(String),
    #[error("backups of HostedControlPlane {0} are suspended (spec.etcd.backup.suspend)")]
    Suspended(String),
    #[error("HostedControlPlane {0} is being deleted")]
    Deleting(String),
    #[error(transparent)]
    Store(#[from] hangar_etcd::Error),
}

/// How far a backup is that was asked for.
#[derive(Clone, Debug, PartialEq)]
pub enum Asked {
    /// Not made yet; what the condition says.
    Waiting(String),
    /// It failed; the controller goes on trying.
    Failed(String),
    Made(Box<EtcdBackupSuccess>),
}

async fn get<K>(api: &Api<K>, name: &str) -> Result<K, Fault>
where
    K: kube::Resource<DynamicType = ()> + Clone + std::fmt::Debug + serde::de::DeserializeOwned,
{
    let what = format!("{} {name}", K::kind(&()));
    let found = api.get_opt(name).await;
    let found = found.map_err(|error| Fault::Read { what: what.clone(), source: Box::new(error) })?;
    found.ok_or(Fault::Missing(what))
}

/// The control plane of a Cluster.
pub(super) async fn control_plane(
    client: &Client,
    namespace: &str,
    cluster: &str,
) -> Result<HostedControlPlane, Fault> {
    let clusters: Api<Cluster> = Api::namespaced(client.clone(), namespace);
    let reference = get(&clusters, cluster).await?.spec.control_plane_ref;
    let reference = reference.filter(ContractVersionedObjectReference::is::<HostedControlPlane>);
    let reference = reference.ok_or_else(|| Fault::NoControlPlane(cluster.to_owned()))?;
    get(&Api::namespaced(client.clone(), namespace), &reference.name).await
}

pub(super) fn name(control_plane: &HostedControlPlane) -> String {
    control_plane.metadata.name.clone().unwrap_or_default()
}

fn settings(control_plane: &HostedControlPlane) -> Result<&EtcdBackup, Fault> {
    let backup = control_plane.spec.settings.etcd.as_ref().and_then(|etcd| etcd.backup.as_ref());
    backup.ok_or_else(|| Fault::NotConfigured(name(control_plane)))
}

/// The store that a Cluster's control plane backs up to, with the backups of this or another Cluster. Where it makes none,
/// that which it restores from.
pub async fn store_of(client: &Client, cluster: (&str, &str), owner: &Owner) -> Result<BackupStore, Fault> {
    open(client, cluster, owner, |etcd| own(etcd).or(asked_for(etcd))).await
}

/// The store that a Cluster's control plane restores from.
pub async fn store_to_restore_from(
    client: &Client,
    cluster: (&str, &str),
    owner: &Owner,
) -> Result<BackupStore, Fault> {
    open(client, cluster, owner, |etcd| asked_for(etcd).or(own(etcd))).await
}

fn own(etcd: &Etcd) -> Option<&EtcdBackupSecret> {
    etcd.backup.as_ref().map(|backup| &backup.secret)
}

fn asked_for(etcd: &Etcd) -> Option<&EtcdBackupSecret> {
    etcd.restore.as_ref()?.secret.as_ref()
}

async fn open(
    client: &Client,
    (namespace, cluster): (&str, &str),
    owner: &Owner,
    named: impl Fn(&Etcd) -> Option<&EtcdBackupSecret>,
) -> Result<BackupStore, Fault> {
    let control_plane = control_plane(client, namespace, cluster).await?;
    let settings = control_plane.spec.settings.etcd.as_ref().and_then(named);
    let settings = settings.ok_or_else(|| Fault::NoStore(name(&control_plane)))?;
    let secrets: Api<Secret> = Api::namespaced(client.clone(), namespace);
    let secret = get(&secrets, &settings.name).await?;
    let config = super::store(settings, &secret.data.unwrap_or_default())?;
    Ok(BackupStore::new(&config, owner)?)
}

/// Asks for a backup. The same token is answered once.
pub async fn ask(client: &Client, namespace: &str, cluster: &str, token: &str) -> Result<(), Fault> {
    let control_plane = control_plane(client, namespace, cluster).await?;
    if settings(&control_plane)?.suspend == Some(true) {
        return Err(Fault::Suspended(name(&control_plane)));
    }
    if control_plane.metadata.deletion_timestamp.is_some() {
        return Err(Fault::Deleting(name(&control_plane)));
    }
    let api: Api<HostedControlPlane> = Api::namespaced(client.clone(), namespace);
    let fields = json!({"metadata": {"annotations": {BACKUP_REQUESTED_ANNOTATION: token}}});
    let written = api.patch(&name(&control_plane), &PatchParams::default(), &Patch::Merge(fields)).await;
    let what = format!("HostedControlPlane {}", name(&control_plane));
    written.map(drop).map_err(|error| Fault::Read { what, source: Box::new(error) })
}

/// What became of it.
pub async fn asked(client: &Client, namespace: &str, cluster: &str, token: &str) -> Result<Asked, Fault> {
    let control_plane = control_plane(client, namespace, cluster).await?;
    let status = control_plane.status.unwrap_or_default();
    let told = status.conditions.iter().find(|condition| condition.type_ == "EtcdBackedUp");
    let told = told.map(|condition| format!("{}: {}", condition.reason, condition.message));
    Ok(answered(&status.etcd_backup.unwrap_or_default(), token, told.unwrap_or_default()))
}

fn answered(backup: &EtcdBackupStatus, token: &str, told: String) -> Asked {
    let failure = backup.last_failure.as_ref().filter(|failure| failure.request.as_deref() == Some(token));
    match (&backup.last_success, failure) {
        (Some(success), _) if backup.last_request.as_deref() == Some(token) => {
            Asked::Made(Box::new(success.clone()))
        }
        (_, Some(failure)) => Asked::Failed(failure.message.clone()),
        _ => Asked::Waiting(told),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn backups_are_listed_where_they_are_made_and_restored_from_where_the_field_says() {
        let etcd = |text: &str| serde_json::from_str::<Etcd>(text).unwrap();
        let (backup, restore) = (
            r#""backup": {"schedule": "@daily", "secret": {"name": "own"}}"#,
            r#""restore": {"backup": "latest", "secret": {"name": "old"}}"#,
        );
        let names = |etcd: &Etcd| {
            let name = |secret: Option<&EtcdBackupSecret>| secret.map(|secret| secret.name.clone());
            (name(own(etcd)), name(asked_for(etcd)))
        };
        let (own, old) = (Some("own".to_owned()), Some("old".to_owned()));
        assert_eq!(names(&etcd(&format!("{{{backup}, {restore}}}"))), (own.clone(), old.clone()));
        assert_eq!(names(&etcd(&format!("{{{restore}}}"))), (None, old));
        let elsewhere = r#""restore": {"backup": "latest"}"#;
        assert_eq!(names(&etcd(&format!("{{{backup}, {elsewhere}}}"))), (own, None));
    }

    #[test]
    fn a_request_is_answered_by_its_own_token_alone() {
        let status = |text: &str| serde_json::from_str::<EtcdBackupStatus>(text).unwrap();
        let success = r#""lastSuccess": {"id": "20260101T000000Z", "time": "2026-01-01T00:00:00Z",
            "durationSeconds": 3, "size": 1, "storedSize": 1, "revision": 7, "encrypted": false, "hasKeys": false}"#;
        let failure = r#""lastFailure": {"time": "2026-01-01T00:00:00Z", "reason": "StoreDenied",
            "message": "no", "attempts": 1, "origin": "Store", "request": "a"}"#;
        let of = |text: &str, token: &str| answered(&status(text), token, "told".to_owned());
        assert_eq!(of("{}", "a"), Asked::Waiting("told".to_owned()));
        let other = format!(r#"{{"lastRequest": "b", {success}}}"#);
        assert_eq!(of(&other, "a"), Asked::Waiting("told".to_owned()));
        assert!(matches!(of(&other, "b"), Asked::Made(made) if made.revision == 7));
        let failed = format!("{{{success}, {failure}}}");
        assert_eq!(of(&failed, "a"), Asked::Failed("no".to_owned()));
        assert_eq!(of(&failed, "c"), Asked::Waiting("told".to_owned()));
        let repeated = format!(r#"{{"lastRequest": "a", {success}, {failure}}}"#);
        assert!(matches!(of(&repeated, "a"), Asked::Made(_)));
    }
}
