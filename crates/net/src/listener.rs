//! Sockets of one listener: one, or one per address family if it is at both loopback addresses.
//!
//! A count of connections counts those of all of them: one listener may have several addresses.

use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::task::Poll;

use tokio::net::{TcpListener, TcpStream};

/// Bound sockets that connections are accepted from; never none.
#[derive(Debug)]
pub struct Listener {
    first: TcpListener,
    others: Vec<TcpListener>,
}

impl Listener {
    /// A listener at all of these, of which the first is the one that it is known by.
    #[must_use]
    pub const fn new(first: TcpListener, others: Vec<TcpListener>) -> Self {
        Self { first, others }
    }

    /// The address that it is known by.
    ///
    /// # Errors
    ///
    /// An error of the system, if it does not report the address.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.first.local_addr()
    }

    /// The next connection to any of them. Cancel safe.
    ///
    /// # Errors
    ///
    /// An error of the system.
    pub async fn accept(&self) -> io::Result<(TcpStream, SocketAddr)> {
        poll_fn(|context| {
            for socket in std::iter::once(&self.first).chain(&self.others) {
                if let Poll::Ready(accepted) = socket.poll_accept(context) {
                    return Poll::Ready(accepted);
                }
            }
            Poll::Pending
        })
        .await
    }
}
