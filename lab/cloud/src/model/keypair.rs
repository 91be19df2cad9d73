//! Keypairs. They belong to a user, not to a project.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::{Draw, Model, Refusal};

/// A public key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Keypair {
    pub name: String,
    /// `ssh` or `x509`.
    pub kind: String,
    /// The key, as in `authorized_keys`.
    pub public_key: String,
    pub created: Timestamp,
    /// In order of creation.
    pub serial: u64,
}

impl Model {
    /// Keeps a key.
    pub fn create_keypair(
        &mut self,
        user: &str,
        project: &str,
        name: &str,
        kind: &str,
        public_key: &str,
        draw: &Draw,
    ) -> Result<Keypair, Refusal> {
        let mine = self.keypairs.get(user);
        if mine.is_some_and(|mine| mine.contains_key(name)) {
            return Err(Refusal::conflict("KeyPairExists", format!("Key pair '{name}' already exists.")));
        }
        let limit = self.quota(project).key_pairs;
        let used = i64::try_from(mine.map_or(0, std::collections::BTreeMap::len)).unwrap_or(i64::MAX);
        if limit >= 0 && used >= limit {
            return Err(Refusal::forbidden("Quota exceeded, too many key pairs."));
        }
        let serial = self.next_serial();
        let keypair = Keypair {
            name: name.into(),
            kind: kind.into(),
            public_key: public_key.into(),
            created: draw.now,
            serial,
        };
        self.keypairs.entry(user.into()).or_default().insert(name.into(), keypair.clone());
        Ok(keypair)
    }

    /// A user's key.
    pub fn keypair(&self, user: &str, name: &str) -> Result<&Keypair, Refusal> {
        self.keypairs.get(user).and_then(|mine| mine.get(name)).ok_or_else(|| {
            Refusal::not_found("KeypairNotFound", format!("Keypair {name} not found for user {user}"))
        })
    }

    /// Forgets a key. Servers that were made with it keep it.
    pub fn delete_keypair(&mut self, user: &str, name: &str) -> Result<(), Refusal> {
        self.keypair(user, name)?;
        if let Some(mine) = self.keypairs.get_mut(user) {
            mine.remove(name);
        }
        Ok(())
    }
}
