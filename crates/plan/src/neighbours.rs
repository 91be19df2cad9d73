//! Kinds of other projects that a management cluster may have. Hangar makes objects of them for its control planes where
//! they are installed, and learns from their CRDs when they come and go.

/// A kind that may be there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Neighbour {
    /// Policies that know names, of Cilium.
    CiliumNetworkPolicies,
    /// What a Prometheus collects, of Prometheus Operator.
    PodMonitors,
}

impl Neighbour {
    pub const ALL: [Self; 2] = [Self::CiliumNetworkPolicies, Self::PodMonitors];

    pub fn group(self) -> &'static str {
        match self {
            Self::CiliumNetworkPolicies => "cilium.io",
            Self::PodMonitors => "monitoring.coreos.com",
        }
    }

    /// The version that is rendered; every release of the last years serves it.
    pub fn version(self) -> &'static str {
        match self {
            Self::CiliumNetworkPolicies => "v2",
            Self::PodMonitors => "v1",
        }
    }

    pub fn kind(self) -> &'static str {
        match self {
            Self::CiliumNetworkPolicies => "CiliumNetworkPolicy",
            Self::PodMonitors => "PodMonitor",
        }
    }

    pub fn plural(self) -> &'static str {
        match self {
            Self::CiliumNetworkPolicies => "ciliumnetworkpolicies",
            Self::PodMonitors => "podmonitors",
        }
    }

    /// Group and version, as objects have them.
    pub fn api_version(self) -> String {
        format!("{}/{}", self.group(), self.version())
    }

    /// The name of its CRD.
    pub fn definition(self) -> String {
        format!("{}.{}", self.plural(), self.group())
    }
}
