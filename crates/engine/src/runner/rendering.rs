//! An answer that has come to its end, written down: as the body that callers get, as the last chunks of
//! whoever follows it, and sealed. What may be large is written, or thrown away, beside what else runs.

use std::sync::Arc;

use holdfast_domain::answer::Answer;
use holdfast_domain::operation::{Operation, SealedResult};
use holdfast_domain::request::Request;
use holdfast_domain::state::CallStates;
use holdfast_domain::usage::UsageRecord;
use holdfast_wire::chat::chunk::Chunks;
use holdfast_wire::chat::completion::{CompletionView, render};

use super::Runner;
use crate::authentication::Caller;
use crate::results::is_large;
use crate::seal::{self, SealError};
use crate::tape::ClosingChunks;

/// What was heard of an answer.
pub(crate) struct ReceivedAnswer {
    pub(crate) answer: Answer,
    /// What renders the rest of it, where it was told.
    pub(crate) chunks: Option<Box<Chunks>>,
    /// Bytes that were read of it.
    pub(crate) received: usize,
}

/// It, written down.
pub(crate) struct RenderedAnswer {
    pub(crate) closing: Option<ClosingChunks>,
    pub(crate) body: Vec<u8>,
    pub(crate) sealed: Result<SealedResult, SealError>,
}

/// What an answer is written down with.
pub(crate) struct RenderContext<'a> {
    pub(crate) request: &'a Arc<Request>,
    pub(crate) operation: &'a Operation,
    pub(crate) caller: &'a Arc<Caller>,
    pub(crate) usage: &'a UsageRecord,
}

impl ReceivedAnswer {
    /// What was read may say next to nothing, and what is said may not have been read.
    fn is_large(&self) -> bool {
        let said = usize::try_from(self.answer.text_bytes()).unwrap_or(usize::MAX);
        is_large(self.received.max(said))
    }

    /// Forgets it: a large answer may have a million parts.
    pub(crate) fn forget(self) {
        if self.is_large() {
            // Nobody waits for it.
            drop(tokio::task::spawn_blocking(move || drop(self)));
        }
    }

    fn render(self, kept: Option<&CallStates>, terms: &RenderContext<'_>) -> RenderedAnswer {
        let Self { mut answer, chunks, received: _ } = self;
        let RenderContext { request, operation, caller, usage } = *terms;
        answer.retain_requested(request);
        let view = CompletionView {
            id: operation.id,
            created: operation.admitted_at,
            model: &operation.model,
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
    /// Writes an answer down with what its provider wants back. `None` where that panicked, which was logged.
    pub(crate) async fn render_answer(
        &self,
        heard: ReceivedAnswer,
        kept: Option<Box<CallStates>>,
        terms: &RenderContext<'_>,
    ) -> Option<RenderedAnswer> {
        if !heard.is_large() {
            return Some(heard.render(kept.as_deref(), terms));
        }
        let (request, caller) = (Arc::clone(terms.request), Arc::clone(terms.caller));
        let (operation, usage) = (terms.operation.clone(), terms.usage.clone());
        // In a box: few are.
        Box::pin(self.results.run_blocking(move || {
            let (request, operation) = (&request, &operation);
            let terms = RenderContext { request, operation, caller: &caller, usage: &usage };
            heard.render(kept.as_deref(), &terms)
        }))
        .await
    }
}
