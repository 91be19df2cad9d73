//! Writes images as one OCI archive.
//!
//! A layer is produced twice: once to learn its digest, which is its name in the archive, and once to be written.

use std::io::{self, Write};

use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tar::{Builder, Header};

use super::{Image, hexadecimal, layer};
use crate::error::{Error, Result};

const SEARCH_PATH: &str = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// Digest and size of something in an archive.
struct Blob {
    digest: String,
    size: u64,
}

impl Blob {
    fn of(bytes: &[u8]) -> Self {
        Self { digest: hexadecimal(&Sha256::digest(bytes)), size: bytes.len() as u64 }
    }

    fn describe(&self, media_type: &str) -> Value {
        json!({ "mediaType": media_type, "digest": format!("sha256:{}", self.digest), "size": self.size })
    }

    fn path(&self) -> String {
        format!("blobs/sha256/{}", self.digest)
    }
}

/// Counts and hashes what is written to it.
#[derive(Default)]
struct Measure {
    hasher: Sha256,
    size: u64,
}

impl Write for Measure {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.hasher.update(bytes);
        self.size += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The architecture's name in the world of Go and images.
pub(super) fn architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}

/// Writes the images as one archive.
pub fn write_archive(images: &[Image], writer: impl Write) -> Result<()> {
    let mut builder = Builder::new(writer);
    let mut manifests = Vec::new();
    let mut current = String::new();
    let written = (|| {
        add(&mut builder, "oci-layout", br#"{"imageLayoutVersion":"1.0.0"}"#)?;
        for image in images {
            image.reference.clone_into(&mut current);
            manifests.push(add_image(&mut builder, image)?);
        }
        let index = json!({
            "schemaVersion": 2,
            "mediaType": "application/vnd.oci.image.index.v1+json",
            "manifests": manifests,
        });
        add(&mut builder, "index.json", index.to_string().as_bytes())?;
        builder.finish()?;
        builder.get_mut().flush()
    })();
    written.map_err(|error| Error::Image { image: current, reason: error.to_string() })
}

const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";

/// What an image is in an archive, but for the layer's bytes.
struct Description {
    layer: Blob,
    configuration: String,
    manifest: String,
}

impl Description {
    fn of(image: &Image) -> io::Result<Self> {
        let mut measure = Measure::default();
        layer::write(image, &mut measure)?;
        let layer = Blob { digest: hexadecimal(&measure.hasher.finalize()), size: measure.size };
        let mut process = json!({ "Entrypoint": image.entrypoint, "Env": [SEARCH_PATH], "WorkingDir": "/" });
        if !image.command.is_empty() {
            process["Cmd"] = json!(image.command);
        }
        if let Some(user) = &image.user {
            process["User"] = json!(user);
        }
        let configuration = json!({
            "created": "1970-01-01T00:00:00Z",
            "architecture": architecture(),
            "os": "linux",
            "config": process,
            "rootfs": { "type": "layers", "diff_ids": [format!("sha256:{}", layer.digest)] },
            "history": [{ "created": "1970-01-01T00:00:00Z", "created_by": "hangar" }],
        })
        .to_string();
        let manifest = json!({
            "schemaVersion": 2,
            "mediaType": MANIFEST,
            "config": Blob::of(configuration.as_bytes()).describe("application/vnd.oci.image.config.v1+json"),
            "layers": [layer.describe("application/vnd.oci.image.layer.v1.tar")],
        })
        .to_string();
        Ok(Self { layer, configuration, manifest })
    }
}

/// The digest under which a container runtime knows the image.
pub(super) fn digest(image: &Image) -> io::Result<String> {
    let description = Description::of(image)?;
    Ok(format!("sha256:{}", Blob::of(description.manifest.as_bytes()).digest))
}

/// Adds an image's blobs and returns its entry in the index.
fn add_image<W: Write>(builder: &mut Builder<W>, image: &Image) -> io::Result<Value> {
    let Description { layer, configuration, manifest } = Description::of(image)?;
    builder.append(&header(&layer.path(), layer.size)?, io::empty())?;
    layer::write(image, builder.get_mut())?;
    pad(builder, layer.size)?;
    add(builder, &Blob::of(configuration.as_bytes()).path(), configuration.as_bytes())?;
    let manifest_blob = Blob::of(manifest.as_bytes());
    add(builder, &manifest_blob.path(), manifest.as_bytes())?;

    let mut entry = manifest_blob.describe(MANIFEST);
    let tag = image.reference.rsplit(':').next().unwrap_or_default();
    entry["annotations"] = json!({
        "io.containerd.image.name": image.reference,
        "org.opencontainers.image.ref.name": tag,
    });
    entry["platform"] = json!({ "architecture": architecture(), "os": "linux" });
    Ok(entry)
}

fn header(path: &str, size: u64) -> io::Result<Header> {
    let mut header = Header::new_gnu();
    header.set_path(path)?;
    header.set_size(size);
    header.set_mode(0o644);
    header.set_mtime(0);
    header.set_cksum();
    Ok(header)
}

fn add<W: Write>(builder: &mut Builder<W>, path: &str, bytes: &[u8]) -> io::Result<()> {
    builder.append(&header(path, bytes.len() as u64)?, bytes)
}

/// Fills up to the next block, as every entry of a tar stream is.
fn pad<W: Write>(builder: &mut Builder<W>, size: u64) -> io::Result<()> {
    const BLOCK: u64 = 512;
    let missing = usize::try_from((BLOCK - size % BLOCK) % BLOCK).unwrap_or(0);
    builder.get_mut().write_all(&vec![0; missing])
}
