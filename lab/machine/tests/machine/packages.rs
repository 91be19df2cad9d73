//! Distribution packages, downloaded and unpacked beside the build: nothing is installed.

use std::{
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
    process::Command,
    sync::OnceLock,
};

use hangar_machine::net::nft::Nft;

const PACKAGES: [&str; 9] = [
    "containerd",
    "runc",
    "nftables",
    "libnftables1",
    "libnftnl11",
    "libmnl0",
    "libjansson4",
    "libedit2",
    "libxtables12",
];

/// A tree with `usr` in it.
pub(crate) fn unpacked() -> &'static Path {
    static TREE: OnceLock<PathBuf> = OnceLock::new();
    TREE.get_or_init(|| {
        let base = Path::new(env!("CARGO_TARGET_TMPDIR")).join("hangar-machine-packages");
        let done = base.join("unpacked");
        if !done.exists() {
            fetch(&base);
        }
        done
    })
}

/// Fills a directory elsewhere and renames it, so that what is there is complete.
fn fetch(base: &Path) {
    fs::create_dir_all(base).unwrap();
    let work = tempfile::tempdir_in(base).unwrap();
    let lists = work.path().join("lists");
    fs::create_dir_all(lists.join("partial")).unwrap();
    let own_lists = format!("Dir::State::Lists={}", lists.display());
    let apt = |arguments: &[&str]| {
        let mut command = Command::new("apt-get");
        let output = command.args(arguments).current_dir(work.path()).output();
        output.is_ok_and(|output| output.status.success())
    };
    let mut download = vec!["download"];
    download.extend(PACKAGES);
    if !apt(&download) {
        // The host's lists are missing or old; its own are left as they are.
        let fresh = apt(&["-o", &own_lists, "update"]);
        download.splice(0..0, ["-o", own_lists.as_str()]);
        assert!(
            fresh && apt(&download),
            "cannot download {PACKAGES:?} with apt-get: this test needs a Debian-like host with a package mirror"
        );
    }
    let tree = work.path().join("tree");
    fs::create_dir(&tree).unwrap();
    for entry in fs::read_dir(work.path()).unwrap().flatten() {
        if entry.path().extension().is_some_and(|end| end == "deb") {
            let status = Command::new("dpkg-deb").arg("-x").arg(entry.path()).arg(&tree).status().unwrap();
            assert!(status.success(), "cannot unpack {}", entry.path().display());
        }
    }
    fs::rename(&tree, base.join("unpacked")).unwrap();
}

/// The host's nft, or the unpacked one.
pub(crate) fn nft() -> Nft {
    let installed = Nft::default();
    if installed.is_usable() {
        return installed;
    }
    let nft = Nft::new(unpacked().join("usr/sbin/nft")).with("LD_LIBRARY_PATH", libraries());
    assert!(nft.is_usable(), "the unpacked nft does not run");
    nft
}

/// Variables with which a program finds the same.
pub(crate) fn nft_environment() -> Vec<(&'static str, OsString)> {
    if Nft::default().is_usable() {
        return Vec::new();
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let directories = std::iter::once(unpacked().join("usr/sbin")).chain(std::env::split_paths(&path));
    vec![("PATH", std::env::join_paths(directories).unwrap()), ("LD_LIBRARY_PATH", libraries())]
}

fn libraries() -> OsString {
    let multiarch = format!("{}-linux-gnu", std::env::consts::ARCH);
    let directories = ["usr/lib", "lib"].map(|lib| unpacked().join(lib).join(&multiarch));
    std::env::join_paths(directories).unwrap()
}
