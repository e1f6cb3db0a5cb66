//! The store alone: the changes of a request, committed by the store's own writer, without a gateway around
//! it. The wallets and API keys are those of the database.

use std::sync::Arc;
use std::time::Duration;

use holdfast_domain::admin::Directory as _;
use holdfast_domain::admin::listing::{ApiKeyFilter, ApiKeyListing, Order, PAGE_MAX, PageRequest};
use holdfast_domain::operation::{Claim, Finish, Lease, Node, SealedResult};
use holdfast_domain::ports::{HeartbeatOutcome, LeaseMode};
use holdfast_domain::{
    ApiKeyId, CredentialId, Event, Incarnation, Journal, NodeName, Nodes, Prices, Snapshot,
    WalletId,
};
use holdfast_store::{DatabaseUrl, Options, Store};
use holdfast_testkit::laws::tenant::{judged, operation_change};
use holdfast_testkit::sample::{self, ClaimBuilder};
use tokio::task::JoinSet;
use tokio::time::MissedTickBehavior;

use crate::pairs::{HOLD, Pairs, SEALED_LEN, Work, runtime};

/// A node that does not renew its lease loses what it runs to the others.
const HEARTBEAT: Duration = Duration::from_secs(4);

/// API key that pairs are made for.
struct PairKey {
    id: ApiKeyId,
    wallet: WalletId,
    /// Credential that results name as the one they are sealed for.
    credential: CredentialId,
}

impl PairKey {
    fn of(listing: &ApiKeyListing) -> Self {
        let ApiKeyListing { api_key, credentials } = listing;
        let credential = credentials.first().expect("a credential in force").id;
        Self { id: api_key.id, wallet: api_key.wallet, credential }
    }
}

/// The API keys of the database.
async fn keys(store: &Store) -> Arc<[PairKey]> {
    let mut keys = Vec::new();
    let mut request = PageRequest::first(Order::Oldest, PAGE_MAX);
    loop {
        let page = store.api_keys(ApiKeyFilter::default(), request).await.expect("the database");
        keys.extend(page.rows.iter().map(PairKey::of));
        request.after = page.next;
        if page.next.is_none() {
            return keys.into();
        }
    }
}

/// Makes pairs until the time is over.
pub fn run(pairs: &Pairs) {
    runtime().block_on(async {
        let mut beating = JoinSet::new();
        let nodes = open(pairs, &mut beating).await;
        let (first, _lease) = nodes.first().expect("one node at least");
        let keys = keys(first).await;
        let hands = nodes.iter().cycle().take(pairs.tasks).enumerate();
        let hands = hands.map(|(at, (store, lease))| {
            let claim = sample::claim().lease(lease.clone()).hold(HOLD).build();
            let (store, keys) = (store.clone(), Arc::clone(&keys));
            StoreWorker { store, keys, at, step: pairs.tasks, claim }
        });
        pairs.measure(hands.collect()).await;
        beating.shutdown().await;
        for (store, lease) in nodes {
            store.leave(&lease.node).await.expect("the database");
            store.close().await.expect("the database");
        }
    });
}

/// As many stores as there are nodes, each with its lease.
async fn open(pairs: &Pairs, beating: &mut JoinSet<()>) -> Vec<(Store, Lease)> {
    let mut nodes = Vec::new();
    for _ in 0..pairs.nodes {
        let url = DatabaseUrl::parse(&pairs.url).expect("the URL of a database");
        let store = Store::open(Options::new(url)).await.expect("a database with tables");
        store.pin(&[sample::price()]).await.expect("the database");
        let name = uuid::Uuid::new_v4().simple().to_string();
        let name = NodeName::try_from(name.as_str()).expect("a name");
        let node = Node { name, incarnation: sample::fresh::<Incarnation>() };
        let HeartbeatOutcome::Held { lease, .. } = beat(&store, &node, LeaseMode::Take).await
        else {
            panic!("a new name is free")
        };
        let renewed = store.clone();
        beating.spawn(async move {
            let mut ticks = tokio::time::interval(HEARTBEAT);
            ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
            loop {
                ticks.tick().await;
                beat(&renewed, &node, LeaseMode::Renew).await;
            }
        });
        nodes.push((store, lease));
    }
    nodes
}

async fn beat(store: &Store, node: &Node, entry: LeaseMode) -> HeartbeatOutcome {
    store.heartbeat(node, sample::LEASE, entry).await.expect("the database")
}

struct StoreWorker {
    store: Store,
    keys: Arc<[PairKey]>,
    /// Key at which it begins, and its step each turn: together the hands use all alike.
    at: usize,
    step: usize,
    claim: Claim,
}

impl Work for StoreWorker {
    async fn pair(&mut self, turn: usize) {
        let at = (self.at + turn * self.step) % self.keys.len();
        let key = self.keys.get(at).expect("a key");
        let claim = ClaimBuilder::from_claim(self.claim.clone())
            .api_key(key.id)
            .wallet(key.wallet)
            .request_key(sample::fresh_request_key())
            .claim_id(sample::fresh())
            .build();
        let change = sample::admission(&claim);
        let receipt = self.store.commit(Arc::clone(&change)).await.expect("a hold");
        let operation = operation_change(&change).apply(None, receipt).expect("a row");
        let finish = Finish {
            claim: operation.owner.claim,
            metered: sample::metered(100, 20),
            result: SealedResult {
                credential: key.credential,
                sealed: vec![7; SEALED_LEN].into(),
                ..sample::result("")
            },
            attempts: sample::attempts(),
        };
        let snapshot = Snapshot {
            operation: Some(operation),
            result: None,
            lease: Some(claim.lease),
            now: receipt.at,
        };
        let change = judged(&snapshot, Event::Finish(finish));
        self.store.commit(change).await.expect("a settlement");
    }
}
