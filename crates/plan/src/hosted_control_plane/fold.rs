//! What an observation becomes after a step, until the world is read again.
//!
//! Only what the answer proves is written down. A step that failed or was refused leaves its words, which conditions
//! repeat; one whose answer was lost changes nothing. The executor does not try it again in this pass.

use hangar_api::contract::Endpoint;

use super::material::Content;
use super::observed::{Observed, SecretFacts, TenantObject, WorkloadFacts};
use super::step::{Mint, Step};
use super::{ObjectIdentity, names};
use crate::flow::{Outcome, Read, Step as _};

impl Observed {
    /// Makes the observation what it is after that outcome.
    ///
    /// Minting answers [`Outcome::Created`] with the fingerprint of what was minted; edges that know more put their own
    /// [`SecretFacts`] in place instead. Applying in the tenant answers [`Outcome::Created`] or [`Outcome::Done`].
    pub fn fold(&mut self, step: &Step, outcome: &Outcome) {
        let id = match outcome {
            Outcome::Created(id) => id.clone(),
            Outcome::Done => String::new(),
            Outcome::Lost => return,
            Outcome::Refused(words) => {
                self.troubles.insert(step.id(), words.clone());
                return;
            }
            Outcome::Failed(failure) => {
                self.troubles.insert(step.id(), failure.message.clone());
                return;
            }
        };
        match step {
            Step::Claim(claim) => {
                let metadata = &mut self.control_plane.metadata;
                let finalizers = metadata.finalizers.get_or_insert_default();
                if !finalizers.iter().any(|present| present == claim.finalizer) {
                    finalizers.push(claim.finalizer.to_owned());
                }
                metadata.annotations.get_or_insert_default().extend(claim.annotations.clone());
            }
            Step::Mint(mint) => {
                let facts = self.minted(mint, id);
                self.secrets.insert(mint.material, Read::One(facts));
            }
            Step::PublishEndpoint(endpoint) => {
                self.control_plane.spec.settings.control_plane_endpoint = Some(endpoint.clone());
            }
            Step::PublishInfrastructureEndpoint { endpoint, .. } => self.published(endpoint),
            Step::RefreshPod { uid, annotations, .. } => {
                self.refreshed(uid, annotations.get(names::SERVED_ANNOTATION));
            }
            Step::ApplyTenant { object, uid } => {
                let annotations = object.metadata.annotations.as_ref();
                let applied =
                    annotations.and_then(|annotations| annotations.get(names::DESIRED_ANNOTATION)).cloned();
                let uid = uid.clone().unwrap_or(id);
                let object = ObjectIdentity::of(object);
                self.in_tenant(object, TenantObject::Ours { uid, applied, is_drifted: false });
            }
            Step::DeleteTenant { object, .. } => self.in_tenant(object.clone(), TenantObject::Absent),
            Step::Delete { uid, .. } => self.deleting(uid),
            Step::Release { finalizer } => {
                let finalizers = self.control_plane.metadata.finalizers.get_or_insert_default();
                finalizers.retain(|present| present != finalizer);
            }
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

    fn published(&mut self, endpoint: &Endpoint) {
        if let Read::One(infrastructure) = &mut self.infrastructure {
            infrastructure.endpoint = endpoint.clone();
        }
    }

    fn refreshed(&mut self, uid: &str, served: Option<&String>) {
        let pods = match &mut self.api_server_pods {
            Read::One(pod) => std::slice::from_mut(pod),
            Read::Many(pods) => pods.as_mut_slice(),
            Read::Unknown(_) | Read::Absent => &mut [],
        };
        for pod in pods.iter_mut().filter(|pod| pod.uid == uid) {
            pod.served = served.cloned();
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
        if let Read::One(service) = &mut self.service
            && service.uid == uid
        {
            service.is_deleting = true;
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
