//! Faults of database servers that Patroni runs, under load: killed, stopped or replaced, alone or with gateways in
//! the same moment. A fault is over when two standbys follow the primary, all gateways run, and each way has a new 200.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::load::{LEASE, World};
use super::patroni::{Companions, Outage, ServerFault};
use super::work::Work;
use super::{Dice, Report};
use crate::patroni::Patroni;
use crate::rolling::EndGuard;

/// New keys of each interval: some 40 a second while all is well, and none while callers have enough to repeat.
const NEW_KEYS: usize = 4;
const INTERVAL: Duration = Duration::from_millis(100);
/// Longest run of the load before a fault.
const BEFORE_MS_MAX: u64 = 1_500;
/// Time for which a dead or stopped node stays so, once the others serve.
const AWAY: Duration = Duration::from_secs(2);
/// Time for which a server alone is stopped: less than Patroni needs to replace its node.
const STOPPED: Duration = Duration::from_secs(8);

impl World {
    /// One fault of the servers, over work of its own.
    pub(super) fn fail_over(
        &self,
        dice: &mut Dice,
        (fault, companions): (ServerFault, Companions),
        work: &Work,
        report: &mut Report,
    ) {
        let failovers = self.patroni.as_ref().expect("servers of Patroni");
        let mut cluster = failovers.cluster();
        // Patroni may have replaced a server that was stopped after it went on.
        cluster.wait_until_whole(0);
        self.start_all();
        let is_over = AtomicBool::new(false);
        let mut feed = Dice(dice.next());
        std::thread::scope(|scope| {
            let _end = EndGuard(&is_over);
            scope.spawn(|| self.feed(&mut feed, work, &is_over));
            failovers.wait_until_served();
            std::thread::sleep(Duration::from_millis(dice.below(BEFORE_MS_MAX)));
            self.doubt(true);
            failovers.begin_outage();
            companions.places().into_iter().for_each(|place| self.kill(place, report));
            self.strike_patroni(&mut cluster, fault);
            failovers.wait_until_served();
            let [by_hosts, by_balancer] = failovers.longest_gaps();
            report.outages.push(Outage { fault, companions, by_hosts, by_balancer });
            // All nodes beat again.
            std::thread::sleep(LEASE);
            self.doubt(false);
        });
    }

    /// The fault, until all nodes and all gateways run again.
    fn strike_patroni(&self, cluster: &mut Patroni, fault: ServerFault) {
        let failovers = self.patroni.as_ref().expect("servers of Patroni");
        let (primary, timeline) = (cluster.primary(), cluster.timeline());
        let serve_again = || {
            failovers.wait_until_served();
            self.start_all();
        };
        match fault {
            ServerFault::ServerKilled => {
                cluster.kill_server(primary);
                cluster.wait_for_primary(timeline + 1);
                serve_again();
                cluster.wait_until_whole(timeline + 1);
            }
            ServerFault::NodeKilled => {
                cluster.kill_node(primary);
                cluster.wait_for_primary(timeline + 1);
                serve_again();
                std::thread::sleep(AWAY);
                cluster.start_node(primary);
                cluster.wait_until_whole(timeline + 1);
            }
            ServerFault::StandbyKilled => {
                let standby = cluster.synchronous_standby();
                cluster.kill_node(standby);
                serve_again();
                std::thread::sleep(AWAY);
                cluster.start_node(standby);
                cluster.wait_until_whole(timeline);
            }
            ServerFault::SwitchedOver => {
                cluster.switch_over();
                cluster.wait_for_primary(timeline + 1);
                serve_again();
                cluster.wait_until_whole(timeline + 1);
            }
            ServerFault::NodeStopped => {
                cluster.freeze_node(primary);
                cluster.wait_for_primary(timeline + 1);
                serve_again();
                std::thread::sleep(AWAY);
                cluster.thaw_node(primary);
                cluster.wait_until_whole(timeline + 1);
            }
            ServerFault::ServerStopped => {
                cluster.freeze_server(primary);
                std::thread::sleep(STOPPED);
                cluster.thaw_server(primary);
                serve_again();
                cluster.wait_until_whole(timeline);
            }
        }
    }

    /// Adds work at a steady rate, but none while callers have enough to repeat.
    fn feed(&self, dice: &mut Dice, work: &Work, is_over: &AtomicBool) {
        while !is_over.load(Ordering::Relaxed) {
            if work.is_short(self.clients()) {
                work.add(self.plan_few(dice, NEW_KEYS));
            }
            std::thread::sleep(INTERVAL);
        }
    }
}
