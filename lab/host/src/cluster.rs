//! Connects to the management cluster: a client, applying objects, and waiting for their state.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::{Duration, Instant};

use futures::future::try_join_all;
use hangar_kit::apply::{Applied, Applier};
use hangar_kit::client::{ClientOptions, client};
use hangar_plan::flow::Read;
use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{ListParams, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::core::{DynamicObject, GroupVersionKind};
use kube::discovery::ApiResource;
use kube::{Api, Client, Config, ResourceExt};
use serde_json::Value;

use crate::addons;
use crate::error::{Error, Result, Trying};
use crate::management::{control_plane, startup};

/// Who applies, in managed fields.
const FIELD_MANAGER: &str = "hangar-host";
const LOOK: Duration = Duration::from_millis(100);
/// Who waits longer wants to know for what.
const TELL: Duration = Duration::from_secs(10);

/// The configuration that a kubeconfig file describes.
pub async fn config(kubeconfig: &Path) -> Result<Config> {
    let failed = |message: String| Error::Kubeconfig { path: kubeconfig.to_owned(), message };
    let kubeconfig = Kubeconfig::read_from(kubeconfig).map_err(|error| failed(error.to_string()))?;
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await;
    config.map_err(|error| failed(error.to_string()))
}

/// A client for the cluster that a kubeconfig file describes.
pub async fn connect(kubeconfig: &Path) -> Result<Client> {
    Ok(client(config(kubeconfig).await?, &ClientOptions::default().call_limit(Duration::from_secs(10)))?)
}

/// Waits until a question is answered with nothing left to wait for. The answer says how far it is, which `tell` hears
/// now and then.
pub(crate) async fn wait<F, E>(what: &str, patience: Duration, tell: impl Fn(&str), mut look: F) -> Result<()>
where
    F: FnMut() -> E,
    E: Future<Output = Result<Option<String>>>,
{
    let deadline = Instant::now() + patience;
    let mut told = Instant::now();
    loop {
        let state = match look().await {
            Ok(None) => return Ok(()),
            Ok(Some(state)) => state,
            // An API server that starts refuses, times out and answers half.
            Err(error) => error.with_causes(),
        };
        if Instant::now() >= deadline {
            return Err(Error::TooSlow { what: what.to_owned(), seconds: patience.as_secs(), state });
        }
        if told.elapsed() >= TELL {
            told = Instant::now();
            tell(&state);
        }
        tokio::time::sleep(LOOK).await;
    }
}

/// What an API server does last on a fresh database, a second at a time: roles and priority classes that its own
/// clients and pods need, and an administrator does not.
const LAST_TASKS: &str = "/readyz?exclude=poststarthook/rbac/bootstrap-roles\
                          &exclude=poststarthook/scheduling/bootstrap-system-priority-classes";

/// How far the API server is; nothing when it serves an administrator, who may start before everybody else.
pub(crate) async fn unserving_api_server(client: &Client) -> Result<Option<String>> {
    ask_whether_ready(client, LAST_TASKS).await
}

/// How far the API server is; nothing when it is ready.
pub(crate) async fn unready_api_server(client: &Client) -> Result<Option<String>> {
    ask_whether_ready(client, "/readyz").await
}

async fn ask_whether_ready(client: &Client, path: &str) -> Result<Option<String>> {
    let request = http::Request::get(path).body(Vec::new());
    let request =
        request.map_err(|error| Error::Rendering { what: "a request", message: error.to_string() })?;
    let answer = client.request_text(request).await.trying("ask the API server whether it is ready")?;
    Ok((answer != "ok").then_some(answer))
}

/// When each node's machine was started. What the API says of a node or of its pods may be of an earlier life.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Starts(pub(crate) BTreeMap<String, Timestamp>);

impl Starts {
    /// When the machine that this pod runs in was started; the epoch where none is known.
    fn of(&self, pod: &Pod) -> Timestamp {
        let node = pod.spec.as_ref().and_then(|spec| spec.node_name.as_ref());
        node.and_then(|node| self.0.get(node)).copied().unwrap_or(Timestamp::UNIX_EPOCH)
    }
}

/// What keeps a node from being Ready. Before `since` another life of it may have said that it is.
pub(crate) async fn unready_node(client: &Client, name: &str, since: Timestamp) -> Result<Option<String>> {
    let Some(node) = Api::<Node>::all(client.clone()).get_opt(name).await.trying("read the node")? else {
        return Ok(Some("it has not registered".to_owned()));
    };
    let leases = Api::<Lease>::namespaced(client.clone(), "kube-node-lease");
    let lease = leases.get_opt(name).await.trying("read the node's lease")?;
    let renewed = lease.and_then(|lease| lease.spec?.renew_time);
    let conditions = node.status.and_then(|status| status.conditions).unwrap_or_default();
    let ready = conditions.into_iter().find(|condition| condition.type_ == "Ready");
    // Whichever comes first: a changed status at once, a lease every ten seconds. Times of conditions have no fractions.
    let heartbeat = ready.as_ref().and_then(|ready| ready.last_heartbeat_time.as_ref());
    let has_reported = renewed.is_some_and(|time| time.0 >= since)
        || heartbeat.is_some_and(|time| time.0.as_second() > since.as_second());
    if !has_reported {
        return Ok(Some("its kubelet has not reported since it was started".to_owned()));
    }
    Ok(match ready {
        Some(ready) if ready.status == "True" => None,
        Some(ready) => Some(ready.message.unwrap_or_default()),
        None => Some("it has no condition Ready".to_owned()),
    })
}

/// Pods that must be there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ExpectedPods {
    wanted: BTreeSet<Wanted>,
    /// Static pods, with the seals they must carry.
    seals: BTreeMap<String, String>,
}

/// A pod of a workload.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Wanted {
    /// What its name begins with.
    pub(crate) beginning: String,
    /// Where it must run, if it matters.
    pub(crate) node: Option<String>,
}

impl Wanted {
    fn missing(&self) -> String {
        let place = self.node.as_ref().map(|node| format!(" on {node}")).unwrap_or_default();
        format!("{} (no pod{place} yet)", self.beginning)
    }
}

impl ExpectedPods {
    /// Those of workloads, and those of the control plane.
    pub(crate) fn new(mut wanted: BTreeSet<Wanted>, control_plane: &control_plane::Options) -> Self {
        let seals = &control_plane.seals;
        let seals: BTreeMap<String, String> =
            seals.iter().map(|(component, seal)| (component.pod(), seal.clone())).collect();
        wanted.extend(seals.keys().map(|name| Wanted { beginning: name.clone(), node: None }));
        Self { wanted, seals }
    }

    /// Whether it is a static pod of before.
    fn is_outdated(&self, pod: &Pod) -> bool {
        let seal = self.seals.get(&pod.name_any());
        seal.is_some_and(|seal| pod.annotations().get(startup::SEAL) != Some(seal))
    }
}

/// What keeps the cluster's own pods from running. Other namespaces are other people's: a broken pod of theirs must not
/// keep us from repairing ours.
pub(crate) async fn unready_pods(
    client: &Client,
    expected: &ExpectedPods,
    starts: &Starts,
) -> Result<Option<String>> {
    let pods = Api::<Pod>::all(client.clone()).list(&ListParams::default()).await.trying("list the pods")?;
    let is_own = |pod: &&Pod| {
        let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
        namespace == addons::NAMESPACE || namespace == addons::gateway::NAMESPACE
    };
    let waiting = waited_for(pods.iter().filter(is_own), expected, starts);
    Ok((!waiting.is_empty()).then(|| waiting.join(", ")))
}

/// Which pods do not serve, and of which expected ones there is none.
fn waited_for<'a>(
    pods: impl Iterator<Item = &'a Pod>,
    expected: &ExpectedPods,
    starts: &Starts,
) -> Vec<String> {
    let mut missing = expected.wanted.clone();
    let mut waiting = Vec::new();
    for pod in pods.filter(|pod| pod.metadata.deletion_timestamp.is_none() && !has_ended(pod)) {
        let name = pod.name_any();
        // The longest: `kube-vip-cloud-provider-…` is not the pod of `kube-vip`.
        let beginnings = expected.wanted.iter().map(|wanted| wanted.beginning.as_str());
        let beginning =
            beginnings.filter(|beginning| name.starts_with(beginning)).max_by_key(|text| text.len());
        let node = pod.spec.as_ref().and_then(|spec| spec.node_name.as_ref());
        missing.retain(|wanted| {
            let is_here = wanted.node.is_none() || wanted.node.as_ref() == node;
            Some(wanted.beginning.as_str()) != beginning || !is_here
        });
        if expected.is_outdated(pod) {
            waiting.push(format!("{name} (not started again yet)"));
        } else if let Some(reason) = obstacle(pod, starts) {
            waiting.push(format!("{name} ({reason})"));
        }
    }
    waiting.extend(missing.iter().map(Wanted::missing));
    waiting
}

/// Whether it has run and will not again.
pub(crate) fn has_ended(pod: &Pod) -> bool {
    let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
    matches!(phase, Some("Succeeded" | "Failed"))
}

/// Whether what is said of a pod is no longer true: all containers end with their machine.
pub(crate) fn is_of_before(pod: &Pod, starts: &Starts) -> bool {
    let since = starts.of(pod);
    let containers = pod.status.as_ref().and_then(|status| status.container_statuses.as_deref());
    let mut started = containers
        .unwrap_or_default()
        .iter()
        .filter_map(|container| container.state.as_ref()?.running.as_ref()?.started_at.as_ref());
    // Times in pods have no fractions.
    started.any(|time| time.0.as_second() < since.as_second())
}

/// Why a pod does not serve.
pub(crate) fn obstacle(pod: &Pod, starts: &Starts) -> Option<String> {
    if has_ended(pod) {
        return None;
    }
    let status = pod.status.as_ref()?;
    if is_of_before(pod, starts) {
        return Some("not started again yet".to_owned());
    }
    let conditions = status.conditions.as_deref().unwrap_or_default();
    if conditions.iter().any(|condition| condition.type_ == "Ready" && condition.status == "True") {
        return None;
    }
    let containers = status.container_statuses.as_deref().unwrap_or_default();
    let waiting = containers.iter().find_map(|container| {
        let waiting = container.state.as_ref()?.waiting.as_ref()?;
        let reason = waiting.reason.clone().unwrap_or_default();
        Some(match &waiting.message {
            Some(message) => format!("{reason}: {message}"),
            None => reason,
        })
    });
    waiting.or_else(|| status.phase.clone()).or_else(|| Some("no status".to_owned()))
}

/// Applies objects, all of a wave at once; custom resource definitions are waited for. How many were created or
/// changed.
pub async fn apply(client: &Client, objects: &[Value]) -> Result<usize> {
    let applier = Applier::new(FIELD_MANAGER);
    let mut changed = 0;
    for wave in [Wave::Places, Wave::Settings, Wave::Workloads] {
        let members = objects.iter().filter(|object| wave_of(object) == wave);
        let applied = try_join_all(members.map(|object| apply_one(client, &applier, object))).await?;
        changed += applied.into_iter().filter(|is_changed| *is_changed).count();
    }
    let definitions = objects.iter().filter(|object| object["kind"] == "CustomResourceDefinition");
    for name in definitions.filter_map(|object| object["metadata"]["name"].as_str()) {
        wait(
            &format!("the definition {name}"),
            Duration::from_mins(1),
            |_| (),
            || unestablished(client, name),
        )
        .await?;
    }
    Ok(changed)
}

/// What has to be there before what.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wave {
    /// What others are in, or instances of.
    Places,
    Settings,
    /// A pod that is made before its account is refused, and tried again only after a while.
    Workloads,
}

fn wave_of(object: &Value) -> Wave {
    match object["kind"].as_str().unwrap_or_default() {
        "Namespace" | "CustomResourceDefinition" => Wave::Places,
        "DaemonSet" | "Deployment" | "StatefulSet" => Wave::Workloads,
        _ => Wave::Settings,
    }
}

async fn unestablished(client: &Client, name: &str) -> Result<Option<String>> {
    let api: Api<CustomResourceDefinition> = Api::all(client.clone());
    let found = api.get(name).await.trying(format!("read the definition {name}"))?;
    let conditions = found.status.and_then(|status| status.conditions).unwrap_or_default();
    let established = conditions.iter().any(|found| found.type_ == "Established" && found.status == "True");
    Ok((!established).then(|| "not established".to_owned()))
}

async fn apply_one(client: &Client, applier: &Applier, object: &Value) -> Result<bool> {
    let (api, desired) = placed(client, object)?;
    let applied = applier.apply(&api, &desired, Read::Absent).await?;
    Ok(matches!(applied, Applied::Created(_) | Applied::Changed(_)))
}

/// An object, and where it belongs.
fn placed(client: &Client, object: &Value) -> Result<(Api<DynamicObject>, DynamicObject)> {
    let failed =
        |error: serde_json::Error| Error::Rendering { what: "an object", message: error.to_string() };
    let desired: DynamicObject = serde_json::from_value(object.clone()).map_err(failed)?;
    let kind = object["kind"].as_str().unwrap_or_default();
    let version = object["apiVersion"].as_str().unwrap_or_default();
    let (group, version) = version.split_once('/').unwrap_or(("", version));
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
    let api = match &desired.metadata.namespace {
        Some(namespace) => Api::namespaced_with(client.clone(), namespace, &resource),
        None => Api::all_with(client.clone(), &resource),
    };
    Ok((api, desired))
}

/// What keeps an API server from taking these objects; nothing is stored. It learns a moment later than anybody else
/// where webhooks are and whom to trust there. To be refused is an answer.
pub(crate) async fn untaken(client: &Client, objects: &[Value]) -> Result<Option<String>> {
    let dry = PostParams { dry_run: true, ..PostParams::default() };
    for object in objects {
        let (api, desired) = placed(client, object)?;
        match api.create(&dry, &desired).await {
            Ok(_) => {}
            Err(kube::Error::Api(answer)) if matches!(answer.code, 400 | 403 | 409 | 422) => {}
            Err(error) => {
                let kind = object["kind"].as_str().unwrap_or_default();
                return Ok(Some(format!("{kind}: {error}")));
            }
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn pod(name: &str, phase: &str, is_ready: bool) -> Pod {
        let ready = if is_ready { "True" } else { "False" };
        let status = json!({"phase": phase, "conditions": [{"type": "Ready", "status": ready}]});
        serde_json::from_value(json!({"metadata": {"name": name}, "status": status})).unwrap()
    }

    fn expected(beginnings: &[&str]) -> ExpectedPods {
        let wanted = |text: &&str| Wanted { beginning: (*text).to_owned(), node: None };
        ExpectedPods { wanted: beginnings.iter().map(wanted).collect(), seals: BTreeMap::new() }
    }

    #[test]
    fn a_static_pod_of_before_does_not_count_as_running() {
        let name = "kube-scheduler-management";
        let seals = BTreeMap::from([(name.to_owned(), "new".to_owned())]);
        let expected = ExpectedPods { seals, ..expected(&[name]) };
        let look = |pod: Pod| waited_for([pod].iter(), &expected, &Starts::default());
        let sealed = |seal: &str| {
            let mut pod = pod(name, "Running", true);
            pod.annotations_mut().insert(startup::SEAL.to_owned(), seal.to_owned());
            pod
        };
        assert_eq!(look(sealed("new")), Vec::<String>::new());
        for before in [sealed("old"), pod(name, "Running", true)] {
            assert_eq!(look(before), ["kube-scheduler-management (not started again yet)"]);
        }
    }

    #[test]
    fn a_pod_stands_for_one_expected_name_only() {
        let expected = expected(&["kube-vip-", "kube-vip-cloud-provider-"]);
        let look = |pods: &[Pod]| waited_for(pods.iter(), &expected, &Starts::default());
        let (speaker, allocator) =
            (pod("kube-vip-x2x9z", "Running", true), pod("kube-vip-cloud-provider-1-2", "Running", true));
        assert_eq!(look(&[speaker.clone(), allocator.clone()]), Vec::<String>::new());
        assert_eq!(look(&[allocator]), ["kube-vip- (no pod yet)"]);
        assert_eq!(look(&[speaker]), ["kube-vip-cloud-provider- (no pod yet)"]);
    }

    #[test]
    fn a_pod_of_every_node_is_waited_for() {
        let on = |name: &str, node: &str| {
            let mut pod = pod(name, "Running", true);
            pod.spec.get_or_insert_default().node_name = Some(node.to_owned());
            pod
        };
        let wanted = |node: &str| Wanted { beginning: "kube-proxy-".to_owned(), node: Some(node.to_owned()) };
        let expected = ExpectedPods { wanted: [wanted("a"), wanted("b")].into(), seals: BTreeMap::new() };
        let look = |pods: &[Pod]| waited_for(pods.iter(), &expected, &Starts::default());
        assert_eq!(look(&[on("kube-proxy-1", "a")]), ["kube-proxy- (no pod on b yet)"]);
        assert_eq!(look(&[on("kube-proxy-1", "a"), on("kube-proxy-2", "b")]), Vec::<String>::new());
    }

    #[test]
    fn a_pod_is_of_before_only_if_its_own_machine_was_started_later() {
        let started = |name: &str| (name.to_owned(), "2026-01-01T00:00:10Z".parse().unwrap());
        let starts = Starts([started("a")].into());
        let on = |node: &str| -> Pod {
            let state = json!({"running": {"startedAt": "2026-01-01T00:00:09Z"}});
            serde_json::from_value(json!({
                "spec": {"containers": [], "nodeName": node},
                "status": {"containerStatuses": [
                    {"name": "x", "image": "x", "imageID": "x", "ready": true, "restartCount": 0, "state": state},
                ]},
            }))
            .unwrap()
        };
        assert!(is_of_before(&on("a"), &starts));
        assert!(!is_of_before(&on("b"), &starts));
    }

    #[test]
    fn pods_that_ended_neither_count_nor_hinder() {
        let expected = expected(&["coredns-"]);
        let look = |pods: &[Pod]| waited_for(pods.iter(), &expected, &Starts::default());
        let evicted = pod("coredns-1-a", "Failed", false);
        assert_eq!(look(std::slice::from_ref(&evicted)), ["coredns- (no pod yet)"]);
        assert_eq!(look(&[evicted, pod("coredns-1-b", "Running", true)]), Vec::<String>::new());
        assert_eq!(look(&[pod("coredns-1-c", "Pending", false)]), ["coredns-1-c (Pending)"]);
    }
}
