//! The control plane's static pods: kubelet runs the manifests in a directory, so a pod is started by writing its
//! manifest, and started again by writing a different one.
//!
//! Pods that have to start again are ended here, while kubelet does not run. Kubelet would end them itself, but later,
//! and the following phases would connect to an API server that is about to end. And a kubelet that has not reached the
//! API server since it started, because certificates have expired, would not end them at all. What is left afterwards
//! is the same as after a restart of the machine.

use std::fs;
use std::io;
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use hangar_machine::Machine;
use serde_json::Value;

use super::machine::yaml;
use crate::addons::NAMESPACE;
use crate::addresses::Addresses;
use crate::error::{At, Result};
use crate::images::Listing;
use crate::management::control_plane::{self, Component};
use crate::management::credentials::write_private;
use crate::management::{Node, startup};
use crate::one_host::{OneHost, UpOptions};

/// Requests take less, and an API server would wait a minute for watches that do not end: the longer it takes, the more
/// of those that need it give up.
const PATIENCE: Duration = Duration::from_secs(2);
/// What was killed ends at once.
const GRACE: Duration = Duration::from_secs(5);
const LOOK: Duration = Duration::from_millis(100);

impl OneHost {
    /// What the manifests depend on, with the seals of what is on disk and in the machine now.
    pub(super) fn manifest_options(
        &self,
        options: &UpOptions,
        addresses: Addresses,
        images: &Listing,
    ) -> Result<control_plane::Options> {
        let (kubernetes, etcd) = (options.kubernetes, options.etcd);
        let seal = |component: Component| {
            let image = component.image(kubernetes, etcd).reference();
            let image = images.digest(&image).unwrap_or_default();
            Ok((component, self.seal(Node::FIRST, component.files(), ("image", image))?))
        };
        let seals = all().map(seal).collect::<Result<_>>()?;
        Ok(control_plane::Options { address: addresses.management, kubernetes, etcd, seals })
    }

    /// The seal of files below /etc/kubernetes of a node's machine, and of something else.
    pub(super) fn seal(&self, node: Node, files: &[&str], other: (&str, &str)) -> Result<String> {
        let directory = self.layout.node(node).kubernetes();
        let read = |name: &&str| {
            let path = directory.join(name);
            fs::read(&path).at("read", &path)
        };
        let contents = files.iter().map(read).collect::<Result<Vec<_>>>()?;
        let files = files.iter().zip(&contents).map(|(name, content)| (*name, content.as_slice()));
        Ok(startup::seal(files.chain([(other.0, other.1.as_bytes())])))
    }

    fn manifest_path(&self, component: Component) -> PathBuf {
        self.layout.kubernetes().join("manifests").join(component.file())
    }

    /// Writes what kubelet starts as soon as it sees it. How many were not there.
    pub(super) fn write_manifests(
        &self,
        components: &[Component],
        options: &control_plane::Options,
    ) -> Result<usize> {
        let mut written = 0;
        for component in components {
            let text = yaml(&component.manifest(options))?;
            written += usize::from(write_private(&self.manifest_path(*component), text.as_bytes())?);
        }
        Ok(written)
    }

    /// Those that have another manifest than they should, or none and should.
    pub(super) fn outdated_pods(&self, options: &control_plane::Options) -> Result<Vec<Component>> {
        let mut outdated = Vec::new();
        for component in all() {
            let wanted = yaml(&component.manifest(options))?;
            let is_outdated = match fs::read(self.manifest_path(component)) {
                Ok(found) => found != wanted.as_bytes(),
                // The others are written once the API server is ready.
                Err(_) => Component::FIRST.contains(&component),
            };
            if is_outdated {
                outdated.push(component);
            }
        }
        Ok(outdated)
    }

    /// Ends what runs of them, and takes their manifests back. Kubelet must not run. The names of those that ran.
    pub(super) fn end_pods(&self, machine: &Machine, components: &[Component]) -> Result<Vec<&'static str>> {
        let mut names: Vec<&str> =
            running(machine, components)?.into_iter().map(|task| task.component.name()).collect();
        names.dedup();
        for (signal, patience) in [("SIGTERM", PATIENCE), ("SIGKILL", GRACE)] {
            for task in running(machine, components)? {
                // It may have ended meanwhile.
                let _ = machine.run(["ctr", "-n", "k8s.io", "tasks", "kill", "--signal", signal, &task.id]);
            }
            if has_ended(machine, components, patience)? {
                break;
            }
        }
        self.withhold(components)?;
        Ok(names)
    }

    /// Takes back all manifests. After a restart of the machine images may have to be replaced first; and controllers
    /// that start beside the API server would fail and be held back by kubelet for longer each time.
    pub(super) fn withhold_manifests(&self) -> Result<()> {
        self.withhold(&all().collect::<Vec<_>>())
    }

    fn withhold(&self, components: &[Component]) -> Result<()> {
        for component in components {
            let path = self.manifest_path(*component);
            match fs::remove_file(&path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(error).at("remove", &path);
                }
                _ => {}
            }
        }
        Ok(())
    }
}

fn all() -> impl Iterator<Item = Component> {
    Component::FIRST.into_iter().chain(Component::SECOND)
}

/// A container that runs.
#[derive(Debug, PartialEq, Eq)]
struct Task {
    component: Component,
    id: String,
}

fn has_ended(machine: &Machine, components: &[Component], patience: Duration) -> Result<bool> {
    let deadline = Instant::now() + patience;
    loop {
        if running(machine, components)?.is_empty() {
            return Ok(true);
        }
        if Instant::now() >= deadline {
            return Ok(false);
        }
        thread::sleep(LOOK);
    }
}

fn running(machine: &Machine, components: &[Component]) -> Result<Vec<Task>> {
    let tasks = machine.run(["ctr", "-n", "k8s.io", "tasks", "ls"])?;
    let mut found = Vec::new();
    for component in components {
        // Several conditions: containers of clusters' control planes have the same names.
        let filter = [
            ("io.cri-containerd.kind", "container"),
            ("io.kubernetes.pod.namespace", NAMESPACE),
            ("io.kubernetes.pod.name", component.pod().as_str()),
        ]
        .map(|(label, value)| format!("labels.{}=={value}", Value::from(label)))
        .join(",");
        let containers = machine.run(["ctr", "-n", "k8s.io", "containers", "ls", "-q", &filter])?;
        let ids = running_ids(&containers, &tasks);
        found.extend(ids.into_iter().map(|id| Task { component: *component, id }));
    }
    Ok(found)
}

/// Those of the containers that have a process, from what `ctr` prints of both.
fn running_ids(containers: &str, tasks: &str) -> Vec<String> {
    let is_running = |id: &&str| {
        tasks.lines().any(|line| {
            let mut words = line.split_whitespace();
            words.next() == Some(id) && words.nth(1).is_some_and(|state| state != "STOPPED")
        })
    };
    containers.lines().map(str::trim).filter(is_running).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn containers_without_a_process_do_not_run() {
        let tasks =
            "TASK  PID     STATUS    \nabc   13077   RUNNING\ndef   0       STOPPED\nother 1 RUNNING\n";
        assert_eq!(running_ids("abc\ndef\nghi\n", tasks), ["abc"]);
        assert_eq!(running_ids("", tasks), Vec::<String>::new());
    }
}
