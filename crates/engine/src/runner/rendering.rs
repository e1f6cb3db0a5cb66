//! Rendering of a complete answer: as the body that callers get, as the last chunks of its followers, and sealed.
//! Large answers are rendered, and dropped, off the runtime's workers.

use std::sync::Arc;

use holdfast_domain::answer::Answer;
use holdfast_domain::billing::UsageRecord;
use holdfast_domain::operation::{Operation, SealedResult};
use holdfast_domain::request::Request;
use holdfast_domain::state::CallStates;
use holdfast_wire::chat::chunk::Chunks;
use holdfast_wire::chat::completion::{CompletionView, render};

use super::Runner;
use crate::authentication::Caller;
use crate::results::is_large;
use crate::seal::{self, SealError};
use crate::tape::ClosingChunks;

/// Answer of one call, as it was received and before it is rendered.
pub(crate) struct ReceivedAnswer {
    pub(crate) answer: Answer,
    /// Renderer of the closing chunks; `None` if no caller requested a stream.
    pub(crate) chunks: Option<Box<Chunks>>,
    /// Bytes of the provider's body that were read: a measure of the work, not of the text.
    pub(crate) received: usize,
}

/// Answer in its three final forms: closing chunks, completion body, sealed result.
pub(crate) struct RenderedAnswer {
    pub(crate) closing: Option<ClosingChunks>,
    pub(crate) body: Vec<u8>,
    pub(crate) sealed: Result<SealedResult, SealError>,
}

/// Context of a rendering: the request, its operation and caller, and the usage to report.
pub(crate) struct RenderContext<'a> {
    pub(crate) request: &'a Arc<Request>,
    pub(crate) operation: &'a Operation,
    pub(crate) caller: &'a Arc<Caller>,
    pub(crate) usage: &'a UsageRecord,
}

impl ReceivedAnswer {
    /// Compares the larger of bytes read and bytes of text with the threshold of a large result:
    /// a body may be nearly all framing, and an answer may have more text than bytes counted.
    fn is_large(&self) -> bool {
        let text_bytes = usize::try_from(self.answer.text_bytes()).unwrap_or(usize::MAX);
        is_large(self.received.max(text_bytes))
    }

    /// Drops the answer; a large one on a blocking thread, because it may have a million parts.
    pub(crate) fn forget(self) {
        if self.is_large() {
            // Detached: no task waits for it, and a drop of a million parts would stall this worker thread.
            drop(tokio::task::spawn_blocking(move || drop(self)));
        }
    }

    fn render(self, kept: Option<&CallStates>, terms: &RenderContext<'_>) -> RenderedAnswer {
        let Self { mut answer, chunks, received: _ } = self;
        let RenderContext { request, operation, caller, usage } = *terms;
        // As each chunk was: body, stream and seal have the same members.
        answer.retain_requested(request);
        let view = CompletionView {
            id: operation.id,
            created: operation.admitted_at,
            model: operation.written_model(),
            answer: &answer,
            usage,
        };
        let closing = chunks.map(|mut chunks| {
            let finish = chunks.finish(&answer);
            ClosingChunks { finish, usage: chunks.usage(&view) }
        });
        let body = render(&view);
        let key = caller.bearer.secret.result_key(operation.id);
        let sealed = seal::seal(&key, caller.bearer.id, operation, (&body, kept));
        RenderedAnswer { closing, body, sealed }
    }
}

impl Runner {
    /// Renders and seals an answer, together with the states for its provider. `None` if the rendering panicked,
    /// which is logged.
    pub(crate) async fn render_answer(
        &self,
        received: ReceivedAnswer,
        kept: Option<Box<CallStates>>,
        terms: &RenderContext<'_>,
    ) -> Option<RenderedAnswer> {
        if !received.is_large() {
            return Some(received.render(kept.as_deref(), terms));
        }
        let (request, caller) = (Arc::clone(terms.request), Arc::clone(terms.caller));
        let (operation, usage) = (terms.operation.clone(), terms.usage.clone());
        // In a box: few answers are large, and every run would carry this future's size.
        Box::pin(self.results.run_blocking(move || {
            let (request, operation) = (&request, &operation);
            let terms = RenderContext { request, operation, caller: &caller, usage: &usage };
            received.render(kept.as_deref(), &terms)
        }))
        .await
    }
}
