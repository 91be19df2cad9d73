//! Server groups. There is one host, so policies are stored and shown, but do not affect placement.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::{Caller, Draw, Model, Refusal};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerGroup {
    pub id: Uuid,
    pub name: String,
    pub project: String,
    pub user: String,
    /// `affinity`, `anti-affinity`, `soft-affinity` or `soft-anti-affinity`.
    pub policy: String,
    /// In order of creation.
    pub serial: u64,
}

impl Model {
    /// Makes a group.
    pub fn create_server_group(
        &mut self,
        caller: &Caller,
        name: &str,
        policy: &str,
        draw: &mut Draw,
    ) -> Result<Uuid, Refusal> {
        let mine = self.server_groups.values().filter(|group| group.project == caller.project).count();
        let limit = self.quota(&caller.project).server_groups;
        if limit >= 0 && i64::try_from(mine).unwrap_or(i64::MAX) >= limit {
            return Err(Refusal::forbidden("Quota exceeded, too many server groups."));
        }
        let (id, serial) = (draw.id(), self.next_serial());
        let group = ServerGroup {
            id,
            name: name.into(),
            project: caller.project.clone(),
            user: caller.user.clone(),
            policy: policy.into(),
            serial,
        };
        self.server_groups.insert(id, group);
        Ok(id)
    }

    /// A group that the caller may see.
    pub fn server_group(&self, caller: &Caller, id: &str) -> Result<&ServerGroup, Refusal> {
        let group = Uuid::parse_str(id).ok().and_then(|id| self.server_groups.get(&id));
        group.filter(|group| caller.is_admin || group.project == caller.project).ok_or_else(|| {
            Refusal::not_found("InstanceGroupNotFound", format!("Instance group {id} could not be found."))
        })
    }

    /// Deletes a group; its servers stay.
    pub fn delete_server_group(&mut self, caller: &Caller, id: &str) -> Result<(), Refusal> {
        let id = self.server_group(caller, id)?.id;
        self.server_groups.remove(&id);
        Ok(())
    }

    /// Servers of a group, in order of creation.
    pub fn server_group_members(&self, id: Uuid) -> Vec<Uuid> {
        let members = self.servers.values().filter(|server| server.group == Some(id) && !server.is_deleting);
        members.map(|server| server.id).collect()
    }
}
