//! Tests of signals. They are sent to a process of their own: this test binary, run again for one test.

#![allow(clippy::expect_used, clippy::panic, reason = "helpers of tests fail like tests")]

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::Duration;

/// Says that this process is the one to be stopped.
const ROLE: &str = "HANGAR_TEST_SHUTDOWN_ROLE";

/// Not a test by itself: what the other one starts and stops.
#[tokio::test]
async fn the_process_that_is_stopped() {
    if std::env::var_os(ROLE).is_none() {
        return;
    }
    let stop = hangar_kit::shutdown::on_signal().expect("handlers");
    println!("\nready");
    stop.cancelled().await;
    println!("stopping");
    tokio::time::sleep(Duration::from_mins(10)).await;
}

#[test]
fn the_first_signal_asks_and_the_second_ends() {
    for signal in ["TERM", "INT"] {
        let mut child = Command::new(std::env::current_exe().expect("this binary"))
            .args(["--exact", "shutdown::the_process_that_is_stopped", "--nocapture"])
            .env(ROLE, "1")
            .stdout(Stdio::piped())
            .spawn()
            .expect("started");
        let mut lines = BufReader::new(child.stdout.take().expect("output")).lines();
        let mut until = |wanted: &str| {
            while lines.next().expect("more output").expect("text") != wanted {}
        };
        let id = child.id().to_string();
        let send = || {
            let sent = Command::new("kill").args(["-s", signal, &id]).status().expect("kill");
            assert!(sent.success());
        };
        until("ready");
        send();
        until("stopping");
        assert!(child.try_wait().expect("a status").is_none(), "the first signal only asks");
        send();
        assert_eq!(child.wait().expect("ended").code(), Some(143));
    }
}
