//! What a tenant names is called from its nodes, and never from the management network.

use std::net::{IpAddr, SocketAddr, TcpStream};
use std::process::Output;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hangar_machine::net::Netns;
use hangar_pki::{Authority, Intent, Usage, issue};
use jiff::Timestamp;
use serde_json::json;

use crate::environment::Environment;
use crate::kubectl::Kubectl;
use crate::server::{serve, verdict, webhook};
use crate::waiting::PATIENCE;

/// An address of the management machine alone: the private network answers for the whole range that it is unreachable.
const INSIDE: &str = "10.244.255.1:8443";
const PORT: u16 = 8443;
const LIFETIME: Duration = Duration::from_hours(1);
/// What the webhook on the worker says no with.
const ANSWER: &str = "this is the worker";

/// A webhook by URL reaches nothing that only the API server's own pod reaches, and a server on the tenant's node. In this
/// order: a call to the node's address from the management network would leave the host.
pub(crate) fn webhooks_by_url_leave_from_the_nodes(environment: &Environment, tenant: &Kubectl) {
    let authority =
        Authority::self_signed(&Intent::authority("webhooks", LIFETIME), Timestamp::now()).unwrap();
    let worker = environment.network("machine.server-");
    let inside: SocketAddr = INSIDE.parse().unwrap();
    let arrived = count_connections(&environment.network("machine.management"), inside);
    let patience = Duration::from_secs(5);
    let pod = environment.process(&["proxy-server"]).expect("the tunnel's server runs").network();
    pod.connect_tcp(inside, patience).expect("there is a way from the API server's pod");
    let routes = environment.routes("machine.server-");
    assert!(!routes.contains("10.244.255"), "the worker knows the way: {routes}");
    let tried = worker.run(|| Ok(TcpStream::connect_timeout(&inside, patience))).unwrap();
    let unreachable = tried.expect_err("there is no way from the worker").to_string();
    let outcome = ask(tenant, &authority, "inside.example.com", INSIDE);
    assert_eq!(arrived.load(Ordering::SeqCst), 1, "the tenant's webhook came to {INSIDE}: {outcome}");
    // What the worker is told, in the same words: it was there that the address was dialled.
    let words = unreachable.split(" (os error").next().unwrap().to_lowercase();
    assert!(outcome.to_lowercase().contains(&words), "not {unreachable:?} but {outcome}");

    let path = "jsonpath={.items[0].status.addresses[?(@.type==\"InternalIP\")].address}";
    let address: IpAddr = tenant.succeed(&["get", "nodes", "-o", path]).parse().unwrap();
    let intent = Intent::new("webhook", Usage::Server, LIFETIME).ip_addresses([address]);
    let pair = issue(&authority, &intent, Timestamp::now()).unwrap();
    serve(&worker, SocketAddr::new(address, PORT), &pair, |request| Some(verdict(request, false, ANSWER)));
    let outcome = ask(tenant, &authority, "worker.example.com", &format!("{address}:{PORT}"));
    assert!(outcome.contains(ANSWER), "a server on the node is reached by URL: {outcome}");
}

/// What the API server says to a request that this webhook has to let pass.
fn ask(tenant: &Kubectl, authority: &Authority, name: &str, host: &str) -> String {
    let client = json!({
        "url": format!("https://{host}/"),
        "caBundle": STANDARD.encode(&authority.pair().certificate),
    });
    tenant.apply(&webhook(name, &client).to_string());
    let deadline = Instant::now() + PATIENCE;
    // The API server sees a moment later that the webhook is there, or that the one before is gone.
    let outcome = loop {
        let Output { stderr, .. } = tenant.run(&["create", "configmap", "asked", "--dry-run=server"]);
        let outcome = String::from_utf8(stderr).unwrap();
        if outcome.contains(name) {
            break outcome;
        }
        assert!(Instant::now() < deadline, "the webhook is not asked: {outcome}");
    };
    tenant.succeed(&["delete", "validatingwebhookconfiguration", name]);
    outcome
}

/// Listens at an address that the machine gets for it, and counts who comes.
fn count_connections(machine: &Netns, address: SocketAddr) -> Arc<AtomicUsize> {
    let mut add = std::process::Command::new("ip");
    let output =
        machine.output(add.args(["address", "add", &address.ip().to_string(), "dev", "lo"])).unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let listener = machine.listen_tcp(address).unwrap();
    let count = Arc::new(AtomicUsize::new(0));
    let counter = count.clone();
    std::thread::spawn(move || {
        for _ in listener.incoming() {
            counter.fetch_add(1, Ordering::SeqCst);
        }
    });
    count
}
