//! Addresses of an endpoint: all that its name has, each of them judged.
//!
//! A single address that is not public spoils the name. The owner of the name could else list a public address,
//! which is judged, and a private one, which is connected to if the public one does not answer.

use std::fmt::Debug;
use std::io::{self, ErrorKind};
use std::net::{IpAddr, SocketAddr};

use async_trait::async_trait;
use holdfast_domain::admin::webhook::{Endpoint, Host};
use tokio::net::lookup_host;
use tokio::time::error::Elapsed;

/// Source of the addresses of names.
#[async_trait]
pub trait Resolver: Debug + Send + Sync {
    /// All addresses of a name, the best first. Dropping the future gives up.
    async fn resolve(&self, name: &str) -> io::Result<Vec<IpAddr>>;
}

/// The resolver of the system, which all other programs use.
#[derive(Debug, Clone, Copy)]
pub struct SystemResolver;

#[async_trait]
impl Resolver for SystemResolver {
    async fn resolve(&self, name: &str) -> io::Result<Vec<IpAddr>> {
        // Port 0, which is never connected to: only the addresses are used.
        Ok(lookup_host((name, 0)).await?.map(|found| found.ip()).collect())
    }
}

/// Reason for which an endpoint has no address that may be connected to. Contains no address: a name would else
/// reveal the structure of the operator's network.
#[derive(Debug, thiserror::Error)]
pub enum AddressError {
    /// The name has no address, or none that could be looked up.
    #[error("the host is not found: check its name and its DNS entry")]
    NotFound(#[source] io::Error),
    /// At least one of its addresses is not public.
    #[error(
        "the host has an address that is not public: give it public ones only, or have the \
         operator list the origin under allow in [webhooks]"
    )]
    NotPublic,
    /// The resolver did not answer in time.
    #[error("the host was not found in time: check its DNS entry, and try again")]
    TimedOut(#[source] Elapsed),
}

/// Looks the addresses of an endpoint up, and judges every one of them. Cancel safe.
pub(crate) async fn addresses(
    endpoint: &Endpoint,
    resolver: &dyn Resolver,
) -> Result<Vec<SocketAddr>, AddressError> {
    let origin = endpoint.origin();
    let found = match &origin.host {
        Host::Address(address) => vec![*address],
        Host::Name(name) => resolver.resolve(name).await.map_err(AddressError::NotFound)?,
    };
    if found.is_empty() {
        let none = io::Error::new(ErrorKind::NotFound, "the host has no address");
        return Err(AddressError::NotFound(none));
    }
    if !found.iter().all(|address| endpoint.permits(*address)) {
        return Err(AddressError::NotPublic);
    }
    Ok(found.into_iter().map(|address| SocketAddr::new(address, origin.port)).collect())
}
