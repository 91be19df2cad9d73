//! What the core controllers read of the object behind `Cluster.spec.infrastructureRef`.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use serde_json::Value;

use super::{Contract, Endpoint, path};
use crate::{conditions::get, names};

/// A view of an infrastructure cluster.
#[derive(Clone, Copy, Debug)]
pub struct InfrastructureCluster<'object> {
    object: &'object Value,
    contract: Contract,
}

/// A part of the infrastructure that fails as one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FailureDomain {
    /// Whether control plane machines may be in it.
    pub control_plane: bool,
    /// Further facts.
    pub attributes: BTreeMap<String, String>,
}

impl<'object> InfrastructureCluster<'object> {
    /// Reads an object by a contract.
    pub fn new(object: &'object Value, contract: Contract) -> Self {
        Self { object, contract }
    }

    /// Whether the infrastructure exists.
    pub fn is_provisioned(&self) -> bool {
        match self.contract {
            Contract::V1Beta1 => path::flag(self.object, "/status/ready"),
            Contract::V1Beta2 => path::flag(self.object, "/status/initialization/provisioned"),
        }
    }

    /// Where the API server is reached, if the object names it.
    pub fn endpoint(&self) -> Option<Endpoint> {
        path::endpoint(self.object)
    }

    /// Its failure domains, by name.
    pub fn failure_domains(&self) -> BTreeMap<String, FailureDomain> {
        let Some(domains) = self.object.pointer("/status/failureDomains") else {
            return BTreeMap::new();
        };
        match self.contract {
            Contract::V1Beta1 => {
                let domains = domains.as_object().into_iter().flatten();
                domains.map(|(name, domain)| (name.clone(), failure_domain(domain))).collect()
            }
            Contract::V1Beta2 => {
                let domains = domains.as_array().into_iter().flatten();
                domains
                    .filter_map(|domain| {
                        Some((path::text(domain, "/name")?.to_owned(), failure_domain(domain)))
                    })
                    .collect()
            }
        }
    }

    /// Its Ready condition.
    pub fn ready_condition(&self) -> Option<Condition> {
        get::get_from_json(self.object, "Ready")
    }

    /// Whether it is managed externally: then its controller does nothing, and endpoint and status are filled in by
    /// hand.
    pub fn is_managed_elsewhere(&self) -> bool {
        let annotations = self.object.pointer("/metadata/annotations").and_then(Value::as_object);
        annotations.is_some_and(|annotations| annotations.contains_key(names::MANAGED_BY_ANNOTATION))
    }
}

fn failure_domain(domain: &Value) -> FailureDomain {
    let attributes = domain.get("attributes").and_then(Value::as_object).into_iter().flatten();
    FailureDomain {
        control_plane: path::flag(domain, "/controlPlane"),
        attributes: attributes
            .filter_map(|(name, value)| Some((name.clone(), value.as_str()?.to_owned())))
            .collect(),
    }
}
