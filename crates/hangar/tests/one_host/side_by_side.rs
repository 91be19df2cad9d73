//! Two environments on one host.

use std::fs;
use std::path::Path;

use crate::environment::Environment;
use crate::renewal;
use crate::turn;

#[test]
fn two_environments_live_side_by_side_and_leave_nothing() {
    let _turn = turn();
    let (one, two) = (Environment::new("one"), Environment::new("two"));
    let output = one.succeed("up");
    assert_eq!(output.lines().last().map(Path::new), Some(one.kubeconfig().as_path()), "{output}");
    two.succeed("up");
    assert_ne!(fs::read_to_string(one.kubeconfig()).unwrap(), fs::read_to_string(two.kubeconfig()).unwrap());
    one.assert_healthy();
    two.assert_healthy();

    renewal::nothing_starts_again(&one);
    renewal::ended_certificates_are_renewed(&one);

    // Refused before anything was touched.
    let other = one.command("up").arg("--range=100.75.0.0/20").output().unwrap();
    let words = String::from_utf8_lossy(&other.stderr);
    assert!(!other.status.success() && words.contains("which cannot change to 100.75.0.0/20"), "{words}");
    one.assert_healthy();

    one.succeed("down");
    one.assert_gone();
    two.assert_healthy();
    two.succeed("down");
    two.assert_gone();
    let nothing = one.succeed("status");
    assert!(nothing.contains("nothing runs"), "{nothing}");
    one.succeed("down");
}
