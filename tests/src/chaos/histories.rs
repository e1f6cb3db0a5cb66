//! Histories: callers are recorded while gateways are killed under them, and a checker that knows nothing of either
//! judges the file.
//!
//! The load judges nothing and waits for nothing in particular, so that it goes on whatever a broken gateway answers.
//! Of the answers it only looks at whether to call again. Only an unbroken gateway has to bring every key to its end.

mod key;
mod load;
mod recorder;

use std::path::{Path, PathBuf};

use history_checker::{Report, check_file};

use self::load::Load;

/// Guards of the contract that the binary with failpoints can switch off. Each makes a gateway that a history must
/// give away.
pub const FAULTS: [&str; 12] = [
    "fingerprint_forgotten",
    "key_shared_across_api_keys",
    "hold_released_twice",
    "hold_kept",
    "other_amount_charged",
    "cap_ignored",
    "refund_lost",
    "failure_read_as_not_run",
    "run_again_after_takeover",
    "other_bytes_replayed",
    "answered_before_commit",
    "run_before_claim",
];

/// Gateways of a history.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Topology {
    /// One on a SQLite file.
    File,
    /// Three on a PostgreSQL database.
    Nodes,
}

/// What is recorded.
#[derive(Debug, Clone)]
pub struct Recording {
    /// Where all choices come from.
    pub seed: u64,
    /// How many gateways are killed.
    pub kills: u32,
    /// The guard that is switched off.
    pub fault: Option<&'static str>,
    /// Gateways and their database.
    pub topology: Topology,
}

impl Recording {
    /// A history of gateways with all of their guards.
    #[must_use]
    pub const fn unbroken(seed: u64, kills: u32, topology: Topology) -> Self {
        Self { seed, kills, fault: None, topology }
    }

    /// Records a history into a file of this folder, and judges it.
    ///
    /// # Panics
    ///
    /// If the file cannot be written, or is not a history.
    #[must_use]
    pub fn judge_in(&self, folder: &Path) -> (PathBuf, Report) {
        let name = match (self.fault, self.topology) {
            (Some(fault), _) => fault,
            (None, Topology::File) => "unbroken",
            (None, Topology::Nodes) => "nodes",
        };
        let path = folder.join(format!("{name}-{}.jsonl", self.seed));
        let path = Load::new(self, &path).record();
        let report = check_file(&path).expect("a history");
        (path, report)
    }
}

/// Folder of histories: the one that is named, else one for temporary files.
#[must_use]
pub fn folder() -> PathBuf {
    let named = std::env::var_os("HOLDFAST_HISTORIES").map(PathBuf::from);
    named.unwrap_or_else(|| std::env::temp_dir().join("holdfast-histories"))
}
