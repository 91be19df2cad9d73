//! The files of the programs: keys and certificates that are minted here, and ConfigMaps as they are rendered.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::Context;
use hangar_pki::{
    Authority, Credentials, Intent, KeyPairPem, Kubeconfig, ServiceAccountKeys, Trust, Usage, encryption_key,
    issue,
};
use jiff::Timestamp;
use serde_json::{Value, json};

use super::pods::Program;

/// The addresses of the load balancers in the golden.
pub(super) const ADDRESSES: [&str; 2] = ["192.0.2.10", "192.0.2.11"];

const LIFETIME: Duration = Duration::from_secs(24 * 60 * 60);

/// The certificates: Secret, authority, user.
const LEAVES: [(&str, &str, &str); 10] = [
    ("demo-apiserver", "demo-ca", "kube-apiserver"),
    ("demo-apiserver-kubelet-client", "demo-ca", "kube-apiserver-kubelet-client"),
    ("demo-apiserver-etcd-client", "demo-etcd", "kube-apiserver-etcd-client"),
    ("demo-etcd-server", "demo-etcd", "etcd"),
    ("demo-etcd-peer", "demo-etcd", "etcd"),
    ("demo-front-proxy-client", "demo-proxy", "front-proxy-client"),
    ("demo-konnectivity-server", "demo-ca", "konnectivity-server"),
    ("demo-konnectivity-client", "demo-ca", "system:konnectivity-server"),
    ("demo-controller-manager", "demo-ca", "system:kube-controller-manager"),
    ("demo-scheduler", "demo-ca", "system:kube-scheduler"),
];

type Data = BTreeMap<String, String>;

pub(super) struct Files {
    directory: PathBuf,
    kubernetes: Authority,
    secrets: BTreeMap<String, Data>,
    config_maps: BTreeMap<String, Data>,
    /// Names of Services; all of them are here.
    hosts: Vec<String>,
}

impl Files {
    pub(super) fn create(directory: &Path, objects: &[Value]) -> anyhow::Result<Self> {
        let now = Timestamp::now();
        let services = objects
            .iter()
            .filter(|object| object["kind"] == "Service" && object["metadata"]["namespace"] == "team");
        let hosts = services.flat_map(|service| {
            let name = service["metadata"]["name"].as_str().unwrap_or_default();
            let namespace = service["metadata"]["namespace"].as_str().unwrap_or_default();
            ["", ".cluster.local"].map(|end| format!("{name}.{namespace}.svc{end}"))
        });
        let hosts: Vec<String> = hosts.collect();
        let authority = |name: &str| Authority::self_signed(&Intent::authority(name, LIFETIME), now);
        let authorities = [
            ("demo-ca", authority("kubernetes")?),
            ("demo-etcd", authority("etcd-ca")?),
            ("demo-proxy", authority("front-proxy-ca")?),
        ];
        let mut secrets = BTreeMap::new();
        let mut config_maps: BTreeMap<String, Data> = objects
            .iter()
            .filter(|object| object["kind"] == "ConfigMap")
            .filter_map(|object| {
                let data = serde_json::from_value(object["data"].clone()).ok()?;
                Some((object["metadata"]["name"].as_str()?.to_owned(), data))
            })
            .collect();
        for member in config_maps.get_mut("demo-etcd").into_iter().flat_map(BTreeMap::values_mut) {
            *member = beginning(member)?;
        }
        for (name, authority) in &authorities {
            let certificate = authority.pair().certificate.clone();
            config_maps.insert(format!("{name}-trust"), [("ca.crt".to_owned(), certificate)].into());
            secrets.insert((*name).to_owned(), pair(authority.pair()));
        }
        for (secret, issuer, user) in LEAVES {
            let addresses = ["127.0.0.1", "10.96.0.1"].iter().chain(&ADDRESSES);
            let intent = Intent::new(user, Usage::ServerAndClient, LIFETIME)
                .dns_names(hosts.iter().map(String::as_str).chain(["localhost"]))
                .ip_addresses(addresses.filter_map(|address| address.parse().ok()));
            let issuer = authorities.iter().find(|(name, _)| *name == issuer).context("an authority")?;
            secrets.insert(secret.to_owned(), pair(&issue(&issuer.1, &intent, now)?));
        }
        let accounts = ServiceAccountKeys::generate()?;
        let accounts = [("tls.crt", accounts.public), ("tls.key", accounts.private.expose().to_owned())];
        secrets.insert("demo-sa".to_owned(), accounts.map(|(key, text)| (key.to_owned(), text)).into());
        let encryption = json!({
            "apiVersion": "apiserver.config.k8s.io/v1", "kind": "EncryptionConfiguration",
            "resources": [{"resources": ["secrets"], "providers": [
                {"secretbox": {"keys": [{"name": "key1", "secret": encryption_key().expose()}]}},
            ]}],
        });
        secrets.insert("demo-encryption".to_owned(), [(String::new(), encryption.to_string())].into());
        let [(_, kubernetes), ..] = authorities;
        Ok(Self { directory: directory.to_owned(), kubernetes, secrets, config_maps, hosts })
    }

    /// A kubeconfig that may do everything.
    pub(super) fn administrator(&self) -> anyhow::Result<PathBuf> {
        let intent = Intent::new("administrator", Usage::Client, LIFETIME).organizations(["system:masters"]);
        let kubeconfig = Kubeconfig {
            cluster: "demo".to_owned(),
            user: "administrator".to_owned(),
            server: "https://127.0.0.1:6443".to_owned(),
            trust: Trust::Embedded(self.kubernetes.pair().certificate.clone()),
            tls_server_name: None,
            credentials: Credentials::Certificate(issue(&self.kubernetes, &intent, Timestamp::now())?),
            namespace: None,
        };
        let path = self.directory.join("administrator.kubeconfig");
        write(&path, &kubeconfig.to_yaml()?)?;
        Ok(path)
    }

    /// The tokens of a pod of the tenant, and whom it trusts.
    pub(super) fn tokens(&self, workload: &str, token: &str, account: &str) -> anyhow::Result<()> {
        let run = self.root(workload).join("run/secrets");
        write(&run.join("tokens/token"), token.trim())?;
        let of_account = run.join("kubernetes.io/serviceaccount");
        write(&of_account.join("token"), account.trim())?;
        write(&of_account.join("ca.crt"), &self.kubernetes.pair().certificate)
    }

    fn root(&self, workload: &str) -> PathBuf {
        self.directory.join(workload)
    }

    /// A program, with its files in place, and its output in a log.
    pub(super) fn command(&self, program: &Program, path: &Path) -> anyhow::Result<Command> {
        let root = self.root(&program.workload);
        let own = program.aliases.iter().map(|(name, address)| format!("{address} {name}\n"));
        let services = self.hosts.iter().map(|name| format!("127.0.0.1 {name}\n"));
        let hosts: String =
            ["127.0.0.1 localhost\n".to_owned()].into_iter().chain(own).chain(services).collect();
        write(&root.join("etc/hosts"), &hosts)?;
        for directory in ["run", "var/lib"] {
            fs::create_dir_all(root.join(directory))?;
        }
        for mount in &program.mounts {
            let directory = root.join(mount.path.trim_start_matches('/').replace("var/run/", "run/"));
            fs::create_dir_all(&directory).with_context(|| directory.display().to_string())?;
            for file in &mount.files {
                let objects = if file.is_secret { &self.secrets } else { &self.config_maps };
                let data = objects.get(&file.object).with_context(|| format!("no object {}", file.object))?;
                let Some((key, name)) = &file.key else {
                    data.iter().try_for_each(|(name, text)| write(&directory.join(name), text))?;
                    continue;
                };
                // What encrypts has one document, whatever its name.
                let text = data
                    .get(key)
                    .or(data.get(""))
                    .with_context(|| format!("{} has no {key}", file.object))?;
                write(&directory.join(name), text)?;
            }
        }
        let script = r#"
            for directory in var/lib run etc; do mount --bind "$0/$directory" "/$directory" || exit 1; done
            exec "$@"
        "#;
        let log = fs::File::create(self.directory.join(format!("{}.log", program.name)))?;
        let mut command = Command::new("unshare");
        command.args(["--mount", "sh", "-c", script]).arg(root).arg(path).args(&program.arguments);
        command.env_clear().env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin").envs(&program.variables);
        command.stdout(Stdio::from(log.try_clone()?)).stderr(Stdio::from(log));
        Ok(command)
    }
}

/// The settings of a member that begins: in the golden etcd has data, and does not start without.
fn beginning(member: &str) -> anyhow::Result<String> {
    let mut settings: Value = serde_saphyr::from_str(member).context("settings of etcd")?;
    let of = |key: &str| settings[key].as_str().unwrap_or_default().to_owned();
    settings["initial-cluster"] = json!(format!("{}={}", of("name"), of("initial-advertise-peer-urls")));
    settings["initial-cluster-state"] = json!("new");
    Ok(settings.to_string())
}

fn pair(pair: &KeyPairPem) -> Data {
    let texts = [("tls.crt", pair.certificate.clone()), ("tls.key", pair.key.expose().to_owned())];
    texts.map(|(key, text)| (key.to_owned(), text)).into()
}

fn write(path: &Path, text: &str) -> anyhow::Result<()> {
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent)?;
    }
    fs::write(path, text).with_context(|| path.display().to_string())
}
