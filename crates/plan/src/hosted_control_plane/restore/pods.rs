//! The pods of a restore: they make a member's data directory out of a backup, and do not run etcd.
//!
//! ```text
//! fetch    this program   the object: space, key, size and digest are checked; beside the data, never in its place
//! etcdutl  etcd's image   a new directory, with the member's name and a new cluster
//! place    this program   the directory gets its name: it is there as a whole, or not
//! restored this program   waits: the pod is ready, so the member has its data
//! ```
//!
//! Where a member that has survived is gone on with, `inspect` (this program) takes the place of `fetch`: nobody uses the
//! data, and there is room for a copy. `etcdutl` then reads the member's database where it is, and nothing writes to it.
//!
//! All of it can be repeated: a directory that has its name is never written to again. Revisions go on far above those of
//! the backup, and everything before counts as compacted, so that whoever watched what is gone has to list anew.

use std::collections::BTreeMap;

use hangar_api::controlplane::v1alpha1::{Container as Settings, Etcd};
use k8s_openapi::api::apps::v1::{StatefulSet, StatefulSetOrdinals};
use k8s_openapi::api::core::v1::{Container, Volume};

use super::super::etcd::{self, DATA};
use super::super::names::{Component, ETCD_VOLUME};
use super::super::observed::Observed;
use super::super::pod::{Files, Template, container, starting_with};
use super::super::program::ETCD;
use super::super::servers;
use super::super::traffic::{Peer, Ports};
use super::super::validate::Validated;
use super::record::Restoration;
use super::{secret, version};
use crate::pieces::{field_variable, mount, texts, writable_mount};

/// The command of this program.
const COMMAND: &str = "restore-member";
/// The program of etcd's image.
const ETCDUTL: &str = "etcdutl";
/// What its pod says when it has failed more than once.
pub(super) const STUCK: &str = "etcdutl: CrashLoopBackOff";

const STORE_VOLUME: &str = "store";
const STORE: &str = "/etc/hangar/store";
const KEY_FILE: &str = "encryption-key";
const DEFAULT_KEY: &str = "key";

/// More writes than any cluster makes between a backup and its loss.
const REVISIONS: u64 = 1_000_000_000;

/// The server at a URL, as policies know it.
pub(in super::super) fn server(url: &str) -> Option<(Peer, Ports)> {
    servers::server(url).map(servers::Server::rule)
}

/// etcd's StatefulSet while it is restored.
pub(in super::super) fn stateful_set(
    observed: &Observed,
    validated: &Validated<'_>,
    restoration: &Restoration,
    tag: &str,
) -> StatefulSet {
    let settings = etcd::settings(validated);
    let image = observed.manager_image.clone();
    let own = |name: &str, args: Vec<String>, mounts| Container {
        image: image.clone(),
        args: Some([COMMAND.to_owned(), name.to_owned()].into_iter().chain(args).collect()),
        volume_mounts: Some(mounts),
        ..container(validated, name, &Settings::default(), "hangar", "", ("10m", "32Mi"))
    };
    let data = || writable_mount(ETCD_VOLUME, DATA);
    let place = vec![format!("--from={DATA}/restoring"), format!("--to={DATA}/{}", restoration.directory())];
    let first = match restoration.survivor {
        Some(_) => own("inspect", inspect(validated), vec![data()]),
        None => own("fetch", fetch(observed, restoration), vec![data(), mount(STORE_VOLUME, STORE)]),
    };
    let template = Template {
        component: Component::Etcd,
        version: version(restoration),
        annotations: BTreeMap::new(),
        priority_class: settings.priority_class_name.clone(),
        grace_seconds: 5,
        containers: vec![own("restored", Vec::new(), vec![data()])],
        volumes: if restoration.survivor.is_some() { Vec::new() } else { vec![store(validated)] },
    };
    let first =
        vec![first, etcdutl(validated, restoration, &settings, tag), own("place", place, vec![data()])];
    let template = starting_with(template.render(validated, restoration.members), first);
    let mut set = etcd::members_set(observed, validated, restoration.pods(), template);
    if let (Some(start), Some(spec)) = (restoration.survivor, &mut set.spec) {
        spec.ordinals = Some(StatefulSetOrdinals { start: Some(start) });
    }
    set
}

/// The data that a member has.
fn present(validated: &Validated<'_>) -> String {
    format!("{DATA}/{}", etcd::directory(validated))
}

fn inspect(validated: &Validated<'_>) -> Vec<String> {
    vec![format!("--data={}", present(validated)), format!("--into={DATA}/restoring")]
}

fn fetch(observed: &Observed, restoration: &Restoration) -> Vec<String> {
    let mut args = vec![
        format!("--owner={}", restoration.from),
        format!("--backup={}", restoration.backup),
        format!("--store={STORE}"),
        format!("--into={DATA}/restoring"),
    ];
    // The same rule as for the manager's own connections: a policy for pods does not know what a name leads to.
    args.extend(listed("--networks", &observed.limits.backup_networks));
    args.extend(listed("--api-servers", &observed.limits.api_servers));
    if restoration.is_encrypted {
        args.push(format!("--encryption-key={STORE}/{KEY_FILE}"));
    }
    args
}

/// An argument with all of these; none where there are none.
fn listed(flag: &str, values: &[impl ToString]) -> Option<String> {
    let values: Vec<String> = values.iter().map(ToString::to_string).collect();
    (!values.is_empty()).then(|| format!("{flag}={}", values.join(",")))
}

/// A new cluster of the same names: its identity follows from generation and members, so that it never takes one of
/// before for its own.
fn etcdutl(validated: &Validated<'_>, restoration: &Restoration, settings: &Etcd, tag: &str) -> Container {
    let names = &validated.names;
    let first = restoration.first();
    let members = (first..first + restoration.pods())
        .map(|ordinal| format!("{}={}", names.etcd_pod(ordinal), etcd::peer_url(names, ordinal)));
    let snapshot = match restoration.survivor {
        Some(_) => format!("{}/member/snap/db", present(validated)),
        None => format!("{DATA}/restoring/snapshot.db"),
    };
    let mut args = vec![
        "snapshot".to_owned(),
        "restore".to_owned(),
        snapshot,
        format!("--data-dir={DATA}/restoring/data"),
        "--name=$(POD_NAME)".to_owned(),
        format!("--initial-cluster={}", members.collect::<Vec<_>>().join(",")),
        format!("--initial-cluster-token={}", etcd::token(validated, restoration.generation)),
        format!("--initial-advertise-peer-urls={}", etcd::variable_peer_url(names, "$(POD_INDEX)")),
        format!("--bump-revision={REVISIONS}"),
        "--mark-compacted".to_owned(),
    ];
    if restoration.survivor.is_some() {
        // The database of a member has no digest at its end.
        args.push("--skip-hash-check".to_owned());
    }
    let mut given = settings.container.clone();
    if let Some(image) = &mut given.image {
        image.tag = None;
    }
    Container {
        command: Some(texts(&[ETCDUTL])),
        args: Some(args),
        env: Some(vec![
            field_variable("POD_NAME", "metadata.name"),
            field_variable("POD_INDEX", "metadata.labels['apps.kubernetes.io/pod-index']"),
        ]),
        volume_mounts: Some(vec![writable_mount(ETCD_VOLUME, DATA)]),
        ..container(validated, ETCDUTL, &given, ETCD.repository, tag, ("50m", "64Mi"))
    }
}

/// The Secrets of the store and of the encryption key, under names that the program knows. Keys that are not there are no
/// files: it says which one it misses.
fn store(validated: &Validated<'_>) -> Volume {
    let mut files = Files::new();
    if let Some(secret) = secret(validated) {
        for (name, key) in secret.keys() {
            files = files.given_secret(&secret.name, key, name);
        }
    }
    if let Some(key) = super::encryption(validated) {
        let name = key.key.as_deref().filter(|name| !name.is_empty()).unwrap_or(DEFAULT_KEY);
        files = files.given_secret(&key.secret_name, name, KEY_FILE);
    }
    files.volume(STORE_VOLUME)
}
