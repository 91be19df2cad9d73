//! What the core controllers read of the object behind `Cluster.spec.controlPlaneRef`.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use serde_json::Value;

use super::{Contract, Endpoint, path};
use crate::conditions::get;

/// A view of a control plane.
#[derive(Clone, Copy, Debug)]
pub struct ControlPlane<'object> {
    object: &'object Value,
    contract: Contract,
}

/// How many replicas there are, in the newer contract's terms; each is absent if the control plane does not count it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReplicaCounts {
    /// Wanted.
    pub desired: Option<i32>,
    /// Existing.
    pub current: Option<i32>,
    /// Ready.
    pub ready: Option<i32>,
    /// Ready for a while.
    pub available: Option<i32>,
    /// As they should be.
    pub up_to_date: Option<i32>,
}

/// How many replicas run a version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VersionCount {
    /// Kubernetes version.
    pub version: String,
    /// Replicas that run it, if the control plane counts them.
    pub replicas: Option<i32>,
}

impl<'object> ControlPlane<'object> {
    /// Reads an object by a contract.
    pub fn new(object: &'object Value, contract: Contract) -> Self {
        Self { object, contract }
    }

    /// Where the API server is reached, if the object names it.
    pub fn endpoint(&self) -> Option<Endpoint> {
        path::endpoint(self.object)
    }

    /// Whether the API server has ever served: from then on, nodes may join.
    pub fn is_initialized(&self) -> bool {
        match self.contract {
            Contract::V1Beta1 => path::flag(self.object, "/status/initialized"),
            Contract::V1Beta2 => path::flag(self.object, "/status/initialization/controlPlaneInitialized"),
        }
    }

    /// Whether there are no machines behind it.
    pub fn is_externally_managed(&self) -> bool {
        path::flag(self.object, "/status/externalManagedControlPlane")
    }

    /// Whether the API server serves, in the fields of the older contract; the newer one has only the condition.
    pub fn is_ready(&self) -> Option<bool> {
        match self.contract {
            Contract::V1Beta1 => self.object.pointer("/status/ready").and_then(Value::as_bool),
            Contract::V1Beta2 => None,
        }
    }

    /// The condition that says whether the API server serves: Available in the newer contract, Ready in the older.
    pub fn available_condition(&self) -> Option<Condition> {
        let type_ = match self.contract {
            Contract::V1Beta1 => "Ready",
            Contract::V1Beta2 => "Available",
        };
        get::get_from_json(self.object, type_)
    }

    /// A further condition, such as `RollingOut`, `ScalingUp` or `ScalingDown`.
    pub fn condition(&self, type_: &str) -> Option<Condition> {
        get::get_from_json(self.object, type_)
    }

    /// Kubernetes version wanted.
    pub fn desired_version(&self) -> Option<&'object str> {
        path::text(self.object, "/spec/version")
    }

    /// Lowest Kubernetes version that runs.
    pub fn version(&self) -> Option<&'object str> {
        path::text(self.object, "/status/version")
    }

    /// All Kubernetes versions that run, in the control plane's order; the lowest alone where it lists none.
    pub fn versions(&self) -> Vec<VersionCount> {
        let listed = self.object.pointer("/status/versions").and_then(Value::as_array);
        let versions: Vec<_> = listed
            .into_iter()
            .flatten()
            .filter_map(|entry| {
                let version = path::text(entry, "/version")?.to_owned();
                Some(VersionCount { version, replicas: path::count(entry, "/replicas") })
            })
            .collect();
        if versions.is_empty() {
            let only =
                self.version().map(|version| VersionCount { version: version.to_owned(), replicas: None });
            only.into_iter().collect()
        } else {
            versions
        }
    }

    /// How many replicas there are.
    pub fn replicas(&self) -> ReplicaCounts {
        let count = |name: &str| path::count(self.object, name);
        let current = count("/status/replicas");
        let (available, up_to_date) = match self.contract {
            Contract::V1Beta1 => {
                let unavailable = count("/status/unavailableReplicas");
                let available =
                    current.zip(unavailable).map(|(current, unavailable)| (current - unavailable).max(0));
                (available, count("/status/updatedReplicas"))
            }
            Contract::V1Beta2 => (count("/status/availableReplicas"), count("/status/upToDateReplicas")),
        };
        ReplicaCounts {
            desired: count("/spec/replicas"),
            current,
            ready: count("/status/readyReplicas"),
            available,
            up_to_date,
        }
    }
}
