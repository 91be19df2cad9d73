//! Collecting what a bug report needs, into a directory. No private keys and no Secrets.
//!
//! ```text
//! host.txt                       the host: versions, control groups, disk
//! machines/<name>/*.log          logs of every machine, and how it is (state.txt)
//! fabrics/<name>.log, cloud.log  the way out, the embedded cloud
//! nodes.json, events.json, …     objects of the management cluster
//! pods/<namespace>/*.log         logs of its pods
//! clusters/*.json                every Cluster as `hangar describe` sees it
//! notes.txt                      what could not be had, and why
//! ```

use std::fs;
use std::path::{Path, PathBuf};

use hangar_kit::describe::read;
use hangar_plan::describe::tree;
use k8s_openapi::api::core::v1::{Event, Node, Pod};
use kube::api::{ListParams, LogParams};
use kube::core::{DynamicObject, GroupVersionKind};
use kube::discovery::ApiResource;
use kube::{Api, Client, ResourceExt};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::cluster;
use crate::error::{At, Error, Result};
use crate::images;
use crate::one_host::OneHost;

/// Enough to see how it came about.
const LINES: i64 = 5000;

impl OneHost {
    /// Copies logs below `target`, which is made. What cannot be had is noted there and does not stop the rest.
    pub async fn collect_logs(&self, target: &Path) -> Result<PathBuf> {
        fs::create_dir_all(target).at("create", target)?;
        let mut notes = Vec::new();
        write(&target.join("host.txt"), &self.describe_host())?;
        for status in self.environment.machines()? {
            let directory = target.join("machines").join(status.name.as_str());
            fs::create_dir_all(&directory).at("create", &directory)?;
            for (name, path) in self.environment.machine(&status.name).log_files().unwrap_or_default() {
                if let Err(error) = fs::copy(&path, directory.join(format!("{name}.log"))) {
                    notes.push(format!("{}: {error}", path.display()));
                }
            }
            let services = self.environment.machine(&status.name).services();
            write(&directory.join("state.txt"), &format!("{:#?}\n{services:#?}\n", status.state))?;
        }
        self.collect_networks(target, &mut notes)?;
        if let Err(error) = fs::copy(self.layout.cloud_log(), target.join("cloud.log")) {
            notes.push(format!("cloud: {error}"));
        }
        match cluster::connect(&self.kubeconfig()).await {
            Ok(client) => collect_cluster(&client, target, &mut notes).await?,
            Err(error) => notes.push(format!("cluster: {}", error.with_causes())),
        }
        write(&target.join("notes.txt"), &notes.join("\n"))?;
        Ok(target.to_owned())
    }

    fn describe_host(&self) -> String {
        let first_line = |path: &str| {
            let text = fs::read_to_string(path).unwrap_or_else(|error| error.to_string());
            text.lines().next().unwrap_or_default().to_owned()
        };
        let place = self.environment.state();
        let existing = place.ancestors().find(|path| path.exists()).unwrap_or(place);
        format!(
            "hangar {}\nenvironment {}\nsystem {}\nkernel {}\nabilities {:?}\nfree MiB at {} {:?}\nload {}\n",
            env!("CARGO_PKG_VERSION"),
            self.name(),
            first_line("/etc/os-release"),
            first_line("/proc/version"),
            hangar_machine::host::abilities(),
            existing.display(),
            images::free_mebibytes(existing),
            first_line("/proc/loadavg"),
        )
    }

    fn collect_networks(&self, target: &Path, notes: &mut Vec<String>) -> Result<()> {
        let target = target.join("fabrics");
        fs::create_dir_all(&target).at("create", &target)?;
        let fabrics = fs::read_dir(self.layout.directory().join("fabrics")).into_iter().flatten().flatten();
        for fabric in fabrics {
            let log = fabric.path().join("relay.log");
            let name = format!("{}.log", fabric.file_name().to_string_lossy());
            if let Err(error) = fs::copy(&log, target.join(name)) {
                notes.push(format!("{}: {error}", log.display()));
            }
        }
        Ok(())
    }
}

async fn collect_cluster(client: &Client, target: &Path, notes: &mut Vec<String>) -> Result<()> {
    collect_clusters(client, target, notes).await?;
    dump::<Node>(client, "Node", target, notes).await?;
    dump::<Event>(client, "Event", target, notes).await?;
    let pods = dump::<Pod>(client, "Pod", target, notes).await?;
    for pod in pods {
        let (namespace, name) = (pod.namespace().unwrap_or_default(), pod.name_any());
        let directory = target.join("pods").join(&namespace);
        fs::create_dir_all(&directory).at("create", &directory)?;
        let api: Api<Pod> = Api::namespaced(client.clone(), &namespace);
        let containers = pod.spec.map(|spec| spec.containers).unwrap_or_default();
        for container in containers {
            for previous in [false, true] {
                let options = LogParams {
                    container: Some(container.name.clone()),
                    previous,
                    tail_lines: Some(LINES),
                    timestamps: true,
                    ..LogParams::default()
                };
                let ending = if previous { "previous.log" } else { "log" };
                match api.logs(&name, &options).await {
                    Ok(text) => write(&directory.join(format!("{name}.{}.{ending}", container.name)), &text)?,
                    // Most have no earlier life.
                    Err(_) if previous => {}
                    Err(error) => notes.push(format!("log of {namespace}/{name}: {error}")),
                }
            }
        }
    }
    Ok(())
}

async fn collect_clusters(client: &Client, target: &Path, notes: &mut Vec<String>) -> Result<()> {
    let kind = GroupVersionKind::gvk("cluster.x-k8s.io", "v1beta2", "Cluster");
    let api: Api<DynamicObject> = Api::all_with(client.clone(), &ApiResource::from_gvk(&kind));
    let clusters = match api.list(&ListParams::default()).await {
        Ok(list) => list.items,
        Err(error) => {
            notes.push(format!("Cluster: {error}"));
            Vec::new()
        }
    };
    let directory = target.join("clusters");
    for cluster in clusters {
        let (namespace, name) = (cluster.namespace().unwrap_or_default(), cluster.name_any());
        fs::create_dir_all(&directory).at("create", &directory)?;
        match read(client, &namespace, &name).await {
            Ok(Some(objects)) => {
                let text = serde_json::to_string_pretty(&tree(&objects))
                    .map_err(|error| Error::Rendering { what: "a cluster", message: error.to_string() })?;
                write(&directory.join(format!("{namespace}.{name}.json")), &text)?;
            }
            Ok(None) => notes.push(format!("Cluster {namespace}/{name}: deleted meanwhile")),
            Err(error) => notes.push(format!("Cluster {namespace}/{name}: {error}")),
        }
    }
    Ok(())
}

async fn dump<K>(client: &Client, kind: &str, target: &Path, notes: &mut Vec<String>) -> Result<Vec<K>>
where
    K: kube::Resource<DynamicType = ()> + Serialize + DeserializeOwned + Clone + std::fmt::Debug,
{
    match Api::<K>::all(client.clone()).list(&ListParams::default()).await {
        Ok(list) => {
            let text = serde_json::to_string_pretty(&list.items)
                .map_err(|error| Error::Rendering { what: "objects", message: error.to_string() })?;
            write(&target.join(format!("{}s.json", kind.to_lowercase())), &text)?;
            Ok(list.items)
        }
        Err(error) => {
            notes.push(format!("{kind}: {error}"));
            Ok(Vec::new())
        }
    }
}

fn write(path: &Path, text: &str) -> Result<()> {
    fs::write(path, text).at("write", path)
}
