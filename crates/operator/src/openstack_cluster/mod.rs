//! The controller of OpenStackClusters: networks, routers and security groups of a cluster.
//!
//! It owns the status of the OpenStackCluster, its finalizer and its owner id, and everything in the cloud that carries
//! that id. The cloud cannot be watched, so it is read at every change, and again after a while. All decisions are in
//! `hangar_plan::openstack_cluster`.

mod observe;
mod run;
mod watch;

use hangar_api::infrastructure::v1beta1::{OpenStackCluster, OpenStackClusterStatus};
use hangar_kit::watch::{Kept, Watch};
use hangar_plan::controllers::Controller;
use hangar_plan::openstack_cluster::{AskCloud, Observed};
use tokio::task::JoinSet;

use crate::context::{Context, Watches};
use crate::reconcile::{self, Case, Edge, Rehearsal, Rehearse};

/// It keeps nothing between passes.
struct OpenStackClusters;

/// Starts the controller.
pub(crate) fn spawn(context: &Context, running: &mut JoinSet<()>) {
    reconcile::spawn(context, running, OpenStackClusters, |builder| watch::watched(context, builder));
}

/// The same for a preview.
pub(crate) fn rehearsed(context: &Context) -> Box<dyn Rehearse> {
    Rehearsal::boxed(context, OpenStackClusters)
}

impl Edge for OpenStackClusters {
    const CONTROLLER: Controller = Controller::OpenStackCluster;
    const FIELD_MANAGER: &'static str = "hangar-openstack-cluster";

    type Root = OpenStackCluster;
    type Observed = Observed;
    type Scratch = ();

    fn watch(watches: &Watches) -> &Watch<OpenStackCluster> {
        watches.openstack_clusters()
    }

    fn status(root: &OpenStackCluster) -> Option<&OpenStackClusterStatus> {
        root.status.as_ref()
    }

    fn observe(&self, context: &Context, root: &Kept<OpenStackCluster>) -> Observed {
        observe::observe(context, root)
    }

    async fn read(&self, case: &Case<'_, Self>, observed: &mut Observed, wanted: AskCloud) {
        if let Some(project) = observe::read(case.context, observed, wanted).await {
            case.set_project(project);
        }
    }
}
