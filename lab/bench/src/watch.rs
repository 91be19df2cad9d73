//! Watches with kubectl processes, and notes when each event arrives.

use std::io::BufReader;
use std::process::{Child, Stdio};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow, bail};
use serde_json::{Deserializer, Value};

use crate::kubectl::Kubectl;

/// A watch is there after a start, a handshake and a list. It says nothing about it where nothing is there to be listed.
const BEGINNING: Duration = Duration::from_secs(2);

/// An object of a watch is there, or changed.
pub(crate) struct Event {
    pub(crate) at: Instant,
    pub(crate) watch: &'static str,
    pub(crate) object: Value,
}

/// Ends its processes when it is dropped.
pub(crate) struct Watches {
    sender: Sender<anyhow::Result<Event>>,
    events: Receiver<anyhow::Result<Event>>,
    processes: Vec<Child>,
}

impl Watches {
    pub(crate) fn new() -> Self {
        let (sender, events) = mpsc::channel();
        Self { sender, events, processes: Vec::new() }
    }

    /// Begins a watch; `arguments` say of what.
    pub(crate) fn add(
        &mut self,
        watch: &'static str,
        kubectl: &Kubectl,
        arguments: &[&str],
    ) -> anyhow::Result<()> {
        let mut command =
            kubectl.command(&["get", watch, "--watch", "--output-watch-events", "--output=json"]);
        command.args(arguments).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut process = command.spawn().context("kubectl get --watch")?;
        let output = process.stdout.take().context("the watch has no output")?;
        self.processes.push(process);
        let sender = self.sender.clone();
        thread::spawn(move || {
            for event in Deserializer::from_reader(BufReader::new(output)).into_iter::<Value>() {
                let Ok(mut event) = event else { break };
                // The end of an earlier one of the same name.
                if event["type"] == "DELETED" {
                    continue;
                }
                let event = Event { at: Instant::now(), watch, object: event["object"].take() };
                if sender.send(Ok(event)).is_err() {
                    return;
                }
            }
            // Else the end of a watch would look like a world in which nothing happens.
            let _ = sender.send(Err(anyhow!("the watch of {watch} ended")));
        });
        Ok(())
    }

    /// Waits until watches that were added are there.
    pub(crate) fn wait_until_there() {
        thread::sleep(BEGINNING);
    }

    /// The next event, in the order of arrival.
    pub(crate) fn next(&self, deadline: Instant) -> anyhow::Result<Event> {
        match self.events.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
            Ok(event) => event,
            Err(_) => bail!("nothing happens any more"),
        }
    }
}

impl Drop for Watches {
    fn drop(&mut self) {
        for process in &mut self.processes {
            let _ = process.kill();
            let _ = process.wait();
        }
    }
}

/// Whether a pod has a container of that name.
pub(crate) fn runs(pod: &Value, container: &str) -> bool {
    pod["spec"]["containers"].as_array().into_iter().flatten().any(|it| it["name"] == container)
}

/// Whether a condition is true.
pub(crate) fn holds(object: &Value, condition: &str) -> bool {
    let conditions = object["status"]["conditions"].as_array().into_iter().flatten();
    conditions.into_iter().any(|it| it["type"] == condition && it["status"] == "True")
}
