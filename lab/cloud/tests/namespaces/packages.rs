//! Packages of the distribution, unpacked into the cache as `hangar up` does: nothing is installed.

use std::sync::OnceLock;

use hangar_cloud::driver::namespaces::Tool;
use hangar_parts::Parts;
use hangar_parts::packages::{self, FOR_CLOUD_INIT, FOR_MACHINES, Packages};

fn unpacked(names: &[&str]) -> Packages {
    let parts = Parts::from_env().unwrap();
    packages::ensure(parts.cache(), names, &mut |text| println!("{text}")).unwrap()
}

pub(crate) fn for_machines() -> &'static Packages {
    static FOUND: OnceLock<Packages> = OnceLock::new();
    FOUND.get_or_init(|| unpacked(FOR_MACHINES))
}

pub(crate) fn for_cloud_init() -> &'static Packages {
    static FOUND: OnceLock<Packages> = OnceLock::new();
    FOUND.get_or_init(|| unpacked(FOR_CLOUD_INIT))
}

pub(crate) fn tool(name: &str) -> Tool {
    let packages = for_machines();
    Tool {
        program: packages.program(name).unwrap(),
        library_path: packages.library_path().into_string().unwrap(),
    }
}
