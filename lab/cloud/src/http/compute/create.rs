//! The body of a server's creation.

use std::collections::{BTreeMap, BTreeSet};

use base64::Engine as _;
use serde_json::{Map, Value};

use super::microversion::Version;
use crate::http::{Attributes, Call, attributes};
use crate::model::{NewServer, Refusal, WantedPort};

/// Nova's limit, after base64.
const LONGEST_USER_DATA: usize = 65_535;
/// Nova's limit for metadata keys and values.
const LONGEST_METADATA: usize = 255;

pub(super) fn read(call: &Call<'_>, version: Version) -> Result<NewServer, Refusal> {
    let mut body = call.request.json()?;
    let Some(Value::Object(server)) = body.remove("server") else {
        return Err(Refusal::bad(
            "Invalid input for field/attribute server: 'server' is a required property",
        ));
    };
    let hints = body.remove("os:scheduler_hints").or_else(|| body.remove("OS-SCH-HNT:scheduler_hints"));
    let mut attributes = Attributes::new(server);
    let name = attributes.text("name")?.map(|name| name.trim().to_owned()).unwrap_or_default();
    if name.is_empty() {
        return Err(field("name", "'name' is a required property"));
    }
    let block_devices = attributes.objects("block_device_mapping_v2")?.unwrap_or_default();
    check_block_devices(block_devices)?;
    let new = NewServer {
        name,
        description: attributes.text("description")?.filter(|_| version >= Version(2, 19)),
        image: reference(&mut attributes, "imageRef")?,
        flavor: reference(&mut attributes, "flavorRef")?,
        networks: networks(&mut attributes, version)?,
        security_groups: groups(&mut attributes)?,
        metadata: metadata(attributes.take("metadata"))?,
        tags: tags(&mut attributes, version)?,
        user_data: user_data(&mut attributes)?,
        config_drive: attributes.boolean("config_drive")?.unwrap_or(false),
        key_name: attributes.text("key_name")?,
        zone: attributes.text("availability_zone")?,
        group: hints.as_ref().and_then(|hints| hints["group"].as_str()).map(ToOwned::to_owned),
        fails_with: call.fail_server.clone(),
    };
    let count = attributes.number::<u32>("min_count")?.max(attributes.number::<u32>("max_count")?);
    if count.is_some_and(|count| count > 1) {
        return Err(Refusal::bad("Several servers at once are not supported by this cloud."));
    }
    for ignored in [
        "OS-DCF:diskConfig",
        "adminPass",
        "accessIPv4",
        "accessIPv6",
        "return_reservation_id",
        "personality",
        "trusted_image_certificates",
        "hostname",
        "host",
        "hypervisor_hostname",
        "block_device_mapping",
    ] {
        attributes.take(ignored);
    }
    attributes.finish().map_err(|refusal| {
        let names = refusal.message.trim_start_matches("Unrecognized attribute(s) ").to_owned();
        field("server", format!("Additional properties are not allowed ({names} was unexpected)"))
    })?;
    Ok(new)
}

fn field(name: &str, why: impl std::fmt::Display) -> Refusal {
    Refusal::bad(format!("Invalid input for field/attribute {name}. {why}"))
}

/// An id, or the URL that ends in one.
fn reference(attributes: &mut Attributes, name: &str) -> Result<String, Refusal> {
    let text = attributes.text(name)?.unwrap_or_default();
    if text.is_empty() && name == "flavorRef" {
        return Err(field("flavorRef", "'flavorRef' is a required property"));
    }
    Ok(text.rsplit('/').next().unwrap_or_default().to_owned())
}

/// One image on a local disk is what there is; volumes are not.
fn check_block_devices(devices: Vec<Attributes>) -> Result<(), Refusal> {
    for mut device in devices {
        let source = device.text("source_type")?.unwrap_or_default();
        let destination = device.text("destination_type")?.unwrap_or_default();
        if destination == "volume" || matches!(source.as_str(), "volume" | "snapshot") {
            return Err(Refusal::bad("Block Device Mapping is Invalid: this cloud has no volumes."));
        }
    }
    Ok(())
}

fn networks(attributes: &mut Attributes, version: Version) -> Result<Option<Vec<WantedPort>>, Refusal> {
    let items = match attributes.take("networks") {
        None | Some(Value::Null) if version >= Version(2, 37) => {
            return Err(field("server", "'networks' is a required property"));
        }
        None | Some(Value::Null) => return Ok(None),
        Some(Value::String(text)) if text == "none" => return Ok(Some(vec![])),
        Some(Value::String(text)) if text == "auto" => return Ok(None),
        Some(Value::Array(items)) => items,
        Some(other) => return Err(field("networks", format!("Value: {other}."))),
    };
    let one = |item: Value| {
        let Value::Object(map) = item else { return Err(field("networks", "an item is not an object")) };
        let mut item = Attributes::new(map);
        let (port, network) = (item.text("port")?, item.text("uuid")?);
        let address = item.address("fixed_ip")?;
        item.take("tag");
        match (port, network) {
            (Some(port), _) => {
                attributes::uuid("port", &port)
                    .map_err(|_| field("port", format!("'{port}' is not a 'uuid'")))?;
                Ok(WantedPort::Existing(port))
            }
            (None, Some(network)) => Ok(WantedPort::InNetwork(network, address)),
            (None, None) => Err(field("networks", "port or uuid is missing")),
        }
    };
    items.into_iter().map(one).collect::<Result<_, _>>().map(Some)
}

fn groups(attributes: &mut Attributes) -> Result<Vec<String>, Refusal> {
    let items = attributes.objects("security_groups")?.unwrap_or_default();
    let name = |mut item: Attributes| item.text("name").map(Option::unwrap_or_default);
    items.into_iter().map(name).collect()
}

/// Metadata: texts only, none too long.
pub(super) fn metadata(value: Option<Value>) -> Result<BTreeMap<String, String>, Refusal> {
    let map = match value {
        None | Some(Value::Null) => Map::new(),
        Some(Value::Object(map)) => map,
        Some(other) => {
            return Err(field("metadata", format!("Value: {other}. {other} is not of type 'object'")));
        }
    };
    let one = |(key, value): (String, Value)| {
        let Value::String(text) = value else {
            return Err(field(&key, format!("Value: {value}. {value} is not of type 'string'")));
        };
        if key.is_empty() || key.chars().count() > LONGEST_METADATA || text.chars().count() > LONGEST_METADATA
        {
            return Err(field(&key, format!("Value: {text}. '{text}' is too long")));
        }
        Ok((key, text))
    };
    map.into_iter().map(one).collect()
}

fn tags(attributes: &mut Attributes, version: Version) -> Result<BTreeSet<String>, Refusal> {
    let tags = attributes.texts("tags")?;
    match tags {
        Some(_) if version < Version(2, 52) => {
            Err(field("server", "Additional properties are not allowed ('tags' was unexpected)"))
        }
        tags => {
            let tags = tags.unwrap_or_default();
            super::tags::check(&tags)?;
            Ok(tags.into_iter().collect())
        }
    }
}

fn user_data(attributes: &mut Attributes) -> Result<Option<String>, Refusal> {
    let text = match attributes.take("user_data") {
        None | Some(Value::Null) => return Ok(None),
        Some(Value::String(text)) => text,
        Some(other) => {
            return Err(field("user_data", format!("Value: {other}. {other} is not of type 'string'")));
        }
    };
    if text.len() > LONGEST_USER_DATA {
        let start: String = text.chars().take(20).collect();
        return Err(field("user_data", format!("Value: {start}... '{start}...' is too long")));
    }
    let text: String = text.split_ascii_whitespace().collect();
    match base64::engine::general_purpose::STANDARD.decode(&text) {
        Ok(_) => Ok(Some(text)),
        Err(_) => Err(field("user_data", format!("Value: {text}. '{text}' is not a 'base64'"))),
    }
}
