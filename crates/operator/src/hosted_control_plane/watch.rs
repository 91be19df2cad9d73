//! Decides which changes wake a HostedControlPlane: its own, and those of its Cluster, its children and the Cluster's
//! infrastructure object.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use hangar_api::cluster::v1beta2::Cluster;
use hangar_api::controlplane::v1alpha1::{ExposureType, HostedControlPlane};
use hangar_api::names::CLUSTER_NAME_LABEL;
use hangar_kit::ObjectKey;
use hangar_kit::controller::ControllerBuilder;
use hangar_kit::pace::Pace;
use hangar_kit::tenant::{Addons, Nodes};
use hangar_kit::watch::{Change, Kept};
use hangar_plan::flow::Read;
use hangar_plan::hosted_control_plane::names::{COPY, IDENTITY_ANNOTATION, INSTANCE_LABEL};
use hangar_plan::hosted_control_plane::{ClaimFacts, Material, Source, SourceKind, exposure, sources};
use hangar_plan::referred::is_kind_of;
use kube::core::DynamicObject;

use super::look::Looks;
use crate::context::{Context, Facts, KubeconfigSecrets, SecretFacts, Touched, Watches};
use crate::referring::is_more_than_status;

/// Nodes and add-ons of a tenant change this often while many join.
const FREE_WAKES: u32 = 60;
/// Then the tenant never rests, and what it says is written no more often than this.
const WAKE_INTERVAL: Duration = Duration::from_secs(10);

/// The builder with everything that matters.
pub(super) fn watched(
    context: &Context,
    builder: ControllerBuilder,
    nodes: &Nodes<KubeconfigSecrets>,
    addons: &Addons<KubeconfigSecrets>,
    looks: &Arc<Looks>,
) -> ControllerBuilder {
    let watches = &context.watches;
    let by_cluster = |watches: &Arc<Watches>| {
        let watches = Arc::clone(watches);
        move |clusters: Vec<ObjectKey>| -> Vec<ObjectKey> {
            clusters.iter().flat_map(|cluster| control_planes(&watches, cluster)).collect()
        }
    };
    context.foreign.feed(&builder.queue(), {
        let (watches, of) = (Arc::clone(watches), by_cluster(watches));
        move |change| of(clusters_of_infrastructure(&watches, change))
    });
    context.ways_in.feed(&builder.queue(), {
        let watches = Arc::clone(watches);
        move |touched| control_planes_by_way(&watches, touched)
    });
    let wake = {
        let (queue, of, pace) = (builder.queue(), by_cluster(watches), Pace::new(FREE_WAKES, WAKE_INTERVAL));
        Arc::new(move |cluster: &ObjectKey| {
            for key in of(vec![cluster.clone()]) {
                let delay = pace.delay(key.clone());
                queue.add_after(key, delay);
            }
        })
    };
    context.neighbours.feed(&builder.queue(), Change::controllers::<HostedControlPlane>, {
        let watches = Arc::clone(watches);
        move || watches.control_planes().all().iter().map(|kept| kept.key.clone()).collect()
    });
    // How many Nodes there are decides how many pods of some add-ons there are.
    nodes.on_change({
        let wake = Arc::clone(&wake);
        move |cluster, _, _| wake(cluster)
    });
    addons.on_change({
        let (looks, of) = (Arc::clone(looks), by_cluster(watches));
        move |cluster, is_edited| {
            if is_edited {
                for key in of(vec![cluster.clone()]) {
                    looks.doubt(&key);
                }
            }
            wake(cluster);
        }
    });
    builder
        .roots(watches.control_planes(), is_more_than_status)
        .watches(watches.clusters(), {
            let of = by_cluster(watches);
            move |change| of(change.itself())
        })
        .watches(watches.secrets(), {
            let (of, mounting) = (by_cluster(watches), Arc::clone(watches));
            move |change| {
                let mut keys = of(cluster_of_secret(change));
                // Its control plane may be gone already.
                keys.extend(Change::controllers::<HostedControlPlane>(change));
                if keys.is_empty() { users_of(&mounting, &change.key, SourceKind::Secret) } else { keys }
            }
        })
        .watches(watches.pods(), {
            let of = by_cluster(watches);
            move |change| of(change.named_by(CLUSTER_NAME_LABEL))
        })
        .watches(watches.etcd_claims(), {
            let watches = Arc::clone(watches);
            move |change| control_planes_named(&watches, change)
        })
        .watches(watches.config_maps(), {
            let mounting = Arc::clone(watches);
            move |change| {
                let keys = Change::controllers::<HostedControlPlane>(change);
                if keys.is_empty() { users_of(&mounting, &change.key, SourceKind::ConfigMap) } else { keys }
            }
        })
        .watches(watches.services(), Change::controllers::<HostedControlPlane>)
        .watches(watches.stateful_sets(), Change::controllers::<HostedControlPlane>)
        .watches(watches.deployments(), Change::controllers::<HostedControlPlane>)
        .watches(watches.pod_disruption_budgets(), Change::controllers::<HostedControlPlane>)
        .watches(watches.network_policies(), Change::controllers::<HostedControlPlane>)
}

/// The control planes of a Cluster: the one it names, and those that say they are its.
fn control_planes(watches: &Watches, cluster: &ObjectKey) -> BTreeSet<ObjectKey> {
    let mut keys = BTreeSet::new();
    if let Read::One(kept) = watches.clusters().get(cluster) {
        keys.extend(named(&kept));
    }
    keys.extend(watches.control_planes().keys_by_label(CLUSTER_NAME_LABEL, cluster));
    keys
}

/// The control planes whose way in may depend on what has changed.
fn control_planes_by_way(watches: &Watches, touched: &Touched<'_>) -> Vec<ObjectKey> {
    let is_concerned = |kept: &Kept<HostedControlPlane>| {
        let settings = &kept.value.spec.settings;
        let gateway = settings.gateway.as_ref();
        match touched {
            Touched::Gateway(key) => gateway.is_some_and(|gateway| {
                gateway.name == key.name && key.namespace.as_ref() == Some(&gateway.namespace)
            }),
            Touched::GatewayApi => gateway.is_some(),
            Touched::Namespace(name) => gateway.is_some() && kept.key.namespace.as_deref() == Some(*name),
            Touched::Nodes => exposure::of(&kept.value) == Some(ExposureType::NodePort),
            Touched::Routes(_) => false,
        }
    };
    if let Touched::Routes(owners) = touched {
        return owners.clone();
    }
    let all = watches.control_planes().all();
    all.iter().filter(|kept| is_concerned(kept)).map(|kept| kept.key.clone()).collect()
}

/// The control planes whose settings name an object that users bring.
fn users_of(watches: &Watches, object: &ObjectKey, kind: SourceKind) -> Vec<ObjectKey> {
    let source = Source { kind, name: object.name.clone() };
    let near = watches.control_planes().in_namespace(&object.namespace, |_| true);
    let is_user =
        |kept: &&Arc<Kept<HostedControlPlane>>| sources(&kept.value.spec.settings).contains(&source);
    near.iter().filter(is_user).map(|kept| kept.key.clone()).collect()
}

/// The control planes whose objects are named as a claim says.
fn control_planes_named(watches: &Watches, change: &Change<Facts<ClaimFacts>>) -> Vec<ObjectKey> {
    let sides = || change.before.iter().chain(&change.after);
    let Some(identity) = sides().find_map(|kept| kept.labels.get(INSTANCE_LABEL)) else { return Vec::new() };
    let is_its = |kept: &Kept<HostedControlPlane>| {
        let recorded = kept.value.metadata.annotations.as_ref().and_then(|all| all.get(IDENTITY_ANNOTATION));
        recorded == Some(identity)
    };
    let near = watches.control_planes().in_namespace(&change.key.namespace, |_| true);
    near.iter().filter(|kept| is_its(kept)).map(|kept| kept.key.clone()).collect()
}

/// The control plane that a Cluster names, if it is of our kind.
pub(super) fn named(cluster: &Kept<Cluster>) -> Option<ObjectKey> {
    let reference = cluster.spec.control_plane_ref.as_ref()?;
    reference
        .is::<HostedControlPlane>()
        .then(|| ObjectKey { namespace: cluster.key.namespace.clone(), name: reference.name.clone() })
}

/// The Cluster of a Secret that may hold something of a control plane. Others carry its label too, one per machine.
fn cluster_of_secret(change: &Change<SecretFacts>) -> Vec<ObjectKey> {
    let name = change.key.name.strip_suffix(&format!("-{COPY}")).unwrap_or(&change.key.name);
    let ends_in = |suffix: &str| name.strip_suffix(suffix).is_some_and(|rest| rest.ends_with('-'));
    if Material::ALL.iter().any(|material| ends_in(material.suffix())) {
        change.named_by(CLUSTER_NAME_LABEL)
    } else {
        Vec::new()
    }
}

fn clusters_of_infrastructure(watches: &Watches, change: &Change<DynamicObject>) -> Vec<ObjectKey> {
    let sides = || change.before.iter().chain(&change.after);
    let types = sides().find_map(|kept| kept.types.as_ref());
    let is_its = |cluster: &Cluster| {
        cluster.spec.infrastructure_ref.as_ref().is_some_and(|reference| {
            reference.name == change.key.name && types.is_none_or(|types| is_kind_of(reference, types))
        })
    };
    let all = watches.clusters().all();
    let matching = all.iter().filter(|kept| kept.key.namespace == change.key.namespace && is_its(kept));
    matching.map(|kept| kept.key.clone()).collect()
}
