//! Makes the calls about bootstrap tokens in the tenant.

use hangar_plan::flow::Outcome;
use hangar_plan::kubeadm_bootstrap::{TOKEN_NAMESPACE, TokenStep, object, secret_name};
use k8s_openapi::api::core::v1::Secret;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube::{Api, Client};
use serde_json::json;

use crate::reconcile::{RunInTenant, answer};

impl RunInTenant for TokenStep {
    async fn run(&self, client: Client) -> Outcome {
        let tokens: Api<Secret> = Api::namespaced(client, TOKEN_NAMESPACE);
        match self {
            Self::Create(token) => answer::of(tokens.create(&PostParams::default(), &object(token)).await),
            Self::Extend { id, expires } => {
                let fields = json!({ "stringData": { "expiration": expires.to_string() } });
                let patch = Patch::Merge(fields);
                answer::of(tokens.patch(&secret_name(id), &PatchParams::default(), &patch).await)
            }
            Self::Delete { id } => {
                answer::of_deletion(tokens.delete(&secret_name(id), &DeleteParams::default()).await)
            }
        }
    }
}
