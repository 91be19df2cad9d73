//! Finds the cloud objects that a specification names by id or by filter.

use hangar_api::infrastructure::v1beta1::{
    ImageParam, NetworkParam, ResourceFilter, RouterParam, SecurityGroupParam, ServerGroupParam,
    SubnetFilter, SubnetParam,
};
use hangar_openstack::{
    Error, Filter, ImageQuery, NetworkClient, NetworkId, NetworkQuery, NetworkResource, Query, RouterId,
    RouterQuery, SecurityGroupId, SecurityGroupQuery, Session, SubnetId, SubnetQuery,
};
use hangar_plan::flow::Read;
use hangar_plan::openstack::{self as plan, Flavor, Group, Image, Network, Router, ServerGroupId, Subnet};

use super::{CloudId, convert, words};

/// Everything that a list shows, as facts.
pub(crate) fn read_all<T, U>(answer: Result<Vec<T>, Error>, convert: impl Fn(T) -> U) -> Read<U> {
    match answer {
        Ok(items) => Read::found(items.into_iter().map(convert)),
        Err(error) => Read::unknown(words(&error)),
    }
}

/// The one object that an id names.
fn read_one<T, U>(answer: Result<Option<T>, Error>, convert: impl Fn(T) -> U) -> Read<U> {
    read_all(answer.map(|item| item.into_iter().collect()), convert)
}

async fn by_id<R: NetworkResource, U>(
    client: &NetworkClient,
    id: &R,
    convert: impl Fn(R::Item) -> U,
) -> Read<U> {
    read_one(client.get(id).await, convert)
}

async fn by_query<Q: Query, U>(
    client: &NetworkClient,
    query: &Q,
    convert: impl Fn(<Q::Id as NetworkResource>::Item) -> U,
) -> Read<U> {
    read_all(client.list(query).await, convert)
}

/// Networks that a parameter names; only external ones where that is asked.
pub(crate) async fn find_network(
    client: &NetworkClient,
    param: &NetworkParam,
    is_external: Option<bool>,
) -> Read<Network> {
    match param {
        NetworkParam::Id(id) => by_id(client, &NetworkId::from(id.0.as_str()), convert::network).await,
        NetworkParam::Filter(filter) => {
            let query = NetworkQuery { filter: resource_filter(filter), is_external };
            by_query(client, &query, convert::network).await
        }
    }
}

/// Routers that a parameter names.
pub(crate) async fn find_router(client: &NetworkClient, param: &RouterParam) -> Read<Router> {
    match param {
        RouterParam::Id(id) => by_id(client, &RouterId::from(id.0.as_str()), convert::router).await,
        RouterParam::Filter(filter) => {
            by_query(client, &RouterQuery { filter: resource_filter(filter) }, convert::router).await
        }
    }
}

/// Security groups that a parameter names.
pub(crate) async fn find_group(client: &NetworkClient, param: &SecurityGroupParam) -> Read<Group> {
    match param {
        SecurityGroupParam::Id(id) => {
            by_id(client, &SecurityGroupId::from(id.0.as_str()), convert::group).await
        }
        SecurityGroupParam::Filter(filter) => {
            by_query(client, &SecurityGroupQuery { filter: resource_filter(filter) }, convert::group).await
        }
    }
}

/// Subnets that a parameter names, on a network where one is known.
pub(crate) async fn find_subnet(
    client: &NetworkClient,
    param: &SubnetParam,
    network_id: Option<&plan::NetworkId>,
) -> Read<Subnet> {
    match param {
        SubnetParam::Id(id) => by_id(client, &SubnetId::from(id.0.as_str()), convert::subnet).await,
        SubnetParam::Filter(filter) => {
            let query = SubnetQuery { network_id: network_id.map(CloudId::to_cloud), ..subnet_query(filter) };
            by_query(client, &query, convert::subnet).await
        }
    }
}

/// Images that a parameter names.
pub(crate) async fn find_image(session: &Session, param: &ImageParam) -> Read<Image> {
    match param {
        ImageParam::Id(id) => read_one(session.image().image(&id.0.as_str().into()).await, convert::image),
        ImageParam::Filter(filter) => {
            let query =
                ImageQuery { name: filter.name.clone(), tags: filter.tags.clone(), ..ImageQuery::default() };
            read_all(session.image().images(&query).await, convert::image)
        }
        ImageParam::ImageRef(reference) => {
            Read::unknown(format!("imageRef {} is not supported", reference.name))
        }
    }
}

/// A flavor: by id, else by name among all.
pub(crate) async fn find_flavor(
    session: &Session,
    id: Option<&plan::FlavorId>,
    name: Option<&str>,
) -> Read<Flavor> {
    if let Some(id) = id {
        return read_one(session.compute().flavor(&id.to_cloud()).await, convert::flavor);
    }
    let all = read_all(session.compute().flavors().await, convert::flavor);
    all.filter(|flavor| Some(flavor.name.as_str()) == name)
}

/// The id of a server group.
pub(crate) async fn find_server_group(session: &Session, param: &ServerGroupParam) -> Read<ServerGroupId> {
    match param {
        ServerGroupParam::Id(id) => Read::One(id.0.as_str().into()),
        ServerGroupParam::Filter(filter) => {
            let groups = session.compute().server_groups().await.map(|groups| {
                let wanted = |name: &String| filter.name.as_ref().is_none_or(|wanted| wanted == name);
                groups.into_iter().filter(|group| wanted(&group.name)).collect()
            });
            read_all(groups, |group| CloudId::from_cloud(&group.id))
        }
    }
}

fn given(text: &str) -> Option<String> {
    (!text.is_empty()).then(|| text.to_owned())
}

/// The cloud compares text, so an address has to be spelled as it spells it. What is none is asked for as it stands: a
/// filter that is left out would find somebody else's subnet.
fn address(text: &str) -> Option<String> {
    text.parse::<std::net::IpAddr>().map_or_else(|_| given(text), |address| Some(address.to_string()))
}

fn resource_filter(filter: &ResourceFilter) -> Filter {
    let tags = |tags: &[hangar_api::infrastructure::v1beta1::NeutronTag]| {
        tags.iter().map(|tag| tag.0.clone()).collect::<Vec<_>>()
    };
    Filter {
        id: None,
        name: given(&filter.name),
        description: given(&filter.description),
        project_id: given(&filter.project_id),
        tags: tags(&filter.tags),
        tags_any: tags(&filter.tags_any),
        not_tags: tags(&filter.not_tags),
        not_tags_any: tags(&filter.not_tags_any),
    }
}

fn subnet_query(filter: &SubnetFilter) -> SubnetQuery {
    let shared = ResourceFilter {
        name: filter.name.clone(),
        description: filter.description.clone(),
        project_id: filter.project_id.clone(),
        tags: filter.tags.clone(),
        tags_any: filter.tags_any.clone(),
        not_tags: filter.not_tags.clone(),
        not_tags_any: filter.not_tags_any.clone(),
    };
    SubnetQuery {
        filter: resource_filter(&shared),
        network_id: None,
        ip_version: filter.ip_version,
        gateway_ip: address(&filter.gateway_ip),
        cidr: given(&filter.cidr),
        ipv6_address_mode: given(&filter.ipv6_address_mode),
        ipv6_ra_mode: given(&filter.ipv6_router_advertisement_mode),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_subnets_filter_loses_nothing() {
        let filter: SubnetFilter =
            serde_json::from_value(serde_json::json!({"gatewayIP": "FD00::0:1", "ipVersion": 5})).unwrap();
        let query = subnet_query(&filter);
        assert_eq!((query.gateway_ip.as_deref(), query.ip_version), (Some("fd00::1"), Some(5)));
        let malformed: SubnetFilter =
            serde_json::from_value(serde_json::json!({"gatewayIP": "10.6.0"})).unwrap();
        assert_eq!(subnet_query(&malformed).gateway_ip.as_deref(), Some("10.6.0"));
        assert_eq!(subnet_query(&SubnetFilter::default()).gateway_ip, None);
    }
}
