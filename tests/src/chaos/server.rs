//! A database server of a world's own, and what is done to it under load.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::load::World;
use super::work::Work;
use super::{Dice, RANDOM_MS_MAX, Report, STEP_PATIENCE, wait_until};
use crate::cluster::Cluster;
use crate::line::{Cut, Line};

/// COMMITs that one fault cuts.
const CUTS: usize = 8;
/// How long a server is away, at most, beside the time that it takes to start.
const AWAY_MS_MAX: u64 = 1_500;

/// The server, and how it is reached.
#[derive(Debug)]
pub(super) struct Supply {
    pub(super) line: Line,
    cluster: Mutex<Cluster>,
}

/// What is done to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Blow {
    /// Connections break in the middle of a COMMIT.
    CommitsCut,
    /// It is killed and started again.
    Killed,
    /// It is killed, and its synchronous standby takes its place.
    Promoted,
}

impl Supply {
    pub(super) fn start() -> Self {
        let cluster = Cluster::start();
        Self { line: Line::to(cluster.socket()), cluster: Mutex::new(cluster) }
    }

    fn cluster(&self) -> MutexGuard<'_, Cluster> {
        self.cluster.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl World {
    /// One fault of the server, over work of its own.
    pub(super) fn strike_server(
        &self,
        dice: &mut Dice,
        blow: Blow,
        work: &Work,
        report: &mut Report,
    ) {
        let supply = self.supply.as_ref().expect("a server of its own");
        let mut cluster = supply.cluster();
        self.start_all();
        work.add(self.plan(dice));
        let mut sleep = |most| std::thread::sleep(Duration::from_millis(dice.below(most)));
        match blow {
            Blow::CommitsCut => {
                drop(cluster);
                report.commits_cut += self.cut_commits(dice, &supply.line, work);
            }
            Blow::Killed => {
                sleep(RANDOM_MS_MAX);
                cluster.kill();
                self.doubt_all();
                sleep(AWAY_MS_MAX);
                cluster.start_again();
                self.doubt_all();
                report.server_kills += 1;
            }
            Blow::Promoted => {
                cluster.follow();
                work.add(self.plan(dice));
                std::thread::sleep(Duration::from_millis(dice.below(RANDOM_MS_MAX)));
                cluster.fail_over();
                supply.line.lead_to(cluster.socket());
                self.doubt_all();
                report.promotions += 1;
            }
        }
    }

    /// Cuts a few, each anywhere, and says how many came to it.
    fn cut_commits(&self, dice: &mut Dice, line: &Line, work: &Work) -> u32 {
        let before = line.n_cut();
        let kinds = [Cut::Before, Cut::Within, Cut::After];
        line.cut_next((0..CUTS).map(|_| kinds[dice.index(kinds.len())]));
        let n_cut = || line.n_cut() - before;
        wait_until(STEP_PATIENCE, || n_cut() == CUTS || work.is_idle(self.clients()));
        line.cut_no_more();
        u32::try_from(n_cut()).expect("few")
    }

    /// While a server is away, nodes may believe each other dead: what they have in hand may end
    /// unknown.
    fn doubt_all(&self) {
        for key in self.keys().iter_mut() {
            key.cut |= key.told.is_none();
        }
    }
}
