//! Reads what a plan needs: the stores first, then the cloud; what a new server needs only while there is none.

use std::sync::Arc;

use hangar_api::cluster::v1beta2::Machine;
use hangar_api::infrastructure::v1beta1::{OpenStackCluster, OpenStackMachine};
use hangar_api::names::{
    CLUSTER_NAME_LABEL, CONTROL_PLANE_LABEL, OPENSTACK_MACHINE_FINALIZER, SECRET_VALUE_KEY,
};
use hangar_kit::ObjectKey;
use hangar_kit::watch::Kept;
use hangar_openstack::Session;
use hangar_plan::flow::Read;
use hangar_plan::openstack::{Access, CloudTrouble};
use hangar_plan::openstack_machine::{
    CloudFacts, ClusterFacts, InfrastructureFacts, MachineFacts, Observed, PortFacts, Preflight, UserData,
    Wanted, WantedPort, wanted_ports,
};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Secret;
use kube::{Api, ResourceExt as _};
use tokio::time::Instant;

use super::OpenStackMachines;
use crate::clouds::{
    self, Project, find_flavor, find_group, find_image, find_network, find_server_group, find_subnet,
    read_all,
};
use crate::context::Context;
use crate::reconcile::Subject;

/// What the stores show, without a call.
pub(super) fn observe(context: &Context, object: &Kept<OpenStackMachine>) -> Observed {
    let watches = &context.watches;
    let machine = match object.owners.iter().find(|owner| owner.kind == "Machine") {
        Some(owner) => watches.machines().get(&beside(&object.key, &owner.name)),
        None => Read::Absent,
    };
    let named = machine.iter().next().map(|machine| machine.spec.cluster_name.clone());
    let named = named.or_else(|| object.labels.get(CLUSTER_NAME_LABEL).cloned());
    let cluster = match &named {
        Some(name) => watches.clusters().get(&beside(&object.key, name)),
        None => Read::Absent,
    };
    let infrastructure =
        match cluster.iter().next().and_then(|cluster| cluster.spec.infrastructure_ref.clone()) {
            Some(reference) if reference.kind == "OpenStackCluster" => {
                watches.openstack_clusters().get(&beside(&object.key, &reference.name))
            }
            _ => Read::Absent,
        };
    let is_control_plane = machine.iter().any(|machine| is_control_plane(machine));
    Observed {
        object: object.value.clone(),
        now: Timestamp::now(),
        fresh_owner_id: uuid::Uuid::new_v4().to_string(),
        copied_from: clouds::copied_from(&watches.openstack_machines().all(), object),
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
        user_data: Read::unknown("not read"),
        cloud: Access::NotAsked,
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
        subnet_ids: subnets.map(|subnet| subnet.id.clone()).collect(),
        network_id: status.network.as_ref().map(|network| network.id.clone()),
        security_group_id: group.map(|group| group.id),
        tags: cluster.spec.tags.clone(),
        omits_zone: cluster.spec.control_plane_omit_availability_zone == Some(true),
        disables_port_security: cluster.spec.disable_port_security == Some(true),
    }
}

/// Reads what the plan asks for; the way into the cloud is then there for the steps.
pub(super) async fn read(subject: &Subject<'_, OpenStackMachines>, observed: &mut Observed, wanted: Wanted) {
    match wanted {
        Wanted::Servers { is_deleting, is_live } => match project(subject.context, observed).await {
            Ok(project) => {
                let fresher_than = is_live.then_some(subject.scratch.0);
                observed.cloud = Access::Facts(facts(&project, observed, fresher_than).await);
                subject.set_project(project);
            }
            Err(trouble) => {
                let finalizer = is_deleting.then_some(OPENSTACK_MACHINE_FINALIZER);
                observed.cloud = Access::Trouble(clouds::told(trouble, finalizer));
            }
        },
        Wanted::Preflight => {
            let found = match subject.access() {
                Some((project, _)) => preflight(project.session(), observed).await,
                None => Preflight::default(),
            };
            observed.user_data = user_data(subject.context, observed).await;
            if let Some(facts) = observed.cloud.facts_mut() {
                facts.preflight = Some(found);
            }
        }
    }
}

async fn project(context: &Context, observed: &Observed) -> Result<Arc<Project>, CloudTrouble> {
    let namespace = observed.object.namespace().unwrap_or_default();
    let own = observed.object.spec.identity_ref.as_ref();
    let shared = observed.infrastructure.iter().next().and_then(|found| found.identity.as_ref());
    match own.or(shared) {
        Some(identity) => context.clouds.project(&namespace, identity).await,
        None => Err(CloudTrouble {
            reason: "CredentialsNotFound",
            message: "neither spec.identityRef nor an OpenStackCluster of its Cluster names credentials"
                .to_owned(),
            actor: hangar_api::conditions::Actor::ClusterOwner,
        }),
    }
}

/// What carries our owner id: a server whatever its name, for people rename them, and ports by theirs.
async fn facts(project: &Project, observed: &Observed, fresher_than: Option<Instant>) -> CloudFacts {
    let owner_id = observed.owner_id().unwrap_or_default();
    let recorded = observed.object.status.as_ref().and_then(|status| status.instance_id.as_deref());
    let (servers, all) = futures::join!(
        project.servers_of(&owner_id, recorded, fresher_than),
        project.ports_of(&owner_id, fresher_than)
    );
    let named = |name: &str| all.clone().filter(|port| port.name == name);
    let ports = wanted(observed).into_iter().map(|port| (port.name.clone(), named(&port.name))).collect();
    CloudFacts { servers, ports, preflight: None }
}

fn wanted(observed: &Observed) -> Vec<WantedPort> {
    let infrastructure = observed.infrastructure.iter().next().cloned().unwrap_or_default();
    wanted_ports(&observed.server_name(), &observed.object.spec, &infrastructure)
}

/// Everything a new server needs.
async fn preflight(session: &Session, observed: &Observed) -> Preflight {
    let spec = &observed.object.spec;
    let client = session.network();
    let group = async {
        match &spec.server_group {
            Some(param) => find_server_group(session, param).await,
            None => Read::Absent,
        }
    };
    let key = async {
        match spec.ssh_key_name.as_deref().filter(|name| !name.is_empty()) {
            Some(name) => {
                read_all(session.compute().has_key_pair(name).await.map(|has| vec![has]), |has| has)
            }
            None => Read::Absent,
        }
    };
    let (image, flavor, server_group, key) =
        futures::join!(find_image(session, &spec.image), find_flavor(session, spec), group, key);
    let mut found = Preflight { image, flavor, server_group, key, ..Preflight::default() };
    for param in &spec.security_groups {
        found.groups.push(find_group(&client, param).await);
    }
    for port in wanted(observed) {
        let network = match &port.network {
            Some(param) => find_network(&client, param, None).await,
            None => Read::Absent,
        };
        let network_id = network.iter().next().map(|network| network.id.clone());
        let mut subnets = Vec::new();
        for param in port.fixed_ips.iter().filter_map(|fixed| fixed.subnet.as_ref()) {
            subnets.push(find_subnet(&client, param, network_id.as_deref()).await);
        }
        let mut groups = Vec::new();
        for param in &port.security_groups {
            groups.push(find_group(&client, param).await);
        }
        found.wanted.push(PortFacts { network, subnets, groups });
    }
    found
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
