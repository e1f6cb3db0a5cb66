//! Goals of the benchmark, and the verdict of a run on each.
//!
//! A goal counts only where the run has measured what it is about. Its bounds go from `must` by `good` to
//! `limit`: the first two give the verdict, the last one is shown to compare with. Costs in them belong to
//! the machine of docs/explanation/performance.md, ratios travel better.
//!
//! A missed goal ends nothing and fails nothing: other work on a machine misses goals, too.

use crate::figures::Figures;
use crate::measurements::Report;
use crate::numbers::permille;
use crate::scenario::{
    CHUNKS, Engine, MANY, MANY_WALLETS, ONE, REPLAY, SIDECAR, SIDECAR_ONE, SIDECAR_STREAMS, SLOW,
    SOME, SOME_WALLETS, STREAMS, Scenario, TRACED, TRACED_GONE, TRACED_SILENT,
};
use crate::stand::Target;

/// Something to reach, in thousandths of its unit.
pub(crate) struct Goal {
    pub(crate) what: &'static str,
    pub(crate) unit: &'static str,
    pub(crate) is: u64,
    pub(crate) must: u64,
    pub(crate) good: u64,
    pub(crate) limit: u64,
    better: Better,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Better {
    Less,
    More,
}

impl Goal {
    pub(crate) fn verdict(&self) -> &'static str {
        let reaches = |bound| match self.better {
            Better::Less => self.is <= bound,
            Better::More => self.is >= bound,
        };
        match () {
            () if reaches(self.good) => "good",
            () if reaches(self.must) => "reached",
            () => "missed",
        }
    }
}

/// The goals that this run says something about.
pub(crate) fn goals(report: &Report) -> Vec<Goal> {
    let mut goals = match report.engine {
        Engine::Sqlite => costs(report),
        Engine::Postgres => on_a_server(report),
    };
    goals.extend(ratios(report));
    goals.extend(streams(report));
    goals.extend(beside(report));
    goals.extend(traced(report));
    goals
}

const fn less(what: &'static str, unit: &'static str, is: u64, bounds: [u64; 3]) -> Goal {
    let [must, good, limit] = bounds;
    Goal { what, unit, is, must, good, limit, better: Better::Less }
}

/// Costs of a request; less is better.
fn costs(report: &Report) -> Vec<Goal> {
    let gateway = |scenario| report.find(scenario, Target::Gateway);
    let mut goals = Vec::new();
    if let Some(Figures { cpu_nanos, written, .. }) = gateway(SOME.name).copied() {
        let (cpu, bytes) = if report.stored == 0 {
            ([110_000, 80_000, 56_000], [15_000, 11_000, 8_000])
        } else {
            ([135_000, 100_000, 85_000], [25_000, 18_000, 14_000])
        };
        goals.push(less("32 connections, CPU per request", "us", cpu_nanos, cpu));
        goals.push(less("32 connections, written per request", "KB", written, bytes));
    }
    if let Some(figures) = gateway(MANY.name) {
        let mib = permille(figures.resident_kib, 1_024);
        let cpu = figures.cpu_nanos;
        goals.push(less("256 connections, CPU per request", "us", cpu, [80_000, 62_000, 50_000]));
        goals.push(less("256 connections, resident", "MiB", mib, [100_000, 70_000, 50_000]));
    }
    if let Some((gateway, direct)) = gateway(ONE.name).zip(report.find(ONE.name, Target::Direct)) {
        let added = gateway.latencies.p50.saturating_sub(direct.latencies.p50);
        goals.push(less("1 connection, added p50", "ms", added, [900, 720, 430]));
    }
    goals
}

/// Costs of a request to the gateway and its database server, and what the store does beside the plain loop
/// of the same run. Of the loop its best counts, whatever the number of its connections.
fn on_a_server(report: &Report) -> Vec<Goal> {
    let mut goals = Vec::new();
    if let Some(Figures { cpu_nanos, server_nanos, .. }) = report.find(SOME.name, Target::Gateway) {
        let (own, server) = ([65_000, 48_000, 40_000], [90_000, 65_000, 45_000]);
        goals.push(less("32 connections, CPU of the gateway", "us", *cpu_nanos, own));
        goals.push(less("32 connections, CPU of the server", "us", *server_nanos, server));
    }
    if let Some(Figures { cpu_nanos, server_nanos, .. }) = report.find(MANY.name, Target::Gateway) {
        let (own, server) = ([50_000, 40_000, 34_000], [45_000, 32_000, 25_000]);
        goals.push(less("256 connections, CPU of the gateway", "us", *cpu_nanos, own));
        goals.push(less("256 connections, CPU of the server", "us", *server_nanos, server));
    }
    if let Some(store) = report.find(ONE.name, Target::Store) {
        let p50 = store.latencies.p50;
        goals.push(less("1 task, p50 of both commits", "ms", p50, [1_300, 1_000, 700]));
    }
    let best = |of: [&str; 3], target| {
        of.iter().filter_map(|scenario| report.find(scenario, target)).map(|it| it.rate).max()
    };
    let hot = [ONE.name, SOME.name, MANY.name];
    let wallets = [SOME_WALLETS.name, SOME_WALLETS.name, MANY_WALLETS.name];
    let ratios = [
        ("one wallet, pairs a second to the plain loop", hot, [10_000, 15_000, 25_000]),
        ("1,000 wallets, pairs a second to the plain loop", wallets, [3_000, 4_000, 6_000]),
    ];
    goals.extend(ratios.into_iter().filter_map(|(what, of, [must, good, limit])| {
        let is = permille(best(of, Target::Store)?, best(of, Target::Plain)?);
        Some(Goal { what, unit: "x", is, must, good, limit, better: Better::More })
    }));
    goals
}

/// Throughput beside something else of the same run; more is better.
fn ratios(report: &Report) -> Vec<Goal> {
    let ratio = |what, scenario, than: (&str, Target), [must, good, limit]: [u64; 3]| {
        let rate = report.find(scenario, Target::Gateway)?.rate;
        let is = permille(rate, report.find(than.0, than.1)?.rate);
        Some(Goal { what, unit: "x", is, must, good, limit, better: Better::More })
    };
    let [some, many, slow, replay] = [SOME.name, MANY.name, SLOW.name, REPLAY.name];
    let goals = [
        ratio(
            "256 connections, throughput to the pass-through",
            many,
            (many, Target::PassThrough),
            [200, 280, 370],
        ),
        ratio(
            "256 connections, throughput to its own 32",
            many,
            (some, Target::Gateway),
            [900, 1_000, 1_050],
        ),
        ratio(
            "an upstream of 50 ms, throughput to direct",
            slow,
            (slow, Target::Direct),
            [850, 950, 1_000],
        ),
        ratio(
            "a finished key, throughput to the pass-through",
            replay,
            (replay, Target::PassThrough),
            [300, 600, 1_000],
        ),
    ];
    goals.into_iter().flatten().collect()
}

/// Costs of streams, beside the same streams without a gateway or through the pass-through.
fn streams(report: &Report) -> Vec<Goal> {
    let mut goals = Vec::new();
    let find = |scenario: &str, target| report.find(scenario, target);
    let many = find(STREAMS.name, Target::Gateway).zip(find(STREAMS.name, Target::Direct));
    if let Some((gateway, direct)) = many {
        let added = |of: fn(&Figures) -> u64| of(gateway).saturating_sub(of(direct));
        let stall = added(|it| it.flow.stall);
        goals.push(less(
            "many streams, longest pause added",
            "ms",
            stall,
            [1_000_000, 250_000, 50_000],
        ));
        let chunk = added(|it| it.flow.delay.p50);
        goals.push(less("many streams, added p50 of a chunk", "ms", chunk, [20_000, 5_000, 1_000]));
        let first = added(|it| it.flow.first.p50);
        goals.push(less(
            "many streams, added p50 of the first",
            "ms",
            first,
            [100_000, 30_000, 10_000],
        ));
        goals.push(less(
            "many streams, peak for each",
            "KB",
            gateway.grown,
            [100_000, 60_000, 30_000],
        ));
    }
    let fast = find(CHUNKS.name, Target::Gateway).zip(find(CHUNKS.name, Target::PassThrough));
    if let Some((gateway, through)) = fast {
        goals.push(less(
            "CPU of 1,000 chunks",
            "ms",
            gateway.chunk_nanos,
            [40_000, 20_000, 10_000],
        ));
        let is = permille(gateway.chunk_rate, through.chunk_rate);
        let [must, good, limit] = [200, 400, 1_000];
        let what = "chunks a second to the pass-through";
        goals.push(Goal { what, unit: "x", is, must, good, limit, better: Better::More });
    }
    goals
}

/// Costs of the sidecar, beside the pass-through of the same run.
fn beside(report: &Report) -> Vec<Goal> {
    let both = |scenario: Scenario| {
        let sidecar = report.find(scenario.name, Target::Sidecar)?;
        Some((sidecar, report.find(scenario.name, Target::PassThrough)?))
    };
    let mut goals = Vec::new();
    if let Some((sidecar, through)) = both(SIDECAR) {
        let is = permille(sidecar.cpu_nanos, through.cpu_nanos);
        goals.push(less("sidecar, CPU to the pass-through", "x", is, [2_500, 2_000, 1_500]));
    }
    if let Some((sidecar, through)) = both(SIDECAR_ONE) {
        let added = sidecar.latencies.p50.saturating_sub(through.latencies.p50);
        goals.push(less("sidecar, 1 connection, added p50", "ms", added, [300, 200, 100]));
    }
    if let Some(sidecar) = report.find(SIDECAR_STREAMS.name, Target::Sidecar) {
        let bounds = [100_000, 60_000, 30_000];
        goals.push(less("sidecar, many streams, peak for each", "KB", sidecar.grown, bounds));
    }
    goals
}

/// Latencies with a collector that does not work, beside those with one that does.
fn traced(report: &Report) -> Vec<Goal> {
    let p50 = |scenario: Scenario| Some(report.find(scenario.name, Target::Gateway)?.latencies.p50);
    let Some(live) = p50(TRACED) else { return Vec::new() };
    let worse = [
        ("collector gone, p50 to one that works", TRACED_GONE),
        ("collector silent, p50 to one that works", TRACED_SILENT),
    ];
    let goal = |(what, scenario): (&'static str, Scenario)| {
        Some(less(what, "x", permille(p50(scenario)?, live), [1_100, 1_030, 1_000]))
    };
    worse.into_iter().filter_map(goal).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measurements::ReportRow;
    use crate::pinned::Cores;

    fn line(scenario: &str, target: Target, rate: u64, cpu_nanos: u64) -> ReportRow {
        let figures = Figures { rate, cpu_nanos, resident_kib: 1_024, ..Figures::default() };
        ReportRow { scenario: scenario.to_owned(), target, figures }
    }

    fn report(engine: Engine, lines: Vec<ReportRow>) -> Report {
        Report {
            engine,
            database: "its name".to_owned(),
            file_system: "ext4".to_owned(),
            cores: Cores::Apart,
            stored: 0,
            plan: String::new(),
            floors: Vec::new(),
            lines,
        }
    }

    fn verdicts(report: &Report) -> Vec<(&'static str, &'static str)> {
        goals(report).iter().map(|goal| (goal.what, goal.verdict())).collect()
    }

    fn with_p50(scenario: &str, target: Target, cpu_nanos: u64, p50: u64) -> ReportRow {
        let line = line(scenario, target, 1_000, cpu_nanos);
        let latencies = crate::latencies::Latencies { p50, ..line.figures.latencies };
        ReportRow { figures: Figures { latencies, grown: 61_000, ..line.figures }, ..line }
    }

    #[test]
    fn goals_are_judged_by_what_was_measured_and_by_nothing_else() {
        let mut book = report(
            Engine::Sqlite,
            vec![
                line("32", Target::Gateway, 1_000, 111_000),
                line("256", Target::Gateway, 950, 62_000),
                line("256", Target::PassThrough, 5_000, 20_000),
            ],
        );
        assert_eq!(
            verdicts(&book),
            [
                ("32 connections, CPU per request", "missed"),
                ("32 connections, written per request", "good"),
                ("256 connections, CPU per request", "good"),
                ("256 connections, resident", "good"),
                ("256 connections, throughput to the pass-through", "missed"),
                ("256 connections, throughput to its own 32", "reached"),
            ]
        );
        book.stored = 5;
        assert_eq!(verdicts(&book)[0].1, "reached", "a filled store may cost more");
    }

    #[test]
    fn the_sidecar_is_judged_beside_the_pass_through() {
        let book = report(
            Engine::Sqlite,
            vec![
                with_p50("sidecar", Target::PassThrough, 20_000, 90),
                with_p50("sidecar", Target::Sidecar, 50_001, 90),
                with_p50("sidecar-1", Target::PassThrough, 20_000, 90),
                with_p50("sidecar-1", Target::Sidecar, 90_000, 290),
                with_p50("sidecar-streams", Target::Sidecar, 90_000, 290),
            ],
        );
        assert_eq!(
            verdicts(&book),
            [
                ("sidecar, CPU to the pass-through", "reached"),
                ("sidecar, 1 connection, added p50", "good"),
                ("sidecar, many streams, peak for each", "reached"),
            ]
        );
    }

    #[test]
    fn a_collector_that_does_not_work_is_judged_beside_one_that_does() {
        let gateway = |scenario: &str, p50| with_p50(scenario, Target::Gateway, 90_000, p50);
        let lines = vec![gateway("traced-gone", 1_029), gateway("traced-silent", 1_101)];
        assert_eq!(verdicts(&report(Engine::Sqlite, lines.clone())), []);
        let lines = lines.into_iter().chain([gateway("traced", 1_000)]).collect();
        assert_eq!(
            verdicts(&report(Engine::Sqlite, lines)),
            [
                ("collector gone, p50 to one that works", "good"),
                ("collector silent, p50 to one that works", "missed"),
            ]
        );
    }

    #[test]
    fn on_a_server_both_sides_are_judged_and_the_best_of_the_loop_is_what_counts() {
        let served = |scenario: &str, target, rate: u64, server_nanos: u64| {
            let line = line(scenario, target, rate, 40_000);
            ReportRow { figures: Figures { server_nanos, ..line.figures }, ..line }
        };
        let book = report(
            Engine::Postgres,
            vec![
                served("32", Target::Gateway, 6_000, 66_000),
                served("32", Target::Plain, 1_000, 400_000),
                served("256", Target::Plain, 200, 900_000),
                served("256", Target::Store, 9_000, 30_000),
            ],
        );
        assert_eq!(
            verdicts(&book),
            [
                ("32 connections, CPU of the gateway", "good"),
                ("32 connections, CPU of the server", "reached"),
                ("one wallet, pairs a second to the plain loop", "missed"),
            ]
        );
    }
}
