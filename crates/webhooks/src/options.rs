//! Options of a sender: its time, its resolver, and whom its TLS trusts.

use std::sync::Arc;
use std::time::Duration;

use rustls::pki_types::CertificateDer;
use rustls::{ClientConfig, RootCertStore};

use crate::resolve::{Resolver, SystemResolver};

/// Options of a [`Sender`](crate::Sender).
#[derive(Debug, Clone)]
pub struct SenderOptions {
    /// Time limit of one try: from the look-up of the name to the end of the answer.
    pub try_time_max: Duration,
    /// Root certificates to trust besides the platform's and Mozilla's.
    pub extra_roots: Vec<CertificateDer<'static>>,
    /// Source of the addresses of names.
    pub resolver: Arc<dyn Resolver>,
}

impl SenderOptions {
    /// Time limit of one try, unless a test says otherwise.
    pub const TRY_TIME_MAX: Duration = Duration::from_secs(15);
}

impl Default for SenderOptions {
    fn default() -> Self {
        Self {
            try_time_max: Self::TRY_TIME_MAX,
            extra_roots: Vec::new(),
            resolver: Arc::new(SystemResolver),
        }
    }
}

/// Options that no sender can be made with.
#[derive(Debug, thiserror::Error)]
pub enum BadOptions {
    /// An extra root certificate that cannot be read.
    #[error("a root certificate cannot be read")]
    Root(#[source] rustls::Error),
    /// TLS cannot be set up.
    #[error("TLS cannot be set up")]
    Tls(#[source] rustls::Error),
}

/// Client of TLS that trusts Mozilla's roots, the platform's (or those of `SSL_CERT_FILE`) and the
/// extra ones, as the clients of providers do.
pub(crate) fn tls(extra_roots: Vec<CertificateDer<'static>>) -> Result<ClientConfig, BadOptions> {
    let mut roots = RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() };
    // Platforms without roots are common, and Mozilla's suffice there.
    let platform = rustls_native_certs::load_native_certs();
    let (added, ignored) = roots.add_parsable_certificates(platform.certs);
    tracing::debug!(added, ignored, errors = platform.errors.len(), "platform roots read");
    for root in extra_roots {
        roots.add(root).map_err(BadOptions::Root)?;
    }
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(BadOptions::Tls)?;
    let mut config = builder.with_root_certificates(roots).with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(config)
}
