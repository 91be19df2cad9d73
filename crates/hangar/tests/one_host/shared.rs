//! Tests that share one cluster.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use hangar_testbed::{OneHost, one_host};

use crate::environment::kubectl;
use crate::turn;

fn cluster() -> &'static OneHost {
    one_host(env!("CARGO_BIN_EXE_hangar"))
}

/// The API server asks the manager's pod through its Service, with the certificate that the manager made.
#[test]
fn objects_are_converted_and_checked_by_the_pod() {
    let _turn = turn();
    let cluster = cluster();
    let namespace = cluster.namespace("conversion");
    let old = format!(
        r#"{{
          "apiVersion": "cluster.x-k8s.io/v1beta1", "kind": "Cluster",
          "metadata": {{"name": "old", "namespace": "{namespace}"}},
          "spec": {{
            "paused": true,
            "controlPlaneRef": {{
              "apiVersion": "controlplane.cluster.x-k8s.io/v1alpha1", "kind": "HostedControlPlane", "name": "old"
            }},
            "infrastructureRef": {{
              "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1", "kind": "OpenStackCluster", "name": "old"
            }}
          }}
        }}"#
    );
    let file = tempfile::NamedTempFile::new().unwrap();
    file.as_file().write_all(old.as_bytes()).unwrap();
    kubectl(cluster.kubeconfig(), &["apply", "-f", file.path().to_str().unwrap()]);
    let read = |version: &str, path: &str| {
        let kind = format!("clusters.{version}.cluster.x-k8s.io");
        let output = format!("jsonpath={path}");
        kubectl(cluster.kubeconfig(), &["-n", &namespace, "get", &kind, "old", "-o", &output])
    };
    assert_eq!(
        read("v1beta2", "{.spec.controlPlaneRef.apiGroup}{.spec.controlPlaneRef.apiVersion}"),
        "controlplane.cluster.x-k8s.io"
    );
    assert_eq!(
        read("v1beta1", "{.spec.controlPlaneRef.apiVersion}"),
        "controlplane.cluster.x-k8s.io/v1alpha1"
    );
}

#[test]
fn a_bug_report_holds_logs_and_no_secrets() {
    let _turn = turn();
    let cluster = cluster();
    let place = tempfile::tempdir().unwrap();
    let bundle = place.path().join("bundle");
    let mut command = cluster.command("logs");
    let status = command.arg("--bundle").arg(&bundle).stdout(Stdio::null()).status().unwrap();
    assert!(status.success());
    let files = files(&bundle);
    let has = |part: &str| files.iter().any(|path| path.to_string_lossy().contains(part));
    assert!(has("machines/management/kubelet.log") && has("hangar-manager"), "{files:?}");
    assert!(has("bundle/host.txt") && has("bundle/cloud.log") && has("bundle/notes.txt"), "{files:?}");
    let cloud = fs::read(cluster.kubeconfig().with_file_name("cloud").join("config.json")).unwrap();
    let cloud: serde_json::Value = serde_json::from_slice(&cloud).unwrap();
    let text = |pointer: &str| cloud.pointer(pointer).unwrap().as_str().unwrap();
    let (password, token) = (text("/cloud/users/0/password"), text("/cloud/admin_token"));
    assert!(!password.is_empty() && !token.is_empty());
    for path in &files {
        let text = String::from_utf8_lossy(&fs::read(path).unwrap()).into_owned();
        for secret in ["PRIVATE KEY", "client-key-data", "kind: Secret", password, token] {
            assert!(!text.contains(secret), "{secret} in {}", path.display());
        }
    }
    let status = cluster.command("status").output().unwrap();
    assert!(status.status.success(), "{}", String::from_utf8_lossy(&status.stderr));
}

/// Another run of this very binary, killed while it uses its cluster.
#[test]
fn a_killed_test_binary_leaves_no_cluster() {
    let _turn = turn();
    let mut tests = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "shared::a_bug_report_holds_logs_and_no_secrets"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let guardian = eventually("the guardian starts", || guardian_of(tests.id()));
    let directory = PathBuf::from(&guardian[4]);
    let name = guardian[6].trim_start_matches("--name=").to_owned();
    eventually("the machine runs", || {
        directory.join("state").join(&name).join("machines").exists().then_some(())
    });
    tests.kill().unwrap();
    tests.wait().unwrap();
    eventually("the cluster is removed", || (!directory.exists()).then_some(()));
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        let arguments = fs::read(entry.path().join("cmdline")).unwrap_or_default();
        assert!(!String::from_utf8_lossy(&arguments).contains(&name), "a process is left");
    }
    assert!(!fs::read_to_string("/proc/mounts").unwrap().contains(&name), "a mount is left");
}

/// The words of the guardian's command line.
fn guardian_of(parent: u32) -> Option<Vec<String>> {
    fs::read_dir("/proc").unwrap().flatten().find_map(|entry| {
        let stat = fs::read_to_string(entry.path().join("stat")).ok()?;
        let its_parent = stat.rsplit(')').next()?.split_whitespace().nth(1)?.parse::<u32>().ok()?;
        let line = String::from_utf8(fs::read(entry.path().join("cmdline")).ok()?).ok()?;
        let words: Vec<String> = line.split('\0').map(str::to_owned).collect();
        (its_parent == parent && words.iter().any(|word| word == "hangar-testbed-guardian")).then_some(words)
    })
}

/// Only for a test that fails.
fn eventually<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    for _ in 0..12000 {
        if let Some(found) = look() {
            return found;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    panic!("never: {what}");
}

fn files(directory: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).unwrap().flatten() {
        if entry.file_type().unwrap().is_dir() {
            found.extend(files(&entry.path()));
        } else {
            found.push(entry.path());
        }
    }
    found
}
