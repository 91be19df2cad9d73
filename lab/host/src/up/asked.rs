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
    /// The same for the first Cluster, once it was asked for: another version is its owner's decision.
    cluster_kubernetes: Option<String>,
}

impl OneHost {
    fn asked(&self) -> Asked {
        let record = fs::read(self.layout.asked()).ok();
        record.and_then(|text| serde_json::from_slice(&text).ok()).unwrap_or_default()
    }

    /// The options, with what earlier runs were asked for. Refuses to take back what cannot be taken back.
    pub(super) fn with_asked(&self, options: &UpOptions) -> Result<UpOptions> {
        let asked = self.asked();
        let mut options = options.clone();
        if let (Some(known), Some(asked)) = (asked.nodes, options.nodes)
            && asked < known
        {
            return Err(Error::FewerNodes { environment: self.name().to_string(), known, asked });
        }
        options.nodes = options.nodes.or(asked.nodes);
        options.gateway |= asked.gateway;
        let first = asked.cluster_kubernetes.and_then(|name| name.parse::<Set>().ok());
        options.cluster_kubernetes = first.or(options.cluster_kubernetes);
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
            cluster_kubernetes: match &options.cluster {
                Some(_) => Some(options.first_kubernetes().name().to_owned()),
                None => self.asked().cluster_kubernetes,
            },
        };
        let text = serde_json::to_vec(&asked).map_err(|error| Error::Rendering {
            what: "the record of what was asked for",
            message: error.to_string(),
        })?;
        write_private(&self.layout.asked(), &text).map(drop)
    }
}

#[cfg(test)]
mod tests {
    use hangar_machine::Name;
    use hangar_parts::Parts;

    use super::*;
    use crate::one_host::OwnProgram;

    #[test]
    fn what_was_asked_for_stays() {
        let state = tempfile::tempdir().unwrap();
        let own = OwnProgram { program: "/p".into(), supervisor: "s".into(), provisioner: Vec::new() };
        let host =
            OneHost::new(Name::new("demo").unwrap(), state.path(), Parts::from_env().unwrap(), own).unwrap();
        let fresh = host.with_asked(&UpOptions::default()).unwrap();
        assert_eq!((fresh.node_count(), fresh.first_kubernetes()), (1, Set::Kubernetes134));

        // Without a first Cluster nothing is decided for it.
        let three = UpOptions {
            nodes: Some(3),
            offered: vec![Set::Kubernetes133],
            cluster_kubernetes: Some(Set::Kubernetes133),
            ..UpOptions::default()
        };
        host.remember_asked(&three).unwrap();
        let plain = host.with_asked(&UpOptions::default()).unwrap();
        assert_eq!((plain.node_count(), plain.first_kubernetes()), (3, Set::Kubernetes134));
        assert_eq!(plain.all_kubernetes(), [Set::Kubernetes133, Set::Kubernetes134]);

        host.remember_asked(&UpOptions { cluster: Some("demo".to_owned()), ..three.clone() }).unwrap();
        let later = UpOptions { nodes: Some(5), cluster_kubernetes: Some(Set::Kubernetes137), ..three };
        let more = host.with_asked(&later).unwrap();
        assert_eq!((more.node_count(), more.first_kubernetes()), (5, Set::Kubernetes133));

        let fewer = host.with_asked(&UpOptions { nodes: Some(2), ..UpOptions::default() }).unwrap_err();
        let words =
            "environment demo has 3 management nodes, which cannot become 2: volumes of clusters lie on them";
        assert_eq!(fewer.to_string(), words);
    }
}
