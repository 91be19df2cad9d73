//! What an environment was asked to have, once and for all: clusters depend on it, and whoever repairs the environment
//! need not know.

use std::fs;

use hangar_parts::Set;
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::management::credentials::write_private;
use crate::one_host::{OneHost, UpOptions};

/// The record. What cannot be read counts as nothing asked.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
struct Asked {
    gateway: bool,
    /// Of the management cluster.
    nodes: Option<u8>,
    /// Names of sets; one that is no longer known is left out.
    kubernetes: Vec<String>,
}

impl OneHost {
    /// The options, with what earlier runs were asked for. Refuses to take back what cannot be taken back.
    pub(super) fn with_asked(&self, options: &UpOptions) -> Result<UpOptions> {
        let record = fs::read(self.layout.asked()).ok();
        let asked: Asked = record.and_then(|text| serde_json::from_slice(&text).ok()).unwrap_or_default();
        let mut options = options.clone();
        if let (Some(known), Some(asked)) = (asked.nodes, options.nodes)
            && asked < known
        {
            return Err(Error::FewerNodes { environment: self.name().to_string(), known, asked });
        }
        options.nodes = options.nodes.or(asked.nodes);
        options.gateway |= asked.gateway;
        options.offered.extend(asked.kubernetes.iter().filter_map(|name| name.parse::<Set>().ok()));
        Ok(options)
    }

    /// Before anything follows from it: what a killed run was asked for is asked of the next.
    pub(super) fn remember_asked(&self, options: &UpOptions) -> Result<()> {
        let kubernetes = options.all_kubernetes().into_iter().filter(|set| *set != options.kubernetes);
        let asked = Asked {
            gateway: options.gateway,
            nodes: Some(options.node_count()),
            kubernetes: kubernetes.map(|set| set.name().to_owned()).collect(),
        };
        let text = serde_json::to_vec(&asked).map_err(|error| Error::Rendering {
            what: "the record of what was asked for",
            message: error.to_string(),
        })?;
        write_private(&self.layout.asked(), &text).map(drop)
    }
}
