//! Tests what the binary prints at a terminal.

use std::process::{Command, Output};

use crate::installation::HANGAR;

fn hangar(arguments: &[&str]) -> Output {
    Command::new(HANGAR)
        .args(arguments)
        .env_remove("KUBECONFIG")
        .env("HOME", "/nonexistent")
        .output()
        .unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

#[test]
fn the_version_is_printed() {
    assert_eq!(text(&hangar(&["version"]).stdout), format!("hangar v{}\n", env!("CARGO_PKG_VERSION")));
}

#[test]
fn completions_exist_for_the_usual_shells() {
    for shell in ["bash", "zsh", "fish"] {
        assert!(text(&hangar(&["completions", shell]).stdout).contains("hangar"), "{shell}");
    }
}

#[test]
fn an_unknown_controller_is_named_with_the_known_ones() {
    let output = hangar(&["install", "--print", "--controllers=hcp"]);
    let errors = text(&output.stderr);
    assert!(!output.status.success());
    assert!(errors.contains("there is no controller \"hcp\"; known: all, hosted-control-plane"), "{errors}");
}

#[test]
fn without_a_cluster_the_error_is_one_line() {
    let output = hangar(&["install"]);
    let errors = text(&output.stderr);
    assert!(!output.status.success());
    assert_eq!(errors.lines().count(), 1, "{errors}");
    assert!(errors.contains("set KUBECONFIG or --kubeconfig"), "{errors}");
    assert!(
        text(&hangar(&["install", "-v"]).stderr).contains("caused by"),
        "the chain is there for those who ask"
    );
}

#[test]
fn backups_without_the_cluster_need_credentials_from_the_environment() {
    let list = ["backup", "list", "demo", "--bucket=backups/etcd", "--host=127.0.0.1:1"];
    let command = |variables: &[(&str, &str)]| {
        let mut command = Command::new(HANGAR);
        command.args(list).env_remove("AWS_ACCESS_KEY_ID").env_remove("AWS_SECRET_ACCESS_KEY");
        let output = command.envs(variables.iter().copied()).output().unwrap();
        assert!(!output.status.success());
        text(&output.stderr)
    };
    let errors = command(&[]);
    assert!(errors.contains("--bucket needs credentials: AWS_ACCESS_KEY_ID is not set"), "{errors}");
    let errors = command(&[("AWS_ACCESS_KEY_ID", "me"), ("AWS_SECRET_ACCESS_KEY", "very-secret")]);
    assert!(errors.contains("(etcd/default/demo/)") && !errors.contains("very-secret"), "{errors}");
    let errors = text(&hangar(&["backup", "list", "demo"]).stderr);
    assert!(errors.contains("KUBECONFIG"), "{errors}");
}

/// Its last line is what the condition of the control plane repeats.
#[test]
fn a_member_that_cannot_be_restored_says_why_in_one_line() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).display().to_string();
    std::fs::create_dir(path("store")).unwrap();
    std::fs::write(path("store/accessKeyID"), "me").unwrap();
    let refused = |backup: &str| {
        let output = hangar(&[
            "restore-member",
            "fetch",
            "--owner=team/shop",
            &format!("--backup={backup}"),
            &format!("--store={}", path("store")),
            &format!("--into={}", path("restoring")),
        ]);
        assert!(!output.status.success());
        text(&output.stderr)
    };
    let errors = refused("20261118T194500Z");
    assert_eq!(errors, "error: the Secret of the store: it has no key \"bucket\"\n");
    assert!(refused("../../data").contains("is no id of a backup"));
    // The limits of the manager hold in the pod, too.
    for (file, text) in [("secretAccessKey", "hidden"), ("bucket", "b"), ("host", "http://127.0.0.1:1")] {
        std::fs::write(path(&format!("store/{file}")), text).unwrap();
    }
    let errors = refused("20261118T194500Z");
    assert!(errors.contains("127.0.0.1 is an address of a host"), "{errors}");
    let errors = hangar(&[
        "restore-member",
        "place",
        &format!("--from={}", path("restoring")),
        &format!("--to={}", path("data-2")),
    ]);
    assert!(text(&errors.stderr).starts_with("error: the volume: cannot read "), "{}", text(&errors.stderr));
    assert!(!std::path::Path::new(&path("data-2")).exists());
}

#[test]
fn bad_environment_is_named_by_variable() {
    let output = Command::new(HANGAR)
        .args(["manager", "--namespace=default"])
        .env("LOG_LEVEL", "loud")
        .output()
        .unwrap();
    let errors = text(&output.stderr);
    assert!(!output.status.success());
    assert!(errors.contains("LOG_LEVEL") && errors.contains("loud"), "{errors}");
}

#[test]
fn a_version_that_is_not_known_is_refused_with_those_that_are() {
    let output = hangar(&["up", "--kubernetes-version=v1.33.1"]);
    let errors = text(&output.stderr);
    assert!(!output.status.success());
    let known = "known are v1.33.0, v1.34.10, v1.35.8, v1.36.4, v1.37.1";
    assert!(errors.contains("--kubernetes-version <VERSION>") && errors.contains(known), "{errors}");
}

#[test]
fn a_management_cluster_has_one_to_nine_nodes() {
    for count in ["0", "10"] {
        let output = hangar(&["up", &format!("--management-nodes={count}")]);
        let errors = text(&output.stderr);
        assert!(!output.status.success() && errors.contains("1..=9"), "{errors}");
    }
}

#[test]
fn print_needs_no_cluster_and_prints_what_kubectl_takes() {
    let output =
        hangar(&["install", "--print", "--controllers=hosted-control-plane", "--namespace=elsewhere"]);
    let yaml = text(&output.stdout);
    assert!(output.status.success());
    assert!(yaml.starts_with("---\napiVersion: v1\nkind: Namespace\n"));
    assert!(yaml.contains("name: hostedcontrolplanes.controlplane.cluster.x-k8s.io"));
    assert!(!yaml.contains("name: clusters.cluster.x-k8s.io\n"));
    assert!(!yaml.contains("hangar-system"));
}

#[test]
fn namespaces_that_name_nothing_are_refused_and_never_mean_all() {
    for command in
        [vec!["install", "--print"], vec!["manager", "--namespace=default"], vec!["plan", "--filename=-"]]
    {
        for wrong in ["--namespaces=", "--namespaces=a,B"] {
            let output = hangar(&[command.clone(), vec![wrong]].concat());
            let errors = text(&output.stderr);
            assert!(!output.status.success() && errors.contains("name"), "{command:?} {wrong}: {errors}");
        }
    }
    let printed = text(&hangar(&["install", "--print", "--namespaces=b,a"]).stdout);
    assert!(printed.contains("--namespaces=a,b"), "{printed}");
}

#[test]
fn wrong_limits_are_one_line_with_the_field() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("limits.yaml");
    std::fs::write(&file, "maximumReplicas:\n  apiServer: many\n").unwrap();
    let flag = format!("--limits={}", file.display());
    for command in [
        vec!["install", "--print", &flag],
        vec!["manager", "--namespace=default", &flag],
        vec!["plan", "--filename=-", &flag],
    ] {
        let output = hangar(&command);
        let errors = text(&output.stderr);
        assert!(!output.status.success(), "{command:?}");
        assert_eq!(errors.lines().count(), 1, "{errors}");
        assert!(errors.contains(file.to_str().unwrap()), "{errors}");
        assert!(errors.contains("maximumReplicas.apiServer: invalid type: string \"many\""), "{errors}");
    }
    std::fs::write(&file, "priorityClass: [tenants]\n").unwrap();
    assert!(text(&hangar(&["install", "--print", &flag]).stderr).contains("unknown field `priorityClass`"));
    std::fs::write(&file, "priorityClasses: [tenants]\n").unwrap();
    let printed = text(&hangar(&["install", "--print", &flag]).stdout);
    assert!(printed.contains("name: hangar-limits") && printed.contains("--limits=/etc/hangar/limits.yaml"));
    let missing = text(&hangar(&["manager", "--namespace=default", "--limits=/nonexistent"]).stderr);
    assert!(missing.contains("cannot read the limits /nonexistent"), "{missing}");
}
