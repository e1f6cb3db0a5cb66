//! Arguments of `restore`: the copy, and the rule for request keys that it does not know.
//!
//! Never: a copy that is served without a rule. The default refuses unknown keys, because their requests may have run.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::anyhow;
use clap::{Args, ValueEnum};
use holdfast_domain::restore::UnknownKeys;

use super::grant::Span;
use crate::failure::{CommandFailure, Result};

/// Window of a restore that names none.
const WINDOW: Duration = Duration::from_secs(24 * 3_600);
/// Longest window: 366 days.
const WINDOW_MAX: Duration = Duration::from_secs(366 * 24 * 3_600);

/// A restore, its check, or its declaration.
#[derive(Debug, Args)]
pub struct Restore {
    /// Only verify it, and print its last operation; a running gateway may go on
    #[arg(long, conflicts_with_all = ["declare", "unknown_since", "window"])]
    pub check: bool,
    /// Declare that the configured database is an older copy already: put back by pg_restore, point-in-time recovery
    /// or a snapshot of a volume
    #[arg(long, conflicts_with = "file")]
    pub declare: bool,
    /// Rule for request keys that the copy does not know: refuse them for the window, because they may have run
    /// before, or allow them at once, which also ends windows that are open
    #[arg(long, value_name = "RULE", value_enum, default_value = "refuse")]
    pub unknown_since: UnknownSince,
    /// Time for which unknown request keys are refused: a whole number and s, m, h or d [default: 24h]
    #[arg(long, value_name = "SPAN")]
    pub window: Option<Span>,
    /// Name of the copy
    #[arg(value_name = "FILE", required_unless_present = "declare")]
    pub file: Option<PathBuf>,
}

/// Rule for request keys that a copy does not know.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum UnknownSince {
    /// Refuse them for the window
    Refuse,
    /// Let them run at once
    Allow,
}

impl Restore {
    /// The rule with its window.
    pub(crate) fn unknown_keys(&self) -> Result<UnknownKeys> {
        let usage = |text| Err(CommandFailure::Usage(anyhow!("{text}")));
        match (self.unknown_since, self.window) {
            (UnknownSince::Allow, None) => Ok(UnknownKeys::Allow),
            (UnknownSince::Allow, Some(_)) => {
                usage("--window is of --unknown-since refuse: allow opens no window")
            }
            (UnknownSince::Refuse, None) => Ok(UnknownKeys::Refuse(WINDOW)),
            (UnknownSince::Refuse, Some(window)) => match window.duration() {
                Duration::ZERO => {
                    usage("--window is at least 1s; --unknown-since allow opens none")
                }
                long if long > WINDOW_MAX => usage("--window is at most 366d"),
                window => Ok(UnknownKeys::Refuse(window)),
            },
        }
    }
}
