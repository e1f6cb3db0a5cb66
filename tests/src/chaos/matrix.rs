//! Every step of a request by itself: one caller, one key, one process on a shared database that is killed there,
//! or stopped past its lease and resumed; then every way in which the key comes to rest.
//!
//! Each cell has a wallet of its own, so that its charge is known to the micro, and an upstream that counts the
//! arrivals of the key.

mod cell;

use std::time::Duration;

pub use self::cell::Cell;
use self::cell::{Struck, parallel};
use super::Dice;
use super::load::{GRACE, LEASE, impatient};
use super::steps::{ROWS, Row};
use crate::postgres::Database;
use crate::{Config, Gateway, Reply, Site, Upstream};

/// Processes of one stage, so that a server has connections for all of them.
const CELLS_AT_ONCE: usize = 24;
/// Retention of results in cells that wait for their deletion.
const KEPT: Duration = Duration::from_secs(1);

/// Fault of the process at its step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// SIGKILL.
    Killed,
    /// SIGSTOP past the lease and the grace, then SIGCONT.
    Frozen,
}

/// Process or caller that brings the key to rest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Retry {
    /// A caller at the same node: the same name again, or the resumed process.
    Same,
    /// A caller at another node.
    Other,
    /// No caller: the other nodes by themselves.
    Reconciler,
    /// None, for longer than any timeout: no caller and no other node. Then a node starts.
    Nobody,
    /// Four callers at two nodes, just when these take over by themselves.
    Racing,
    /// A caller who comes after the result was deleted.
    AfterPurge,
}

const FAULTS: [Fault; 2] = [Fault::Killed, Fault::Frozen];
const RETRIES: [Retry; 6] =
    [Retry::Same, Retry::Other, Retry::Reconciler, Retry::Nobody, Retry::Racing, Retry::AfterPurge];

/// All there are, in an order of this seed.
#[must_use]
pub fn shuffled(seed: u64) -> Vec<Cell> {
    let mut cells = Vec::new();
    for row in ROWS {
        for fault in FAULTS {
            for retry in RETRIES {
                for is_streamed in [false, true] {
                    cells.push(Cell { row, fault, retry, is_streamed });
                }
            }
        }
    }
    let mut dice = Dice(seed);
    for end in (1..cells.len()).rev() {
        cells.swap(end, dice.index(end + 1));
    }
    cells
}

/// Each step with this fault once, and each retry twice, in pairs that the seed chooses.
#[must_use]
pub fn some_cells(fault: Fault, seed: u64) -> Vec<Cell> {
    let mut dice = Dice(seed);
    let first = dice.index(RETRIES.len());
    let cell = |(at, row): (usize, Row)| {
        let retry = RETRIES[(first + at) % RETRIES.len()];
        Cell { row, fault, retry, is_streamed: (at + at / RETRIES.len()).is_multiple_of(2) }
    };
    ROWS.into_iter().enumerate().map(cell).collect()
}

/// Tries all of these; ends the test at the first failure. `tell` receives the progress.
pub fn try_cells(cells: &[Cell], mut tell: impl FnMut(usize)) {
    let of = |wanted: fn(Retry) -> bool| -> Vec<Cell> {
        cells.iter().copied().filter(|cell| wanted(cell.retry)).collect()
    };
    let alone = of(|retry| retry == Retry::Nobody);
    let late = of(|retry| retry == Retry::AfterPurge);
    let rest = of(|retry| !matches!(retry, Retry::Nobody | Retry::AfterPurge));
    let mut done = 0;
    let mut ended = |n| {
        done += n;
        tell(done);
    };
    in_stages(&rest, 2, beside_others, &mut ended);
    in_stages(&alone, 0, alone_for_long, &mut ended);
    in_stages(&late, 1, after_a_purge, &mut ended);
}

/// Tries these, a few at once, together with so many nodes without a fault.
fn in_stages(
    cells: &[Cell],
    nodes: usize,
    try_them: impl Fn(&Stage, &[Cell]),
    ended: &mut impl FnMut(usize),
) {
    for cells in cells.chunks(CELLS_AT_ONCE) {
        let stage = Stage::new(nodes);
        try_them(&stage, cells);
        stage.check();
        ended(cells.len());
    }
}

/// A database, and nodes on it without a fault.
#[derive(Debug)]
struct Stage {
    nodes: Vec<Gateway>,
    upstream: Upstream,
    config: Config,
    site: Site,
    database: Database,
}

impl Stage {
    fn new(nodes: usize) -> Self {
        let upstream = Upstream::start(Reply::saying("Good day"));
        let database = Database::migrated();
        let config = impatient(database.configure(Config::upstream(&upstream)));
        let site = Site::unwatched_in(&std::env::temp_dir(), &config);
        drop(site.cli(&["migrate", "up"]).ok());
        let nodes = (0..nodes).map(|_| site.serve()).collect();
        Self { nodes, upstream, config, site, database }
    }

    /// The whole book, by its own audit and by the test's.
    fn check(self) {
        self.database.check_book();
        self.site.verify();
    }
}

/// Two other nodes live all the time.
fn beside_others(stage: &Stage, cells: &[Cell]) {
    parallel(cells.to_vec(), |cell| {
        let mut struck = Struck::strike(stage, cell);
        match cell.retry {
            Retry::Same => {
                std::thread::sleep(LEASE + GRACE);
                struck.bring_back();
                struck.ask_it();
            }
            Retry::Other => struck.ask(&stage.nodes[0]),
            Retry::Racing => {
                std::thread::sleep(LEASE);
                struck.race(&[&stage.nodes[0], &stage.nodes[1]]);
            }
            Retry::Reconciler | Retry::Nobody | Retry::AfterPurge => struck.wait_for_rest(),
        }
        struck.bring_back();
        struck.check(&stage.nodes[0]);
    });
}

/// No other process lives, until long after others would have taken over.
fn alone_for_long(stage: &Stage, cells: &[Cell]) {
    let struck = parallel(cells.to_vec(), |cell| Struck::strike(stage, cell));
    std::thread::sleep(LEASE + GRACE);
    for struck in &struck {
        assert!(struck.is_as_at_the_step(), "nobody was there: {:?}", struck.cell());
    }
    let node = stage.site.serve();
    parallel(struck, |mut struck| {
        struck.bring_back();
        struck.wait_for_rest();
        struck.check(&node);
    });
}

/// Another node brings it to rest, and one that keeps results for a second only deletes what there is.
fn after_a_purge(stage: &Stage, cells: &[Cell]) {
    let struck = parallel(cells.to_vec(), |cell| {
        let mut struck = Struck::strike(stage, cell);
        struck.wait_for_rest();
        struck.bring_back();
        struck
    });
    std::thread::sleep(KEPT);
    let kept = format!("\"{}s\"", KEPT.as_secs());
    let config = stage.config.clone().set("retention", "results", &kept);
    let site = Site::unwatched_in(&std::env::temp_dir(), &config);
    let node = site.serve();
    parallel(struck, |struck| {
        struck.wait_for_purge();
        struck.check(&node);
    });
}
