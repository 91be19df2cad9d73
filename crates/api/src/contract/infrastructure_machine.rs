//! What the core controllers read of the object behind `Machine.spec.infrastructureRef`.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use serde_json::Value;

use super::{Contract, path};
use crate::conditions::get;

/// A view of an infrastructure machine.
#[derive(Clone, Copy, Debug)]
pub struct InfrastructureMachine<'object> {
    object: &'object Value,
    contract: Contract,
}

/// An address of a machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    /// `Hostname`, `ExternalIP`, `InternalIP`, `ExternalDNS` or `InternalDNS`.
    pub type_: String,
    /// The address.
    pub address: String,
}

impl<'object> InfrastructureMachine<'object> {
    /// Reads an object by a contract.
    pub fn new(object: &'object Value, contract: Contract) -> Self {
        Self { object, contract }
    }

    /// Whether the machine exists.
    pub fn is_provisioned(&self) -> bool {
        match self.contract {
            Contract::V1Beta1 => path::flag(self.object, "/status/ready"),
            Contract::V1Beta2 => path::flag(self.object, "/status/initialization/provisioned"),
        }
    }

    /// Its provider id, which its node will have too.
    pub fn provider_id(&self) -> Option<&'object str> {
        path::text(self.object, "/spec/providerID")
    }

    /// Its addresses, in the provider's order.
    pub fn addresses(&self) -> Vec<Address> {
        let addresses =
            self.object.pointer("/status/addresses").and_then(Value::as_array).into_iter().flatten();
        addresses
            .filter_map(|address| {
                Some(Address {
                    type_: path::text(address, "/type")?.to_owned(),
                    address: path::text(address, "/address")?.to_owned(),
                })
            })
            .collect()
    }

    /// The failure domain it is in.
    pub fn failure_domain(&self) -> Option<&'object str> {
        match self.contract {
            Contract::V1Beta1 => path::text(self.object, "/spec/failureDomain"),
            Contract::V1Beta2 => path::text(self.object, "/status/failureDomain"),
        }
    }

    /// Its Ready condition.
    pub fn ready_condition(&self) -> Option<Condition> {
        get::get_from_json(self.object, "Ready")
    }
}
