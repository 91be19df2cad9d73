//! Reads whether the add-ons of a tenant run: how many pods of each are ready from watches, and why not from its pods.
//!
//! Nothing is read in a tenant without Nodes. Pods are listed only of an add-on that is not ready: at once, and then less
//! and less often until it is. Their first page is enough for a reason, which is not looked for in thousands of pods.

use std::collections::BTreeMap;
use std::time::Duration;

use hangar_kit::ObjectKey;
use hangar_plan::flow::Read;
use hangar_plan::hosted_control_plane::{
    ObjectIdentity, Observed, TenantFacts, tenant_addons, tenants_words,
};
use k8s_openapi::api::core::v1::Pod;
use kube::api::ListParams;
use kube::{Api, ResourceExt as _};
use tokio::time::Instant;

use super::remembered::{Due, Remembered};
use super::{ControlPlanes, workload};

/// Pods are listed again after this time, and each further time after twice as long.
const LIST_SOON: Duration = Duration::from_secs(20);
const LIST_EVERY: Duration = Duration::from_mins(2);
/// Pods that are asked for a reason.
const PODS: u32 = 50;

/// What pods of add-ons that are not ready last said, by control plane.
pub(super) type Reasons = Remembered<BTreeMap<ObjectIdentity, Reason>>;

#[derive(Clone)]
pub(super) struct Reason {
    at: Instant,
    /// How many times in a row pods were listed.
    times: u32,
    words: Option<String>,
}

impl Reason {
    fn due_in(&self) -> Duration {
        let limit = LIST_SOON.saturating_mul(1 << self.times.saturating_sub(1).min(16)).min(LIST_EVERY);
        limit.saturating_sub(self.at.elapsed())
    }
}

impl Due for BTreeMap<ObjectIdentity, Reason> {
    fn due_in(&self) -> Duration {
        self.values().map(Reason::due_in).min().unwrap_or_default()
    }
}

impl Reasons {
    fn get(&self, control_plane: &ObjectKey, addon: &ObjectIdentity) -> Option<Reason> {
        self.all().get(control_plane)?.get(addon).cloned()
    }

    /// Replaces what is known: add-ons that are ready have no reason.
    fn keep(&self, control_plane: &ObjectKey, reasons: BTreeMap<ObjectIdentity, Reason>) {
        if reasons.is_empty() {
            self.forget(control_plane);
        } else {
            self.all().insert(control_plane.clone(), reasons);
        }
    }
}

impl ControlPlanes {
    /// Fills in what is known of the tenant's add-ons. What could not be read decides nothing, so nobody waits for it:
    /// the first list of a watch wakes the control plane.
    pub(super) async fn look_at_addons(
        &self,
        control_plane: &ObjectKey,
        observed: &mut Observed,
        cluster: &ObjectKey,
    ) {
        let mut reasons = BTreeMap::new();
        if let Read::One(TenantFacts { nodes: 1.., lacks_rights: false, .. }) = observed.tenant {
            let lease = self.addons.subscribe(cluster);
            for (addon, selector) in tenant_addons(observed) {
                let mut read = lease.get(&addon);
                for facts in read.iter_mut().filter(|facts| !facts.is_ready()) {
                    let before = self.reasons.get(control_plane, &addon);
                    let reason = self.reason(cluster, &addon, &selector, before).await;
                    facts.trouble.clone_from(&reason.words);
                    reasons.insert(addon.clone(), reason);
                }
                observed.addons.insert(addon, read);
            }
        }
        self.reasons.keep(control_plane, reasons);
    }

    /// Why an add-on is not ready, as its pods say it now or said it lately.
    async fn reason(
        &self,
        cluster: &ObjectKey,
        addon: &ObjectIdentity,
        selector: &str,
        before: Option<Reason>,
    ) -> Reason {
        let (times, words) = match before {
            Some(before) if !before.due_in().is_zero() => return before,
            Some(before) => (before.times, before.words),
            None => (0, None),
        };
        let listed = self.pods(cluster, &addon.namespace, selector).await;
        let words = listed.map_or_else(
            |error| {
                tracing::warn!(%addon, %error, "its pods were not listed in the tenant");
                words
            },
            |pods| pods.iter().find_map(told),
        );
        Reason { at: Instant::now(), times: times.saturating_add(1), words }
    }

    async fn pods(
        &self,
        cluster: &ObjectKey,
        namespace: &str,
        selector: &str,
    ) -> Result<Vec<Pod>, Box<dyn std::error::Error + Send + Sync>> {
        let client = self.tenants.client(cluster).await?;
        let parameters = ListParams::default().labels(selector).limit(PODS);
        Ok(Api::<Pod>::namespaced(client, namespace).list(&parameters).await?.items)
    }
}

/// Which pod says what.
fn told(pod: &Pod) -> Option<String> {
    let trouble = workload::trouble(pod).filter(|_| pod.metadata.deletion_timestamp.is_none())?;
    Some(tenants_words(&format!("{}: {trouble}", pod.name_any())))
}
