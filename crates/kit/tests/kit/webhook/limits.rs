//! What callers can make the server hold, while an API server goes on converting.

use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use hangar_kit::webhook::RenewalPolicy;
use serde_json::json;
use tokio::task::{JoinSet, spawn_blocking};

use super::directory::connect;
use super::fixture::Fixture;

const MIB: usize = 1 << 20;

async fn converting(name: &str) -> Arc<Fixture> {
    let fixture = Fixture::start(name, RenewalPolicy::default(), 0).await;
    fixture.install_definition().await;
    fixture.lead();
    fixture.converting().await;
    Arc::new(fixture)
}

/// Converts by the API server until told to stop, and says how often.
fn normal_work(fixture: &Arc<Fixture>) -> (Arc<AtomicBool>, tokio::task::JoinHandle<usize>) {
    let (stop, fixture) = (Arc::new(AtomicBool::new(false)), Arc::clone(fixture));
    let stopped = Arc::clone(&stop);
    let work = tokio::spawn(async move {
        let mut count = 0;
        while !stopped.load(Ordering::SeqCst) {
            fixture.widgets("v1").get("probe").await.expect("converted");
            count += 1;
        }
        count
    });
    (stop, work)
}

fn resident_mib() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").expect("our status");
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).expect("a size");
    line.split_whitespace().nth(1).and_then(|kilobytes| kilobytes.parse::<usize>().ok()).expect("a number")
        / 1024
}

/// The largest this process gets until the flag is set.
fn watched_memory(stop: &Arc<AtomicBool>) -> std::thread::JoinHandle<usize> {
    let stop = Arc::clone(stop);
    std::thread::spawn(move || {
        let mut peak = 0;
        while !stop.load(Ordering::SeqCst) {
            peak = peak.max(resident_mib());
            std::thread::sleep(Duration::from_millis(5));
        }
        peak
    })
}

fn header(path: &str, length: usize) -> String {
    format!("POST {path} HTTP/1.1\r\nhost: hooks\r\ncontent-length: {length}\r\n\r\n")
}

/// The status of the answer to a header and this much of its body; an error where the server hung up before that.
fn status(address: SocketAddr, bundle: &str, path: &str, length: usize, body: &[u8]) -> io::Result<String> {
    let mut stream = connect(address, bundle).map_err(io::Error::other)?;
    stream.write_all(header(path, length).as_bytes())?;
    stream.write_all(body)?;
    let mut answer = [0; 12];
    stream.read_exact(&mut answer)?;
    Ok(String::from_utf8_lossy(&answer[9..]).into_owned())
}

/// How many bytes of a body the server takes before it hangs up.
fn taken(address: SocketAddr, bundle: &str, path: &str, length: usize) -> usize {
    let mut stream = connect(address, bundle).expect("connected");
    stream.write_all(header(path, length).as_bytes()).expect("sent");
    let (chunk, mut sent) = ([b' '; 16 << 10], 0);
    while sent < length && stream.write_all(&chunk).is_ok() {
        sent += chunk.len();
    }
    sent
}

/// A review of this size. As text, so that no tree of it stays in our memory before it is measured.
fn review(fixture: &Fixture, size: usize) -> Vec<u8> {
    let mut widget =
        serde_json::to_value(fixture.widget("many", "v1", &json!({ "size": "1" }))).expect("JSON");
    widget["metadata"]["annotations"] = json!({ "entries": vec!["entry"; 500] });
    let widget = widget.to_string();
    let head = r#"{"apiVersion":"apiextensions.k8s.io/v1","kind":"ConversionReview","request":{"uid":"u","#;
    let mut review = Vec::with_capacity(size + widget.len());
    write!(review, r#"{head}"desiredAPIVersion":"{}/v2","objects":[{widget}"#, fixture.group())
        .expect("written");
    while review.len() + widget.len() + 4 < size {
        review.push(b',');
        review.extend_from_slice(widget.as_bytes());
    }
    review.extend_from_slice(b"]}}");
    review
}

#[tokio::test(flavor = "multi_thread")]
async fn bodies_of_a_gibibyte_together_take_no_room_and_stop_no_conversion() {
    let fixture = converting("limits").await;
    let (address, bundle) = (fixture.address, fixture.secret("ca.crt").await);
    let (known, unknown) = (fixture.path("convert").await, "/convert".to_owned());
    let large: Arc<[u8]> = review(&fixture, 20 * MIB).into();
    let before = resident_mib();
    let (stop, work) = normal_work(&fixture);
    let memory = watched_memory(&stop);

    let mut callers = JoinSet::new();
    for number in 0..16 {
        let (bundle, path) = (bundle.clone(), if number % 2 == 0 { known.clone() } else { unknown.clone() });
        callers.spawn_blocking(move || {
            let taken = taken(address, &bundle, &path, 128 * MIB);
            assert!(taken < 16 * MIB, "{path}: {} MiB were taken", taken / MIB);
        });
    }
    let converted = Arc::new(AtomicUsize::new(0));
    for _ in 0..5 {
        let (bundle, path, large) = (bundle.clone(), known.clone(), Arc::clone(&large));
        let converted = Arc::clone(&converted);
        // On a slow host some find no place in time; they are told so while they still send.
        callers.spawn_blocking(move || {
            match status(address, &bundle, &path, large.len(), &large).as_deref() {
                Ok("200") => drop(converted.fetch_add(1, Ordering::SeqCst)),
                Ok(other) => assert_eq!(other, "503"),
                Err(_) => {}
            }
        });
    }
    while let Some(caller) = callers.join_next().await {
        caller.expect("as it should be");
    }
    stop.store(true, Ordering::SeqCst);
    let (count, peak) = (work.await.expect("no conversion failed"), memory.join().expect("a size"));
    println!("{before} MiB before, {peak} MiB at most, {count} conversions of the API server beside it");
    assert!(converted.load(Ordering::SeqCst) > 0);
    assert!(count > 0);
    assert!(peak.saturating_sub(before) < 300, "{before} MiB became {peak} MiB");
}

#[tokio::test(flavor = "multi_thread")]
async fn who_does_not_know_the_path_learns_nothing() {
    let fixture = converting("strangers").await;
    let (address, bundle) = (fixture.address, fixture.secret("ca.crt").await);
    let known = fixture.path("validate").await;
    let statuses = spawn_blocking(move || {
        let ask =
            |path: &str, length, body: &[u8]| status(address, &bundle, path, length, body).expect("answered");
        let other = format!("/{}/validate", "0".repeat(32));
        [
            ask("/validate", 2, b"{}"),
            ask("/convert", 2, b"{}"),
            ask(&other, 2, b"{}"),
            ask("/", 0, b""),
            ask(&known, 2, b"{}"),
            ask(&known, 9 * MIB, b""),
        ]
    });
    assert_eq!(statuses.await.expect("answers"), ["404", "404", "404", "404", "400", "413"]);
    assert!(fixture.admitted.lock().expect("a lock").is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_that_say_nothing_make_room_for_the_api_server() {
    let fixture = converting("idle").await;
    let (address, bundle) = (fixture.address, fixture.secret("ca.crt").await);
    let (stop, work) = normal_work(&fixture);
    let ended = spawn_blocking(move || {
        let mut silent: Vec<TcpStream> =
            (0..400).map(|_| TcpStream::connect(address).expect("connected")).collect();
        // The oldest made room at once, without an answer.
        silent[0].set_read_timeout(Some(Duration::from_secs(5))).expect("set");
        let is_closed = matches!(silent[0].read(&mut [0; 1]), Ok(0) | Err(_));
        // A header that never ends does not outlast its time either.
        let mut slow = connect(address, &bundle).expect("connected");
        slow.write_all(b"POST /convert HTTP/1.1\r\n").expect("sent");
        slow.sock.set_read_timeout(Some(Duration::from_secs(20))).expect("set");
        let started = std::time::Instant::now();
        let read = slow.read(&mut [0; 1]);
        (is_closed, matches!(read, Ok(0) | Err(_)) && started.elapsed() < Duration::from_secs(15))
    });
    assert_eq!(ended.await.expect("no panic"), (true, true));
    stop.store(true, Ordering::SeqCst);
    assert!(work.await.expect("no conversion failed") > 0);
}
