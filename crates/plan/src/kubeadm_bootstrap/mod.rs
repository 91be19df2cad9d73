//! Plans how a worker joins: when its bootstrap data may be made, what the data contains, and the life of its token.
//!
//! One KubeadmConfig becomes one Secret with a cloud-init configuration that runs `kubeadm join`. The Secret is made
//! once and never changed, because a server may already have read it.
//!
//! Invariants
//! - Nothing is rendered before the infrastructure is provisioned, the control plane has been initialized and the
//!   endpoint is known; these waits are conditions, not errors.
//! - A bootstrap token exists before the data that contains it. Its id follows from the KubeadmConfig's uid, so that
//!   after a crash between the two calls the token is found again; its secret half is random and passed in.
//! - No token is made or extended while Hangar's clock and the management cluster's disagree: it would end too early, or
//!   hardly ever.
//! - The data Secret carries the token's id until the token is no longer needed. After that, a worker that has joined
//!   costs no call.
//! - A field that is not supported is refused by name: ignoring it would give a worker that looks right and is not.

mod cloud_config;
pub(crate) mod conditions;
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

use hangar_api::bootstrap::v1beta2::{KubeadmConfig, KubeadmConfigStatus};
use hangar_api::conditions::{Finding, Waiting};
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

use crate::conditions::who::SERVER;
use crate::flow::{self, Identified as _, NOT_CALLED, Never, Outcome, Plan, Planner, Read, Wake, has_root};
use conditions::data_secret_available;

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
        let mut draft = Draft::new(self);
        if draft.is_paused(self.paused()) {
            return draft.finish();
        }
        match self.stage() {
            Stage::Paused | Stage::Leave => {}
            Stage::Wait(finding) => status::waits(&mut draft, finding),
            Stage::Render => {
                let finding = render(&mut draft);
                status::waits(&mut draft, finding);
            }
            Stage::Care(data) => care(&mut draft, &data),
        }
        draft.finish()
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

type Draft<'a> = flow::Draft<'a, Observed>;

has_root!(KubeadmConfig in config);

/// Everything that is waited for is there: make the token, then the data.
fn render(draft: &mut Draft<'_>) -> Finding {
    let observed = draft.observed;
    let refused = refusals::refusals(observed);
    if !refused.is_empty() {
        let on = "a configuration that can be honoured";
        return data_secret_available::UNSUPPORTED_CONFIGURATION.waits(on).because(refused.join("; "));
    }
    if let Some(finding) = observed.missing_content() {
        return finding;
    }
    let token = match token_for(observed) {
        TokenNeed::Given => None,
        TokenNeed::Have(token) => Some(token),
        TokenNeed::Create(token) => {
            if let Some(disagreement) = observed.clocks.disagreement() {
                return data_secret_available::CLOCKS_DISAGREE
                    .waits("clocks that agree")
                    .because(disagreement);
            }
            draft
                .report
                .decide(format!("make the bootstrap token {}", token.id), "the machine joins with it");
            draft.steps.push(Step::Tenant(TokenStep::Create(token)));
            let creating = data_secret_available::CREATING_TOKEN.waits("a bootstrap token");
            return creating.because_of(observed.trouble.as_deref());
        }
        TokenNeed::Unknown(why) => {
            let unreachable = data_secret_available::CONTROL_PLANE_UNREACHABLE;
            return unreachable.waits("an answer of the API server").because(why);
        }
    };
    match data_secret(observed, token.as_ref()) {
        Ok(secret) => {
            draft.steps.push(step::create_data(&secret));
            let creating = data_secret_available::CREATING_DATA_SECRET.waits("the data Secret");
            creating.because_of(observed.trouble.as_deref())
        }
        Err(problem) => data_secret_available::UNSUPPORTED_CONFIGURATION
            .waits("a configuration that can be written")
            .because(problem),
    }
}

/// The data is there: its token lives until the node does.
fn care(draft: &mut Draft<'_>, data: &DataSecret) {
    let observed = draft.observed;
    let Some(id) = &data.token_id else { return status::available(draft, None) };
    let mut disagreement = None;
    if observed.has_node() {
        forget(draft, data, id);
    } else if !observed.is_machine_leaving() {
        disagreement = keep(draft, data, id);
    }
    status::available(draft, disagreement.as_deref().or(observed.trouble.as_deref()));
}

fn forget(draft: &mut Draft<'_>, data: &DataSecret, id: &str) {
    match &draft.observed.token {
        Read::Absent if !data.uid.is_empty() => draft.steps.push(step::forget_token(data)),
        Read::Absent => {}
        Read::One(_) | Read::Many(_) => {
            draft.steps.push(Step::Tenant(TokenStep::Delete { id: id.to_owned() }));
        }
        Read::Unknown(_) => draft.wake = poll(draft.observed),
    }
}

/// Makes or extends the token, unless the clocks disagree: then that is returned.
fn keep(draft: &mut Draft<'_>, data: &DataSecret, id: &str) -> Option<String> {
    let now = draft.observed.now;
    draft.report.wait(Waiting::new(SERVER, "the Node to join"));
    draft.wake = Wake::after(now, TTL / 3);
    let step = match (&draft.observed.token, &data.recorded_token) {
        (Read::One(token), _) if token.needs_extension(now) => {
            TokenStep::Extend { id: id.to_owned(), expires: token::expiry(now) }
        }
        (Read::Absent, Read::One(recorded)) => {
            TokenStep::Create(Token { expires: Some(token::expiry(now)), ..recorded.clone() })
        }
        (Read::Unknown(_), _) => {
            draft.wake = poll(draft.observed);
            return None;
        }
        _ => return None,
    };
    let disagreement = draft.observed.clocks.disagreement();
    if disagreement.is_some() {
        draft.wake = poll(draft.observed);
    } else {
        draft.steps.push(Step::Tenant(step));
    }
    disagreement
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
