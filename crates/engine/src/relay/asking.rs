//! The end that a caller has come to: it asks the node whose row has the operation's lease, and believes
//! nothing that is not sealed for it. A relay that breaks is asked for once more, from its beginning; what of
//! it was written already is its reader's to know.

use std::sync::Arc;

use futures_util::StreamExt;
use futures_util::stream::{self, BoxStream};
use holdfast_domain::operation::{Operation, Owner};
use tokio::sync::OwnedSemaphorePermit;

use super::record::{BadRecord, Opener, Said};
use super::{RelayAnswer, RelayRequest, nonce, place};
use crate::Engine;
use crate::submit::Ask;

/// How often a relay is asked for.
const ASKED_MAX: u32 = 2;

/// What is heard of a run of another process.
#[derive(Debug)]
pub(crate) enum Heard {
    /// An event, as whoever did not ask for usage reads it.
    Event(bytes::Bytes),
    /// What follows begins anew.
    Again,
}

/// One relay while it is heard.
struct Hearing {
    engine: Arc<Engine>,
    ask: Ask,
    owner: Owner,
    told: Option<Told>,
    asked: u32,
    _place: OwnedSemaphorePermit,
}

/// An answer while it is read.
struct Told {
    answer: RelayAnswer,
    opener: Opener,
}

impl Told {
    /// What is said next; `None` where the answer ends without an end.
    async fn next(&mut self) -> Result<Option<Said>, BadRecord> {
        loop {
            if let Some(said) = self.opener.next()? {
                return Ok(Some(said));
            }
            match self.answer.records.next().await {
                Some(bytes) => self.opener.take(&bytes),
                None => return Ok(None),
            }
        }
    }
}

impl Hearing {
    /// What is heard next; `None` when there is no more, whether that is all or not.
    async fn next(&mut self) -> Option<Heard> {
        loop {
            let Some(told) = &mut self.told else {
                self.told = Some(self.ask().await?);
                if self.asked > 1 {
                    return Some(Heard::Again);
                }
                continue;
            };
            match told.next().await {
                Ok(Some(Said::Event(event))) => return Some(Heard::Event(event)),
                Ok(Some(Said::End)) => {
                    self.engine.metrics.relayed("whole");
                    return None;
                }
                Ok(None) => self.engine.metrics.relayed("cut"),
                Err(error) => {
                    let error: &dyn std::error::Error = &error;
                    let node = &self.owner.node.name;
                    tracing::warn!(operation.id = %self.ask.id, %node, error, "a relay was not read on");
                    self.engine.metrics.relayed("cut");
                }
            }
            self.told = None;
        }
    }

    async fn ask(&mut self) -> Option<Told> {
        if self.asked >= ASKED_MAX {
            return None;
        }
        self.asked += 1;
        let (relays, owner) = (self.engine.relays.as_ref()?, &self.owner);
        let result_key = self.ask.caller.bearer.secret.result_key(self.ask.id);
        let (claim, nonce) = (owner.claim, nonce());
        let proof = result_key.relay_proof(claim, nonce);
        let request = RelayRequest { operation: self.ask.id, claim, nonce, proof };
        let answer = async {
            let address = self.engine.ports.nodes.address(&owner.node).await?;
            // Its own address in another's row is a mistake, and would be asked by itself.
            match address.filter(|address| address != relays.address()) {
                Some(address) => relays.options.transport.ask(address, request).await,
                None => Ok(None),
            }
        };
        match answer.await {
            Ok(Some(answer)) => {
                let key = result_key.relay_key(claim, nonce, answer.nonce);
                Some(Told { answer, opener: Opener::new(&key).ok()? })
            }
            Ok(None) => {
                self.engine.metrics.relayed("refused");
                None
            }
            Err(error) => {
                self.engine.metrics.relayed("unreached");
                let error: &dyn std::error::Error = &error;
                let node = &owner.node.name;
                tracing::debug!(operation.id = %self.ask.id, %node, error, "a node was not asked");
                None
            }
        }
    }
}

impl Engine {
    /// What the process says that runs this operation; `None` where it is not asked.
    pub(crate) fn hear(
        self: &Arc<Self>,
        ask: &Ask,
        row: &Operation,
    ) -> Option<BoxStream<'static, Heard>> {
        let owner = row.owner.clone();
        if owner.node == *self.node.node() {
            return None;
        }
        let place = place(&self.relays.as_ref()?.heard)?;
        let (engine, ask) = (Arc::clone(self), ask.clone());
        let hearing = Hearing { engine, ask, owner, told: None, asked: 0, _place: place };
        let heard = stream::unfold(hearing, |mut hearing| async {
            hearing.next().await.map(|heard| (heard, hearing))
        });
        Some(heard.boxed())
    }
}
