//! The testbed itself: it starts, serves, restarts, and leaves nothing behind.

// A test that cannot go on has failed.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::io::{BufRead, BufReader, ErrorKind};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use hangar_testbed::{Options, Port, Testbed, shared};
use k8s_openapi::api::core::v1::{ConfigMap, ServiceAccount};
use kube::api::{ListParams, ObjectMeta, PostParams};
use kube::{Api, Client};

fn config_map(name: &str) -> ConfigMap {
    ConfigMap {
        metadata: ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() },
        ..ConfigMap::default()
    }
}

#[tokio::test]
async fn two_tests_share_an_api_server_and_not_a_namespace() {
    let (one, two) = (shared().namespace("mine"), shared().namespace("mine"));
    assert_ne!(one, two);
    let client = shared().client();
    let create = |namespace: &str| {
        let api: Api<ConfigMap> = Api::namespaced(client.clone(), namespace);
        async move { api.create(&PostParams::default(), &config_map("same")).await }
    };
    create(&one).await.unwrap();
    create(&two).await.unwrap();
}

#[tokio::test]
async fn the_api_server_tells_its_true_version() {
    let version = shared().client().apiserver_version().await.unwrap();
    assert_eq!(version.git_version, "v1.34.10");
}

#[tokio::test]
async fn rights_are_checked() {
    let config = shared().config_for("somebody", &["nobodies"]);
    let api: Api<ConfigMap> = Api::namespaced(Client::try_from(config).unwrap(), "default");
    let error = api.list(&ListParams::default()).await.unwrap_err();
    assert!(matches!(&error, kube::Error::Api(status) if status.code == 403), "{error}");
}

#[tokio::test]
async fn data_and_address_survive_a_restart() {
    let bed = Testbed::start(Options::default()).unwrap();
    let api: Api<ConfigMap> = Api::namespaced(bed.client(), "default");
    api.create(&PostParams::default(), &config_map("kept")).await.unwrap();
    bed.stop_api_server().unwrap();
    assert!(api.get("kept").await.is_err());
    bed.start_api_server().unwrap();
    api.get("kept").await.unwrap();
}

#[tokio::test]
async fn a_controller_manager_can_be_had() {
    let bed = Testbed::start(Options { controller_manager: true, scheduler: true }).unwrap();
    let accounts: Api<ServiceAccount> = Api::namespaced(bed.client(), "kube-public");
    let start = Instant::now();
    while accounts.get_opt("default").await.unwrap().is_none() {
        assert!(start.elapsed() < Duration::from_mins(5), "no default ServiceAccount in kube-public");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

#[test]
fn a_reserved_port_is_had_only_by_who_asks_for_it() {
    let port = Port::reserve().unwrap();
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port.number()));
    assert!(TcpStream::connect(address).is_err(), "nobody listens");
    // As it is started, stopped and started again.
    for _ in 0..2 {
        let listener = TcpListener::bind(address).unwrap();
        TcpStream::connect(address).unwrap();
        listener.accept().unwrap();
    }
    // As the kernel asks for whoever wants any.
    let refused = tokio::net::TcpSocket::new_v4().unwrap().bind(address).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::AddrInUse);
}

#[test]
fn a_dropped_testbed_leaves_nothing() {
    let bed = Testbed::start(Options::default()).unwrap();
    let directory = directory_of(bed.kubeconfig());
    assert!(!processes_of(&directory).is_empty());
    drop(bed);
    assert_gone(&directory);
}

/// Runs the `serve` example, which cargo builds beside the tests.
fn serve() -> (Child, PathBuf) {
    let tests = std::env::current_exe().unwrap();
    let example = tests.parent().and_then(Path::parent).unwrap().join("examples/serve");
    let mut child = Command::new(example).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let kubeconfig =
        line.trim().strip_prefix("export KUBECONFIG=").expect("the example prints its kubeconfig");
    let directory = directory_of(Path::new(kubeconfig));
    (child, directory)
}

#[test]
fn a_killed_test_binary_leaves_nothing() {
    let (mut child, directory) = serve();
    assert!(!processes_of(&directory).is_empty());
    child.kill().unwrap();
    child.wait().unwrap();
    assert_gone(&directory);
}

#[test]
fn an_interrupted_test_binary_leaves_nothing() {
    let (mut child, directory) = serve();
    let interrupted = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(interrupted.success());
    child.wait().unwrap();
    assert_gone(&directory);
}

/// `<directory>/pki/admin.kubeconfig`
fn directory_of(kubeconfig: &Path) -> PathBuf {
    kubeconfig.parent().and_then(Path::parent).unwrap().to_owned()
}

/// Ids of the processes whose command line names the directory.
fn processes_of(directory: &Path) -> Vec<String> {
    let needle = directory.to_str().unwrap();
    let names_directory = |id: &String| {
        let arguments = std::fs::read(format!("/proc/{id}/cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&arguments).contains(needle)
    };
    std::fs::read_dir("/proc")
        .unwrap()
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter(|name| name.bytes().all(|byte| byte.is_ascii_digit()))
        .filter(names_directory)
        .collect()
}

#[track_caller]
fn assert_gone(directory: &Path) {
    let start = Instant::now();
    while directory.exists() || !processes_of(directory).is_empty() {
        assert!(
            start.elapsed() < Duration::from_mins(5),
            "{} is left, with processes {:?}",
            directory.display(),
            processes_of(directory)
        );
        std::thread::sleep(Duration::from_millis(50));
    }
}
