//! Measurements of one run: what was measured of which target under which load, and on what.
//!
//! Data alone. Goals are judged in `goals.rs`, tables and JSON are made in `report.rs`.

use crate::figures::Figures;
use crate::pinned::Cores;
use crate::scenario::Engine;
use crate::stand::Target;

/// Figures of one target under one load.
#[derive(Debug, Clone)]
pub(crate) struct ReportRow {
    pub(crate) scenario: String,
    pub(crate) target: Target,
    pub(crate) figures: Figures,
}

/// The hand-written loop with so many requests to a commit.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Floor {
    pub(crate) batch: u64,
    pub(crate) figures: Figures,
}

/// Everything that was measured.
#[derive(Debug)]
pub(crate) struct Report {
    pub(crate) engine: Engine,
    /// The database, by its name and settings.
    pub(crate) database: String,
    pub(crate) file_system: String,
    pub(crate) cores: Cores,
    pub(crate) stored: u64,
    pub(crate) plan: String,
    pub(crate) floors: Vec<Floor>,
    pub(crate) lines: Vec<ReportRow>,
}

impl Report {
    pub(crate) fn find(&self, scenario: &str, target: Target) -> Option<&Figures> {
        let mut lines = self.lines.iter();
        let line = lines.find(|line| line.scenario == scenario && line.target == target)?;
        Some(&line.figures)
    }
}
