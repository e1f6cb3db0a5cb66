//! Origin of a sign-in: network address, listener, and the mark that the browser shows.

use std::net::IpAddr;

use holdfast_domain::secret::BrowserToken;

/// Listener at which people sign in. Failures at one do not count at the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Listener {
    /// The operators' listener, which holders may share.
    Operators,
    /// The holders' own listener.
    Holders,
}

/// Origin of an attempt to sign in.
#[derive(Debug, Clone)]
pub struct SignInOrigin {
    /// Network address of the client.
    pub address: IpAddr,
    /// Listener of the request.
    pub listener: Listener,
    /// Mark that the browser shows, of any person or none.
    pub mark: Option<BrowserToken>,
}
