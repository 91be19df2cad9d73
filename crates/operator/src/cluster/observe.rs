//! Reads a Cluster and what belongs to it from the stores, and checks whether its API server answers.

use std::collections::BTreeMap;
use std::sync::PoisonError;
use std::time::Duration;

use hangar_api::cluster::v1beta2::Cluster;
use hangar_api::names::CLUSTER_NAME_LABEL;
use hangar_kit::ObjectKey;
use hangar_kit::client::Health;
use hangar_kit::error::Error;
use hangar_kit::watch::{Kept, Unreadable, Watch};
use hangar_plan::cluster::{Connection, Observed};
use hangar_plan::flow::Read;
use kube::Resource;
use tokio::time::Instant;

use super::Clusters;
use crate::context::Context;
use crate::referring::{self, Member};

/// An answer is believed this long: not quite two minutes, so that every second pass at rest asks again.
const BELIEVED_FOR: Duration = Duration::from_secs(110);
/// The same where the control plane has changed since, or a call of others failed: it may be the end. Changes come in
/// bursts.
const BELIEVED_AFTER_CHANGE: Duration = Duration::from_secs(20);
/// On an open watch API servers say something every minute, give or take a quarter.
const SILENCE: Duration = Duration::from_secs(90);
/// A failure is looked at again with the next change.
const DOUBTED_AFTER: Duration = Duration::from_secs(5);

/// An answer and its age.
pub(super) struct Probed {
    at: Instant,
    connection: Connection,
    /// The version of the control plane's object at that time.
    control_plane: String,
}

/// What the stores show now.
pub(super) fn observe(context: &Context, root: &Kept<Cluster>) -> Observed {
    let (cluster, watches) = (&root.value, &context.watches);
    let look = |reference| context.foreign.get(root.key.namespace_or_empty(), reference);
    Observed {
        infrastructure: cluster.spec.infrastructure_ref.as_ref().map(look),
        control_plane: cluster.spec.control_plane_ref.as_ref().map(look),
        deployments: of_cluster(watches.machine_deployments(), root),
        sets: of_cluster(watches.machine_sets(), root),
        machines: of_cluster(watches.machines(), root),
        connection: Connection::NotTried,
        refusals: BTreeMap::new(),
        now: context.ambient.now(),
        cluster: cluster.clone(),
    }
}

impl Clusters {
    /// Whether the tenant's API server answers, or did a moment ago. What others heard from it through the same kubeconfig
    /// is as good as an answer.
    pub(super) async fn probe(&self, context: &Context, key: &ObjectKey, observed: &Observed) -> Connection {
        let control_plane = match &observed.control_plane {
            Some(Read::One(object)) => object.version(),
            _ => "",
        };
        let is_failing = matches!(context.tenants.health(key), Health::Failing { .. });
        if let Some(known) = self.remembered(key, control_plane, is_failing) {
            return known;
        }
        let answer = async {
            // A kubeconfig that cannot be used does not get better by itself.
            let client = context.tenants.client(key).await;
            let client =
                client.map_err(|error| (error.to_string(), matches!(error, Error::Malformed { .. })))?;
            if context.tenants.silent_for(key).is_some_and(|length| length < SILENCE) {
                return Ok(false);
            }
            client.apiserver_version().await.map(|_| true).map_err(|error| (error.to_string(), false))
        };
        let connection = match answer.await {
            Ok(true) => Connection::Answering,
            // Not remembered: it may have been a while ago.
            Ok(false) => return Connection::Answering,
            Err((why, is_unusable)) => {
                let health = context.tenants.health(key);
                let is_lasting = is_unusable || matches!(health, Health::Failing { retry_at: Some(_), .. });
                Connection::Failing { why, is_lasting }
            }
        };
        let (at, control_plane) = (Instant::now(), control_plane.to_owned());
        let probed = Probed { at, connection: connection.clone(), control_plane };
        self.probes.lock().unwrap_or_else(PoisonError::into_inner).insert(key.clone(), probed);
        connection
    }

    fn remembered(&self, key: &ObjectKey, control_plane: &str, is_failing: bool) -> Option<Connection> {
        let probes = self.probes.lock().unwrap_or_else(PoisonError::into_inner);
        let probed = probes.get(key)?;
        let limit = match probed.connection {
            Connection::Answering if is_failing || probed.control_plane != control_plane => {
                BELIEVED_AFTER_CHANGE
            }
            Connection::Answering => BELIEVED_FOR,
            _ => DOUBTED_AFTER,
        };
        (probed.at.elapsed() < limit).then(|| probed.connection.clone())
    }

    pub(super) fn forget_probe(&self, key: &ObjectKey) {
        self.probes.lock().unwrap_or_else(PoisonError::into_inner).remove(key);
    }
}

/// By the label that their controllers set; by name as well where missing one would be an error: while deleting.
fn of_cluster<K>(watch: &Watch<K>, cluster: &Kept<Cluster>) -> Read<K>
where
    K: Member + Resource + Clone + Send + Sync + 'static,
{
    let key = &cluster.key;
    if cluster.is_terminating {
        // What one that cannot be read names is not known; its label is.
        let may_be_its = |kept: &Kept<Unreadable>| {
            kept.labels.get(CLUSTER_NAME_LABEL).is_none_or(|labelled| *labelled == key.name)
        };
        let all = watch.in_namespace(&key.namespace, may_be_its);
        return all.filter(|kept| kept.value.cluster_name() == key.name).map(|kept| kept.value.clone());
    }
    referring::of_cluster(watch, key)
}
