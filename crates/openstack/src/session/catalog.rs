//! The catalogue that comes with a token, and the addresses in it.
//!
//! Clouds register Nova with its version, Neutron and Glance without; some do it the other way round, and older ones
//! put the project's id behind the version. A version anywhere in the path is kept; without one, the version that this
//! client uses is appended.

use serde::Deserialize;

use crate::{Error, Interface, Service, lenient::null_as_default};

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(transparent)]
pub(super) struct Catalog {
    services: Vec<Entry>,
}

#[derive(Clone, Debug, Deserialize)]
struct Entry {
    #[serde(rename = "type")]
    service_type: String,
    #[serde(default)]
    endpoints: Vec<Endpoint>,
}

#[derive(Clone, Debug, Deserialize)]
struct Endpoint {
    interface: String,
    #[serde(default, deserialize_with = "null_as_default")]
    region: String,
    #[serde(default, deserialize_with = "null_as_default")]
    region_id: String,
    url: String,
}

impl Endpoint {
    fn is_for(&self, region: &str, interface: Interface) -> bool {
        self.interface.trim_end_matches("URL") == interface.as_str() && self.is_in(region)
    }

    fn is_in(&self, region: &str) -> bool {
        region.is_empty() || self.region == region || self.region_id == region
    }
}

impl Catalog {
    /// The region whose endpoint of a service is used.
    pub(super) fn region(
        &self,
        service: Service,
        region: Option<&str>,
        interface: Interface,
    ) -> Option<&str> {
        let mut endpoints = self.endpoints(service);
        let found = endpoints.find(|endpoint| endpoint.is_for(region.unwrap_or_default(), interface))?;
        Some(if found.region_id.is_empty() { &found.region } else { &found.region_id })
    }

    fn endpoints(&self, service: Service) -> impl Iterator<Item = &Endpoint> + Clone {
        let entries = self.services.iter().filter(move |entry| entry.service_type == service.as_str());
        entries.flat_map(|entry| &entry.endpoints)
    }

    /// Where a service is, with its version.
    pub(super) fn base(
        &self,
        service: Service,
        region: Option<&str>,
        interface: Interface,
    ) -> Result<String, Error> {
        let region = region.unwrap_or_default();
        let mut endpoints = self.endpoints(service);
        let found = endpoints.clone().find(|endpoint| endpoint.is_for(region, interface));
        if let Some(endpoint) = found {
            return Ok(versioned(&endpoint.url, version(service)));
        }
        let known = if endpoints.clone().next().is_none() {
            let mut types: Vec<_> = self.services.iter().map(|entry| entry.service_type.as_str()).collect();
            types.sort_unstable();
            if types.is_empty() { "nothing at all".to_owned() } else { types.join(", ") }
        } else {
            let mut places: Vec<_> = endpoints
                .by_ref()
                .map(|endpoint| format!("{} in {:?}", endpoint.interface, endpoint.region))
                .collect();
            places.sort_unstable();
            places.join(", ")
        };
        Err(Error::NoEndpoint { service, region: region.to_owned(), interface: interface.as_str(), known })
    }
}

fn version(service: Service) -> &'static str {
    match service {
        Service::Identity => "v3",
        Service::Compute => "v2.1",
        Service::Network => "v2.0",
        Service::Image => "v2",
    }
}

fn versioned(url: &str, version: &str) -> String {
    let url = url.trim_end_matches('/');
    let path = url.split_once("://").map_or(url, |(_, rest)| rest);
    let is_version = |segment: &str| {
        segment.strip_prefix('v').is_some_and(|number| {
            number.starts_with(|first: char| first.is_ascii_digit())
                && number.chars().all(|character| character.is_ascii_digit() || character == '.')
        })
    };
    if path.split('/').skip(1).any(is_version) { url.to_owned() } else { format!("{url}/{version}") }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn catalog() -> Catalog {
        serde_json::from_value(json!([
            { "type": "network", "name": "neutron", "endpoints": [
                { "interface": "admin", "region": "one", "region_id": "one", "url": "http://admin:9696" },
                { "interface": "public", "region": "one", "region_id": "one", "url": "http://one:9696/" },
                { "interface": "public", "region": null, "region_id": "two", "url": "http://two:9696/networking" },
            ] },
            { "type": "compute", "endpoints": [
                { "interface": "public", "region": "one", "url": "http://one/compute/v2.1/f00" },
            ] },
            { "type": "image", "endpoints": [{ "interface": "internalURL", "region": "one", "url": "http://v2/glance" }] },
            { "type": "empty" },
        ]))
        .unwrap()
    }

    #[test]
    fn an_endpoint_is_chosen_by_region_and_interface() {
        let catalog = catalog();
        let base = |service, region, interface| catalog.base(service, region, interface).unwrap();
        assert_eq!(base(Service::Network, None, Interface::Public), "http://one:9696/v2.0");
        assert_eq!(base(Service::Network, Some("two"), Interface::Public), "http://two:9696/networking/v2.0");
        assert_eq!(base(Service::Network, Some("one"), Interface::Admin), "http://admin:9696/v2.0");
        assert_eq!(base(Service::Compute, Some("one"), Interface::Public), "http://one/compute/v2.1/f00");
        assert_eq!(
            base(Service::Image, None, Interface::Internal),
            "http://v2/glance/v2",
            "v2 is the host here"
        );
    }

    #[test]
    fn a_missing_one_is_told_with_what_there_is() {
        let text =
            |service, region, interface| catalog().base(service, region, interface).unwrap_err().to_string();
        assert_eq!(
            text(Service::Compute, Some("three"), Interface::Public),
            "the catalogue has no public endpoint of compute in region \"three\"; it has public in \"one\""
        );
        assert_eq!(
            text(Service::Identity, None, Interface::Public),
            "the catalogue has no public endpoint of identity in region \"\"; it has compute, empty, image, network"
        );
    }
}
