//! Goldens of the bootstrap data, a table of stages, and the crash sweep over tokens and data.

use std::collections::BTreeMap;

use hangar_api::bootstrap::v1beta2::KubeadmConfig;
use hangar_api::conditions;
use hangar_api::contract::Endpoint;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Secret;
use serde_json::json;

use super::*;
use crate::flow::crash::{World, sweep};
use crate::flow::{Action, Clocks, Frontier, Identified as _};

fn now() -> Timestamp {
    "2026-03-01T12:00:00Z".parse().unwrap()
}

fn config(spec: &str) -> KubeadmConfig {
    let spec: serde_json::Value = serde_saphyr::from_str(spec).unwrap();
    serde_json::from_value(json!({
        "apiVersion": "bootstrap.cluster.x-k8s.io/v1beta2",
        "kind": "KubeadmConfig",
        "metadata": {"name": "worker-a", "namespace": "default", "uid": "uid-1", "generation": 3},
        "spec": spec,
    }))
    .unwrap()
}

fn observed(spec: &str) -> Observed {
    Observed {
        config: config(spec),
        now: now(),
        clocks: Clocks::alone(now()),
        fresh_secret: TokenSecret::stored("0123456789abcdef"),
        free_token_id: candidate_ids("uid-1").remove(0),
        machine: Read::One(MachineFacts {
            name: "worker-a".to_owned(),
            version: Some("v1.35.0".to_owned()),
            ..MachineFacts::default()
        }),
        cluster: Read::One(ClusterFacts {
            name: "demo".to_owned(),
            is_paused: false,
            is_provisioned: true,
            is_initialized: true,
            endpoint: Endpoint { host: "demo.clusters.hangar.test".to_owned(), port: 443 },
        }),
        data_secret: Read::Absent,
        authority_hashes: Read::One(vec!["sha256:aa".to_owned()]),
        contents: BTreeMap::new(),
        token: Read::Absent,
        trouble: None,
    }
}

/// Kubelet arguments and node name as the seeds have them.
const WORKER: &str = "
joinConfiguration:
  nodeRegistration:
    name: '{{ local_hostname }}'
    kubeletExtraArgs:
    - name: provider-id
      value: openstack:///{{ instance_id }}
";

const EVERYTHING: &str = r#"
joinConfiguration:
  caCertPath: /etc/kubernetes/pki/own.crt
  nodeRegistration:
    criSocket: unix:///run/containerd/containerd.sock
    ignorePreflightErrors: [NumCPU]
    imagePullPolicy: IfNotPresent
    imagePullSerial: false
    taints: [{key: dedicated, value: "yes", effect: NoExecute}]
  patches: {directory: /etc/kubernetes/patches}
  skipPhases: [preflight]
  timeouts: {tlsBootstrapSeconds: 300, discoverySeconds: 60}
files:
- path: /etc/plain
  content: "a line with {{ ds.meta_data.name }}\nand \"quotes\" and 'more'\n"
  owner: root:root
  permissions: "0600"
- path: /etc/encoded
  content: eyB7IH0gfQ==
  encoding: base64
- path: /etc/log
  content: "no"
  append: true
- path: /etc/from-secret
  contentFrom: {secret: {name: extra, key: conf}}
bootCommands: ["echo early"]
preKubeadmCommands:
- "hostnamectl set-hostname '{{ local_hostname }}' && echo a command that is long enough to be folded by a writer that folds at eighty columns"
- "echo \"::1 {{ ds.meta_data.hostname }}\" >> /etc/hosts"
postKubeadmCommands: ["echo done"]
users:
- {name: admin, sudo: "ALL=(ALL) NOPASSWD:ALL", sshAuthorizedKeys: [ssh-ed25519 AAAA], lockPassword: true, groups: "wheel, docker", shell: /bin/bash, homeDir: /home/admin, gecos: An Admin, primaryGroup: staff, inactive: false}
- {name: other, passwdFrom: {secret: {name: extra, key: password}}}
ntp: {enabled: true, servers: [ntp.example]}
diskSetup:
  partitions: [{device: /dev/vdb, layout: true, tableType: gpt, overwrite: false}]
  filesystems: [{device: /dev/vdb1, filesystem: ext4, label: data, partition: auto, extraOpts: [-E, lazy_itable_init=1], replaceFS: vfat, overwrite: true}]
mounts: [[LABEL=data, /var/lib/data]]
verbosity: 5
"#;

fn key(name: &str) -> KeyOfSecret {
    KeyOfSecret { name: "extra".to_owned(), key: name.to_owned() }
}

fn step_ids(observed: &Observed) -> Vec<String> {
    observed.plan().steps.iter().map(|step| step.id().to_string()).collect()
}

/// The data Secret that a step makes.
fn made(step: &Step) -> Option<Secret> {
    let Step::Write(write) = step else { return None };
    let Action::Create { object, .. } = &write.action else { return None };
    assert_eq!(write.id.kind, "data-secret");
    Some(serde_json::from_value(serde_json::to_value(object).unwrap()).unwrap())
}

/// Runs steps until the data is made.
fn data(observed: &mut Observed) -> Secret {
    for _ in 0..5 {
        let planned = checked(observed);
        let step = planned.steps.iter().next().expect("a step").clone();
        if let Some(secret) = made(&step) {
            return secret;
        }
        observed.fold(&step, &Outcome::Done);
    }
    panic!("no data");
}

/// Rules that hold for every plan.
fn checked(observed: &Observed) -> Plan<Step, KubeadmConfigStatus> {
    let plan = observed.plan();
    for step in &plan.steps {
        assert!(!format!("{step:?}").contains("0123456789abcdef") || made(step).is_some(), "{step:?}");
        assert!(!step.id().to_string().contains("0123456789abcdef"));
        if let Some(secret) = made(step) {
            let value = String::from_utf8(secret.data.as_ref().unwrap()["value"].0.clone()).unwrap();
            assert!(value.starts_with("## template: jinja\n#cloud-config\n"));
            let _: serde_json::Value = serde_saphyr::from_str(&value).unwrap();
        }
    }
    let status = &plan.status;
    for condition in status.conditions.iter().flatten().filter(|condition| condition.status != "True") {
        assert!(condition.type_ == "Paused" || condition.message.contains("must act"), "{condition:?}");
    }
    plan
}

fn text(secret: &Secret) -> String {
    String::from_utf8(secret.data.as_ref().unwrap()["value"].0.clone()).unwrap()
}

#[test]
fn data_of_a_worker() {
    let secret = data(&mut observed(WORKER));
    insta::assert_snapshot!(serde_saphyr::to_string(&secret.metadata).unwrap() + "---\n" + &text(&secret));
}

#[test]
fn data_with_everything() {
    let mut observed = observed(EVERYTHING);
    observed.contents.insert(key("conf"), Read::One("[from]\nsecret = true\n".to_owned()));
    observed.contents.insert(key("password"), Read::One("$6$hash".to_owned()));
    insta::assert_snapshot!(text(&data(&mut observed)));
}

#[test]
fn texts_come_back_as_they_were_given_when_jinja_leaves_them_alone() {
    let mut observed = observed(EVERYTHING);
    observed.contents.insert(key("conf"), Read::One("[from]\nsecret = true\n".to_owned()));
    observed.contents.insert(key("password"), Read::One("$6$hash".to_owned()));
    let read: serde_json::Value = serde_saphyr::from_str(&text(&data(&mut observed))).unwrap();
    let spec = &observed.config.spec;
    assert_eq!(read["write_files"][0]["content"], spec.files.as_ref().unwrap()[0].content.clone().unwrap());
    assert_eq!(read["write_files"][2]["content"], "no", "not a truth value");
    assert_eq!(read["write_files"][0]["permissions"], "0600", "not a number");
    for (index, command) in spec.pre_kubeadm_commands.as_ref().unwrap().iter().enumerate() {
        assert_eq!(read["runcmd"][index], *command);
    }
}

#[test]
fn no_quote_inside_a_template_is_escaped() {
    let spec = "
preKubeadmCommands:
- 'echo {{ ds[\"meta_data\"][\"name\"] }}'
- \"a: {{ ds['x'] }}\"
- '{{ local_hostname }}: #not a comment'
files:
- {path: /a, content: \"{{ ds['meta_data'] }} \\\"x\\\"\\n\\ttab {{ \\\"y\\\" }}\\n\"}
";
    let text = text(&data(&mut observed(spec)));
    for template in text.split("{{").skip(1) {
        let inside = template.split("}}").next().unwrap();
        assert!(!inside.contains('\\') && !inside.contains("''"), "{inside}");
    }
}

#[test]
fn the_stages_wait_in_order_and_say_for_whom() {
    let reason = |observed: &Observed| {
        let plan = checked(observed);
        let status = &plan.status;
        let condition = conditions::get(status, "DataSecretAvailable").unwrap();
        assert_eq!((condition.status.as_str(), plan.steps.len()), ("False", 0));
        condition.reason.clone()
    };
    let mut seen = observed(WORKER);
    let Read::One(cluster) = seen.cluster.clone() else { panic!() };
    let (machine, hashes) = (seen.machine.clone(), seen.authority_hashes.clone());
    seen.machine = Read::Absent;
    assert_eq!(reason(&seen), "WaitingForMachine");
    seen.machine = machine.clone();
    seen.cluster = Read::One(ClusterFacts { is_provisioned: false, ..cluster.clone() });
    assert_eq!(reason(&seen), "WaitingForClusterInfrastructure");
    seen.cluster = Read::One(ClusterFacts { is_initialized: false, ..cluster.clone() });
    assert_eq!(reason(&seen), "WaitingForControlPlaneInitialized");
    seen.cluster = Read::One(ClusterFacts { endpoint: Endpoint::default(), ..cluster.clone() });
    assert_eq!(reason(&seen), "WaitingForControlPlaneEndpoint");
    seen.cluster = Read::One(cluster);
    seen.authority_hashes = Read::Absent;
    assert_eq!(reason(&seen), "WaitingForCertificates");
    seen.authority_hashes = hashes;
    seen.token = Read::unknown("no route");
    assert_eq!(reason(&seen), "ControlPlaneUnreachable");
    seen.token = Read::Absent;
    seen.machine = machine.map(|machine| MachineFacts { version: Some("v1.30.9".to_owned()), ..machine });
    assert_eq!(reason(&seen), "UnsupportedConfiguration");
    let message = conditions::get(&seen.plan().status, "DataSecretAvailable").unwrap().message.clone();
    assert!(message.contains("Machine spec.version: Kubernetes before 1.31 is not supported"), "{message}");
}

#[test]
fn what_is_not_supported_is_refused_by_field() {
    let spec = "
format: ignition
joinConfiguration:
  controlPlane: {}
  discovery: {file: {kubeConfigPath: /a, kubeConfig: {user: {exec: {command: x}}}}}
";
    let status = checked(&observed(spec)).status;
    let message = &conditions::get(&status, "DataSecretAvailable").unwrap().message;
    for field in [
        "spec.format",
        "spec.joinConfiguration.controlPlane",
        "spec.joinConfiguration.discovery.file.kubeConfig",
    ] {
        assert!(message.contains(field), "{message}");
    }
}

#[test]
fn a_missing_content_is_named_and_looked_for_again() {
    let spec = "files: [{path: /a, contentFrom: {secret: {name: extra, key: conf}}}]";
    let mut observed = observed(spec);
    observed.contents.insert(key("conf"), Read::Absent);
    let plan = checked(&observed);
    let message = &conditions::get(&plan.status, "DataSecretAvailable").unwrap().message;
    assert!(message.contains("the key \"conf\" of the Secret extra"), "{message}");
    assert!(matches!(plan.wake, Wake::At(_)));
}

#[test]
fn a_discovery_of_ones_own_needs_no_token() {
    let spec = "joinConfiguration: {discovery: {bootstrapToken: {token: abcdef.0123456789012345, apiServerEndpoint: 'api:1', caCertHashes: ['sha256:bb']}}}";
    let mut observed = observed(spec);
    observed.token = Read::unknown("never asked");
    observed.authority_hashes = Read::Absent;
    let secret = data(&mut observed);
    let text = text(&secret);
    assert!(
        text.contains("abcdef.0123456789012345") && text.contains("api:1") && text.contains("sha256:bb"),
        "{text}"
    );
    assert_eq!(secret.metadata.annotations, None);
}

fn with_data(observed: &mut Observed, token_id: Option<&str>) {
    observed.data_secret = Read::One(DataSecret {
        name: "worker-a".to_owned(),
        uid: "uid-2".to_owned(),
        is_ours: true,
        token_id: token_id.map(str::to_owned),
        recorded_token: Read::One(Token::recorded("abcdef.0123456789abcdef", "uid-1", "join").unwrap()),
    });
}

fn token(expires: &str) -> Token {
    Token {
        expires: Some(expires.parse().unwrap()),
        ..Token::recorded("abcdef.0123456789abcdef", "uid-1", "join").unwrap()
    }
}

#[test]
fn a_token_lives_until_the_node_does() {
    let mut seen = observed(WORKER);
    with_data(&mut seen, Some("abcdef"));
    seen.token = Read::One(token("2026-03-01T12:15:00Z"));
    let fresh = checked(&seen);
    assert!(fresh.steps.is_empty());
    assert_eq!(fresh.wake, Wake::At("2026-03-01T12:05:00Z".parse().unwrap()));
    assert!(conditions::is_true(&fresh.status, "Ready"));
    assert_eq!(fresh.status.data_secret_name.as_deref(), Some("worker-a"));
    seen.token = Read::One(token("2026-03-01T12:12:00Z"));
    assert_eq!(step_ids(&seen), ["extend bootstrap-token abcdef"]);
    seen.token = Read::Absent;
    let Some(Step::Tenant(TokenStep::Create(again))) = checked(&seen).steps.iter().next().cloned() else {
        panic!("no token is made")
    };
    assert_eq!(again.to_string(), "abcdef.0123456789abcdef", "as the machine knows it");
    let joined = |machine| MachineFacts { has_node: true, ..machine };
    seen.machine = seen.machine.map(joined);
    seen.token = Read::One(token("2026-03-01T12:12:00Z"));
    assert_eq!(step_ids(&seen), ["delete bootstrap-token abcdef"]);
    seen.token = Read::Absent;
    assert_eq!(step_ids(&seen), ["annotate data-secret worker-a"]);
    with_data(&mut seen, None);
    let rest = checked(&seen);
    assert!(rest.steps.is_empty() && rest.wake == Wake::OnChange);
}

/// A leader whose clock is hours off would make tokens that have ended, or that never end.
#[test]
fn no_token_is_made_or_extended_while_the_clocks_disagree() {
    let said = |observed: &Observed| {
        let plan = checked(observed);
        assert!(plan.steps.is_empty(), "{:?}", plan.steps);
        assert!(plan.wake.remaining(now()).is_some_and(|wait| wait <= POLL), "{:?}", plan.wake);
        let type_ = data_secret_available::TYPE;
        let condition = plan.status.conditions.into_iter().flatten().find(|one| one.type_ == type_).unwrap();
        assert!(condition.message.contains("nothing is minted or renewed until they agree"), "{condition:?}");
        format!("{} {}", condition.status, condition.reason)
    };
    for hours in [-1, 1] {
        let servers = now().checked_add(jiff::SignedDuration::from_hours(hours)).unwrap();
        let clocks = Clocks { ours: now(), servers: Some(servers) };
        let mut observed = Observed { clocks, ..observed(WORKER) };
        assert_eq!(said(&observed), "False ClocksDisagree");
        // The data of a machine that is on its way stays available; its token is left as it is.
        with_data(&mut observed, Some("abcdef"));
        observed.token = Read::One(token("2026-03-01T12:05:00Z"));
        assert_eq!(said(&observed), "True Available");
        observed.token = Read::Absent;
        for data in observed.data_secret.iter_mut() {
            data.recorded_token = Read::One(token("2026-03-01T12:05:00Z"));
        }
        assert_eq!(said(&observed), "True Available");
        // What has a date already can be used, and what is not needed any more can go.
        let mut made = Observed { data_secret: Read::Absent, ..observed.clone() };
        made.token = Read::One(token("2026-03-01T12:05:00Z"));
        assert_eq!(step_ids(&made).len(), 1);
        observed.machine.iter_mut().for_each(|machine| machine.has_node = true);
        assert_eq!(step_ids(&observed).len(), 1);
    }
}

#[test]
fn nothing_happens_while_paused() {
    let mut seen = observed(WORKER);
    seen.config.metadata.annotations = Some([("cluster.x-k8s.io/paused".to_owned(), String::new())].into());
    let plan = checked(&seen);
    assert!(plan.steps.is_empty());
    assert!(conditions::is_true(&plan.status, "Paused"));
    assert_eq!(plan.status.conditions.map(|all| all.len()), Some(1));
}

#[test]
fn a_secret_of_another_owner_is_left_alone() {
    let mut seen = observed(WORKER);
    with_data(&mut seen, None);
    seen.data_secret = seen.data_secret.map(|data| DataSecret { is_ours: false, ..data });
    let plan = checked(&seen);
    assert!(plan.steps.is_empty());
    assert_eq!(conditions::get(&plan.status, "DataSecretAvailable").unwrap().reason, "SecretNameTaken");
}

#[test]
fn ids_and_secrets_are_what_kubeadm_accepts() {
    let ids = candidate_ids("uid-1");
    assert_eq!(ids, ["2z6jd9", "euyn6i", "4o14db", "zid9ew"], "pinned: a crashed run's token is found by it");
    let secret = TokenSecret::from_random(&[7; 16]).unwrap();
    assert_eq!(secret.expose(), "hhhhhhhhhhhhhhhh");
    assert_eq!(TokenSecret::from_random(&[255; 64]), None, "biased bytes are not used");
    assert_eq!(format!("{secret:?}"), "TokenSecret(...)");
    let object = object(&token("2026-03-01T12:15:00Z"));
    insta::assert_snapshot!(serde_saphyr::to_string(&object).unwrap());
}

/// A tenant with tokens, a management cluster with the data Secret.
#[derive(Clone)]
struct Both {
    tokens: BTreeMap<String, Token>,
    data: Option<Secret>,
    has_node: bool,
}

impl World for Both {
    type Observation = Observed;
    type Step = Step;
    type EndState = (usize, bool, bool);

    fn observe(&self) -> Observed {
        let mut seen = observed(WORKER);
        seen.machine = seen.machine.map(|machine| MachineFacts { has_node: self.has_node, ..machine });
        let id = candidate_ids("uid-1").remove(0);
        seen.token = Read::found(self.tokens.get(&id).cloned());
        seen.data_secret = Read::found(self.data.as_ref().map(|secret| DataSecret {
            name: "worker-a".to_owned(),
            uid: "uid-2".to_owned(),
            is_ours: true,
            token_id: secret.metadata.annotations.as_ref().and_then(|all| all.get(ID_ANNOTATION)).cloned(),
            recorded_token: Read::Absent,
        }));
        seen
    }

    fn plan(&self, observed: &Observed) -> Frontier<Step> {
        checked(observed).steps
    }

    fn run(&mut self, step: &Step) -> Outcome {
        match step {
            Step::Tenant(TokenStep::Create(token)) if self.tokens.contains_key(&token.id) => {
                return Outcome::refused("exists");
            }
            Step::Tenant(TokenStep::Create(token)) => {
                self.tokens.insert(token.id.clone(), token.clone());
            }
            Step::Tenant(TokenStep::Delete { id }) => {
                self.tokens.remove(id);
            }
            Step::Tenant(TokenStep::Extend { .. }) => {}
            Step::Write(write) => match &write.action {
                Action::Create { .. } if self.data.is_some() => return Outcome::refused("exists"),
                Action::Create { .. } => self.data = made(step),
                Action::Change { target, fields } => {
                    assert_eq!((target.kind.as_str(), target.name.as_str()), ("Secret", "worker-a"));
                    if target.uid != "uid-2" {
                        return Outcome::Stale;
                    }
                    let mut data = serde_json::to_value(&self.data).unwrap();
                    json_patch::merge(&mut data, fields);
                    self.data = serde_json::from_value(data).unwrap();
                }
                Action::Itself(_) | Action::Delete { .. } | Action::Evict { .. } => panic!("{write:?}"),
            },
            Step::Own(never) | Step::Cloud(never) => match *never {},
        }
        Outcome::Done
    }

    fn fold(&self, observed: &mut Observed, step: &Step, outcome: &Outcome) {
        observed.fold(step, outcome);
    }

    /// The machine joins once it has its data.
    fn settle(&mut self) {
        self.has_node |= self.data.is_some();
    }

    fn end_state(&self) -> (usize, bool, bool) {
        let is_cared_for = self
            .data
            .iter()
            .any(|data| data.metadata.annotations.iter().flatten().any(|(name, _)| name == ID_ANNOTATION));
        (self.tokens.len(), self.data.is_some(), is_cared_for)
    }
}

#[test]
fn dying_anywhere_leaves_no_token_behind_and_one_data_secret() {
    let world = Both { tokens: BTreeMap::new(), data: None, has_node: false };
    let swept = sweep(&world, 50).unwrap();
    let trace: Vec<String> = swept.trace.iter().map(ToString::to_string).collect();
    assert_eq!(
        trace,
        [
            "create bootstrap-token 2z6jd9",
            "create data-secret worker-a",
            "delete bootstrap-token 2z6jd9",
            "annotate data-secret worker-a"
        ]
    );
    assert_eq!(swept.points, 16);
}
