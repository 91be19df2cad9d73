//! The controller of Clusters.
//!
//! It owns the Cluster's finalizer, endpoint and status, and, on the two objects that the Cluster refers to, an owner
//! reference and a label.
//!
//! It calls a tenant for one purpose: to learn whether its API server answers. That happens every two minutes, and not at
//! all while other calls or watches through the same kubeconfig show it. A control plane that changes is asked again
//! after a few seconds, so that one that changes often does not cause a call with every change.

mod observe;
mod watch;

use std::collections::BTreeMap;
use std::sync::Mutex;

use hangar_api::cluster::v1beta2::{Cluster, ClusterStatus};
use hangar_kit::ObjectKey;
use hangar_kit::watch::{Kept, Watch};
use hangar_plan::cluster::{Observed, Probe};
use hangar_plan::controllers::Controller;
use tokio::task::JoinSet;

use crate::context::{Context, Watches};
use crate::reconcile::{self, Case, Edge, Rehearsal, Rehearse};
use crate::referring::is_starting;
use observe::Probed;

/// What it keeps between passes: when each tenant last answered.
#[derive(Default)]
struct Clusters {
    probes: Mutex<BTreeMap<ObjectKey, Probed>>,
}

/// Starts the controller.
pub(crate) fn spawn(context: &Context, running: &mut JoinSet<()>) {
    reconcile::spawn(context, running, Clusters::default(), |builder| watch::watched(context, builder));
}

/// The same for a preview.
pub(crate) fn rehearsed(context: &Context) -> Box<dyn Rehearse> {
    Rehearsal::boxed(context, Clusters::default())
}

impl Edge for Clusters {
    const CONTROLLER: Controller = Controller::Cluster;
    const FIELD_MANAGER: &'static str = "hangar-cluster";

    type Root = Cluster;
    type Observed = Observed;
    type Scratch = ();

    fn watch(watches: &Watches) -> &Watch<Cluster> {
        watches.clusters()
    }

    fn status(root: &Cluster) -> Option<&ClusterStatus> {
        root.status.as_ref()
    }

    fn is_starting(&self, context: &Context, root: &Cluster) -> bool {
        is_starting(&context.foreign, root.spec.infrastructure_ref.iter().chain(&root.spec.control_plane_ref))
    }

    fn observe(&self, context: &Context, root: &Kept<Cluster>) -> Observed {
        observe::observe(context, root)
    }

    async fn read(&self, case: &Case<'_, Self>, observed: &mut Observed, Probe: Probe) {
        observed.connection = self.probe(case.context, case.key(), observed).await;
    }

    fn forget(&self, context: &Context, key: &ObjectKey) {
        self.forget_probe(key);
        context.tenants.forget(key);
    }
}
