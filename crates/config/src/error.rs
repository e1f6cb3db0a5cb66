//! Failure to get a configuration: a file that cannot be read, or everything that is wrong with it.

use std::fmt;
use std::path::PathBuf;

use crate::document::Mistake;

/// Failure to load a configuration; its text has one line for each mistake.
#[derive(Debug)]
pub enum BadConfig {
    /// The file cannot be read.
    Unreadable(PathBuf, std::io::Error),
    /// The file was read, and has these mistakes, in the order of their lines.
    Mistakes(Vec<Mistake>),
}

impl fmt::Display for BadConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreadable(file, error) => {
                write!(
                    f,
                    "the configuration {} cannot be read: {error}; --config or HOLDFAST_CONFIG names \
                     another",
                    file.display()
                )
            }
            Self::Mistakes(mistakes) => {
                let count = mistakes.len();
                let noun = if count == 1 { "mistake" } else { "mistakes" };
                write!(f, "{count} {noun} in the configuration")?;
                mistakes.iter().try_for_each(|mistake| write!(f, "\n{mistake}"))
            }
        }
    }
}

impl std::error::Error for BadConfig {}
