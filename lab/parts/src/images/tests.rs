use std::fs;
use std::io::Read;

use super::*;

fn sample(directory: &Path) -> Image {
    let program = directory.join("program");
    fs::write(&program, "#!/bin/sh\n").unwrap();
    Image::new("example.org/a/b:v1", ["/bin/program"])
        .with_program("/usr/bin/program", program)
        .with("/bin", Entry::Link("usr/bin".to_owned()))
        .with("/etc/hosts", Entry::File(Source::Bytes(b"x".to_vec()), 0o644))
}

fn archive(images: &[Image]) -> Vec<u8> {
    let mut bytes = Vec::new();
    write_archive(images, &mut bytes).unwrap();
    bytes
}

/// Every entry of a tar stream, by name.
fn entries(bytes: &[u8]) -> BTreeMap<String, Vec<u8>> {
    let mut archive = tar::Archive::new(bytes);
    archive
        .entries()
        .unwrap()
        .map(|entry| {
            let mut entry = entry.unwrap();
            let mut content = Vec::new();
            entry.read_to_end(&mut content).unwrap();
            (entry.path().unwrap().to_str().unwrap().to_owned(), content)
        })
        .collect()
}

#[test]
fn the_same_files_give_the_same_bytes() {
    let directory = tempfile::tempdir().unwrap();
    let first = archive(&[sample(directory.path())]);
    // Written again: another time, the same content.
    let second = archive(&[sample(directory.path())]);
    assert_eq!(first, second);
}

#[test]
fn an_archive_names_its_content_by_digest() {
    let directory = tempfile::tempdir().unwrap();
    let other = Image::new("example.org/c:v2", ["/c"]);
    let entries = entries(&archive(&[sample(directory.path()), other]));
    for (path, content) in &entries {
        if let Some(digest) = path.strip_prefix("blobs/sha256/") {
            assert_eq!(digest, hexadecimal(&Sha256::digest(content)));
        }
    }
    let index: serde_json::Value = serde_json::from_slice(&entries["index.json"]).unwrap();
    let manifest = &index["manifests"][0];
    assert_eq!(manifest["digest"], sample(directory.path()).digest().unwrap());
    assert_eq!(manifest["annotations"]["io.containerd.image.name"], "example.org/a/b:v1");
    assert_eq!(index["manifests"][1]["annotations"]["org.opencontainers.image.ref.name"], "v2");
    let digest =
        |value: &serde_json::Value| value["digest"].as_str().unwrap().replace("sha256:", "blobs/sha256/");
    let manifest: serde_json::Value = serde_json::from_slice(&entries[&digest(manifest)]).unwrap();
    let layer = self::entries(&entries[&digest(&manifest["layers"][0])]);
    let paths: Vec<&str> = layer.keys().map(String::as_str).collect();
    assert_eq!(paths, ["bin", "etc/", "etc/hosts", "tmp/", "usr/", "usr/bin/", "usr/bin/program"]);
}

/// The configuration of the only image in an archive.
fn process(image: Image) -> serde_json::Value {
    let entries = entries(&archive(&[image]));
    let configuration = entries.values().find_map(|content| {
        let read: serde_json::Value = serde_json::from_slice(content).ok()?;
        read.get("rootfs").is_some().then(|| read["config"].clone())
    });
    configuration.unwrap()
}

#[test]
fn an_image_says_who_runs_what() {
    let plain = process(Image::new("example.org/a:v1", ["/a"]));
    assert_eq!(plain["Entrypoint"], serde_json::json!(["/a"]));
    // Without them the bytes are what they were before there were any.
    assert!(plain.get("Cmd").is_none() && plain.get("User").is_none(), "{plain}");
    let image = Image::new("example.org/a:v1", ["/a"]).with_command(["pause"]).with_user("1234");
    let said = process(image.clone());
    assert_eq!((&said["Cmd"][0], &said["User"]), (&"pause".into(), &"1234".into()));
    assert_ne!(image.fingerprint().unwrap(), image.clone().with_user("1").fingerprint().unwrap());
}

#[test]
fn a_fingerprint_follows_files_and_names() {
    let directory = tempfile::tempdir().unwrap();
    let image = sample(directory.path());
    let before = image.fingerprint().unwrap();
    assert_eq!(before, image.fingerprint().unwrap());
    fs::write(directory.path().join("program"), "#!/bin/sh\nexit\n").unwrap();
    assert_ne!(before, image.fingerprint().unwrap());
    let moved = image.clone().with("/etc/hosts", Entry::Directory(0o755));
    assert_ne!(image.fingerprint().unwrap(), moved.fingerprint().unwrap());
}

#[test]
fn references_are_upstreams() {
    use crate::sets::Set;
    let references = [
        Upstream::KubeApiserver(Set::Kubernetes134),
        Upstream::Etcd(Set::Etcd36),
        Upstream::Coredns,
        Upstream::Pause,
        Upstream::KonnectivityAgent,
        Upstream::KubeVipCloudProvider,
    ]
    .map(Upstream::reference);
    assert_eq!(
        references,
        [
            "registry.k8s.io/kube-apiserver:v1.34.10",
            "registry.k8s.io/etcd:3.6.16-0",
            "registry.k8s.io/coredns/coredns:v1.14.7",
            "registry.k8s.io/pause:3.10.1",
            "registry.k8s.io/kas-network-proxy/proxy-agent:v0.34.0",
            "ghcr.io/kube-vip/kube-vip-cloud-provider:v0.0.12",
        ]
    );
}
