//! The TLS crypto provider: ring, as everywhere in this program.

/// Call this before the first HTTPS request. Repeated calls do no harm.
pub(crate) fn prepare() {
    // Installing fails if a provider is installed already.
    let _ = tokio_rustls::rustls::crypto::ring::default_provider().install_default();
}
