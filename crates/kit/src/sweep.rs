//! Deletes what an owner no longer wants.
//!
//! The dangerous direction: a mistake here deletes data. So it acts only on a complete, known read; only on objects that
//! name the owner themselves; each deletion carries the uid that was seen, so that a successor of the same name is
//! safe; and what is already being deleted is left alone.

use std::{collections::BTreeSet, fmt::Debug, sync::Arc};

use hangar_plan::flow::Read;
use kube::{
    Api, Resource,
    api::{DeleteParams, Preconditions, PropagationPolicy},
};
use serde::de::DeserializeOwned;

use crate::{
    ObjectKey,
    error::{Error, Result},
    watch::Kept,
};

/// How an owner is recognised on its objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OwnedBy<'a> {
    /// Among the owner references, by uid.
    Owner {
        /// The owner's uid.
        uid: &'a str,
    },
    /// By the value of an indexed label.
    Label {
        /// The label.
        name: &'a str,
        /// Its value.
        value: &'a str,
    },
}

impl OwnedBy<'_> {
    fn owns<F>(self, kept: &Kept<F>) -> bool {
        match self {
            Self::Owner { uid } => kept.owners.iter().any(|owner| owner.uid == uid),
            Self::Label { name, value } => kept.labels.get(name).is_some_and(|present| present == value),
        }
    }
}

/// What a sweep did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Swept {
    /// Deletions that the API server accepted.
    pub deleted: Vec<ObjectKey>,
    /// Objects that were gone, or replaced, when we came.
    pub gone: Vec<ObjectKey>,
}

/// Deletes every candidate that the owner owns and does not want. `api` gives the handle for a namespace.
pub async fn sweep<K, F>(
    api: impl Fn(Option<&str>) -> Api<K>,
    candidates: Read<Arc<Kept<F>>>,
    owner: OwnedBy<'_>,
    wanted: &BTreeSet<ObjectKey>,
) -> Result<Swept>
where
    K: Resource + DeserializeOwned + Clone + Debug,
{
    let candidates = candidates
        .known()
        .map_err(|unknown| Error::Undecidable { what: "what is left over".to_owned(), unknown })?;
    let mut swept = Swept::default();
    for kept in candidates {
        if wanted.contains(&kept.key) || kept.is_terminating || !owner.owns(&kept) {
            continue;
        }
        if delete(&api(kept.key.namespace.as_deref()), &kept.key, &kept.uid).await? {
            swept.deleted.push(kept.key.clone());
        } else {
            swept.gone.push(kept.key.clone());
        }
    }
    Ok(swept)
}

/// Deletes exactly one object, the one with that uid. False when it was gone or replaced.
pub async fn delete<K>(api: &Api<K>, key: &ObjectKey, uid: &str) -> Result<bool>
where
    K: Resource + DeserializeOwned + Clone + Debug,
{
    if uid.is_empty() {
        let problem = "nothing is deleted without its uid".to_owned();
        return Err(Error::Malformed { what: key.to_string(), problem });
    }
    let parameters = DeleteParams {
        preconditions: Some(Preconditions { uid: Some(uid.to_owned()), resource_version: None }),
        propagation_policy: Some(PropagationPolicy::Background),
        ..DeleteParams::default()
    };
    match api.delete(&key.name, &parameters).await {
        Ok(_) => Ok(true),
        Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409) => Ok(false),
        Err(error) => Err(Error::api(format!("delete {key}"), error)),
    }
}
