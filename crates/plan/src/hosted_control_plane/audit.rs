//! Audit of the API server (`spec.deployment.apiServer.audit`): its policy, files of records, and receivers.
//!
//! kube-apiserver sends records to one receiver, over the egress selection `controlplane`, which leads through the tunnel
//! to the tenant's nodes. Receivers of the specification are often in the management network, and there may be several.
//! So a proxy of ours stands beside the API server. It takes the whole selection `controlplane` over a socket: what is
//! for its own name it takes for records and sends to every receiver by itself, and everything else it hands to the
//! tunnel's server, byte for byte. The tenant cannot use it to reach a receiver: the API server follows redirects of a
//! tenant's webhooks, also to the proxy's name, but records come at a path that no tenant knows. The proxy and the other
//! protocol of the tunnel's server that it needs (HTTP-CONNECT) are rendered only where there are receivers.
//!
//! Tokens stay in the Secrets of their users. The proxy's container mounts them, reads them again for each record, and
//! sends nothing to a receiver whose token is missing. A missing one does not keep the API server from starting.

use std::collections::BTreeMap;

use hangar_api::controlplane::v1alpha1::{
    Audit, AuditAuthentication, AuditLog, AuditLogFormat, AuditMode, AuditPolicy, AuditRule, AuditTarget,
    AuditWebhook, HostedControlPlaneSettings, Image,
};
use k8s_openapi::api::core::v1::{
    Container, EmptyDirVolumeSource, Lifecycle, LifecycleHandler, SleepAction, Volume, VolumeMount,
};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use serde_json::{Value, json};

use super::address::{Address, Scheme};
use super::authentication::certificates;
use super::epoch::Epoch;
use super::flags::Flags;
use super::names::Names;
use super::observed::Observed;
use super::pod::{Files, container};
use super::program::AUDIT_PROXY;
use super::sources::{Need, Source, SourceKind};
use super::validate::Validated;
use super::{konnectivity, mounts};
use crate::admission::FieldError;
use crate::label::is_label;
use crate::pieces::{mount, writable_mount};

const PATH: &str = "spec.deployment.apiServer.audit";

/// Keys of the API server's ConfigMap.
pub(super) const POLICY_KEY: &str = "audit-policy.yaml";
pub(super) const WEBHOOK_KEY: &str = "audit-webhook.kubeconfig";
const PROXY_KEY: &str = "audit-proxy.yaml";

/// What the API server calls the proxy. A name that can be nobody's: the top-level domain is reserved.
const AUTHORITY: &str = "hangar-audit.invalid:80";
/// The proxy's socket, beside the tunnel's.
pub(super) const SOCKET: &str = "/run/konnectivity/egress.sock";
const PROXY_DIRECTORY: &str = "/etc/hangar/audit";
const PROXY_VOLUME: &str = "audit";

const LOG_VOLUME: &str = "audit-log";
const LOG_DIRECTORY: &str = "/var/log/kubernetes/audit";

const DISK: &str = "ephemeral-storage";

const DEFAULT_TOKEN_KEY: &str = "token";
const MOST_TARGETS: usize = 16;

/// As the tunnel's server: the API server beside it drains requests for so long.
const SLEEP_SECONDS: i64 = 30;

fn given(settings: &HostedControlPlaneSettings) -> Option<&Audit> {
    settings.deployment.as_ref()?.api_server.as_ref()?.audit.as_ref()
}

fn webhook(settings: &HostedControlPlaneSettings) -> Option<&AuditWebhook> {
    given(settings)?.webhook.as_ref()
}

fn targets(settings: &HostedControlPlaneSettings) -> impl Iterator<Item = (usize, &AuditTarget)> {
    webhook(settings).into_iter().flat_map(|webhook| webhook.targets.iter().enumerate())
}

/// Whether there is a proxy.
pub(super) fn has_proxy(settings: &HostedControlPlaneSettings) -> bool {
    webhook(settings).is_some()
}

fn token(target: &AuditTarget) -> Option<(&AuditAuthentication, &str)> {
    let token = target.authentication.as_ref()?;
    let key = token.token_key.as_deref().filter(|key| !key.is_empty());
    Some((token, key.unwrap_or(DEFAULT_TOKEN_KEY)))
}

/// The Secrets of tokens.
pub(super) fn needs(settings: &HostedControlPlaneSettings) -> Vec<Need> {
    let need = |(index, target): (usize, &AuditTarget)| {
        let (token, key) = token(target)?;
        Some(Need {
            field: format!("{PATH}.webhook.targets[{index}].authentication"),
            source: Source { kind: SourceKind::Secret, name: token.secret_name.clone() },
            keys: vec![key.to_owned()],
            is_optional: false,
        })
    };
    targets(settings).filter_map(need).collect()
}

fn mode(mode: AuditMode) -> &'static str {
    match mode {
        AuditMode::Batch => "batch",
        AuditMode::Blocking => "blocking",
        AuditMode::BlockingStrict => "blocking-strict",
    }
}

/// The files that it adds to the API server's ConfigMap.
pub(super) fn files(validated: &Validated<'_>) -> Vec<(&'static str, Value)> {
    let Some(audit) = given(validated.settings) else { return Vec::new() };
    let mut files = vec![(POLICY_KEY, policy(&audit.policy))];
    if has_proxy(validated.settings) {
        files.push((WEBHOOK_KEY, kubeconfig(validated)));
        files.push((PROXY_KEY, proxy_settings(validated, audit.mode)));
    }
    files
}

fn policy(given: &AuditPolicy) -> Value {
    let mut policy = serde_json::to_value(given).unwrap_or_default();
    if let Some(fields) = policy.as_object_mut() {
        fields.remove("metadata");
        fields.insert("apiVersion".to_owned(), json!("audit.k8s.io/v1"));
        fields.insert("kind".to_owned(), json!("Policy"));
    }
    policy
}

/// Where records come to the proxy. It follows from what nobody in the tenant can see, and says nothing of it.
fn path(validated: &Validated<'_>) -> String {
    let Epoch::One = validated.epoch;
    format!("/{}", crate::hash::value(&json!(["audit", validated.uid])))
}

fn kubeconfig(validated: &Validated<'_>) -> Value {
    let path = path(validated);
    let host = AUTHORITY.strip_suffix(":80").unwrap_or(AUTHORITY);
    json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "audit", "cluster": {"server": format!("http://{host}{path}")}}],
        "users": [{"name": "audit", "user": {}}],
        "contexts": [{"name": "audit", "context": {"cluster": "audit", "user": "audit"}}],
        "current-context": "audit",
    })
}

fn proxy_settings(validated: &Validated<'_>, mode: AuditMode) -> Value {
    let target = |(index, target): (usize, &AuditTarget)| {
        let mut written = json!({"server": target.server});
        if let Some(authority) = &target.certificate_authority {
            written["certificateAuthority"] = json!(authority);
        }
        if target.authentication.is_some() {
            written["tokenFile"] = json!(format!("{PROXY_DIRECTORY}/{}", token_file(index)));
        }
        written
    };
    json!({
        "listen": SOCKET,
        "tunnel": konnectivity::SOCKET,
        "authority": AUTHORITY,
        "path": path(validated),
        // Who waits for its record waits for the receivers.
        "waits": mode != AuditMode::Batch,
        "targets": targets(validated.settings).map(target).collect::<Vec<_>>(),
    })
}

fn token_file(index: usize) -> String {
    format!("token-{index}")
}

/// Adds its flags to the API server's.
pub(super) fn flags(settings: &HostedControlPlaneSettings, directory: &str, flags: &mut Flags) {
    let Some(audit) = given(settings) else { return };
    let mut own = |name: &'static str, value: String| flags.owned.insert(name, value);
    let mode = || mode(audit.mode).to_owned();
    own("audit-policy-file", format!("{directory}/{POLICY_KEY}"));
    if audit.log.is_some() || audit.webhook.is_none() {
        own("audit-log-mode", mode());
        own(
            "audit-log-path",
            audit.log.as_ref().map_or("-".to_owned(), |_| format!("{LOG_DIRECTORY}/audit.log")),
        );
    }
    if let Some(log) = &audit.log {
        let (size, backups) = amounts(log);
        own("audit-log-maxsize", size.to_string());
        own("audit-log-maxbackup", backups.to_string());
        if let Some(days) = log.max_age {
            own("audit-log-maxage", days.max(1).to_string());
        }
        let format = match log.format.unwrap_or_default() {
            AuditLogFormat::Json => "json",
            AuditLogFormat::Legacy => "legacy",
        };
        own("audit-log-format", format.to_owned());
    }
    if audit.webhook.is_some() {
        own("audit-webhook-mode", mode());
        own("audit-webhook-config-file", format!("{directory}/{WEBHOOK_KEY}"));
        let suggested = [
            // The proxy is beside it: what fails is a restart, which takes no ten seconds.
            ("audit-webhook-initial-backoff", "1s"),
            // The proxy's memory is bounded, so batches are.
            ("audit-webhook-truncate-enabled", "true"),
            ("audit-webhook-truncate-max-batch-size", "4194304"),
            ("audit-webhook-truncate-max-event-size", "1048576"),
        ];
        flags.suggested.extend(suggested.map(|(name, value)| (name, value.to_owned())));
    }
}

/// MiB of one file, and older files. Zero would mean: without end.
fn amounts(log: &AuditLog) -> (i32, i32) {
    (log.max_size.unwrap_or(100).max(1), log.max_backups.unwrap_or(2).max(1))
}

/// The disk that files of records may take. kubelet evicts the pod at the limit. The oldest file is deleted a moment after
/// another was begun.
fn room(log: &AuditLog) -> Quantity {
    let (size, backups) = amounts(log);
    Quantity(format!("{}Mi", i64::from(size) * (i64::from(backups) + 2)))
}

/// The API server's container with that room on the node's disk, unless people ask for another. It is not placed where
/// the files would fill the disk, and quotas of namespaces count them.
pub(super) fn with_room(settings: &HostedControlPlaneSettings, mut container: Container) -> Container {
    let Some(log) = given(settings).and_then(|audit| audit.log.as_ref()) else { return container };
    let resources = container.resources.get_or_insert_default();
    let has_disk = |amounts: &BTreeMap<String, Quantity>| amounts.contains_key(DISK);
    if !resources.requests.iter().chain(&resources.limits).any(has_disk) {
        resources.requests.get_or_insert_default().insert(DISK.to_owned(), room(log));
    }
    container
}

/// Volumes for files of records and for the proxy.
pub(super) fn volumes(validated: &Validated<'_>) -> Vec<Volume> {
    let Some(audit) = given(validated.settings) else { return Vec::new() };
    let log = audit.log.as_ref().map(|log| {
        let directory = EmptyDirVolumeSource { size_limit: Some(room(log)), medium: None };
        Volume { name: LOG_VOLUME.to_owned(), empty_dir: Some(directory), ..Volume::default() }
    });
    let proxy = has_proxy(validated.settings).then(|| {
        let files = Files::new().config_map(&validated.names.api_server(), &[(PROXY_KEY, PROXY_KEY)]);
        let tokens = targets(validated.settings).filter_map(|(index, target)| Some((index, token(target)?)));
        let files = tokens.fold(files, |files, (index, (token, key))| {
            files.given_secret(&token.secret_name, key, &token_file(index))
        });
        files.volume(PROXY_VOLUME)
    });
    log.into_iter().chain(proxy).collect()
}

/// Mounts of the API server's container.
pub(super) fn log_mount(settings: &HostedControlPlaneSettings) -> Option<VolumeMount> {
    given(settings)?.log.as_ref()?;
    Some(writable_mount(LOG_VOLUME, LOG_DIRECTORY))
}

/// The proxy beside the API server; nothing where there are no receivers.
pub(super) fn proxy(observed: &Observed, validated: &Validated<'_>) -> Option<Container> {
    let given = &webhook(validated.settings)?.container;
    let image = image(observed, validated)?;
    let sleep = SleepAction { seconds: SLEEP_SECONDS };
    let stop = LifecycleHandler { sleep: Some(sleep), ..LifecycleHandler::default() };
    Some(Container {
        image: Some(image),
        args: Some(vec![
            AUDIT_PROXY.name.to_owned(),
            format!("--configuration={PROXY_DIRECTORY}/{PROXY_KEY}"),
        ]),
        lifecycle: Some(Lifecycle { pre_stop: Some(stop), ..Lifecycle::default() }),
        volume_mounts: Some(vec![
            mount(PROXY_VOLUME, PROXY_DIRECTORY),
            writable_mount(konnectivity::SOCKET_VOLUME, konnectivity::SOCKET_DIRECTORY),
        ]),
        ..container(validated, AUDIT_PROXY.name, given, AUDIT_PROXY.repository, "", ("10m", "16Mi"))
    })
}

/// The registry of an image of users: its own, or the one of all images. The manager's image is not part of what
/// `spec.imageRegistry` mirrors, so without a repository that registry has nothing to do with the proxy.
fn image_registry(settings: &HostedControlPlaneSettings, image: &Image) -> Option<String> {
    let of_all = settings.image_registry.clone().filter(|registry| !registry.is_empty());
    image.registry.clone().or_else(|| of_all.filter(|_| image.repository.is_some()))
}

/// The proxy's image: what users give, or the manager's own. A newer manager replaces no pods, so what runs keeps its
/// image until the API server's version changes.
fn image(observed: &Observed, validated: &Validated<'_>) -> Option<String> {
    let running = observed.api_server.iter().next();
    let version = validated.version.label();
    let running = running.filter(|facts| facts.version.as_ref() == Some(&version));
    let running = running.and_then(|facts| facts.audit_proxy.as_ref());
    let given = webhook(validated.settings)?.container.image.clone().unwrap_or_default();
    let registry = image_registry(validated.settings, &given);
    let Image { repository, tag, .. } = given;
    let default = observed.manager_image.as_deref();
    match (registry, repository, tag) {
        (Some(registry), Some(repository), tag) => {
            let name = format!("{registry}/{repository}");
            let kept = running.filter(|running| tag.is_none() && split(running).0 == name);
            let tag = || tag.clone().or_else(|| Some(split(default?).1?.to_owned()));
            kept.cloned().or_else(|| Some(format!("{name}:{}", tag()?)))
        }
        (_, _, Some(tag)) => Some(format!("{}:{tag}", split(default?).0)),
        _ => running.cloned().or_else(|| default.map(str::to_owned)),
    }
}

/// Name and tag of an image.
fn split(image: &str) -> (&str, Option<&str>) {
    let name = image.split('@').next().unwrap_or(image);
    match name.rsplit_once(':') {
        Some((name, tag)) if !tag.contains('/') => (name, Some(tag)),
        _ => (name, None),
    }
}

/// What only the manager can know is missing.
pub(super) fn lacking(observed: &Observed, validated: &Validated<'_>) -> Option<FieldError> {
    let is_lacking = has_proxy(validated.settings) && image(observed, validated).is_none();
    is_lacking.then(|| {
        let why = "the manager was not told its own image (HANGAR_IMAGE), which would be the default";
        FieldError::required(format!("{PATH}.webhook.image"), why)
    })
}

/// What is wrong with it. The API server does not start with a policy that it refuses, so its rules are checked as it
/// would. The control plane's own Secrets are refused where its names are known.
pub(crate) fn errors(settings: &HostedControlPlaneSettings, names: Option<&Names>) -> Vec<FieldError> {
    let Some(audit) = given(settings) else { return Vec::new() };
    let mut errors = policy_errors(&audit.policy);
    let Some(webhook) = &audit.webhook else { return errors };
    if webhook.targets.is_empty() || webhook.targets.len() > MOST_TARGETS {
        let why = format!("1 to {MOST_TARGETS} receivers");
        errors.push(FieldError::invalid(format!("{PATH}.webhook.targets"), webhook.targets.len(), why));
    }
    let image = webhook.container.image.clone().unwrap_or_default();
    if image_registry(settings, &image).is_some() != image.repository.is_some() {
        let why = "registry (or spec.imageRegistry) and repository are given together, or neither: the default is the \
            manager's image";
        errors.push(FieldError::required(format!("{PATH}.webhook.image"), why));
    }
    for (index, target) in targets(settings) {
        errors.extend(target_errors(&format!("{PATH}.webhook.targets[{index}]"), target, names));
    }
    errors
}

fn target_errors(path: &str, target: &AuditTarget, names: Option<&Names>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let server = format!("{path}.server");
    let is_plain = match Address::parse(&target.server) {
        Ok(address) => address.scheme == Scheme::Http,
        Err(why) => {
            errors.push(FieldError::invalid(&server, target.server.as_str(), why));
            false
        }
    };
    if is_plain && (target.authentication.is_some() || target.certificate_authority.is_some()) {
        let why =
            "a token or a certificate authority needs https: over http anybody on the way reads the token";
        errors.push(FieldError::invalid(&server, target.server.as_str(), why));
    }
    if let Some(authority) = &target.certificate_authority
        && let Err(why) = certificates(authority)
    {
        errors.push(FieldError::invalid(format!("{path}.certificateAuthority"), "(PEM)", why));
    }
    if let Some((token, key)) = token(target) {
        let path = format!("{path}.authentication");
        if names.is_some_and(|names| mounts::is_own(names, &token.secret_name)) {
            let why = format!("{} holds keys of the control plane itself", token.secret_name);
            errors.push(FieldError::forbidden(format!("{path}.secretName"), why));
        }
        let is_part = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
        if !key.bytes().all(is_part) || key.len() > 253 || matches!(key, "." | "..") {
            errors.push(FieldError::invalid(format!("{path}.tokenKey"), key, "it is no key of a Secret"));
        }
    }
    errors
}

fn policy_errors(policy: &AuditPolicy) -> Vec<FieldError> {
    let path = format!("{PATH}.policy");
    let mut errors = Vec::new();
    for (field, given, known) in
        [("apiVersion", &policy.api_version, "audit.k8s.io/v1"), ("kind", &policy.kind, "Policy")]
    {
        if let Some(given) = given.as_deref().filter(|given| *given != known) {
            errors.push(FieldError::invalid(format!("{path}.{field}"), given, format!("it must be {known}")));
        }
    }
    if policy.rules.is_empty() {
        errors.push(FieldError::required(
            format!("{path}.rules"),
            "the API server takes no policy without rules",
        ));
    }
    for (index, rule) in policy.rules.iter().enumerate() {
        errors.extend(rule_errors(&format!("{path}.rules[{index}]"), rule));
    }
    errors
}

fn rule_errors(path: &str, rule: &AuditRule) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for (index, url) in rule.non_resource_urls.iter().enumerate() {
        let inner = url.strip_suffix('*').unwrap_or(url);
        if url != "*" && (!url.starts_with('/') || inner.contains('*')) {
            let why = "it must begin with /, and have a * at most at its end";
            errors.push(FieldError::invalid(format!("{path}.nonResourceURLs[{index}]"), url.as_str(), why));
        }
    }
    let is_of_resources = !rule.resources.is_empty() || !rule.namespaces.is_empty();
    if is_of_resources && !rule.non_resource_urls.is_empty() {
        let why = "a rule is for resources and namespaces, or for other URLs";
        errors.push(FieldError::forbidden(format!("{path}.nonResourceURLs"), why));
    }
    for (index, resources) in rule.resources.iter().enumerate() {
        let path = format!("{path}.resources[{index}]");
        let group = resources.group.as_deref().unwrap_or_default();
        if !group.is_empty() && (group.len() > 253 || !group.split('.').all(is_label)) {
            let why = "it is no name of an API group, without a version";
            errors.push(FieldError::invalid(format!("{path}.group"), group, why));
        }
        if !resources.resource_names.is_empty() && resources.resources.is_empty() {
            errors.push(FieldError::required(format!("{path}.resources"), "resourceNames need resources"));
        }
    }
    errors
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_has_a_name_and_maybe_a_tag() {
        assert_eq!(
            split("registry.example.org:5000/hangar:v1"),
            ("registry.example.org:5000/hangar", Some("v1"))
        );
        assert_eq!(split("registry.example.org:5000/hangar"), ("registry.example.org:5000/hangar", None));
        assert_eq!(split("hangar:v1@sha256:00"), ("hangar", Some("v1")));
    }
}
