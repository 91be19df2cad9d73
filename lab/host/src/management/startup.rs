//! Decides which programs have to start again when a certificate was renewed, a setting changed or an image was
//! replaced: those that read it only when they start.
//!
//! Each program has a *seal*: a hash of what it would read now. A static pod carries its seal as an annotation, so that
//! a manifest with another seal is another pod to kubelet; the seals of services are recorded beside the machine. If
//! the seals are equal, nothing is touched. Seals are compared with what is on disk and never remembered in a process,
//! so the next `up` finishes one that was killed between renewing and starting again.
//!
//! What each program reads, and when:
//! - **etcd** reads its certificates again for every connection; only its authority counts.
//! - **kube-apiserver** would notice most of its files. All of them count nevertheless: it has a certificate for calls
//!   to itself, which it makes when it starts and never again, and which ends after about a year like the others.
//! - **kube-controller-manager, kube-scheduler, kubelet** and our own provisioner read kubeconfigs, with the
//!   certificate inside, once.
//! - kube-proxy, CoreDNS, kube-vip and the manager have tokens of their accounts, which kubelet renews.

use std::collections::BTreeMap;

use sha2::{Digest, Sha256};

use super::control_plane::Component;

/// The annotation with a static pod's seal.
pub const SEAL: &str = "hangar.cluster.x-k8s.io/started-with";

/// Files below /etc/kubernetes that count for kubelet.
pub const KUBELET_FILES: &[&str] = &["kubelet.conf"];
/// Those that count for the provisioner.
pub const PROVISIONER_FILES: &[&str] = &["provisioner.conf"];

impl Component {
    /// Files below /etc/kubernetes that count. Of a pair the certificate is enough: they are only made together.
    pub fn files(self) -> &'static [&'static str] {
        match self {
            Self::Etcd => &["pki/etcd/ca.crt"],
            Self::ApiServer => &[
                "pki/apiserver.crt",
                "pki/apiserver-etcd-client.crt",
                "pki/apiserver-kubelet-client.crt",
                "pki/ca.crt",
                "pki/etcd/ca.crt",
                "pki/front-proxy-ca.crt",
                "pki/front-proxy-client.crt",
                "pki/sa.pub",
            ],
            Self::ControllerManager => &["controller-manager.conf", "pki/ca.crt", "pki/sa.pub"],
            Self::Scheduler => &["scheduler.conf"],
        }
    }
}

/// The seal of these named contents.
pub fn seal<'a>(contents: impl IntoIterator<Item = (&'a str, &'a [u8])>) -> String {
    let mut hasher = Sha256::new();
    for (name, content) in contents {
        // Lengths first: nothing can move from one to the next.
        hasher.update(format!("{name} {}\0", content.len()));
        hasher.update(content);
    }
    let number = hasher.finalize().iter().take(8).fold(0_u64, |number, byte| number << 8 | u64::from(*byte));
    format!("{number:016x}")
}

/// The services that were started with something else. One that is not known may have been.
pub fn outdated<'a>(
    started: &BTreeMap<String, String>,
    wanted: &'a BTreeMap<String, String>,
) -> Vec<&'a str> {
    let is_other = |(name, seal): &(&String, &String)| started.get(*name) != Some(*seal);
    wanted.iter().filter(is_other).map(|(name, _)| name.as_str()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seal_changes_with_any_content() {
        let of = |contents: &[(&str, &str)]| {
            seal(contents.iter().map(|(name, content)| (*name, content.as_bytes())))
        };
        let first = of(&[("a", "one"), ("b", "two")]);
        assert_eq!(first, of(&[("a", "one"), ("b", "two")]));
        assert_eq!(first.len(), 16);
        let others = [
            of(&[("a", "one"), ("b", "three")]),
            of(&[("a", "onetwo"), ("b", "")]),
            of(&[("a", "one")]),
            of(&[("a", "one"), ("c", "two")]),
        ];
        assert!(!others.contains(&first));
    }

    #[test]
    fn only_services_with_another_seal_start_again() {
        let seals = |list: &[(&str, &str)]| {
            list.iter().map(|(name, seal)| ((*name).to_owned(), (*seal).to_owned())).collect()
        };
        let wanted: BTreeMap<String, String> = seals(&[("kubelet", "1"), ("provisioner", "2")]);
        assert_eq!(outdated(&wanted, &wanted), Vec::<&str>::new());
        assert_eq!(outdated(&seals(&[("kubelet", "0"), ("provisioner", "2")]), &wanted), ["kubelet"]);
        assert_eq!(outdated(&BTreeMap::new(), &wanted), ["kubelet", "provisioner"]);
    }

    #[test]
    fn etcd_goes_on_when_its_own_certificates_are_renewed() {
        assert!(Component::Etcd.files().iter().all(|file| file.ends_with("ca.crt")));
    }
}
