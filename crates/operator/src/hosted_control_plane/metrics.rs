//! What Prometheus is told of each control plane, by the manager that leads: conditions, versions, ends of certificates,
//! sizes of etcd's databases, backups. All of it is in stores already, and nothing is kept for it: the series of a control plane
//! are gone with it.
//!
//! These are about sixty series for a control plane: one for each condition, two for each certificate, and three for each
//! member of etcd. Types and reasons of conditions are Hangar's own words, so their number has a bound.

use std::sync::Arc;

use hangar_api::controlplane::v1alpha1::{EtcdBackupSuccess, HostedControlPlane};
use hangar_kit::ObjectKey;
use hangar_kit::metrics::{Gauge, Take};
use hangar_kit::watch::Kept;
use hangar_plan::hosted_control_plane::backup::failures;
use hangar_plan::hosted_control_plane::{DatabaseSize, SecretFacts};
use hangar_plan::quantity::Quantity;
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use super::members::Members;
use super::observe::is_managed_by;
use crate::context::{Context, Watches};

/// Shows all of it from now on.
pub(super) fn show(context: &Context, members: &Arc<Members>) {
    let of_each = |name, help, of: fn(&mut Take<'_>, &Kept<HostedControlPlane>)| {
        let context = context.clone();
        gauge(name, help, context.clone(), move |take| {
            context.watches.control_planes().all().iter().for_each(|kept| of(take, kept));
        })
    };
    let of_members = |name, help, size: fn(&DatabaseSize) -> u64| {
        let members = Arc::clone(members);
        gauge(name, help, context.clone(), move |take| {
            members.each(|key, member, found| {
                let (namespace, name) = names(key);
                take(&[("namespace", namespace), ("name", name), ("member", member)], number(size(found)));
            });
        })
    };
    let of_certificates = |name, help, moment: fn(&SecretFacts) -> Option<Timestamp>| {
        let watches = Arc::clone(&context.watches);
        gauge(name, help, context.clone(), move |take| certificates(&watches, take, moment))
    };
    context.handles.metrics.objects.add([
        of_each("control_plane_info", "1; the version that is wanted and the lowest that serves", info),
        of_each("control_plane_condition", "1 for each condition as it is now", conditions),
        of_each("control_plane_initialized", "1 once the API server has served", initialized),
        of_each(
            "control_plane_available",
            "1 while the API server serves, 0 while it does not; of control planes that have served",
            available,
        ),
        of_each("control_plane_replicas", "API servers wanted", replicas),
        of_each("control_plane_ready_replicas", "API servers that are ready", ready_replicas),
        of_certificates(
            "control_plane_certificate_expiry_timestamp_seconds",
            "End of validity of each certificate that Hangar made, as a Unix timestamp",
            |facts| facts.not_after,
        ),
        of_certificates(
            "control_plane_certificate_renewal_timestamp_seconds",
            "When each certificate is to be renewed, as a Unix timestamp; authorities are not",
            |facts| facts.renew_at().filter(|_| facts.issuer.is_some()),
        ),
        of_each(
            "control_plane_etcd_volume_size_bytes",
            "Size of the smallest of etcd's volumes",
            volume_size,
        ),
        of_each(
            "control_plane_etcd_last_defragmentation_timestamp_seconds",
            "When etcd's members were last defragmented, as a Unix timestamp",
            last_defragmentation,
        ),
        of_each(
            "control_plane_etcd_backup_last_success_timestamp_seconds",
            "When the last backup of etcd was begun, as a Unix timestamp",
            |take, kept| backup(take, kept, |success| success.time.0.as_duration().as_secs_f64()),
        ),
        of_each("control_plane_etcd_backup_last_duration_seconds", "How long it took", |take, kept| {
            backup(take, kept, |success| signed(success.duration_seconds));
        }),
        of_each("control_plane_etcd_backup_last_size_bytes", "Size of its snapshot", |take, kept| {
            backup(take, kept, |success| signed(success.size));
        }),
        of_each(
            "control_plane_etcd_backup_next_timestamp_seconds",
            "When the next backup of etcd is due, as a Unix timestamp",
            next_backup,
        ),
        of_each(
            "control_plane_etcd_backup_failures",
            "Backups that failed since the last one that was made",
            failed_backups,
        ),
        of_members("control_plane_etcd_database_bytes", "Size of an etcd member's database file", |size| {
            size.allocated
        }),
        of_members(
            "control_plane_etcd_database_in_use_bytes",
            "What of an etcd member's database file is in use",
            |size| size.in_use,
        ),
        of_members(
            "control_plane_etcd_database_quota_bytes",
            "Size of an etcd member's database file at which it refuses writes",
            |size| size.quota,
        ),
    ]);
}

/// Only the leader tells: followers know the same, and it would be there twice.
fn gauge(
    name: &'static str,
    help: &'static str,
    context: Context,
    series: impl Fn(&mut Take<'_>) + Send + Sync + 'static,
) -> Gauge {
    let series = move |take: &mut Take<'_>| {
        if context.handles.leadership.is_leading() {
            series(take);
        }
    };
    Gauge { name, help, series: Box::new(series) }
}

fn names(key: &ObjectKey) -> (&str, &str) {
    (key.namespace_or_empty(), &key.name)
}

/// Exact up to 2^53, which is more than any database has.
#[allow(clippy::cast_precision_loss, reason = "exact for every size that there is")]
fn number(bytes: u64) -> f64 {
    bytes as f64
}

/// The same, of what a status has.
#[allow(clippy::cast_precision_loss, reason = "exact for every size that there is")]
fn signed(count: i64) -> f64 {
    count as f64
}

fn info(take: &mut Take<'_>, kept: &Kept<HostedControlPlane>) {
    let (namespace, name) = names(&kept.key);
    let serving = kept.status.as_ref().and_then(|status| status.version.as_deref()).unwrap_or_default();
    let labels =
        [("namespace", namespace), ("name", name), ("version", &kept.spec.version), ("serving", serving)];
    take(&labels, 1.0);
}

fn conditions(take: &mut Take<'_>, kept: &Kept<HostedControlPlane>) {
    let (namespace, name) = names(&kept.key);
    for condition in kept.status.iter().flat_map(|status| &status.conditions) {
        let labels = [
            ("namespace", namespace),
            ("name", name),
            ("type", condition.type_.as_str()),
            ("status", condition.status.as_str()),
            ("reason", condition.reason.as_str()),
        ];
        take(&labels, 1.0);
    }
}

fn one(take: &mut Take<'_>, kept: &Kept<HostedControlPlane>, value: f64) {
    let (namespace, name) = names(&kept.key);
    take(&[("namespace", namespace), ("name", name)], value);
}

fn has_served(kept: &Kept<HostedControlPlane>) -> bool {
    kept.status.as_ref().and_then(|status| status.initialized) == Some(true)
}

fn initialized(take: &mut Take<'_>, kept: &Kept<HostedControlPlane>) {
    one(take, kept, if has_served(kept) { 1.0 } else { 0.0 });
}

fn available(take: &mut Take<'_>, kept: &Kept<HostedControlPlane>) {
    if has_served(kept) && !kept.is_terminating {
        let mut conditions = kept.status.iter().flat_map(|status| &status.conditions);
        let is_available = conditions.any(|found| found.type_ == "Available" && found.status == "True");
        one(take, kept, if is_available { 1.0 } else { 0.0 });
    }
}

fn replicas(take: &mut Take<'_>, kept: &Kept<HostedControlPlane>) {
    one(take, kept, kept.spec.replicas.into());
}

fn ready_replicas(take: &mut Take<'_>, kept: &Kept<HostedControlPlane>) {
    let ready = kept.status.as_ref().and_then(|status| status.ready_replicas);
    one(take, kept, ready.unwrap_or_default().into());
}

fn volume_size(take: &mut Take<'_>, kept: &Kept<HostedControlPlane>) {
    let size = kept.status.as_ref().and_then(|status| status.etcd_volume_size.as_ref());
    if let Some(bytes) = size.and_then(|size| Quantity::parse(&size.0)).and_then(Quantity::bytes) {
        one(take, kept, number(bytes));
    }
}

fn last_defragmentation(take: &mut Take<'_>, kept: &Kept<HostedControlPlane>) {
    let last = kept.status.as_ref().and_then(|status| status.etcd_last_defrag_time.as_ref());
    if let Some(last) = last {
        one(take, kept, last.0.as_duration().as_secs_f64());
    }
}

fn backup(take: &mut Take<'_>, kept: &Kept<HostedControlPlane>, value: fn(&EtcdBackupSuccess) -> f64) {
    let status = kept.status.as_ref().and_then(|status| status.etcd_backup.as_ref());
    if let Some(success) = status.and_then(|status| status.last_success.as_ref()) {
        one(take, kept, value(success));
    }
}

fn next_backup(take: &mut Take<'_>, kept: &Kept<HostedControlPlane>) {
    let next = kept.status.as_ref().and_then(|status| status.etcd_next_backup_time.as_ref());
    if let Some(next) = next {
        one(take, kept, next.0.as_duration().as_secs_f64());
    }
}

fn failed_backups(take: &mut Take<'_>, kept: &Kept<HostedControlPlane>) {
    if kept.spec.settings.etcd.as_ref().is_some_and(|etcd| etcd.backup.is_some()) {
        let status = kept.status.as_ref().and_then(|status| status.etcd_backup.as_ref());
        one(take, kept, status.map_or(0, failures).into());
    }
}

fn certificates(watches: &Watches, take: &mut Take<'_>, moment: fn(&SecretFacts) -> Option<Timestamp>) {
    let control_planes = watches.control_planes();
    for kept in watches.secrets().all().iter() {
        let Some(owner) = kept.controller::<HostedControlPlane>() else { continue };
        // A Secret that somebody made may name any owner.
        let control_plane = control_planes.get(&owner);
        if !control_plane.iter().any(|control_plane| is_managed_by(kept, &control_plane.uid)) {
            continue;
        }
        let annotations = Some(kept.annotations.clone());
        let facts = SecretFacts::of(&ObjectMeta { annotations, ..ObjectMeta::default() });
        let Some(at) = facts.as_ref().and_then(moment) else { continue };
        let (namespace, name) = names(&owner);
        let labels = [("namespace", namespace), ("name", name), ("secret", kept.key.name.as_str())];
        take(&labels, at.as_duration().as_secs_f64());
    }
}
