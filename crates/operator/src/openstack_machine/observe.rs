//! Reads what a plan needs: the stores first, then the cloud; what a new server needs only while there is none.

use std::collections::BTreeMap;

use hangar_api::cluster::v1beta2::Machine;
use hangar_api::infrastructure::v1beta1::{IdentityReference, OpenStackCluster, OpenStackMachine};
use hangar_api::names::{
    CLUSTER_NAME_LABEL, CONTROL_PLANE_LABEL, OPENSTACK_MACHINE_FINALIZER, SECRET_VALUE_KEY,
};
use hangar_kit::ObjectKey;
use hangar_kit::watch::Kept;
use hangar_openstack::{Filter, PortQuery, ServerId, ServerQuery, Session};
use hangar_plan::flow::Read;
use hangar_plan::openstack::{Access, CloudTrouble, OWNER_METADATA_KEY, Port, Server, carries_mark};
use hangar_plan::openstack_machine::{
    CloudFacts, ClusterFacts, InfrastructureFacts, MachineFacts, Observed, PortFacts, Stage, UserData,
    WantedPort, wanted_ports,
};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Secret;
use kube::{Api, ResourceExt as _};

use crate::clouds::{
    self, find_flavor, find_group, find_image, find_network, find_server_group, find_subnet, read_all,
};
use crate::context::Context;

/// What the stores show, and the credentials to use.
pub(super) struct Seen {
    pub(super) observed: Observed,
    identity: Option<IdentityReference>,
}

/// What the stores show, without a call.
pub(super) fn from_stores(context: &Context, object: &Kept<OpenStackMachine>) -> Seen {
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
    let own = object.spec.identity_ref.clone();
    let identity = own.or_else(|| infrastructure.iter().next().map(|found| found.spec.identity_ref.clone()));
    let observed = Observed {
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
    };
    Seen { observed, identity }
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
        subnet_ids: subnets.map(|subnet| subnet.id.clone()).collect(),
        network_id: status.network.as_ref().map(|network| network.id.clone()),
        security_group_id: group.map(|group| group.id),
        tags: cluster.spec.tags.clone(),
        omits_zone: cluster.spec.control_plane_omit_availability_zone == Some(true),
        disables_port_security: cluster.spec.disable_port_security == Some(true),
    }
}

/// Asks the cloud, if it is time for it.
pub(super) async fn complete(context: &Context, seen: &mut Seen) -> Option<Session> {
    let observed = &mut seen.observed;
    let stage = observed.stage();
    if !matches!(stage, Stage::Keep | Stage::Delete) {
        return None;
    }
    let namespace = observed.object.namespace().unwrap_or_default();
    let session = match &seen.identity {
        Some(identity) => context.clouds.session(&namespace, identity).await,
        None => Err(CloudTrouble {
            reason: "CredentialsNotFound",
            message: "neither spec.identityRef nor an OpenStackCluster of its Cluster names credentials"
                .to_owned(),
            actor: hangar_api::conditions::Actor::ClusterOwner,
        }),
    };
    let session = match session {
        Ok(session) => session,
        Err(trouble) if stage == Stage::Delete => {
            observed.cloud = Access::Trouble(clouds::while_deleting(trouble, OPENSTACK_MACHINE_FINALIZER));
            return None;
        }
        Err(trouble) => {
            observed.cloud = Access::Trouble(trouble);
            return None;
        }
    };
    let (servers, ports) = futures::join!(servers(&session, observed), ports(&session, observed));
    let needs_preflight = observed.needs_preflight(&servers);
    let mut facts = CloudFacts {
        servers,
        ports,
        image: Read::unknown("not asked"),
        flavor: Read::unknown("not asked"),
        server_group: Read::Absent,
        key: Read::Absent,
        wanted: Vec::new(),
        groups: Vec::new(),
    };
    if needs_preflight {
        preflight(&session, observed, &mut facts).await;
        observed.user_data = user_data(context, observed).await;
    }
    observed.cloud = Access::Facts(facts);
    Some(session)
}

/// Servers of our name with our owner id; where there is none, the recorded one: people rename servers.
async fn servers(session: &Session, observed: &Observed) -> Read<Server> {
    let owner_id = observed.owner_id().unwrap_or_default();
    let mut query = ServerQuery {
        name: Some(observed.server_name()),
        tags: Vec::new(),
        metadata: BTreeMap::from([(OWNER_METADATA_KEY.to_owned(), owner_id)]),
    };
    let compute = session.compute();
    let mut answer = compute.servers(&query).await;
    let recorded = observed.object.status.as_ref().and_then(|status| status.instance_id.as_deref());
    if let (Ok([]), Some(id)) = (answer.as_deref(), recorded) {
        query.name = None;
        let found = compute.server(&ServerId::from(id)).await;
        answer = found.map(|server| server.into_iter().filter(|server| query.matches(server)).collect());
    }
    read_all(answer, clouds::server)
}

/// Ports of our names with our owner id.
async fn ports(session: &Session, observed: &Observed) -> BTreeMap<String, Read<Port>> {
    let owner_id = observed.owner_id().unwrap_or_default();
    let wanted = wanted(observed);
    let reads = wanted.iter().map(|port| async {
        let query = PortQuery { filter: Filter::named(&port.name), ..PortQuery::default() };
        let answer = session.network().list(&query).await.map(|ports| {
            ports.into_iter().filter(|port| carries_mark(&port.description, &owner_id)).collect::<Vec<_>>()
        });
        (port.name.clone(), read_all(answer, clouds::port))
    });
    futures::future::join_all(reads).await.into_iter().collect()
}

fn wanted(observed: &Observed) -> Vec<WantedPort> {
    let infrastructure = observed.infrastructure.iter().next().cloned().unwrap_or_default();
    wanted_ports(&observed.server_name(), &observed.object.spec, &infrastructure)
}

/// Everything a new server needs.
async fn preflight(session: &Session, observed: &Observed, facts: &mut CloudFacts) {
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
    (facts.image, facts.flavor, facts.server_group, facts.key) =
        futures::join!(find_image(session, &spec.image), find_flavor(session, spec), group, key);
    for param in &spec.security_groups {
        facts.groups.push(find_group(&client, param).await);
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
        facts.wanted.push(PortFacts { network, subnets, groups });
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
