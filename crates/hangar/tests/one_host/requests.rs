//! A loop of requests that runs while something happens to a control plane, and whether any of them failed.
//!
//! Everything that people and programs do at once: fresh connections, kept ones, watches, writes that a webhook with
//! failurePolicy Fail has to let pass, and reads of an aggregated API. A request on a kept connection that its server
//! closed before it began the request, or refused with 503 and Retry-After because it ends, is sent once more and counted
//! apart: that race is part of HTTP, and every client of Kubernetes does the same. Everything else that is not the
//! expected answer is a failure.
//!
//! A watch goes on from the last resourceVersion that it saw, when its server ended it in order. In the end each watch
//! must have seen every object that was written.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use http::{Method, StatusCode};
use http_body_util::BodyExt as _;
use serde_json::{Value, json};
use tokio::runtime::Runtime;
use tokio::task::JoinHandle;

use crate::door::{Connection, Door, Fault, Protocol, chain};
use crate::extension;
use crate::waiting::PATIENCE;

const OBJECTS: &str = "/api/v1/namespaces/default/configmaps";
const LEAST: usize = 5000;

/// What one client does all the time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Work {
    Read,
    /// A webhook must let it pass.
    Write,
    /// A read that a pod of the tenant answers.
    Aggregated,
}

/// A client and its pause between two requests.
struct Client {
    work: Work,
    protocol: Protocol,
    is_kept: bool,
    pause: Duration,
}

const fn client(work: Work, protocol: Protocol, is_kept: bool, milliseconds: u64) -> Client {
    Client { work, protocol, is_kept, pause: Duration::from_millis(milliseconds) }
}

const CLIENTS: [Client; 8] = [
    client(Work::Read, Protocol::One, false, 100),
    client(Work::Read, Protocol::Two, false, 200),
    client(Work::Read, Protocol::Two, true, 50),
    client(Work::Read, Protocol::One, true, 50),
    client(Work::Write, Protocol::Two, true, 300),
    client(Work::Write, Protocol::One, false, 500),
    client(Work::Aggregated, Protocol::Two, true, 200),
    client(Work::Aggregated, Protocol::One, false, 300),
];

impl fmt::Display for Client {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kept = if self.is_kept { "kept" } else { "fresh" };
        write!(formatter, "{:?} over {kept} {:?}", self.work, self.protocol)
    }
}

/// What happened.
#[derive(Debug, Default)]
pub(crate) struct Report {
    answered: BTreeMap<String, usize>,
    /// With the time since the beginning.
    pub(crate) failures: Vec<String>,
    sent_again: BTreeMap<String, usize>,
    /// How often watches went on.
    resumed: usize,
    written: BTreeSet<String>,
    watched: BTreeMap<String, BTreeSet<String>>,
}

impl fmt::Display for Report {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(formatter, "{} requests answered, {} failed", self.total(), self.failures.len())?;
        for (what, count) in &self.answered {
            let again = self.sent_again.get(what).copied().unwrap_or_default();
            writeln!(formatter, "{count:>7}  {what}, {again} of them sent twice")?;
        }
        writeln!(
            formatter,
            "{:>7}  objects written, watches went on {} times",
            self.written.len(),
            self.resumed
        )?;
        self.failures.iter().take(200).try_for_each(|failure| writeln!(formatter, "{failure}"))
    }
}

impl Report {
    fn total(&self) -> usize {
        self.answered.values().sum()
    }
}

/// What clients share.
struct Ledger {
    door: Door,
    start: Instant,
    is_over: AtomicBool,
    number: AtomicUsize,
    report: Mutex<Report>,
}

impl Ledger {
    fn report(&self) -> MutexGuard<'_, Report> {
        self.report.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn fail(&self, what: &str, why: &str) {
        let failure = format!("{:>7.2} s  {what}: {why}", self.start.elapsed().as_secs_f64());
        self.report().failures.push(failure);
    }
}

/// The loop.
pub(crate) struct Requests {
    runtime: Runtime,
    ledger: Arc<Ledger>,
    clients: Vec<JoinHandle<()>>,
}

impl Requests {
    pub(crate) fn start(door: Door) -> Self {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let ledger = Arc::new(Ledger {
            door,
            start: Instant::now(),
            is_over: AtomicBool::new(false),
            number: AtomicUsize::new(0),
            report: Mutex::default(),
        });
        for protocol in [Protocol::One, Protocol::Two] {
            runtime.spawn(watch(ledger.clone(), protocol));
        }
        let clients = CLIENTS.iter().map(|client| runtime.spawn(client.run(ledger.clone())));
        let clients = clients.collect();
        Self { runtime, ledger, clients }
    }

    /// Whether there were enough of them.
    pub(crate) fn is_enough(&self) -> Result<(), String> {
        let total = self.ledger.report().total();
        crate::waiting::is(total >= LEAST, || format!("{total} requests"))
    }

    /// Ends it when the watches have seen everything.
    pub(crate) fn stop(self) -> Report {
        self.ledger.is_over.store(true, Ordering::SeqCst);
        for client in self.clients {
            self.runtime.block_on(client).unwrap();
        }
        let deadline = Instant::now() + PATIENCE;
        while let Some(unseen) = unseen(&self.ledger.report()) {
            if Instant::now() > deadline {
                self.ledger.fail("watch", &unseen);
                break;
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        self.runtime.shutdown_background();
        std::mem::take(&mut *self.ledger.report())
    }
}

/// What a watch has not seen.
fn unseen(report: &Report) -> Option<String> {
    report.watched.iter().find_map(|(watch, seen)| {
        let unseen: Vec<&String> = report.written.difference(seen).collect();
        (!unseen.is_empty()).then(|| format!("{watch} never saw {unseen:?}"))
    })
}

impl Client {
    async fn run(&self, ledger: Arc<Ledger>) {
        let mut kept = None;
        while !ledger.is_over.load(Ordering::SeqCst) {
            if let Err(why) = self.once(&ledger, &mut kept).await {
                kept = None;
                ledger.fail(&self.to_string(), &why);
            }
            tokio::time::sleep(self.pause).await;
        }
    }

    async fn once(&self, ledger: &Ledger, kept: &mut Option<Connection>) -> Result<(), String> {
        let door = &ledger.door;
        let name = format!("{}{}", extension::ALLOWED, ledger.number.fetch_add(1, Ordering::SeqCst));
        let request = || match self.work {
            Work::Read => door.request(Method::GET, "/api/v1/namespaces/kube-system", ""),
            Work::Write => {
                door.request(Method::POST, OBJECTS, &json!({"metadata": {"name": name}}).to_string())
            }
            Work::Aggregated => door.request(Method::GET, extension::GREETINGS, ""),
        };
        let mut connection = door.kept_or_new(kept.take(), self.protocol).await?;
        let mut is_again = false;
        let (status, body) = match connection.exchange(request()).await {
            Err(Fault::NotBegun(_)) if self.is_kept => {
                is_again = true;
                connection = door.connect(self.protocol).await?;
                connection.exchange(request()).await
            }
            outcome => outcome,
        }
        .map_err(Fault::text)?;
        let text = String::from_utf8_lossy(&body);
        let is_good = match self.work {
            Work::Read => status == StatusCode::OK && text.contains("kube-system"),
            Work::Write => status == StatusCode::CREATED || is_again && status == StatusCode::CONFLICT,
            Work::Aggregated => status == StatusCode::OK && text.contains(extension::GREETING),
        };
        if !is_good {
            return Err(format!("{status}: {}", text.trim()));
        }
        let mut report = ledger.report();
        *report.answered.entry(self.to_string()).or_default() += 1;
        if is_again {
            *report.sent_again.entry(self.to_string()).or_default() += 1;
        }
        if self.work == Work::Write {
            report.written.insert(name);
        }
        drop(report);
        if self.is_kept {
            *kept = Some(connection);
        }
        Ok(())
    }
}

/// Watches for ever.
async fn watch(ledger: Arc<Ledger>, protocol: Protocol) {
    let what = format!("watch over {protocol:?}");
    ledger.report().watched.insert(what.clone(), BTreeSet::new());
    let mut version = None;
    loop {
        match follow(&ledger, protocol, &what, &mut version).await {
            Ok(()) => ledger.report().resumed += 1,
            Err(why) => {
                ledger.fail(&what, &why);
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
    }
}

/// One watch until its server ends it in order.
async fn follow(
    ledger: &Ledger,
    protocol: Protocol,
    what: &str,
    version: &mut Option<String>,
) -> Result<(), String> {
    let mut connection = ledger.door.connect(protocol).await?;
    let from = match version.clone() {
        Some(version) => version,
        None => listed(ledger, &mut connection, what).await?,
    };
    let path = format!("{OBJECTS}?watch=true&allowWatchBookmarks=true&resourceVersion={from}");
    let request = ledger.door.request(Method::GET, &path, "");
    let answer = connection.begin(request).await.map_err(Fault::text)?;
    if answer.status() != StatusCode::OK {
        return Err(format!("{} from {from}", answer.status()));
    }
    *version = Some(from);
    let mut body = answer.into_body();
    let mut bytes = Vec::new();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| format!("not ended in order: {}", chain(&error)))?;
        bytes.extend_from_slice(frame.data_ref().map_or(&[], |data| data.as_ref()));
        while let Some(end) = bytes.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = bytes.drain(..=end).collect();
            let event: Value = serde_json::from_slice(&line).map_err(|error| error.to_string())?;
            let metadata = &event["object"]["metadata"];
            let text = |field: &str| metadata[field].as_str().map(str::to_owned);
            if event["type"] == "ERROR" {
                *version = None;
                return Err(event.to_string());
            }
            *version = text("resourceVersion").or(version.take());
            let mut report = ledger.report();
            report.watched.entry(what.to_owned()).or_default().extend(text("name"));
        }
    }
    if bytes.is_empty() { Ok(()) } else { Err("ended in the middle of an event".to_owned()) }
}

/// Where a first watch begins, with what is there.
async fn listed(ledger: &Ledger, connection: &mut Connection, what: &str) -> Result<String, String> {
    let request = ledger.door.request(Method::GET, OBJECTS, "");
    let (_, body) = connection.exchange(request).await.map_err(Fault::text)?;
    let list: Value = serde_json::from_slice(&body).map_err(|error| error.to_string())?;
    let items = list["items"].as_array().into_iter().flatten();
    let names = items.filter_map(|item| item["metadata"]["name"].as_str().map(str::to_owned));
    ledger.report().watched.entry(what.to_owned()).or_default().extend(names);
    Ok(list["metadata"]["resourceVersion"].as_str().ok_or("a list without a version")?.to_owned())
}
