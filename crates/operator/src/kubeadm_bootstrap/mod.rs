//! The controller of KubeadmConfigs: it makes the bootstrap data of workers.
//!
//! It owns the data Secret named after the KubeadmConfig and, in the tenant, the bootstrap token of each worker that
//! has not joined yet. It watches KubeadmConfigs, the Machines that use them, Clusters (which say when a join can work)
//! and Secrets of clusters (the data itself, and the certificate authority). All decisions are in
//! `hangar_plan::kubeadm_bootstrap`.
//!
//! It sets no finalizer: the data Secret is garbage collected with its owner, and a token that is no longer used
//! expires.

mod observe;
mod run;
mod watch;

use hangar_api::bootstrap::v1beta2::{KubeadmConfig, KubeadmConfigStatus};
use hangar_kit::error::Error;
use hangar_kit::watch::{Kept, Watch};
use hangar_plan::controllers::Controller;
use hangar_plan::kubeadm_bootstrap::{Observed, TokenStep, Wanted};
use kube::Client;
use tokio::task::JoinSet;

use crate::context::{Context, Watches};
use crate::reconcile::{self, Case, Edge, Rehearsal, Rehearse};

/// It keeps nothing between passes.
struct KubeadmConfigs;

/// Starts the controller.
pub(crate) fn spawn(context: &Context, running: &mut JoinSet<()>) {
    reconcile::spawn(context, running, KubeadmConfigs, |builder| watch::watched(context, builder));
}

/// The same for a preview.
pub(crate) fn rehearsed(context: &Context) -> Box<dyn Rehearse> {
    Rehearsal::boxed(context, KubeadmConfigs)
}

impl Edge for KubeadmConfigs {
    const CONTROLLER: Controller = Controller::KubeadmBootstrap;
    const FIELD_MANAGER: &'static str = "hangar-kubeadm-bootstrap";

    type Root = KubeadmConfig;
    type Observed = Observed;
    type Scratch = ();

    fn watch(watches: &Watches) -> &Watch<KubeadmConfig> {
        watches.kubeadm_configs()
    }

    fn status(root: &KubeadmConfig) -> Option<&KubeadmConfigStatus> {
        root.status.as_ref()
    }

    fn observe(&self, context: &Context, root: &Kept<KubeadmConfig>) -> Observed {
        observe::observe(context, root)
    }

    async fn read(&self, case: &Case<'_, Self>, observed: &mut Observed, wanted: Wanted) {
        observe::read(case.context, observed, wanted).await;
    }

    async fn tenant(&self, context: &Context, observed: &Observed, _: &TokenStep) -> Result<Client, Error> {
        context.tenants.writer(&observe::cluster_of(observed)).await
    }
}
