//! What calls and the management cluster's controllers do to the world, and what must never happen on the way.

use super::super::super::*;
use super::world::Clusters;
use crate::flow::Outcome;

impl Clusters {
    /// Members may be missed one at a time, and the one that leads last.
    pub(super) fn evict(&mut self, target: &flow::Target) -> Outcome {
        let found = self
            .members
            .iter()
            .find(|(ordinal, version)| target.uid == format!("uid of demo-etcd-{ordinal} on {version}"));
        let Some((ordinal, version)) = found.map(|(ordinal, version)| (*ordinal, version.clone())) else {
            return Outcome::Stale;
        };
        if self.members.len() < self.replicas("StatefulSet", "demo-etcd") {
            self.violated("a second member was restarted");
        }
        if ordinal == 0 && self.members.iter().any(|(other, of)| *other != 0 && *of == version) {
            self.violated("the leader was restarted before others");
        }
        self.members.remove(&ordinal);
        Outcome::Done
    }

    /// What the cluster's controllers and kubelets do: members that are missing start, others are replaced.
    pub(super) fn run_pods(&mut self) {
        let number = |text: &String| KubernetesVersion::parse(text).unwrap().number();
        match self.template("StatefulSet", "demo-etcd") {
            Some(version) if version.starts_with("restore-") => self.restore(&version),
            Some(version) => {
                let all = self.replicas("StatefulSet", "demo-etcd");
                for ordinal in 0..i32::try_from(all).unwrap() {
                    self.members.entry(ordinal).or_insert_with(|| version.clone());
                }
                self.run_members();
            }
            None => self.members.clear(),
        }
        match self.template("Deployment", "demo-apiserver") {
            Some(version) if self.broken == Some(&version) => self.stuck = Some(version),
            Some(version) => {
                let wanted = KubernetesVersion::parse(&version).unwrap();
                let etcd = wanted.etcd_tag(Epoch::CURRENT);
                if self
                    .members
                    .values()
                    .any(|member| member.as_str() < etcd && !member.starts_with("restore"))
                {
                    self.violated("API servers came before their etcd");
                }
                if self.highest.as_ref().is_some_and(|highest| wanted.number() < highest.number()) {
                    self.violated("an older API server served again");
                }
                self.highest = Some(wanted);
                self.stuck = None;
                self.servers = vec![version; self.replicas("Deployment", "demo-apiserver")];
            }
            None => (self.servers, self.stuck) = (Vec::new(), None),
        }
        for name in ["demo-controller-manager", "demo-scheduler"] {
            let Some(version) = self.template("Deployment", name) else {
                self.controllers.remove(name);
                continue;
            };
            if self.servers.iter().any(|server| number(server) < number(&version)) {
                self.violated("controllers lead API servers");
            }
            self.controllers.insert(name, version);
        }
    }

    /// Pods of a restore, each with a directory that it makes once.
    fn restore(&mut self, version: &str) {
        if self.members.values().any(|member| member != version) {
            self.violated("members and pods of a restore at the same time");
        }
        let (_, set) = &self.objects[&Self::identity("StatefulSet", "demo-etcd")];
        let text = set.data.to_string();
        let value = |flag: &str| text.split_once(flag).unwrap().1.split('"').next().unwrap().to_owned();
        let (backup, directory) = (value("--backup="), value("--to=/var/lib/etcd/"));
        for ordinal in 0..3 {
            let volume = self.volumes.entry(ordinal).or_default();
            volume.entry(directory.clone()).or_insert_with(|| format!("backup {backup}"));
            self.members.insert(ordinal, version.to_owned());
        }
    }

    /// Members start on the directory that their file names. Who finds none begins with nothing.
    fn run_members(&mut self) {
        if self.members.values().any(|member| member.starts_with("restore-")) {
            self.violated("members and pods of a restore at the same time");
        }
        let (_, set) = &self.objects[&Self::identity("StatefulSet", "demo-etcd")];
        let text = set.data.to_string();
        let suffix = text.split_once("$(POD_NAME)").unwrap().1.split('"').next().unwrap().to_owned();
        let files =
            ObjectIdentity { api_version: "v1".to_owned(), ..Self::identity("ConfigMap", "demo-etcd") };
        let files = self.objects[&files].1.data["data"].clone();
        let is_asked = self.control_plane.spec.settings.etcd.as_ref().unwrap().restore.is_some();
        let mut found = Vec::new();
        for ordinal in self.members.keys().copied().collect::<Vec<_>>() {
            let Some(file) = files[format!("demo-etcd-{ordinal}{suffix}")].as_str() else {
                // It does not start, and tries again.
                continue;
            };
            let directory =
                file.split_once("data-dir: ").unwrap().1.lines().next().unwrap().trim_matches('"');
            let directory = directory.strip_prefix("/var/lib/etcd/").unwrap().to_owned();
            let volume = self.volumes.entry(ordinal).or_default();
            let is_empty = !volume.contains_key(&directory);
            found.push(volume.entry(directory).or_insert_with(|| "written here".to_owned()).clone());
            if is_empty && is_asked {
                self.violated("a member started empty where a restore was asked for");
            }
        }
        if found.windows(2).any(|pair| pair[0] != pair[1]) {
            self.violated("members have data of different clusters");
        }
    }

    pub(super) fn write(&mut self, write: &flow::Write) {
        match &write.action {
            flow::Action::Itself(_) => {
                let is_of_etcd = write.id.verb == "record" && write.id.name == names::ETCD_ANNOTATION;
                if is_of_etcd && !self.is_running("StatefulSet", "demo-etcd") {
                    self.violated("etcd was recorded before it ran");
                }
                write.on_itself(&mut self.control_plane);
            }
            flow::Action::Change { fields, .. } if write.id.kind == "infrastructure" => {
                if self.infrastructure.host.is_empty() {
                    let endpoint = fields["spec"]["controlPlaneEndpoint"].clone();
                    self.infrastructure = serde_json::from_value(endpoint).unwrap();
                } else {
                    self.violated("an endpoint was overwritten");
                }
            }
            flow::Action::Change { target, fields } if target.kind == "Secret" => {
                let finalizers: Vec<String> =
                    serde_json::from_value(fields["metadata"]["finalizers"].clone()).unwrap();
                for place in [&mut self.secrets, &mut self.copies] {
                    for facts in place.values_mut().filter(|facts| facts.uid.as_ref() == Some(&target.uid)) {
                        facts.finalizers.clone_from(&finalizers);
                    }
                    place.retain(|_, facts| !facts.is_deleting || !facts.finalizers.is_empty());
                }
                let is_somewhere = |material: &Material| {
                    self.secrets.contains_key(material) || self.copies.contains_key(material)
                };
                if self.control_plane.metadata.deletion_timestamp.is_none()
                    && !Material::IRREPLACEABLE.iter().all(is_somewhere)
                {
                    self.violated("a key is nowhere");
                }
            }
            flow::Action::Change { fields, .. } => {
                let served = &fields["metadata"]["annotations"][names::SERVED_ANNOTATION];
                self.served = served.as_str().map(str::to_owned);
            }
            flow::Action::Delete { target, .. } => {
                self.delete(&Self::identity(&target.kind, &target.name));
            }
            flow::Action::Create { .. } | flow::Action::Evict { .. } => {
                self.violated("something was made that is not in the plan");
            }
        }
    }

    /// Makes a copy of a Secret, or a Secret of its copy.
    pub(super) fn copy(&mut self, mint: &Mint) -> Outcome {
        let (from, to) = match mint.why {
            MintReason::Deleted => (&self.secrets, &self.copies),
            _ => (&self.copies, &self.secrets),
        };
        let Some(source) = from.get(&mint.material).cloned() else { return Outcome::Stale };
        if to.contains_key(&mint.material) {
            return Outcome::Stale;
        }
        let name = mint.secret.metadata.name.clone().unwrap_or_default();
        let finalizers = mint.secret.metadata.finalizers.clone().unwrap_or_default();
        let facts = SecretFacts {
            uid: Some(format!("uid of {name} again")),
            is_deleting: false,
            finalizers,
            ..source
        };
        let fingerprint = facts.fingerprint.clone();
        match mint.why {
            MintReason::Deleted => self.copies.insert(mint.material, facts),
            _ => self.secrets.insert(mint.material, facts),
        };
        Outcome::Created(fingerprint)
    }

    pub(super) fn delete(&mut self, object: &ObjectIdentity) {
        let has_api_server = self.exists("Deployment", "demo-apiserver");
        let is_leaving = self.control_plane.metadata.deletion_timestamp.is_some();
        if object.kind == "StatefulSet" && has_api_server && is_leaving {
            self.violated("etcd went before the API server");
        }
        if object.kind == "PersistentVolumeClaim" && self.exists("StatefulSet", "demo-etcd") {
            self.violated("a volume went before etcd");
        }
        let is_copy = object.name.ends_with("-copy");
        if object.kind == "Secret" && !is_copy && (has_api_server || self.exists("StatefulSet", "demo-etcd"))
        {
            self.violated("keys went before what uses them");
        }
        let names = Names::of(&self.control_plane, "demo").unwrap();
        for (place, is_copy) in [(&mut self.secrets, false), (&mut self.copies, true)] {
            for (material, facts) in place.iter_mut() {
                let name = if is_copy { names.copy(*material) } else { names.secret(*material) };
                if object.kind == "Secret" && name == object.name && !facts.finalizers.is_empty() {
                    // It is there until its finalizers are gone.
                    facts.is_deleting = true;
                    return;
                }
            }
        }
        self.deleting.insert(object.clone());
    }
}
