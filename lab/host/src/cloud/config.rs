//! The objects of the cloud: a project with its user, an image for each Kubernetes version, flavors, and the private
//! network as the external one. Pure: random values are taken over from the previous configuration.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};

use hangar_cloud::Config;
use hangar_cloud::config::{ExternalNetworkSeed, FlavorSeed, ImageSeed, ProjectSeed, UserSeed};
use hangar_cloud::driver::namespaces::{KUBERNETES_VERSION, MachineImage, ProcessConfig, Settings, Tool};
use hangar_machine::{Environment, Name};
use hangar_parts::packages::Packages;
use ipnet::{IpNet, Ipv4Net};
use uuid::Uuid;

use crate::addresses::Addresses;
use crate::layout::Layout;
use crate::one_host::FABRIC;

/// Where the API listens on the private network's gateway: Keystone's usual port.
pub const PORT: u16 = 5000;

const PROJECT: &str = "demo";
const USER: &str = "demo";
const EXTERNAL_NETWORK: &str = "public";
/// Names, processors and MiB. Machines are not held to them.
const FLAVORS: [(&str, u32, u32); 3] = [("small", 2, 2048), ("medium", 2, 4096), ("large", 4, 8192)];

/// How the cloud is used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Access {
    /// `auth_url` of a `clouds.yaml`.
    pub auth_url: String,
    pub username: String,
    pub password: String,
    pub project: String,
    pub region: String,
    /// The network that leads outside.
    pub external_network: String,
    /// A size for workers.
    pub flavor: String,
    /// Names of images by Kubernetes version.
    pub images: BTreeMap<String, String>,
    /// The token for `/hangar/`.
    pub admin_token: String,
}

/// What decides the configuration.
pub(super) struct Inputs<'a> {
    pub(super) layout: &'a Layout,
    pub(super) environment: &'a Environment,
    /// Our own program where it stays.
    pub(super) program: &'a Path,
    pub(super) supervisor: &'a OsStr,
    pub(super) nft: Option<Tool>,
    pub(super) conntrack: Option<Tool>,
    pub(super) addresses: Addresses,
    /// The configuration that was there.
    pub(super) known: Option<&'a ProcessConfig>,
    pub(super) machine_images: BTreeMap<String, MachineImage>,
}

/// The configuration of the process.
pub(super) fn config(inputs: &Inputs<'_>) -> hangar_machine::Result<ProcessConfig> {
    let Addresses { range, router, management, .. } = inputs.addresses;
    let listen = SocketAddr::new(IpAddr::V4(router), PORT);
    let known = inputs.known.map(|known| &known.cloud);
    let password = known.and_then(|cloud| cloud.users.first()).map(|user| user.password.clone());
    let admin_token = known.and_then(|cloud| cloud.admin_token.clone());
    let resolver = vec![IpAddr::V4(management)];
    let cloud = Config {
        public_url: Some(format!("http://{listen}")),
        state_file: Some(inputs.layout.cloud().join("state.json")),
        admin_token: Some(admin_token.unwrap_or_else(random)),
        projects: vec![ProjectSeed { name: PROJECT.to_owned(), id: None }],
        users: vec![UserSeed {
            name: USER.to_owned(),
            password: password.unwrap_or_else(random),
            projects: vec![PROJECT.to_owned()],
            roles: BTreeSet::from(["member".to_owned(), "reader".to_owned()]),
        }],
        images: inputs.machine_images.keys().map(|version| image(version)).collect(),
        flavors: FLAVORS.map(flavor).to_vec(),
        external_network: Some(ExternalNetworkSeed {
            name: EXTERNAL_NETWORK.to_owned(),
            id: None,
            cidr: IpNet::V4(range),
            gateway: Some(IpAddr::V4(router)),
            pool: pool(range),
            name_servers: resolver.clone(),
            mtu: 1500,
        }),
        ..Config::default()
    };
    let driver = Settings {
        state: inputs.environment.state().to_owned(),
        environment: inputs.environment.name().clone(),
        fabric: Name::new(FABRIC)?,
        supervisor: vec![inputs.program.to_owned(), PathBuf::from(inputs.supervisor)],
        nft: inputs.nft.clone(),
        conntrack: inputs.conntrack.clone(),
        name_servers: resolver,
        images: inputs.machine_images.clone(),
    };
    Ok(ProcessConfig { listen, record: inputs.layout.cloud().join("process.json"), cloud, driver })
}

/// How a cloud of this configuration is used.
pub(super) fn access(config: &ProcessConfig) -> Option<Access> {
    let cloud = &config.cloud;
    let user = cloud.users.first()?;
    let version = |image: &ImageSeed| image.properties.get(KUBERNETES_VERSION).cloned();
    Some(Access {
        auth_url: format!("{}/identity/v3", cloud.public_url.as_deref()?),
        username: user.name.clone(),
        password: user.password.clone(),
        project: user.projects.first()?.clone(),
        region: cloud.region.clone(),
        external_network: cloud.external_network.as_ref()?.name.clone(),
        flavor: cloud.flavors.first()?.name.clone(),
        images: cloud.images.iter().filter_map(|image| Some((version(image)?, image.name.clone()))).collect(),
        admin_token: cloud.admin_token.clone()?,
    })
}

fn image(version: &str) -> ImageSeed {
    ImageSeed {
        name: format!("node-{version}"),
        id: None,
        properties: BTreeMap::from([(KUBERNETES_VERSION.to_owned(), version.to_owned())]),
        tags: BTreeSet::new(),
    }
}

fn flavor((name, vcpus, ram): (&str, u32, u32)) -> FlavorSeed {
    FlavorSeed { name: name.to_owned(), id: None, vcpus, ram, disk: 20, extra_specs: BTreeMap::new() }
}

/// Everything above the first 512 addresses, which are machines' and load balancers' of the management cluster.
fn pool(range: Ipv4Net) -> (IpAddr, IpAddr) {
    let first = Ipv4Addr::from(u32::from(range.network()) + 512);
    let last = Ipv4Addr::from(u32::from(range.broadcast()) - 1);
    (IpAddr::V4(first), IpAddr::V4(last))
}

/// The unpacked program; the host's, where that is the one machines use too.
pub(super) fn tool(packages: &Packages, name: &str) -> Option<Tool> {
    let program = packages.program(name)?;
    Some(Tool { program, library_path: packages.library_path().to_string_lossy().into_owned() })
}

fn random() -> String {
    Uuid::new_v4().simple().to_string()
}
