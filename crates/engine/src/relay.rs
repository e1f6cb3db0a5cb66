//! Relays: the text of a run, sent to another process on the same database while it is generated, so that a stream
//! which is joined there is as live as here. Two nodes share no secret and do not trust addresses. The requesting
//! node proves that it knows the operation's result key, which only the bearer of the credential yields. The
//! records are sealed under a key of both nodes' nonces. A relay therefore travels without TLS: an eavesdropper, a
//! false node and a false request without the credential gain nothing.
//!
//! ```text
//! request:  operation, claim, nonce, K("relay ask", result key ‖ claim ‖ nonce)
//! response: nonce, then records sealed under K("relay tape", result key ‖ claim ‖ both nonces)
//! ```
//!
//! A relay carries text and no ending: the outcome of an operation is only in its row. The transport is behind
//! [`RelayTransport`](crate::relay_transport::RelayTransport).

mod client;
mod record;
mod server;

use std::sync::Arc;
use std::time::Duration;

use holdfast_domain::ports::Nodes;
use holdfast_domain::{NodeAddress, RelayNonce};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use uuid::Uuid;

pub(crate) use self::client::RelayEvent;
use crate::metrics::Metrics;
use crate::relay_transport::RelayOptions;

/// Relays of a process at once, counted separately for those that it sends and those that it receives.
const RELAYS_MAX: usize = 256;

/// Silence of a run after which the requesting node gets a ping.
const PING_AFTER: Duration = Duration::from_secs(15);
/// Silence after which the requesting node takes a relay for cut: three pings.
const SILENCE_MAX: Duration = Duration::from_secs(45);

/// Relays of a process, in both directions.
#[derive(Debug)]
pub(crate) struct Relays {
    options: RelayOptions,
    nodes: Arc<dyn Nodes>,
    metrics: Arc<Metrics>,
    sent: Arc<Semaphore>,
    received: Arc<Semaphore>,
}

impl Relays {
    pub(crate) fn new(options: RelayOptions, nodes: Arc<dyn Nodes>, metrics: Arc<Metrics>) -> Self {
        let places = || Arc::new(Semaphore::new(RELAYS_MAX));
        Self { options, nodes, metrics, sent: places(), received: places() }
    }

    pub(crate) const fn address(&self) -> &NodeAddress {
        &self.options.address
    }
}

/// Takes a place among the relays; `None` if none is free: a relay never waits.
fn try_permit(places: &Arc<Semaphore>) -> Option<OwnedSemaphorePermit> {
    Arc::clone(places).try_acquire_owned().ok()
}

fn nonce() -> RelayNonce {
    RelayNonce::from(Uuid::new_v4())
}
