//! Exchange of one request and the status of its answer, over HTTP/1.1 on a connection of its own.
//!
//! The body is read up to the size that a well-behaved receiver sends, so that the receiver sees no reset; the
//! status counts even if the rest of the body fails.

use std::time::Duration;

use bytes::Bytes;
use holdfast_net::one_shot;
use http::{Request, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::body::Body;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::error::Elapsed;
use tokio::time::{Instant, timeout_at};

/// Length of the head of an answer, and of what is read of its body, in bytes at most.
const HEAD_BYTES_MAX: usize = 16 * 1024;
const BODY_BYTES_MAX: usize = 16 * 1024;
/// Time for the body of an answer, after its head.
const BODY_TIME_MAX: Duration = Duration::from_secs(1);

/// Failure of an exchange.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DeliveryExchangeError {
    #[error("the connection was closed, or the answer is not HTTP")]
    Broken(#[source] hyper::Error),
    #[error("the receiver has not answered in time")]
    TimedOut(#[source] Elapsed),
}

/// Sends a request, and returns the status of its answer. Cancel safe.
pub(crate) async fn exchange(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    request: Request<Full<Bytes>>,
    deadline: Instant,
) -> Result<StatusCode, DeliveryExchangeError> {
    let exchanged = one_shot(stream, HEAD_BYTES_MAX, async |mut sender| {
        let response = timeout_at(deadline, sender.send_request(request)).await;
        let response = response
            .map_err(DeliveryExchangeError::TimedOut)?
            .map_err(DeliveryExchangeError::Broken)?;
        let status = response.status();
        // The status has decided: a body without an end must not keep the permit for the rest of
        // the attempt.
        let body_deadline = deadline.min(Instant::now() + BODY_TIME_MAX);
        if let Err(elapsed) = timeout_at(body_deadline, drain(response.into_body())).await {
            tracing::debug!(error = %elapsed, "the body of an answer to a webhook is left unread");
        }
        Ok(status)
    });
    exchanged.await.map_err(DeliveryExchangeError::Broken)?
}

async fn drain(mut body: impl Body<Data = Bytes> + Unpin) {
    let mut left = BODY_BYTES_MAX;
    while let Some(Ok(frame)) = body.frame().await {
        let read = frame.data_ref().map_or(0, Bytes::len);
        let Some(rest) = left.checked_sub(read) else { return };
        left = rest;
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::future::pending;
    use std::pin::Pin;
    use std::task::{Context, Poll};

    use hyper::body::Frame;
    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};
    use tokio::time::sleep;

    use super::*;

    const TRY_TIME_MAX: Duration = Duration::from_secs(15);

    /// A body of a hundred frames, which counts those that were read.
    struct Frames(usize);

    impl Body for Frames {
        type Data = Bytes;
        type Error = Infallible;

        fn poll_frame(
            mut self: Pin<&mut Self>,
            _context: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
            self.0 += 1;
            let frame = Frame::data(Bytes::from_static(&[0; 4_096]));
            Poll::Ready((self.0 < 100).then_some(Ok(frame)))
        }
    }

    #[tokio::test]
    async fn a_body_is_read_to_its_bound() {
        let mut body = Frames(0);
        drain(&mut body).await;
        assert_eq!(body.0, BODY_BYTES_MAX / 4_096 + 1);
    }

    /// Status that an answer counts for, and the time that it takes. It comes after a pause, and has
    /// no end.
    async fn exchanged(pause: Duration, answer: &str) -> (Option<u16>, Duration) {
        let (ours, mut theirs) = duplex(1_024);
        let receiver = async {
            let heard = theirs.read(&mut [0; 1_024]).await.unwrap();
            assert_ne!(heard, 0);
            sleep(pause).await;
            theirs.write_all(answer.as_bytes()).await.unwrap();
            pending::<Infallible>().await
        };
        let started = Instant::now();
        let request = Request::new(Full::new(Bytes::new()));
        let status = tokio::select! {
            status = exchange(ours, request, started + TRY_TIME_MAX) => status,
            never = receiver => match never {},
        };
        if let Err(error) = &status {
            assert!(matches!(error, DeliveryExchangeError::TimedOut(_)), "{error}");
        }
        (status.ok().map(|status| status.as_u16()), started.elapsed())
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_has_its_time_and_its_body_a_second_of_it() {
        let answer = "HTTP/1.1 202 Accepted\r\ncontent-length: 9\r\n\r\nhello";
        let (late, too_late) = (Duration::from_millis(14_500), Duration::from_millis(15_500));
        for (pause, answer, expected, ms) in [
            (Duration::ZERO, answer, Some(202), 1_000),
            (late, answer, Some(202), 15_000),
            (too_late, answer, None, 15_000),
            (Duration::ZERO, "HTTP/1.1 202 Acc", None, 15_000),
        ] {
            let (status, took) = exchanged(pause, answer).await;
            // The clock of the runtime counts in whole milliseconds.
            let is_on_time = took.as_millis().abs_diff(ms) <= 2;
            assert!(status == expected && is_on_time, "{status:?} after {took:?}");
        }
    }
}
