//! The figures of a run as a table, each goal beside what was measured, and the same as JSON.

use serde_json::{Value, json};

use crate::figures::Figures;
use crate::goals::{Goal, goals};
use crate::measurements::Report;
use crate::numbers::{decimal, permille};
use crate::pinned::Cores;

/// Cores, in thousandths, that something else may keep busy before the figures are doubted. The
/// kernel's own writing is among it.
const DISTURBED: u64 = 150;

impl Report {
    pub(crate) fn text(&self) -> Vec<String> {
        let place = match self.cores {
            Cores::Apart => "gateway on core 0, all else on core 1",
            Cores::Shared => "not pinned: one core, or no taskset",
        };
        let mut text = vec![
            String::new(),
            format!(
                "{}; {place}; {} stored; {}; {}",
                self.plan, self.stored, self.database, self.file_system
            ),
        ];
        if self.file_system == "tmpfs" {
            text.push("tmpfs is no disk: commits cost nothing here, name a --folder".to_owned());
        }
        text.push(String::new());
        text.push(row(["", "", "req/s", "p50 ms", "p99 ms", "max ms", "CPU us", "KB"]
            .into_iter()
            .chain(["tx", "stmts", "rows", "batch", "MiB", "others", "disturbed"])));
        text.extend(self.floors.iter().map(|floor| {
            let name = format!("SQL x{}", floor.batch);
            figures_row(&name, "by hand", &floor.figures)
        }));
        let lines = self.lines.iter();
        text.extend(lines.map(|it| figures_row(&it.scenario, it.target.name(), &it.figures)));
        text.push(String::new());
        text.push(
            "CPU, KB, tx, stmts, rows: for each request. batch: changes in one transaction."
                .to_owned(),
        );
        if self.disturbances().any(|it| it > DISTURBED) {
            text.push(
                "other work disturbed this run (last column, in cores): believe ratios only"
                    .to_owned(),
            );
        }
        text.extend(self.streams());
        text.extend(self.server());
        text.push(String::new());
        text.extend(goals(self).iter().map(|goal| {
            let Goal { what, unit, is, must, good, limit, .. } = goal;
            let [is, must, good, limit] = [is, must, good, limit].map(|it| decimal(*it));
            let verdict = goal.verdict();
            format!(
                "{what:<52} {is:>8} {unit:<3} {verdict:<8} must {must}, good {good}, limit {limit}"
            )
        }));
        text
    }

    /// Table of streams, where there were some.
    fn streams(&self) -> Vec<String> {
        let lines: Vec<_> = self.lines.iter().filter(|it| it.figures.chunk_rate > 0).collect();
        if lines.is_empty() {
            return Vec::new();
        }
        let heads = ["", "", "chunk/s", "first50", "first99", "p50 ms", "p99 ms"];
        let heads = heads.into_iter().chain(["stall ms", "CPU us", "KB each"]);
        let mut text = vec![String::new(), row(heads)];
        text.extend(lines.iter().map(|it| {
            let Figures { flow, chunk_rate, chunk_nanos, grown, .. } = it.figures;
            let times =
                [flow.first.p50, flow.first.p99, flow.delay.p50, flow.delay.p99, flow.stall];
            let cells = [it.scenario.clone(), it.target.name().to_owned(), chunk_rate.to_string()];
            let numbers = times.into_iter().chain([chunk_nanos, grown]).map(decimal);
            let cells: Vec<_> = cells.into_iter().chain(numbers).collect();
            row(cells.iter().map(String::as_str))
        }));
        text.push(
            "first: ms to the first chunk. p50, p99: ms of a chunk from its source to its reader. stall: the \
             longest time between two chunks beyond the source's own. CPU: a chunk. KB: a connection, at \
             the peak."
                .to_owned(),
        );
        text
    }

    /// Table of the database server, where there was one.
    fn server(&self) -> Vec<String> {
        let lines: Vec<_> = self.lines.iter().filter(|it| it.figures.server_nanos > 0).collect();
        if lines.is_empty() {
            return Vec::new();
        }
        let heads = ["", "", "req/s", "server us", "both us", "log KB", "syncs"];
        let mut text = vec![String::new(), row(heads.into_iter())];
        text.extend(lines.iter().map(|it| {
            let Figures { rate, cpu_nanos, server_nanos, logged, syncs, .. } = it.figures;
            let cells = [it.scenario.clone(), it.target.name().to_owned(), rate.to_string()];
            let numbers = [server_nanos, cpu_nanos + server_nanos, logged, syncs].map(decimal);
            let cells: Vec<_> = cells.into_iter().chain(numbers).collect();
            row(cells.iter().map(String::as_str))
        }));
        text.push(
            "For each request, or pair of hold and settlement. server: its CPU. both: with the target's. log: \
             what the server wrote to its log. syncs: how often it waited for the disk."
                .to_owned(),
        );
        text
    }

    pub(crate) fn to_json(&self) -> Value {
        let floors = self.floors.iter();
        let floors = floors.map(|it| json!({"batch": it.batch, "figures": it.figures.to_json()}));
        let lines = self.lines.iter().map(|it| {
            json!({
                "scenario": it.scenario,
                "target": it.target.name(),
                "figures": it.figures.to_json(),
            })
        });
        let goals = goals(self);
        let goals = goals.iter().map(|goal| {
            json!({
                "what": goal.what,
                "unit": goal.unit,
                "thousandths": goal.is,
                "must": goal.must,
                "good": goal.good,
                "limit": goal.limit,
                "verdict": goal.verdict(),
            })
        });
        json!({
            "plan": self.plan,
            "pinned": self.cores == Cores::Apart,
            "database": self.database,
            "file_system": self.file_system,
            "stored": self.stored,
            "disturbed": self.disturbances().any(|it| it > DISTURBED),
            "by_hand": floors.collect::<Vec<_>>(),
            "lines": lines.collect::<Vec<_>>(),
            "goals": goals.collect::<Vec<_>>(),
        })
    }

    fn disturbances(&self) -> impl Iterator<Item = u64> {
        self.lines.iter().map(|line| line.figures.disturbance)
    }
}

/// CPU in thousandths of a microsecond is nanoseconds, KB in thousandths is bytes, ms are microseconds.
fn figures_row(scenario: &str, target: &str, figures: &Figures) -> String {
    let it = figures;
    let latencies = [it.latencies.p50, it.latencies.p99, it.latencies.max];
    let each = [it.cpu_nanos, it.written, it.transactions, it.statements, it.rows, it.batch];
    let rest = [permille(it.resident_kib, 1_024), it.others * 1_000, it.disturbance];
    let cells = [scenario.to_owned(), target.to_owned(), it.rate.to_string()].into_iter();
    let cells: Vec<String> =
        cells.chain(latencies.into_iter().chain(each).chain(rest).map(decimal)).collect();
    row(cells.iter().map(String::as_str))
}

fn row<'a>(cells: impl Iterator<Item = &'a str>) -> String {
    let widths = [13, 12, 7].into_iter().chain(std::iter::repeat(8));
    let cells = cells.zip(widths).enumerate().map(|(at, (cell, width))| {
        if at < 2 { format!("{cell:<width$}") } else { format!("{cell:>width$}") }
    });
    cells.collect::<Vec<_>>().join(" ").trim_end().to_owned()
}
