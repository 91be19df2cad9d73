//! Plans keys and certificates: which must exist, and which have to be minted now.
//!
//! - Authorities, token keys and the encryption key are minted if there is none and etcd has no data yet. They are never
//!   replaced by Hangar, because what depends on them would be lost (`kept.rs`). Users may provide their own.
//! - Every other certificate follows its intent: it is minted again when its intent changes, when another authority
//!   signs it, and after two thirds of its validity. Programs reread changed files. A program that does not reread them
//!   is restarted by its concern.
//! - A certificate that already ends with its authority is not renewed: its lifetime would only become shorter.
//! - Nothing is minted while Hangar's clock and the management cluster's disagree: one of them would date it wrongly.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use hangar_api::conditions::{Actor, Waiting};
use hangar_api::names::CLUSTER_SECRET_TYPE;
use jiff::SignedDuration;

use super::conditions::{authorities_lasting, certificates_valid};
use super::exposure::{self, node_host, reach};
use super::material::{CertificateIntent, Content, Issuer, Material, Usage};
use super::membership::MOST_MEMBERS;
use super::observed::{Observed, SecretFacts};
use super::step::{Mint, MintReason, Step};
use super::validate::Validated;
use super::{Draft, access, endpoint, kept, kubeconfigs, restore, tenant_rbac, trust};
use crate::conditions::shared::unread;
use crate::flow::{Identified as _, Read, Unknown, Wake};

/// What was changed is told before it is mended: a condition that nobody can see says nothing.
const MENDED_AFTER: Duration = Duration::from_secs(1);
/// A leaf that ends this close to its authority's end was cut by it.
const SAME_END: SignedDuration = SignedDuration::from_mins(5);

/// A clock that is set right shows with the next call; this is for the next plan.
const CLOCKS_AGAIN: Duration = Duration::from_mins(5);

/// Which of these materials are not there yet, for people. Of authorities their bundles are mounted as well.
pub(super) fn missing(observed: &Observed, materials: &[Material]) -> Vec<String> {
    let is_missing = |material: &&Material| match observed.secret(**material) {
        Read::One(facts) => {
            facts.problem.is_some() || (material.is_authority() && facts.certificate.is_none())
        }
        _ => true,
    };
    materials.iter().filter(is_missing).map(ToString::to_string).collect()
}

impl Observed {
    /// What is known of a material's Secret.
    pub fn secret(&self, material: Material) -> Read<&SecretFacts> {
        self.secrets
            .get(&material)
            .map_or_else(|| Read::Unknown(Unknown::new("it was not read")), Read::as_ref)
    }
}

pub(super) fn draft(draft: &mut Draft<'_>, validated: &Validated<'_>) {
    let mut judged = Judgement::default();
    for material in Material::ALL {
        judge(draft, validated, material, &mut judged);
    }
    judged.conclude(draft);
    kept::record(draft, validated);
    for bundle in trust::objects(draft.observed, validated) {
        draft.apply(&bundle);
    }
}

/// What is wrong, gathered over all materials.
#[derive(Default)]
pub(super) struct Judgement {
    pub(super) unread: Vec<(String, Unknown)>,
    /// What cannot be replaced and is not there, in words.
    pub(super) lost: Vec<String>,
    /// What cannot be replaced, was deleted and comes back.
    pub(super) restoring: Vec<String>,
    foreign: Vec<String>,
    /// With what is wrong.
    pub(super) unusable: Vec<String>,
    expired: Vec<String>,
    /// With the field.
    edited: Vec<String>,
    pub(super) minting: Vec<String>,
    /// What would be minted if the clocks agreed.
    withheld: Vec<String>,
    /// What went wrong when it was minted.
    troubles: Vec<String>,
    ending: Vec<String>,
}

impl Judgement {
    /// What is wrong with the clocks, where something depends on them now.
    fn disagreement(&self, observed: &Observed) -> Option<String> {
        let depends = !self.withheld.is_empty() || !self.expired.is_empty();
        observed.clocks.disagreement().filter(|_| depends)
    }

    fn conclude(self, draft: &mut Draft<'_>) {
        let listed = |names: &[String]| names.join(", ");
        let finding = if !self.lost.is_empty() {
            certificates_valid::KEY_LOST
                .waits("these Secrets, with the content that they had")
                .because(self.lost.join("; "))
        } else if !self.foreign.is_empty() {
            certificates_valid::NAME_TAKEN
                .waits("these Secrets to be deleted or renamed")
                .because(format!("these names are taken: {}", listed(&self.foreign)))
        } else if !self.unusable.is_empty() {
            let on = if draft.observed.is_bootstrapped() {
                "Secrets with the content that they had"
            } else {
                "Secrets that can be used, or none: then they are made"
            };
            certificates_valid::UNUSABLE.waits(on).because(self.unusable.join("; "))
        } else if let Some(disagreement) = self.disagreement(draft.observed) {
            draft.wake_at(Wake::after(draft.observed.now, CLOCKS_AGAIN));
            certificates_valid::CLOCKS_DISAGREE.waits("clocks that agree").because(disagreement)
        } else if !self.expired.is_empty() {
            let ended = listed(&self.expired);
            certificates_valid::EXPIRED
                .waits("new authorities")
                .because(format!("these have ended, and all they signed with them: {ended}"))
        } else if !self.edited.is_empty() {
            certificates_valid::EDITED
                .waits("these Secrets to be minted again")
                .because(format!("they were changed and are not used: {}", self.edited.join("; ")))
        } else if let Some((_, unknown)) = self.unread.first() {
            let names: Vec<String> = self.unread.iter().map(|(name, _)| name.clone()).collect();
            unread(certificates_valid::TYPE, &format!("the Secrets {}", listed(&names)), unknown)
        } else if !self.restoring.is_empty() {
            certificates_valid::RESTORING
                .waits(format!("{} to be made again with the same content", listed(&self.restoring)))
        } else if !self.minting.is_empty() {
            let trouble = (!self.troubles.is_empty()).then(|| self.troubles.join("; "));
            certificates_valid::MINTING.waits(listed(&self.minting)).because_of(trouble)
        } else {
            for trouble in self.troubles {
                draft.report.wait(Waiting::new(Actor::Hangar, "a renewal").because(trouble));
            }
            certificates_valid::VALID.into()
        };
        draft.say(finding);
        if self.ending.is_empty() {
            draft.forget(authorities_lasting::TYPE);
        } else {
            let ends = format!("half of their validity is over: {}", listed(&self.ending));
            draft.say(
                authorities_lasting::ENDING
                    .waits("new authorities, or a new cluster, before they end")
                    .because(ends),
            );
        }
    }
}

fn judge(draft: &mut Draft<'_>, validated: &Validated<'_>, material: Material, judged: &mut Judgement) {
    let observed = draft.observed;
    let name = validated.names.secret(material);
    if material.is_irreplaceable() && !kept::judge(draft, validated, material, judged) {
        return;
    }
    let facts = match observed.secret(material) {
        Read::Unknown(unknown) => return judged.unread.push((name, unknown)),
        Read::Many(_) => return judged.unread.push((name, Unknown::new("a name leads to several Secrets"))),
        Read::Absent => None,
        Read::One(facts) => Some(facts),
    };
    if let Some(facts) = facts {
        if facts.is_deleting {
            // Gone in a moment; then it is minted anew, or stays gone with its control plane.
            return judged.minting.push(name);
        }
        if !facts.is_ours && !material.may_be_given() {
            return judged.foreign.push(name);
        }
        if let Some(problem) = &facts.problem {
            return judged.unusable.push(format!("{name}: {problem}"));
        }
        if material.is_authority() && facts.is_expired(observed.now) {
            judged.expired.push(name.clone());
        } else if material.is_authority()
            && let (Some(half), Some(end)) = (facts.half_at(), facts.not_after)
        {
            if half <= observed.now {
                judged.ending.push(format!("{name} ends at {end}"));
            } else {
                draft.wake_at(Wake::At(half));
            }
        }
    }
    let is_awaited = facts.is_none() && material.is_backed_up() && restore::holds_keys(observed, validated);
    if is_awaited {
        return judged.minting.push(format!("{name} (or the one in the backup)"));
    }
    // Without content it needs something that is not there yet and that others wait for already.
    let Some(content) = content(observed, validated, material) else {
        if material == Material::Kubeconfig && kubeconfigs::is_withheld(observed) {
            judged.withheld.push(name);
        }
        return;
    };
    let Some(why) = reason(observed, material, facts, &content) else {
        if let Some(at) = facts.and_then(SecretFacts::renew_at).filter(|at| *at > observed.now) {
            draft.wake_at(Wake::At(at));
        }
        return;
    };
    if observed.clocks.disagreement().is_some() {
        return judged.withheld.push(name);
    }
    if let (MintReason::Edited, Some(field)) = (why, facts.and_then(|facts| edited(facts, &content))) {
        judged.edited.push(format!("{name}: {field}"));
        let said = draft.condition(certificates_valid::TYPE).map(|condition| condition.reason);
        if said.as_deref() != Some(certificates_valid::EDITED.reason().name) {
            return draft.again(MENDED_AFTER);
        }
    }
    draft.report.decide(format!("mint {name}"), why.to_string());
    // What is there still works while its successor is minted, unless it has ended.
    if facts.is_none_or(|facts| facts.is_expired(observed.now)) {
        judged.minting.push(name.clone());
    }
    let intent = content.hash();
    let secret = kept::secret(validated, material, name, &content);
    let step = Step::from(Mint { material, secret, content, intent, why });
    judged.troubles.extend(observed.troubles.get(&step.id()).cloned());
    draft.step(step);
}

pub(super) fn secret_type(material: Material, content: &Content) -> &'static str {
    if material.may_be_given() || matches!(content, Content::Kubeconfig { .. }) {
        CLUSTER_SECRET_TYPE
    } else {
        "Opaque"
    }
}

/// Why it has to be minted now, if it has to.
fn reason(
    observed: &Observed,
    material: Material,
    facts: Option<&SecretFacts>,
    content: &Content,
) -> Option<MintReason> {
    let Some(facts) = facts else { return Some(MintReason::Missing) };
    if content.is_irreplaceable() {
        return None;
    }
    if facts.intent.as_deref() != Some(content.hash().as_str()) {
        return Some(MintReason::Changed);
    }
    if facts.issuer.as_deref() != content.issuer().map(|issuer| issuer.fingerprint.as_str()) {
        return Some(MintReason::OtherIssuer);
    }
    if edited(facts, content).is_some() {
        return Some(MintReason::Edited);
    }
    let is_due = facts.renew_at().is_some_and(|at| at <= observed.now);
    (is_due && !ends_with_issuer(observed, material, facts)).then_some(MintReason::Renewal)
}

/// What of a kubeconfig is not as it was minted.
fn edited(facts: &SecretFacts, content: &Content) -> Option<String> {
    let Content::Kubeconfig { server, trust, .. } = content else { return None };
    match facts.kubeconfig.as_ref()? {
        Ok(found) => found.difference(server, Some(trust), facts).map(str::to_owned),
        Err(problem) => Some(problem.clone()),
    }
}

fn ends_with_issuer(observed: &Observed, material: Material, facts: &SecretFacts) -> bool {
    let issuer = material.issuer().map(|issuer| observed.secret(issuer));
    let Some(Read::One(issuer)) = issuer else { return false };
    issuer
        .not_after
        .zip(facts.not_after)
        .is_some_and(|(authority, leaf)| leaf.duration_until(authority) <= SAME_END)
}

/// What a material must be; nothing while something that it needs was not seen.
fn content(observed: &Observed, validated: &Validated<'_>, material: Material) -> Option<Content> {
    let lifetimes = validated.lifetimes;
    if let Some(content) = backed_up(observed, validated, material) {
        return Some(content);
    }
    let authority = |name: &str, lifetime| {
        Some(Content::Authority(CertificateIntent {
            common_name: name.to_owned(),
            organizations: Vec::new(),
            dns_names: BTreeSet::new(),
            ip_addresses: BTreeSet::new(),
            usage: Usage::Authority,
            lifetime,
        }))
    };
    match material {
        Material::ClusterAuthority => authority("kubernetes", lifetimes.cluster_authority),
        Material::EtcdAuthority => authority("etcd-ca", lifetimes.other_authorities),
        Material::FrontProxyAuthority => authority("front-proxy-ca", lifetimes.other_authorities),
        Material::ServiceAccountKeys => Some(Content::ServiceAccountKeys),
        Material::EncryptionConfiguration => Some(Content::EncryptionConfiguration),
        _ => signed(observed, validated, material),
    }
}

/// What is taken from a backup while etcd has no data: what was stored, signed and issued with it stays valid.
fn backed_up(observed: &Observed, validated: &Validated<'_>, material: Material) -> Option<Content> {
    let restoration = restore::running(validated).filter(|restoration| restoration.has_keys)?;
    let is_taken = material.is_backed_up() && restore::holds_start(observed, validated);
    is_taken.then(|| Content::BackedUp { from: restoration.from.clone(), backup: restoration.backup.clone() })
}

/// The settings that ask for another lifetime of authorities than those of ours were made with: they are not made twice.
pub(super) fn fixed_lifetimes(observed: &Observed, validated: &Validated<'_>) -> BTreeSet<&'static str> {
    let fields = [
        (Material::ClusterAuthority, "rootCaCertificateDuration"),
        (Material::EtcdAuthority, "caCertificateDuration"),
        (Material::FrontProxyAuthority, "caCertificateDuration"),
    ];
    let is_other = |material| {
        let wanted = content(observed, validated, material).map(|content| content.hash());
        let taken = Content::BackedUp { from: String::new(), backup: String::new() }.hash();
        let is_made = |facts: &SecretFacts| {
            facts.is_ours && facts.intent.as_ref().is_some_and(|intent| *intent != taken)
        };
        observed.secret(material).iter().any(|facts| is_made(facts) && facts.intent != wanted)
    };
    fields.into_iter().filter_map(|(material, field)| is_other(material).then_some(field)).collect()
}

fn signed(observed: &Observed, validated: &Validated<'_>, material: Material) -> Option<Content> {
    let issuer = issuer(observed, validated, material)?;
    let client = |name: &str| leaf(validated, name, Usage::Client);
    let intent = match material {
        Material::ApiServer => api_server(observed, validated)?,
        Material::KonnectivityServer => konnectivity_server(observed, validated)?,
        Material::EtcdServer => etcd_member(validated, "etcd-server"),
        Material::EtcdPeer => etcd_member(validated, "etcd-peer"),
        // No group: the binding of its user is all it may do.
        Material::ApiServerKubeletClient => client("kube-apiserver-kubelet-client"),
        Material::ApiServerEtcdClient => client("kube-apiserver-etcd-client"),
        Material::OperatorEtcdClient => client(access::USER),
        Material::FrontProxyClient => client("front-proxy-client"),
        Material::KonnectivityClient => client("system:konnectivity-server"),
        Material::ControllerManager => client("system:kube-controller-manager"),
        Material::Scheduler => client("system:kube-scheduler"),
        Material::Metrics => client(tenant_rbac::METRICS),
        _ => return super::kubeconfigs::content(observed, validated, material, issuer),
    };
    Some(Content::Certificate { intent, issuer })
}

pub(super) fn issuer(observed: &Observed, validated: &Validated<'_>, material: Material) -> Option<Issuer> {
    let authority = material.issuer()?;
    let Read::One(facts) = observed.secret(authority) else { return None };
    let is_unusable = facts.is_deleting || facts.problem.is_some() || facts.is_expired(observed.now);
    if is_unusable || kept::is_another(validated, authority, facts) {
        return None;
    }
    let secret = validated.names.secret(authority);
    Some(Issuer { material: authority, secret, fingerprint: facts.fingerprint.clone() })
}

pub(super) fn leaf(validated: &Validated<'_>, common_name: &str, usage: Usage) -> CertificateIntent {
    CertificateIntent {
        common_name: common_name.to_owned(),
        organizations: Vec::new(),
        dns_names: BTreeSet::new(),
        ip_addresses: BTreeSet::new(),
        usage,
        lifetime: validated.lifetimes.leaves,
    }
}

fn etcd_member(validated: &Validated<'_>, common_name: &str) -> CertificateIntent {
    let names = &validated.names;
    let mut intent = leaf(validated, common_name, Usage::ServerAndClient);
    intent.dns_names.insert("localhost".to_owned());
    // As many as there may ever be, so that growing changes no certificate.
    for ordinal in 0..MOST_MEMBERS {
        intent.dns_names.insert(names.etcd_member_service(ordinal));
        intent.dns_names.insert(names.etcd_member_host(ordinal));
    }
    intent.ip_addresses.insert(IpAddr::V4(Ipv4Addr::LOCALHOST));
    intent
}

/// Everything the API server may be called. Nothing while the Service was not read: names would be lost from the
/// certificate that is there.
fn api_server(observed: &Observed, validated: &Validated<'_>) -> Option<CertificateIntent> {
    let names = &validated.names;
    let service = match &observed.service {
        Read::Unknown(_) | Read::Many(_) => return None,
        _ if exposure::is_unread(observed, validated) => return None,
        read => read.iter().next(),
    };
    let mut intent = leaf(validated, "kube-apiserver", Usage::Server);
    let domain = &validated.domain;
    let mut given: Vec<String> = ["localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc"]
        .map(str::to_owned)
        .into_iter()
        .chain([
            format!("kubernetes.default.svc.{domain}"),
            names.api_server_service(),
            format!("{}.{}", names.api_server_service(), names.namespace()),
            names.api_server_host(),
            Ipv4Addr::LOCALHOST.to_string(),
        ])
        .chain(validated.kubernetes_addresses.iter().map(ToString::to_string))
        .collect();
    given.extend(validated.settings.cert_sans.iter().cloned());
    given.extend(endpoint::hosts(observed, validated));
    given.extend(
        service
            .into_iter()
            .flat_map(|service| service.ingress_ips.iter().chain(&service.ingress_hostnames).cloned()),
    );
    for name in given.into_iter().filter(|name| !name.is_empty()) {
        match name.parse::<IpAddr>() {
            Ok(address) => intent.ip_addresses.insert(address),
            Err(_) => intent.dns_names.insert(name),
        };
    }
    Some(intent)
}

/// Agents of the tunnel use one fixed name where its server is reached by address. So a late address does not change
/// this certificate, which is read only at the start; nor do names that were given, whether or not agents go by them.
fn konnectivity_server(observed: &Observed, validated: &Validated<'_>) -> Option<CertificateIntent> {
    let is_unread = observed.service.is_unknown() || observed.tunnel.is_unknown();
    if is_unread || exposure::is_unread(observed, validated) {
        return None;
    }
    let mut intent = leaf(validated, "konnectivity-server", Usage::Server);
    intent.dns_names.insert(validated.names.konnectivity_host());
    let given = validated.settings.control_plane_endpoint.as_ref().map(|endpoint| endpoint.host.clone());
    let reached = reach(observed, validated).ok().and_then(|reach| reach.agents.ok());
    let hosts =
        given.into_iter().chain(node_host(validated).cloned()).chain(reached.map(|agents| agents.host));
    let is_name = |host: &String| !host.is_empty() && host.parse::<IpAddr>().is_err();
    intent.dns_names.extend(hosts.filter(is_name));
    intent.dns_names.extend(exposure::tunnel_names(observed, validated));
    Some(intent)
}
