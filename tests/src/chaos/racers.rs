//! Callers on three nodes with one key, and keys that compete for the same funds.
//!
//! Checks compare the answer of each caller, the requests upstream, and the charges.

use std::sync::{Barrier, Mutex};

use serde_json::json;

use super::heard::{Delivery, WholeAnswer};
use crate::config::ACME;
use crate::postgres::Database;
use crate::{Account, Config, Gateway, Reply, Request, Site, Upstream};

/// Number of gateways on one database.
const NODES: usize = 3;
/// Number of callers of one key.
const RACERS: usize = 64;
/// Charge of the upstream's usual completion.
const CHARGE: i64 = 367;
/// Deposit of the wallet of a round, in whole units and in micros.
const FUNDS: (&str, i64) = ("100000", 100_000_000_000);

/// Nodes without a fault.
#[derive(Debug)]
pub struct Track {
    /// The nodes.
    pub nodes: Vec<Gateway>,
    /// Server of their provider.
    pub upstream: Upstream,
    /// Database of their ledger.
    pub database: Database,
    /// Folder of their administration.
    pub site: Site,
    /// An account with enough for all.
    pub account: Account,
}

impl Track {
    /// Three nodes on one database, before an upstream that answers so.
    #[must_use]
    pub fn new(reply: Reply) -> Self {
        let upstream = Upstream::start(reply);
        let database = Database::migrated();
        let config = database.configure(Config::upstream(&upstream));
        let site = Site::unwatched_in(&std::env::temp_dir(), &config);
        drop(site.cli(&["migrate", "up"]).ok());
        let account = site.account("racers", "USD", FUNDS.0);
        let nodes = (0..NODES).map(|_| site.serve()).collect();
        Self { nodes, upstream, database, site, account }
    }

    /// So many rounds, each of one key for all callers at once; `tell` receives the progress.
    pub fn race(&self, rounds: usize, mut tell: impl FnMut(usize)) {
        for round in 1..=rounds {
            let runs = self.upstream.runs();
            let key = crate::request_key();
            let told = self.all_at_once(&key);
            let first = told.first().expect("an answer");
            assert_eq!(first.status, 200, "{first:?}");
            assert_eq!(first.gist["usage"]["customer_charge_micros"], CHARGE, "{first:?}");
            for other in &told {
                assert!(other.is_like(first), "one key, two answers: {first:?}, {other:?}");
            }
            let n_first = told.iter().filter(|told| !told.is_replayed()).count();
            assert!(n_first <= 1, "{n_first} were told that they ran it");
            assert_eq!(self.upstream.runs() - runs, 1, "one key, one run");
            if round % 100 == 0 || round == rounds {
                self.check(round);
                tell(round);
            }
        }
    }

    fn all_at_once(&self, key: &str) -> Vec<WholeAnswer> {
        let (start, told) = (Barrier::new(RACERS), Mutex::new(Vec::new()));
        std::thread::scope(|scope| {
            for racer in 0..RACERS {
                let (start, told) = (&start, &told);
                scope.spawn(move || {
                    let node = &self.nodes[racer % NODES];
                    let request = self.request(key, racer % 2 == 1);
                    start.wait();
                    let waiting = request.begin(node.address());
                    match Delivery::read(waiting, usize::MAX).0 {
                        Delivery::Whole(answer) => told.lock().expect("no panic").push(answer),
                        Delivery::Part(part) => panic!("racer {racer} heard {part:?}"),
                    }
                });
            }
        });
        let told = told.into_inner().expect("no panic");
        assert_eq!(told.len(), RACERS);
        told
    }

    fn request(&self, key: &str, is_streamed: bool) -> Request {
        let said = json!([{"role": "user", "content": "The same"}]);
        let mut body = json!({"model": ACME, "messages": said, "stream": is_streamed});
        if is_streamed {
            body["stream_options"] = json!({"include_usage": true});
        }
        Request::completion(&self.account.key, key, body.to_string())
    }

    /// So many were charged, and the ledger has the same.
    fn check(&self, paid: usize) {
        let paid = i64::try_from(paid).expect("few") * CHARGE;
        assert_eq!(self.site.balance(&self.account), (FUNDS.1 - paid, 0));
        self.database.check_book();
        self.site.verify();
    }
}
