//! kube-proxy, as tenants have it. It leaves the limits of connection tracking alone, because setting them fails inside
//! a machine.

use hangar_plan::hosted_control_plane::addons::KubeProxy;
use hangar_plan::pieces::plain_container;
use serde_json::{Value, json};

use super::{AddonOptions, pod};

pub(super) fn objects(options: &AddonOptions) -> Vec<Value> {
    let kube_proxy = KubeProxy {
        pod_ranges: options.pod_range.to_string(),
        api_server: &options.api_server.endpoint(),
        priority_class: "system-node-critical",
        container: plain_container("kube-proxy", &options.images.kube_proxy, ("10m", "64Mi")),
        flags: Vec::new(),
        // The first Services become rules as they come instead of a second later.
        fields: vec![("/nftables/minSyncPeriod", json!("100ms"))],
    };
    pod::values(&kube_proxy.objects())
}
