//! Traces of operations, and the question whether the models have a path with the same changes.
//!
//! Beginnings that traces share are explored once: the traces are a tree, and a node that the search reaches is a trace
//! that the models allow. A trace says what was committed; which task did it and what was in its way stays hidden, so
//! that the search tries all that would lead to the same changes.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
    fs,
};

use crate::{CheckError, Search, Spin, scratch};

/// File of the models that follows traces.
const MODEL: &str = "trace.pml";
/// Line of the search for a node that it reaches.
const REACHED: &str = "reached node ";

/// Committed change of an operation, by the names of the models.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Change {
    /// Transition: `T1`, `T2`, `T2a`, `T2b`, `T2c`, `T3`, `T4`, `T5`, `T5c`, `T6`, `disowned` or `T7`.
    pub transition: &'static str,
    /// Phase after it.
    pub phase: &'static str,
    /// Version after it.
    pub version: u64,
    /// Generation after it.
    pub generation: u64,
}

/// Tree of traces: a node is the end of a beginning. The root, 0, is an operation without a row.
#[derive(Debug, Default)]
struct TraceTree(BTreeMap<(usize, Change), usize>);

impl TraceTree {
    /// Adds a trace, and returns its end.
    fn add(&mut self, trace: &[Change]) -> usize {
        trace.iter().fold(0, |node, change| {
            let next = self.0.len() + 1;
            *self.0.entry((node, *change)).or_insert(next)
        })
    }

    /// Largest generation, so that each has a caller of its own.
    fn generations(&self) -> u64 {
        self.0.keys().map(|(_node, change)| change.generation).max().unwrap_or(1)
    }

    /// The tree as text of the model: a node goes on to the next by one of its changes.
    fn text(&self) -> String {
        let nodes = self.0.len() + 1;
        let mut text = format!(
            "c_decl {{ static char is_known[{nodes}]; }}\n\
             inline arrive(node) {{\n  at = node;\n  c_code {{ if (!is_known[now.at]) {{ \
             is_known[now.at] = 1; printf(\"{REACHED}%d\\n\", now.at); }} }}\n}}\n\
             #define CHANGED(node, by, to, v, g) (at == node && step == by && row[0].phase == to \
             && row[0].version == v && row[0].generation == g)\n\
             inline follow_trace() {{\n  if\n  :: step == nothing || step == T8 || step == replay || \
             step == other_request || step == rejection\n  :: else ->\n    if\n"
        );
        for ((node, change), next) in &self.0 {
            let Change { transition, phase, version, generation } = change;
            let guard = format!("CHANGED({node}, {transition}, {phase}, {version}, {generation})");
            // A `String` takes any text.
            let _written = writeln!(text, "    :: {guard} -> arrive({next})");
        }
        text.push_str("    :: else -> astray = true\n    fi\n  fi\n}\n");
        text
    }
}

impl Spin {
    /// For each trace, true if the models have a path with exactly its changes.
    ///
    /// # Errors
    ///
    /// [`CheckError`] if the model was not explored whole.
    pub fn follow(&self, traces: &[Vec<Change>]) -> Result<Vec<bool>, CheckError> {
        let mut tree = TraceTree::default();
        let ends: Vec<usize> = traces.iter().map(|trace| tree.add(trace)).collect();
        let model = self.models.join(MODEL);
        let tasks = tree.generations();
        let text =
            format!("#define TASKS {tasks}\n{}#include \"{}\"\n", tree.text(), model.display());
        let folder = scratch()?;
        let file = folder.join("traces.pml");
        fs::write(&file, text).map_err(CheckError::Folder)?;
        let output = self.explore(&folder, &file, (&[], Search::Whole));
        fs::remove_dir_all(&folder).map_err(CheckError::Folder)?;
        let output = output?;
        // A search that was cut short says nothing of what it has not reached.
        crate::Report::read(&output)?;
        let reached: BTreeSet<usize> =
            output.lines().filter_map(|line| line.strip_prefix(REACHED)?.parse().ok()).collect();
        Ok(ends.into_iter().map(|end| reached.contains(&end)).collect())
    }
}
