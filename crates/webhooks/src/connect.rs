//! Connections to addresses that were judged: TCP, and TLS with the name of the host.
//!
//! Never: a name lookup. The addresses are arguments, and no other address is connected to.

use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::time::Duration;

use holdfast_domain::admin::webhook::Host;
use rustls::pki_types::{InvalidDnsNameError, ServerName};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// Addresses of a host that are tried, one after the other, and the time for each: together less
/// than a try, so that a dead address does not keep it from the next.
const ADDRESSES_TRIED_MAX: usize = 3;
const ADDRESS_TIME_MAX: Duration = Duration::from_secs(4);

/// Connects to the first of these addresses that takes it. Cancel safe.
pub(crate) async fn connect(addresses: &[SocketAddr]) -> io::Result<TcpStream> {
    let mut failure = io::Error::new(ErrorKind::NotFound, "the host has no address");
    for address in addresses.iter().take(ADDRESSES_TRIED_MAX) {
        match timeout(ADDRESS_TIME_MAX, TcpStream::connect(address)).await {
            Ok(Ok(stream)) => return Ok(stream),
            Ok(Err(error)) => failure = error,
            Err(elapsed) => failure = elapsed.into(),
        }
    }
    Err(failure)
}

/// Name that the certificate of a host must be for, and that is sent to its server (SNI).
pub(crate) fn server_name(host: &Host) -> Result<ServerName<'static>, InvalidDnsNameError> {
    match host {
        Host::Name(name) => ServerName::try_from(name.to_string()),
        Host::Address(address) => Ok(ServerName::from(*address)),
    }
}
