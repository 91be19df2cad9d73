use std::sync::atomic::{AtomicUsize, Ordering};

use futures::future::join_all;
use hangar_cloud::driver::RecordingDriver;
use hangar_cloud::model::{Caller, Draw, Model, NewNetwork, NewPort, NewServer, Standard};
use hangar_cloud::{Cloud, Config, Handle};
use hangar_openstack::{CloudConfig, PortCreate, SessionOptions};
use jiff::Timestamp;
use serde_json::json;

use super::*;

/// Moves the clock of the runtime ahead; it goes on by itself, because sockets take real time.
async fn later(time: Duration) {
    tokio::time::pause();
    tokio::time::advance(time).await;
    tokio::time::resume();
}

/// A cloud where the project `demo` has so many machines: a server and a port each.
async fn cloud(machines: usize) -> (Handle, Project) {
    let path = std::env::temp_dir().join(format!("hangar-project-{}", uuid::Uuid::new_v4()));
    let config = Config { state_file: Some(path.clone()), ..Config::for_tests() };
    let (mut model, mut draw) = (Model::default(), Draw::random(Timestamp::now()));
    model.seed(&config, &mut draw).unwrap();
    let of_demo = |id: &String, name: &String| (name == "demo").then(|| id.clone());
    let project = model.projects.iter().find_map(|(id, it)| of_demo(id, &it.name)).unwrap();
    let user = model.users.iter().find_map(|(id, it)| of_demo(id, &it.name)).unwrap();
    let caller = Caller { user, project: project.clone(), is_admin: false };
    let network = NewNetwork {
        standard: Standard::new(&project, "net", "", &draw),
        admin_state_up: true,
        mtu: None,
        port_security_enabled: true,
    };
    let network = model.create_network(network, &mut draw).unwrap();
    for index in 0..machines {
        let (name, owner_id) = (format!("w-{index}"), format!("owner-{index}"));
        let standard = Standard::new(&project, &name, &format!("mine. {}", mark(&owner_id)), &draw);
        model.create_port(NewPort::plain(standard, network, "", ""), &mut draw).unwrap();
        let server = server(&model, &name, [(OWNER_METADATA_KEY.to_owned(), owner_id)].into());
        model.create_server(&caller, server, &mut draw).unwrap();
    }
    std::fs::write(&path, json!({"format": 1, "model": model}).to_string()).unwrap();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let cloud = Cloud::serve(listener, config, RecordingDriver::new()).await.unwrap();
    let auth =
        format!("{{auth_url: '{}', username: demo, password: secret, project_name: demo}}", cloud.auth_url());
    let config = CloudConfig::from_yaml(format!("clouds: {{c: {{auth: {auth}}}}}").as_bytes(), "c").unwrap();
    let session = Session::new(config, SessionOptions::default()).unwrap();
    std::fs::remove_file(path).unwrap();
    (cloud, Project::new(session, Arc::default()))
}

fn server(model: &Model, name: &str, metadata: BTreeMap<String, String>) -> NewServer {
    NewServer {
        name: name.to_owned(),
        description: None,
        image: model.images.keys().next().unwrap().to_string(),
        flavor: model.flavors.keys().next().unwrap().clone(),
        networks: Some(Vec::new()),
        security_groups: Vec::new(),
        metadata,
        tags: std::collections::BTreeSet::new(),
        user_data: None,
        config_drive: false,
        key_name: None,
        zone: None,
        group: None,
        fails_with: None,
    }
}

fn calls(cloud: &Handle) -> Vec<String> {
    cloud.calls().into_iter().map(|call| format!("{} {}", call.method, call.path)).collect()
}

#[tokio::test]
async fn at_rest_the_number_of_calls_does_not_depend_on_the_machines() {
    const REFRESHES: usize = 5;
    let mut seen = Vec::new();
    // Nova's page is a thousand, and says that there is more when it is full.
    for machines in [10, 999] {
        let (cloud, project) = cloud(machines).await;
        for _ in 0..REFRESHES {
            let one = async |index: usize| {
                let owner_id = format!("owner-{index}");
                let (Read::One(server), Read::One(port)) =
                    (project.servers_of(&owner_id, None).await, project.ports_of(&owner_id).await)
                else {
                    panic!("one of each, of {owner_id}")
                };
                assert_eq!((server.name, port.name), (format!("w-{index}"), format!("w-{index}")));
            };
            join_all((0..machines).map(one)).await;
            later(REFRESH).await;
        }
        seen.push(calls(&cloud).len());
        cloud.shutdown().await;
    }
    // A login, and two lists each time.
    assert_eq!(seen, [1 + 2 * REFRESHES; 2]);
}

#[tokio::test]
async fn what_was_read_before_a_write_does_not_count_for_its_owner() {
    let (cloud, project) = cloud(2).await;
    assert!(project.ports_of("new").await.is_absent());
    let network = project.session().network();
    let id = network.list(&hangar_openstack::NetworkQuery::default()).await.unwrap();
    let id = id.into_iter().find(|network| network.name == "net").unwrap().id;
    for name in ["b", "a"] {
        let body = PortCreate { description: mark("new"), ..PortCreate::new(name, id.clone()) };
        network.create(&body).await.unwrap();
    }
    assert!(project.ports_of("new").await.is_absent(), "nobody said that something was written");
    drop(project.writing("new"));
    let before = calls(&cloud).len();
    assert!(matches!(project.ports_of("owner-1").await, Read::One(_)));
    assert_eq!(calls(&cloud).len(), before, "the others are content with what there is");
    let names: Vec<_> = project.ports_of("new").await.iter().map(|port| port.name.clone()).collect();
    assert_eq!(names, ["a", "b"]);
    project.ports_of("new").await;
    assert_eq!(calls(&cloud).len(), before + 1, "one list is enough");
}

/// A pass that waited for a list would keep a worker from the others: all are told when it is there.
#[tokio::test]
async fn those_who_want_newer_lists_do_not_wait_and_are_woken_together() {
    let (cloud, project) = cloud(2).await;
    let (woken, project) = (Arc::new(Mutex::new(Vec::new())), Arc::new(project));
    let told = Arc::clone(&woken);
    project.listeners.add(move |key| told.lock().unwrap().push(key.name.clone()));
    let owners: Vec<String> = (0..1000).map(|index| format!("owner-{index}")).collect();
    let keys: Vec<ObjectKey> = owners.iter().map(|owner| ObjectKey::namespaced("ns", owner)).collect();
    for (owner, key) in owners.iter().zip(&keys) {
        assert!(!project.has_newer_lists(owner, key));
    }
    while woken.lock().unwrap().len() < keys.len() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(calls(&cloud).len(), 1 + 2, "a login and two lists for all");
    for (owner, key) in owners.iter().zip(&keys) {
        assert!(project.has_newer_lists(owner, key), "what was asked for is there");
    }
    assert!(matches!(project.ports_of("owner-1").await, Read::One(_)));
    assert_eq!(calls(&cloud).len(), 1 + 2);
    assert!(!project.has_newer_lists("owner-1", &keys[1]), "who asks again wants newer ones");
}

#[tokio::test]
async fn a_recorded_server_is_found_by_its_id_unless_it_is_somebody_else_s() {
    let (cloud, project) = cloud(2).await;
    let Read::One(other) = project.servers_of("owner-1", None).await else { panic!("it is there") };
    assert!(project.servers_of("owner-9", Some(&other.id)).await.is_absent());
    let (mut body, compute) = (None, project.session().compute());
    for server in compute.servers(&ServerQuery::default()).await.unwrap() {
        let image = cloud.model().images.keys().next().unwrap().to_string().as_str().into();
        body.get_or_insert(hangar_openstack::ServerCreate::new(server.name, "".into(), image));
    }
    let mut body = body.unwrap();
    body.flavor = cloud.model().flavors.keys().next().unwrap().as_str().into();
    let nobodys = ServerId::from_cloud(&compute.create_server(&body).await.unwrap());
    drop(project.writing("owner-9"));
    let found = project.servers_of("owner-9", Some(&nobodys)).await;
    assert!(matches!(&found, Read::One(server) if server.id == nobodys), "{found:?}");
}

fn entries(name: &'static str) -> std::vec::IntoIter<Entry<&'static str>> {
    vec![Entry { owner_id: "me".to_owned(), id: "1".to_owned(), item: name }].into_iter()
}

fn unreached() -> Error {
    let call = hangar_openstack::Call {
        verb: hangar_openstack::Verb::List,
        service: hangar_openstack::Service::Compute,
        kind: "server",
        name: None,
        id: None,
    };
    Error::Unreached { call, why: "no route".to_owned() }
}

#[tokio::test(start_paused = true)]
async fn while_many_build_lists_are_read_at_a_bounded_rate() {
    for machines in [10, 1000] {
        let (view, lists) = (View::new(), AtomicUsize::new(0));
        let list = async || {
            lists.fetch_add(1, Ordering::Relaxed);
            tokio::time::sleep(Duration::from_secs(1)).await;
            Ok(entries("server"))
        };
        let end = Instant::now() + Duration::from_secs(120);
        let build = async |_| {
            while Instant::now() < end {
                view.read(Some(Instant::now()), list).await.unwrap();
            }
        };
        join_all((0..machines).map(build)).await;
        let (lists, most) = (lists.into_inner(), BURST as usize + 120 / 4 + 1);
        assert!((20..=most).contains(&lists), "{lists} lists for {machines} machines in two minutes");
    }
}

#[tokio::test(start_paused = true)]
async fn a_list_that_cannot_be_read_makes_all_unknown_in_the_end_and_nothing_absent() {
    let (view, lists) = (View::new(), AtomicUsize::new(0));
    let first = view.read(None, async || Ok(entries("server"))).await.unwrap();
    let fails = async || {
        lists.fetch_add(1, Ordering::Relaxed);
        Err::<std::vec::IntoIter<Entry<&str>>, _>(unreached())
    };
    while first.begun.elapsed() < STALE {
        assert_eq!(view.read(None, fails).await.unwrap().of("me"), ["server"]);
        assert!(
            view.read(Some(first.begun), fails).await.is_err(),
            "who wants to know better learns nothing"
        );
        tokio::time::advance(Duration::from_secs(1)).await;
    }
    let unknown = view.read(None, fails).await.err().unwrap();
    assert_eq!(unknown.why, "list compute server: not sent: no route");
    let tries = lists.load(Ordering::Relaxed);
    assert!(tries <= 180 / 5 + 1, "{tries} tries in three minutes");
    tokio::time::advance(FAILED).await;
    assert_eq!(view.read(None, async || Ok(entries("back"))).await.unwrap().of("me"), ["back"]);
}

/// One who waits for a cloud that hangs is enough.
#[tokio::test(start_paused = true)]
async fn nobody_waits_for_a_list_who_can_do_without() {
    let view = View::new();
    let hangs = async || {
        tokio::time::sleep(Duration::from_secs(60)).await;
        Err::<std::vec::IntoIter<Entry<&str>>, _>(unreached())
    };
    view.read(None, async || Ok(entries("server"))).await.unwrap();
    tokio::time::advance(REFRESH).await;
    let started = Instant::now();
    let others = async {
        tokio::task::yield_now().await;
        assert!(view.read(None, hangs).await.is_ok());
        assert_eq!(started.elapsed(), Duration::ZERO);
    };
    tokio::join!(view.read(None, hangs), others).0.unwrap();
    tokio::time::advance(STALE).await;
    let started = Instant::now();
    let others = async {
        tokio::task::yield_now().await;
        assert!(view.read(None, hangs).await.is_err(), "it is known already that it fails");
        assert_eq!(started.elapsed(), Duration::ZERO);
    };
    assert!(tokio::join!(view.read(None, hangs), others).0.is_err());
}
