//! TLS: the certificate must be for the name, and by a root that is trusted.

use std::net::Ipv4Addr;
use std::sync::Arc;

use holdfast_domain::admin::webhook::TryResult;
use holdfast_webhooks::{Sender, SenderOptions};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::ServerConfig;
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::TlsAcceptor;

use crate::names::Names;
use crate::receiver::{Receiver, status};
use crate::sample::{allowed, send};

/// Vouches for receivers, to whoever trusts its root.
struct Authority(CertifiedIssuer<'static, KeyPair>);

impl Authority {
    fn new() -> Self {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        Self(CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap())
    }

    fn root(&self) -> CertificateDer<'static> {
        self.0.der().clone()
    }

    /// TLS of a receiver that has a certificate for this name, and would rather speak HTTP/2.
    fn acceptor(&self, name: &str) -> TlsAcceptor {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        let certificate = params.signed_by(&key, &self.0).unwrap();
        let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
        let provider = Arc::new(aws_lc_rs::default_provider());
        let config = ServerConfig::builder_with_provider(provider);
        let mut config = config
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certificate.der().clone()], key)
            .unwrap();
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        TlsAcceptor::from(Arc::new(config))
    }
}

/// A sender that trusts this root, and for which every name is on this machine.
fn sender(extra_roots: Vec<CertificateDer<'static>>) -> Sender {
    let resolver = Arc::new(Names::of(&["127.0.0.1"]));
    Sender::new(SenderOptions { extra_roots, resolver, ..SenderOptions::default() }).unwrap()
}

#[tokio::test]
async fn tls_is_told_the_name_and_verifies_it() {
    let authority = Authority::new();
    let receiver = Receiver::start_tls(status(200), authority.acceptor("hooks.test")).await;
    let sender = sender(vec![authority.root()]);
    let result = send(&sender, allowed(&receiver.url("hooks.test", "/in"))).await;
    assert_eq!(result, TryResult::Answered(200));
    assert_eq!(receiver.names(), [Some("hooks.test".to_owned())]);
    assert!(receiver.requests()[0].starts_with("POST /in HTTP/1.1\r\nhost: hooks.test:"));
    // The same server under a name that its certificate is not for.
    let result = send(&sender, allowed(&receiver.url("other.test", "/in"))).await;
    assert_eq!(result, TryResult::TlsFailed);
    assert_eq!(receiver.requests().len(), 1);
}

#[tokio::test]
async fn an_address_is_verified_as_one() {
    let authority = Authority::new();
    let here = Ipv4Addr::LOCALHOST.to_string();
    let receiver = Receiver::start_tls(status(200), authority.acceptor(&here)).await;
    let result = send(&sender(vec![authority.root()]), allowed(&receiver.url(&here, "/in"))).await;
    assert_eq!(result, TryResult::Answered(200));
    assert_eq!(receiver.names(), [None], "an address is no name of TLS");
}

#[tokio::test]
async fn a_root_that_is_not_trusted_is_refused() {
    let authority = Authority::new();
    let receiver = Receiver::start_tls(status(200), authority.acceptor("hooks.test")).await;
    let url = receiver.url("hooks.test", "/in");
    for roots in [Vec::new(), vec![Authority::new().root()]] {
        assert_eq!(send(&sender(roots), allowed(&url)).await, TryResult::TlsFailed);
    }
    // The origin is listed, and all the same nothing is sent without TLS.
    let plain = Receiver::start(status(200)).await;
    let url = plain.url("hooks.test", "/in").replace("http:", "https:");
    assert_eq!(send(&sender(vec![authority.root()]), allowed(&url)).await, TryResult::TlsFailed);
    assert_eq!(receiver.requests().len() + plain.requests().len(), 0);
}
