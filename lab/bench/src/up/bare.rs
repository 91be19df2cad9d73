//! The floor of `cargo xtask bench up`: the programs of a management cluster as plain processes of a fresh machine.
//!
//! Everything is taken from a cluster that `hangar up` made: certificates, the description of the machine, command
//! lines, settings and objects. Then `bare.sh` starts the same programs with the same arguments, in one machine, each
//! awaited before the next.
//!
//! It includes: network and machine, etcd, API server, controller-manager, scheduler, containerd, kubelet until the
//! node is Ready, the add-ons' objects other than workloads, provisioner, resolver, kube-proxy, CoreDNS, kube-vip, its
//! cloud provider, `hangar install`, and the manager until it is ready.
//!
//! It does not include images, sandboxes, containers and probes, because no pod is started. kube-proxy, CoreDNS,
//! kube-vip and the manager connect to the API server as administrator instead of with an account of their own, and
//! CoreDNS listens on another port, because the resolver already has 53. Certificates exist before. Programs without a
//! probe (provisioner, resolver, kube-vip and its cloud provider) are not awaited, as `up` too awaits only their start;
//! at the end the script checks that everything still runs.

use std::fmt::Write;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, bail};
use hangar_parts::packages::{self, Packages};
use hangar_parts::{Parts, Set};
use serde_json::{Value, json};

use crate::as_applied;
use crate::kubectl::Kubectl;

const SCRIPT: &str = include_str!("bare.sh");
const APPLIED: &str = "applied.hangar.cluster.x-k8s.io/hangar-host";
const FABRIC: &str = "private";
const MACHINE: &str = "management";

/// What is started besides what the machine of `hangar up` has already, and where it comes from.
const PROGRAMS: [(Set, &str); 7] = [
    (Set::Etcd36, "etcd"),
    (Set::Kubernetes134, "kube-apiserver"),
    (Set::Kubernetes134, "kube-controller-manager"),
    (Set::Kubernetes134, "kube-scheduler"),
    (Set::Kubernetes134, "kube-proxy"),
    (Set::KubeVip, "kube-vip"),
    (Set::KubeVipCloudProvider, "kube-vip-cloud-provider"),
];

/// A recipe, ready to be run.
#[derive(Debug)]
pub(super) struct Bare {
    machines: PathBuf,
    state: PathBuf,
    recipe: PathBuf,
    gateway: String,
    host: String,
    address: String,
}

/// Seconds in all, and by what was started.
#[derive(Debug)]
pub(super) struct Taken {
    pub(super) seconds: f64,
    pub(super) steps: Vec<(String, f64)>,
}

impl Bare {
    /// The environment of the floor.
    pub(super) const NAME: &str = "bare";

    /// Writes down what the running environment `name` consists of.
    pub(super) fn of(
        state: &Path,
        name: &str,
        parts: &Parts,
        hangar: &Path,
        machines: PathBuf,
    ) -> anyhow::Result<Self> {
        let environment = state.join(name);
        let recipe = state.join("recipe");
        let kubeconfig = environment.join("management.kubeconfig");
        fs::create_dir_all(recipe.join("bench")).context("the recipe's directory")?;

        let record = read_json(&environment.join("machines").join(MACHINE).join("machine.json"))?;
        let fabric = read_json(&environment.join("fabrics").join(FABRIC).join("fabric.json"))?;
        let mut spec = record["spec"].clone();
        let address = text(&spec["nics"][0]["addresses"][0])?;
        let address = address.split('/').next().unwrap_or_default().to_owned();
        let bare = Self {
            machines,
            state: state.to_owned(),
            gateway: text(&fabric["gateway"])?.to_owned(),
            host: text(&fabric["host"])?.to_owned(),
            address,
            recipe,
        };

        let kubectl = Kubectl::new(parts.program(Set::Kubernetes134, "kubectl")?, kubeconfig.clone());
        let get = |what: &str| kubectl.list(&["get", what, "--all-namespaces"]);
        let pods = get("pods")?;
        let settings = get(
            "serviceaccounts,configmaps,clusterroles,clusterrolebindings,roles,rolebindings,services,storageclasses",
        )?;
        bare.write("commands.sh", &bare.commands(&pods, &spec)?)?;
        bare.write("settings.json", &serde_json::to_string(&applied(&settings))?)?;
        bare.write("kube-proxy.json", &kube_proxy(&settings)?)?;
        bare.write("Corefile.cluster", &core_dns(&settings)?)?;
        bare.write("start.sh", SCRIPT)?;
        fs::copy(&kubeconfig, bare.recipe.join("bench/admin.conf")).context("the kubeconfig")?;
        for (file, path) in [
            ("kubelet.yaml", "/var/lib/kubelet/config.yaml"),
            ("Corefile.resolver", "/etc/hangar/resolver/Corefile"),
        ] {
            let output = bare.machine_command(name).args(["exec", MACHINE, "cat", path]).output()?;
            if !output.status.success() {
                bail!("{path} cannot be read in the machine");
            }
            bare.write(file, &String::from_utf8_lossy(&output.stdout))?;
        }

        let packages =
            packages::ensure(parts.cache(), packages::FOR_MACHINES, &mut |text| eprintln!("{text}"))?;
        bare.write_nft(&packages)?;
        let kubernetes = bare.recipe.join("kubernetes");
        copied(&environment.join("management/kubernetes"), &kubernetes)?;
        copied(&environment.join("management/kept"), &bare.recipe.join("kept"))?;
        // Else kubelet would start them once more, as pods.
        fs::remove_dir_all(kubernetes.join("manifests")).context("the manifests")?;
        fs::create_dir(kubernetes.join("manifests")).context("the manifests")?;

        spec["nics"] = json!([]);
        spec["services"] = json!([]);
        spec["binds"] = bare.binds(&spec["binds"], &environment, parts, hangar)?;
        fs::write(bare.recipe.join("spec.json"), serde_json::to_string_pretty(&spec)?)?;
        Ok(bare)
    }

    /// From nothing to a ready manager.
    pub(super) fn run(&self) -> anyhow::Result<Taken> {
        for fresh in ["etcd", "volumes", "bench/logs"] {
            let path = self.recipe.join(fresh);
            let _ = fs::remove_dir_all(&path);
            fs::create_dir_all(&path).with_context(|| format!("create {}", path.display()))?;
        }
        let spec = self.recipe.join("spec.json");
        let start = Instant::now();
        self.checked(&[
            "create-fabric",
            FABRIC,
            "--outside",
            "--gateway",
            &self.gateway,
            "--host",
            &self.host,
        ])?;
        let mut steps = vec![("network".to_owned(), start.elapsed().as_secs_f64())];
        let begun = Instant::now();
        let address = ["--fabric", FABRIC, "--address", &self.address];
        self.checked(&[&["create", MACHINE, "--spec", &spec.display().to_string()], &address[..]].concat())?;
        steps.push(("machine".to_owned(), begun.elapsed().as_secs_f64()));
        let output = self.checked(&["exec", MACHINE, "bash", "/bench/start.sh"])?;
        let seconds = start.elapsed().as_secs_f64();
        for line in output.lines() {
            let (name, milliseconds) = line.split_once(' ').context("a line of the script")?;
            let taken = milliseconds.parse::<f64>().context("a time of the script")? / 1000.0;
            match steps.last_mut() {
                // Awaited in two parts.
                Some((last, sum)) if last == name => *sum += taken,
                _ => steps.push((name.to_owned(), taken)),
            }
        }
        Ok(Taken { seconds, steps })
    }

    fn write(&self, name: &str, content: &str) -> anyhow::Result<()> {
        fs::write(self.recipe.join("bench").join(name), content).with_context(|| format!("write {name}"))
    }

    fn machine_command(&self, environment: &str) -> Command {
        let mut command = Command::new(&self.machines);
        command.arg("--state").arg(&self.state).arg("--environment").arg(environment);
        let path = std::env::var("PATH").unwrap_or_default();
        command.env("PATH", format!("{}:{path}", self.recipe.join("bin").display()));
        command.stderr(Stdio::inherit());
        command
    }

    /// The network's rules are made by the same program that `up` takes.
    fn write_nft(&self, packages: &Packages) -> anyhow::Result<()> {
        let program = packages.program("nft").context("the packages have no nft")?;
        let libraries = packages.library_path();
        let script = format!(
            "#!/bin/sh\nLD_LIBRARY_PATH='{}' exec '{}' \"$@\"\n",
            libraries.display(),
            program.display()
        );
        fs::create_dir_all(self.recipe.join("bin"))?;
        let path = self.recipe.join("bin/nft");
        fs::write(&path, script)?;
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).context("nft")
    }

    fn checked(&self, arguments: &[&str]) -> anyhow::Result<String> {
        let output = self.machine_command(Self::NAME).args(arguments).output()?;
        if !output.status.success() {
            bail!("hangar-machine {} failed: {}", arguments.join(" "), output.status);
        }
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// Command lines as arrays of bash, from pods and from the machine's services.
    fn commands(&self, pods: &[Value], spec: &Value) -> anyhow::Result<String> {
        let mut lines = format!("address={}\n", self.address);
        for (_, program) in PROGRAMS.iter().filter(|(_, program)| *program != "kube-proxy") {
            let container = pods
                .iter()
                .map(|pod| &pod["spec"]["containers"][0])
                .find(|container| is_image_of(container, program))
                .with_context(|| format!("no pod runs {program}"))?;
            let mut words = vec!["env".to_owned()];
            for variable in container["env"].as_array().into_iter().flatten() {
                match (variable["name"].as_str(), variable["value"].as_str()) {
                    // Whoever sees it takes itself for a pod.
                    (Some(name), _) if name.starts_with("KUBERNETES_SERVICE_") => {}
                    (Some(name), Some(value)) => words.push(format!("{name}={value}")),
                    _ => {}
                }
            }
            let mut command = strings(&container["command"]);
            if command.is_empty() {
                command.push((*program).to_owned());
            }
            words.extend(command);
            words.extend(strings(&container["args"]));
            array(&mut lines, program, &words)?;
        }
        for service in spec["services"].as_array().into_iter().flatten() {
            array(&mut lines, text(&service["name"])?, &strings(&service["command"]))?;
        }
        Ok(lines)
    }

    /// The machine's binds with our own copies of what it writes to, and with the programs that are pods otherwise.
    fn binds(
        &self,
        known: &Value,
        environment: &Path,
        parts: &Parts,
        hangar: &Path,
    ) -> anyhow::Result<Value> {
        let mut binds = Vec::new();
        for bind in known.as_array().into_iter().flatten() {
            let source = Path::new(text(&bind["source"])?);
            let mut bind = bind.clone();
            match source.strip_prefix(environment.join("management")).ok().and_then(Path::to_str) {
                Some("programs") => {
                    bind["source"] = json!(hangar);
                    bind["target"] = json!("/usr/local/lib/hangar/hangar");
                }
                Some(own) => bind["source"] = json!(self.recipe.join(own)),
                None => {}
            }
            binds.push(bind);
        }
        for (set, name) in PROGRAMS {
            let (source, target) = (parts.program(set, name)?, format!("/usr/local/bin/{name}"));
            binds.push(json!({"source": source, "target": target, "read_only": true}));
        }
        binds.push(json!({"source": self.recipe.join("bench"), "target": "/bench", "read_only": false}));
        Ok(Value::Array(binds))
    }
}

/// Whether the last part of the image's name is the program's.
fn is_image_of(container: &Value, program: &str) -> bool {
    let image = container["image"].as_str().unwrap_or_default();
    image.rsplit('/').next().and_then(|last| last.split(':').next()) == Some(program)
}

fn array(lines: &mut String, name: &str, words: &[String]) -> anyhow::Result<()> {
    let quoted: Vec<String> = words.iter().map(|word| format!("'{}'", word.replace('\'', r"'\''"))).collect();
    writeln!(lines, "{}=({})", name.replace('-', "_"), quoted.join(" "))?;
    Ok(())
}

/// The objects of the add-ons as they were applied. Workloads are not among them.
fn applied(list: &[Value]) -> Value {
    let applied = list.iter().filter(|object| object["metadata"]["annotations"][APPLIED].is_string());
    let objects: Vec<Value> = applied.map(|object| as_applied(object, &["namespace", "labels"])).collect();
    json!({"apiVersion": "v1", "kind": "List", "items": objects})
}

fn kube_proxy(settings: &[Value]) -> anyhow::Result<String> {
    let text = data(settings, "kube-proxy", "config.conf")?;
    let mut configuration: Value = serde_saphyr::from_str(text).context("kube-proxy's configuration")?;
    configuration["clientConnection"]["kubeconfig"] = json!("/bench/admin.conf");
    Ok(configuration.to_string())
}

fn core_dns(settings: &[Value]) -> anyhow::Result<String> {
    let corefile = data(settings, "coredns", "Corefile")?;
    let changed = corefile.replacen(".:53 {", ".:1053 {", 1).replacen(
        "ip6.arpa {",
        "ip6.arpa {\n        kubeconfig /bench/admin.conf",
        1,
    );
    if !changed.contains(":1053") || !changed.contains("kubeconfig") {
        bail!("the Corefile looks other than expected");
    }
    Ok(changed)
}

fn data<'settings>(settings: &'settings [Value], name: &str, key: &str) -> anyhow::Result<&'settings str> {
    settings
        .iter()
        .find(|object| object["kind"] == "ConfigMap" && object["metadata"]["name"] == name)
        .and_then(|object| object["data"][key].as_str())
        .with_context(|| format!("no {key} in ConfigMap {name}"))
}

fn strings(list: &Value) -> Vec<String> {
    list.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}

fn text(value: &Value) -> anyhow::Result<&str> {
    value.as_str().context("a text is missing in the machine's record")
}

fn read_json(path: &Path) -> anyhow::Result<Value> {
    let content = fs::read(path).with_context(|| format!("read {}", path.display()))?;
    serde_json::from_slice(&content).with_context(|| format!("read {}", path.display()))
}

fn copied(from: &Path, to: &Path) -> anyhow::Result<()> {
    let status = Command::new("cp").args(["--archive", "--no-target-directory"]).args([from, to]).status()?;
    if !status.success() {
        bail!("{} cannot be copied", from.display());
    }
    Ok(())
}
