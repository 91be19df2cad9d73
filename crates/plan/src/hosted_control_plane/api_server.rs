//! Plans the API server, with the tunnel's server beside it in the same pod.
//!
//! The Deployment is created once etcd's first pod may start its containers. If the API server starts long before etcd,
//! it exits after twenty seconds, and the restart delays it further. Once created, the Deployment stays in the plan
//! whatever becomes of that pod.
//!
//! No flag depends on the endpoint's address; the API server does not write the endpoints of the `kubernetes` Service,
//! Hangar does. When its certificate changes, the running pods get an annotation, which makes kubelet update their
//! files at once; the API server rereads them by itself.
//!
//! What is read only at the start belongs to the Deployment's template: its ConfigMap is written with the Deployment or
//! not at all. Otherwise a pod that starts again while the Deployment is held back, such as for a mount that is missing,
//! would read files that its flags and its other containers do not fit. (What is left is a Deployment that is refused
//! right after its ConfigMap was taken.) Whose tokens are accepted is in a ConfigMap of
//! its own, because that must not wait: an issuer is taken away at once.
//!
//! All templates share the name of that ConfigMap. With a name for each, pods of an older template would keep their files
//! also during a rollout, but somebody would have to delete those that nobody reads any more: a right over all ConfigMaps
//! of the management cluster, which the manager does not have.

use hangar_api::conditions::{Actor, Waiting};
use hangar_api::controlplane::v1alpha1::ApiServerPod;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Container, Volume};

use super::certificates::missing;
use super::conditions::api_server_ready;
use super::controllers::serving_version;
use super::flags::{Flags, NODE_RESTRICTION};
use super::material::{Material, keys};
use super::names::{
    Component, RENEWED_ANNOTATION, RESTORED_ANNOTATION, SERVED_ANNOTATION, SETTINGS_ANNOTATION,
};
use super::observed::{Observed, PodFacts, WorkloadFacts};
use super::pod::{Files, Template, container};
use super::program::API_SERVER;
use super::validate::{API_SERVER_PORT, Validated};
use super::version::KubernetesVersion;
use super::{
    Draft, ages, audit, authentication, etcd, kept, konnectivity, mounts, restore, sources, step, upgrade,
};
use crate::conditions::shared::unread;
use crate::conditions::who::MANAGEMENT_CLUSTER;
use crate::flow::{Read, Wake};
use crate::pieces::{container_port, mount, probe, restricted, texts, variable, writable_mount};

const PKI: &str = "/etc/kubernetes/pki";
const CONFIGURATION: &str = "/etc/kubernetes/configuration";
const ENCRYPTION: &str = "/etc/kubernetes/encryption";
pub(super) const EGRESS_KEY: &str = "egress.yaml";
pub(super) const KONNECTIVITY_KEY: &str = "konnectivity.kubeconfig";

/// Longer than everything that happens in an orderly stop: the delay, the watches' time, requests of a minute.
const GRACE_SECONDS: i64 = 90;

/// What the pod mounts; all of it is needed before a pod starts.
const MATERIALS: [Material; 11] = [
    Material::ClusterAuthority,
    Material::EtcdAuthority,
    Material::FrontProxyAuthority,
    Material::ServiceAccountKeys,
    Material::EncryptionConfiguration,
    Material::ApiServer,
    Material::ApiServerKubeletClient,
    Material::ApiServerEtcdClient,
    Material::FrontProxyClient,
    Material::KonnectivityServer,
    Material::KonnectivityClient,
];

fn settings(validated: &Validated<'_>) -> ApiServerPod {
    let deployment = validated.settings.deployment.as_ref();
    deployment.and_then(|deployment| deployment.api_server.clone()).unwrap_or_default()
}

pub(super) fn draft(draft: &mut Draft<'_>, validated: &Validated<'_>) {
    let observed = draft.observed;
    let facts = match &observed.api_server {
        Read::Unknown(unknown) => {
            return draft.say(unread(api_server_ready::TYPE, "the API server's Deployment", unknown));
        }
        read => read.iter().next(),
    };
    let versions = versions(observed, validated);
    // While it is not known what is in the template it stays as it is.
    let (renewed, due) = ages::renewed(observed, validated);
    let deployment = versions.as_ref().and_then(|(next, oldest)| deployment(observed, next, oldest, renewed));
    if let Some((_, oldest)) = &versions {
        // Before there is a Deployment nobody reads it, and the first pod will not wait for it.
        if facts.is_none() || deployment.is_some() {
            draft.apply(&configuration(oldest));
        }
        if let Some(accepted) = accepted(oldest) {
            draft.apply(&accepted);
        }
        refresh(draft, oldest);
    }
    draft.apply(&validated.disruption_budget(validated.names.api_server(), Component::ApiServer));
    match (facts, gate(observed, validated)) {
        (None, Err(waiting)) => draft.say(api_server_ready::NOT_CREATED.waiting(waiting)),
        (facts, _) => {
            if let Some(deployment) = deployment {
                draft.apply(&deployment);
            }
            draft.wake_at(due.map_or(Wake::OnChange, Wake::At));
            readiness(draft, facts, validated.replicas);
        }
    }
}

/// What is rendered for the pods that are next, and for the oldest that run; nothing while that is not known. All of them
/// have the same files, so these are such that the oldest can read them.
fn versions<'validated>(
    observed: &Observed,
    validated: &Validated<'validated>,
) -> Option<(Validated<'validated>, Validated<'validated>)> {
    let next = upgrade::api_server(observed, validated).ok()?.version;
    let oldest = serving_version(observed).ok()?.filter(|oldest| oldest.number() < next.number());
    let oldest = oldest.unwrap_or_else(|| next.clone());
    let at = |version| Validated { version, ..validated.clone() };
    Some((at(next), at(oldest)))
}

/// Whether it may be made.
fn gate(observed: &Observed, validated: &Validated<'_>) -> Result<(), Waiting> {
    let lacking = missing(observed, &MATERIALS);
    if !lacking.is_empty() {
        return Err(Waiting::new(Actor::Hangar, format!("the API server's keys: {}", lacking.join(", "))));
    }
    if let Err(why) = mounts::contents(observed, validated.settings) {
        let is_missing = !sources::missing(observed).is_empty();
        let actor = if is_missing { Actor::ClusterOwner } else { Actor::Hangar };
        return Err(Waiting::new(actor, why));
    }
    let first = validated.names.etcd_pod(0);
    let begins = |pod: &&PodFacts| pod.is_ready_to_start || pod.is_ready;
    let mut members = observed.etcd_pods.iter().filter(|pod| !restore::is_pod(pod));
    let has_begun = members.any(|pod| pod.name == first && begins(&pod));
    if has_begun { Ok(()) } else { Err(Waiting::new(MANAGEMENT_CLUSTER, format!("pod {first} to start"))) }
}

fn readiness(draft: &mut Draft<'_>, facts: Option<&WorkloadFacts>, replicas: i32) {
    let ready = facts.map_or(0, |facts| facts.ready);
    let mut waiting =
        Waiting::new(MANAGEMENT_CLUSTER, format!("API servers, {ready} of {replicas} are ready"));
    waiting.detail = PodFacts::first_trouble(&draft.observed.api_server_pods);
    match facts {
        Some(facts) if facts.is_rolled_out() && ready >= replicas => draft.say(api_server_ready::ALL_READY),
        // Of pods that a rollout brings RollingOut tells.
        Some(facts)
            if ready > 0
                && facts.is_replaced()
                && let Some(failing) = PodFacts::first_failing(&draft.observed.api_server_pods) =>
        {
            waiting.detail = Some(failing);
            draft.say(api_server_ready::POD_FAILING.waiting(waiting));
        }
        Some(_) if ready > 0 => {
            draft.say(api_server_ready::SOME_READY);
            draft.report.wait(waiting);
        }
        _ => draft.say(api_server_ready::NONE_READY.waiting(waiting)),
    }
}

/// Pods that have not been told of the files that they read again: the certificate that is in the Secret now, and whose
/// tokens are accepted.
fn refresh(draft: &mut Draft<'_>, validated: &Validated<'_>) {
    let observed = draft.observed;
    let Read::One(certificate) = observed.secret(Material::ApiServer) else { return };
    let served = match authentication::configuration(validated) {
        Some(file) => crate::hash::text(&format!("{}\0{file}", certificate.fingerprint)),
        None => certificate.fingerprint.clone(),
    };
    let pods = observed.api_server_pods.iter();
    for pod in pods.filter(|pod| !pod.is_deleting && pod.served.as_ref() != Some(&served)) {
        draft.step(step::refresh(pod, &[(SERVED_ANNOTATION.to_owned(), served.clone())].into()));
    }
}

/// Whose tokens are accepted besides those of the cluster itself. Where it is nobody's any more, what is left is mounted by
/// pods of an older template, and by nobody after them.
fn accepted(validated: &Validated<'_>) -> Option<ConfigMap> {
    let file = super::object::document(&authentication::configuration(validated)?);
    let data = [(authentication::KEY.to_owned(), file)].into();
    Some(validated.config_map(validated.names.authentication(), Component::ApiServer, data))
}

/// What is read at the start.
fn configuration(validated: &Validated<'_>) -> ConfigMap {
    let kubeconfig = konnectivity::server_kubeconfig(validated);
    let egress = konnectivity::egress(validated.epoch, audit::has_proxy(validated.settings));
    let mut files = vec![(EGRESS_KEY, egress), (KONNECTIVITY_KEY, kubeconfig)];
    files.extend(audit::files(validated));
    let data = files.into_iter().map(|(name, file)| (name.to_owned(), super::object::document(&file)));
    validated.config_map(validated.names.api_server(), Component::ApiServer, data.collect())
}

/// A hash of all that the pods' programs read only when they start: the tunnel's certificate, the key that Secrets are
/// encrypted with, our files, and those that users mount. Another hash needs other pods.
fn read_at_start(observed: &Observed, validated: &Validated<'_>) -> Option<String> {
    let materials = [Material::KonnectivityServer, Material::EncryptionConfiguration];
    let mut parts = Vec::new();
    for material in materials {
        let Read::One(facts) = observed.secret(material) else { return None };
        if kept::is_another(validated, material, facts) {
            // What runs has the right key still.
            return None;
        }
        parts.push(facts.fingerprint.clone());
    }
    let files = configuration(validated).data.unwrap_or_default().into_iter();
    parts.extend(files.flat_map(|(name, content)| [name, content]));
    parts.extend(mounts::contents(observed, validated.settings).ok()?);
    Some(crate::hash::text(&parts.join("\0")))
}

fn deployment(
    observed: &Observed,
    validated: &Validated<'_>,
    oldest: &Validated<'_>,
    renewed: Option<String>,
) -> Option<Deployment> {
    let read_at_start = read_at_start(observed, oldest)?;
    let settings = settings(validated);
    let mut volumes = volumes(validated);
    volumes.extend(konnectivity::server_volumes(validated));
    volumes.extend(audit::volumes(validated));
    volumes.extend(mounts::volumes(validated.settings));
    let tunnel = settings.konnectivity.clone().unwrap_or_default();
    // kubelet starts them in this order, and tells the pod's address when all are started. So agents come while the API
    // server starts, and not when it probes what is behind the tunnel.
    let mut containers =
        vec![konnectivity::server_container(validated, &tunnel), api_server_container(validated, &settings)];
    containers.extend(audit::proxy(observed, validated));
    let template = Template {
        component: Component::ApiServer,
        version: validated.version.label(),
        annotations: [(SETTINGS_ANNOTATION.to_owned(), read_at_start), shown_first()]
            .into_iter()
            .chain(renewed.map(|renewed| (RENEWED_ANNOTATION.to_owned(), renewed)))
            // What they have in memory is of the data that was replaced.
            .chain(etcd::restored(validated).map(|data| (RESTORED_ANNOTATION.to_owned(), data)))
            .collect(),
        priority_class: settings.pod.priority_class_name.clone(),
        grace_seconds: GRACE_SECONDS,
        containers,
        volumes,
    };
    let mut deployment = template.deployment(validated, validated.names.api_server(), validated.replicas);
    deployment.spec.get_or_insert_default().min_ready_seconds = Some(10);
    Some(deployment)
}

/// The container whose logs `kubectl` shows where none is named; otherwise the first.
fn shown_first() -> (String, String) {
    ("kubectl.kubernetes.io/default-container".to_owned(), API_SERVER.name.to_owned())
}

/// What is wanted, and the field that says so: the tag that was given for the image, where it is a version.
pub(super) fn wanted(validated: &Validated<'_>) -> (&'static str, KubernetesVersion) {
    let given = settings(validated).pod.container.image.and_then(|image| image.tag);
    match given.as_deref().and_then(KubernetesVersion::parse) {
        Some(given) => ("spec.deployment.apiServer.image.tag", given),
        None => ("spec.version", validated.version.clone()),
    }
}

fn volumes(validated: &Validated<'_>) -> Vec<Volume> {
    let pki = Files::new()
        .authority(validated, Material::ClusterAuthority, "ca.crt")
        .authority(validated, Material::EtcdAuthority, "etcd-ca.crt")
        .authority(validated, Material::FrontProxyAuthority, "front-proxy-ca.crt")
        .secret(
            validated,
            Material::ServiceAccountKeys,
            &[(keys::CERTIFICATE, "sa.pub"), (keys::PRIVATE_KEY, "sa.key")],
        )
        .pair(validated, Material::ApiServer, "apiserver")
        .pair(validated, Material::ApiServerKubeletClient, "apiserver-kubelet-client")
        .pair(validated, Material::ApiServerEtcdClient, "apiserver-etcd-client")
        .pair(validated, Material::FrontProxyClient, "front-proxy-client");
    let encryption = Files::new().secret(
        validated,
        Material::EncryptionConfiguration,
        &[(keys::ENCRYPTION, keys::ENCRYPTION)],
    );
    let files = configuration(validated).data.unwrap_or_default();
    let own = [EGRESS_KEY, audit::POLICY_KEY, audit::WEBHOOK_KEY];
    let own: Vec<_> = own.into_iter().filter(|key| files.contains_key(*key)).map(|key| (key, key)).collect();
    let mut configuration = Files::new().config_map(&validated.names.api_server(), &own);
    if accepted(validated).is_some() {
        let file = [(authentication::KEY, authentication::KEY)];
        configuration = configuration.config_map(&validated.names.authentication(), &file);
    }
    vec![pki.volume("pki"), encryption.volume("encryption"), configuration.volume("configuration")]
}

fn api_server_container(validated: &Validated<'_>, settings: &ApiServerPod) -> Container {
    let mut given = settings.pod.container.clone();
    // A tag that is a version is the wanted one, which may have to wait.
    if let Some(image) = &mut given.image {
        image.tag = image.tag.take().filter(|tag| {
            KubernetesVersion::parse(tag).is_none_or(|tag| tag.number() == validated.version.number())
        });
    }
    let mut mounts = vec![
        mount("pki", PKI),
        mount("encryption", ENCRYPTION),
        mount("configuration", CONFIGURATION),
        writable_mount(konnectivity::SOCKET_VOLUME, konnectivity::SOCKET_DIRECTORY),
    ];
    mounts.extend(audit::log_mount(validated.settings));
    mounts.extend(mounts::mounts(validated.settings));
    let name = API_SERVER.name;
    let container = Container {
        command: Some(texts(&[name])),
        args: Some(flags(validated).merged(&given.args)),
        // Saves a third of its memory and costs nothing measurable.
        env: Some(vec![variable("GOGC", "50")]),
        ports: Some(vec![container_port("https", API_SERVER_PORT, "TCP")]),
        security_context: Some(restricted(&["NET_BIND_SERVICE"])),
        startup_probe: Some(probe("/livez", API_SERVER_PORT, "HTTPS", 1, 15, 300)),
        // etcd's trouble is not cured by restarting API servers.
        liveness_probe: Some(probe("/livez?exclude=etcd", API_SERVER_PORT, "HTTPS", 10, 15, 8)),
        // One that hangs gets no requests after ten seconds.
        readiness_probe: Some(probe("/readyz", API_SERVER_PORT, "HTTPS", 1, 3, 3)),
        volume_mounts: Some(mounts),
        ..container(
            validated,
            name,
            &given,
            API_SERVER.repository,
            validated.version.tag(),
            ("100m", "200Mi"),
        )
    };
    audit::with_room(validated.settings, container)
}

fn flags(validated: &Validated<'_>) -> Flags {
    let pki = |file: &str| format!("{PKI}/{file}");
    let issuer = authentication::own_issuer(&validated.domain);
    let text = str::to_owned;
    let mut flags = Flags::new(
        &API_SERVER,
        [
            ("allow-privileged", text("true")),
            ("authorization-mode", text("Node,RBAC")),
            ("client-ca-file", pki("ca.crt")),
            ("egress-selector-config-file", format!("{CONFIGURATION}/{EGRESS_KEY}")),
            // Requests to aggregated APIs go through the tunnel to pods, where no Service has to work.
            ("enable-aggregator-routing", text("true")),
            ("enable-bootstrap-token-auth", text("true")),
            ("encryption-provider-config", format!("{ENCRYPTION}/{}", keys::ENCRYPTION)),
            // Their own addresses are pods', which no node reaches.
            ("endpoint-reconciler-type", text("none")),
            ("etcd-cafile", pki("etcd-ca.crt")),
            ("etcd-certfile", pki("apiserver-etcd-client.crt")),
            ("etcd-keyfile", pki("apiserver-etcd-client.key")),
            ("etcd-servers", etcd::client_urls(validated)),
            ("kubelet-client-certificate", pki("apiserver-kubelet-client.crt")),
            ("kubelet-client-key", pki("apiserver-kubelet-client.key")),
            ("proxy-client-cert-file", pki("front-proxy-client.crt")),
            ("proxy-client-key-file", pki("front-proxy-client.key")),
            ("requestheader-allowed-names", text("front-proxy-client")),
            ("requestheader-client-ca-file", pki("front-proxy-ca.crt")),
            ("requestheader-extra-headers-prefix", text("X-Remote-Extra-")),
            ("requestheader-group-headers", text("X-Remote-Group")),
            ("requestheader-username-headers", text("X-Remote-User")),
            ("secure-port", API_SERVER_PORT.to_string()),
            ("service-account-issuer", issuer.clone()),
            // The default would be a pod's address.
            ("service-account-jwks-uri", format!("{issuer}/openid/v1/jwks")),
            ("service-account-key-file", pki("sa.pub")),
            ("service-account-signing-key-file", pki("sa.key")),
            ("service-cluster-ip-range", joined(&validated.service_ranges)),
            ("shutdown-delay-duration", text("15s")),
            ("shutdown-send-retry-after", text("false")),
            ("shutdown-watch-termination-grace-period", text("10s")),
            ("tls-cert-file", pki("apiserver.crt")),
            ("tls-private-key-file", pki("apiserver.key")),
        ],
        [
            ("enable-admission-plugins", NODE_RESTRICTION),
            ("kubelet-preferred-address-types", "InternalIP,ExternalIP,Hostname"),
            ("profiling", "false"),
        ],
    );
    if validated.replicas > 1 {
        // Spreads long-lived connections; with a single server there is nowhere to go.
        flags.suggested.insert("goaway-chance", text("0.001"));
    }
    if !validated.settings.oidc_providers.is_empty() {
        flags.owned.insert("authentication-config", format!("{CONFIGURATION}/{}", authentication::KEY));
    }
    audit::flags(validated.settings, CONFIGURATION, &mut flags);
    flags
}

/// Ranges as flags have them.
pub(super) fn joined(ranges: &[ipnet::IpNet]) -> String {
    ranges.iter().map(ToString::to_string).collect::<Vec<_>>().join(",")
}
