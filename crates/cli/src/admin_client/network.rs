//! The client over the network: one request and its whole answer, over HTTP/1.1 on a connection of its own.
//!
//! Never: a redirect that is followed, a proxy of the environment, or another host than the one that was named;
//! only that one gets the admin key. `http://` reaches loopback addresses only, even if `localhost` resolves
//! to another one.
//!
//! Limits: [`CONNECT_TIME_MAX`] for the name, TCP and TLS together; [`ANSWER_TIME_MAX`] for the whole answer;
//! [`ANSWER_BYTES_MAX`] of it. A file has neither of the last two: each of its parts has its own time.

use std::error::Error;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, anyhow};
use bytes::Bytes;
use holdfast_config::Secret;
use holdfast_domain::debug_as;
use holdfast_net::AdminUrl;
use holdfast_net::{one_shot, tls};
use http::header::{AUTHORIZATION, CONNECTION, HOST, USER_AGENT};
use http::response::Parts;
use http::{HeaderValue, Request, Response};
use http_body_util::{BodyExt, Full, Limited};
use rustls::CertificateError;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, lookup_host};
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::download::{Download, PART_TIME_MAX};
use super::{AdminClientError, ApiReply};
use crate::file_output::FileOutput;

/// Time for a connection, in all.
const CONNECT_TIME_MAX: Duration = Duration::from_secs(10);
/// Time for an answer, from the first byte of the request to its last.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(60);
/// Length of the head of an answer.
const HEAD_BYTES_MAX: usize = 408 << 10;
/// Length of an answer: a page of 200 rows, and a hundred new keys, are far below it.
const ANSWER_BYTES_MAX: usize = 64 << 20;

/// The API of a server.
pub(crate) struct HttpClient {
    url: AdminUrl,
    host: HeaderValue,
    authorization: HeaderValue,
    tls: TlsConnector,
}

/// A connection to the server.
enum ServerStream {
    Plain(TcpStream),
    Encrypted(Box<TlsStream<TcpStream>>),
}

impl HttpClient {
    /// The client of this server.
    pub(super) fn new(url: AdminUrl, key: &Secret) -> anyhow::Result<Self> {
        let mut authorization = HeaderValue::try_from(format!("Bearer {}", key.expose()))
            .context("the admin key is none that a header can have")?;
        // Marked, so that a `Debug` of the headers in an error or a log does not print the key.
        authorization.set_sensitive(true);
        let host = HeaderValue::try_from(url.authority())?;
        let mut tls = tls(Vec::new())?;
        // Offered alone: the client writes HTTP/1.1, and a server must not choose another one in
        // the handshake.
        tls.alpn_protocols = vec![b"http/1.1".to_vec()];
        let tls = TlsConnector::from(Arc::new(tls));
        Ok(Self { url, host, authorization, tls })
    }

    /// Address of the server.
    pub(super) const fn url(&self) -> &AdminUrl {
        &self.url
    }

    /// Sends a request once.
    pub(super) async fn send(&self, request: Request<Bytes>) -> Result<ApiReply, AdminClientError> {
        let (connected, request) = self.open(request).await?;
        let answering = async {
            match connected {
                ServerStream::Plain(stream) => exchange(stream, request).await,
                ServerStream::Encrypted(stream) => exchange(stream, request).await,
            }
        };
        // From here on each failure is `Lost`: bytes may have reached the server, and a timeout
        // proves nothing.
        let answered = timeout(ANSWER_TIME_MAX, answering).await;
        let answered = answered.context("it did not come in time").and_then(|it| it);
        let (head, body) = answered.map_err(AdminClientError::Lost)?.into_parts();
        Ok(reply(&head, body))
    }

    /// Sends a request for a file, and writes what comes.
    pub(super) async fn download(
        &self,
        request: Request<Bytes>,
        file: &mut FileOutput,
    ) -> Result<Download, AdminClientError> {
        let (connected, request) = self.open(request).await?;
        let downloaded = match connected {
            ServerStream::Plain(stream) => download(stream, request, file).await,
            ServerStream::Encrypted(stream) => download(stream, request, file).await,
        };
        downloaded.map_err(AdminClientError::Lost)
    }

    /// A connection, and the request with what every request has.
    async fn open(
        &self,
        request: Request<Bytes>,
    ) -> Result<(ServerStream, Request<Full<Bytes>>), AdminClientError> {
        let connecting = timeout(CONNECT_TIME_MAX, self.connect()).await;
        let connected = connecting.context("the connection did not come about in time");
        let connected = connected.map_err(AdminClientError::Unsent).and_then(|it| it)?;
        let mut request = request.map(Full::new);
        let headers = request.headers_mut();
        headers.insert(HOST, self.host.clone());
        headers.insert(AUTHORIZATION, self.authorization.clone());
        headers.insert(
            USER_AGENT,
            HeaderValue::from_static(concat!("holdfast/", env!("CARGO_PKG_VERSION"))),
        );
        headers.insert(CONNECTION, HeaderValue::from_static("close"));
        Ok((connected, request))
    }

    async fn connect(&self) -> Result<ServerStream, AdminClientError> {
        let host = self.url.host().trim_start_matches('[').trim_end_matches(']');
        let found = lookup_host((host, self.url.port())).await;
        let found = found.with_context(|| format!("{host} is not found"));
        let found = found.map_err(AdminClientError::Unsent)?;
        // By the resolved address and not by the name: a resolver can give `localhost` an address
        // in the network, and the key would cross it in plain text.
        let may_be = |it: &SocketAddr| self.url.is_https() || it.ip().to_canonical().is_loopback();
        let addresses: Vec<_> = found.filter(may_be).collect();
        if addresses.is_empty() {
            let why = anyhow!("{host} has no address that http:// may go to: write https://");
            return Err(AdminClientError::Untrusted(why));
        }
        // The checked addresses and not the name once more: a second look-up could have another
        // answer.
        let tcp = TcpStream::connect(addresses.as_slice()).await;
        let tcp = tcp.with_context(|| format!("{} takes no connection", self.url));
        let tcp = tcp.map_err(AdminClientError::Unsent)?;
        if !self.url.is_https() {
            return Ok(ServerStream::Plain(tcp));
        }
        let name = ServerName::try_from(host.to_owned())
            .with_context(|| format!("{host} is none that a certificate can have"));
        let encrypted = self.tls.connect(name.map_err(AdminClientError::Untrusted)?, tcp).await;
        let encrypted = encrypted.map_err(|error| self.no_tls(error))?;
        Ok(ServerStream::Encrypted(Box::new(encrypted)))
    }

    /// A failed handshake, with the remedy for a certificate of an unknown issuer. A refusal of TLS itself comes at
    /// every try; a connection that broke off may succeed at the next.
    fn no_tls(&self, error: io::Error) -> AdminClientError {
        let cause = error.get_ref().and_then(|cause| cause.downcast_ref::<rustls::Error>());
        let unknown = rustls::Error::InvalidCertificate(CertificateError::UnknownIssuer);
        let advice = if cause == Some(&unknown) {
            ", whose certificate is of an authority that is not known here: SSL_CERT_FILE names a file \
             with the certificate of a private one"
        } else {
            ""
        };
        let failure =
            if cause.is_some() { AdminClientError::Untrusted } else { AdminClientError::Unsent };
        failure(anyhow::Error::from(error).context(format!("no TLS with {}{advice}", self.url)))
    }
}

debug_as!(HttpClient as it: "HttpClient({})", it.url);

/// Sends a request on a new connection, and reads the whole answer.
async fn exchange(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    request: Request<Full<Bytes>>,
) -> anyhow::Result<Response<Bytes>> {
    let exchanged = one_shot(stream, HEAD_BYTES_MAX, async |mut sender| {
        let (head, body) = sender.send_request(request).await?.into_parts();
        Ok(Response::from_parts(head, collected(body).await?))
    });
    exchanged.await?
}

/// A whole body, up to the bound.
async fn collected<B>(body: B) -> anyhow::Result<Bytes>
where
    B: BodyExt<Data = Bytes>,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    let body = Limited::new(body, ANSWER_BYTES_MAX).collect().await;
    // Its errors are of any kind, and not all can be made one of ours.
    Ok(body.map_err(|error| anyhow!("{error}"))?.to_bytes())
}

/// Sends a request on a new connection, and writes the body of a good answer part by part.
async fn download(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    request: Request<Full<Bytes>>,
    file: &mut FileOutput,
) -> anyhow::Result<Download> {
    const LATE: &str = "it did not come in time";
    let downloaded = one_shot(stream, HEAD_BYTES_MAX, async |mut sender| {
        let answer = timeout(PART_TIME_MAX, sender.send_request(request)).await;
        let (head, mut body) = answer.context(LATE)??.into_parts();
        if !head.status.is_success() {
            // A refusal is small and whole, and is no file: it is read within the bound of an
            // answer.
            return Ok(Download::Refused(reply(&head, collected(body).await?)));
        }
        loop {
            let part = match timeout(PART_TIME_MAX, body.frame()).await.context(LATE) {
                Ok(None) => return Ok(Download::Ended),
                Ok(Some(part)) => part.map_err(anyhow::Error::from),
                Err(late) => Err(late),
            };
            let written = part.and_then(|part| match part.data_ref() {
                Some(bytes) => Ok(file.write(bytes)?),
                None => Ok(()),
            });
            if let Err(error) = written {
                return Ok(Download::Interrupted(error));
            }
        }
    });
    downloaded.await?
}

fn reply(head: &Parts, body: Bytes) -> ApiReply {
    let says = |name: &str, value: &str| head.headers.get(name).is_some_and(|it| it == value);
    ApiReply {
        status: head.status.as_u16(),
        replayed: says("idempotent-replayed", "true"),
        is_temporary: says("x-should-retry", "true"),
        body,
        cause: None,
    }
}
