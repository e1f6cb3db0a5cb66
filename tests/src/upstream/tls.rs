//! A server's end of TLS with a certificate of its own, which is trusted only on request.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;

use rcgen::CertifiedKey;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};

use super::Line;

/// A certificate for `localhost` and its key.
#[derive(Debug, Clone)]
pub struct Tls {
    server: Arc<ServerConfig>,
    certificate: String,
}

impl Tls {
    /// A new certificate.
    #[must_use]
    pub fn new() -> Self {
        let CertifiedKey { cert, signing_key } =
            rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("a certificate");
        let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(signing_key.serialize_der()));
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let server = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("TLS")
            .with_no_client_auth()
            .with_single_cert(vec![cert.der().clone()], key)
            .expect("its own key");
        Self { server: Arc::new(server), certificate: cert.pem() }
    }

    /// The certificate in PEM, for clients that are to trust it.
    #[must_use]
    pub fn certificate(&self) -> &str {
        &self.certificate
    }

    /// Shakes hands; `None` if the client refuses.
    pub(crate) fn accept(&self, mut stream: TcpStream) -> Option<impl Line + use<>> {
        let mut connection = ServerConnection::new(Arc::clone(&self.server)).expect("TLS");
        connection.complete_io(&mut stream).ok()?;
        Some(TlsConnection(StreamOwned::new(connection, stream)))
    }
}

impl Default for Tls {
    fn default() -> Self {
        Self::new()
    }
}

struct TlsConnection(StreamOwned<ServerConnection, TcpStream>);

impl Read for TlsConnection {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        self.0.read(buffer)
    }
}

impl Write for TlsConnection {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.0.flush()
    }
}

impl Line for TlsConnection {
    fn reset(self) {}
}
