//! The answer to an admission request.

use kube::core::DynamicObject;
use kube::core::admission::{AdmissionRequest, AdmissionResponse, Operation};
use serde_json::Value;

/// The API server cuts warnings that are longer than this (in all 4096); ours are cut first, at a character.
const LONGEST_WARNING: usize = 256;

/// The answer of an admission handler.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Verdict {
    refusal: Option<String>,
    patch: Option<json_patch::Patch>,
    warnings: Vec<String>,
}

impl Verdict {
    /// Let it pass as it is.
    pub fn allow() -> Self {
        Self::default()
    }

    /// Refuse, with what the person who wrote the object should read.
    pub fn deny(message: impl Into<String>) -> Self {
        Self { refusal: Some(message.into()), ..Self::default() }
    }

    /// Let it pass changed: the difference is sent as a JSON patch. No difference is no patch.
    pub fn change(before: &Value, after: &Value) -> Self {
        let patch = json_patch::diff(before, after);
        Self { patch: Some(patch).filter(|patch| !patch.0.is_empty()), ..Self::default() }
    }

    /// Adds a warning, which `kubectl` shows to the writer of the object.
    #[must_use]
    pub fn warn(mut self, text: impl Into<String>) -> Self {
        let mut text = text.into();
        if let Some((cut, _)) = text.char_indices().nth(LONGEST_WARNING) {
            text.truncate(cut);
        }
        self.warnings.push(text);
        self
    }

    /// Whether the object passes.
    pub fn is_allowed(&self) -> bool {
        self.refusal.is_none()
    }

    pub(super) fn respond(self, request: &AdmissionRequest<DynamicObject>) -> AdmissionResponse {
        let mut response = AdmissionResponse::from(request);
        response.warnings = Some(self.warnings).filter(|warnings| !warnings.is_empty());
        if let Some(refusal) = self.refusal {
            response = response.deny(refusal);
            // Not a server error: the person must change the object, or leave it.
            let (code, reason) = match request.operation {
                Operation::Delete => (403, "Forbidden"),
                _ => (422, "Invalid"),
            };
            response.result.code = code;
            reason.clone_into(&mut response.result.reason);
            return response;
        }
        match self.patch {
            Some(patch) => {
                let uid = response.uid.clone();
                response.with_patch(patch).unwrap_or_else(|error| {
                    let mut refused = AdmissionResponse::invalid(error);
                    refused.uid = uid;
                    refused
                })
            }
            None => response,
        }
    }
}
