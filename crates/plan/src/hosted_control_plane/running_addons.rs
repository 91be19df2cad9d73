//! Tells whether the add-ons in the tenant run, as far as there are Nodes that they could run on.
//!
//! Add-ons are what [`tenant::objects`] renders and what has pods, so one that is left out is not mentioned. One that
//! somebody else made is not judged: `WorkloadReady` names it. What could not be read leaves the condition as it was.

use hangar_api::conditions::{Actor, shortened};
use k8s_openapi::api::apps::v1::{DaemonSet, Deployment};
use serde_json::Value;

use super::conditions::addons_ready;
use super::observed::{ObjectIdentity, Observed, TenantFacts, TenantObject};
use super::validate::Validated;
use super::{Draft, tenant};
use crate::conditions::shared::reads;
use crate::flow::{Read, Unknown};

/// Bytes of what the pods of one add-on say: enough for the name of a pod and of an image.
const WORDS_BYTES: usize = 400;

/// What a plan needs of an add-on's Deployment or DaemonSet in the tenant.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AddonFacts {
    /// Of its spec: whoever edits it changes this.
    pub generation: i64,
    /// Whether its controller has seen the latest change: `observedGeneration >= generation`.
    pub is_observed: bool,
    /// Pods wanted: of its spec, or one on each Node that it is for.
    pub desired: i32,
    /// Pods of the latest template.
    pub updated: i32,
    pub ready: i32,
    /// Why a pod of it does not run, in [`tenants_words`].
    pub trouble: Option<String>,
}

impl AddonFacts {
    /// Whether all pods are of the latest template and ready.
    pub fn is_ready(&self) -> bool {
        self.is_observed && self.updated >= self.desired && self.ready >= self.desired
    }

    fn shortfall(&self) -> String {
        let Self { generation: _, is_observed, desired, updated, ready, trouble } = self;
        let told = if !is_observed {
            "its latest change was not seen by the controller manager".to_owned()
        } else if ready < desired {
            format!("{ready} of {desired} pods are ready")
        } else {
            format!("{updated} of {desired} pods have the latest template")
        };
        trouble.as_ref().map_or_else(|| told.clone(), |trouble| format!("{told} ({trouble})"))
    }
}

impl From<Deployment> for AddonFacts {
    fn from(found: Deployment) -> Self {
        let status = found.status.unwrap_or_default();
        Self {
            generation: found.metadata.generation.unwrap_or_default(),
            is_observed: status.observed_generation >= found.metadata.generation,
            desired: found.spec.and_then(|spec| spec.replicas).unwrap_or(1),
            updated: status.updated_replicas.unwrap_or_default(),
            ready: status.ready_replicas.unwrap_or_default(),
            trouble: None,
        }
    }
}

impl From<DaemonSet> for AddonFacts {
    fn from(found: DaemonSet) -> Self {
        let status = found.status.unwrap_or_default();
        Self {
            generation: found.metadata.generation.unwrap_or_default(),
            is_observed: status.observed_generation >= found.metadata.generation,
            desired: status.desired_number_scheduled,
            updated: status.updated_number_scheduled.unwrap_or_default(),
            ready: status.number_ready,
            trouble: None,
        }
    }
}

/// Text that a tenant chose, as it may be repeated in a condition: one line of characters that show as what they are, and
/// cut.
pub fn tenants_words(text: &str) -> String {
    let visible = |letter: char| if letter.is_ascii_graphic() { letter } else { ' ' };
    // Cut first: a tenant may send megabytes.
    let text: String = text.chars().take(WORDS_BYTES + 1).map(visible).collect();
    shortened(text.split_whitespace().collect::<Vec<_>>().join(" "), WORDS_BYTES)
}

/// The add-ons that the tenant should have, each with the selector of its pods.
pub(super) fn addons(observed: &Observed, validated: &Validated<'_>) -> Vec<(ObjectIdentity, String)> {
    let objects = tenant::objects(observed, validated).into_iter();
    let with_pods = objects.filter_map(|object| {
        let labels = object.data.pointer("/spec/selector/matchLabels").and_then(Value::as_object)?;
        let pair = |(name, value): (&String, &Value)| Some(format!("{name}={}", value.as_str()?));
        Some((ObjectIdentity::of(&object), labels.iter().filter_map(pair).collect::<Vec<_>>().join(",")))
    });
    with_pods.collect()
}

pub(super) fn draft(draft: &mut Draft<'_>, validated: &Validated<'_>) {
    let observed = draft.observed;
    // Of a tenant that cannot be asked, `WorkloadReady` says why.
    let Read::One(tenant) = &observed.tenant else { return };
    if tenant.lacks_rights {
        return;
    }
    if tenant.nodes == 0 {
        return draft.say(addons_ready::NO_NODES.waits("Nodes that add-ons can run on"));
    }
    let addons = addons(observed, validated);
    if addons.is_empty() {
        return;
    }
    match short(observed, tenant, addons) {
        Ok(short) if short.is_empty() => draft.say(addons_ready::RUNNING),
        Ok(short) => {
            let names: Vec<&str> = short.iter().map(|(addon, _)| addon.name.as_str()).collect();
            let why: Vec<String> = short.iter().map(|(addon, why)| format!("{addon}: {why}")).collect();
            let on = format!("{} to run in the tenant", names.join(" and "));
            let reason = if short.iter().any(|(addon, _)| is_away(observed, addon)) {
                addons_ready::NOT_RUNNING
            } else {
                addons_ready::SOME_NOT_RUNNING
            };
            draft.say(reason.waits(on).because(why.join("; ")));
        }
        // What was said before may still be right.
        Err(_) if draft.condition(addons_ready::TYPE).is_some() => {}
        Err(unknown) => {
            let unread = reads::NOT_READABLE.about(addons_ready::TYPE);
            draft.say(unread.by(Actor::Hangar, "the tenant's add-ons to be readable").because(unknown.why));
        }
    }
}

/// Whether nobody does what an add-on is there for.
fn is_away(observed: &Observed, addon: &ObjectIdentity) -> bool {
    observed.addons.get(addon).is_none_or(|read| read.iter().all(|facts| facts.ready < 1))
}

/// The add-ons that do not run as they should, each with what is known of it.
fn short(
    observed: &Observed,
    tenant: &TenantFacts,
    addons: Vec<(ObjectIdentity, String)>,
) -> Result<Vec<(ObjectIdentity, String)>, Unknown> {
    let mut short = Vec::new();
    for (addon, _) in addons {
        if tenant.objects.get(&addon) == Some(&TenantObject::Foreign) {
            continue;
        }
        match observed.addons.get(&addon) {
            None => return Err(Unknown::new(format!("{addon} was not looked for"))),
            Some(Read::Unknown(unknown)) => return Err(unknown.clone()),
            Some(Read::One(facts)) if facts.is_ready() => {}
            Some(Read::One(facts)) => short.push((addon, facts.shortfall())),
            Some(Read::Absent | Read::Many(_)) => short.push((addon, "it is not there yet".to_owned())),
        }
    }
    Ok(short)
}
