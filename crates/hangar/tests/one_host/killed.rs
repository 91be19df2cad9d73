//! `hangar up`, killed in the middle of its work, then repaired by another `up` or removed by `down`.

use std::fs;
use std::path::PathBuf;

use crate::environment::Environment;
use crate::turn;

/// Killed so many milliseconds after each of these steps was done, which is in the middle of a later one. Two in CI,
/// all with `cargo xtask sweep up`.
const MOMENTS: [(&str, u64); 10] = [
    ("checking this host", 0),
    ("packages", 700),
    ("images", 0),
    ("private network", 0),
    ("certificates", 0),
    ("certificates", 60),
    ("machine", 300),
    ("control plane", 50),
    ("add-ons", 400),
    ("controllers", 500),
];
/// One that is removed and one that is repaired.
const SAMPLE: [usize; 2] = [5, 8];

/// Makes images: a copy of the program is another program, of which there is no image yet.
const MAKING_IMAGES: usize = 1;

/// A copy that goes with the test.
struct Copy(PathBuf);

impl Copy {
    fn new() -> Self {
        let path = PathBuf::from(format!("/var/tmp/hangar-test-{}", std::process::id()));
        fs::copy(env!("CARGO_BIN_EXE_hangar"), &path).unwrap();
        Self(path)
    }
}

impl Drop for Copy {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

#[test]
fn a_killed_up_is_repaired_or_removed() {
    let _turn = turn();
    let is_whole = std::env::var_os("HANGAR_SWEEP").is_some_and(|value| value == "all");
    // Images are there, so that the moments mean the same for each.
    let first = Environment::new("kill");
    first.succeed("up");
    first.succeed("down");
    first.assert_gone();
    let copy = Copy::new();
    for (index, (step, milliseconds)) in MOMENTS.into_iter().enumerate() {
        if !is_whole && !SAMPLE.contains(&index) {
            continue;
        }
        let name = format!("kill{index}");
        let environment = match index {
            MAKING_IMAGES => Environment::with_program(&name, copy.0.clone()),
            _ => Environment::new(&name),
        };
        let is_repaired = index % 2 == 0;
        println!("killed {milliseconds} ms after {step}, then {}", if is_repaired { "up" } else { "down" });
        environment.kill_after(step, milliseconds);
        if is_repaired {
            environment.succeed("up");
            environment.assert_healthy();
        }
        environment.succeed("down");
        environment.assert_gone();
    }
}
