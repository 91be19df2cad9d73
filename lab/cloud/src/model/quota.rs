//! Quotas: how much of each kind a project may have.

use super::{Model, Refusal};
use crate::config::Quota;

impl Model {
    /// A project's limits.
    pub fn quota(&self, project: &str) -> &Quota {
        self.quotas.get(project).unwrap_or(&self.default_quota)
    }

    /// Refuses one more network object where the project has as many as it may.
    pub(crate) fn check_network_quota(&self, project: &str, resource: &str) -> Result<(), Refusal> {
        let (used, limit) = self.network_usage(project, resource);
        if limit >= 0 && used >= limit { Err(Refusal::over_quota(resource)) } else { Ok(()) }
    }

    /// How many of a kind a project has, and how many it may have.
    pub fn network_usage(&self, project: &str, resource: &str) -> (i64, i64) {
        let quota = self.quota(project);
        let mine = |standard: &super::Standard| standard.project == project;
        let (used, limit) = match resource {
            "network" => (self.networks.values().filter(|it| mine(&it.standard)).count(), quota.network),
            "subnet" => (self.subnets.values().filter(|it| mine(&it.standard)).count(), quota.subnet),
            "port" => (self.ports.values().filter(|it| mine(&it.standard)).count(), quota.port),
            "router" => (self.routers.values().filter(|it| mine(&it.standard)).count(), quota.router),
            "floatingip" => {
                (self.floating_ips.values().filter(|it| mine(&it.standard)).count(), quota.floatingip)
            }
            "security_group" => {
                (self.security_groups.values().filter(|it| mine(&it.standard)).count(), quota.security_group)
            }
            "security_group_rule" => (
                self.security_rules.values().filter(|it| mine(&it.standard)).count(),
                quota.security_group_rule,
            ),
            _ => (0, -1),
        };
        (i64::try_from(used).unwrap_or(i64::MAX), limit)
    }
}
