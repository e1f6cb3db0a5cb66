//! Output of a file that a server streams: standard output, or a file of its own.
//!
//! A file that stays incomplete is removed: what is there afterwards is whole. What went to standard output cannot be
//! taken back, so that the command fails, with a message.
//!
//! Never: an existing file that is overwritten.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow};
use holdfast_wire::file::FileFormat;

use crate::failure::{CommandFailure, Result};
use crate::output::note;

/// Bytes of the end that are kept: the last line is shorter.
const TAIL: usize = 4 << 10;

/// A file that is being written.
#[derive(Debug)]
pub(crate) struct FileOutput {
    /// File and its path; `None` for standard output.
    file: Option<(File, PathBuf)>,
    format: FileFormat,
    tail: Vec<u8>,
}

impl FileOutput {
    /// A new file at this path, or standard output.
    pub(crate) fn create(path: Option<&Path>, format: FileFormat) -> Result<Self> {
        let file = match path {
            None => None,
            Some(path) => {
                let mut options = OpenOptions::new();
                let created = options.write(true).create_new(true).mode(0o600).open(path);
                let created = created.with_context(|| format!("{} is not created", path.display()));
                Some((created?, path.to_owned()))
            }
        };
        Ok(Self { file, format, tail: Vec::new() })
    }

    /// Format of the file.
    pub(crate) const fn format(&self) -> FileFormat {
        self.format
    }

    /// Writes the next bytes.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        match &mut self.file {
            Some((file, _path)) => file.write_all(bytes)?,
            None => io::stdout().lock().write_all(bytes)?,
        }
        self.tail.extend_from_slice(bytes.get(bytes.len().saturating_sub(TAIL)..).unwrap_or(bytes));
        let excess = self.tail.len().saturating_sub(TAIL);
        self.tail.drain(..excess);
        Ok(())
    }

    /// Ends the file if all of it was written.
    pub(crate) fn finish(mut self) -> Result {
        let last = String::from_utf8_lossy(&self.tail);
        let is_whole = last.lines().next_back().is_some_and(|line| self.format.is_closing(line));
        if !is_whole {
            return Err(self.discard(anyhow!("its last row is missing")));
        }
        let written = match &mut self.file {
            Some((file, _path)) => file.sync_all(),
            None => io::stdout().lock().flush(),
        };
        match written {
            Ok(()) => Ok(()),
            Err(error) => Err(self.discard(error.into())),
        }
    }

    /// Removes the file, and says why it is incomplete.
    pub(crate) fn discard(self, error: anyhow::Error) -> CommandFailure {
        let is_pipe = |error: &io::Error| error.kind() == io::ErrorKind::BrokenPipe;
        let Some((file, path)) = self.file else {
            if error.downcast_ref().is_some_and(is_pipe) {
                return CommandFailure::NobodyReads;
            }
            let error = error.context("the export was interrupted: what was written is incomplete");
            return CommandFailure::Failed(error);
        };
        drop(file);
        if let Err(error) = std::fs::remove_file(&path) {
            note(&format!("{} is incomplete and was not removed: {error}", path.display()));
        }
        let context = format!("the export was interrupted, and {} was removed", path.display());
        CommandFailure::Failed(error.context(context))
    }
}
