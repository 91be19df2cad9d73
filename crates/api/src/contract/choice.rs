//! Chooses the contract and the API version by which the objects of a kind are read.

use std::{collections::BTreeMap, fmt};

use crate::conversion::api_version;
use crate::names;

/// A version of the contract between core and providers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Contract {
    /// The older one: `status.ready`, failure domains as a map.
    V1Beta1,
    /// The newer one: `status.initialization`, failure domains as a list.
    V1Beta2,
}

impl Contract {
    /// Those that are understood, preferred first.
    pub const PREFERRED: [Self; 2] = [Self::V1Beta2, Self::V1Beta1];

    /// Its name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::V1Beta1 => "v1beta1",
            Self::V1Beta2 => "v1beta2",
        }
    }
}

impl fmt::Display for Contract {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

/// How to read the objects of a kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    /// The contract to read by.
    pub contract: Contract,
    /// The API version to read.
    pub version: String,
}

/// How to read the objects of a kind, from the labels of its CRD: the newest contract it has, and of the versions listed
/// for it the highest. Nothing if the CRD implements no contract that is understood.
pub fn chosen(labels: &BTreeMap<String, String>) -> Option<Choice> {
    Contract::PREFERRED.into_iter().find_map(|contract| {
        let listed = labels.get(&names::contract_label(contract.as_str()))?;
        let version = api_version::highest_listed(listed)?.to_owned();
        Some(Choice { contract, version })
    })
}
