//! The controllers that a manager can run, and how users choose among them.
//!
//! A choice decides three things together: which controllers run, which CRDs are installed, and which rights the
//! manager gets. So Hangar can run beside another Cluster API provider and own only the chosen kinds.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

/// A controller of the manager.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Controller {
    /// Control planes as pods.
    HostedControlPlane,
    /// Cluster API's Cluster.
    Cluster,
    /// Cluster API's Machine.
    Machine,
    /// Cluster API's MachineSet.
    MachineSet,
    /// Cluster API's MachineDeployment.
    MachineDeployment,
    /// Cluster API's MachineHealthCheck.
    MachineHealthCheck,
    /// Cluster API's ClusterResourceSet.
    ClusterResourceSet,
    /// Join data for workers, from KubeadmConfig.
    KubeadmBootstrap,
    /// Networks, routers and security groups of a cluster.
    OpenStackCluster,
    /// Servers, ports and volumes of a machine.
    OpenStackMachine,
}

impl Controller {
    pub const ALL: [Self; 10] = [
        Self::HostedControlPlane,
        Self::Cluster,
        Self::Machine,
        Self::MachineSet,
        Self::MachineDeployment,
        Self::MachineHealthCheck,
        Self::ClusterResourceSet,
        Self::KubeadmBootstrap,
        Self::OpenStackCluster,
        Self::OpenStackMachine,
    ];

    /// The name on the command line, in logs and in metrics.
    pub const fn name(self) -> &'static str {
        match self {
            Self::HostedControlPlane => "hosted-control-plane",
            Self::Cluster => "cluster",
            Self::Machine => "machine",
            Self::MachineSet => "machine-set",
            Self::MachineDeployment => "machine-deployment",
            Self::MachineHealthCheck => "machine-health-check",
            Self::ClusterResourceSet => "cluster-resource-set",
            Self::KubeadmBootstrap => "kubeadm-bootstrap",
            Self::OpenStackCluster => "openstack-cluster",
            Self::OpenStackMachine => "openstack-machine",
        }
    }

    /// The API group of the kinds that belong to this controller, and their plural names. A template belongs to the
    /// controller of what is made from it.
    pub const fn kinds(self) -> (&'static str, &'static [&'static str]) {
        match self {
            Self::HostedControlPlane => {
                ("controlplane.cluster.x-k8s.io", &["hostedcontrolplanes", "hostedcontrolplanetemplates"])
            }
            Self::Cluster => ("cluster.x-k8s.io", &["clusters"]),
            Self::Machine => ("cluster.x-k8s.io", &["machines"]),
            Self::MachineSet => ("cluster.x-k8s.io", &["machinesets"]),
            Self::MachineDeployment => ("cluster.x-k8s.io", &["machinedeployments"]),
            Self::MachineHealthCheck => ("cluster.x-k8s.io", &["machinehealthchecks"]),
            Self::ClusterResourceSet => {
                ("addons.cluster.x-k8s.io", &["clusterresourcesets", "clusterresourcesetbindings"])
            }
            Self::KubeadmBootstrap => {
                ("bootstrap.cluster.x-k8s.io", &["kubeadmconfigs", "kubeadmconfigtemplates"])
            }
            Self::OpenStackCluster => {
                ("infrastructure.cluster.x-k8s.io", &["openstackclusters", "openstackclustertemplates"])
            }
            Self::OpenStackMachine => {
                ("infrastructure.cluster.x-k8s.io", &["openstackmachines", "openstackmachinetemplates"])
            }
        }
    }

    /// The names of the CRDs of [`Self::kinds`].
    pub fn custom_resources(self) -> impl Iterator<Item = String> {
        let (group, plurals) = self.kinds();
        plurals.iter().map(move |plural| format!("{plural}.{group}"))
    }
}

impl fmt::Display for Controller {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

/// A choice of controllers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Selection(BTreeSet<Controller>);

/// A choice that names no controller, or one that does not exist.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SelectionError {
    /// No such controller.
    #[error("there is no controller {name:?}; known: all, {known}")]
    Unknown {
        /// What was asked for.
        name: String,
        /// Every controller, comma separated.
        known: String,
    },
    /// Everything was taken away again.
    #[error("{text:?} chooses no controller")]
    Empty { text: String },
}

impl Selection {
    pub fn all() -> Self {
        Self(BTreeSet::from(Controller::ALL))
    }

    /// Whether this controller is chosen.
    pub fn contains(&self, controller: Controller) -> bool {
        self.0.contains(&controller)
    }

    /// The chosen controllers in a fixed order.
    pub fn iter(&self) -> impl Iterator<Item = Controller> + '_ {
        self.0.iter().copied()
    }
}

impl Default for Selection {
    fn default() -> Self {
        Self::all()
    }
}

impl fmt::Display for Selection {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self == Self::all() {
            return formatter.write_str("all");
        }
        let names: Vec<&str> = self.iter().map(Controller::name).collect();
        formatter.write_str(&names.join(","))
    }
}

impl FromStr for Selection {
    type Err = SelectionError;

    /// Reads `all`, names separated by commas, and `-name` to leave one out: `all,-machine-health-check`. A list that
    /// only leaves out starts from all.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let items: Vec<&str> = text.split(',').map(str::trim).filter(|item| !item.is_empty()).collect();
        let mut chosen = BTreeSet::new();
        if items.first().is_some_and(|item| item.starts_with('-')) {
            chosen.extend(Controller::ALL);
        }
        for item in items {
            match (item, item.strip_prefix('-')) {
                ("all" | "*", _) => chosen.extend(Controller::ALL),
                (_, Some(name)) => {
                    chosen.remove(&by_name(name)?);
                }
                (name, None) => {
                    chosen.insert(by_name(name)?);
                }
            }
        }
        if chosen.is_empty() {
            return Err(SelectionError::Empty { text: text.to_owned() });
        }
        Ok(Self(chosen))
    }
}

fn by_name(name: &str) -> Result<Controller, SelectionError> {
    Controller::ALL.into_iter().find(|controller| controller.name() == name).ok_or_else(|| {
        SelectionError::Unknown {
            name: name.to_owned(),
            known: Controller::ALL.map(Controller::name).join(", "),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The compiler knows the variants, but not whether the list has all of them.
    #[test]
    fn every_controller_is_in_the_list() {
        let next = |controller| match controller {
            Controller::HostedControlPlane => Some(Controller::Cluster),
            Controller::Cluster => Some(Controller::Machine),
            Controller::Machine => Some(Controller::MachineSet),
            Controller::MachineSet => Some(Controller::MachineDeployment),
            Controller::MachineDeployment => Some(Controller::MachineHealthCheck),
            Controller::MachineHealthCheck => Some(Controller::ClusterResourceSet),
            Controller::ClusterResourceSet => Some(Controller::KubeadmBootstrap),
            Controller::KubeadmBootstrap => Some(Controller::OpenStackCluster),
            Controller::OpenStackCluster => Some(Controller::OpenStackMachine),
            Controller::OpenStackMachine => None,
        };
        let all: Vec<_> =
            std::iter::successors(Some(Controller::HostedControlPlane), |last| next(*last)).collect();
        assert_eq!(all, Controller::ALL);
    }

    #[test]
    fn a_selection_is_read_as_people_write_it() {
        let read = |text: &str| text.parse::<Selection>().map(|selection| selection.to_string());
        assert_eq!(read("all"), Ok("all".to_owned()));
        assert_eq!(read("*"), Ok("all".to_owned()));
        assert_eq!(read("hosted-control-plane"), Ok("hosted-control-plane".to_owned()));
        assert_eq!(read("machine, cluster"), Ok("cluster,machine".to_owned()));
        assert_eq!(read("cluster,machine,-machine"), Ok("cluster".to_owned()));
        assert!(
            read("-machine").is_ok_and(|text| text.starts_with("hosted-control-plane,cluster,machine-set,"))
        );
        assert_eq!(read("all,-machine"), read("-machine"));
    }

    #[test]
    fn a_wrong_selection_says_what_is_known() {
        let error = "cluster,hcp".parse::<Selection>().unwrap_err().to_string();
        assert!(
            error.starts_with("there is no controller \"hcp\"; known: all, hosted-control-plane, cluster"),
            "{error}"
        );
        assert_eq!("".parse::<Selection>().unwrap_err().to_string(), "\"\" chooses no controller");
        assert_eq!(
            "cluster,-cluster".parse::<Selection>().unwrap_err().to_string(),
            "\"cluster,-cluster\" chooses no controller"
        );
    }

    #[test]
    fn a_selection_reads_back_what_it_prints() {
        for controller in Controller::ALL {
            let selection: Selection = controller.name().parse().unwrap();
            assert_eq!(selection.to_string().parse(), Ok(selection.clone()));
            assert!(selection.contains(controller));
        }
    }
}
