//! A single exchange over HTTP/1.1 on a connection of its own.
//!
//! The future of the exchange drives the connection: dropping it closes the connection, and no task is left behind.
//! A client that sends a few requests in its life needs no pool; a receiver of webhooks gets one request per connection.

use std::convert::Infallible;
use std::future::pending;

use bytes::Bytes;
use http_body_util::Full;
use hyper::client::conn::http1::{Builder, SendRequest};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};

/// Runs an exchange on a new connection, whose head of an answer has at most this many bytes.
///
/// # Errors
///
/// The handshake failed: no byte of the request was written. Later errors of the connection reach the exchange.
pub async fn one_shot<T>(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    head_bytes_max: usize,
    exchange: impl AsyncFnOnce(SendRequest<Full<Bytes>>) -> T,
) -> Result<T, hyper::Error> {
    let handshake = Builder::new().max_buf_size(head_bytes_max).handshake(TokioIo::new(stream));
    let (sender, connection) = handshake.await?;
    let driven = async {
        if let Err(error) = connection.await {
            // The exchange gets an error as well, unless it was over.
            tracing::debug!(error = %error, "a connection of one exchange broke off");
        }
        pending::<Infallible>().await
    };
    tokio::select! {
        exchanged = exchange(sender) => Ok(exchanged),
        never = driven => match never {},
    }
}
