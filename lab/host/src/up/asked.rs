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
struct Asked {
    gateway: bool,
    /// Names of sets; one that is no longer known is left out.
    kubernetes: Vec<String>,
}

impl OneHost {
    /// The options, with what earlier runs were asked for.
    pub(super) fn with_asked(&self, options: &UpOptions) -> UpOptions {
        let record = fs::read(self.layout.asked()).ok();
        let asked: Asked = record.and_then(|text| serde_json::from_slice(&text).ok()).unwrap_or_default();
        let mut options = options.clone();
        options.gateway |= asked.gateway;
        options.offered.extend(asked.kubernetes.iter().filter_map(|name| name.parse::<Set>().ok()));
        options
    }

    /// Before anything follows from it: what a killed run was asked for is asked of the next.
    pub(super) fn remember_asked(&self, options: &UpOptions) -> Result<()> {
        let kubernetes = options.all_kubernetes().into_iter().filter(|set| *set != options.kubernetes);
        let asked = Asked {
            gateway: options.gateway,
            kubernetes: kubernetes.map(|set| set.name().to_owned()).collect(),
        };
        let text = serde_json::to_vec(&asked).map_err(|error| Error::Rendering {
            what: "the record of what was asked for",
            message: error.to_string(),
        })?;
        write_private(&self.layout.asked(), &text).map(drop)
    }
}
