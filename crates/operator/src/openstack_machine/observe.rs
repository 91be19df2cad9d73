//! Makes the observation of an OpenStackMachine: from the stores first, then from the cloud. What a new server needs is
//! read only while there is no server.

use std::sync::Arc;

use hangar_api::cluster::v1beta2::Machine;
use hangar_api::infrastructure::v1beta1::{OpenStackCluster, OpenStackMachine};
use hangar_api::names::{
    CLUSTER_NAME_LABEL, CONTROL_PLANE_LABEL, OPENSTACK_MACHINE_FINALIZER, SECRET_VALUE_KEY,
};
use hangar_kit::ObjectKey;
use hangar_kit::watch::Kept;
use hangar_plan::flow::Read;
use hangar_plan::openstack::server::{Preflight, UserData};
use hangar_plan::openstack::{Access, CloudTrouble};
use hangar_plan::openstack_machine::{ClusterFacts, InfrastructureFacts, MachineFacts, Observed, Wanted};
use k8s_openapi::api::core::v1::Secret;
use kube::{Api, ResourceExt as _};

use super::OpenStackMachines;
use crate::clouds::{self, Project};
use crate::context::Context;
use crate::reconcile::Case;

/// What the stores show, without a call.
pub(super) fn observe(context: &Context, object: &Kept<OpenStackMachine>) -> Observed {
    let watches = &context.watches;
    let machine = match object.owners.iter().find(|owner| owner.is::<Machine>()) {
        Some(owner) => watches.machines().get(&beside(&object.key, &owner.name)),
        None => Read::Absent,
    };
    let named = machine.iter().next().map(|machine| machine.spec.cluster_name.clone());
    let named = named.or_else(|| object.labels.get(CLUSTER_NAME_LABEL).cloned());
    // What is named by something that cannot be read cannot be read either.
    let cluster = match (&named, &machine) {
        (Some(name), _) => watches.clusters().get(&beside(&object.key, name)),
        (None, Read::Unknown(unknown)) => Read::Unknown(unknown.clone()),
        (None, _) => Read::Absent,
    };
    let infrastructure = match &cluster {
        Read::Unknown(unknown) => Read::Unknown(unknown.clone()),
        read => match read.iter().next().and_then(|cluster| cluster.spec.infrastructure_ref.clone()) {
            Some(reference) if reference.is::<OpenStackCluster>() => {
                watches.openstack_clusters().get(&beside(&object.key, &reference.name))
            }
            _ => Read::Absent,
        },
    };
    let is_control_plane = machine.iter().any(|machine| is_control_plane(machine));
    Observed {
        object: object.value.clone(),
        now: context.ambient.now(),
        fresh_owner_id: context.ambient.owner_id(&object.key.name),
        settling: context.handles.settling,
        copied_from: clouds::copied_from(watches.openstack_machines(), object),
        machine: machine.map(|machine| MachineFacts {
            failure_domain: machine.spec.failure_domain.clone(),
            data_secret_name: machine.spec.bootstrap.data_secret_name.clone(),
            is_control_plane,
        }),
        cluster: cluster.map(|cluster| {
            let done = cluster.status.as_ref().and_then(|status| status.initialization.as_ref());
            ClusterFacts {
                name: cluster.key.name.clone(),
                is_paused: cluster.spec.paused == Some(true),
                is_provisioned: done.is_some_and(|done| done.infrastructure_provisioned == Some(true)),
            }
        }),
        infrastructure: infrastructure.map(|found| infrastructure_facts(&found, is_control_plane)),
        cloud: Access::NotAsked,
        project: None,
        trouble: None,
    }
}

fn is_control_plane(machine: &Kept<Machine>) -> bool {
    machine.value.labels().contains_key(CONTROL_PLANE_LABEL)
}

fn infrastructure_facts(cluster: &Kept<OpenStackCluster>, is_control_plane: bool) -> InfrastructureFacts {
    let status = cluster.status.clone().unwrap_or_default();
    let group =
        if is_control_plane { status.control_plane_security_group } else { status.worker_security_group };
    let subnets = status.network.iter().flat_map(|network| &network.subnets);
    InfrastructureFacts {
        identity: Some(cluster.spec.identity_ref.clone()),
        subnet_ids: subnets.map(|subnet| subnet.id.as_str().into()).collect(),
        network_id: status.network.as_ref().map(|network| network.id.as_str().into()),
        security_group_id: group.map(|group| group.id.into()),
        tags: cluster.spec.tags.clone(),
        omits_zone: cluster.spec.control_plane_omit_availability_zone == Some(true),
        disables_port_security: cluster.spec.disable_port_security == Some(true),
    }
}

/// Reads what the plan asks for; the way into the cloud is then there for the steps.
pub(super) async fn read(case: &Case<'_, OpenStackMachines>, observed: &mut Observed, wanted: Wanted) {
    match wanted {
        Wanted::Servers { is_deleting, is_live } => match project(case.context, observed).await {
            Ok((project, place)) => {
                observed.project = Some(place);
                let server = observed.wanted_server();
                if is_live && !project.has_newer_lists(&server.owner_id, case.key()) {
                    case.put_off();
                    return;
                }
                let facts = clouds::server_facts(&project, &server, observed.recorded_id().as_ref()).await;
                observed.cloud = Access::Facts(facts);
                case.set_project(project);
            }
            Err(trouble) => {
                let finalizer = is_deleting.then_some(OPENSTACK_MACHINE_FINALIZER);
                observed.cloud = Access::Trouble(clouds::told(trouble, finalizer));
            }
        },
        Wanted::Preflight => {
            let found = match case.access() {
                Some((project, _)) => {
                    let user_data = user_data(case.context, observed).await;
                    clouds::preflight(project.session(), &observed.wanted_server(), user_data).await
                }
                None => Preflight::default(),
            };
            if let Some(facts) = observed.cloud.facts_mut() {
                facts.preflight = Some(found);
            }
        }
    }
}

async fn project(context: &Context, observed: &Observed) -> Result<(Arc<Project>, String), CloudTrouble> {
    let namespace = observed.object.namespace().unwrap_or_default();
    let own = observed.object.spec.identity_ref.as_ref();
    let shared = observed.infrastructure.iter().next().and_then(|found| found.identity.as_ref());
    match own.or(shared) {
        Some(identity) => context.clouds.project(&namespace, identity).await,
        None => Err(CloudTrouble {
            reason: hangar_plan::openstack::conditions::cloud::CREDENTIALS_NOT_FOUND,
            message: "neither spec.identityRef nor an OpenStackCluster of its Cluster names credentials"
                .to_owned(),
            actor: hangar_api::conditions::Actor::ClusterOwner,
        }),
    }
}

async fn user_data(context: &Context, observed: &Observed) -> Read<UserData> {
    let Some(name) = observed.machine.iter().next().and_then(|machine| machine.data_secret_name.clone())
    else {
        return Read::Absent;
    };
    let namespace = observed.object.namespace().unwrap_or_default();
    let api: Api<Secret> = Api::namespaced(context.client(), &namespace);
    match api.get_opt(&name).await {
        Ok(secret) => {
            let data = secret.and_then(|secret| secret.data);
            Read::found(
                data.and_then(|mut data| data.remove(SECRET_VALUE_KEY)).map(|value| UserData(value.0)),
            )
        }
        Err(error) => Read::unknown(error.to_string()),
    }
}

fn beside(key: &ObjectKey, name: &str) -> ObjectKey {
    ObjectKey { namespace: key.namespace.clone(), name: name.to_owned() }
}
