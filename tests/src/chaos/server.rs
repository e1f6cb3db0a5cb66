//! A database server of a world's own, and what is done to it under load.

use std::collections::BTreeSet;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::load::{LEASE, World};
use super::supply::{HOUR, SERVERS};
use super::work::Work;
use super::{Dice, RANDOM_MS_MAX, Report, STEP_PATIENCE, wait_until};
use crate::line::{Cut, Line};
use crate::{PATIENCE, Request};

/// COMMITs that one fault cuts.
const CUTS: usize = 8;
/// Longest outage of a server, besides the time that it takes to start.
const AWAY_MS_MAX: u64 = 1_500;
/// Longest time with a wrong clock.
const WRONG_MS_MAX: u64 = 6_000;
/// Fault of the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Blow {
    /// Connections break in the middle of a COMMIT.
    CommitsCut,
    /// Killed and started again.
    Killed,
    /// Killed, and replaced by its synchronous standby.
    Promoted,
    /// Replaced by its synchronous standby while it lives, and nodes are still connected to it. It is killed when
    /// all of them have found the other one.
    SwitchedOver,
    /// Its clock is set an hour forward or back, and right again a few seconds later.
    ClockStepped,
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
        self.doubt(blow != Blow::CommitsCut);
        let mut sleep = |most| std::thread::sleep(Duration::from_millis(dice.below(most)));
        match blow {
            Blow::CommitsCut => {
                drop(cluster);
                report.commits_cut += self.cut_commits(dice, &supply.line, work);
            }
            Blow::Killed => {
                sleep(RANDOM_MS_MAX);
                cluster.kill();
                sleep(AWAY_MS_MAX);
                cluster.start_again();
                report.server_kills += 1;
            }
            Blow::ClockStepped => {
                let clocks = supply.clocks.as_ref().expect("clocks of their own");
                let before = self.server_time();
                clocks.set(SERVERS, if dice.one_in(2) { HOUR } else { -HOUR });
                let step = self.server_time().abs_diff(before);
                assert!(step > HOUR.unsigned_abs() / 2, "the server's clock did not step: {step}");
                work.add(self.plan(dice));
                std::thread::sleep(Duration::from_millis(dice.below(WRONG_MS_MAX)));
                clocks.set(SERVERS, 0);
                report.clock_steps += 2;
            }
            Blow::Promoted | Blow::SwitchedOver => {
                cluster.follow();
                work.add(self.plan(dice));
                std::thread::sleep(Duration::from_millis(dice.below(RANDOM_MS_MAX)));
                if blow == Blow::Promoted {
                    cluster.kill();
                    report.promotions += 1;
                }
                let old = cluster.switch_over();
                supply.line.lead_to(cluster.socket());
                if blow == Blow::SwitchedOver {
                    work.add(self.plan(dice));
                    self.wait_until_all_have_come();
                    report.switch_overs += 1;
                }
                drop(old);
            }
        }
        if blow != Blow::CommitsCut {
            // All nodes beat again.
            std::thread::sleep(LEASE);
            self.doubt(false);
        }
    }

    /// Cuts a few, each at any place, and returns the number of those that happened.
    fn cut_commits(&self, dice: &mut Dice, line: &Line, work: &Work) -> u32 {
        let before = line.n_cut();
        let kinds = [Cut::Before, Cut::Within, Cut::After];
        line.cut_next((0..CUTS).map(|_| kinds[dice.index(kinds.len())]));
        let n_cut = || line.n_cut() - before;
        wait_until(STEP_PATIENCE, || n_cut() == CUTS || work.is_idle(self.clients()));
        line.cut_no_more();
        u32::try_from(n_cut()).expect("few")
    }

    /// Until each node has renewed its lease at the server that the line leads to now.
    fn wait_until_all_have_come(&self) {
        let database = self.database.as_ref().expect("a database");
        let number = |sql: &str| -> i64 { database.execute(sql)[0].parse().expect("a number") };
        let known = number("SELECT max(ends_at) FROM nodes");
        let renewed = format!("SELECT count(*) FROM nodes WHERE ends_at > {known}");
        let places = i64::try_from(self.fleet.places()).expect("few");
        let have_come = wait_until(PATIENCE, || number(&renewed) == places);
        assert!(have_come, "a node stays with the server that was replaced");
    }

    /// The database's clock, in seconds.
    fn server_time(&self) -> i64 {
        let database = self.database.as_ref().expect("a database");
        let told = database.execute("SELECT extract(epoch FROM clock_timestamp())::bigint");
        told[0].parse().expect("a number")
    }

    /// Nodes whose clocks are to be hours apart report it.
    pub(super) fn check_clocks(&self) {
        if self.supply.as_ref().is_none_or(|supply| supply.clocks.is_none()) {
            return;
        }
        let told = self.fleet.addresses().into_iter().map(|address| {
            let answer = Request::get("/healthz").send(address);
            let date = answer.header("date").expect("a date");
            date.split(' ').nth(4).and_then(|time| time.split(':').next()).map(str::to_owned)
        });
        let hours: BTreeSet<Option<String>> = told.collect();
        assert_eq!(hours.len(), self.fleet.places(), "each has an hour of its own: {hours:?}");
    }

    /// While a server is away or its clock is wrong, nodes may believe each other dead, and a gateway whose files
    /// were removed commits no change: requests in flight may end unknown, and are checked in every other respect.
    pub(super) fn doubt(&self, is_in_doubt: bool) {
        self.is_in_doubt.store(is_in_doubt, Ordering::Release);
        if is_in_doubt {
            for key in self.keys().iter_mut() {
                key.cut |= key.told.is_none();
            }
        }
    }
}
