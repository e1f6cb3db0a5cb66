//! Network between nodes: relays with latency, which end with the process on the other side and are cut by chance.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use futures_util::{FutureExt, StreamExt};
use holdfast_domain::NodeAddress;
use holdfast_domain::ports::Unavailable;
use holdfast_engine::{Engine, RelayAnswer, RelayFuture, RelayRequest, RelayTransport};
use tokio::time::sleep;

use crate::chance::Chance;
use crate::process::Process;
use crate::recorder::Recorder;
use crate::step::Step;
use crate::store::InjectedFailure;

/// Network between the nodes: whom a relay reaches.
pub struct Network {
    recorder: Arc<Recorder>,
    chance: Chance,
    peers: Mutex<Peers>,
}

/// Processes by their address.
type Peers = BTreeMap<NodeAddress, (Arc<Process>, Weak<Engine>)>;

impl fmt::Debug for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Network")
    }
}

impl Network {
    /// Network without processes.
    #[must_use]
    pub fn new(chance: Chance, recorder: &Arc<Recorder>) -> Arc<Self> {
        Arc::new(Self { recorder: Arc::clone(recorder), chance, peers: Mutex::default() })
    }

    /// Adds a process under its address.
    pub fn join(&self, address: NodeAddress, process: &Arc<Process>, engine: &Arc<Engine>) {
        let peer = (Arc::clone(process), Arc::downgrade(engine));
        self.peers().insert(address, peer);
    }

    fn peers(&self) -> MutexGuard<'_, Peers> {
        self.peers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// End of the network at one process.
#[derive(Debug)]
pub struct NetworkLink {
    network: Arc<Network>,
    process: Arc<Process>,
}

impl NetworkLink {
    /// End at a process.
    #[must_use]
    pub fn new(network: &Arc<Network>, process: &Arc<Process>) -> Arc<Self> {
        Arc::new(Self { network: Arc::clone(network), process: Arc::clone(process) })
    }
}

impl RelayTransport for NetworkLink {
    fn send(&self, address: NodeAddress, request: RelayRequest) -> RelayFuture {
        let (network, process) = (Arc::clone(&self.network), Arc::clone(&self.process));
        async move {
            let peer = network.peers().get(&address).cloned();
            let of_process = network.chance.part("relay", process.number);
            let of_operation = request
                .operation
                .to_bytes()
                .iter()
                .fold(of_process, |chance, byte| chance.part("", u64::from(*byte)));
            let mut draws = of_operation.part("at", network.recorder.millis()).draws();
            sleep(draws.latency()).await;
            process.live().await;
            let unreached = || Unavailable(Box::new(InjectedFailure));
            let (peer, engine) = peer.ok_or_else(unreached)?;
            if peer.is_crashed() || draws.permille(30) {
                return Err(unreached());
            }
            let engine = engine.upgrade().ok_or_else(unreached)?;
            let answer = engine.relay(&request);
            network.recorder.note(format_args!(
                "n{} relays to n{}: {}",
                peer.slot,
                process.slot,
                if answer.is_some() { "yes" } else { "no" }
            ));
            let Some(RelayAnswer { nonce, records }) = answer else { return Ok(None) };
            network.recorder.reach(Step::Relayed);
            let pieces = if draws.permille(250) { draws.below(6) } else { u64::MAX };
            if pieces < u64::MAX {
                network.recorder.reach(Step::RelayCut);
            }
            let latency = draws.latency();
            let records = records
                .take(usize::try_from(pieces).unwrap_or(usize::MAX))
                .then(move |record| async move {
                    sleep(latency).await;
                    record
                })
                .take_until(async move { peer.end().await });
            Ok(Some(RelayAnswer { nonce, records: records.boxed() }))
        }
        .boxed()
    }
}
