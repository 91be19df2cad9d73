//! Observe, plan, run, write the status.

use std::sync::Arc;
use std::time::Duration;

use hangar_api::bootstrap::v1beta2::{KubeadmConfig, KubeadmConfigStatus};
use hangar_kit::controller::{Reconcile, Settled};
use hangar_kit::execute::{DEFAULT_ROUNDS, Workbench, execute};
use hangar_kit::watch::Kept;
use hangar_kit::{Error, ObjectKey};
use hangar_plan::flow::{Failure, Outcome, Plan, Read};
use hangar_plan::kubeadm_bootstrap::{ID_ANNOTATION, Observed, Step, Token, fold, object, plan, secret_name};
use k8s_openapi::api::core::v1::Secret;
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube::core::PartialObjectMetaExt as _;
use serde_json::json;

use super::observe;
use crate::context::{Context, WRITE_LIMIT};
use crate::{outcome, patch};

const MANAGER: &str = "hangar-kubeadm-bootstrap";

/// The controller's own part.
pub(super) struct Reconciler {
    context: Context,
}

impl Reconciler {
    pub(super) fn new(context: &Context) -> Self {
        Self { context: context.clone() }
    }
}

impl Reconcile for Reconciler {
    type Error = Error;

    async fn reconcile(&self, key: &ObjectKey) -> Result<Settled, Error> {
        let watch = self.context.watches.kubeadm_configs();
        let config = match watch.get(key) {
            Read::One(config) => config,
            Read::Unknown(unknown) => {
                return Err(Error::Undecidable { what: format!("KubeadmConfig {key}"), unknown });
            }
            Read::Absent | Read::Many(_) => return Ok(Settled::done()),
        };
        let bench = Bench { context: &self.context, config: Arc::clone(&config) };
        let pass = execute(&bench, &self.context.parts.leadership, WRITE_LIMIT, DEFAULT_ROUNDS).await?;
        if !config.is_terminating {
            let api: Api<KubeadmConfig> = Api::namespaced(self.context.client(), key.namespace_or_empty());
            let before = config.status.as_ref();
            if let Some(changed) = patch::status(&api, &config.value, before, &pass.plan.status).await? {
                watch.written(changed);
            }
        }
        Ok(outcome::settled(&pass))
    }
}

struct Bench<'a> {
    context: &'a Context,
    config: Arc<Kept<KubeadmConfig>>,
}

impl Workbench for Bench<'_> {
    type Observation = Observed;
    type Step = Step;
    type Status = KubeadmConfigStatus;
    type Object = Secret;
    type Error = Error;

    async fn observe(&self) -> Result<Observed, Error> {
        let mut observed = observe::from_stores(self.context, &self.config);
        observe::complete(self.context, &mut observed).await;
        Ok(observed)
    }

    fn plan(&self, observed: &Observed) -> Plan<Step, KubeadmConfigStatus, Secret> {
        plan(observed)
    }

    async fn run(&self, step: &Step, _limit: Duration) -> Outcome {
        match step {
            Step::CreateData(secret) => self.create_data(secret).await,
            Step::ForgetToken { secret, uid } => self.forget_token(secret, uid).await,
            Step::CreateToken(_) | Step::ExtendToken { .. } | Step::DeleteToken { .. } => {
                self.run_in_tenant(step).await
            }
        }
    }

    fn fold(&self, observed: &mut Observed, step: &Step, outcome: &Outcome) {
        fold(observed, step, outcome);
    }
}

impl Bench<'_> {
    fn secrets(&self) -> Api<Secret> {
        Api::namespaced(self.context.client(), self.config.key.namespace_or_empty())
    }

    fn written(&self, secret: Secret) {
        self.context.watches.secrets().written(secret.metadata.into_response_partial());
    }

    /// A plain create: it must not exist, and is never changed.
    async fn create_data(&self, secret: &Secret) -> Outcome {
        let parameters = PostParams { field_manager: Some(MANAGER.to_owned()), ..PostParams::default() };
        match self.secrets().create(&parameters, secret).await {
            Ok(created) => {
                self.written(created);
                Outcome::Done
            }
            Err(error) => outcome::of_kubernetes::<()>(Err(error)),
        }
    }

    async fn forget_token(&self, name: &str, uid: &str) -> Outcome {
        let fields = json!({"metadata": {"uid": uid, "annotations": {ID_ANNOTATION: null}}});
        match self.secrets().patch(name, &PatchParams::default(), &Patch::Merge(fields)).await {
            Ok(changed) => {
                self.written(changed);
                Outcome::Done
            }
            Err(error) => outcome::of_kubernetes::<()>(Err(error)),
        }
    }

    async fn run_in_tenant(&self, step: &Step) -> Outcome {
        let machine = self.config.controller("Machine").map(|key| self.context.watches.machines().get(&key));
        let Some(Read::One(machine)) = machine else {
            return Outcome::Failed(Failure {
                category: "StaleRead",
                message: "the Machine is gone".to_owned(),
                is_retryable: true,
            });
        };
        let cluster = ObjectKey {
            namespace: self.config.key.namespace.clone(),
            name: machine.spec.cluster_name.clone(),
        };
        let tokens = match observe::tenant(self.context, &cluster).await {
            Ok(tokens) => tokens,
            Err(message) => {
                let failure = Failure { category: "TenantUnavailable", message, is_retryable: true };
                return Outcome::Failed(failure);
            }
        };
        match step {
            Step::CreateToken(token) => create_token(&tokens, token).await,
            Step::ExtendToken { id, expires } => {
                let fields = json!({"stringData": {"expiration": expires.to_string()}});
                let parameters = PatchParams::default();
                outcome::of_kubernetes(
                    tokens.patch(&secret_name(id), &parameters, &Patch::Merge(fields)).await,
                )
            }
            Step::DeleteToken { id } => match tokens.delete(&secret_name(id), &DeleteParams::default()).await
            {
                Err(kube::Error::Api(status)) if status.code == 404 => Outcome::Done,
                answer => outcome::of_kubernetes(answer),
            },
            Step::CreateData(_) | Step::ForgetToken { .. } => Outcome::Done,
        }
    }
}

async fn create_token(tokens: &Api<Secret>, token: &Token) -> Outcome {
    outcome::of_kubernetes(tokens.create(&PostParams::default(), &object(token)).await)
}
