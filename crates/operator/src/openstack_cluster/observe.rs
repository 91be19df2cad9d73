//! Makes the observation of an OpenStackCluster: from the stores first, and from the cloud when the plan asks for it.

use std::collections::BTreeMap;
use std::sync::Arc;

use hangar_api::cluster::v1beta2::Cluster;
use hangar_api::controlplane::v1alpha1::HostedControlPlane;
use hangar_api::infrastructure::v1beta1::{OpenStackCluster, OpenStackClusterSpec};
use hangar_api::names::{CLUSTER_NAME_LABEL, OPENSTACK_CLUSTER_FINALIZER};
use hangar_kit::ObjectKey;
use hangar_kit::watch::Kept;
use hangar_openstack::{
    Filter, NetworkClient, NetworkQuery, NetworkResource, PortQuery, RouterId, RouterQuery, SecurityGroupId,
    SecurityGroupQuery, Session, SubnetId, SubnetQuery,
};
use hangar_plan::flow::Read;
use hangar_plan::openstack::{Access, Group, Network, Port, Router, Subnet, mark};
use hangar_plan::openstack_cluster::{AskCloud, CloudFacts, ClusterFacts, ControlPlane, Observed};

use crate::clouds::{self, CloudId as _, Project, find_network, find_router, find_subnet, read_all};
use crate::context::Context;

/// What the stores show, without a call.
pub(super) fn observe(context: &Context, object: &Kept<OpenStackCluster>) -> Observed {
    let watches = &context.watches;
    let owner = object.owners.iter().find(|owner| owner.is::<Cluster>());
    let cluster = match owner {
        Some(owner) => {
            let key = ObjectKey { namespace: object.key.namespace.clone(), name: owner.name.clone() };
            watches.clusters().get(&key)
        }
        None => Read::Absent,
    };
    let mut observed = Observed {
        now: context.ambient.now(),
        fresh_owner_id: context.ambient.owner_id(&object.key.name),
        settling: context.handles.settling,
        copied_from: clouds::copied_from(watches.openstack_clusters(), object),
        cluster: cluster.map(|cluster| cluster_facts(context, &cluster)),
        machines: Read::Absent,
        cloud: Access::NotAsked,
        project: None,
        troubles: BTreeMap::new(),
        object: object.value.clone(),
    };
    let cluster = ObjectKey { namespace: object.key.namespace.clone(), name: observed.cluster_name() };
    let machines = watches.openstack_machines().by_label(CLUSTER_NAME_LABEL, &cluster);
    observed.machines = machines.map(|machine| machine.key.name.clone());
    observed
}

fn cluster_facts(context: &Context, cluster: &Kept<Cluster>) -> ClusterFacts {
    let control_plane = match &cluster.spec.control_plane_ref {
        None => ControlPlane::Machines,
        // It never has machines.
        Some(reference) if reference.is::<HostedControlPlane>() => ControlPlane::External,
        Some(reference) => match context.foreign.get(cluster.key.namespace_or_empty(), reference) {
            Read::One(referred) if referred.control_plane().is_externally_managed() => ControlPlane::External,
            Read::One(_) => ControlPlane::Machines,
            _ => ControlPlane::Unknown,
        },
    };
    ClusterFacts {
        name: cluster.key.name.clone(),
        is_paused: cluster.spec.paused == Some(true),
        control_plane,
        has_endpoint: cluster.spec.control_plane_endpoint.as_ref().is_some_and(|endpoint| {
            endpoint.host.as_ref().is_some_and(|host| !host.is_empty()) && endpoint.port.is_some()
        }),
    }
}

/// Asks the cloud; the way into it is then there for the steps.
pub(super) async fn read(context: &Context, observed: &mut Observed, ask: AskCloud) -> Option<Arc<Project>> {
    let namespace = observed.object.metadata.namespace.clone().unwrap_or_default();
    match context.clouds.project(&namespace, &observed.object.spec.identity_ref).await {
        Ok((project, place)) => {
            observed.project = Some(place);
            // Several calls at once: too large to be carried around by value.
            let facts = Box::pin(facts(project.session(), observed, ask.is_deleting)).await;
            observed.cloud = Access::Facts(facts);
            Some(project)
        }
        Err(trouble) => {
            let finalizer = ask.is_deleting.then_some(OPENSTACK_CLUSTER_FINALIZER);
            observed.cloud = Access::Trouble(clouds::told(trouble, finalizer));
            None
        }
    }
}

async fn facts(session: &Session, observed: &Observed, is_deleting: bool) -> CloudFacts {
    let client = session.network();
    let spec = &observed.object.spec;
    let owner_mark = mark(&observed.owner_id().unwrap_or_default());
    let groups = async {
        if is_deleting || spec.managed_security_groups.is_some() {
            let query = SecurityGroupQuery { filter: Filter::described(owner_mark.clone()) };
            let mut found = read_all(client.list(&query).await, clouds::group);
            let status = observed.object.status.as_ref();
            let recorded = status.map(|it| [&it.control_plane_security_group, &it.worker_security_group]);
            for group in recorded.into_iter().flatten().flatten() {
                let is_it = |known: &Group| known.id.as_str() == group.id;
                let id = SecurityGroupId::from(group.id.as_str());
                found = with_recorded(
                    &client,
                    found,
                    is_it,
                    &id,
                    clouds::group,
                    |item| &item.description,
                    &owner_mark,
                )
                .await;
            }
            found
        } else {
            Read::Absent
        }
    };
    let found = async {
        if observed.is_managed() {
            managed(&client, observed, &owner_mark).await
        } else if is_deleting {
            NetworkFacts::default()
        } else {
            existing(&client, spec).await
        }
    };
    let externals = async {
        if is_deleting { Read::unknown("not asked") } else { external_networks(&client, spec).await }
    };
    let zones = async {
        let is_recorded =
            observed.object.status.as_ref().is_some_and(|status| !status.failure_domains.is_empty());
        if is_deleting || is_recorded {
            Read::Absent
        } else {
            read_all(session.compute().availability_zones().await, clouds::zone)
        }
    };
    let (groups, found, external_networks, zones) = futures::join!(groups, found, externals, zones);
    let interfaces = interfaces(&client, &found.routers).await;
    let other_ports =
        if is_deleting { ports_on(&client, &found.networks).await } else { Read::unknown("not asked") };
    CloudFacts {
        external_networks,
        networks: found.networks,
        subnets: found.subnets,
        subnet_problems: found.subnet_problems,
        routers: found.routers,
        interfaces,
        groups,
        zones,
        other_ports,
    }
}

struct NetworkFacts {
    networks: Read<Network>,
    subnets: Read<Subnet>,
    subnet_problems: Vec<String>,
    routers: Read<Router>,
}

impl Default for NetworkFacts {
    fn default() -> Self {
        Self {
            networks: Read::Absent,
            subnets: Read::Absent,
            subnet_problems: Vec::new(),
            routers: Read::Absent,
        }
    }
}

/// What carries our mark.
async fn managed(client: &NetworkClient, observed: &Observed, owner_mark: &str) -> NetworkFacts {
    let filter = || Filter::described(owner_mark);
    let (networks, subnets, routers) = futures::join!(
        async {
            let query = NetworkQuery { filter: filter(), is_external: None };
            read_all(client.list(&query).await, clouds::network)
        },
        async {
            let query = SubnetQuery { filter: filter(), ..SubnetQuery::default() };
            read_all(client.list(&query).await, clouds::subnet)
        },
        async { read_all(client.list(&RouterQuery { filter: filter() }).await, clouds::router) },
    );
    let mut found = NetworkFacts { networks, subnets, subnet_problems: Vec::new(), routers };
    let Some(status) = &observed.object.status else { return found };
    if let Some(recorded) = &status.network {
        let is_it = |known: &Network| known.id.as_str() == recorded.id;
        let id = hangar_openstack::NetworkId::from(recorded.id.as_str());
        found.networks = with_recorded(
            client,
            found.networks,
            is_it,
            &id,
            clouds::network,
            |item| &item.description,
            owner_mark,
        )
        .await;
        for recorded in &recorded.subnets {
            let is_it = |known: &Subnet| known.id.as_str() == recorded.id;
            let id = SubnetId::from(recorded.id.as_str());
            found.subnets = with_recorded(
                client,
                found.subnets,
                is_it,
                &id,
                clouds::subnet,
                |item| &item.description,
                owner_mark,
            )
            .await;
        }
    }
    if let Some(recorded) = &status.router {
        let is_it = |known: &Router| known.id.as_str() == recorded.id;
        let id = RouterId::from(recorded.id.as_str());
        found.routers = with_recorded(
            client,
            found.routers,
            is_it,
            &id,
            clouds::router,
            |item| &item.description,
            owner_mark,
        )
        .await;
    }
    found
}

/// A list that does not show what we recorded lags, or is the list of credentials that see less. Making another one each
/// time would go on until the quota is used up, and machines would keep the groups that they were made with. So the one
/// we know is asked for by its id.
async fn with_recorded<R: NetworkResource, T>(
    client: &NetworkClient,
    found: Read<T>,
    is_it: impl Fn(&T) -> bool,
    id: &R,
    convert: impl Fn(R::Item) -> T,
    description: impl Fn(&R::Item) -> &String,
    owner_mark: &str,
) -> Read<T> {
    if found.is_unknown() || found.iter().any(is_it) {
        return found;
    }
    match client.get(id).await {
        Ok(None) => found,
        Ok(Some(item)) if description(&item).ends_with(owner_mark) => {
            Read::found(found.known().into_iter().flatten().chain([convert(item)]))
        }
        Ok(Some(_)) => {
            Read::unknown(format!("{} {} of this cluster exists without our mark", R::KIND, id.as_ref()))
        }
        Err(error) => Read::unknown(error.to_string()),
    }
}

/// What the specification names.
async fn existing(client: &NetworkClient, spec: &OpenStackClusterSpec) -> NetworkFacts {
    let mut found = NetworkFacts::default();
    if let Some(param) = &spec.router {
        found.routers = find_router(client, param).await;
    }
    if let Some(param) = &spec.network {
        found.networks = find_network(client, param, None).await;
    }
    let network_id = found.networks.iter().next().map(|network| network.id.clone());
    if spec.subnets.is_empty() {
        if let Some(id) = &network_id {
            let query = SubnetQuery { network_id: Some(id.to_cloud()), ..SubnetQuery::default() };
            found.subnets = read_all(client.list(&query).await, clouds::subnet);
        }
        return found;
    }
    let mut subnets = Vec::new();
    for (index, param) in spec.subnets.iter().enumerate() {
        match find_subnet(client, param, network_id.as_ref()).await {
            Read::One(subnet) => subnets.push(subnet),
            Read::Absent => found.subnet_problems.push(format!("spec.subnets[{index}]: no subnet matches")),
            Read::Many(many) => {
                found.subnet_problems.push(format!("spec.subnets[{index}]: {} subnets match", many.len()));
            }
            Read::Unknown(unknown) => {
                found.subnets = Read::Unknown(unknown);
                return found;
            }
        }
    }
    // Subnets alone name their network.
    if spec.network.is_none()
        && let Some(subnet) = subnets.first()
    {
        let id = subnet.network_id.to_cloud();
        let answer = client.get(&id).await.map(|network| network.into_iter().collect());
        found.networks = read_all(answer, clouds::network);
    }
    found.subnets = Read::found(subnets);
    found
}

async fn external_networks(client: &NetworkClient, spec: &OpenStackClusterSpec) -> Read<Network> {
    match (&spec.external_network, spec.disable_external_network) {
        (_, Some(true)) => Read::Absent,
        (Some(param), _) => find_network(client, param, Some(true)).await,
        (None, _) => {
            let query = NetworkQuery { filter: Filter::default(), is_external: Some(true) };
            read_all(client.list(&query).await, clouds::network)
        }
    }
}

/// Ports that connect routers to subnets, whatever kind of router it is.
async fn interfaces(client: &NetworkClient, routers: &Read<Router>) -> Read<Port> {
    let mut all = Vec::new();
    for router in routers.iter() {
        let query = PortQuery { device_id: Some(router.id.to_string()), ..PortQuery::default() };
        match client.list(&query).await {
            Ok(ports) => all.extend(ports.into_iter().map(clouds::port).filter(is_interface)),
            Err(error) => return Read::unknown(error.to_string()),
        }
    }
    Read::found(all)
}

fn is_interface(port: &Port) -> bool {
    [
        "network:router_interface",
        "network:router_interface_distributed",
        "network:ha_router_replicated_interface",
    ]
    .contains(&port.device_owner.as_str())
}

async fn ports_on(client: &NetworkClient, networks: &Read<Network>) -> Read<Port> {
    let mut all = Vec::new();
    for network in networks.iter() {
        let query = PortQuery { network_id: Some(network.id.to_cloud()), ..PortQuery::default() };
        match client.list(&query).await {
            Ok(ports) => all.extend(ports.into_iter().map(clouds::port)),
            Err(error) => return Read::unknown(error.to_string()),
        }
    }
    Read::found(all)
}
