//! Chunk log: the text of a run while it runs, for any number of followers at their own pace.
//!
//! ```text
//!               ┌ recent: rendered chunks, shared bytes ──► followers who keep up
//! run ─ append ─┤
//!               └ compact log: all of it, near its text ──► followers who are behind, and those who come late
//! ```
//!
//! The newest chunks are kept as they were rendered, so that a thousand followers who keep up share one rendering.
//! Rendered, a chunk costs many times its text, so that only [`RECENT_MAX`] of them are kept; all pieces from the
//! first on are in the [`CompactLog`]. A follower that is behind gets its text from there: coarser chunks, the same
//! answer.
//!
//! The run appends and never waits. The run decides how much there may be ([`Options::STREAM_BYTES_MAX`]). Only the
//! credential that the answer will be sealed for may follow it: another one of the same API key could not read the
//! answer again.
//!
//! [`Options::STREAM_BYTES_MAX`]: crate::options::Options::STREAM_BYTES_MAX

use std::collections::{BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use holdfast_domain::credential::Bearer;
use holdfast_domain::debug_as;
use holdfast_domain::model::PublicModelId;
use holdfast_domain::secret::ResultKey;
use holdfast_domain::{CredentialId, OperationId, RelayNonce};
use holdfast_wire::chat::chunk::{DONE, DeltaChunk, Envelope, Frame};
use tokio::sync::watch;

use super::compact_log::CompactLog;
use crate::rate_limit::RateLimitStatus;

/// Count of the newest chunks that are kept as they were rendered, at most.
const RECENT_MAX: usize = 64;
/// Bytes that the rendered chunks may cost: an eighth of the log, between these two bounds.
const RECENT_BYTES_MIN: usize = 2_048;
const RECENT_BYTES_MAX: usize = 32_768;
const RECENT_PART: usize = 8;
/// Relays that other nodes may request of one run, over its whole life.
const RELAYS_MAX: usize = 4_096;
/// Bytes of the compact log that a follower who is behind takes at once.
const BEHIND_BYTES: usize = 16_384;

/// Log of the chunks of one run: one writer, any number of followers.
#[derive(Debug)]
pub(crate) struct ChunkLog {
    /// Credential that may follow: the answer will be sealed only for this one.
    bearer: Bearer,
    /// Public id of the model, as the caller spelled it.
    model: PublicModelId,
    state: watch::Sender<ChunkLogState>,
    /// Nonces of relays that were requested, against replays. A std mutex: never held across an await.
    nonces: Mutex<BTreeSet<RelayNonce>>,
}

#[derive(Default)]
struct ChunkLogState {
    log: CompactLog,
    /// Newest chunks, rendered; the last of them ends where the log ends.
    recent: VecDeque<RecentChunk>,
    recent_bytes: usize,
    /// Members that all chunks share, once there is a first chunk.
    envelope: Option<Arc<Envelope>>,
    /// Closing chunks, sent only after the settlement has committed.
    closing: Option<ClosingChunks>,
    /// End mark: no chunk follows but the closing ones.
    is_over: bool,
    /// Rate-limit status of the API key after the claim.
    rates: RateLimitStatus,
}

/// Rendered chunk, whose bytes all followers share.
struct RecentChunk {
    /// Offset of its entry in the log.
    at: usize,
    frame: Frame,
}

/// Closing chunks of an answer.
#[derive(Debug)]
pub(crate) struct ClosingChunks {
    /// Finish chunks, one for each choice, with its reason.
    pub(crate) finish: Vec<Frame>,
    /// Usage chunk, for callers with `include_usage`.
    pub(crate) usage: Bytes,
}

/// Position of one reader in the log.
#[derive(Debug)]
pub(crate) struct Follower {
    state: watch::Receiver<ChunkLogState>,
    /// Offset of the next entry that it has not had.
    next: usize,
    include_usage: bool,
}

// Prints sizes only, never content.
debug_as!(ChunkLogState as it: "ChunkLogState({} bytes, over: {})", it.log.end(), it.is_over);

impl ChunkLogState {
    fn add(&mut self, envelope: &Arc<Envelope>, pieces: Vec<DeltaChunk<'_>>) {
        if self.envelope.as_ref().is_none_or(|known| !Arc::ptr_eq(known, envelope)) {
            self.envelope = Some(Arc::clone(envelope));
        }
        for DeltaChunk { frame, text } in pieces {
            let at = self.log.end();
            match text {
                Some((lane, more)) => self.log.add_text(lane, more),
                None => self.log.add_chunk(frame.members()),
            }
            let recent = RecentChunk { at, frame };
            self.recent_bytes = self.recent_bytes.saturating_add(recent.cost());
            self.recent.push_back(recent);
        }
        // Rendered chunks cost many times their text: their room grows with the log, so that short
        // answers stay small.
        let part = self.log.end() / RECENT_PART;
        let bytes_max = part.clamp(RECENT_BYTES_MIN, RECENT_BYTES_MAX);
        while self.recent.len() > RECENT_MAX || self.recent_bytes > bytes_max {
            let Some(oldest) = self.recent.pop_front() else { return };
            self.recent_bytes = self.recent_bytes.saturating_sub(oldest.cost());
        }
    }

    /// Offset from which on rendered chunks exist; the end of the log if there is none.
    fn recent_at(&self) -> usize {
        self.recent.front().map_or(self.log.end(), |oldest| oldest.at)
    }
}

impl RecentChunk {
    /// Bytes that are held for the chunk: the frame in both its forms, and this entry.
    fn cost(&self) -> usize {
        2 * self.frame.size() + size_of::<Self>()
    }
}

impl ChunkLog {
    /// Creates an empty log for the credential that the answer will be sealed for.
    pub(crate) fn new(bearer: &Bearer, model: PublicModelId) -> Self {
        let (state, nonces) = (watch::Sender::default(), Mutex::default());
        Self { bearer: bearer.clone(), model, state, nonces }
    }

    /// True if this credential may follow: the answer will be sealed for it.
    pub(crate) fn is_for(&self, credential: CredentialId) -> bool {
        self.bearer.id == credential
    }

    /// Key that the answer will be sealed under, which also keys relays of the run.
    pub(crate) fn result_key(&self, operation: OperationId) -> ResultKey {
        self.bearer.secret.result_key(operation)
    }

    /// Records the nonce of a relay; `false` if it was used before, which is a replay, or if the run has had
    /// `RELAYS_MAX` requests.
    pub(crate) fn is_first_request(&self, nonce: RelayNonce) -> bool {
        let mut nonces = self.nonces.lock().unwrap_or_else(PoisonError::into_inner);
        nonces.len() < RELAYS_MAX && nonces.insert(nonce)
    }

    pub(crate) const fn model(&self) -> &PublicModelId {
        &self.model
    }

    /// Sets the rate-limit status, before the first chunk.
    pub(crate) fn set_rates(&self, rates: RateLimitStatus) {
        // `false`: no follower is woken. Followers wait for chunks, and read this with the first.
        self.state.send_if_modified(|state| {
            state.rates = rates;
            false
        });
    }

    pub(crate) fn rates(&self) -> RateLimitStatus {
        self.state.borrow().rates
    }

    /// Appends pieces, and wakes all followers; an empty list wakes none.
    pub(crate) fn append(&self, envelope: &Arc<Envelope>, pieces: Vec<DeltaChunk<'_>>) {
        if !pieces.is_empty() {
            self.state.send_modify(|state| state.add(envelope, pieces));
        }
    }

    /// Stores the closing chunks, which followers get only after the settlement has committed.
    pub(crate) fn close_with(&self, closing: ClosingChunks) {
        self.state.send_if_modified(|state| {
            state.closing = Some(closing);
            false
        });
    }

    /// Closes the log and wakes its followers, once.
    pub(crate) fn close(&self) {
        self.state.send_if_modified(|state| !std::mem::replace(&mut state.is_over, true));
    }

    /// Bytes of memory that the log holds.
    #[cfg(test)]
    fn cost(&self) -> usize {
        let state = self.state.borrow();
        let kept = (state.recent.capacity() - state.recent.len()) * size_of::<RecentChunk>();
        state.log.cost() + state.recent_bytes + kept
    }

    /// Adds a follower that begins at the first chunk, however late it comes.
    pub(crate) fn follow(&self, include_usage: bool) -> Follower {
        Follower { state: self.state.subscribe(), next: 0, include_usage }
    }
}

impl Follower {
    /// True if the log has a first chunk.
    pub(crate) fn has_begun(&self) -> bool {
        self.state.borrow().log.end() > 0
    }

    /// Waits for the first chunk; never completes if none comes. Cancel safe.
    pub(crate) async fn wait_begun(&mut self) {
        if self.state.wait_for(|state| state.log.end() > 0).await.is_err() {
            // The log is gone, without a chunk.
            std::future::pending::<()>().await;
        }
    }

    /// Waits for chunks that this follower has not had, and takes them; empty when the log is
    /// closed. Cancel safe: the position moves only with the chunks that are returned.
    pub(crate) async fn more(&mut self) -> VecDeque<Bytes> {
        let next = self.next;
        // Never closed: a follower holds the tape that has the log.
        let there = self.state.wait_for(|state| state.is_over || state.log.end() > next).await;
        let Ok(state) = there else { return VecDeque::new() };
        // A follower that keeps up gets the rendered bytes themselves: clones of `Bytes`, no copy.
        if next >= state.recent_at() {
            let news = state.recent.iter().filter(|recent| recent.at >= next);
            let taken = news.map(|recent| recent.frame.bytes(self.include_usage)).collect();
            self.next = state.log.end();
            return taken;
        }
        let behind = state.log.excerpt(next, state.recent_at(), BEHIND_BYTES);
        let envelope = state.envelope.clone();
        // Rendered without the lock: a follower that is behind does not keep the run waiting.
        drop(state);
        self.next = next.saturating_add(behind.len());
        envelope.map_or_else(VecDeque::new, |it| behind.render(&it, self.include_usage))
    }

    /// Closing chunks and the end mark of the stream; `None` if the run made none.
    pub(crate) fn closing(&self) -> Option<VecDeque<Bytes>> {
        let state = self.state.borrow();
        let closing = state.closing.as_ref()?;
        let finish = closing.finish.iter().map(|frame| frame.bytes(self.include_usage));
        let usage = self.include_usage.then(|| closing.usage.clone());
        Some(finish.chain(usage).chain([Bytes::from_static(DONE)]).collect())
    }
}

#[cfg(test)]
mod tests;
