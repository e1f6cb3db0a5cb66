//! The server end of a relay, at the node that runs the operation. It is one waiter of the run, and cannot slow
//! it. Every refusal is the same to the asking node, whatever is wrong: there is no such tape.

use std::collections::VecDeque;

use aws_lc_rs::error::Unspecified;
use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::stream;
use tokio::sync::OwnedSemaphorePermit;

use super::record::Sealer;
use super::{RelayAnswer, RelayRequest, nonce, place};
use crate::Engine;
use crate::tape::{Follower, Reader};

/// The records of one relay, made as the run says more.
struct RelayWriter {
    follower: Follower,
    reader: Reader,
    sealer: Sealer,
    ready: VecDeque<Bytes>,
    is_over: bool,
    _place: OwnedSemaphorePermit,
}

impl RelayWriter {
    /// The records of what is said next; `None` when all was told.
    async fn next(&mut self) -> Result<Option<Bytes>, Unspecified> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return self.sealer.event(&event).map(Some);
            }
            if self.is_over {
                return Ok(None);
            }
            self.ready = self.follower.more().await;
            if self.ready.is_empty() {
                // Whoever hears the end looks at the row at once: it has to be written by then.
                self.reader.follow(None).await;
                self.is_over = true;
                return self.sealer.end().map(Some);
            }
        }
    }
}

impl Engine {
    /// What a run of this process says, to another node that knows its result key; `None` for any other, for
    /// a run that is not here or is not heard while it runs, and where too many hear.
    #[must_use]
    pub fn relay(&self, request: &RelayRequest, waiters_max: usize) -> Option<RelayAnswer> {
        let relays = self.relays.as_ref()?;
        let RelayRequest { operation, claim, nonce: asking, proof } = request;
        let tape = self.running.find(*operation).filter(|tape| tape.claim == *claim)?;
        let result_key = tape.track()?.result_key(*operation);
        if result_key.relay_proof(*claim, *asking) != *proof {
            return None;
        }
        let place = place(&relays.told)?;
        let reader = tape.read(waiters_max)?;
        let follower = reader.track()?.follow(false);
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

    /// Whether this process tells and hears relays.
    #[must_use]
    pub const fn is_relaying(&self) -> bool {
        self.relays.is_some()
    }
}
