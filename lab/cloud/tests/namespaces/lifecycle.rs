//! Servers are created, stopped and deleted; drivers are killed, and others continue.

use std::net::SocketAddr;
use std::time::Duration;

use hangar_cloud::driver::Event;
use hangar_cloud::driver::namespaces::MachineImage;
use hangar_cloud::topology::Topology;
use hangar_machine::{Bind, Machine, Name};

use crate::support::bench;
use crate::world::{NETWORK, ROUTER, add_server, allow, fixed, rule, topology};

const PATIENCE: Duration = Duration::from_mins(1);

#[test]
fn what_is_not_wanted_is_gone_without_a_trace() {
    let bench = bench("gone", 20);
    let mut driver = bench.driver();
    let mut world = topology(20);
    let (one, two) = (add_server(&mut world, 10, "plain"), add_server(&mut world, 11, "plain"));
    driver.realise(&world);
    // Two namespaces and a leg, and of each machine a namespace, a directory, control groups and a process.
    assert!(bench.left().len() > 10, "{:?}", bench.left());
    let machine = driver.driver.machine(one).unwrap();
    machine.write_file("/root/kept".as_ref(), b"yes", 0o600).unwrap();

    world.servers.get_mut(&one).unwrap().runs = false;
    assert_eq!(driver.realise(&world), [Event::Stopped(one)]);
    assert!(machine.run(["true"]).is_err());
    world.servers.get_mut(&one).unwrap().runs = true;
    assert_eq!(driver.realise(&world), [Event::Active(one)]);
    assert_eq!(machine.read_file("/root/kept".as_ref()).unwrap(), b"yes");

    // Somebody ends it from outside: it comes back.
    machine.stop(Duration::ZERO).unwrap();
    driver.realise(&world);
    machine.run(["true"]).unwrap();

    world.servers.remove(&one);
    assert_eq!(driver.realise(&world), [Event::Gone(one)]);
    assert_eq!(driver.realise(&Topology::default()), [Event::Gone(two)]);
    assert_eq!(bench.left(), Vec::<String>::new());
}

#[test]
fn what_cannot_be_made_is_said_and_leaves_nothing() {
    let bench = bench("failing", 21);
    let missing = Bind { source: "/no/such/file".into(), target: "/mnt".into(), read_only: true };
    let broken = MachineImage { binds: vec![missing], ..MachineImage::default() };
    let mut driver = bench.driver_with([("plain", MachineImage::default()), ("broken", broken)]);
    let mut world = topology(21);
    let bad = add_server(&mut world, 10, "broken");
    let unknown = add_server(&mut world, 11, "v9.9.9");
    let good = add_server(&mut world, 12, "plain");
    let said = driver.realise(&world);
    assert!(
        matches!(&said[0], Event::Failed(id, why) if *id == bad && why.contains("/no/such/file")),
        "{said:?}"
    );
    assert!(
        matches!(&said[1], Event::Failed(id, why) if *id == unknown && why.contains("v9.9.9")),
        "{said:?}"
    );
    assert_eq!(said[2], Event::Active(good));
    assert_eq!(driver.realise(&world), [], "no cloud tries again");
    world.servers.clear();
    assert_eq!(driver.realise(&world), [Event::Gone(bad), Event::Gone(unknown), Event::Gone(good)]);
    driver.realise(&Topology::default());
    assert_eq!(bench.left(), Vec::<String>::new());
}

/// When its first process began, in ticks of this host. The times of its directory in /proc are those of a look.
fn begun(machine: &Machine) -> String {
    let stat = machine.run(["cat", "/proc/1/stat"]).unwrap();
    let (_, fields) = stat.rsplit_once(')').unwrap();
    fields.split_whitespace().nth(19).unwrap().to_owned()
}

/// What a killed process leaves, or one that lost its network: another driver goes on from whatever there is.
#[test]
fn another_driver_repairs() {
    let bench = bench("repair", 22);
    let mut world = topology(22);
    let (one, two) = (add_server(&mut world, 10, "plain"), add_server(&mut world, 11, "plain"));
    allow(&mut world, rule(true));
    let mut driver = bench.driver();
    driver.realise(&world);
    let begun = begun(&driver.driver.machine(one).unwrap());
    let machine = driver.driver.machine(two).unwrap();
    drop(driver);
    // The network's namespace with all its links, one of the router's legs, and a machine.
    let environment = bench.environment();
    environment.delete_netns(&Name::new(format!("network-{NETWORK}")).unwrap()).unwrap();
    let router = environment.netns(&Name::new(format!("router-{ROUTER}")).unwrap());
    router.network(|network| network.delete("external")).unwrap();
    machine.stop(Duration::ZERO).unwrap();

    let mut driver = bench.driver();
    assert_eq!(driver.realise(&world), [Event::Active(one), Event::Active(two)]);
    let (first, second) = (driver.driver.machine(one).unwrap(), driver.driver.machine(two).unwrap());
    assert_eq!(self::begun(&first), begun, "a running machine was restarted");
    let listener = second.netns().listen_tcp(SocketAddr::new(fixed(11).into(), 7000)).unwrap();
    first.netns().connect_tcp(listener.local_addr().unwrap(), PATIENCE).unwrap();
    let gateway = SocketAddr::from(([100, 121, 22, 1], 8000));
    let _outside = bench.fabric.netns().listen_tcp(gateway).unwrap();
    first.netns().connect_tcp(gateway, PATIENCE).unwrap();

    // Servers that nobody wants any more, of which this driver was never told.
    drop((first, second, listener, driver));
    let mut driver = bench.driver();
    assert_eq!(driver.realise(&Topology::default()), [Event::Gone(one), Event::Gone(two)]);
    assert_eq!(bench.left(), Vec::<String>::new());
}
