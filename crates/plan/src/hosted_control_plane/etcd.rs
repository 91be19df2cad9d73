//! Plans etcd: a StatefulSet of one, three or five members, bootstrapped together.
//!
//! Each member has a configuration of its own (one key of a ConfigMap), so that adding a member later does not change
//! the others. Each has a Service of its own, whose name resolves before the pod has an address, because a name server
//! that is asked too early remembers for half a minute that the name does not exist. The StatefulSet's controller,
//! which knows nothing of quorums, never replaces pods: `etcd_rollout` restarts those that have an older template.
//!
//! The number of members is recorded from the first start on, with the claims of their volumes, and `changes` is what
//! changes it. What has data is never bootstrapped again: members without their volume do not start unless they were
//! added to etcd for that, and a StatefulSet that was deleted is made again only over the volumes of a quorum.

use std::collections::BTreeMap;
use std::time::Duration;

use hangar_api::conditions::{Actor, Finding, Waiting};
use hangar_api::controlplane::v1alpha1::Etcd;
use hangar_api::naming;
use k8s_openapi::api::apps::v1::{
    StatefulSet, StatefulSetPersistentVolumeClaimRetentionPolicy, StatefulSetSpec, StatefulSetUpdateStrategy,
};
use k8s_openapi::api::core::v1::{
    ConfigMap, Container, PersistentVolumeClaim, PersistentVolumeClaimSpec, PodTemplateSpec, Service,
    ServiceSpec, VolumeResourceRequirements,
};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::{Value, json};

use super::certificates::missing;
use super::changes::Change;
use super::conditions::etcd_cluster_healthy;
use super::material::Material;
use super::membership::Membership;
use super::names::{Component, ETCD_VOLUME, QUOTA_ANNOTATION, SETTINGS_ANNOTATION};
use super::network_policies::undecided;
use super::object::document;
use super::observed::{Observed, PodFacts, WorkloadFacts};
use super::pod::{Files, Template, container};
use super::program::ETCD;
use super::validate::Validated;
use super::volumes::{Loss, is_own, losses, may_begin, smallest, to_record};
use super::{
    Draft, Names, alarms, api_server, changes, defragmentation, etcd_rollout, etcd_settings, growth, restore,
    upgrade,
};
use crate::conditions::shared::unread;
use crate::conditions::who::{MANAGEMENT_CLUSTER, OPERATOR};
use crate::flow::{self, Read};
use crate::pieces::{
    config_map_volume, container_port, field_variable, mount, probe, quantities, selecting, service,
    service_port, texts, writable_mount,
};

pub(super) const CLIENT_PORT: u16 = 2379;
pub(super) const PEER_PORT: u16 = 2380;
pub(super) const METRICS_PORT: u16 = 2381;
/// HTTP clients get a port of their own: on one port with gRPC, its streams starve under load.
const CLIENT_HTTP_PORT: u16 = 2382;

const PKI: &str = "/etc/etcd/pki";
const CONFIGURATION: &str = "/etc/etcd/configuration";
pub(super) const DATA: &str = "/var/lib/etcd";
/// The directory of the first data. That of a restore has another name.
const FIRST_DATA: &str = "data";

/// Nothing wakes us when a member that joins has started or has all data, or when one is well again.
pub(super) const CHANGES_AGAIN: Duration = Duration::from_secs(5);

/// What the largest members have: beyond it, starting takes too long.
const LARGEST_QUOTA: u64 = 8 << 30;

/// What members read; all of it is needed before a pod starts.
pub(super) const MATERIALS: [Material; 3] =
    [Material::EtcdAuthority, Material::EtcdServer, Material::EtcdPeer];

/// The members: those that are recorded, or those that the first start will have.
pub(super) fn membership(validated: &Validated<'_>) -> Membership {
    let begun = restore::running(validated).map(|restoration| restoration.members);
    let first = || Membership::first(begun.unwrap_or(validated.wanted_members));
    validated.bootstrapped.clone().unwrap_or_else(first)
}

pub(super) fn draft(draft: &mut Draft<'_>, validated: &Validated<'_>) {
    let observed = draft.observed;
    let members = membership(validated).members;
    let facts = match (&observed.etcd, &observed.etcd_claims) {
        (Read::Unknown(unknown), _) => {
            return draft.say(unread(etcd_cluster_healthy::TYPE, "etcd's StatefulSet", unknown));
        }
        (_, Read::Unknown(unknown)) => {
            return draft.say(unread(etcd_cluster_healthy::TYPE, "etcd's claims", unknown));
        }
        // Nothing begins without policies.
        (Read::Absent, _) if let Some(unknown) = undecided(observed) => {
            return draft.say(unread(etcd_cluster_healthy::TYPE, "CiliumNetworkPolicies", unknown));
        }
        (read, _) => read.iter().next(),
    };
    let losses = losses(observed, validated);
    let change = changes::next(observed, validated, &losses);
    let is_found = facts.is_none() && validated.bootstrapped.is_none() && !restores(observed);
    let is_restoring = restore::running(validated).is_some() || restore::holds_start(observed, validated);
    let care = change.is_none().then(|| defragmentation::next(observed, validated)).flatten();
    let remedy = defragmentation::remedy(observed, validated, care.as_ref());
    health(draft, validated, (facts, is_restoring && !is_found), (&losses, change.as_ref(), remedy));
    // Pods of a restore are no members.
    let is_quorate = running(facts) >= quorum(members);
    if let Some(record) = to_record(observed, validated, is_quorate) {
        draft.report.decide("record etcd's members", "they have formed a cluster with these volumes");
        draft.step(record.record());
    }
    if let Some(change) = &change {
        draft.again(CHANGES_AGAIN);
        follow(draft, change);
    }
    growth::draft(draft, validated);
    defragmentation::draft(draft, care.as_ref());
    draft.apply(&configuration(observed, validated));
    draft.apply(&governing_service(validated));
    for ordinal in 0..membership(validated).pods() {
        draft.apply(&member_service(validated, ordinal));
    }
    draft.apply(&disruption_budget(validated, members));
    // While it is not known which version is next, the StatefulSet stays as it is.
    let Ok((tag, record)) = upgrade::etcd(observed, validated) else { return };
    if let Some(record) = record {
        draft.report.decide(format!("record {} of etcd", wanted_tag(validated)), "etcd never goes back");
        draft.step(record);
    }
    let lacking = missing(observed, &MATERIALS);
    if let Some(restoration) = restore::running(validated) {
        let is_startable = facts.is_some() || validated.bootstrapped.is_some() || restores(observed);
        if restore::run(draft, validated, restoration, facts) && is_startable {
            draft.apply(&restore::stateful_set(observed, validated, restoration, &tag));
        }
        return restore::begin_again(draft);
    }
    if let Some(facts) = facts.filter(|facts| restore::is_of_restore(facts)) {
        return restore::remove(
            draft,
            validated,
            facts,
            "the restore is over, and its pods make way for members",
        );
    }
    if facts.is_some() || (lacking.is_empty() && is_startable(observed, validated, &losses)) {
        draft.apply(&stateful_set(observed, validated, &tag));
    } else if !lacking.is_empty() {
        draft.report.wait(Waiting::new(Actor::Hangar, format!("etcd's keys: {}", lacking.join(", "))));
    }
    let Some(rollout) = etcd_rollout::begun(observed, validated, &tag) else { return };
    if etcd_rollout::is_due(observed, validated) {
        draft.again(CHANGES_AGAIN);
    }
    if change.is_none()
        && let Some(next) = rollout.next(validated)
    {
        follow(draft, &next);
    }
}

/// Takes the steps of a change, and says what it waits for.
fn follow(draft: &mut Draft<'_>, change: &Change) {
    draft.report.wait(change.waiting.clone());
    for step in &change.steps {
        draft.report.decide(flow::Identified::id(step).to_string(), change.why);
        draft.step(step.clone());
    }
}

/// Whether a StatefulSet leads to a cluster with its data. The first time there must be no volumes: members would go on
/// with data of a control plane that had this name before, whose keys are gone. Later a quorum must have volumes: without
/// one, the StatefulSet's controller would make empty ones for members that must not start.
fn is_startable(observed: &Observed, validated: &Validated<'_>, losses: &[Loss]) -> bool {
    let membership = membership(validated);
    if restore::holds_start(observed, validated) {
        false
    } else if validated.bootstrapped.is_none() {
        observed.etcd_claims.is_absent()
    } else {
        with_data(membership.members, losses) >= membership.quorum()
    }
}

/// Whether volumes may be restored to before anything is on record of them: there are none of another control plane.
fn restores(observed: &Observed) -> bool {
    observed.etcd_claims.iter().all(|claim| is_own(observed, claim))
}

/// How many members have their data.
pub(super) fn with_data(members: i32, losses: &[Loss]) -> i32 {
    let lost = losses.iter().filter(|loss| !loss.has_data).count();
    members - i32::try_from(lost).unwrap_or(members)
}

/// How many members decide.
pub(super) fn quorum(members: i32) -> i32 {
    members / 2 + 1
}

/// How many members are ready. Pods of a restore are none.
pub(super) fn running(facts: Option<&WorkloadFacts>) -> i32 {
    facts.filter(|facts| !restore::is_of_restore(facts)).map_or(0, |facts| facts.ready)
}

fn health(
    draft: &mut Draft<'_>,
    validated: &Validated<'_>,
    (facts, restoring): (Option<&WorkloadFacts>, bool),
    (losses, change, remedy): (&[Loss], Option<&Change>, Waiting),
) {
    let (ready, membership) = (running(facts), membership(validated));
    let (members, quorum) = (membership.members, membership.quorum());
    let mut waiting =
        Waiting::new(MANAGEMENT_CLUSTER, format!("etcd's members, {ready} of {members} are ready"));
    let trouble = PodFacts::first_trouble(&draft.observed.etcd_pods);
    waiting.detail.clone_from(&trouble);
    let lost = losses.iter().map(|loss| loss.what.as_str()).collect::<Vec<_>>().join("; ");
    let has_quorum = with_data(members, losses).min(ready) >= quorum;
    if has_quorum && !restoring && alarms::is_kept(draft) {
        return;
    }
    let is_restoring = facts.is_some_and(restore::is_of_restore);
    let finding: Finding = if is_restoring || restoring {
        etcd_cluster_healthy::RESTORING.waits("the data that it is to have, see EtcdRestored")
    } else if with_data(members, losses) < quorum {
        etcd_cluster_healthy::DATA_LOST.waits(restore::choices(draft.observed, validated)).because(lost)
    } else if let Some(finding) = alarms::raised(draft.observed, remedy) {
        finding
    } else if let Some(change) =
        change.filter(|change| !losses.is_empty() && change.waiting.actor != OPERATOR)
    {
        let detail = [Some(lost), change.waiting.detail.clone()];
        let detail = detail.into_iter().flatten().collect::<Vec<_>>().join("; ");
        let waiting = Waiting::new(change.waiting.actor.clone(), change.waiting.on.clone()).because(detail);
        etcd_cluster_healthy::REPLACING_MEMBER.waiting(waiting)
    } else if !losses.is_empty() {
        let on = change.map(|change| change.waiting.on.clone());
        etcd_cluster_healthy::MEMBER_LOST
            .waits(on.unwrap_or_else(|| "the member to be removed from etcd and added again".to_owned()))
            .because(lost)
    } else if facts.is_none() && draft.observed.is_bootstrapped() {
        etcd_cluster_healthy::NOT_CREATED
            .waits("etcd's StatefulSet, which was deleted; its volumes are there")
    } else if facts.is_none() && !draft.observed.etcd_claims.is_absent() {
        let claims: Vec<_> = draft.observed.etcd_claims.iter().map(|claim| claim.name.as_str()).collect();
        etcd_cluster_healthy::VOLUMES_FOUND
            .waits(format!(
                "PersistentVolumeClaim {} to be deleted or kept under another name",
                claims.join(", ")
            ))
            .because("they are not of this control plane, and etcd would go on with the data in them")
    } else if facts.is_none() {
        etcd_cluster_healthy::NOT_CREATED.waits("etcd's StatefulSet")
    } else if ready < quorum {
        etcd_cluster_healthy::NO_QUORUM.waiting(waiting)
    } else if ready < members
        && let Some(trouble) = trouble
    {
        etcd_cluster_healthy::MEMBER_FAILING
            .waits(format!("all members, {ready} of {members} are ready"))
            .because(trouble)
    } else if ready < members {
        draft.report.wait(waiting);
        etcd_cluster_healthy::QUORUM.into()
    } else {
        etcd_cluster_healthy::ALL_READY.into()
    };
    draft.say(finding);
}

/// Where the other members reach one.
pub(super) fn peer_url(names: &Names, ordinal: i32) -> String {
    variable_peer_url(names, &ordinal.to_string())
}

/// The same for an ordinal that is a variable of its pod.
pub(super) fn variable_peer_url(names: &Names, ordinal: &str) -> String {
    format!("https://{}:{PEER_PORT}", names.etcd_host(ordinal))
}

/// Client addresses of all members, for the API server.
pub(super) fn client_urls(validated: &Validated<'_>) -> String {
    let url = |ordinal| format!("https://{}:{CLIENT_PORT}", validated.names.etcd_member_host(ordinal));
    let membership = membership(validated);
    let members = membership.announced.unwrap_or(membership.members);
    (0..members).map(url).collect::<Vec<_>>().join(",")
}

/// The tag of etcd's image that the specification leads to.
pub(super) fn wanted_tag(validated: &Validated<'_>) -> String {
    let settings = settings(validated);
    let given = settings.container.image.and_then(|image| image.tag);
    given.unwrap_or_else(|| api_server::wanted(validated).1.etcd_tag(validated.epoch).to_owned())
}

pub(super) fn settings(validated: &Validated<'_>) -> Etcd {
    validated.settings.etcd.clone().unwrap_or_default()
}

fn configuration(observed: &Observed, validated: &Validated<'_>) -> ConfigMap {
    let names = &validated.names;
    let data: BTreeMap<String, String> = (0..membership(validated).pods())
        .map(|ordinal| {
            let document = document(&member_configuration(observed, validated, ordinal));
            (format!("{}{}", names.etcd_pod(ordinal), file_suffix(validated)), document)
        })
        .collect();
    validated.config_map(names.etcd(), Component::Etcd, data)
}

fn member_configuration(observed: &Observed, validated: &Validated<'_>, ordinal: i32) -> Value {
    let names = &validated.names;
    let membership = membership(validated);
    let peer_url = |ordinal| peer_url(names, ordinal);
    // A member with data does not read this list. One without data that does not find itself there does not start: it
    // would vote again under the name of the one that knew what was written.
    let may_begin = validated.bootstrapped.is_none() || may_begin(observed, validated, ordinal);
    // One that joins is named in its own list alone, which has to be that of etcd.
    let others = (0..membership.members).filter(|other| *other != ordinal && membership.has(*other));
    let mut initial: Vec<i32> = others.chain(may_begin.then_some(ordinal)).collect();
    initial.sort_unstable();
    let initial: Vec<String> = initial
        .into_iter()
        .map(|ordinal| format!("{}={}", names.etcd_pod(ordinal), peer_url(ordinal)))
        .collect();
    let security = |name: &str| {
        json!({
            "cert-file": format!("{PKI}/{name}.crt"),
            "key-file": format!("{PKI}/{name}.key"),
            "trusted-ca-file": format!("{PKI}/ca.crt"),
            "client-cert-auth": true,
        })
    };
    let mut peer = security("peer");
    // Members come from pod addresses, which no certificate can name.
    peer["skip-client-san-verification"] = json!(true);
    let owned = json!({
        "name": names.etcd_pod(ordinal),
        // Below the volume: etcd wants its directory closed to others, a volume's root often is not.
        "data-dir": format!("{DATA}/{}", directory(validated)),
        "listen-client-urls": format!("https://0.0.0.0:{CLIENT_PORT}"),
        "listen-client-http-urls": format!("https://0.0.0.0:{CLIENT_HTTP_PORT}"),
        "advertise-client-urls": format!("https://{}:{CLIENT_PORT}", names.etcd_member_host(ordinal)),
        "listen-peer-urls": format!("https://0.0.0.0:{PEER_PORT}"),
        "initial-advertise-peer-urls": peer_url(ordinal),
        "listen-metrics-urls": format!("http://0.0.0.0:{METRICS_PORT}"),
        "initial-cluster": initial.join(","),
        "initial-cluster-state": if validated.bootstrapped.is_some() { "existing" } else { "new" },
        "initial-cluster-token": token(validated, membership.generation),
        "client-transport-security": security("server"),
        "peer-transport-security": peer,
        "feature-gates": "InitialCorruptCheck=true",
        "quota-backend-bytes": quota(smallest(observed, validated).map_or(validated.volume_bytes, |(_, bytes)| bytes)),
    });
    // A file has durations in nanoseconds: five seconds.
    let mut merged = json!({"watch-progress-notify-interval": 5_000_000_000_u64});
    extend(&mut merged, etcd_settings::given(&settings(validated).container.args));
    extend(&mut merged, owned);
    merged
}

/// Tells the clusters of etcd apart that a control plane has had.
pub(super) fn token(validated: &Validated<'_>, generation: u32) -> String {
    format!("{}/{}/{generation}", validated.names.namespace(), validated.names.identity())
}

/// The directory of the data that members have, below the volume.
pub(super) fn directory(validated: &Validated<'_>) -> String {
    restored(validated).unwrap_or_else(|| FIRST_DATA.to_owned())
}

/// The data that members have, where it was restored.
pub(super) fn restored(validated: &Validated<'_>) -> Option<String> {
    validated.bootstrapped.as_ref()?.data.clone()
}

/// What follows the name of a member in that of its file. Restored data has files of its own: a member that finds none yet
/// does not start, and one with the file of before would start on what was replaced.
fn file_suffix(validated: &Validated<'_>) -> String {
    restored(validated).map_or_else(|| ".yaml".to_owned(), |data| format!(".{data}.yaml"))
}

fn extend(target: &mut Value, more: Value) {
    if let (Value::Object(target), Value::Object(more)) = (target, more) {
        target.extend(more);
    }
}

/// Three quarters of the volume: logs and snapshots need the rest.
pub(super) fn quota(volume_bytes: u64) -> u64 {
    LARGEST_QUOTA.min(volume_bytes / 4 * 3)
}

fn governing_service(validated: &Validated<'_>) -> Service {
    let spec = ServiceSpec {
        cluster_ip: Some("None".to_owned()),
        ports: Some(vec![service_port("metrics", METRICS_PORT, "TCP")]),
        ..members_service(validated.selector(Component::Etcd))
    };
    service(validated.metadata(validated.names.etcd_service(), Component::Etcd), spec)
}

fn disruption_budget(validated: &Validated<'_>, members: i32) -> PodDisruptionBudget {
    let mut budget = validated.disruption_budget(validated.names.etcd(), Component::Etcd);
    // There is no quorum that a member which is alone and not ready could be kept for, and no budget would ever allow it
    // to be replaced.
    if let Some(spec) = budget.spec.as_mut().filter(|_| members == 1) {
        spec.unhealthy_pod_eviction_policy = Some("AlwaysAllow".to_owned());
    }
    budget
}

fn member_service(validated: &Validated<'_>, ordinal: i32) -> Service {
    let mut selector = validated.selector(Component::Etcd);
    selector.insert("statefulset.kubernetes.io/pod-name".to_owned(), validated.names.etcd_pod(ordinal));
    let spec = ServiceSpec {
        type_: Some("ClusterIP".to_owned()),
        ports: Some(vec![service_port("client", CLIENT_PORT, "TCP"), service_port("peer", PEER_PORT, "TCP")]),
        ..members_service(selector)
    };
    service(validated.metadata(validated.names.etcd_member_service(ordinal), Component::Etcd), spec)
}

/// Members must find each other before any of them is ready.
fn members_service(selector: BTreeMap<String, String>) -> ServiceSpec {
    ServiceSpec {
        publish_not_ready_addresses: Some(true),
        selector: Some(selector),
        ..ServiceSpec::default()
    }
}

fn stateful_set(observed: &Observed, validated: &Validated<'_>, tag: &str) -> StatefulSet {
    let names = &validated.names;
    let mut settings = settings(validated);
    // A tag that users gave is in it already, unless it would lead back.
    if let Some(image) = &mut settings.container.image {
        image.tag = None;
    }
    let template = Template {
        component: Component::Etcd,
        version: naming::label_value(tag),
        annotations: read_at_start(observed, validated, &settings),
        priority_class: settings.priority_class_name.clone(),
        grace_seconds: 30,
        containers: vec![member_container(validated, &settings, tag)],
        volumes: vec![
            Files::new()
                .authority(validated, Material::EtcdAuthority, "ca.crt")
                .pair(validated, Material::EtcdServer, "server")
                .pair(validated, Material::EtcdPeer, "peer")
                .volume("pki"),
            config_map_volume("configuration", names.etcd()),
        ],
    };
    let membership = membership(validated);
    let template = template.render(validated, validated.wanted_members.max(membership.members));
    members_set(observed, validated, membership.pods(), template)
}

/// Arguments and the quota are in a file that members read when they start: others are another template. A quota is one
/// only where volumes have grown.
fn read_at_start(
    observed: &Observed,
    validated: &Validated<'_>,
    settings: &Etcd,
) -> BTreeMap<String, String> {
    let given = etcd_settings::given(&settings.container.args);
    let is_given = given.as_object().is_some_and(|given| !given.is_empty());
    let given = is_given.then(|| (SETTINGS_ANNOTATION.to_owned(), crate::hash::value(&given)));
    let quota = growth::raised_quota(observed, validated);
    let quota = quota.map(|quota| (QUOTA_ANNOTATION.to_owned(), quota.to_string()));
    given.into_iter().chain(quota).collect()
}

/// A StatefulSet of as many pods, each with the volume of its member.
pub(super) fn members_set(
    observed: &Observed,
    validated: &Validated<'_>,
    pods: i32,
    template: PodTemplateSpec,
) -> StatefulSet {
    let volume = growth::template(observed, validated);
    let names = &validated.names;
    let spec = StatefulSetSpec {
        service_name: Some(names.etcd_service()),
        replicas: Some(pods),
        pod_management_policy: Some("Parallel".to_owned()),
        update_strategy: Some(StatefulSetUpdateStrategy {
            type_: Some("OnDelete".to_owned()),
            rolling_update: None,
        }),
        persistent_volume_claim_retention_policy: Some(StatefulSetPersistentVolumeClaimRetentionPolicy {
            // Only the deletion of the control plane deletes them.
            when_deleted: Some("Retain".to_owned()),
            when_scaled: Some("Retain".to_owned()),
        }),
        selector: selecting(validated.selector(Component::Etcd)),
        template,
        volume_claim_templates: Some(vec![claim(validated, &volume, settings(validated).storage_class_name)]),
        ..StatefulSetSpec::default()
    };
    let metadata = validated.metadata(names.etcd(), Component::Etcd);
    StatefulSet { metadata, spec: Some(spec), ..StatefulSet::default() }
}

fn claim(validated: &Validated<'_>, volume: &str, class: Option<String>) -> PersistentVolumeClaim {
    PersistentVolumeClaim {
        metadata: ObjectMeta {
            name: Some(ETCD_VOLUME.to_owned()),
            labels: Some(validated.selector(Component::Etcd)),
            ..ObjectMeta::default()
        },
        spec: Some(PersistentVolumeClaimSpec {
            access_modes: Some(texts(&["ReadWriteOnce"])),
            resources: Some(VolumeResourceRequirements {
                requests: Some(quantities([("storage", volume)])),
                limits: None,
            }),
            storage_class_name: class,
            ..PersistentVolumeClaimSpec::default()
        }),
        ..PersistentVolumeClaim::default()
    }
}

fn member_container(validated: &Validated<'_>, settings: &Etcd, tag: &str) -> Container {
    Container {
        command: Some(texts(&["etcd"])),
        args: Some(vec![format!("--config-file={CONFIGURATION}/$(POD_NAME){}", file_suffix(validated))]),
        env: Some(vec![field_variable("POD_NAME", "metadata.name")]),
        ports: Some(vec![
            container_port("client", CLIENT_PORT, "TCP"),
            container_port("peer", PEER_PORT, "TCP"),
            container_port("metrics", METRICS_PORT, "TCP"),
        ]),
        startup_probe: Some(probe("/livez", METRICS_PORT, "HTTP", 1, 15, 300)),
        liveness_probe: Some(probe("/livez", METRICS_PORT, "HTTP", 10, 15, 8)),
        // Not for learners: they serve nobody.
        readiness_probe: Some(probe("/readyz", METRICS_PORT, "HTTP", 1, 15, 3)),
        volume_mounts: Some(vec![
            mount("pki", PKI),
            mount("configuration", CONFIGURATION),
            writable_mount(ETCD_VOLUME, DATA),
        ]),
        ..container(validated, ETCD.name, &settings.container, ETCD.repository, tag, ("50m", "64Mi"))
    }
}
