//! Root certificates that every client of the process trusts, in one place.

use std::sync::Arc;

use rustls::pki_types::CertificateDer;
use rustls::{ClientConfig, RootCertStore};

use crate::base_url::BadOptions;

/// Client of TLS that trusts Mozilla's roots, the platform's (or those of `SSL_CERT_FILE`) and the extra ones.
///
/// # Errors
///
/// [`BadOptions::Root`] for an extra root that cannot be read, and [`BadOptions::Tls`].
pub fn tls(extra_roots: Vec<CertificateDer<'static>>) -> Result<ClientConfig, BadOptions> {
    let mut roots = RootCertStore::empty();
    roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
    // A platform without roots, or with some that cannot be read, is common and not an error.
    let platform = rustls_native_certs::load_native_certs();
    let (added, ignored) = roots.add_parsable_certificates(platform.certs);
    tracing::debug!(added, ignored, errors = platform.errors.len(), "platform roots read");
    for root in extra_roots {
        roots.add(root).map_err(BadOptions::Root)?;
    }
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(BadOptions::Tls)?;
    Ok(config.with_root_certificates(roots).with_no_client_auth())
}
