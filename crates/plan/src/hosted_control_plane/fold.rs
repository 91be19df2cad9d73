//! What an observation becomes after a step, until the world is read again.
//!
//! Only what the answer proves is written down. A step that failed or was refused leaves its words, which conditions
//! repeat; one whose answer was lost changes nothing. The executor does not try it again in this pass.

use hangar_api::contract::Endpoint;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::Deserialize as _;

use super::material::Content;
use super::observed::{Observed, SecretFacts, TenantObject, WorkloadFacts};
use super::step::{Mint, Step, TenantStep};
use super::{ObjectIdentity, names};
use crate::flow::{Action, Identified as _, Outcome, Read, Write};

impl Observed {
    /// Makes the observation what it is after that outcome.
    ///
    /// Minting answers [`Outcome::Created`] with the metadata of the Secret, or with no more than the fingerprint of what
    /// was minted. Applying in the tenant answers [`Outcome::Created`] or [`Outcome::Done`].
    pub fn fold(&mut self, step: &Step, outcome: &Outcome) {
        let id = match outcome {
            Outcome::Created(id) => id.clone(),
            Outcome::Done => String::new(),
            Outcome::Stale | Outcome::Lost => return,
            Outcome::Refused(_) | Outcome::Failed(_) => {
                self.troubles.extend(outcome.trouble().map(|words| (step.id(), words.to_owned())));
                return;
            }
        };
        match step {
            Step::Write(write) => self.written(write),
            Step::Own(mint) => {
                let metadata = serde_json::from_str::<ObjectMeta>(&id).ok();
                let facts = metadata.and_then(|metadata| SecretFacts::of(&metadata));
                let facts = facts.unwrap_or_else(|| self.minted(mint, id));
                self.secrets.insert(mint.material, Read::One(facts));
            }
            Step::Tenant(TenantStep::Apply { object, uid }) => {
                let annotations = object.metadata.annotations.as_ref();
                let applied =
                    annotations.and_then(|annotations| annotations.get(names::DESIRED_ANNOTATION)).cloned();
                let uid = uid.clone().unwrap_or(id);
                let object = ObjectIdentity::of(object);
                self.in_tenant(object, TenantObject::Ours { uid, applied, is_drifted: false });
            }
            Step::Tenant(TenantStep::Delete { object, .. }) => {
                self.in_tenant(object.clone(), TenantObject::Absent);
            }
            Step::Cloud(never) => match *never {},
        }
    }

    fn written(&mut self, write: &Write) {
        write.on_itself(&mut self.control_plane);
        match &write.action {
            Action::Change { target, fields } => {
                if let Some(endpoint) = fields.pointer("/spec/controlPlaneEndpoint") {
                    let endpoint = Endpoint::deserialize(endpoint).unwrap_or_default();
                    for infrastructure in self.infrastructure.iter_mut() {
                        infrastructure.endpoint.clone_from(&endpoint);
                    }
                }
                let served =
                    fields.pointer("/metadata/annotations").and_then(|all| all.get(names::SERVED_ANNOTATION));
                for pod in self.api_server_pods.iter_mut().filter(|pod| pod.uid == target.uid) {
                    pod.served = served.and_then(|served| Some(served.as_str()?.to_owned()));
                }
            }
            Action::Delete { target, .. } => self.deleting(&target.uid),
            Action::Itself(_) | Action::Create { .. } => {}
        }
    }

    fn minted(&self, mint: &Mint, fingerprint: String) -> SecretFacts {
        let before = self.secrets.get(&mint.material).and_then(|read| read.iter().next());
        SecretFacts {
            uid: before.and_then(|facts| facts.uid.clone()),
            intent: Some(mint.intent.clone()),
            fingerprint,
            issuer: mint.content.issuer().map(|issuer| issuer.fingerprint.clone()),
            ..SecretFacts::minted(self.now, mint.content.intent().map(|intent| intent.lifetime))
        }
    }

    fn in_tenant(&mut self, object: ObjectIdentity, state: TenantObject) {
        if let Read::One(tenant) = &mut self.tenant {
            tenant.objects.insert(object, state);
        }
    }

    /// Foreground deletion was asked for: it is gone when it is seen to be gone.
    fn deleting(&mut self, uid: &str) {
        let mark = |read: &mut Read<WorkloadFacts>| {
            if let Read::One(facts) = read
                && facts.uid == uid
            {
                facts.is_deleting = true;
            }
        };
        mark(&mut self.etcd);
        mark(&mut self.api_server);
        mark(&mut self.controller_manager);
        mark(&mut self.scheduler);
        for read in [&mut self.service, &mut self.tunnel] {
            if let Read::One(service) = read
                && service.uid == uid
            {
                service.is_deleting = true;
            }
        }
        for read in self.secrets.values_mut() {
            if let Read::One(secret) = read
                && secret.uid.as_deref() == Some(uid)
            {
                secret.is_deleting = true;
            }
        }
    }
}

impl Content {
    /// Whether minting it again would lose what the present one protects.
    pub fn is_irreplaceable(&self) -> bool {
        matches!(self, Self::Authority(_) | Self::ServiceAccountKeys | Self::EncryptionConfiguration)
    }
}
