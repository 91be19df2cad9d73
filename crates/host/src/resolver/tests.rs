//! The settings as text; that CoreDNS answers as meant is shown in `tests/host/resolver.rs`.

use super::*;

fn options(upstreams: &[&str], wildcard: bool) -> ResolverOptions {
    ResolverOptions {
        address: Ipv4Addr::new(100, 72, 0, 10),
        port: PORT,
        upstreams: upstreams.iter().map(|address| address.parse().unwrap()).collect(),
        wildcard: wildcard.then(|| Wildcard {
            domain: "clusters.hangar.test".to_owned(),
            address: Ipv4Addr::new(100, 72, 0, 200),
        }),
    }
}

#[test]
fn with_a_gateway() {
    insta::assert_snapshot!(corefile(&options(&["192.0.2.53", "2001:db8::53"], true)));
}

#[test]
fn without_gateway_and_outside() {
    insta::assert_snapshot!(corefile(&options(&[], false)));
}

#[test]
fn the_service_runs_what_the_file_says() {
    let service = service(Path::new("/usr/local/bin/coredns")).unwrap();
    let file = file(&options(&[], true));
    assert_eq!(service.when_exists.as_ref(), Some(&file.path));
    assert_eq!(service.command.last().map(String::as_str), file.path.to_str());
}

#[test]
fn only_resolvers_that_a_machine_reaches() {
    let text = "# a comment\nsearch example\nnameserver 127.0.0.53\nnameserver 192.0.2.53\n\tnameserver\t2001:db8::53\n\
                nameserver fe80::1%eth0\nnameserver 192.0.2.53\nnameserver\nnameserver ::1\noptions edns0\n";
    let expected: Vec<IpAddr> = vec!["192.0.2.53".parse().unwrap(), "2001:db8::53".parse().unwrap()];
    assert_eq!(upstreams(text), expected);
    assert_eq!(upstreams("nameserver 127.0.0.53\n"), Vec::<IpAddr>::new());
}
