//! `holdfast completions` and `holdfast manual`: the definition of the command line, for shells and for `man`. Both
//! are made only from it, so that a package ships the text of `--help`.

use std::path::Path;

use anyhow::{Context, anyhow};
use clap_complete::Shell;

use crate::arguments::definition;
use crate::failure::{CommandFailure, Result};
use crate::output::text;

const NAME: &str = "holdfast";

/// Prints the completions for a shell.
pub(super) fn completions(shell: Shell) -> Result {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut definition(), NAME, &mut script);
    text(&String::from_utf8_lossy(&script))
}

/// Writes `holdfast.1`, and a page for each command.
pub(super) fn pages(folder: &Path) -> Result {
    if !folder.is_dir() {
        return Err(CommandFailure::Usage(anyhow!(
            "{} is not a folder: create it",
            folder.display()
        )));
    }
    let written = clap_mangen::generate_to(definition(), folder);
    Ok(written.context("the pages were not written")?)
}
