//! Folds the outcome of a step into the observation of a KubeadmConfig.

use super::{DataSecret, ID_ANNOTATION, Observed, Token, TokenStep};
use crate::flow::{Action, Read, Write};

impl Observed {
    pub(super) fn written(&mut self, write: &Write) {
        match &write.action {
            Action::Create { object, .. } => {
                let annotations = object.metadata.annotations.as_ref();
                self.data_secret = Read::One(DataSecret {
                    name: self.name().to_owned(),
                    // Only needed to forget the token, which a later pass does.
                    uid: String::new(),
                    is_ours: true,
                    token_id: annotations.and_then(|annotations| annotations.get(ID_ANNOTATION)).cloned(),
                    recorded_token: Read::Absent,
                });
            }
            Action::Change { .. } => {
                for data in self.data_secret.iter_mut() {
                    data.token_id = None;
                }
            }
            Action::Itself(_) | Action::Delete { .. } | Action::Evict { .. } => {}
        }
    }

    pub(super) fn done_in_tenant(&mut self, step: &TokenStep) {
        match step {
            TokenStep::Create(token) => self.token = Read::One(token.clone()),
            TokenStep::Extend { expires, .. } => {
                let token = std::mem::replace(&mut self.token, Read::Absent);
                self.token = token.map(|token| Token { expires: Some(*expires), ..token });
            }
            TokenStep::Delete { .. } => self.token = Read::Absent,
        }
    }
}
