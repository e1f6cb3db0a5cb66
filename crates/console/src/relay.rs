//! The port to the public API, for the playground: the process that serves both fills it.
//!
//! A request goes there as the bearer whose API key was pasted, and without the session: no cookie, no
//! name, no role. Never: an API key that is kept, in a log, or in an address.

use std::fmt;
use std::net::IpAddr;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::stream::BoxStream;
use holdfast_domain::ports::Unavailable;
use http::{Request, Response};

/// Longest time for an answer, from its head on: a model takes as long as its own time-outs allow.
const ANSWER: Duration = Duration::from_secs(900);
/// Most bytes of an answer.
const ANSWER_MAX: usize = 8 << 20;

/// The public API of this process.
#[async_trait]
pub trait ApiRelay: Send + Sync + fmt::Debug {
    /// Answers a request as if this client had sent it. Dropping the answer is a hang-up, which ends no run.
    ///
    /// # Errors
    ///
    /// [`Unavailable`] if the answer broke off before its head.
    async fn ask(
        &self,
        request: Request<Bytes>,
        client: IpAddr,
    ) -> Result<Response<BoxStream<'static, Bytes>>, Unavailable>;
}

/// The bytes of an answer, as far as they may come.
pub(crate) fn bounded(body: BoxStream<'static, Bytes>) -> BoxStream<'static, Bytes> {
    // One limit for the whole: with a limit for each piece an answer that trickles would hold one
    // of its reader's places for ever.
    let end = Box::pin(tokio::time::sleep(ANSWER));
    let within = body.scan(0_usize, |written, bytes| {
        *written = written.saturating_add(bytes.len());
        let is_within = *written <= ANSWER_MAX;
        async move { is_within.then_some(bytes) }
    });
    within.take_until(end).boxed()
}
