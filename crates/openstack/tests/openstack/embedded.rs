//! The client against the embedded cloud: the life of one worker, with the calls of the controllers.

use std::time::Duration;

use hangar_cloud::{
    Cloud, Config, Handle,
    driver::RecordingDriver,
    fault::{Effect, FaultRule},
};
use hangar_openstack::{
    CloudConfig, ExternalGateway, Filter, FixedIpRequest, FlavorId, ImageQuery, Network, NetworkClient,
    NetworkCreate, NetworkQuery, Port, PortCreate, PortQuery, RefusalKind, Router, RouterCreate, RouterQuery,
    SecurityGroup, SecurityGroupCreate, SecurityGroupQuery, SecurityGroupRuleCreate, ServerCreate, ServerId,
    ServerNetwork, ServerQuery, Session, SessionOptions, Subnet, SubnetCreate, SubnetQuery, SubnetUpdate,
    UserData,
};

const OWNER: &str = "owned by 0c5b7d0e";

async fn cloud(config: Config) -> Handle {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    Cloud::serve(listener, config, RecordingDriver::new()).await.unwrap()
}

fn session(cloud: &Handle, auth: &str) -> Session {
    let url = cloud.auth_url();
    let yaml = format!("clouds: {{c: {{auth: {{auth_url: '{url}', {auth}}}, region_name: RegionOne}}}}");
    let config = CloudConfig::from_yaml(yaml.as_bytes(), "c").unwrap();
    Session::new(config, SessionOptions::default()).unwrap()
}

fn demo(cloud: &Handle) -> Session {
    session(cloud, "username: demo, password: secret, project_name: demo")
}

struct Place {
    network: Network,
    subnet: Subnet,
    router: Router,
    group: SecurityGroup,
}

/// What an OpenStackCluster makes.
async fn make_place(client: &NetworkClient) -> Place {
    let body =
        NetworkCreate { name: "net".to_owned(), description: OWNER.to_owned(), ..NetworkCreate::default() };
    let network = client.create(&body).await.unwrap();
    let mut body = SubnetCreate::new("subnet", network.id.clone(), "10.6.0.0/24".parse().unwrap());
    body.description = OWNER.into();
    body.dns_nameservers = vec!["192.0.2.53".parse().unwrap()];
    let subnet = client.create(&body).await.unwrap();
    let query = NetworkQuery { is_external: Some(true), ..NetworkQuery::default() };
    let external = client.list(&query).await.unwrap();
    let [external] = external.as_slice() else { panic!("one external network: {external:?}") };
    let gateway = ExternalGateway { network_id: external.id.clone(), addresses: Vec::new() };
    let body = RouterCreate {
        name: "router".to_owned(),
        description: OWNER.to_owned(),
        external_gateway: Some(gateway),
    };
    let router = client.create(&body).await.unwrap();
    assert!(router.external_gateway.as_ref().unwrap().addresses[0].ip_address.is_some());
    client.add_router_interface(&router.id, &subnet.id).await.unwrap();
    let body = SecurityGroupCreate { name: "group".to_owned(), description: OWNER.to_owned() };
    let group = client.create(&body).await.unwrap();
    Place { network, subnet, router, group }
}

async fn make_port(client: &NetworkClient, place: &Place) -> Port {
    let mut body = PortCreate::new("w-0-0", place.network.id.clone());
    body.description = OWNER.into();
    body.fixed_ips = vec![FixedIpRequest { subnet_id: Some(place.subnet.id.clone()), ip_address: None }];
    body.security_group_ids = Some(vec![place.group.id.clone()]);
    client.create(&body).await.unwrap()
}

async fn server_body(session: &Session, port: &Port) -> ServerCreate {
    let query = ImageQuery {
        name: Some("node-v1.34.10".to_owned()),
        tags: vec!["node".to_owned()],
        ..ImageQuery::default()
    };
    let images = session.image().images(&query).await.unwrap();
    assert_eq!(images[0].status, "active");
    assert_eq!(session.image().image(&images[0].id).await.unwrap().as_ref(), Some(&images[0]));
    let flavors = session.compute().flavors().await.unwrap();
    let flavor = flavors.iter().find(|flavor| flavor.name == "small").unwrap();
    let mut body = ServerCreate::new("w-0", flavor.id.clone(), images[0].id.clone());
    body.networks = vec![ServerNetwork::Port(port.id.clone())];
    body.user_data = Some(UserData::new(b"#cloud-config\n").unwrap());
    body.metadata.insert("owner".to_owned(), OWNER.to_owned());
    body.tags = vec!["workers".to_owned()];
    body.has_config_drive = Some(true);
    body
}

async fn until_active(session: &Session, id: &ServerId) {
    // Nothing here takes this long; it only keeps a broken test from hanging.
    let deadline = tokio::time::Instant::now() + Duration::from_mins(5);
    loop {
        let server = session.compute().server(id).await.unwrap().unwrap();
        if server.status == "ACTIVE" {
            return;
        }
        assert!(tokio::time::Instant::now() < deadline, "{server:?}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

async fn until_gone(session: &Session, id: &ServerId) {
    let deadline = tokio::time::Instant::now() + Duration::from_mins(5);
    while session.compute().server(id).await.unwrap().is_some() {
        assert!(tokio::time::Instant::now() < deadline);
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn a_worker_lives_and_leaves_nothing_behind() {
    let cloud = cloud(Config::for_tests()).await;
    let session = demo(&cloud);
    let network = session.network();
    let before = held(&cloud);
    let place = make_place(&network).await;
    let port = make_port(&network, &place).await;
    network.set_tags(&port.id, &["a".to_owned(), "b".to_owned()]).await.unwrap();
    network.set_tags(&place.group.id, &["a".to_owned()]).await.unwrap();

    let body = server_body(&session, &port).await;
    let id = session.compute().create_server(&body).await.unwrap();
    until_active(&session, &id).await;
    let again = session.compute().create_server(&body).await.unwrap_err();
    assert!(again.is_conflict(), "the port guards a lost answer: {again}");
    let query = ServerQuery {
        name: Some("w-0".to_owned()),
        tags: vec!["workers".to_owned()],
        metadata: [("owner".to_owned(), OWNER.to_owned())].into(),
    };
    let servers = session.compute().servers(&query).await.unwrap();
    assert_eq!(servers.iter().map(|server| &server.id).collect::<Vec<_>>(), [&id]);
    assert_eq!(servers[0].addresses["net"][0].address, port.fixed_ips[0].ip_address);
    let filter = Filter { tags: vec!["a".to_owned(), "b".to_owned()], ..Filter::described(OWNER) };
    let query = PortQuery { filter, device_id: Some(id.to_string()), ..PortQuery::default() };
    assert_eq!(network.list(&query).await.unwrap()[0].id, port.id);

    let in_use = network.delete(&place.network.id).await.unwrap_err();
    assert!(in_use.is_conflict(), "{in_use}");
    session.compute().delete_server(&id).await.unwrap();
    until_gone(&session, &id).await;
    session.compute().delete_server(&id).await.unwrap();
    remove(&network, &place, &port).await;
    assert_eq!(held(&cloud), before);
}

/// How much there is of what a worker's life makes.
fn held(cloud: &Handle) -> Vec<usize> {
    let model = cloud.model();
    let (groups, servers) = (model.security_groups.len(), model.servers.len());
    vec![model.networks.len(), model.subnets.len(), model.routers.len(), model.ports.len(), groups, servers]
}

async fn remove(network: &NetworkClient, place: &Place, port: &Port) {
    network.delete(&port.id).await.unwrap();
    assert_eq!(network.get(&port.id).await.unwrap(), None);
    network.remove_router_interface(&place.router.id, &place.subnet.id).await.unwrap();
    network.remove_router_interface(&place.router.id, &place.subnet.id).await.unwrap();
    for _ in 0..2 {
        network.delete(&place.router.id).await.unwrap();
        network.delete(&place.subnet.id).await.unwrap();
        network.delete(&place.network.id).await.unwrap();
        network.delete(&place.group.id).await.unwrap();
    }
}

#[tokio::test]
async fn an_owner_finds_its_own_and_nobody_elses() {
    let cloud = cloud(Config::for_tests()).await;
    let session = demo(&cloud);
    let network = session.network();
    let place = make_place(&network).await;
    let body = NetworkCreate {
        name: "net".to_owned(),
        description: "foreign".to_owned(),
        ..NetworkCreate::default()
    };
    network.create(&body).await.unwrap();
    let filter = Filter::described(OWNER);
    let networks = network.list(&NetworkQuery { filter: filter.clone(), is_external: None }).await.unwrap();
    assert_eq!(networks.iter().map(|network| &network.id).collect::<Vec<_>>(), [&place.network.id]);
    let query = NetworkQuery { filter: Filter::named("net"), is_external: None };
    assert_eq!(network.list(&query).await.unwrap().len(), 2);
    let query = SubnetQuery {
        filter: filter.clone(),
        cidr: Some("10.6.0.0/24".to_owned()),
        ..SubnetQuery::default()
    };
    assert_eq!(network.list(&query).await.unwrap()[0].id, place.subnet.id);
    assert_eq!(network.list(&RouterQuery { filter: filter.clone() }).await.unwrap()[0].id, place.router.id);
    assert_eq!(network.list(&SecurityGroupQuery { filter }).await.unwrap()[0].id, place.group.id);
    let ports =
        PortQuery { device_owner: Some("network:router_interface".to_owned()), ..PortQuery::default() };
    assert_eq!(network.list(&ports).await.unwrap()[0].device_id, place.router.id.as_str());
    let other = self::session(&cloud, "username: other, password: secret, project_name: other");
    assert_eq!(other.network().get(&place.network.id).await.unwrap(), None);
    let update =
        SubnetUpdate { dns_nameservers: Some(vec!["192.0.2.1".parse().unwrap()]), ..SubnetUpdate::default() };
    let changed = network.update(&place.subnet.id, &update).await.unwrap();
    assert_eq!(changed.dns_nameservers, update.dns_nameservers.unwrap());
}

#[tokio::test]
async fn rules_come_and_go_and_an_equal_one_is_a_conflict() {
    let cloud = cloud(Config::for_tests()).await;
    let network = demo(&cloud).network();
    let place = make_place(&network).await;
    let rule = SecurityGroupRuleCreate {
        security_group_id: place.group.id.clone(),
        direction: "ingress".to_owned(),
        ethertype: "IPv4".to_owned(),
        protocol: Some("4".to_owned()),
        port_range_min: None,
        port_range_max: None,
        remote_ip_prefix: None,
        remote_group_id: Some(place.group.id.clone()),
        description: "IP-in-IP".to_owned(),
    };
    let made = network.create(&rule).await.unwrap();
    assert_eq!(made.remote_group_id, Some(place.group.id.clone()));
    assert!(network.create(&rule).await.unwrap_err().is_conflict());
    let group = network.get(&place.group.id).await.unwrap().unwrap();
    assert_eq!(group.rules.len(), 3, "two let everything out from birth");
    network.delete(&made.id).await.unwrap();
    assert_eq!(network.get(&made.id).await.unwrap(), None);
}

#[tokio::test]
async fn refusals_keep_their_meaning() {
    let mut config = Config::for_tests();
    config.quota.network = 0;
    config.quota.instances = 0;
    let cloud = cloud(config).await;
    let session = demo(&cloud);
    let error = session.network().create(&NetworkCreate::default()).await.unwrap_err();
    assert!(error.is_quota() && error.is_refused() && error.is_user_fault(), "{error}");
    assert!(error.refusal().unwrap().request_id.is_some());
    let missing = session.compute().flavor(&FlavorId::from("no-such")).await.unwrap();
    assert_eq!(missing, None);
    assert!(!session.compute().has_key_pair("no-such").await.unwrap());
    let body = ServerCreate::new("w", "no-such".into(), "00000000-0000-0000-0000-000000000000".into());
    let kind = session.compute().create_server(&body).await.unwrap_err().refusal().unwrap().kind;
    assert_eq!(kind, RefusalKind::Invalid);
    let wrong = self::session(&cloud, "username: demo, password: wrong, project_name: demo");
    assert!(wrong.authenticate().await.unwrap_err().is_unauthorized());
    let robot =
        "application_credential_name: robot, application_credential_secret: robot-secret, username: demo";
    let robot = self::session(&cloud, robot);
    assert_eq!(robot.project_id().await.unwrap(), session.project_id().await.unwrap());
    assert_eq!(session.compute().availability_zones().await.unwrap()[0].name, "nova");
}

#[tokio::test]
async fn an_answer_cut_off_by_the_cloud_is_found_by_its_owner() {
    let cloud = cloud(Config::for_tests()).await;
    let network = demo(&cloud).network();
    cloud.arm(FaultRule {
        name: "cut".to_owned(),
        method: Some("POST".to_owned()),
        path: Some("*/networks".to_owned()),
        body: None,
        skip: 0,
        times: Some(1),
        effect: Effect::CutAfter,
    });
    let body =
        NetworkCreate { name: "net".to_owned(), description: OWNER.to_owned(), ..NetworkCreate::default() };
    let error = network.create(&body).await.unwrap_err();
    assert!(error.is_lost(), "{error}");
    assert_eq!(cloud.faults()[0].fired, 1);
    let query = NetworkQuery { filter: Filter::described(OWNER), is_external: None };
    assert_eq!(network.list(&query).await.unwrap().len(), 1);
}
