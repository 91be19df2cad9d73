//! Certificates that expired while the environment was in use: one `hangar up` makes everything healthy.

use std::collections::BTreeMap;
use std::fs;

use hangar_host::layout::Layout;
use hangar_host::management::credentials;
use jiff::{SignedDuration, Timestamp};

use crate::environment::{Environment, Process, kubectl};
use crate::waiting::{eventually, is};

/// Certificates are valid for a year.
const AGE: SignedDuration = SignedDuration::from_hours(400 * 24);
/// Those that are looked at, by what their command lines begin with.
const PROCESSES: [&[&str]; 6] = [
    &["etcd"],
    &["kube-apiserver"],
    &["kube-controller-manager"],
    &["kube-scheduler"],
    &["kubelet"],
    &["hangar", "provision"],
];

/// Waits for those that are just being started again.
fn processes(environment: &Environment) -> BTreeMap<String, Process> {
    let mut found = BTreeMap::new();
    for words in PROCESSES {
        eventually("all of them run", || {
            let process = environment.process(words).ok_or_else(|| format!("no {words:?} runs"))?;
            found.insert(words.join(" "), process);
            Ok(())
        });
    }
    found
}

/// What an `up` with nothing to do leaves alone: called after one.
pub(crate) fn nothing_starts_again(environment: &Environment) {
    let before = processes(environment);
    let output = environment.succeed("up");
    assert!(output.contains("certificates: complete") && output.contains("machine: running"), "{output}");
    assert!(output.contains("controllers: there") && output.contains("hangar: unchanged"), "{output}");
    assert_eq!(processes(environment), before);
}

/// Every certificate has ended. API server and etcd notice by themselves; those who would not are killed, and started again
/// by who watches over them with what is on disk.
pub(crate) fn ended_certificates_are_renewed(environment: &Environment) {
    let before = processes(environment);
    let layout = Layout::new(environment.state.join(&environment.name));
    let kubernetes = layout.kubernetes();
    let address = environment.address();
    let ended = credentials::ensure(&layout, 1, address, Timestamp::now() - AGE).unwrap();
    assert_eq!(ended.renewed.len(), 11, "{:?}", ended.renewed);
    fs::write(environment.kubeconfig(), &ended.administrator).unwrap();
    for name in ["kube-controller-manager", "kube-scheduler", "kubelet"] {
        before[name].kill();
    }
    let mut kubelet = before["kubelet"].clone();
    eventually("kubelet is started again", || {
        let process = environment.process(&["kubelet"]).ok_or("it does not run")?;
        kubelet = process;
        is(kubelet != before["kubelet"], || "the one before still runs".to_owned())
    });
    assert!(!environment.run("status").status.success(), "nobody can talk to anybody");

    let output = environment.succeed("up");
    assert!(output.contains("certificates: renewed: apiserver, "), "{output}");
    environment.assert_healthy();
    let after = processes(environment);
    // Both read when they start. The API server has a certificate of its own making beside ours.
    assert_ne!(after["kubelet"], kubelet);
    for name in ["kube-apiserver", "hangar provision"] {
        assert_ne!(after[name], before[name], "{name}");
    }
    assert_eq!(after["etcd"], before["etcd"], "it reads certificates for every connection");
    // These have the file as it was when they were started, since it is replaced and not changed.
    for name in ["controller-manager", "scheduler"] {
        let file = format!("{name}.conf");
        let seen = after[&format!("kube-{name}")].root().join("etc/kubernetes").join(&file);
        assert_eq!(fs::read(seen).unwrap(), fs::read(kubernetes.join(&file)).unwrap(), "{name}");
    }
    a_pod_is_made_anew(environment);
}

/// Controllers, scheduler and kubelet have their parts in it, and the API server asks kubelet for the log.
fn a_pod_is_made_anew(environment: &Environment) {
    let pods = ["-n", "kube-system", "-l", "k8s-app=kube-dns"];
    let run = |arguments: &[&str]| kubectl(&environment.kubeconfig(), &[arguments, &pods].concat());
    // Returns when it is gone; until then another one has long been asked for.
    run(&["delete", "pod", "--timeout=10m"]);
    run(&["wait", "--for=condition=Ready", "pod", "--timeout=10m"]);
    assert!(run(&["logs"]).contains("CoreDNS"));
}
