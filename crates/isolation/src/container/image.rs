//! Images in the OCI layout: a folder with `oci-layout`, `index.json` and blobs. Each image is unpacked once, into a
//! folder named by its manifest's digest. A blob that does not match its digest is refused.

mod layers;

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use serde::Deserialize;
use serde::de::DeserializeOwned;
use sha2::{Digest as _, Sha256};
use thiserror::Error;

/// The maximum size of an index or manifest.
const MAX_LENGTH: u64 = 4 << 20;
/// The maximum nesting of indexes.
const MAX_DEPTH: usize = 4;

/// Why an image cannot be used. Nothing of it is kept.
#[derive(Debug, Error)]
pub(super) enum ImageError {
    #[error("{path} is not part of an OCI image layout: {reason}")]
    Layout { path: PathBuf, reason: String },
    #[error("the image has no part for {0}")]
    Platform(String),
    #[error("'{0}' is not a sha256 digest")]
    Digest(String),
    #[error("{0} has been changed: it does not have its digest")]
    Changed(String),
    #[error("a layer of the kind '{0}' cannot be unpacked; tar and tar+gzip can")]
    Kind(String),
    #[error("the image's '{path}': {reason}")]
    Entry { path: String, reason: String },
    #[error("the image could not be unpacked: {0}")]
    Disk(#[from] io::Error),
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Layout {
    image_layout_version: String,
}

#[derive(Debug, Deserialize)]
struct Index {
    manifests: Vec<Descriptor>,
}

#[derive(Debug, Deserialize)]
struct Manifest {
    layers: Vec<Descriptor>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Descriptor {
    #[serde(default)]
    media_type: String,
    digest: Digest,
    platform: Option<Platform>,
    #[serde(default)]
    annotations: BTreeMap<String, String>,
}

#[derive(Debug, Clone, Deserialize)]
struct Platform {
    os: String,
    architecture: String,
}

/// The digest of a blob, which is also its file name.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
struct Digest(String);

impl TryFrom<String> for Digest {
    type Error = ImageError;

    fn try_from(text: String) -> Result<Self, ImageError> {
        let hex = text.strip_prefix("sha256:").unwrap_or_default();
        let is_hex = hex.len() == 64 && hex.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        if is_hex { Ok(Self(hex.to_owned())) } else { Err(ImageError::Digest(text)) }
    }
}

impl Digest {
    fn check(&self, hash: Sha256) -> Result<(), ImageError> {
        let found: String = hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
        if found == self.0 { Ok(()) } else { Err(ImageError::Changed(format!("sha256:{}", self.0))) }
    }

    fn path(&self, layout: &Path) -> PathBuf {
        layout.join("blobs/sha256").join(&self.0)
    }
}

/// Unpacks the image's root file system below `images`, where it is kept for the next cell.
pub(super) fn unpack(layout: &Path, images: &Path) -> Result<PathBuf, ImageError> {
    let head: Layout = parse(&layout.join("oci-layout"), &read(&layout.join("oci-layout"))?)?;
    if !head.image_layout_version.starts_with("1.") {
        let reason = format!("version {} is unknown", head.image_layout_version);
        return Err(ImageError::Layout { path: layout.to_owned(), reason });
    }
    let index: Index = parse(&layout.join("index.json"), &read(&layout.join("index.json"))?)?;
    let digest = choose(layout, index, MAX_DEPTH)?;
    let unpacked = images.join(&digest.0);
    if unpacked.is_dir() {
        return Ok(unpacked);
    }
    let manifest: Manifest = blob(layout, &digest)?;
    fs::create_dir_all(images)?;
    let staging = staging(images)?;
    let done = manifest.layers.iter().try_for_each(|layer| apply(layout, layer, &staging));
    let moved = done.and_then(|()| match fs::rename(&staging, &unpacked) {
        // Another process unpacked the same image first.
        Err(_) if unpacked.is_dir() => Ok(fs::remove_dir_all(&staging)?),
        other => Ok(other?),
    });
    if moved.is_err() {
        let _ = fs::remove_dir_all(&staging);
    }
    moved.map(|()| unpacked)
}

/// Creates an empty folder that no other process uses.
fn staging(images: &Path) -> io::Result<PathBuf> {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let name = format!(".unpacking-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
    let folder = images.join(name);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir(&folder)?;
    fs::set_permissions(&folder, std::os::unix::fs::PermissionsExt::from_mode(0o755))?;
    Ok(folder)
}

/// Finds the manifest for this machine.
fn choose(layout: &Path, index: Index, depth: usize) -> Result<Digest, ImageError> {
    let architecture = match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    };
    let fits = |one: &Descriptor| {
        let here = one.platform.as_ref().is_none_or(|of| of.os == "linux" && of.architecture == architecture);
        // Attestations are listed beside the image in the index.
        here && !one.annotations.contains_key("vnd.docker.reference.type")
    };
    let found = index.manifests.into_iter().find(fits);
    let found =
        found.filter(|_| depth > 0).ok_or_else(|| ImageError::Platform(format!("linux/{architecture}")))?;
    if found.media_type.ends_with("index.v1+json") || found.media_type.ends_with("manifest.list.v2+json") {
        return choose(layout, blob(layout, &found.digest)?, depth - 1);
    }
    Ok(found.digest)
}

fn apply(layout: &Path, layer: &Descriptor, root: &Path) -> Result<(), ImageError> {
    let path = layer.digest.path(layout);
    let file = File::open(&path).map_err(|e| ImageError::Layout { path, reason: e.to_string() })?;
    let mut hashing = Hashing { inner: file, hash: Sha256::new() };
    let is_tar = |ending: &str| layer.media_type.ends_with(ending);
    if is_tar(".tar+gzip") || is_tar(".tar.gzip") {
        layers::apply(flate2::read::MultiGzDecoder::new(&mut hashing), root)?;
    } else if is_tar(".tar") {
        layers::apply(&mut hashing, root)?;
    } else {
        return Err(ImageError::Kind(layer.media_type.clone()));
    }
    // The digest also covers bytes after the archive.
    io::copy(&mut hashing, &mut io::sink())?;
    layer.digest.check(hashing.hash)
}

struct Hashing<R> {
    inner: R,
    hash: Sha256,
}

impl<R: Read> Read for Hashing<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(buffer)?;
        self.hash.update(&buffer[..count]);
        Ok(count)
    }
}

fn blob<T: DeserializeOwned>(layout: &Path, digest: &Digest) -> Result<T, ImageError> {
    let path = digest.path(layout);
    let bytes = read(&path)?;
    digest.check(Sha256::new_with_prefix(&bytes))?;
    parse(&path, &bytes)
}

fn read(path: &Path) -> Result<Vec<u8>, ImageError> {
    let mut bytes = Vec::new();
    let read = File::open(path).and_then(|file| file.take(MAX_LENGTH).read_to_end(&mut bytes));
    read.map_err(|e| ImageError::Layout { path: path.to_owned(), reason: e.to_string() })?;
    Ok(bytes)
}

fn parse<T: DeserializeOwned>(path: &Path, bytes: &[u8]) -> Result<T, ImageError> {
    let reason = |e: serde_json::Error| ImageError::Layout { path: path.to_owned(), reason: e.to_string() };
    serde_json::from_slice(bytes).map_err(reason)
}

#[cfg(test)]
mod tests;
