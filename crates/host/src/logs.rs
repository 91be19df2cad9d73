//! Collecting what a bug report needs, into a directory: logs of machines and pods, manifests, objects. No private
//! keys and no Secrets.

use std::fs;
use std::path::{Path, PathBuf};

use k8s_openapi::api::core::v1::{Event, Node, Pod};
use kube::api::{ListParams, LogParams};
use kube::{Api, Client, ResourceExt};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::cluster;
use crate::error::{At, Error, Result};
use crate::one_host::OneHost;

/// Enough to see how it came about.
const LINES: i64 = 5000;

impl OneHost {
    /// Copies logs below `target`, which is made. What cannot be had is noted there and does not stop the rest.
    pub async fn collect_logs(&self, target: &Path) -> Result<PathBuf> {
        fs::create_dir_all(target).at("create", target)?;
        let mut notes = Vec::new();
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
        if let Err(error) = fs::copy(self.layout.cloud_log(), target.join("cloud.log")) {
            notes.push(format!("cloud: {error}"));
        }
        match cluster::connect(&self.kubeconfig()).await {
            Ok(client) => collect_cluster(&client, target, &mut notes).await?,
            Err(error) => notes.push(format!("cluster: {error}")),
        }
        write(&target.join("notes.txt"), &notes.join("\n"))?;
        Ok(target.to_owned())
    }
}

async fn collect_cluster(client: &Client, target: &Path, notes: &mut Vec<String>) -> Result<()> {
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
