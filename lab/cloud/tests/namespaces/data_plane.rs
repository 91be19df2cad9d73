//! Tests of packets: who reaches whom, and with which source address.

use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

use hangar_cloud::driver::Event;
use hangar_machine::net::Netns;

use crate::support::{Told, bench};
use crate::world::{ROUTER, add_server, allow, fixed, port_id, rule, server_id, tcp, topology};

/// Only for what never comes: what is sent again comes the next time.
const PATIENCE: Duration = Duration::from_mins(1);
/// What is dropped stays dropped, however long one waits.
const SHORT: Duration = Duration::from_millis(700);

fn netns(driver: &Told<'_>, last: u8) -> Netns {
    driver.driver.machine(server_id(last)).unwrap().netns()
}

fn to(address: impl Into<IpAddr>, port: u16) -> SocketAddr {
    SocketAddr::new(address.into(), port)
}

/// Who the listener says has called, if the connection comes about.
fn call(from: &Netns, listener: &TcpListener, target: SocketAddr, patience: Duration) -> Option<IpAddr> {
    let stream = from.connect_tcp(target, patience).ok()?;
    let (_, peer) = listener.accept().unwrap();
    drop(stream);
    Some(peer.ip())
}

#[test]
fn security_groups_decide_who_is_reached() {
    let bench = bench("groups", 10);
    let mut driver = bench.driver();
    let mut world = topology(10);
    let (one, two) = (add_server(&mut world, 10, "plain"), add_server(&mut world, 11, "plain"));
    assert_eq!(driver.realise(&world), [Event::Active(one), Event::Active(two)]);
    assert_eq!(driver.realise(&world), [], "nothing new, nothing said");
    let (first, second) = (netns(&driver, 10), netns(&driver, 11));
    let listener = second.listen_tcp(to(fixed(11), 7000)).unwrap();
    let closed = second.listen_tcp(to(fixed(11), 7001)).unwrap();
    let target = to(fixed(11), 7000);
    assert_eq!(call(&first, &listener, target, SHORT), None, "nothing lets it in");

    let strict = world.clone();
    allow(&mut world, tcp(7000));
    driver.realise(&world);
    assert_eq!(call(&first, &listener, target, PATIENCE), Some(fixed(10).into()));
    assert_eq!(call(&first, &closed, to(fixed(11), 7001), SHORT), None, "only that port");

    // A connection that lives ends when its permission does, and goes on when that comes back.
    let mut stream = first.connect_tcp(target, PATIENCE).unwrap();
    let (mut served, _) = listener.accept().unwrap();
    driver.realise(&strict);
    stream.write_all(b"late").unwrap();
    served.set_read_timeout(Some(SHORT)).unwrap();
    let mut buffer = [0; 4];
    assert!(served.read_exact(&mut buffer).is_err(), "the connection was not forgotten");
    driver.realise(&world);
    served.set_read_timeout(Some(PATIENCE)).unwrap();
    served.read_exact(&mut buffer).unwrap();
    assert_eq!(&buffer, b"late");

    // Members of a group, by group.
    let mut by_group = strict.clone();
    let members =
        hangar_cloud::topology::SecurityRule { remote_group: Some(crate::world::GROUP), ..rule(true) };
    allow(&mut by_group, members);
    driver.realise(&by_group);
    assert_eq!(call(&first, &closed, to(fixed(11), 7001), PATIENCE), Some(fixed(10).into()));
    let router = bench.environment().netns(&hangar_machine::Name::new(format!("router-{ROUTER}")).unwrap());
    assert_eq!(call(&router, &closed, to(fixed(11), 7001), SHORT), None, "the router is no member");
}

#[test]
fn nobody_sends_as_somebody_else() {
    let bench = bench("spoofing", 11);
    let mut driver = bench.driver();
    let mut world = topology(11);
    add_server(&mut world, 10, "plain");
    add_server(&mut world, 11, "plain");
    allow(&mut world, rule(true));
    driver.realise(&world);
    let (first, second) = (netns(&driver, 10), netns(&driver, 11));
    first.network(|network| network.add_address("eth0", "10.6.0.99/24".parse().unwrap())).unwrap();
    let receiver = second.bind_udp(to(fixed(11), 7000)).unwrap();
    receiver.set_read_timeout(Some(PATIENCE)).unwrap();
    let send = |from: u8, text: &[u8]| {
        let socket = first.bind_udp(to(fixed(from), 0)).unwrap();
        socket.send_to(text, to(fixed(11), 7000)).unwrap();
    };
    let mut buffer = [0; 16];
    // The neighbour is known from here on, so nothing waits for a look-up and overtakes.
    send(10, b"before");
    receiver.recv_from(&mut buffer).unwrap();
    send(99, b"false");
    send(10, b"true");
    let (length, from) = receiver.recv_from(&mut buffer).unwrap();
    assert_eq!((&buffer[..length], from.ip()), (&b"true"[..], IpAddr::V4(fixed(10))));
    // An allowed pair makes it legitimate.
    world.ports.get_mut(&port_id(10)).unwrap().allowed_pairs.push("10.6.0.96/29".parse().unwrap());
    driver.realise(&world);
    send(99, b"now");
    let (_, from) = receiver.recv_from(&mut buffer).unwrap();
    assert_eq!(from.ip(), IpAddr::V4(fixed(99)));
}

#[test]
fn routers_lead_outside_and_floating_addresses_in() {
    let bench = bench("router", 12);
    let mut driver = bench.driver();
    let mut world = topology(12);
    add_server(&mut world, 10, "plain");
    add_server(&mut world, 11, "plain");
    allow(&mut world, tcp(7000));
    driver.realise(&world);
    let (first, second) = (netns(&driver, 10), netns(&driver, 11));
    let outside = bench.fabric.netns();
    let gateway = [100, 121, 12, 1];
    let floating: IpAddr = [100, 121, 12, 77].into();

    let listener = outside.listen_tcp(to(gateway, 8000)).unwrap();
    let seen = call(&first, &listener, to(gateway, 8000), PATIENCE);
    assert_eq!(seen, Some([100, 121, 12, 50].into()), "the outside sees the router");

    world.routers.get_mut(&ROUTER).unwrap().floating.insert(floating, fixed(11).into());
    driver.realise(&world);
    let inner = second.listen_tcp(to(fixed(11), 7000)).unwrap();
    let seen = call(&outside, &inner, to(floating, 7000), PATIENCE);
    assert_eq!(seen, Some(gateway.into()), "the caller is seen as it is");
    let seen = call(&first, &inner, to(floating, 7000), PATIENCE);
    assert_eq!(seen, Some([100, 121, 12, 50].into()), "back in through the same router");
    let seen = call(&second, &listener, to(gateway, 8000), PATIENCE);
    assert_eq!(seen, Some(floating), "who has a floating address goes out by it");

    // It moves: the new owner answers, the old one keeps no connection.
    let kept = outside.connect_tcp(to(floating, 7000), PATIENCE).unwrap();
    let (mut served, _) = inner.accept().unwrap();
    world.routers.get_mut(&ROUTER).unwrap().floating.insert(floating, fixed(10).into());
    driver.realise(&world);
    let other = first.listen_tcp(to(fixed(10), 7000)).unwrap();
    assert_eq!(call(&outside, &other, to(floating, 7000), PATIENCE), Some(gateway.into()));
    (&kept).write_all(b"lost").unwrap();
    served.set_read_timeout(Some(SHORT)).unwrap();
    assert!(served.read_exact(&mut [0; 4]).is_err(), "the old connection still leads to the old owner");

    world.routers.get_mut(&ROUTER).unwrap().floating.clear();
    driver.realise(&world);
    assert_eq!(call(&outside, &other, to(floating, 7000), SHORT), None);
}

#[test]
fn machines_are_told_who_they_are() {
    let bench = bench("metadata", 13);
    let mut driver = bench.driver();
    let mut world = topology(13);
    let id = add_server(&mut world, 10, "plain");
    add_server(&mut world, 11, "plain");
    driver.realise(&world);
    let ask = |last: u8, path: &str| {
        let target = to([169, 254, 169, 254], 80);
        let mut stream: TcpStream = netns(&driver, last).connect_tcp(target, PATIENCE).unwrap();
        write!(stream, "GET {path} HTTP/1.1\r\nHost: metadata\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        (head.lines().next().unwrap().to_owned(), body.to_owned())
    };
    let (status, body) = ask(10, "/openstack/latest/meta_data.json");
    assert_eq!(status, "HTTP/1.1 200 OK");
    let document: serde_json::Value = serde_json::from_str(&body).unwrap();
    assert_eq!(document["uuid"], id.to_string());
    assert_eq!(document["hostname"], "node-10");
    assert_eq!(ask(11, "/latest/meta-data/local-ipv4").1, "10.6.0.11");
    assert_eq!(ask(11, "/openstack/latest/user_data").0, "HTTP/1.1 404 Not Found");
    let machine = driver.driver.machine(id).unwrap();
    assert_eq!(machine.run(["hostname"]).unwrap().trim(), "node-10");
    assert_eq!(machine.run(["cat", "/etc/resolv.conf"]).unwrap().trim(), "nameserver 100.121.0.9");
}
