//! Sockets that the process accepts from, bound before any resource is created, so that a taken port changes no
//! state.
//!
//! A listener at `localhost` is at both loopback addresses, as far as this machine has both: clients resolve the
//! name to either.

use std::io::{self, ErrorKind};
use std::net::SocketAddr;

use anyhow::Context;
use holdfast_config::{Config, ListenAddress};
use holdfast_net::Listener;
use rustix::io::Errno;
use tokio::net::{TcpListener, TcpSocket};

/// Send buffer of a connection in the kernel, in bytes. The kernel reports progress only when a good part of
/// that is free again: with the megabytes that it would take by itself, a slow reader looks like one that has
/// stopped.
const SEND_BUFFER: u32 = 131_072;
/// Connections that wait to be accepted.
const BACKLOG: u32 = 1_024;

/// Listeners of the process.
pub(super) struct Listeners {
    pub(super) public: Listener,
    pub(super) admin: Option<Listener>,
    pub(super) console: Option<Listener>,
    pub(super) node: Option<Listener>,
}

/// Local addresses of the listeners, with the port that the kernel chose for port 0.
#[derive(Debug, Clone, Copy)]
pub(super) struct Addresses {
    pub(super) public: SocketAddr,
    pub(super) admin: Option<SocketAddr>,
    pub(super) console: Option<SocketAddr>,
    pub(super) node: Option<SocketAddr>,
}

impl Listeners {
    pub(super) fn bind(config: &Config) -> anyhow::Result<Self> {
        // First: the others are for fewer.
        let public = bind("server.listen", config.server.listen)?;
        let node = config.node.as_ref().map(|node| bind("node.listen", node.listen));
        let console = config.console.holders.as_ref();
        let console = console.map(|console| bind("console.listen", console.listen)).transpose()?;
        Ok(Self { public, admin: Self::bind_admin(config)?, console, node: node.transpose()? })
    }

    /// The embedded default serves without its console if the address is taken, and its banner reports that.
    fn bind_admin(config: &Config) -> anyhow::Result<Option<Listener>> {
        let Some(admin) = &config.admin else { return Ok(None) };
        match bind("admin.listen", admin.listen) {
            Err(error) if config.file.is_none() => {
                tracing::debug!(error = format!("{error:#}"), "the console is not served");
                Ok(None)
            }
            bound => bound.map(Some),
        }
    }

    pub(super) fn addresses(&self) -> anyhow::Result<Addresses> {
        let address = |listener: &Listener| listener.local_addr().context("no local address");
        Ok(Addresses {
            public: address(&self.public)?,
            admin: self.admin.as_ref().map(address).transpose()?,
            console: self.console.as_ref().map(address).transpose()?,
            node: self.node.as_ref().map(address).transpose()?,
        })
    }
}

fn bind(option: &str, address: ListenAddress) -> anyhow::Result<Listener> {
    sockets(address).with_context(|| {
        let variable = match option {
            "server.listen" => ", or HOLDFAST_LISTEN,",
            "admin.listen" => ", or HOLDFAST_ADMIN_LISTEN,",
            _ => "",
        };
        format!("cannot listen on {address}: set {option}{variable} to an address that is free")
    })
}

/// A socket for each address; one that this machine does not have is left out, unless it is the only one.
fn sockets(address: ListenAddress) -> io::Result<Listener> {
    let (mut first, mut others) = (None, Vec::new());
    let mut missing = None;
    for mut at in address.all() {
        if let Some(first) = &first {
            // Port 0 is one port, whichever the kernel has chosen for the first.
            at.set_port(TcpListener::local_addr(first)?.port());
        }
        match listen(at) {
            Ok(socket) if first.is_none() => first = Some(socket),
            Ok(socket) => others.push(socket),
            Err(error) if is_absent(&error) => missing = Some(error),
            Err(error) => return Err(error),
        }
    }
    match (first, missing) {
        (Some(first), _) => Ok(Listener::new(first, others)),
        (None, Some(missing)) => Err(missing),
        (None, None) => Err(ErrorKind::AddrNotAvailable.into()),
    }
}

/// True if this machine does not have the address, or none of its family.
fn is_absent(error: &io::Error) -> bool {
    error.kind() == ErrorKind::AddrNotAvailable
        || error.raw_os_error() == Some(Errno::AFNOSUPPORT.raw_os_error())
}

pub(crate) fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    // A restart must not wait for the last process's connections to leave TIME_WAIT.
    socket.set_reuseaddr(true)?;
    // On the listener: accepted connections inherit it.
    socket.set_send_buffer_size(SEND_BUFFER)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}
