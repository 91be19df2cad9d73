//! Makes the calls of a control plane's steps in its tenant.

use hangar_kit::error::{Error, status_code};
use hangar_kit::tenant::TenantApplier;
use hangar_plan::flow::Outcome;
use hangar_plan::hosted_control_plane::TenantStep;
use hangar_plan::hosted_control_plane::names::{ADDONS_SELECTOR, DESIRED_ANNOTATION};
use kube::Client;

use super::FIELD_MANAGER;
use crate::reconcile::{RunInTenant, answer};

/// Who applies in tenants.
pub(super) const APPLIER: TenantApplier =
    TenantApplier { manager: FIELD_MANAGER, annotation: DESIRED_ANNOTATION, selector: ADDONS_SELECTOR };

impl RunInTenant for TenantStep {
    async fn run(&self, client: Client) -> Outcome {
        match self {
            // Never over one of another, never a successor of one that was seen.
            Self::Apply { object, uid } => match APPLIER.apply(&client, object, uid.as_deref()).await {
                Ok(created) if uid.is_none() => Outcome::Created(created),
                Ok(_) => Outcome::Done,
                // Its namespace or its kind is missing: reading again at once would not bring it.
                Err(Error::Api { source, .. }) if uid.is_none() && status_code(&source) == Some(404) => {
                    Outcome::failed("ApiNotFound", source.to_string())
                }
                Err(error) => answer::failed(error),
            },
            Self::Delete { object, uid } => match APPLIER.prune(&client, object, uid).await {
                Ok(()) => Outcome::Done,
                Err(error) => answer::failed(error),
            },
        }
    }
}
