//! The body of an answer, which may be said chunk by chunk. Each chunk with text tells the microsecond in
//! which it was said, so that whoever reads it knows how long it was on its way.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::{Body as HttpBody, Frame, SizeHint};
use tokio::time::{Instant, Sleep, sleep_until};

use crate::listen::{STAMP_LEN, now_micros};

const HEAD: &str = r#"data: {"id":"chatcmpl-B9MBs8CjcvOU2jLn4n570S5qMJKcT","object":"chat.completion.chunk","created":1741569952,"model":"large-1","choices":[{"index":0,"delta":"#;
const TAIL: &str = r#","logprobs":null,"finish_reason":null}],"usage":null}"#;
const OPENING: &str = r#"{"role":"assistant","content":"","refusal":null}"#;
const END: &str = r#"data: {"id":"chatcmpl-B9MBs8CjcvOU2jLn4n570S5qMJKcT","object":"chat.completion.chunk","created":1741569952,"model":"large-1","choices":[{"index":0,"delta":{},"logprobs":null,"finish_reason":"stop"}],"usage":null}

data: {"id":"chatcmpl-B9MBs8CjcvOU2jLn4n570S5qMJKcT","object":"chat.completion.chunk","created":1741569952,"model":"large-1","choices":[],"usage":{"prompt_tokens":100,"completion_tokens":20,"total_tokens":120,"prompt_tokens_details":{"cached_tokens":40,"audio_tokens":0},"completion_tokens_details":{"reasoning_tokens":0,"audio_tokens":0,"accepted_prediction_tokens":0,"rejected_prediction_tokens":0}}}

data: [DONE]

"#;

/// All at once, or a speech.
#[derive(Debug)]
pub(super) enum UpstreamBody {
    Whole(Full<Bytes>),
    Speech(SpeechBody),
}

/// A stream that is being said.
#[derive(Debug)]
pub(super) struct SpeechBody {
    step: SpeechStep,
    gap: Duration,
    /// Moment at which the next chunk is due; nothing where there is no gap between them.
    due: Option<Pin<Box<Sleep>>>,
}

#[derive(Debug, Clone, Copy)]
enum SpeechStep {
    Opening(u64),
    /// So many chunks are still to be said.
    Saying(u64),
    Over,
}

impl UpstreamBody {
    pub(super) fn whole(text: &'static str) -> Self {
        Self::Whole(Full::new(Bytes::from_static(text.as_bytes())))
    }

    pub(super) fn speech(chunks: u64, gap: Duration) -> Self {
        let due = (!gap.is_zero()).then(|| Box::pin(sleep_until(Instant::now())));
        Self::Speech(SpeechBody { step: SpeechStep::Opening(chunks), gap, due })
    }
}

impl SpeechBody {
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Option<Bytes>> {
        let (said, next) = match self.step {
            SpeechStep::Opening(chunks) => {
                (Bytes::from(format!("{HEAD}{OPENING}{TAIL}\n\n")), SpeechStep::Saying(chunks))
            }
            SpeechStep::Saying(0) => (Bytes::from_static(END.as_bytes()), SpeechStep::Over),
            SpeechStep::Saying(left) => {
                if let Some(due) = &mut self.due {
                    ready!(due.as_mut().poll(context));
                    // The next is due when it would be if this one were not late.
                    let next = due.deadline() + self.gap;
                    due.as_mut().reset(next);
                }
                let stamp = now_micros();
                let chunk = format!("{HEAD}{{\"content\":\"{stamp:0STAMP_LEN$} \"}}{TAIL}\n\n");
                (Bytes::from(chunk), SpeechStep::Saying(left - 1))
            }
            SpeechStep::Over => return Poll::Ready(None),
        };
        self.step = next;
        Poll::Ready(Some(said))
    }
}

impl HttpBody for UpstreamBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match self.get_mut() {
            Self::Whole(body) => Pin::new(body).poll_frame(context),
            Self::Speech(speech) => speech.poll(context).map(|said| Some(Ok(Frame::data(said?)))),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Whole(body) => body.is_end_stream(),
            Self::Speech(_) => false,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Whole(body) => body.size_hint(),
            Self::Speech(_) => SizeHint::default(),
        }
    }
}
