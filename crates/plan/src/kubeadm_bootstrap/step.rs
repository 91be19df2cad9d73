//! The steps of a KubeadmConfig: they write its data Secret, and its token in the tenant.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Secret;
use serde_json::json;

use super::{DataSecret, ID_ANNOTATION, Token};
use crate::flow::{self, Action, Identified, Never, StepId, Target, Write};

/// One call: writes to the management cluster, and to the tenant.
pub type Step = flow::Step<Never, TokenStep>;

/// One call to the tenant.
#[derive(Clone, Debug, PartialEq)]
pub enum TokenStep {
    /// Makes the token: the first time, or again after it vanished.
    Create(Token),
    /// Moves the end of the token's life.
    Extend {
        /// The token's id.
        id: String,
        expires: Timestamp,
    },
    /// Removes the token.
    Delete {
        /// The token's id.
        id: String,
    },
}

impl Identified for TokenStep {
    fn id(&self) -> StepId {
        match self {
            Self::Create(token) => StepId::new("create", "bootstrap-token", &token.id),
            Self::Extend { id, .. } => StepId::new("extend", "bootstrap-token", id),
            Self::Delete { id } => StepId::new("delete", "bootstrap-token", id),
        }
    }
}

/// Makes the data Secret. It is never changed.
pub(super) fn create_data(secret: &Secret) -> Step {
    let name = secret.metadata.name.as_deref().unwrap_or_default();
    Write::create(StepId::new("create", "data-secret", name), secret, false).into()
}

/// Takes the token's id off the data Secret: nobody has to care for it any more.
pub(super) fn forget_token(data: &DataSecret) -> Step {
    let (name, uid) = (data.name.clone(), data.uid.clone());
    let target = Target { group: String::new(), kind: "Secret".to_owned(), name, uid };
    let id = StepId::new("annotate", "data-secret", &target.name);
    let fields = json!({ "metadata": { "annotations": { ID_ANNOTATION: null } } });
    Write { id, action: Action::Change { target, fields } }.into()
}
