//! Tests of the settings as text; `tests/host/resolver.rs` tests CoreDNS with them.

use super::*;

fn options(upstream: Option<&str>, wildcard: bool) -> ResolverOptions {
    ResolverOptions {
        address: Ipv4Addr::new(100, 72, 0, 10),
        port: PORT,
        upstream: upstream.map(|address| address.parse().unwrap()),
        wildcard: wildcard.then(|| Wildcard {
            domain: "clusters.hangar.test".to_owned(),
            address: Ipv4Addr::new(100, 72, 0, 200),
        }),
    }
}

#[test]
fn with_a_gateway() {
    insta::assert_snapshot!(corefile(&options(Some("100.72.0.1:3153"), true)));
}

#[test]
fn without_gateway_and_outside() {
    insta::assert_snapshot!(corefile(&options(None, false)));
}

#[test]
fn the_service_runs_what_the_file_says() {
    let service = service(Path::new("/usr/local/bin/coredns")).unwrap();
    let file = file(&options(None, true));
    assert_eq!(service.when_exists.as_ref(), Some(&file.path));
    assert_eq!(service.command.last().map(String::as_str), file.path.to_str());
}
