//! The configuration of a cloud: its address, its users, and the objects that it has from the beginning.
//!
//! All of it can be read from YAML or JSON. Ids that are not given are derived from names, so that a restart with the
//! same configuration finds the same objects again.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use ipnet::IpNet;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::error::Error;

/// Everything that is fixed when the cloud starts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// How clients reach the API, such as `http://100.72.0.1:5000`: catalogue and links say this. The address that
    /// is listened on where it is not given.
    #[serde(default)]
    pub public_url: Option<String>,
    /// Allows the public URL to be loopback. Off, because pods and machines would then look for the cloud in
    /// themselves.
    #[serde(default)]
    pub allow_loopback: bool,
    /// The region of the catalogue.
    #[serde(default = "default_region")]
    pub region: String,
    /// Where the state is kept. Without it a restart begins anew.
    #[serde(default)]
    pub state_file: Option<PathBuf>,
    /// The token (`X-Hangar-Admin-Token`) that opens `/hangar/`. Without it the path does not exist.
    #[serde(default)]
    pub admin_token: Option<String>,
    /// How long a token is good for.
    #[serde(default = "default_token_lifetime_seconds")]
    pub token_lifetime_seconds: u64,
    /// How often the driver is told again what should be, although nothing changed.
    #[serde(default = "default_realise_every_seconds")]
    pub realise_every_seconds: u64,
    /// After how many milliseconds of its build a server takes the ports that it was given, as Nova does: until then a
    /// second server may be given the same ones, and one of both fails.
    #[serde(default = "default_ports_bound_after_milliseconds")]
    pub ports_bound_after_milliseconds: u32,
    /// Zones that servers may ask for; the first is the default.
    #[serde(default = "default_availability_zones")]
    pub availability_zones: Vec<String>,
    /// Limits of each project.
    #[serde(default)]
    pub quota: Quota,
    #[serde(default)]
    pub projects: Vec<ProjectSeed>,
    #[serde(default)]
    pub users: Vec<UserSeed>,
    #[serde(default)]
    pub application_credentials: Vec<ApplicationCredentialSeed>,
    #[serde(default)]
    pub images: Vec<ImageSeed>,
    #[serde(default)]
    pub flavors: Vec<FlavorSeed>,
    /// The network that routers lead to.
    #[serde(default)]
    pub external_network: Option<ExternalNetworkSeed>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProjectSeed {
    pub name: String,
    /// Its id: 32 hexadecimal digits, from the name where it is not given.
    #[serde(default)]
    pub id: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UserSeed {
    pub name: String,
    pub password: String,
    /// Names of the projects they work in; the first is their default.
    pub projects: Vec<String>,
    /// Their roles there; `admin` sees and may do everything.
    #[serde(default = "default_roles")]
    pub roles: BTreeSet<String>,
}

/// An application credential: a user's right in one project, with a secret of its own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ApplicationCredentialSeed {
    pub name: String,
    /// Its id, from user and name where it is not given.
    #[serde(default)]
    pub id: Option<String>,
    pub secret: String,
    pub user: String,
    pub project: String,
}

/// An image. What it is made of is the driver's matter: its properties say it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ImageSeed {
    /// Its name; names need not be unique.
    pub name: String,
    /// Its id, from the name where it is not given.
    #[serde(default)]
    pub id: Option<Uuid>,
    /// Properties, such as the Kubernetes version inside.
    #[serde(default)]
    pub properties: BTreeMap<String, String>,
    #[serde(default)]
    pub tags: BTreeSet<String>,
}

/// A size of servers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FlavorSeed {
    pub name: String,
    /// Its id, from the name where it is not given.
    #[serde(default)]
    pub id: Option<String>,
    pub vcpus: u32,
    /// Memory in MiB.
    pub ram: u32,
    /// Root disk in GiB; 0 means that of the image, which only an administrator may use.
    #[serde(default)]
    pub disk: u32,
    #[serde(default)]
    pub extra_specs: BTreeMap<String, String>,
}

/// The external network, which exists without us.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExternalNetworkSeed {
    pub name: String,
    /// Its id, from the name where it is not given.
    #[serde(default)]
    pub id: Option<Uuid>,
    pub cidr: IpNet,
    #[serde(default)]
    pub gateway: Option<IpAddr>,
    /// First and last address that routers and floating IPs may get.
    pub pool: (IpAddr, IpAddr),
    #[serde(default)]
    pub name_servers: Vec<IpAddr>,
    #[serde(default = "default_mtu")]
    pub mtu: u32,
}

/// How much of each kind a project may have; `-1` means as much as it likes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[allow(missing_docs, reason = "the fields are the resources' names")]
pub struct Quota {
    pub instances: i64,
    pub cores: i64,
    pub ram: i64,
    pub key_pairs: i64,
    pub server_groups: i64,
    pub server_group_members: i64,
    pub metadata_items: i64,
    pub network: i64,
    pub subnet: i64,
    pub port: i64,
    pub router: i64,
    pub floatingip: i64,
    pub security_group: i64,
    pub security_group_rule: i64,
}

impl Default for Quota {
    /// Roomier than OpenStack's own: many clusters are tried in one project.
    fn default() -> Self {
        Self {
            instances: 1000,
            cores: 4000,
            ram: 16_000_000,
            key_pairs: 100,
            server_groups: 100,
            server_group_members: 1000,
            metadata_items: 128,
            network: 500,
            subnet: 500,
            port: 5000,
            router: 500,
            floatingip: 500,
            security_group: 1000,
            security_group_rule: 20_000,
        }
    }
}

impl Config {
    /// A cloud for tests: on loopback, with the projects `demo` and `other` (users of the same names, password
    /// `secret`), an `admin`, an application credential, an image, two flavors and the external network `public`.
    pub fn for_tests() -> Self {
        let user = |name: &str, roles: &[&str]| UserSeed {
            name: name.into(),
            password: "secret".into(),
            projects: vec![name.into()],
            roles: roles.iter().map(ToString::to_string).collect(),
        };
        let flavor = |name: &str, vcpus, ram| FlavorSeed {
            name: name.into(),
            id: None,
            vcpus,
            ram,
            disk: 20,
            extra_specs: BTreeMap::new(),
        };
        let address = |last| IpAddr::from([203, 0, 113, last]);
        Self {
            allow_loopback: true,
            admin_token: Some("hangar-admin".into()),
            projects: ["admin", "demo", "other"]
                .map(|name| ProjectSeed { name: name.into(), id: None })
                .to_vec(),
            users: vec![
                user("admin", &["admin", "member", "reader"]),
                user("demo", &["member", "reader"]),
                user("other", &["member", "reader"]),
            ],
            application_credentials: vec![ApplicationCredentialSeed {
                name: "robot".into(),
                id: None,
                secret: "robot-secret".into(),
                user: "demo".into(),
                project: "demo".into(),
            }],
            images: vec![ImageSeed {
                name: "node-v1.34.10".into(),
                id: None,
                properties: BTreeMap::from([("kubernetes_version".into(), "v1.34.10".into())]),
                tags: BTreeSet::from(["node".into()]),
            }],
            flavors: vec![flavor("small", 1, 2048), flavor("medium", 2, 4096)],
            external_network: Some(ExternalNetworkSeed {
                name: "public".into(),
                id: None,
                cidr: IpNet::new_assert(address(0), 24),
                gateway: Some(address(1)),
                pool: (address(10), address(250)),
                name_servers: vec![],
                mtu: 1500,
            }),
            ..Self::default()
        }
    }

    /// The public URL without a trailing slash, given what is listened on.
    pub(crate) fn base_url(&self, listening: SocketAddr) -> Result<String, Error> {
        let url = match &self.public_url {
            Some(url) => url.trim_end_matches('/').to_owned(),
            None if listening.ip().is_unspecified() => {
                return Err(Error::PublicUrl {
                    url: format!("http://{listening}"),
                    why: "listening on every address, the cloud cannot know how it is reached: set public_url",
                });
            }
            None => format!("http://{listening}"),
        };
        let refuse = |why| Err(Error::PublicUrl { url: url.clone(), why });
        let Ok(uri) = url.parse::<http::Uri>() else { return refuse("it is no URL") };
        let Some(host) = uri.host() else { return refuse("it names no host") };
        let address = host.trim_matches(['[', ']']).parse::<IpAddr>();
        let is_loopback = host == "localhost" || address.is_ok_and(|address| address.is_loopback());
        if is_loopback && !self.allow_loopback {
            return refuse("machines and pods would look for the cloud in themselves");
        }
        Ok(url)
    }
}

impl Default for Config {
    /// It has no users and no objects.
    fn default() -> Self {
        Self {
            public_url: None,
            allow_loopback: false,
            region: default_region(),
            state_file: None,
            admin_token: None,
            token_lifetime_seconds: default_token_lifetime_seconds(),
            realise_every_seconds: default_realise_every_seconds(),
            ports_bound_after_milliseconds: default_ports_bound_after_milliseconds(),
            availability_zones: default_availability_zones(),
            quota: Quota::default(),
            projects: vec![],
            users: vec![],
            application_credentials: vec![],
            images: vec![],
            flavors: vec![],
            external_network: None,
        }
    }
}

fn default_region() -> String {
    "RegionOne".into()
}

/// Never in the call that makes the server: in Nova another service does it.
fn default_ports_bound_after_milliseconds() -> u32 {
    100
}

/// Keystone's default.
fn default_token_lifetime_seconds() -> u64 {
    3600
}

/// Often enough that a machine that died is seen within a Node's grace period.
fn default_realise_every_seconds() -> u64 {
    20
}

fn default_availability_zones() -> Vec<String> {
    vec!["nova".into()]
}

fn default_roles() -> BTreeSet<String> {
    BTreeSet::from(["member".into(), "reader".into()])
}

fn default_mtu() -> u32 {
    1500
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_is_published_only_when_it_is_meant() {
        let listening = SocketAddr::from(([127, 0, 0, 1], 5000));
        let mut config = Config::default();
        assert!(config.base_url(listening).is_err());
        config.public_url = Some("http://localhost:5000".into());
        assert!(config.base_url(listening).is_err());
        config.public_url = Some("http://[::1]:5000".into());
        assert!(config.base_url(listening).is_err());
        config.public_url = Some("http://100.72.0.1:5000/".into());
        assert_eq!(config.base_url(listening).unwrap(), "http://100.72.0.1:5000");
        config.public_url = None;
        config.allow_loopback = true;
        assert_eq!(config.base_url(listening).unwrap(), "http://127.0.0.1:5000");
    }

    #[test]
    fn listening_everywhere_needs_a_public_url() {
        let everywhere = SocketAddr::from(([0, 0, 0, 0], 5000));
        assert!(Config { allow_loopback: true, ..Config::default() }.base_url(everywhere).is_err());
    }

    #[test]
    fn a_configuration_survives_being_written() {
        let config = Config::for_tests();
        let text = serde_json::to_string(&config).unwrap();
        assert_eq!(serde_json::from_str::<Config>(&text).unwrap(), config);
        assert!(serde_json::from_str::<Config>(r#"{"pubic_url": "x"}"#).is_err());
    }
}
