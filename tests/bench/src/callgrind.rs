//! Callgrind around a gateway: a processor in software that counts the instructions it executes.
//!
//! Counts of user space alone, of all threads together. A request needs as many on a slow machine as on a
//! fast one. What they leave out: the kernel, the disk, and that one instruction takes longer than another.
//!
//! Threads take turns under it, and time runs on: a gateway is many times slower here. Never measure a
//! latency beside it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use holdfast_tests::PATIENCE;

use crate::pinned::wrap;

/// The beginning of the line in which a dump has its sum.
const TOTALS: &str = "totals: ";
/// Time between two looks for a dump.
const LOOK: Duration = Duration::from_millis(20);

/// The counters of one process.
#[derive(Debug)]
pub(crate) struct Callgrind {
    process: u32,
    dumps: PathBuf,
    n_dumps: u64,
}

impl Callgrind {
    /// The same command, counted; its dumps begin with the name `dumps`.
    pub(crate) fn command(given: &Command, dumps: &Path) -> Command {
        let mut valgrind = Command::new("valgrind");
        valgrind.args(["--tool=callgrind", "--quiet"]);
        valgrind.arg(format!("--callgrind-out-file={}", dumps.display()));
        wrap(valgrind.arg(given.get_program()), given);
        valgrind
    }

    /// The counters of a process that was started by such a command.
    pub(crate) fn of(process: u32, dumps: PathBuf) -> Self {
        Self { process, dumps, n_dumps: 0 }
    }

    /// Counts from here on.
    pub(crate) fn zero(&self) {
        self.control("-z");
    }

    /// The instructions since the counters were zeroed.
    pub(crate) fn count(&mut self) -> u64 {
        self.n_dumps += 1;
        self.control("-d");
        let mut dump = self.dumps.clone().into_os_string();
        dump.push(format!(".{}", self.n_dumps));
        let until = Instant::now() + PATIENCE;
        loop {
            // It is written by the process itself, at its own pace.
            let text = fs::read_to_string(&dump).unwrap_or_default();
            if let Some(instructions) = totals(&text) {
                return instructions;
            }
            assert!(Instant::now() < until, "no dump of callgrind in {}", dump.display());
            std::thread::sleep(LOOK);
        }
    }

    fn control(&self, what: &str) {
        let mut control = Command::new("callgrind_control");
        control.args([what, &self.process.to_string()]);
        let done = control.stdin(Stdio::null()).output().expect("callgrind_control");
        assert!(done.status.success(), "{control:?}: {done:?}");
    }
}

/// The sum at the end of a dump; none while that is being written.
fn totals(dump: &str) -> Option<u64> {
    let (_, totals) = dump.rsplit_once(TOTALS)?;
    totals.strip_suffix('\n')?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dump_has_its_sum_at_its_end() {
        let dump = "# callgrind format\nevents: Ir\nfn=(1)\n1 20\n\ntotals: 1234\n";
        assert_eq!(totals(dump), Some(1_234));
        for part in [16, dump.len() - 7, dump.len() - 3, dump.len() - 1] {
            assert_eq!(totals(&dump[..part]), None, "{part}");
        }
    }
}
