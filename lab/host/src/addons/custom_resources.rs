//! The Gateway API's custom resources, read from the pinned set at run time, because they change with that project's
//! version and not with ours.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde_json::Value;

/// The channel with TLSRoute, which Traefik needs for passing TLS on.
const CHANNEL: &str = "experimental";

/// Kinds in this group. Another group in the same directory holds trials that nothing here reads.
const PREFIX: &str = "gateway.networking.k8s.io_";

/// Why the custom resources could not be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CustomResourcesError {
    /// A file or directory of the set could not be read.
    #[error("cannot read {}", path.display())]
    File { path: PathBuf, source: io::Error },
    /// A file of the set is not what it should be.
    #[error("{} is not a custom resource definition: {why}", path.display())]
    Content {
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// The set holds none.
    #[error("no custom resources in {}", path.display())]
    None {
        /// Where they were looked for.
        path: PathBuf,
    },
}

/// The definitions, by name. `files` is what `Parts::files(Set::GatewayApi)` returns. Apply them before the objects
/// and wait until each is established.
pub fn gateway_api(files: &Path) -> Result<Vec<Value>, CustomResourcesError> {
    let directory = files.join(CHANNEL);
    let failed = |source| CustomResourcesError::File { path: directory.clone(), source };
    let mut paths = Vec::new();
    for entry in fs::read_dir(&directory).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        if entry.file_name().to_str().is_some_and(|name| name.starts_with(PREFIX)) {
            paths.push(entry.path());
        }
    }
    if paths.is_empty() {
        return Err(CustomResourcesError::None { path: directory });
    }
    paths.sort();
    paths.iter().map(|path| read(path)).collect()
}

fn read(path: &Path) -> Result<Value, CustomResourcesError> {
    let text = fs::read_to_string(path)
        .map_err(|source| CustomResourcesError::File { path: path.to_owned(), source })?;
    let wrong = |why: String| CustomResourcesError::Content { path: path.to_owned(), why };
    let mut object: Value = serde_saphyr::from_str(&text).map_err(|error| wrong(error.to_string()))?;
    if object["kind"] != "CustomResourceDefinition" {
        return Err(wrong(format!("its kind is {}", object["kind"])));
    }
    // Generators leave an empty status, which is not ours to set and would never be what is there.
    if let Some(fields) = object.as_object_mut() {
        fields.remove("status");
    }
    if let Some(meta) = object["metadata"].as_object_mut() {
        meta.remove("creationTimestamp");
    }
    Ok(object)
}
