//! Security groups. Each project has one called `default` from the beginning.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::{Caller, Draw, Model, Refusal, SecurityRule, Standard};

/// The group that each project has.
pub(crate) const DEFAULT: &str = "default";

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SecurityGroup {
    pub id: Uuid,
    /// Name, tags and so on.
    #[serde(flatten)]
    pub standard: Standard,
    /// Whether its rules follow connections.
    pub stateful: bool,
}

pub(crate) fn group_not_found(id: impl std::fmt::Display) -> Refusal {
    Refusal::not_found("SecurityGroupNotFound", format!("Security group {id} does not exist"))
}

impl Model {
    /// Makes a group that lets everything out, as Neutron does.
    pub fn create_security_group(
        &mut self,
        standard: Standard,
        stateful: bool,
        draw: &mut Draw,
    ) -> Result<Uuid, Refusal> {
        if standard.name == DEFAULT {
            let words = "Default security group already exists.";
            return Err(Refusal::conflict("SecurityGroupDefaultAlreadyExists", words));
        }
        self.check_network_quota(&standard.project, "security_group")?;
        self.insert_group(standard, stateful, draw)
    }

    fn insert_group(&mut self, standard: Standard, stateful: bool, draw: &mut Draw) -> Result<Uuid, Refusal> {
        let (id, project) = (draw.id(), standard.project.clone());
        self.security_groups.insert(id, SecurityGroup { id, standard, stateful });
        for ipv6 in [false, true] {
            let standard = Standard::new(&project, "", "", draw);
            self.create_security_rule(SecurityRule::anything(draw.id(), standard, id, false, ipv6))?;
        }
        Ok(id)
    }

    /// Makes a project's `default` group where it is missing: its members reach each other and all other addresses.
    pub(crate) fn ensure_default_group(&mut self, project: &str, draw: &mut Draw) -> Result<(), Refusal> {
        if self.default_security_group(project).is_some() {
            return Ok(());
        }
        let standard = Standard::new(project, DEFAULT, "Default security group", draw);
        let id = self.insert_group(standard, true, draw)?;
        for ipv6 in [false, true] {
            let standard = Standard::new(project, "", "", draw);
            let mut rule = SecurityRule::anything(draw.id(), standard, id, true, ipv6);
            rule.remote_group = Some(id);
            self.create_security_rule(rule)?;
        }
        Ok(())
    }

    pub fn default_security_group(&self, project: &str) -> Option<Uuid> {
        let mut groups = self.security_groups.values();
        groups
            .find(|group| group.standard.project == project && group.standard.name == DEFAULT)
            .map(|group| group.id)
    }

    /// A group that the caller may see.
    pub fn security_group(&self, caller: &Caller, id: &str) -> Result<&SecurityGroup, Refusal> {
        let group = Uuid::parse_str(id).ok().and_then(|id| self.security_groups.get(&id));
        group.filter(|group| group.standard.is_of(caller)).ok_or_else(|| group_not_found(id))
    }

    /// A group that the caller may change.
    pub fn security_group_mut(&mut self, caller: &Caller, id: &str) -> Result<&mut SecurityGroup, Refusal> {
        let id = self.security_group(caller, id)?.id;
        self.security_groups.get_mut(&id).ok_or_else(|| group_not_found(id))
    }

    /// Deletes a group that no port has, with its rules and those that name it as the other side.
    pub fn delete_security_group(&mut self, caller: &Caller, id: &str) -> Result<(), Refusal> {
        let group = self.security_group(caller, id)?;
        let id = group.id;
        if group.standard.name == DEFAULT && !caller.is_admin {
            let words = "Insufficient rights for removing default security group.";
            return Err(Refusal::conflict("SecurityGroupCannotRemoveDefault", words));
        }
        if self.ports.values().any(|port| port.security_groups.contains(&id)) {
            return Err(Refusal::conflict("SecurityGroupInUse", format!("Security Group {id} in use.")));
        }
        self.security_rules.retain(|_, rule| rule.group != id && rule.remote_group != Some(id));
        self.security_groups.remove(&id);
        Ok(())
    }
}
