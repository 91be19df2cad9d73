//! Subnets over HTTP.

use std::net::IpAddr;

use ipnet::IpNet;
use serde_json::{Value, json};

use super::{changes, create, no_such_resource, show, standard};
use crate::http::{Attributes, Call, Reply, assign, attributes, network_list};
use crate::model::{NewSubnet, Pool, Refusal, Subnet, WantedGateway};

pub(super) fn answer(call: &mut Call<'_>, parts: &[&str]) -> Result<Reply, Refusal> {
    match (call.request.method.as_str(), parts) {
        ("GET", []) => {
            let visible = call.model.subnets.values().filter(|it| call.model.sees_subnet(&call.caller, it));
            network_list(call, "subnets", visible.map(view).collect())
        }
        ("POST", []) => create(call, "subnet", "subnets", make),
        ("GET", [id]) => Ok(show(call, "subnet", view(call.model.subnet(&call.caller, id)?))),
        ("PUT", [id]) => update(call, id),
        ("DELETE", [id]) => call.model.delete_subnet(&call.caller, id).map(|()| Reply::empty(204)),
        _ => Err(no_such_resource()),
    }
}

fn make(call: &mut Call<'_>, mut attributes: Attributes) -> Result<Value, Refusal> {
    let standard = standard::take(call, &mut attributes)?;
    let required = |name: &str| {
        Refusal::bad(format!("Failed to parse request. Required attribute '{name}' not specified"))
    };
    let network = attributes.text("network_id")?.ok_or_else(|| required("network_id"))?;
    let network = call.model.network_mut(&call.caller, &network, "create_subnet")?.id;
    let version: u8 = attributes.number("ip_version")?.ok_or_else(|| required("ip_version"))?;
    let cidr = attributes.text("cidr")?.ok_or_else(|| {
        let words = "Bad subnets request: a subnetpool must be specified in the absence of a cidr.";
        Refusal::invalid("BadRequest", words)
    })?;
    let invalid =
        |why: String| Refusal::invalid("InvalidInput", format!("Invalid input for operation: {why}"));
    let cidr = attributes::range("cidr", &cidr, false)
        .map_err(|_| invalid(format!("{cidr} is not in a CIDR format.")))?
        .trunc();
    if version != if cidr.addr().is_ipv6() { 6 } else { 4 } {
        return Err(invalid(format!("cidr '{cidr}' does not match the ip_version '{version}'.")));
    }
    let gateway = gateway(&mut attributes)?;
    let new = NewSubnet {
        standard,
        network,
        cidr,
        gateway: gateway.unwrap_or(WantedGateway::First),
        pools: pools(&mut attributes)?,
        name_servers: name_servers(&mut attributes)?.unwrap_or_default(),
        host_routes: routes(&mut attributes)?.unwrap_or_default(),
        enable_dhcp: attributes.boolean("enable_dhcp")?.unwrap_or(true),
        ipv6_address_mode: attributes.text("ipv6_address_mode")?,
        ipv6_ra_mode: attributes.text("ipv6_ra_mode")?,
    };
    for ignored in [
        "subnetpool_id",
        "use_default_subnetpool",
        "prefixlen",
        "service_types",
        "segment_id",
        "dns_publish_fixed_ip",
    ] {
        attributes.take(ignored);
    }
    attributes.finish()?;
    let id = call.model.create_subnet(new, &mut call.draw)?;
    Ok(call.model.subnets.get(&id).map(view).unwrap_or_default())
}

/// A gateway that was given.
fn gateway(attributes: &mut Attributes) -> Result<Option<WantedGateway>, Refusal> {
    match attributes.take("gateway_ip") {
        None => Ok(None),
        Some(Value::Null) => Ok(Some(WantedGateway::None)),
        Some(Value::String(text)) => Ok(Some(WantedGateway::At(attributes::address("gateway_ip", &text)?))),
        Some(other) => {
            Err(Refusal::attribute("gateway_ip", format_args!("'{other}' is not a valid IP address")))
        }
    }
}

fn pools(attributes: &mut Attributes) -> Result<Option<Vec<Pool>>, Refusal> {
    let Some(items) = attributes.objects("allocation_pools")? else { return Ok(None) };
    let pool = |mut item: Attributes| {
        let missing = || Refusal::attribute("allocation_pools", "Data must contain start and end");
        let start = item.address("start")?.ok_or_else(missing)?;
        let end = item.address("end")?.ok_or_else(missing)?;
        Ok(Pool { start, end })
    };
    items.into_iter().map(pool).collect::<Result<_, _>>().map(Some)
}

fn name_servers(attributes: &mut Attributes) -> Result<Option<Vec<IpAddr>>, Refusal> {
    let Some(items) = attributes.texts("dns_nameservers")? else { return Ok(None) };
    let servers = items.iter().map(|text| attributes::address("dns_nameservers", text));
    servers.collect::<Result<_, _>>().map(Some)
}

fn routes(attributes: &mut Attributes) -> Result<Option<Vec<(IpNet, IpAddr)>>, Refusal> {
    let Some(items) = attributes.objects("host_routes")? else { return Ok(None) };
    let route = |mut item: Attributes| {
        let missing = || Refusal::attribute("host_routes", "Data must contain destination and nexthop");
        let destination = item.text("destination")?.ok_or_else(missing)?;
        let hop = item.address("nexthop")?.ok_or_else(missing)?;
        Ok((attributes::range("host_routes", &destination, true)?, hop))
    };
    items.into_iter().map(route).collect::<Result<_, _>>().map(Some)
}

fn update(call: &mut Call<'_>, id: &str) -> Result<Reply, Refusal> {
    let mut attributes = changes(call, "subnet")?;
    let subnet = call.model.subnet_mut(&call.caller, id, "update")?;
    standard::update(&mut subnet.standard, &mut attributes, &call.draw)?;
    if let Some(gateway) = gateway(&mut attributes)? {
        subnet.gateway = gateway.address(subnet.cidr);
    }
    assign(&mut subnet.pools, pools(&mut attributes)?);
    assign(&mut subnet.name_servers, name_servers(&mut attributes)?);
    assign(&mut subnet.host_routes, routes(&mut attributes)?);
    assign(&mut subnet.enable_dhcp, attributes.boolean("enable_dhcp")?);
    attributes.finish()?;
    subnet.check()?;
    let view = view(subnet);
    Ok(show(call, "subnet", view))
}

fn view(subnet: &Subnet) -> Value {
    let pools: Vec<Value> =
        subnet.pools.iter().map(|pool| json!({"start": pool.start, "end": pool.end})).collect();
    let routes: Vec<Value> = subnet
        .host_routes
        .iter()
        .map(|(destination, hop)| json!({"destination": destination, "nexthop": hop}))
        .collect();
    let mut view = json!({
        "id": subnet.id,
        "network_id": subnet.network,
        "ip_version": if subnet.cidr.addr().is_ipv6() { 6 } else { 4 },
        "cidr": subnet.cidr,
        "gateway_ip": subnet.gateway,
        "allocation_pools": pools,
        "dns_nameservers": subnet.name_servers,
        "host_routes": routes,
        "enable_dhcp": subnet.enable_dhcp,
        "ipv6_address_mode": subnet.ipv6_address_mode,
        "ipv6_ra_mode": subnet.ipv6_ra_mode,
        "subnetpool_id": null,
        "service_types": [],
        "segment_id": null,
        "dns_publish_fixed_ip": false,
    });
    standard::add(&mut view, &subnet.standard, true);
    view
}
