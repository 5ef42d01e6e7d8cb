//! TLS. The certificate files are checked for every connection, so a renewed certificate is used without a restart. If
//! the new files cannot be used, the server keeps the old certificate.

use std::error::Error;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::{self, PemObject};
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::{self, InconsistentKeys, version};

/// The certificate files, in PEM format.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tls {
    /// The server's certificate, followed by the intermediate certificates.
    pub certificate: PathBuf,
    /// The private key.
    pub key: PathBuf,
}

/// Why a certificate cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    #[error("[server] tls: cannot read {}; check the path, and that this user may read the file", path.display())]
    Unreadable { path: PathBuf, source: io::Error },
    #[error("[server] tls: {} is not PEM: {reason}", path.display())]
    NotPem { path: PathBuf, reason: String },
    #[error(
        "[server] tls: {} contains no certificate; it needs a section that begins with -----BEGIN CERTIFICATE-----",
        path.display()
    )]
    NoCertificate { path: PathBuf },
    #[error(
        "[server] tls: {} contains no key; it needs a section that begins with -----BEGIN PRIVATE KEY-----, without a \
         password",
        path.display()
    )]
    NoKey { path: PathBuf },
    #[error(
        "[server] tls: the key in {} does not belong to the first certificate in {}; the server's own certificate \
         must come first, and both files must belong together",
        key.display(), certificate.display()
    )]
    Mismatch { certificate: PathBuf, key: PathBuf },
    #[error("[server] tls: {} cannot be used", certificate.display())]
    Unusable { certificate: PathBuf, source: rustls::Error },
}

impl Tls {
    /// Checks that the files can be used.
    pub fn check(&self) -> Result<(), TlsError> {
        self.load().map(drop)
    }

    fn load(&self) -> Result<Arc<rustls::ServerConfig>, TlsError> {
        let text = read(&self.certificate)?;
        let chain = CertificateDer::pem_slice_iter(&text).collect::<Result<Vec<_>, _>>();
        let chain = chain.map_err(|error| not_pem(&self.certificate, &error))?;
        if chain.is_empty() {
            return Err(TlsError::NoCertificate { path: self.certificate.clone() });
        }
        let text = read(&self.key)?;
        let key = PrivateKeyDer::pem_slice_iter(&text).next().transpose();
        let key = key.map_err(|error| not_pem(&self.key, &error))?;
        let key = key.ok_or_else(|| TlsError::NoKey { path: self.key.clone() })?;
        let unusable = |source| {
            let certificate = self.certificate.clone();
            if matches!(source, rustls::Error::InconsistentKeys(InconsistentKeys::KeyMismatch)) {
                TlsError::Mismatch { certificate, key: self.key.clone() }
            } else {
                TlsError::Unusable { certificate, source }
            }
        };
        let config = rustls::ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_protocol_versions(&[&version::TLS13])
            .map_err(unusable)?;
        let mut config = config.with_no_client_auth().with_single_cert(chain, key).map_err(unusable)?;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Arc::new(config))
    }

    /// Modification times and sizes, to detect replaced files.
    fn stamp(&self) -> FileStamps {
        let stamp =
            |path: &Path| std::fs::metadata(path).and_then(|meta| Ok((meta.modified()?, meta.len()))).ok();
        [stamp(&self.certificate), stamp(&self.key)]
    }
}

type FileStamps = [Option<(SystemTime, u64)>; 2];

fn read(path: &Path) -> Result<Vec<u8>, TlsError> {
    std::fs::read(path).map_err(|source| TlsError::Unreadable { path: path.to_owned(), source })
}

fn not_pem(path: &Path, error: &pem::Error) -> TlsError {
    TlsError::NotPem { path: path.to_owned(), reason: error.to_string() }
}

/// The certificate in use.
#[derive(Debug)]
pub(super) struct Certificate {
    files: Tls,
    current: Mutex<(FileStamps, Arc<rustls::ServerConfig>)>,
}

impl Certificate {
    pub(super) fn load(files: Tls) -> Result<Self, TlsError> {
        let current = Mutex::new((files.stamp(), files.load()?));
        Ok(Self { files, current })
    }

    /// The configuration for the next connection, from the newest usable files.
    pub(super) fn current(&self) -> Arc<rustls::ServerConfig> {
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        let stamp = self.files.stamp();
        if stamp != current.0 {
            current.0 = stamp;
            match self.files.load() {
                Ok(config) => current.1 = config,
                Err(error) => tracing::error!(
                    error = &error as &dyn Error,
                    "cannot use the new certificate; keeping the old one"
                ),
            }
        }
        Arc::clone(&current.1)
    }
}
