//! Decides which version each part of a control plane runs, from what is seen to run: etcd first, then the API servers,
//! then the controller manager and the scheduler, then the add-ons in the tenant.
//!
//! Two records on the control plane are all that is remembered. One is the highest version that served: stored data may
//! have its format, so no older API server starts again. The other is etcd's version, recorded before the first member
//! gets it: etcd does not read the data of a newer one, so it never goes back.
//!
//! A version waits where Kubernetes' rules of version skew would be broken, and while something that decides about it
//! cannot be read. Only the version waits: everything else about the API servers goes on with the version that runs, so
//! that an upgrade can be wanted together with what makes a tenant answer again.

use hangar_api::conditions::{Actor, Waiting};
use hangar_api::controlplane::v1alpha1::HostedControlPlane;

use super::controllers::serving_version;
use super::names::{ETCD_VERSION_ANNOTATION, SERVED_VERSION_ANNOTATION};
use super::observed::{Observed, PodFacts};
use super::step::{self, Step};
use super::validate::Validated;
use super::version::{KubernetesVersion, etcd_series, is_etcd_known};
use super::{Draft, api_server, etcd, restore};
use crate::admission::FieldError;
use crate::conditions::shared::unreadable;
use crate::conditions::who::MANAGEMENT_CLUSTER;
use crate::flow::{NOT_CALLED, Read, Unknown};

/// As many minors a kubelet may be older than the API servers.
const KUBELET_SKEW: u32 = 3;

/// A version, and what the wanted one waits for, if it is another.
pub(super) struct Next {
    pub(super) version: KubernetesVersion,
    pub(super) held: Option<Waiting>,
}

fn annotation<'object>(control_plane: &'object HostedControlPlane, name: &str) -> Option<&'object String> {
    control_plane.metadata.annotations.as_ref()?.get(name)
}

/// The highest version that served, as it is recorded. A record that cannot be read is an error and not nothing: an older
/// API server would follow from it.
pub(super) fn recorded(control_plane: &HostedControlPlane) -> Result<Option<KubernetesVersion>, FieldError> {
    let Some(text) = annotation(control_plane, SERVED_VERSION_ANNOTATION) else { return Ok(None) };
    KubernetesVersion::parse(text).map(Some).ok_or_else(|| {
        let path = format!("metadata.annotations[{SERVED_VERSION_ANNOTATION}]");
        let why = "it is Hangar's record of the highest version that served and must be as it was written";
        FieldError::invalid(path, text.as_str(), why)
    })
}

/// What is known to have served, whoever serves now: the record, or what the status of an earlier Hangar says, which kept
/// none.
fn known(control_plane: &HostedControlPlane) -> Option<KubernetesVersion> {
    recorded(control_plane).ok().flatten().or_else(|| {
        let status = control_plane.status.as_ref().filter(|status| status.initialized == Some(true))?;
        KubernetesVersion::parse(status.version.as_deref()?)
    })
}

/// Versions of API servers that serve now. Labels of a pod are anybody's who may create one, and the record has no way
/// back: a version that Hangar could not have started is not believed.
fn serving(observed: &Observed) -> impl Iterator<Item = KubernetesVersion> {
    let next = known(&observed.control_plane).map(|known| known.minor().saturating_add(1));
    let ready = observed.api_server_pods.iter().filter(|pod| pod.is_ready);
    let versions = ready.filter_map(|pod| KubernetesVersion::parse(pod.version.as_deref()?));
    versions.filter(move |version| version.is_supported() && next.is_none_or(|next| version.minor() <= next))
}

/// The highest version that served: known, or seen to serve.
pub(super) fn served(observed: &Observed) -> Option<KubernetesVersion> {
    serving(observed).chain(known(&observed.control_plane)).max_by_key(KubernetesVersion::number)
}

/// Why a version cannot follow the one that served, if so.
pub(crate) fn refusal(
    path: &str,
    wanted: &KubernetesVersion,
    served: &KubernetesVersion,
) -> Option<FieldError> {
    let why = if wanted.number() < served.number() {
        format!(
            "API servers of {served} have served, and older ones might not read what they wrote: it cannot be lower than {served}"
        )
    } else if wanted.minor() > served.minor().saturating_add(1) {
        let next = served.minor().saturating_add(1);
        format!("{served} serves, and minor versions cannot be skipped: upgrade to 1.{next} first")
    } else {
        return None;
    };
    Some(FieldError::invalid(path, wanted.tag(), why))
}

/// Why kubelets cannot work with a version, if so.
pub(crate) fn kubelets_refusal(
    path: &str,
    wanted: &KubernetesVersion,
    oldest: &KubernetesVersion,
) -> Option<FieldError> {
    let why = too_old(wanted, oldest)?;
    Some(FieldError::invalid(path, wanted.tag(), why))
}

fn too_old(wanted: &KubernetesVersion, oldest: &KubernetesVersion) -> Option<String> {
    (oldest.minor().saturating_add(KUBELET_SKEW) < wanted.minor()).then(|| {
        let least = wanted.minor() - KUBELET_SKEW;
        format!(
            "a Node runs kubelet {oldest}, and API servers of {wanted} need kubelets of 1.{least} or newer"
        )
    })
}

/// What is wrong with the wanted version after what is on record.
pub(super) fn error(observed: &Observed, validated: &Validated<'_>) -> Option<FieldError> {
    if let Err(error) = recorded(&observed.control_plane) {
        return Some(error);
    }
    let (path, wanted) = api_server::wanted(validated);
    let etcd = annotation(&observed.control_plane, ETCD_VERSION_ANNOTATION);
    if let Some(text) = etcd.filter(|text| etcd_series(text).is_none_or(|series| !is_etcd_known(series))) {
        let path = format!("metadata.annotations[{ETCD_VERSION_ANNOTATION}]");
        let why = "it is Hangar's record of etcd's version and must be as it was written";
        return Some(FieldError::invalid(path, text.as_str(), why));
    }
    refusal(path, &wanted, &known(&observed.control_plane)?)
}

/// Records the highest version that served.
pub(super) fn draft(draft: &mut Draft<'_>, _: &Validated<'_>) {
    let observed = draft.observed;
    let recorded = recorded(&observed.control_plane).ok().flatten();
    let Some(highest) = serving(observed).max_by_key(KubernetesVersion::number) else { return };
    if recorded.is_none_or(|recorded| recorded.number() < highest.number()) {
        draft.report.decide(
            format!("record that {highest} has served"),
            "no API server that is older may start from now on",
        );
        draft.step(step::record(SERVED_VERSION_ANNOTATION, highest.tag()));
    }
}

/// The version of the API server's pods now.
pub(super) fn api_server<'observed>(
    observed: &'observed Observed,
    validated: &Validated<'_>,
) -> Result<Next, &'observed Unknown> {
    let (_, wanted) = api_server::wanted(validated);
    let go = || Ok(Next { version: wanted.clone(), held: None });
    let running = running(observed)?;
    let Some(running) = running.filter(|running| running.number() != wanted.number()) else { return go() };
    if wanted.number() < running.number() {
        // It is taken back, unless a newer one is seen to serve that is not on record yet.
        return match (&observed.api_server_pods, served(observed)) {
            (Read::Unknown(unknown), _) => Err(unknown),
            (_, Some(served)) if wanted.number() < served.number() => {
                let held = Waiting::new(Actor::Hangar, format!("the record that {served} has served"));
                Ok(Next { version: running, held: Some(held) })
            }
            _ => go(),
        };
    }
    let held = match skew(observed, &running, &wanted)? {
        None => etcd_first(observed, validated, &running)?,
        held => held,
    };
    match held {
        None => go(),
        held => Ok(Next { version: running, held }),
    }
}

/// The version in the template of the API server's pods. A Deployment that somebody deleted comes back with what served:
/// what an upgrade waits for is not passed by.
fn running(observed: &Observed) -> Result<Option<KubernetesVersion>, &Unknown> {
    match &observed.api_server {
        Read::Unknown(unknown) => Err(unknown),
        Read::Absent => Ok(served(observed)),
        read => Ok(read.iter().next().and_then(|facts| KubernetesVersion::parse(facts.version.as_deref()?))),
    }
}

/// What a step to another minor waits for: nothing that talks to an API server may be too old for it.
fn skew<'observed>(
    observed: &'observed Observed,
    running: &KubernetesVersion,
    wanted: &KubernetesVersion,
) -> Result<Option<Waiting>, &'observed Unknown> {
    if wanted.minor() <= running.minor() {
        return Ok(None);
    }
    let serving = serving_version(observed)?;
    // Before anything has served, nobody depends on it.
    if served(observed).is_none() {
        return Ok(None);
    }
    let least = wanted.minor() - 1;
    let behind = |who: &str, oldest: Option<KubernetesVersion>| {
        let oldest = oldest.filter(|oldest| oldest.minor() < least)?;
        Some(Waiting::new(MANAGEMENT_CLUSTER, format!("{who} of 1.{least}, one is of {oldest}")))
    };
    if let Some(waiting) = behind("API servers", serving) {
        return Ok(Some(waiting));
    }
    let controllers = oldest(&observed.controller_pods)?;
    if let Some(waiting) = behind("the controller manager and the scheduler", controllers) {
        return Ok(Some(waiting));
    }
    let tenant = match &observed.tenant {
        // A preview asks nobody.
        Read::Unknown(unknown) if unknown.why == NOT_CALLED => return Ok(None),
        Read::Unknown(unknown) => return Ok(Some(unreadable("the tenant's Nodes", unknown))),
        read => read.iter().next(),
    };
    if tenant.is_some_and(|tenant| tenant.lacks_rights) {
        return Ok(Some(Waiting::new(Actor::Hangar, "rights to read the tenant's Nodes")));
    }
    let kubelet = tenant.and_then(|tenant| tenant.oldest_kubelet.as_ref());
    let why = kubelet.and_then(|oldest| too_old(wanted, oldest));
    Ok(why.map(|why| Waiting::new(Actor::ClusterOwner, "the oldest Nodes to be replaced").because(why)))
}

/// What API servers wait for that need another etcd than those that run.
fn etcd_first<'observed>(
    observed: &'observed Observed,
    validated: &Validated<'_>,
    running: &KubernetesVersion,
) -> Result<Option<Waiting>, &'observed Unknown> {
    let wanted = etcd::wanted_tag(validated);
    let Some(needed) = etcd_series(&wanted) else { return Ok(None) };
    if etcd_series(running.etcd_tag(validated.epoch)).is_none_or(|present| present >= needed) {
        return Ok(None);
    }
    if let Read::Unknown(unknown) = &observed.etcd_pods {
        return Err(unknown);
    }
    let members = etcd::membership(validated).members;
    let is_on = |pod: &&PodFacts| {
        let series = pod.version.as_deref().and_then(etcd_series);
        pod.is_ready && !pod.is_deleting && series.is_some_and(|series| series >= needed)
    };
    let there = observed.etcd_pods.iter().filter(is_on).count();
    let is_complete = i32::try_from(there).is_ok_and(|there| there >= members);
    let on = || format!("etcd's members, {there} of {members} are on {wanted}");
    Ok((!is_complete).then(|| Waiting::new(MANAGEMENT_CLUSTER, on())))
}

/// The tag of etcd's image now, and the record that has to be there before a newer one.
pub(super) fn etcd<'observed>(
    observed: &'observed Observed,
    validated: &Validated<'_>,
) -> Result<(String, Option<Step>), &'observed Unknown> {
    let wanted = etcd::wanted_tag(validated);
    let record = annotation(&observed.control_plane, ETCD_VERSION_ANNOTATION);
    let facts = observed.etcd.iter().find(|facts| !restore::is_of_restore(facts));
    let template = facts.and_then(|facts| facts.version.as_ref());
    let present = record.into_iter().chain(template).max_by_key(|tag| etcd_series(tag));
    let (Some(present), Some(needed)) = (present, etcd_series(&wanted)) else { return Ok((wanted, None)) };
    match etcd_series(present) {
        Some(series) if needed < series => Ok((present.clone(), None)),
        Some(series) if needed > series => {
            // There is no way back: it begins when nothing else keeps the API servers from following.
            let (_, version) = api_server::wanted(validated);
            let is_held = match running(observed)? {
                Some(running) => skew(observed, &running, &version)?.is_some(),
                None => false,
            };
            let record = (!is_held).then(|| step::record(ETCD_VERSION_ANNOTATION, &wanted));
            Ok((present.clone(), record))
        }
        _ => Ok((wanted, None)),
    }
}

/// The version of the add-ons: that of the oldest API server, controller manager or scheduler, at most the wanted one.
pub(super) fn addons<'observed>(
    observed: &'observed Observed,
    validated: &Validated<'_>,
) -> Result<KubernetesVersion, &'observed Unknown> {
    let running = serving_version(observed)?.into_iter().chain(oldest(&observed.controller_pods)?);
    let oldest = running.min_by_key(KubernetesVersion::number);
    let oldest = oldest.filter(|oldest| oldest.number() < validated.version.number());
    Ok(oldest.unwrap_or_else(|| validated.version.clone()))
}

/// The oldest version among pods that stay.
pub(super) fn oldest(pods: &Read<PodFacts>) -> Result<Option<KubernetesVersion>, &Unknown> {
    if let Read::Unknown(unknown) = pods {
        return Err(unknown);
    }
    let staying = pods.iter().filter(|pod| !pod.is_deleting);
    let versions = staying.filter_map(|pod| KubernetesVersion::parse(pod.version.as_deref()?));
    Ok(versions.min_by_key(KubernetesVersion::number))
}
