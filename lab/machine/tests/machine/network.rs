//! Machines reach each other, their gateway and the host, and nothing else.

use std::{
    io::{Read, Write},
    path::Path,
    process::Command,
    time::Duration,
};

use hangar_machine::{
    Error,
    net::{FabricSpec, Netns, Network, Route, VethEnd, nft::Nft},
};

use crate::{
    packages, ping,
    support::{PROGRAM, bench, eventually, fabric, fabric_spec, machine, name, sh},
};

#[test]
fn machines_reach_each_other_and_the_host() {
    let bench = bench();
    let environment = bench.environment("reach");
    let fabric = fabric(&environment, 31);
    let one = machine(&environment, "one", &fabric, 10);
    let two = machine(&environment, "two", &fabric, 11);
    let address = |last: u8| [100, 120, 31, last].into();
    for target in [1, 2, 10, 11] {
        assert!(ping::answers(&one.netns(), address(target)), "one does not reach .{target}");
        assert!(ping::answers(&two.netns(), address(target)), "two does not reach .{target}");
        assert!(target == 2 || ping::answers_here(address(target)), "the host does not reach .{target}");
    }
    assert!(!ping::answers(&one.netns(), address(99)), "nobody has this address");
    // A real program inside one machine, a socket opened in the other's namespace.
    let listener = two.netns().listen_tcp("100.120.31.11:7000".parse().unwrap()).unwrap();
    let server = std::thread::spawn(move || {
        let (mut stream, peer) = listener.accept().unwrap();
        stream.write_all(b"greetings").unwrap();
        peer.ip()
    });
    let line = "exec 3<>/dev/tcp/100.120.31.11/7000; cat <&3";
    assert_eq!(one.run(["/bin/bash", "-c", line]).unwrap(), "greetings");
    assert_eq!(server.join().unwrap().to_string(), "100.120.31.10");
    // The addresses of a machine that is gone can be used at once, with another hardware address.
    one.delete().unwrap();
    let again = machine(&environment, "again", &fabric, 10);
    assert!(ping::answers(&two.netns(), address(10)));
    again.delete().unwrap();
    two.delete().unwrap();
    environment.delete_fabric(&name("private")).unwrap();
    bench.finish();
}

#[test]
fn environments_live_side_by_side() {
    let bench = bench();
    let (east, west) = (bench.environment("east"), bench.environment("west"));
    let fabrics = (fabric(&east, 32), fabric(&west, 33));
    let in_east = machine(&east, "w1", &fabrics.0, 10);
    let in_west = machine(&west, "w1", &fabrics.1, 10);
    assert_ne!(fabrics.0.host_link(), fabrics.1.host_link());
    assert!(ping::answers_here([100, 120, 32, 10].into()) && ping::answers_here([100, 120, 33, 10].into()));
    assert!(!ping::answers(&in_east.netns(), [100, 120, 33, 10].into()), "environments are not connected");
    // The same range a second time is refused, and both are named.
    let third = bench.environment("third");
    let error = third.create_fabric(fabric_spec(32)).unwrap_err();
    assert!(matches!(error, Error::RangeInUse { .. }));
    let text = error.to_string();
    for part in ["100.120.32.0/24", "100.120.32.2/24", &fabrics.0.host_link().unwrap(), "hangar east private"]
    {
        assert!(text.contains(part), "{part:?} is not in {text:?}");
    }
    assert_eq!(third.fabrics().unwrap().len(), 0, "a refused network left something");
    // Deleting one leaves the other alone.
    in_east.delete().unwrap();
    east.delete_fabric(&name("private")).unwrap();
    assert_eq!(sh(&in_west, "hostname"), "w1");
    assert!(ping::answers_here([100, 120, 33, 10].into()));
    in_west.delete().unwrap();
    west.delete_fabric(&name("private")).unwrap();
    bench.finish();
}

#[test]
fn a_fabric_is_repaired_but_not_changed() {
    let bench = bench();
    let environment = bench.environment("repair");
    let made = fabric(&environment, 34);
    let link = made.host_link().unwrap();
    Network::here().unwrap().delete(&link).unwrap();
    fabric(&environment, 34);
    assert!(ping::answers_here([100, 120, 34, 1].into()));
    let error = environment.create_fabric(fabric_spec(35)).unwrap_err();
    assert!(matches!(error, Error::NameTaken { .. }), "{error}");
    assert!(made.nic("eth0", [100, 120, 34, 2].into()).is_err(), "the host's address was given away");
    assert!(made.nic("eth0", [100, 120, 35, 9].into()).is_err(), "an address outside the range was taken");
    environment.delete_fabric(&name("private")).unwrap();
    assert!(!environment.delete_fabric(&name("private")).unwrap());
    bench.finish();
}

/// A router between two bridged networks with overlapping users of one name space: what a cloud is made of.
#[test]
fn building_blocks_make_a_router() {
    let bench = bench();
    let place = tempfile::tempdir_in("/run").unwrap();
    let netns = |name: &str| Netns::at(place.path().join(name));
    let all = ["left", "right", "router"].map(netns);
    for one in &all {
        one.create().unwrap();
        assert!(matches!(one.create(), Err(Error::NameTaken { .. })));
    }
    let [left, right, router] = &all;
    for (side, link, subnet) in [(left, "r0", 1), (right, "r1", 2)] {
        let peer = side.open().unwrap();
        let here = VethEnd { name: link.to_owned(), ..VethEnd::default() };
        let there = VethEnd { name: "eth0".to_owned(), mac: Some([2, 0, 0, 0, 0, subnet]), mtu: Some(1400) };
        router
            .network(|network| {
                network.add_veth(&here, &there, Some(&peer))?;
                network.add_address(link, format!("10.9.{subnet}.1/24").parse().unwrap())?;
                network.set_up(link)
            })
            .unwrap();
        side.network(|network| {
            network.add_address("eth0", format!("10.9.{subnet}.5/24").parse().unwrap())?;
            network.set_up("eth0")?;
            let state = network.link("eth0")?.unwrap();
            assert_eq!(state.mac, [2, 0, 0, 0, 0, subnet]);
            network.add_route(&Route::default_via(format!("10.9.{subnet}.1").parse().unwrap()))
        })
        .unwrap();
    }
    let far = [10, 9, 2, 5].into();
    router.set_sysctl("net.ipv4.ip_forward", "0").unwrap();
    assert!(!ping::answers(left, far));
    router.set_sysctl("ipv4/ip_forward", "1").unwrap();
    assert!(ping::answers(left, far));
    // Rules inside one namespace: translation as a floating address has it.
    let nft = packages::nft();
    nft.apply(
        router,
        "table ip nat {\nchain pre {\ntype nat hook prerouting priority -100\nip daddr 10.9.1.77 dnat to 10.9.2.5\n}\n}\n",
    )
    .unwrap();
    router.network(|network| network.add_address("r0", "10.9.1.77/24".parse().unwrap())).unwrap();
    let listener = right.listen_tcp("10.9.2.5:80".parse().unwrap()).unwrap();
    let server = std::thread::spawn(move || listener.accept().unwrap().0.write_all(b"yes").unwrap());
    let mut stream = left.connect_tcp("10.9.1.77:80".parse().unwrap(), Duration::from_mins(1)).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert_eq!(answer, "yes");
    server.join().unwrap();
    drop(stream);
    let error = nft.apply(router, "table ip nat { nonsense }").unwrap_err();
    assert!(matches!(error, Error::Program { .. }), "{error}");
    assert!(!Nft::new("/no/such/nft").is_usable());
    router
        .network(|network| {
            network.delete_address("r0", "10.9.1.77/24".parse().unwrap())?;
            network.delete_address("r0", "10.9.1.77/24".parse().unwrap())?;
            assert!(network.delete("r1")?);
            assert!(!network.delete("r1")?);
            Ok(())
        })
        .unwrap();
    eventually("the other end to go", || right.network(|network| network.link("eth0")).unwrap().is_none());
    for one in &all {
        assert!(one.delete().unwrap());
        assert!(!one.delete().unwrap());
        assert!(!one.exists());
    }
    drop(place);
    bench.finish();
}

/// A host of our own making with an uplink to a world, so that the outside is a namespace too. The host is 203.0.113.2,
/// the world 203.0.113.1.
fn host_and_world(place: &Path) -> (Netns, Netns) {
    let (host, world) = (Netns::at(place.join("host")), Netns::at(place.join("world")));
    host.create().unwrap();
    world.create().unwrap();
    let peer = world.open().unwrap();
    let uplink = VethEnd { name: "uplink".to_owned(), ..VethEnd::default() };
    let far = VethEnd { name: "eth0".to_owned(), ..VethEnd::default() };
    host.network(|network| {
        network.add_veth(&uplink, &far, Some(&peer))?;
        network.add_address("uplink", "203.0.113.2/24".parse().unwrap())?;
        network.set_up("uplink")
    })
    .unwrap();
    world
        .network(|network| {
            network.add_address("eth0", "203.0.113.1/24".parse().unwrap())?;
            network.set_up("eth0")
        })
        .unwrap();
    (host, world)
}

#[test]
fn names_are_asked_on_the_gateway_by_udp() {
    let bench = bench();
    let place = tempfile::tempdir_in("/run").unwrap();
    let (host, world) = host_and_world(place.path());
    let environment = bench.environment("names");
    host.network(|network| network.add_route(&Route::default_via("203.0.113.1".parse().unwrap()))).unwrap();
    // A resolver that speaks UDP alone, as many small networks have.
    let server = world.bind_udp("203.0.113.1:53".parse().unwrap()).unwrap();
    std::thread::spawn(move || {
        let mut question = [0; 512];
        let (length, client) = server.recv_from(&mut question).unwrap();
        server.send_to(&[&question[..length], b"answered"].concat(), client).unwrap();
    });

    // The relay reads what the host's own programs read: here, in a mount namespace, a file of ours. What is mounted
    // there is seen by nobody else, so everything happens in it.
    let configuration = place.path().join("resolv.conf");
    std::fs::write(&configuration, "nameserver 203.0.113.1\n").unwrap();
    let script = r#"
        set -e
        mount --bind "$1" /etc/resolv.conf
        shift
        "$@" create-fabric private --outside --gateway 100.120.37.1/24 --host 100.120.37.2 >/dev/null
        exec 3<>/dev/udp/100.120.37.1/3153
        printf '\x12\x34\x01 a question' >&3
        timeout 30 dd bs=512 count=1 status=none <&3
        "$@" delete-fabric private >/dev/null
    "#;
    let mut command = Command::new("unshare");
    command
        .args(["--mount", "--propagation", "private", "bash", "-c", script, "bash"])
        .arg(&configuration)
        .args([PROGRAM, "--state", bench.state.path().to_str().unwrap()])
        .args(["--environment", environment.name().as_str()])
        .envs(packages::nft_environment());
    let output = host.output(&mut command).unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let answer = String::from_utf8_lossy(&output.stdout);
    assert_eq!(answer, "\u{12}4\u{1} a questionanswered");

    host.delete().unwrap();
    world.delete().unwrap();
    drop(place);
    bench.finish();
}

#[test]
fn machines_reach_the_outside_where_the_host_can() {
    let bench = bench();
    let place = tempfile::tempdir_in("/run").unwrap();
    let (host, world) = host_and_world(place.path());
    let inside_only = "192.0.2.0/24".parse().unwrap();
    let spec = FabricSpec { outside: true, never_outside: vec![inside_only], ..fabric_spec(36) };
    let environment = bench.environment("outside").with_nft(packages::nft());
    let closed = host.run(|| environment.create_fabric(spec.clone())).unwrap();
    assert_eq!(host.run(|| closed.outside_obstacle()).unwrap(), Some("this host has no default route"));
    host.network(|network| network.add_route(&Route::default_via("203.0.113.1".parse().unwrap()))).unwrap();
    // Repairing opens what has become possible, and does not start a second relay.
    let fabric = host.run(|| environment.create_fabric(spec.clone())).unwrap();
    let relay =
        || std::fs::read_to_string(environment.directory().join("fabrics/private/relay.json")).unwrap();
    let first = relay();
    host.run(|| environment.create_fabric(spec.clone())).unwrap();
    assert_eq!(relay(), first);
    assert_eq!(host.run(|| fabric.outside_obstacle()).unwrap(), None);

    let machine = host.run(|| environment.create_machine(crate::support::spec("w1", &fabric, 10))).unwrap();
    let listener = world.listen_tcp("203.0.113.1:80".parse().unwrap()).unwrap();
    let server = std::thread::spawn(move || {
        let (mut stream, peer) = listener.accept().unwrap();
        let mut question = String::new();
        stream.read_to_string(&mut question).unwrap();
        stream.write_all(format!("answer to {question}").as_bytes()).unwrap();
        peer.ip()
    });
    let ask = |machine: &hangar_machine::Machine, port: u16, question: &str| {
        let mut stream = machine
            .netns()
            .connect_tcp(format!("203.0.113.1:{port}").parse().unwrap(), Duration::from_mins(1))
            .unwrap();
        stream.write_all(question.as_bytes()).unwrap();
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap_or_default();
        answer
    };
    let large = "x".repeat(1_000_000);
    assert_eq!(ask(&machine, 80, &large), format!("answer to {large}"));
    assert_eq!(server.join().unwrap().to_string(), "203.0.113.2", "the outside sees the host");
    // Nobody listens there: the connection ends.
    assert_eq!(ask(&machine, 81, ""), "");
    // A range that is never outside is unreachable, and is not tried by the host for us.
    let refused =
        machine.netns().connect_tcp("192.0.2.1:80".parse().unwrap(), Duration::from_mins(1)).unwrap_err();
    assert!(refused.to_string().contains("unreachable"), "{refused}");

    machine.delete().unwrap();
    host.run(|| environment.delete_fabric(&name("private"))).unwrap();
    host.delete().unwrap();
    world.delete().unwrap();
    drop(place);
    bench.finish();
}
