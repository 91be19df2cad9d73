//! Folds the outcome of a step into the observation of a control plane, until the next read.
//!
//! Only what the answer proves is folded. The message of a step that failed or was refused is kept, for conditions to
//! repeat. A step whose answer was lost changes nothing, and is not tried again in this pass.

use hangar_api::contract::Endpoint;
use serde::Deserialize as _;

use super::material::Content;
use super::observed::{Observed, SecretFacts, TenantObject, WorkloadFacts};
use super::step::{Mint, MintReason};
use super::{ObjectIdentity, names};
use crate::flow::{Action, Read, Write};

impl Observed {
    pub(super) fn written(&mut self, write: &Write) {
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
                if let Some(finalizers) = fields.pointer("/metadata/finalizers") {
                    self.finalized(&target.uid, &Vec::deserialize(finalizers).unwrap_or_default());
                }
                if let Some(size) = fields.pointer("/spec/resources/requests/storage") {
                    for claim in self.etcd_claims.iter_mut().filter(|claim| claim.uid == target.uid) {
                        claim.requested = size.as_str().map(str::to_owned);
                    }
                }
                for pod in self.api_server_pods.iter_mut().filter(|pod| pod.uid == target.uid) {
                    pod.served = served.and_then(|served| Some(served.as_str()?.to_owned()));
                }
            }
            Action::Delete { target, .. } => self.deleting(&target.uid),
            Action::Evict { target } => {
                for pod in self.etcd_pods.iter_mut().filter(|pod| pod.uid == target.uid) {
                    pod.is_deleting = true;
                }
            }
            Action::Itself(_) | Action::Create { .. } => {}
        }
    }

    pub(super) fn minted(&self, mint: &Mint, fingerprint: String) -> SecretFacts {
        let before = self.secrets.get(&mint.material).and_then(|read| read.iter().next());
        SecretFacts {
            uid: before.and_then(|facts| facts.uid.clone()),
            intent: Some(mint.intent.clone()),
            finalizers: mint.secret.metadata.finalizers.clone().unwrap_or_default(),
            fingerprint,
            issuer: mint.content.issuer().map(|issuer| issuer.fingerprint.clone()),
            serial: mint.content.serial().cloned(),
            ..SecretFacts::minted(self.now, mint.content.intent().map(|intent| intent.lifetime))
        }
    }

    /// A copy is as what it was made of.
    pub(super) fn copied(&self, mint: &Mint) -> Option<SecretFacts> {
        let source = match mint.why {
            MintReason::Deleted => &self.secrets,
            MintReason::Copied => &self.copies,
            _ => return None,
        };
        let source = source.get(&mint.material)?.iter().next()?.clone();
        let finalizers = mint.secret.metadata.finalizers.clone().unwrap_or_default();
        Some(SecretFacts { uid: None, is_deleting: false, finalizers, ..source })
    }

    /// What is being deleted is gone with its last finalizer.
    fn finalized(&mut self, uid: &str, finalizers: &[String]) {
        for read in self.secrets.values_mut().chain(self.copies.values_mut()) {
            for facts in read.iter_mut().filter(|facts| facts.uid.as_deref() == Some(uid)) {
                facts.finalizers = finalizers.to_vec();
            }
            read.retain(|facts| {
                facts.uid.as_deref() != Some(uid) || !facts.is_deleting || !facts.finalizers.is_empty()
            });
        }
    }

    pub(super) fn in_tenant(&mut self, object: ObjectIdentity, state: TenantObject) {
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
        for route in self.ways.route.iter_mut().chain(self.ways.tunnel_route.iter_mut()) {
            route.is_deleting |= route.uid == uid;
        }
        for objects in [&mut self.network_policies, &mut self.cilium_policies, &mut self.pod_monitors] {
            for object in objects.iter_mut().flat_map(|objects| objects.values_mut()) {
                object.is_deleting |= object.uid == uid;
            }
        }
        for claim in self.etcd_claims.iter_mut().filter(|claim| claim.uid == uid) {
            claim.is_deleting = true;
        }
        for read in self.secrets.values_mut().chain(self.copies.values_mut()) {
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
        matches!(
            self,
            Self::Authority(_)
                | Self::ServiceAccountKeys
                | Self::EncryptionConfiguration
                | Self::BackedUp { .. }
        )
    }
}
