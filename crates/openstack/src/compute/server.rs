//! Servers.

use std::{collections::BTreeMap, net::IpAddr};

use serde::Deserialize;
use serde_json::{Value, json};

use super::UserData;
use crate::{FlavorId, ImageId, NetworkId, PortId, ServerGroupId, ServerId, lenient::null_as_default};

/// Whether an address is the server's own or leads to it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AddressKind {
    #[default]
    Fixed,
    /// Of a floating IP.
    Floating,
}

/// An address of a server.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Address {
    #[serde(rename = "addr")]
    pub address: IpAddr,
    #[serde(default, rename = "OS-EXT-IPS:type")]
    pub kind: AddressKind,
}

/// Why a server failed.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Fault {
    /// Nova's message: `No valid host was found.`
    #[serde(default, deserialize_with = "null_as_default")]
    pub message: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Server {
    pub id: ServerId,
    #[serde(default, deserialize_with = "null_as_default")]
    pub name: String,
    /// What it is doing: `BUILD`, `ACTIVE`, `SHUTOFF`, `ERROR` (then [`Server::fault`] says why), and many more.
    pub status: String,
    /// What is being done to it: `spawning`, `deleting`; none when nothing.
    #[serde(default, rename = "OS-EXT-STS:task_state")]
    pub task_state: Option<String>,
    /// When it last changed, by the cloud's clock.
    #[serde(default)]
    pub updated: Option<jiff::Timestamp>,
    /// What was written on it; the owner too.
    #[serde(default)]
    pub metadata: BTreeMap<String, String>,
    /// Its addresses by the name of the network.
    #[serde(default)]
    pub addresses: BTreeMap<String, Vec<Address>>,
    /// Why it failed, if it did.
    #[serde(default)]
    pub fault: Option<Fault>,
}

/// What a new server is connected to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServerNetwork {
    /// A port that exists. Once a server is bound to it, a second one is refused; while the first is being built, Nova
    /// still takes a second, which fails.
    Port(PortId),
    /// A network on which Nova makes a port.
    Network(NetworkId),
}

/// Makes a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerCreate {
    /// Its name, and its host name.
    pub name: String,
    pub flavor: FlavorId,
    pub image: ImageId,
    /// What it is connected to, in order.
    pub networks: Vec<ServerNetwork>,
    /// What it reads at its first boot.
    pub user_data: Option<UserData>,
    /// What is written on it; the owner too. Each value at most 255 bytes.
    pub metadata: BTreeMap<String, String>,
    pub tags: Vec<String>,
    /// A key of the user.
    pub key_name: Option<String>,
    /// Whether it gets its data on a disk.
    pub has_config_drive: Option<bool>,
    /// The zone it goes to; the cloud's choice if none.
    pub availability_zone: Option<String>,
    /// The group it is kept with or apart from.
    pub server_group: Option<ServerGroupId>,
    /// More hints for the scheduler.
    pub scheduler_hints: BTreeMap<String, Value>,
}

impl ServerCreate {
    /// With these, and the cloud's choice for the rest.
    pub fn new(name: impl Into<String>, flavor: FlavorId, image: ImageId) -> Self {
        Self {
            name: name.into(),
            flavor,
            image,
            networks: Vec::new(),
            user_data: None,
            metadata: BTreeMap::new(),
            tags: Vec::new(),
            key_name: None,
            has_config_drive: None,
            availability_zone: None,
            server_group: None,
            scheduler_hints: BTreeMap::new(),
        }
    }

    pub(super) fn body(&self) -> Value {
        let networks: Vec<Value> = self
            .networks
            .iter()
            .map(|network| match network {
                ServerNetwork::Port(id) => json!({ "port": id }),
                ServerNetwork::Network(id) => json!({ "uuid": id }),
            })
            .collect();
        let mut server = json!({
            "name": self.name,
            "flavorRef": self.flavor,
            "imageRef": self.image,
            // From 2.37 on it is required; "none" is how to ask for no network at all.
            "networks": if networks.is_empty() { json!("none") } else { json!(networks) },
        });
        let mut set = |key: &str, value: Option<Value>| {
            if let Some(value) = value {
                server[key] = value;
            }
        };
        set("user_data", self.user_data.as_ref().map(|data| json!(data.encoded())));
        set("metadata", (!self.metadata.is_empty()).then(|| json!(self.metadata)));
        set("tags", (!self.tags.is_empty()).then(|| json!(self.tags)));
        set("key_name", self.key_name.as_ref().map(|name| json!(name)));
        set("config_drive", self.has_config_drive.map(Value::Bool));
        set("availability_zone", self.availability_zone.as_ref().map(|zone| json!(zone)));
        let mut body = json!({ "server": server });
        // Hints stand beside the server, not in it.
        let mut hints = self.scheduler_hints.clone();
        hints.extend(self.server_group.as_ref().map(|group| ("group".to_owned(), json!(group))));
        if !hints.is_empty() {
            body["os:scheduler_hints"] = json!(hints);
        }
        body
    }
}

/// Which servers. Several fields must all match; empty matches all of the project.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerQuery {
    pub name: Option<String>,
    /// With all of these tags.
    pub tags: Vec<String>,
    /// With these values written on it. Nova cannot filter by them; what it lists is filtered here.
    pub metadata: BTreeMap<String, String>,
}

impl ServerQuery {
    pub(super) fn pairs(&self) -> Vec<(&'static str, String)> {
        let mut pairs = Vec::new();
        // Nova takes a regular expression.
        pairs.extend(self.name.as_ref().map(|name| ("name", format!("^{}$", escaped(name)))));
        pairs.extend((!self.tags.is_empty()).then(|| ("tags", self.tags.join(","))));
        pairs
    }

    /// Whether this is one of them. Nova's database may compare names without regard to case; here case counts.
    pub fn matches(&self, server: &Server) -> bool {
        self.name.as_ref().is_none_or(|name| *name == server.name)
            && self.metadata.iter().all(|(key, value)| server.metadata.get(key) == Some(value))
    }
}

/// Text that a regular expression matches literally.
fn escaped(text: &str) -> String {
    let mut pattern = String::with_capacity(text.len());
    for character in text.chars() {
        if "\\.+*?()|[]{}^$".contains(character) {
            pattern.push('\\');
        }
        pattern.push(character);
    }
    pattern
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_create_has_the_shape_nova_documents() {
        let mut server = ServerCreate::new("worker-0", "small".into(), "image".into());
        assert_eq!(
            server.body(),
            json!({ "server": { "name": "worker-0", "flavorRef": "small", "imageRef": "image", "networks": "none" } })
        );
        server.networks = vec![ServerNetwork::Port("p".into()), ServerNetwork::Network("n".into())];
        server.user_data = Some(UserData::new(b"#cloud-config").unwrap());
        server.metadata = BTreeMap::from([("owner".to_owned(), "o".to_owned())]);
        server.tags = vec!["t".to_owned()];
        server.key_name = Some("k".to_owned());
        server.has_config_drive = Some(true);
        server.availability_zone = Some("az".to_owned());
        server.server_group = Some("g".into());
        server.scheduler_hints = BTreeMap::from([("x".to_owned(), json!(true))]);
        assert_eq!(
            server.body(),
            json!({
                "server": {
                    "name": "worker-0", "flavorRef": "small", "imageRef": "image",
                    "networks": [{ "port": "p" }, { "uuid": "n" }],
                    "user_data": "I2Nsb3VkLWNvbmZpZw==", "metadata": { "owner": "o" }, "tags": ["t"],
                    "key_name": "k", "config_drive": true, "availability_zone": "az",
                },
                "os:scheduler_hints": { "group": "g", "x": true },
            })
        );
    }

    #[test]
    fn a_name_is_asked_for_literally() {
        let query = ServerQuery { name: Some("a.b-c(1)".to_owned()), ..ServerQuery::default() };
        assert_eq!(query.pairs(), [("name", "^a\\.b-c\\(1\\)$".to_owned())]);
    }

    #[test]
    fn a_failed_server_says_why() {
        let server: Server = serde_json::from_value(json!({
            "id": "s", "name": "worker-0", "status": "ERROR", "tenant_id": "p", "image": "", "flavor": { "vcpus": 1 },
            "metadata": {}, "tags": [], "addresses": {}, "OS-EXT-STS:task_state": null,
            "OS-EXT-AZ:availability_zone": null, "created": "2026-01-01T00:00:00Z",
            "fault": { "code": 500, "created": "2026-01-01T00:00:01Z", "message": "No valid host was found. " },
        }))
        .unwrap();
        assert_eq!(server.status, "ERROR");
        assert_eq!(server.fault, Some(Fault { message: "No valid host was found. ".to_owned() }));
    }

    #[test]
    fn a_running_server_has_addresses() {
        let server: Server = serde_json::from_value(json!({
            "id": "s", "name": "worker-0", "status": "ACTIVE",
            "addresses": { "net": [
                { "addr": "10.0.0.5", "version": 4, "OS-EXT-IPS:type": "fixed", "OS-EXT-IPS-MAC:mac_addr": "m" },
                { "addr": "203.0.113.9", "version": 4, "OS-EXT-IPS:type": "floating" },
            ] },
        }))
        .unwrap();
        let kinds: Vec<_> = server.addresses["net"].iter().map(|address| address.kind).collect();
        assert_eq!(kinds, [AddressKind::Fixed, AddressKind::Floating]);
    }
}
