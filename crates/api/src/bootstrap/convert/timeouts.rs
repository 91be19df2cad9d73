//! Conversion of timeouts: two duration strings in unrelated places of the older version, one section per command in
//! the newer one.
//!
//! `apiServer.timeoutForControlPlane` is about `init` and `join` alike and goes into both sections. On the way back the
//! value of `init` counts; if they differ, the stash keeps that of `join`.

use crate::bootstrap::v1beta2::Timeouts;
use crate::conversion::absence::set;
use crate::conversion::go_duration;

/// The timeouts of the older version.
pub(super) struct OlderTimeouts {
    /// `clusterConfiguration.apiServer.timeoutForControlPlane`
    pub control_plane: Option<String>,
    /// `joinConfiguration.discovery.timeout`
    pub discovery: Option<String>,
}

/// The timeouts of the newer version.
pub(super) struct NewerTimeouts {
    /// `initConfiguration.timeouts`
    pub init: Option<Timeouts>,
    /// `joinConfiguration.timeouts`
    pub join: Option<Timeouts>,
}

pub(super) fn up(timeouts: &OlderTimeouts) -> NewerTimeouts {
    let OlderTimeouts { control_plane, discovery } = timeouts;
    let control_plane = go_duration::to_seconds(control_plane.as_deref());
    let section = |tls_bootstrap_seconds| {
        set(Timeouts {
            control_plane_component_health_check_seconds: control_plane,
            tls_bootstrap_seconds,
            discovery_seconds: None,
            etcd_api_call_seconds: None,
            kubelet_health_check_seconds: None,
            kubernetes_api_call_seconds: None,
        })
    };
    NewerTimeouts { init: section(None), join: section(go_duration::to_seconds(discovery.as_deref())) }
}

pub(super) fn down(timeouts: NewerTimeouts) -> OlderTimeouts {
    let NewerTimeouts { init, join } = timeouts;
    let [(init, _), (join, discovery)] = [init, join].map(|section| {
        let Timeouts {
            control_plane_component_health_check_seconds,
            tls_bootstrap_seconds,
            discovery_seconds: _,
            etcd_api_call_seconds: _,
            kubelet_health_check_seconds: _,
            kubernetes_api_call_seconds: _,
        } = section.unwrap_or_default();
        (control_plane_component_health_check_seconds, tls_bootstrap_seconds)
    });
    OlderTimeouts {
        control_plane: go_duration::from_seconds(init.or(join)),
        discovery: go_duration::from_seconds(discovery),
    }
}
