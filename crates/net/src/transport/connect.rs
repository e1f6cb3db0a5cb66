//! New connections to servers: name lookup, TCP, the operator's proxy if there is one, and TLS if the URL
//! requires it.
//!
//! ```text
//! lookup_host ─▶ interleave ─▶ first_of ─▶ [CONNECT to a proxy] ─▶ [TLS with ALPN: h2, http/1.1]
//! ```
//!
//! Addresses race: IPv6 and IPv4 by turns, each `STAGGER` after the one before it or as soon as an
//! attempt fails, and the first connection wins. A host with one dead address then costs a quarter
//! of a second, not the time-out of TCP.
//!
//! A server with TLS is reached through a proxy by `CONNECT`: the proxy sees neither prompt nor
//! credential. A server without TLS is relayed: the proxy reads everything and may answer in the
//! server's place, so `ConnectedStream::relayed` goes on to the judgement of errors.
//!
//! A host that vanishes sends no signal: without a probe from here, a caller waits for its answer up to its own
//! limit. So each connection probes by TCP's keepalive, and is broken after `VANISHED` without an answer.
//!
//! Never: a byte of a request. Every error here therefore proves that no server ran it.
//!
//! Limits: a proxy's answer to `CONNECT` is read up to `HEAD_BYTES_MAX`. The time is bounded by the
//! caller, who drops the future, and with it every attempt.

use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use http::Uri;
use http::header::HeaderValue;
use rustls::ClientConfig;
use rustls::pki_types::{InvalidDnsNameError, ServerName};
use socket2::{SockRef, TcpKeepalive};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::net::{TcpStream, lookup_host};
use tokio::task::JoinSet;
use tokio::time::sleep;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::proxy::{Proxies, Proxy, bare};

/// Head start of one address of a server before the next is tried beside it.
const STAGGER: Duration = Duration::from_millis(250);
/// Silence of a host, its kernel's too, after which its connection is broken.
const VANISHED: Duration = Duration::from_secs(60);
/// Silence after which TCP sends a probe, and time between two probes.
const KEEPALIVE: Duration = Duration::from_secs(15);
/// Questions without an answer that come to [`VANISHED`].
const UNANSWERED_MAX: u32 = 3;
/// Length of the head of a proxy's answer, in bytes at most.
const HEAD_BYTES_MAX: usize = 8 * 1024;

/// Connects to servers.
pub(super) struct Connector {
    tls: TlsConnector,
    proxies: Proxies,
}

/// New connection, with the proxy's terms if a proxy relays on it.
pub(super) struct ConnectedStream {
    pub(super) stream: MaybeTlsStream,
    pub(super) relayed: Option<ProxyRelay>,
}

/// Header for a proxy that relays requests to a server without TLS.
#[derive(Clone)]
pub(super) struct ProxyRelay {
    pub(super) authorization: Option<HeaderValue>,
}

/// The bytes of a connection.
pub(super) enum MaybeTlsStream {
    Plain(TcpStream),
    Encrypted(Box<TlsStream<TcpStream>>),
}

/// Failure to connect. No byte of a request was sent.
#[derive(Debug, thiserror::Error)]
pub(super) enum ConnectError {
    #[error("the URL has no host")]
    NoHost,
    #[error("the host's name is none that a certificate can have")]
    Name(#[source] InvalidDnsNameError),
    #[error("the host is not found")]
    NotFound(#[source] io::Error),
    #[error("no address of the host takes connections")]
    Unreached(#[source] io::Error),
    #[error("the proxy breaks the connection off")]
    Proxy(#[source] io::Error),
    #[error("the proxy does not connect: it answers {0}")]
    Refused(String),
    #[error("TLS does not come about")]
    Tls(#[source] io::Error),
}

impl Connector {
    /// Servers with TLS may choose HTTP/2.
    pub(super) fn new(mut tls: ClientConfig, proxies: Proxies) -> Self {
        // In the order of preference; the server chooses, and one without ALPN means HTTP/1.1.
        tls.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Self { tls: TlsConnector::from(Arc::new(tls)), proxies }
    }

    /// A new connection to the server of this address. Cancel safe.
    pub(super) async fn connect(&self, server: &Uri) -> Result<ConnectedStream, ConnectError> {
        let host = bare(server.host().ok_or(ConnectError::NoHost)?);
        let is_encrypted = server.scheme_str() == Some("https");
        let port = server.port_u16().unwrap_or(if is_encrypted { 443 } else { 80 });
        let proxy = self.proxies.to(server);
        let (at, at_port) = proxy.map_or((host, port), |proxy| (proxy.host.as_str(), proxy.port));
        let mut tcp = connect_tcp(at, at_port).await?;
        if !is_encrypted {
            let authorization = |proxy: &Proxy| proxy.authorization.clone();
            let relayed = proxy.map(|proxy| ProxyRelay { authorization: authorization(proxy) });
            return Ok(ConnectedStream { stream: MaybeTlsStream::Plain(tcp), relayed });
        }
        if let Some(proxy) = proxy {
            // Not the bare host: an IPv6 address keeps its brackets in the target of `CONNECT`.
            tunnel(&mut tcp, proxy, server.host().unwrap_or(host), port).await?;
        }
        let name = ServerName::try_from(host.to_owned()).map_err(ConnectError::Name)?;
        let encrypted = self.tls.connect(name, tcp).await.map_err(ConnectError::Tls)?;
        Ok(ConnectedStream {
            stream: MaybeTlsStream::Encrypted(Box::new(encrypted)),
            relayed: None,
        })
    }
}

async fn connect_tcp(host: &str, port: u16) -> Result<TcpStream, ConnectError> {
    let found = lookup_host((host, port)).await.map_err(ConnectError::NotFound)?;
    first_of(interleave(found)).await.map_err(ConnectError::Unreached)
}

/// Addresses of both kinds by turns: one of the kinds may lead nowhere.
fn interleave(addresses: impl Iterator<Item = SocketAddr>) -> Vec<SocketAddr> {
    let (sixes, fours): (Vec<_>, Vec<_>) = addresses.partition(SocketAddr::is_ipv6);
    let (mut sixes, mut fours) = (sixes.into_iter(), fours.into_iter());
    let mut by_turns = Vec::new();
    while sixes.len() + fours.len() > 0 {
        by_turns.extend(sixes.next());
        by_turns.extend(fours.next());
    }
    by_turns
}

/// Tries addresses, each a little after the one before it or when that has failed, and takes the
/// first connection.
async fn first_of(addresses: Vec<SocketAddr>) -> io::Result<TcpStream> {
    let mut waiting = addresses.into_iter();
    let mut attempts = JoinSet::new();
    let mut failed = io::Error::new(ErrorKind::NotFound, "the host has no address");
    loop {
        match waiting.next() {
            Some(address) => drop(attempts.spawn(TcpStream::connect(address))),
            None if attempts.is_empty() => return Err(failed),
            None => {}
        }
        let more = waiting.len() > 0;
        tokio::select! {
            Some(attempt) = attempts.join_next() => match attempt {
                Ok(Ok(stream)) => {
                    // The end of a request must not wait for the acknowledgement of what went
                    // before it. Returning drops `attempts`, which aborts the slower ones.
                    stream.set_nodelay(true)?;
                    notice_silence(&stream)?;
                    return Ok(stream);
                }
                Ok(Err(error)) => failed = error,
                Err(error) => failed = io::Error::other(error),
            },
            () = sleep(STAGGER), if more => {}
        }
    }
}

/// Breaks a connection whose host has vanished: one that owes an answer by questions, and one that owes an
/// acknowledgement by the time that this takes.
fn notice_silence(stream: &TcpStream) -> io::Result<()> {
    let socket = SockRef::from(stream);
    let keepalive = TcpKeepalive::new().with_time(KEEPALIVE).with_interval(KEEPALIVE);
    socket.set_tcp_keepalive(&keepalive.with_retries(UNANSWERED_MAX))?;
    #[cfg(target_os = "linux")]
    socket.set_tcp_user_timeout(Some(VANISHED))?;
    Ok(())
}

/// Has a proxy connect to a server: what follows on the connection is the server's.
async fn tunnel(
    tcp: &mut TcpStream,
    proxy: &Proxy,
    host: &str,
    port: u16,
) -> Result<(), ConnectError> {
    let mut head =
        format!("CONNECT {host}:{port} HTTP/1.1\r\nhost: {host}:{port}\r\n").into_bytes();
    if let Some(authorization) = &proxy.authorization {
        head.extend_from_slice(b"proxy-authorization: ");
        head.extend_from_slice(authorization.as_bytes());
        head.extend_from_slice(b"\r\n");
    }
    head.extend_from_slice(b"\r\n");
    tcp.write_all(&head).await.map_err(ConnectError::Proxy)?;
    let mut answer = Vec::new();
    // The server speaks only after it has been spoken to, so nothing follows the head.
    while !answer.ends_with(b"\r\n\r\n") {
        let mut more = [0; 1_024];
        let read = tcp.read(&mut more).await.map_err(ConnectError::Proxy)?;
        let more = more.get(..read).unwrap_or_default();
        if more.is_empty() || answer.len().saturating_add(read) > HEAD_BYTES_MAX {
            break;
        }
        answer.extend_from_slice(more);
        // A refusal may have a body, and need not end: its status is all that is told of it.
        if status(&answer).is_some_and(|status| !status.starts_with('2')) {
            break;
        }
    }
    match status(&answer) {
        Some(status) if status.starts_with('2') && answer.ends_with(b"\r\n\r\n") => Ok(()),
        Some(status) => Err(ConnectError::Refused(status)),
        None => Err(ConnectError::Proxy(ErrorKind::InvalidData.into())),
    }
}

/// The status of an answer whose first line is whole.
fn status(answer: &[u8]) -> Option<String> {
    let end = answer.iter().position(|byte| *byte == b'\n')?;
    let line = str::from_utf8(answer.get(..end)?).ok()?;
    let status = line.strip_prefix("HTTP/1.")?.split(' ').nth(1)?.trim();
    let is_status = status.len() == 3 && status.bytes().all(|byte| byte.is_ascii_digit());
    is_status.then(|| status.to_owned())
}

impl MaybeTlsStream {
    /// True if the server has chosen HTTP/2. Without TLS there is no such choice.
    pub(super) fn is_http2(&self) -> bool {
        match self {
            Self::Plain(_) => false,
            Self::Encrypted(stream) => stream.get_ref().1.alpn_protocol() == Some(b"h2"),
        }
    }
}

impl AsyncRead for MaybeTlsStream {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_read(context, buffer),
            Self::Encrypted(stream) => Pin::new(stream).poll_read(context, buffer),
        }
    }
}

impl AsyncWrite for MaybeTlsStream {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_write(context, bytes),
            Self::Encrypted(stream) => Pin::new(stream).poll_write(context, bytes),
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_write_vectored(context, pieces),
            Self::Encrypted(stream) => Pin::new(stream).poll_write_vectored(context, pieces),
        }
    }

    fn is_write_vectored(&self) -> bool {
        match self {
            Self::Plain(stream) => stream.is_write_vectored(),
            Self::Encrypted(stream) => stream.is_write_vectored(),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_flush(context),
            Self::Encrypted(stream) => Pin::new(stream).poll_flush(context),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_shutdown(context),
            Self::Encrypted(stream) => Pin::new(stream).poll_shutdown(context),
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::net::TcpListener;

    use super::*;

    #[test]
    fn both_kinds_of_addresses_take_turns() {
        let order = |addresses: &[&str]| {
            let addresses = addresses.iter().map(|address| address.parse().unwrap());
            interleave(addresses).iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
        };
        let mixed = ["[::1]:1", "[::2]:1", "[::3]:1", "1.1.1.1:1"];
        assert_eq!(order(&mixed), "[::1]:1 1.1.1.1:1 [::2]:1 [::3]:1");
        assert_eq!(order(&["1.1.1.1:1", "2.2.2.2:1", "[::1]:1"]), "[::1]:1 1.1.1.1:1 2.2.2.2:1");
        assert_eq!(order(&[]), "");
    }

    #[tokio::test]
    async fn an_address_that_does_not_answer_leaves_the_time_to_the_others() {
        let (here, gone) = (listener().await, listener().await);
        let (alive, dead) = (here.local_addr().unwrap(), gone.local_addr().unwrap());
        drop(gone);
        let stream = first_of(vec![dead, dead, alive]).await.unwrap();
        assert_eq!(stream.peer_addr().unwrap(), alive);
        assert_eq!(first_of(vec![dead]).await.unwrap_err().kind(), ErrorKind::ConnectionRefused);
        assert_eq!(first_of(Vec::new()).await.unwrap_err().kind(), ErrorKind::NotFound);
    }

    #[tokio::test]
    async fn a_host_that_vanishes_is_noticed_within_a_minute() {
        let here = listener().await;
        let stream = connect_tcp("127.0.0.1", here.local_addr().unwrap().port()).await.unwrap();
        let socket = SockRef::from(&stream);
        assert!(socket.keepalive().unwrap());
        let idle = socket.tcp_keepalive_time().unwrap();
        let between = socket.tcp_keepalive_interval().unwrap();
        assert_eq!(idle + between * socket.tcp_keepalive_retries().unwrap(), VANISHED);
        assert_eq!(socket.tcp_user_timeout().unwrap(), Some(VANISHED));
    }

    async fn listener() -> TcpListener {
        TcpListener::bind("127.0.0.1:0").await.unwrap()
    }
}
