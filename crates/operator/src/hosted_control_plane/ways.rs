//! Reads what the way in needs besides Services, as far as the plan says that it needs it.

use hangar_kit::ObjectKey;
use hangar_kit::watch::Kept;
use hangar_plan::flow::Read;
use hangar_plan::hosted_control_plane::exposure::{Allowed, RouteFacts, Ways, needs};
use hangar_plan::hosted_control_plane::{Names, Observed};
use kube::core::DynamicObject;

use super::ControlPlanes;
use super::observe::is_managed_by;
use crate::context::Context;

/// Why something was not read.
const NOT_NEEDED: &str = "this way in does not need it";

impl ControlPlanes {
    pub(super) async fn look_at_ways(
        &self,
        context: &Context,
        (key, uid): (&ObjectKey, &str),
        observed: &Observed,
        names: &Names,
    ) -> Ways {
        let (needs, ways_in) = (needs(observed), &context.ways_in);
        let mut ways = Ways { route_api: ways_in.route_api().await, ..Ways::unknown(NOT_NEEDED) };
        if let Some(version) = ways.route_api.iter().find_map(|api| api.version) {
            for (read, name) in [
                (&mut ways.route, names.api_server_service()),
                (&mut ways.tunnel_route, names.konnectivity_service()),
            ] {
                let found = ways_in.route(version, &ObjectKey::namespaced(names.namespace(), name)).await;
                let is_ours = |kept: &Kept<DynamicObject>| is_managed_by(kept, uid);
                *read = found.filter(|kept| is_ours(kept)).map(|kept| RouteFacts::of(&kept.value));
            }
        }
        if let Some(reference) = needs.gateway {
            let key = ObjectKey::namespaced(reference.namespace, reference.name);
            let (gateway, class) = ways_in.gateway(&key).await;
            (ways.gateway, ways.class) =
                (gateway.map(|kept| kept.value.clone()), class.map(|kept| kept.value.clone()));
            let listeners = || ways.gateway.iter().flat_map(|gateway| &gateway.listeners);
            if listeners().any(|listener| matches!(listener.allowed, Allowed::Selected(_))) {
                ways.namespace = ways_in.namespace(names.namespace()).await;
            }
        }
        if needs.nodes {
            ways.nodes = ways_in.nodes().await;
        }
        ways.resolved = match needs.name {
            Some(_) if self.is_rehearsed => Read::unknown("a preview looks no names up"),
            Some(name) => self.lookups.look(key, &name).await,
            None => {
                self.lookups.forget(key);
                Read::unknown(NOT_NEEDED)
            }
        };
        ways
    }
}
