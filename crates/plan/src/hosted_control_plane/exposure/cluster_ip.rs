//! A Service that only the management cluster's own network reaches.

use std::net::IpAddr;

use hangar_api::conditions::Waiting;
use hangar_api::contract::Endpoint;
use k8s_openapi::api::core::v1::ServiceSpec;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use super::{Exposed, MANAGEMENT_CLUSTER, Observed, Validated, Way, parsed};

pub(super) struct ClusterIp;

impl Way for ClusterIp {
    fn address(
        &self,
        observed: &Observed,
        validated: &Validated<'_>,
        exposed: Exposed,
    ) -> Result<Endpoint, Waiting> {
        let host = exposed.facts(observed)?.cluster_ip.clone();
        let host = host.ok_or_else(|| Waiting::new(MANAGEMENT_CLUSTER, "an address of the Service"))?;
        Ok(Endpoint { host, port: i32::from(exposed.ports(validated).0) })
    }

    fn targets(&self, observed: &Observed, _: &Validated<'_>) -> Result<Vec<IpAddr>, Waiting> {
        Ok(parsed(&Exposed::Api.facts(observed)?.cluster_ip))
    }

    fn shape(&self, _: &Validated<'_>, _: Exposed, _: &mut ObjectMeta, spec: &mut ServiceSpec) {
        spec.type_ = Some("ClusterIP".to_owned());
    }

    fn is_service_reached(&self) -> bool {
        true
    }

    fn present(&self, observed: &Observed, validated: &Validated<'_>) -> Option<(&'static str, Vec<IpAddr>)> {
        Some(("the Service", self.targets(observed, validated).ok()?))
    }
}
