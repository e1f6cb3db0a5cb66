//! The server end of a relay, at the node that runs the operation. It is one waiter of the run, and cannot slow it.
//! Every refusal is the same to the requesting node, whatever its cause: there is no such tape.

use std::collections::VecDeque;

use aws_lc_rs::error::Unspecified;
use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::stream;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::timeout;

use super::record::{EVENT_MAX, Sealer};
use super::{PING_AFTER, Relays, nonce, try_permit};
use crate::relay_transport::{RelayAnswer, RelayRequest};
use crate::tape::{Follower, Reader, RunRegistry};

/// Writer of one relay: seals chunks as the run appends them.
struct RelayWriter {
    follower: Follower,
    reader: Reader,
    sealer: Sealer,
    ready: VecDeque<Bytes>,
    is_over: bool,
    _place: OwnedSemaphorePermit,
}

impl RelayWriter {
    /// Waits for the next records; `None` after the last one.
    async fn next(&mut self) -> Result<Option<Bytes>, Unspecified> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                if event.len() <= EVENT_MAX {
                    return self.sealer.event(&event).map(Some);
                }
                return self.end();
            }
            if self.is_over {
                return Ok(None);
            }
            match timeout(PING_AFTER, self.follower.more()).await {
                Err(_elapsed) => return self.sealer.ping().map(Some),
                Ok(events) if !events.is_empty() => self.ready = events,
                Ok(_no_more) => {
                    // The requesting node reads the row at the relay's end: the row comes first.
                    self.reader.follow(None).await;
                    return self.end();
                }
            }
        }
    }

    fn end(&mut self) -> Result<Option<Bytes>, Unspecified> {
        self.ready.clear();
        self.is_over = true;
        self.sealer.end().map(Some)
    }
}

impl Relays {
    /// Serves a relay to a node that proves that it knows the result key. `None` for any other, for a run that is
    /// not here or has no log, and if too many read it.
    pub(crate) fn serve(
        &self,
        running: &RunRegistry,
        request: &RelayRequest,
        waiters_max: usize,
    ) -> Option<RelayAnswer> {
        let RelayRequest { operation, claim, nonce: asking, proof } = request;
        let tape = running.find(*operation).filter(|tape| tape.claim == *claim)?;
        let result_key = tape.chunk_log()?.result_key(*operation);
        if result_key.relay_proof(*claim, *asking) != *proof {
            return None;
        }
        // A replayed request gets no answer, not even a place.
        if !tape.chunk_log()?.is_first_request(*asking) {
            return None;
        }
        // After the proof: a node without a proof takes no place from those with one.
        let place = try_permit(&self.sent)?;
        let reader = tape.read(waiters_max)?;
        let follower = reader.chunk_log()?.follow(false);
        let nonce = nonce();
        let sealer = Sealer::new(&result_key.relay_key(*claim, *asking, nonce)).ok()?;
        let ready = VecDeque::new();
        let writer = RelayWriter { follower, reader, sealer, ready, is_over: false, _place: place };
        let records = stream::unfold(writer, |mut writer| async {
            // A cipher that refuses ends the relay without its end: the row decides.
            let record = writer.next().await.ok()??;
            Some((record, writer))
        });
        Some(RelayAnswer { nonce, records: records.boxed() })
    }
}
