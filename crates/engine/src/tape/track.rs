//! What a run says while it runs: its chunks, rendered once and kept from the first to the last, so that
//! whoever comes late misses nothing. The run appends and never waits; each follower reads at its own
//! pace and shares the bytes. How much there may be is the run's to decide, not decided here.

use std::collections::VecDeque;
use std::fmt;

use bytes::Bytes;
use holdfast_domain::CredentialId;
use holdfast_domain::model::PublicModelId;
use holdfast_wire::chat::chunk::{DONE, Frame};
use tokio::sync::watch;

use crate::rates::Rates;

/// Chunks that a follower takes at once.
const TAKEN_MAX: usize = 64;

/// The chunks of one run.
#[derive(Debug)]
pub(crate) struct Track {
    /// Who may hear it: the answer will be sealed for this credential alone.
    credential: CredentialId,
    /// The public id that was asked for.
    model: PublicModelId,
    said: watch::Sender<Said>,
}

#[derive(Default)]
struct Said {
    frames: Vec<Frame>,
    /// Told only once the settlement has committed.
    closing: Option<Closing>,
    /// Whether nothing more will be said.
    is_over: bool,
    /// What the API key's limits stand at after the claim.
    rates: Rates,
}

/// The last chunks of an answer.
#[derive(Debug)]
pub(crate) struct Closing {
    /// How each choice ended.
    pub(crate) finish: Vec<Frame>,
    /// What the answer used up.
    pub(crate) usage: Bytes,
}

/// Where one reader is.
#[derive(Debug)]
pub(crate) struct Follower {
    said: watch::Receiver<Said>,
    next: usize,
    include_usage: bool,
}

impl fmt::Debug for Said {
    /// Without what was said.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Said({} chunks, over: {})", self.frames.len(), self.is_over)
    }
}

impl Track {
    /// Of a run that has said nothing.
    pub(crate) fn new(credential: CredentialId, model: PublicModelId) -> Self {
        Self { credential, model, said: watch::Sender::default() }
    }

    /// Whether the answer will be sealed for this credential.
    pub(crate) fn is_for(&self, credential: CredentialId) -> bool {
        self.credential == credential
    }

    pub(crate) const fn model(&self) -> &PublicModelId {
        &self.model
    }

    /// Says what the limits stand at, before the first chunk.
    pub(crate) fn claimed(&self, rates: Rates) {
        self.said.send_if_modified(|said| {
            said.rates = rates;
            false
        });
    }

    pub(crate) fn rates(&self) -> Rates {
        self.said.borrow().rates
    }

    /// Adds chunks.
    pub(crate) fn say(&self, frames: Vec<Frame>) {
        if !frames.is_empty() {
            self.said.send_modify(|said| said.frames.extend(frames));
        }
    }

    /// Keeps the last chunks until the settlement has committed.
    pub(crate) fn close_with(&self, closing: Closing) {
        self.said.send_if_modified(|said| {
            said.closing = Some(closing);
            false
        });
    }

    /// Nothing more will be said.
    pub(crate) fn over(&self) {
        self.said.send_if_modified(|said| !std::mem::replace(&mut said.is_over, true));
    }

    /// A follower at the first chunk.
    pub(crate) fn follow(&self, include_usage: bool) -> Follower {
        Follower { said: self.said.subscribe(), next: 0, include_usage }
    }
}

impl Follower {
    /// Completes with the first chunk; never where there is none. Cancel safe.
    pub(crate) async fn begun(&mut self) {
        if self.said.wait_for(|said| !said.frames.is_empty()).await.is_err() {
            // The track is gone, and nothing was said.
            std::future::pending::<()>().await;
        }
    }

    /// The chunks that this follower has not had yet, as soon as there are any; none when it is over.
    /// Cancel safe.
    pub(crate) async fn more(&mut self) -> VecDeque<Bytes> {
        let next = self.next;
        // Never closed: whoever follows holds the tape that the track is of.
        let there = self.said.wait_for(|said| said.is_over || said.frames.len() > next).await;
        let Ok(said) = there else { return VecDeque::new() };
        let frames = said.frames.iter().skip(next).take(TAKEN_MAX);
        let taken: VecDeque<_> = frames.map(|frame| frame.bytes(self.include_usage)).collect();
        drop(said);
        self.next = next.saturating_add(taken.len());
        taken
    }

    /// The last chunks and the end, of an answer whose settlement has committed.
    pub(crate) fn closing(&self) -> Option<VecDeque<Bytes>> {
        let said = self.said.borrow();
        let closing = said.closing.as_ref()?;
        let finish = closing.finish.iter().map(|frame| frame.bytes(self.include_usage));
        let usage = self.include_usage.then(|| closing.usage.clone());
        Some(finish.chain(usage).chain([Bytes::from_static(DONE)]).collect())
    }
}
