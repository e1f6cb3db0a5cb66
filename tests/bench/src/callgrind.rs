//! Callgrind around a gateway: a processor in software that counts the instructions it executes.
//!
//! ```text
//! dump 7 ──▶ NAME.7-01 (thread 1) │ NAME.7-02 (thread 2) │ …: each with the functions that it ran, and their sum
//! ```
//!
//! Counts of user space alone, apart for each thread. A request needs as many on a slow machine as on a
//! fast one. What they leave out: the kernel, the disk, and that one instruction takes longer than another.
//!
//! A dump numbers the threads and does not name them. So a thread is found by a function that nobody else
//! runs, which needs a binary with its symbols; its number stays as long as it lives.
//!
//! Threads take turns under it, and time runs on: a gateway is many times slower here. Never measure a
//! latency beside it.

use std::collections::BTreeMap;
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

/// The number of a thread, which callgrind counts from 1 on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ThreadNumber(u32);

/// Instructions of a part: of all threads, and of one among them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Instructions {
    pub(crate) all: u64,
    pub(crate) of_thread: u64,
}

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
        valgrind.args(["--tool=callgrind", "--quiet", "--separate-threads=yes"]);
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

    /// The one thread that has run functions of this module since the counters were zeroed.
    pub(crate) fn thread_of(&mut self, module: &str) -> ThreadNumber {
        let dump = self.dump();
        let found = dump.iter().filter(|(_, text)| runs(text, module));
        let found: Vec<_> = found.map(|(thread, _)| *thread).collect();
        let [thread] = *found else { panic!("{module} has run on {found:?}: are there symbols?") };
        thread
    }

    /// The instructions since the counters were zeroed.
    pub(crate) fn count(&mut self, thread: ThreadNumber) -> Instructions {
        let mut counted = Instructions::default();
        for (of, text) in self.dump() {
            let n = totals(&text).unwrap_or(0);
            counted.all += n;
            counted.of_thread += if of == thread { n } else { 0 };
        }
        counted
    }

    /// The whole text of a dump, by thread. It zeroes the counters.
    fn dump(&mut self) -> BTreeMap<ThreadNumber, String> {
        self.n_dumps += 1;
        self.control("-d");
        let until = Instant::now() + PATIENCE;
        loop {
            // It is written by the process itself, at its own pace: its files, one after another, are
            // begun before the request for it is answered, and the last line of each is its sum.
            let texts = self.texts();
            if !texts.is_empty() && texts.values().all(|text| totals(text).is_some()) {
                return texts;
            }
            assert!(
                Instant::now() < until,
                "no whole dump of callgrind at {}",
                self.dumps.display()
            );
            std::thread::sleep(LOOK);
        }
    }

    /// The files of the last dump as far as they are written.
    fn texts(&self) -> BTreeMap<ThreadNumber, String> {
        let name = self.dumps.file_name().and_then(|name| name.to_str()).expect("a name");
        let prefix = format!("{name}.{}-", self.n_dumps);
        let folder = self.dumps.parent().expect("a folder");
        let files = fs::read_dir(folder).expect("the folder of dumps").flatten();
        let texts = files.filter_map(|file| {
            let thread = file.file_name().to_str()?.strip_prefix(&prefix)?.parse().ok()?;
            // One that is not text yet has no sum either, and is looked at again.
            Some((ThreadNumber(thread), fs::read_to_string(file.path()).unwrap_or_default()))
        });
        texts.collect()
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

/// True where a dump names a function of this module, as a caller or as one that is called.
fn runs(dump: &str, module: &str) -> bool {
    let functions = dump.lines().filter(|line| line.starts_with("fn=") || line.starts_with("cfn="));
    // By its beginning: a generic function of another module has the types that it is of in its name,
    // and runs on any thread. A method of a trait begins with its type, in `<`.
    let mut names =
        functions.filter_map(|line| Some(line.split_once(") ")?.1.trim_start_matches('<')));
    names.any(|name| name.starts_with(module))
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

    #[test]
    fn a_thread_runs_the_functions_that_its_dump_names() {
        let dump = "fl=(2) store::files::writer.rs\nfn=(3) store::writer::run\ncfn=(4) <store::batch::Batch as \
                    Drop>::drop\nfn=(5) core::drop<store::queue::Job>\n";
        for (module, is_run) in [
            ("store::writer::", true),
            ("store::batch::", true),
            ("store::queue::", false),
            ("store::files::", false),
        ] {
            assert_eq!(runs(dump, module), is_run, "{module}");
        }
    }
}
