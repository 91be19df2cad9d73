//! How a worker machine joins: when its bootstrap data may be made, what is in it, and the care of its token.
//!
//! One KubeadmConfig becomes one Secret with a cloud-init configuration that runs `kubeadm join`. The Secret is made once
//! and never changed: a machine may already have read it.
//!
//! Invariants
//! - Nothing is rendered before the infrastructure is provisioned, the control plane has been initialized and the
//!   endpoint is known; those waits are conditions, not errors.
//! - A bootstrap token exists before the data that contains it. Its id follows from the KubeadmConfig's uid, so that a
//!   crash between the two calls finds the token again; its secret half is random and passed in.
//! - The id stands on the data Secret from the moment it is made, and is taken off once the token is no longer needed:
//!   a machine that has joined costs no call.
//! - A field that is not supported is refused by name. Leaving it out silently would give a machine that looks right.

mod cloud_config;
mod fold;
mod join;
mod observed;
mod refusals;
mod status;
mod step;
mod token;

#[cfg(test)]
mod tests;

use std::time::Duration;

use hangar_api::bootstrap::v1beta2::KubeadmConfigStatus;
use hangar_api::names::{CLUSTER_NAME_LABEL, CLUSTER_SECRET_TYPE, SECRET_VALUE_KEY};
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use kube::core::DynamicObject;

pub use observed::{
    ClusterFacts, DataSecret, KeyOfSecret, MachineFacts, NOT_READ, Observed, Stage, Wanted, keys_of_secrets,
};
pub use step::{Step, TokenStep};
pub use token::{
    CONFIG_LABEL, ID_ANNOTATION, RECORD_KEY, TOKEN_NAMESPACE, TTL, Token, TokenSecret, candidate_ids, object,
    secret_name,
};

use crate::flow::{
    Actor, Frontier, Identified as _, NOT_CALLED, Never, Outcome, Plan, Planner, Read, Report, Wake,
};

/// Nothing wakes us when a Secret that carries no label of the cluster appears, or when the tenant lets us in.
const POLL: Duration = Duration::from_secs(30);
/// A worker that is just being made is waited for: its tenant often answers a moment before it knows our rights.
const EARLY_POLL: Duration = Duration::from_secs(2);
/// What is older than this is not just being made.
const EARLY: Duration = Duration::from_mins(10);

/// When to look again at what nothing tells us of.
fn poll(observed: &Observed) -> Wake {
    let created = observed.config.metadata.creation_timestamp.as_ref();
    let age = created.and_then(|created| Duration::try_from(observed.now.duration_since(created.0)).ok());
    let is_early = age.is_some_and(|age| age < EARLY);
    Wake::after(observed.now, if is_early { EARLY_POLL } else { POLL })
}

impl Planner for Observed {
    type Wanted = Wanted;
    type Own = Never;
    type Tenant = TokenStep;
    type Cloud = Never;
    type Status = KubeadmConfigStatus;
    type Object = DynamicObject;

    fn wanted(&self) -> Option<Wanted> {
        let is_unread = |read: &Read<Token>| *read == Read::unknown(NOT_READ);
        match self.stage() {
            Stage::Render => is_unread(&self.token).then_some(Wanted::Inputs),
            Stage::Care(data) => {
                let id = data.token_id?;
                if is_unread(&self.token) {
                    return Some(Wanted::Token { id });
                }
                let is_lost = self.token.is_absent() && is_unread(&data.recorded_token);
                is_lost.then_some(Wanted::RecordedToken { secret: data.name })
            }
            Stage::Paused | Stage::Leave | Stage::Wait(_) => None,
        }
    }

    fn assume(&mut self, wanted: Wanted) -> Option<Wanted> {
        match wanted {
            Wanted::Inputs | Wanted::Token { .. } => self.token = Read::unknown(NOT_CALLED),
            Wanted::RecordedToken { .. } => {
                for data in self.data_secret.iter_mut() {
                    data.recorded_token = Read::Absent;
                }
            }
        }
        None
    }

    fn recall(&mut self, before: &Self) {
        self.token = before.token.clone();
        self.free_token_id.clone_from(&before.free_token_id);
        self.fresh_secret = before.fresh_secret.clone();
        self.authority_hashes = before.authority_hashes.clone();
        self.contents.clone_from(&before.contents);
    }

    fn plan(&self) -> Plan<Step, KubeadmConfigStatus> {
        let mut drawn = Drawn::default();
        let finding = match self.stage() {
            Stage::Paused | Stage::Leave => status::Data::Untouched,
            Stage::Wait(wait) => {
                drawn.wait(&wait, self);
                status::Data::Waiting(wait)
            }
            Stage::Render => drawn.render(self),
            Stage::Care(data) => drawn.care(self, &data),
        };
        let status = status::status(self, &finding);
        Plan { objects: Vec::new(), steps: drawn.steps, status, report: drawn.report, wake: drawn.wake }
    }

    fn fold(&mut self, step: &Step, outcome: &Outcome) {
        if outcome.is_success() {
            self.trouble = None;
            match step {
                Step::Write(write) => self.written(write),
                Step::Tenant(step) => self.done_in_tenant(step),
                Step::Own(never) | Step::Cloud(never) => match *never {},
            }
            return;
        }
        let words = outcome.trouble().map_or_else(|| outcome.to_string(), str::to_owned);
        self.trouble = Some(format!("{}: {words}", step.id()));
        if outcome.ends_the_pass() {
            self.token = Read::unknown(&words);
            self.data_secret = Read::unknown(&words);
        }
    }
}

/// What a plan is put together from.
#[derive(Default)]
struct Drawn {
    steps: Frontier<Step>,
    report: Report,
    wake: Wake,
}

impl Drawn {
    fn wait(&mut self, wait: &status::Wait, observed: &Observed) {
        self.report.wait(wait.waiting.on.clone(), None, wait.actor());
        if wait.needs_polling {
            self.wake = self.wake.sooner(poll(observed));
        }
    }

    fn waits(&mut self, wait: status::Wait, observed: &Observed) -> status::Data {
        self.wait(&wait, observed);
        status::Data::Waiting(wait)
    }

    /// Everything that is waited for is there: make the token, then the data.
    fn render(&mut self, observed: &Observed) -> status::Data {
        let refused = refusals::refusals(observed);
        if !refused.is_empty() {
            return self.waits(status::Wait::unsupported(&refused), observed);
        }
        if let Some(wait) = observed.missing_content() {
            return self.waits(wait, observed);
        }
        let token = match token_for(observed) {
            TokenNeed::Given => None,
            TokenNeed::Have(token) => Some(token),
            TokenNeed::Create(token) => {
                self.report
                    .decide(format!("make the bootstrap token {}", token.id), "the machine joins with it");
                self.steps.push(Step::Tenant(TokenStep::Create(token)));
                return self.waits(status::Wait::token(observed.trouble.as_deref()), observed);
            }
            TokenNeed::Unknown(why) => return self.waits(status::Wait::tenant(&why), observed),
        };
        match data_secret(observed, token.as_ref()) {
            Ok(secret) => {
                self.steps.push(step::create_data(&secret));
                self.waits(status::Wait::data(observed.trouble.as_deref()), observed)
            }
            Err(problem) => self.waits(status::Wait::unrenderable(&problem), observed),
        }
    }

    /// The data is there: its token lives until the node does.
    fn care(&mut self, observed: &Observed, data: &DataSecret) -> status::Data {
        let Some(id) = &data.token_id else {
            return status::Data::Available { remark: None };
        };
        if observed.has_node() {
            self.forget(observed, data, id);
        } else if !observed.is_machine_leaving() {
            self.keep(observed, data, id);
        }
        status::Data::Available { remark: observed.trouble.clone() }
    }

    fn forget(&mut self, observed: &Observed, data: &DataSecret, id: &str) {
        match &observed.token {
            Read::Absent if !data.uid.is_empty() => {
                self.steps.push(step::forget_token(data));
            }
            Read::Absent => {}
            Read::One(_) | Read::Many(_) => {
                self.steps.push(Step::Tenant(TokenStep::Delete { id: id.to_owned() }));
            }
            Read::Unknown(_) => self.wake = poll(observed),
        }
    }

    fn keep(&mut self, observed: &Observed, data: &DataSecret, id: &str) {
        self.report.wait("the node to join", None, Actor::Tenant);
        self.wake = Wake::after(observed.now, TTL / 3);
        match (&observed.token, &data.recorded_token) {
            (Read::One(token), _) if token.needs_extension(observed.now) => {
                let (id, expires) = (id.to_owned(), token::expiry(observed.now));
                self.steps.push(Step::Tenant(TokenStep::Extend { id, expires }));
            }
            (Read::Absent, Read::One(recorded)) => {
                let token = Token { expires: Some(token::expiry(observed.now)), ..recorded.clone() };
                self.steps.push(Step::Tenant(TokenStep::Create(token)));
            }
            (Read::Unknown(_), _) => self.wake = poll(observed),
            _ => {}
        }
    }
}

enum TokenNeed {
    /// The user gave one, or another way of discovery.
    Given,
    Have(Token),
    Create(Token),
    Unknown(String),
}

fn token_for(observed: &Observed) -> TokenNeed {
    if join::brings_its_own_discovery(&observed.config.spec) {
        return TokenNeed::Given;
    }
    match &observed.token {
        Read::One(token) => TokenNeed::Have(token.clone()),
        Read::Absent => TokenNeed::Create(Token {
            id: observed.free_token_id.clone(),
            secret: observed.fresh_secret.clone(),
            config_uid: observed.uid().to_owned(),
            description: format!("join of {}/{}", observed.namespace(), observed.name()),
            expires: Some(token::expiry(observed.now)),
        }),
        Read::Many(_) => TokenNeed::Unknown("a name leads to several Secrets".to_owned()),
        Read::Unknown(unknown) => TokenNeed::Unknown(unknown.why.clone()),
    }
}

/// The Secret that the machine reads.
fn data_secret(observed: &Observed, token: Option<&Token>) -> Result<Secret, String> {
    let join = join::configuration(observed, token)?;
    let value = cloud_config::render(&observed.config.spec, &join, &observed.contents)?;
    let mut data = std::collections::BTreeMap::from([
        (SECRET_VALUE_KEY.to_owned(), ByteString(value.into_bytes())),
        ("format".to_owned(), ByteString(b"cloud-config".to_vec())),
    ]);
    if let Some(token) = token {
        data.insert(RECORD_KEY.to_owned(), ByteString(token.to_string().into_bytes()));
    }
    let annotations = token.map(|token| [(ID_ANNOTATION.to_owned(), token.id.clone())].into());
    let cluster = observed.cluster_name().unwrap_or_default();
    Ok(Secret {
        metadata: ObjectMeta {
            name: Some(observed.name().to_owned()),
            namespace: Some(observed.namespace().to_owned()),
            labels: Some([(CLUSTER_NAME_LABEL.to_owned(), cluster)].into()),
            annotations,
            owner_references: Some(vec![OwnerReference {
                api_version: "bootstrap.cluster.x-k8s.io/v1beta2".to_owned(),
                kind: "KubeadmConfig".to_owned(),
                name: observed.name().to_owned(),
                uid: observed.uid().to_owned(),
                controller: Some(true),
                block_owner_deletion: Some(true),
            }]),
            ..ObjectMeta::default()
        },
        type_: Some(CLUSTER_SECRET_TYPE.to_owned()),
        data: Some(data),
        ..Secret::default()
    })
}
