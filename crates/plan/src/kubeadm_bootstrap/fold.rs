//! What a step made of the observation.

use super::{DataSecret, ID_ANNOTATION, Observed, Step, Token, TokenStep};
use crate::flow::{Action, Identified as _, Outcome, Read, Write};

/// Makes the observation what it is after that outcome.
pub fn fold(observed: &mut Observed, step: &Step, outcome: &Outcome) {
    if outcome.is_success() {
        observed.trouble = None;
        match step {
            Step::Write(write) => observed.written(write),
            Step::Tenant(step) => observed.done_in_tenant(step),
            Step::Own(never) | Step::Cloud(never) => match *never {},
        }
        return;
    }
    let words = outcome.trouble().map_or_else(|| outcome.to_string(), str::to_owned);
    observed.trouble = Some(format!("{}: {words}", step.id()));
    if outcome.ends_the_pass() {
        observed.token = Read::unknown(&words);
        observed.data_secret = Read::unknown(&words);
    }
}

impl Observed {
    fn written(&mut self, write: &Write) {
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
            Action::Itself(_) | Action::Delete { .. } => {}
        }
    }

    fn done_in_tenant(&mut self, step: &TokenStep) {
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
