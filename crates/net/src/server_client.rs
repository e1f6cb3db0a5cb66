//! Client of one server for requests that are passed on as they are, over this crate's transport: TLS, HTTP/2 if the
//! server chooses it, and the operator's proxies.
//!
//! The client interprets neither requests nor answers. The guarantees of the transport hold here: a request is
//! sent once, and `PassedFailure::Unsent` is proof.

use std::time::Duration;

use bytes::Bytes;
use holdfast_domain::debug_as;
use http::{HeaderMap, Request, StatusCode};

use crate::base_url::BadOptions;
use crate::proxy::Proxies;
use crate::roots::tls;
use crate::transport::{AnswerBody, SendError, Transport};

/// Client of one server, with a pool of connections.
#[derive(Debug)]
pub struct ServerClient(Transport);

/// Failure of an exchange, by what it proves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PassedFailure {
    /// The server has got no byte of the request.
    #[error("the server was not reached")]
    Unsent,
    /// The connection broke, and some of the request may have arrived.
    #[error("the connection broke")]
    Broken,
}

/// Answer whose body has not been read.
pub struct PassedAnswer {
    /// Status of the answer.
    pub status: StatusCode,
    /// All of its headers.
    pub headers: HeaderMap,
    /// Pause that the server requests.
    pub retry_after: Option<Duration>,
    body: AnswerBody,
}

impl ServerClient {
    /// Usual age up to which an idle connection is used: less than the keep-alive of servers.
    pub const POOL_IDLE: Duration = Duration::from_secs(4);

    /// A client that keeps no connection longer than `pool_idle`.
    ///
    /// # Errors
    ///
    /// [`BadOptions`]: TLS cannot be set up.
    pub fn new(proxies: Proxies, pool_idle: Duration) -> Result<Self, BadOptions> {
        Ok(Self(Transport::new(tls(Vec::new())?, proxies, pool_idle)))
    }

    /// Sends once, and waits for the head of the answer; `connect` bounds the time to a new
    /// connection. Dropping the future closes the connection, or resets its stream.
    ///
    /// # Errors
    ///
    /// [`PassedFailure`]: there is no answer.
    pub async fn send(
        &self,
        request: Request<Bytes>,
        connect: Duration,
    ) -> Result<PassedAnswer, PassedFailure> {
        let exchange = self.0.exchange(Box::new(request), connect, &mut || {}).await;
        let (head, body, _is_relayed) = exchange.map_err(PassedFailure::from)?;
        let retry_after = crate::retry_after::retry_after(&head.headers);
        let body = AnswerBody::new(body);
        Ok(PassedAnswer { status: head.status, headers: head.headers, retry_after, body })
    }
}

impl PassedAnswer {
    /// The next bytes of the body, as they come; `None` at its end. Cancel safe.
    ///
    /// # Errors
    ///
    /// [`PassedFailure`]: the body ends before its end.
    pub async fn next(&mut self) -> Result<Option<Bytes>, PassedFailure> {
        self.body.next().await.map_err(PassedFailure::from)
    }
}

impl From<SendError> for PassedFailure {
    fn from(error: SendError) -> Self {
        match error {
            SendError::Unsent(_) => Self::Unsent,
            SendError::Sent | SendError::TooLarge => Self::Broken,
        }
    }
}

debug_as!(PassedAnswer as it: "PassedAnswer({})", it.status);
