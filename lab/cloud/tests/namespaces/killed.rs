//! The cloud as a process that is killed in the middle of its work, and repaired by the next one.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use hangar_cloud::Config;
use hangar_cloud::config::{ExternalNetworkSeed, ImageSeed};
use hangar_cloud::driver::namespaces::{KUBERNETES_VERSION, MachineImage, ProcessConfig};
use hangar_machine::net::Netns;
use serde_json::{Value, json};

use crate::support::{Bench, PROGRAM, bench};

const LISTEN: SocketAddr =
    SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::new(100, 121, 40, 1)), 5000);
const SERVERS: usize = 4;

/// Only for what never happens.
const PATIENCE: Duration = Duration::from_mins(5);

/// Enough of a client for a handful of calls.
struct Client {
    netns: Netns,
    token: String,
}

impl Client {
    fn log_in(bench: &Bench) -> Self {
        let mut client = Self { netns: bench.fabric.netns(), token: String::new() };
        let domain = json!({"name": "Default"});
        let (head, _) = client.call(
            "POST",
            "/identity/v3/auth/tokens",
            &json!({"auth": {
                "identity": {"methods": ["password"], "password": {
                    "user": {"name": "demo", "password": "secret", "domain": domain},
                }},
                "scope": {"project": {"name": "demo", "domain": domain}},
            }}),
        );
        let token = head.lines().find_map(|line| {
            let (name, value) = line.split_once(':')?;
            name.eq_ignore_ascii_case("x-subject-token").then(|| value.trim().to_owned())
        });
        client.token = token.unwrap();
        client
    }

    fn call(&self, method: &str, path: &str, body: &Value) -> (String, Value) {
        let mut stream = self.netns.connect_tcp(LISTEN, PATIENCE).unwrap();
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let (token, length) = (&self.token, body.len());
        write!(
            stream,
            "{method} {path} HTTP/1.1\r\nHost: {LISTEN}\r\nConnection: close\r\nX-Auth-Token: {token}\r\n\
             Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}"
        )
        .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        (head.to_owned(), serde_json::from_str(body).unwrap_or_default())
    }

    fn create(&self, path: &str, kind: &str, fields: &Value) -> Value {
        let (head, mut answer) = self.call("POST", path, &json!({ kind: fields }));
        assert!(head.starts_with("HTTP/1.1 20"), "{head}\n{answer}");
        answer[kind].take()
    }

    fn statuses(&self) -> Vec<String> {
        let (_, answer) = self.call("GET", "/compute/v2.1/servers/detail", &Value::Null);
        let servers = answer["servers"].as_array().unwrap().iter();
        servers.map(|server| server["status"].as_str().unwrap().to_owned()).collect()
    }
}

fn config(bench: &Bench, directory: &Path) -> PathBuf {
    let address = |last: u8| [100, 121, 40, last].into();
    let config = ProcessConfig {
        listen: LISTEN,
        record: directory.join("process.json"),
        cloud: Config {
            state_file: Some(directory.join("state.json")),
            images: vec![ImageSeed {
                name: "plain".to_owned(),
                id: None,
                properties: BTreeMap::from([(KUBERNETES_VERSION.to_owned(), "plain".to_owned())]),
                tags: std::collections::BTreeSet::new(),
            }],
            external_network: Some(ExternalNetworkSeed {
                name: "public".to_owned(),
                id: None,
                cidr: "100.121.40.0/24".parse().unwrap(),
                gateway: Some(address(1)),
                pool: (address(50), address(99)),
                name_servers: Vec::new(),
                mtu: 1500,
            }),
            ..Config::for_tests()
        },
        driver: bench.settings([("plain", MachineImage::default())]),
    };
    let path = directory.join("config.json");
    std::fs::write(&path, serde_json::to_vec(&config).unwrap()).unwrap();
    path
}

/// Ends with the test, whatever happens.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn serve(bench: &Bench, config: &Path) -> Process {
    let child = Command::new(PROGRAM).arg("serve").arg("--config").arg(config).spawn().unwrap();
    let process = Process(child);
    let answers = || bench.fabric.netns().connect_tcp(LISTEN, Duration::from_secs(1)).is_ok();
    eventually("the cloud answers", answers);
    process
}

fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < deadline, "never happened: {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

#[test]
fn a_killed_cloud_goes_on_where_it_was() {
    let bench = bench("killed", 40);
    let directory = tempfile::tempdir_in("/var/tmp").unwrap();
    let config = config(&bench, directory.path());
    let process = serve(&bench, &config);
    let second = Command::new(PROGRAM).arg("serve").arg("--config").arg(&config).output().unwrap();
    assert!(!second.status.success(), "two processes serve one cloud");
    assert!(String::from_utf8_lossy(&second.stderr).contains("another process serves"), "{second:?}");

    let client = Client::log_in(&bench);
    let network = client.create("/network/v2.0/networks", "network", &json!({"name": "n"}));
    client.create(
        "/network/v2.0/subnets",
        "subnet",
        &json!({"network_id": network["id"], "cidr": "10.6.0.0/24", "ip_version": 4}),
    );
    let first = |path: &str, list: &str| client.call("GET", path, &Value::Null).1[list][0]["id"].clone();
    let image = first("/image/v2/images", "images");
    let flavor = first("/compute/v2.1/flavors", "flavors");
    let machines = || bench.environment().machines().unwrap().len();
    let (mut process, mut wanted) = (process, 0);
    loop {
        for number in wanted..wanted + SERVERS {
            client.create(
                "/compute/v2.1/servers",
                "server",
                &json!({
                    "name": format!("s{number}"), "imageRef": image, "flavorRef": flavor,
                    "networks": [{"uuid": network["id"]}],
                }),
            );
        }
        eventually("another machine is being made", || machines() > wanted);
        wanted += SERVERS;
        drop(process);
        let is_in_time = machines() < wanted;
        process = serve(&bench, &config);
        if is_in_time {
            break;
        }
        assert!(wanted < 5 * SERVERS, "every kill came too late to mean anything");
    }

    let client = Client::log_in(&bench);
    eventually("all servers are active", || client.statuses() == vec!["ACTIVE"; wanted]);
    assert_eq!(machines(), wanted);
    let (_, servers) = client.call("GET", "/compute/v2.1/servers", &Value::Null);
    for server in servers["servers"].as_array().unwrap() {
        let path = format!("/compute/v2.1/servers/{}", server["id"].as_str().unwrap());
        client.call("DELETE", &path, &Value::Null);
    }
    eventually("a machine is gone", || machines() < wanted);
    drop(process);
    let process = serve(&bench, &config);
    let client = Client::log_in(&bench);
    eventually("all servers are gone", || client.statuses().is_empty() && machines() == 0);
    let path = format!("/network/v2.0/networks/{}", network["id"].as_str().unwrap());
    let (head, answer) = client.call("DELETE", &path, &Value::Null);
    assert!(head.starts_with("HTTP/1.1 204"), "{head}\n{answer}");
    eventually("nothing is left", || bench.left().is_empty());

    // Whoever takes its record away ends it.
    let mut process = process;
    std::fs::remove_file(directory.path().join("process.json")).unwrap();
    assert!(process.0.wait().unwrap().success());
}
