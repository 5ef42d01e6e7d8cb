//! Which code does the arithmetic of TLS: ring, as everywhere in this program.

/// Has to be called before the first HTTPS request; more often does no harm.
pub(crate) fn prepare() {
    // It fails when somebody has chosen before, which is just as well.
    let _ = tokio_rustls::rustls::crypto::ring::default_provider().install_default();
}
