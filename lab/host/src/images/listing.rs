//! Lists the images of containerd in a machine, and finds pods that run a replaced image.
//!
//! A reference, which manifests use, may be moved to another image. The id that a pod reports, the digest of the
//! image's configuration, never changes. So a pod runs a replaced image if its id is not the one that its reference
//! leads to. An image whose id is not known does not count as replaced.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{ContainerStatus, Pod};
use serde_json::Value;

/// Images by reference.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Listing {
    images: BTreeMap<String, Found>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Found {
    digest: String,
    id: Option<String>,
}

impl Listing {
    /// Reads what `ctr images ls` prints; `content` gives what a digest stands for.
    pub fn parse(text: &str, content: impl Fn(&str) -> Option<Vec<u8>>) -> Self {
        let row = |line: &str| {
            let mut words = line.split_whitespace();
            let (reference, digest) = (words.next()?, words.nth(1)?);
            // The runtime's own names for images begin as digests do.
            if reference.starts_with("sha256:") || !digest.starts_with("sha256:") {
                return None;
            }
            let id = content(digest).and_then(|manifest| id(&manifest));
            Some((reference.to_owned(), Found { digest: digest.to_owned(), id }))
        };
        Self { images: text.lines().filter_map(row).collect() }
    }

    /// The digest that a reference stands for.
    pub fn digest(&self, reference: &str) -> Option<&str> {
        self.images.get(reference).map(|found| found.digest.as_str())
    }

    /// Whether a container of this pod runs from an image whose reference stands for another one now.
    pub fn is_replaced(&self, pod: &Pod) -> bool {
        let wanted = |status: &ContainerStatus| {
            let containers = &pod.spec.as_ref()?.containers;
            let container = containers.iter().find(|container| container.name == status.name)?;
            self.images.get(container.image.as_deref()?)?.id.as_deref()
        };
        let statuses = pod.status.as_ref().and_then(|status| status.container_statuses.as_deref());
        statuses.unwrap_or_default().iter().any(|status| {
            status.image_id.starts_with("sha256:")
                && wanted(status).is_some_and(|wanted| wanted != status.image_id)
        })
    }
}

/// The image's id in a manifest. A list of manifests for several architectures has none.
fn id(manifest: &[u8]) -> Option<String> {
    let manifest: Value = serde_json::from_slice(manifest).ok()?;
    Some(manifest.pointer("/config/digest")?.as_str()?.to_owned())
}

#[cfg(test)]
pub(crate) mod tests {
    use serde_json::json;

    use super::*;

    const TEXT: &str = "\
REF                        TYPE                                       DIGEST        SIZE     PLATFORMS   LABELS
example.org/list:v1        application/vnd.oci.image.index.v1+json    sha256:list   53.3 MiB linux/amd64 -
example.org/proxy:v1       application/vnd.oci.image.manifest.v1+json sha256:new    53.3 MiB linux/amd64 -
example.org/unreadable:v1  application/vnd.oci.image.manifest.v1+json sha256:gone   53.3 MiB linux/amd64 -
sha256:0123                application/vnd.oci.image.manifest.v1+json sha256:old    53.2 MiB linux/amd64 -
";

    /// Of `example.org/proxy:v1`, which is `sha256:4567`, and others of which no more is known.
    pub(crate) fn listing() -> Listing {
        Listing::parse(TEXT, |digest| match digest {
            "sha256:new" => Some(json!({"config": {"digest": "sha256:4567"}}).to_string().into_bytes()),
            "sha256:list" => Some(json!({"manifests": []}).to_string().into_bytes()),
            _ => None,
        })
    }

    /// A pod that runs the image with this id under this reference.
    pub(crate) fn pod(reference: &str, id: &str) -> Pod {
        let status = json!({
            "name": "proxy", "image": reference, "imageID": id, "ready": true, "restartCount": 0,
        });
        serde_json::from_value(json!({
            "metadata": {"name": "proxy"},
            "spec": {"containers": [{"name": "proxy", "image": reference}]},
            "status": {"containerStatuses": [status]},
        }))
        .unwrap()
    }

    #[test]
    fn a_pod_with_an_older_image_is_found() {
        let listing = listing();
        assert_eq!(listing.digest("example.org/proxy:v1"), Some("sha256:new"));
        assert_eq!((listing.digest("REF"), listing.digest("sha256:0123")), (None, None));
        assert!(listing.is_replaced(&pod("example.org/proxy:v1", "sha256:0123")));
        assert!(!listing.is_replaced(&pod("example.org/proxy:v1", "sha256:4567")));
    }

    #[test]
    fn what_is_not_known_is_not_replaced() {
        let listing = listing();
        for (reference, id) in [
            ("example.org/proxy:v1", ""),
            ("example.org/proxy:v1", "example.org/proxy@sha256:old"),
            ("example.org/list:v1", "sha256:0123"),
            ("example.org/unreadable:v1", "sha256:0123"),
            ("example.org/other:v1", "sha256:0123"),
        ] {
            assert!(!listing.is_replaced(&pod(reference, id)), "{reference} {id}");
        }
    }
}
