//! What the core controllers read of the object behind `Machine.spec.bootstrap.configRef`.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use serde_json::Value;

use super::{Contract, path};
use crate::conditions::get;

/// A view of a bootstrap configuration.
#[derive(Clone, Copy, Debug)]
pub struct BootstrapConfiguration<'object> {
    object: &'object Value,
    contract: Contract,
}

impl<'object> BootstrapConfiguration<'object> {
    /// Reads an object by a contract.
    pub fn new(object: &'object Value, contract: Contract) -> Self {
        Self { object, contract }
    }

    /// Whether the Secret with the bootstrap data exists.
    pub fn is_data_secret_created(&self) -> bool {
        match self.contract {
            Contract::V1Beta1 => path::flag(self.object, "/status/ready"),
            Contract::V1Beta2 => path::flag(self.object, "/status/initialization/dataSecretCreated"),
        }
    }

    /// Name of the Secret with the bootstrap data, in the namespace of the object.
    pub fn data_secret_name(&self) -> Option<&'object str> {
        path::text(self.object, "/status/dataSecretName")
    }

    /// Its Ready condition.
    pub fn ready_condition(&self) -> Option<Condition> {
        get::get_from_json(self.object, "Ready")
    }
}
