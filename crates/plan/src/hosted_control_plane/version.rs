//! Kubernetes versions, and the image tags that belong to each minor version.

use std::fmt;

use hangar_api::controlplane::v1alpha1::{Container, HostedControlPlaneSettings};

use super::epoch::Epoch;
use crate::admission::FieldError;

/// Oldest minor: kubeadm's v1beta4, which workers join by, begins with it.
pub(super) const OLDEST_MINOR: u32 = 31;
/// Newest minor that has a row in the tables below.
pub(super) const NEWEST_MINOR: u32 = 37;

/// A full Kubernetes version. Ordered by number; what follows the patch has no say, as in the API's own rule.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct KubernetesVersion {
    minor: u32,
    patch: u32,
    text: String,
}

impl KubernetesVersion {
    /// Reads a version with or without its `v`; it must be complete, since it is the tag of images.
    pub fn parse(text: &str) -> Option<Self> {
        let number = text.strip_prefix('v').unwrap_or(text);
        let mut parts = number.splitn(3, '.');
        let (major, minor, rest) = (parts.next()?, parts.next()?, parts.next()?);
        let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        let patch: u16 = rest.get(..digits)?.parse().ok()?;
        let is_tail =
            rest.get(digits..).is_some_and(|tail| tail.is_empty() || tail.starts_with(['-', '+', '_']));
        let minor: u16 = minor.parse().ok()?;
        // A `+` cannot be in a tag; registries, and labels of pods, have `_` there.
        (major == "1" && is_tail).then(|| Self {
            minor: minor.into(),
            patch: patch.into(),
            text: format!("v{}", number.replace('+', "_")),
        })
    }

    pub fn minor(&self) -> u32 {
        self.minor
    }

    /// Minor and patch: what versions are compared by.
    pub fn number(&self) -> (u32, u32) {
        (self.minor, self.patch)
    }

    /// The version without what follows the patch, which whoever reports a version may have chosen.
    #[must_use]
    pub fn plain(&self) -> Self {
        let Self { minor, patch, .. } = *self;
        Self { minor, patch, text: format!("v1.{minor}.{patch}") }
    }

    /// Whether there are rows for it in the tables.
    pub fn is_supported(&self) -> bool {
        (OLDEST_MINOR..=NEWEST_MINOR).contains(&self.minor)
    }

    /// Why it cannot be run, if so.
    pub(super) fn refusal(path: &str, version: &Self) -> Option<FieldError> {
        (!version.is_supported()).then(|| {
            let why = format!("versions from 1.{OLDEST_MINOR} to 1.{NEWEST_MINOR} can be run");
            FieldError::invalid(path, version.tag(), why)
        })
    }

    /// The tag of Kubernetes' own images.
    pub fn tag(&self) -> &str {
        &self.text
    }

    /// The version as a label value.
    pub fn label(&self) -> String {
        hangar_api::naming::label_value(&self.text)
    }

    /// The tag of etcd's image. One series for 1.31 to 1.36, so that an upgrade among them leaves etcd alone.
    pub fn etcd_tag(&self, Epoch::One: Epoch) -> &'static str {
        if self.minor >= 37 { "3.7.3-0" } else { "3.6.16-0" }
    }

    /// The version of the API server's AuthenticationConfiguration.
    pub fn authentication_api(&self, Epoch::One: Epoch) -> &'static str {
        if self.minor >= 34 { "apiserver.config.k8s.io/v1" } else { "apiserver.config.k8s.io/v1beta1" }
    }

    /// The tag of CoreDNS' image: the last row whose minor is not newer.
    pub fn core_dns_tag(&self, Epoch::One: Epoch) -> &'static str {
        let row = CORE_DNS_TAGS.iter().rev().find(|(minor, _)| *minor <= self.minor);
        row.or(CORE_DNS_TAGS.first()).map_or("", |(_, tag)| tag)
    }
}

impl fmt::Display for KubernetesVersion {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.text)
    }
}

/// Major and minor of an etcd, from the tag of its image.
pub(super) fn etcd_series(tag: &str) -> Option<(u32, u32)> {
    let mut parts = tag.strip_prefix('v').unwrap_or(tag).splitn(3, '.');
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

/// Whether members of this series start with the files that are rendered for them.
pub(super) fn is_etcd_known(series: (u32, u32)) -> bool {
    matches!(series, (3, 6 | 7))
}

/// What is wrong with tags that are given for images. They are recorded as versions, and there is no way back from one that
/// does not exist. A tag that is no version is the user's own.
pub(super) fn refused_tags(settings: &HostedControlPlaneSettings) -> Vec<FieldError> {
    let tag = |container: &Container| container.image.as_ref()?.tag.clone();
    let etcd = settings.etcd.as_ref().and_then(|etcd| tag(&etcd.container));
    let is_unknown = |tag: &String| etcd_series(tag).is_some_and(|series| !is_etcd_known(series));
    let etcd = etcd
        .filter(is_unknown)
        .map(|tag| FieldError::invalid("spec.etcd.image.tag", tag, "etcd 3.6 and 3.7 can be run"));
    let deployment = settings.deployment.as_ref();
    let api_server = deployment.and_then(|deployment| tag(&deployment.api_server.as_ref()?.pod.container));
    let api_server = api_server.and_then(|tag| KubernetesVersion::parse(&tag));
    let api_server = api_server
        .and_then(|version| KubernetesVersion::refusal("spec.deployment.apiServer.image.tag", &version));
    etcd.into_iter().chain(api_server).collect()
}

/// CoreDNS by the first minor it goes with. Its settings are the same for all of them.
const CORE_DNS_TAGS: [(u32, &str); 1] = [(OLDEST_MINOR, "v1.14.7")];

/// The tag of the tunnel's images, for all minors: there is not one for each, and both ends must match.
pub(super) fn konnectivity_tag(Epoch::One: Epoch) -> &'static str {
    "v0.34.0"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_complete_or_none() {
        for text in ["v1.34.10", "1.34.10", "v1.34.10-rc.1", "v1.34.10+vendor.2"] {
            let version = KubernetesVersion::parse(text).unwrap();
            assert_eq!(version.minor(), 34, "{text}");
            assert!(version.is_supported());
        }
        for text in ["", "v1.34", "latest", "v2.0.0", "v1.34.x", "v1.34.1x", "v1.4294967295.0"] {
            assert_eq!(KubernetesVersion::parse(text), None, "{text}");
        }
        assert_eq!(KubernetesVersion::parse("1.34.10+a").unwrap().tag(), "v1.34.10_a");
        assert_eq!(KubernetesVersion::parse("v1.34.10_a"), KubernetesVersion::parse("1.34.10+a"));
        assert!(KubernetesVersion::parse("v1.9.0") < KubernetesVersion::parse("v1.34.0"));
        assert!(!KubernetesVersion::parse("v1.30.4").unwrap().is_supported());
        assert!(!KubernetesVersion::parse("v1.38.0").unwrap().is_supported());
    }

    #[test]
    fn an_upgrade_within_a_series_leaves_etcd_alone() {
        let etcd = |text| KubernetesVersion::parse(text).unwrap().etcd_tag(Epoch::One);
        assert_eq!(etcd("v1.33.0"), etcd("v1.34.10"));
        assert_eq!(etcd("v1.31.0"), "3.6.16-0");
        assert_eq!(etcd("v1.36.4"), "3.6.16-0");
        assert_eq!(etcd("v1.37.1"), "3.7.3-0");
    }
}
