//! The client end of a relay: sends a request to the node that has the operation's lease, and trusts only records
//! that are sealed for it. A relay that breaks is requested once more, from its beginning, because its reader knows
//! what was written already; then the operation's row decides. The address of this process itself never gets a
//! request.

use std::sync::Arc;

use futures_util::StreamExt;
use futures_util::stream::{self, BoxStream};
use holdfast_domain::ErrorChain;
use holdfast_domain::operation::{Node, Operation, Owner};
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::timeout;

use super::record::{BadRecord, Opener, Record};
use super::{Relays, SILENCE_MAX, nonce, try_permit};
use crate::relay_transport::{RelayAnswer, RelayRequest};
use crate::request_context::RequestContext;

/// Requests for one relay: the first, and one more if that was cut.
const REQUESTS_MAX: u32 = 2;

/// Event of a relay, for its reader.
#[derive(Debug)]
pub(crate) enum RelayEvent {
    /// Chunk event, in the form without `usage`.
    Event(bytes::Bytes),
    /// Restart: the relay was cut, and begins anew from its first event.
    Restart,
}

/// Reader of one operation's relay, over at most [`REQUESTS_MAX`] requests.
struct RelayReader {
    relays: Arc<Relays>,
    context: RequestContext,
    owner: Owner,
    response: Option<RelayResponse>,
    asked: u32,
    _place: OwnedSemaphorePermit,
}

/// Response to one request, while it is read.
struct RelayResponse {
    answer: RelayAnswer,
    opener: Opener,
}

impl RelayResponse {
    /// Waits for the next record; `None` if the response ends or falls silent without `End`.
    async fn next(&mut self) -> Result<Option<Record>, BadRecord> {
        loop {
            if let Some(record) = self.opener.next()? {
                return Ok(Some(record));
            }
            // A ping is due every 15 s: a longer silence is a connection that is dead.
            match timeout(SILENCE_MAX, self.answer.records.next()).await {
                Ok(Some(bytes)) => self.opener.take(&bytes),
                Ok(None) | Err(_) => return Ok(None),
            }
        }
    }
}

impl RelayReader {
    /// Waits for the next event; `None` if there is no more, whole or cut: the row decides.
    async fn next(&mut self) -> Option<RelayEvent> {
        loop {
            let Some(response) = &mut self.response else {
                self.response = Some(self.request_relay().await?);
                if self.asked > 1 {
                    return Some(RelayEvent::Restart);
                }
                continue;
            };
            match response.next().await {
                Ok(Some(Record::Event(event))) => return Some(RelayEvent::Event(event)),
                Ok(Some(Record::Ping)) => continue,
                Ok(Some(Record::End)) => {
                    self.relays.metrics.relayed("whole");
                    return None;
                }
                Ok(None) => self.relays.metrics.relayed("cut"),
                Err(error) => {
                    let node = &self.owner.node.name;
                    let error = ErrorChain(&error);
                    tracing::warn!(operation.id = %self.context.id, %node, %error, "a relay was not read on");
                    self.relays.metrics.relayed("cut");
                }
            }
            // The reader knows what was written: a second request sends it all again.
            self.response = None;
        }
    }

    async fn request_relay(&mut self) -> Option<RelayResponse> {
        if self.asked >= REQUESTS_MAX {
            return None;
        }
        self.asked += 1;
        let (relays, owner) = (&self.relays, &self.owner);
        let result_key = self.context.caller.bearer.secret.result_key(self.context.id);
        let (claim, nonce) = (owner.claim, nonce());
        let proof = result_key.relay_proof(claim, nonce);
        let request = RelayRequest { operation: self.context.id, claim, nonce, proof };
        let answer = async {
            let address = relays.nodes.address(&owner.node).await?;
            // The own address in another's row is a mistake: this process would send to itself.
            match address.filter(|address| address != relays.address()) {
                Some(address) => relays.options.transport.send(address, request).await,
                None => Ok(None),
            }
        };
        match answer.await {
            Ok(Some(answer)) => {
                let key = result_key.relay_key(claim, nonce, answer.nonce);
                Some(RelayResponse { answer, opener: Opener::new(&key).ok()? })
            }
            Ok(None) => {
                self.relays.metrics.relayed("refused");
                None
            }
            Err(error) => {
                self.relays.metrics.relayed("unreached");
                let node = &owner.node.name;
                let error = ErrorChain(&error);
                tracing::debug!(operation.id = %self.context.id, %node, %error, "a node was not queried");
                None
            }
        }
    }
}

impl Relays {
    /// Opens a relay from the process that runs this operation; `None` if that is this one, or no place is free. No
    /// request is sent before the stream is polled.
    pub(crate) fn open(
        self: &Arc<Self>,
        context: &RequestContext,
        row: &Operation,
        own: &Node,
    ) -> Option<BoxStream<'static, RelayEvent>> {
        let owner = row.owner.clone();
        if owner.node == *own {
            return None;
        }
        let place = try_permit(&self.received)?;
        let (relays, context) = (Arc::clone(self), context.clone());
        let reader =
            RelayReader { relays, context, owner, response: None, asked: 0, _place: place };
        let events = stream::unfold(reader, |mut reader| async {
            reader.next().await.map(|event| (event, reader))
        });
        Some(events.boxed())
    }
}
