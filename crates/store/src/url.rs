//! Which file a database is: the one place that reads a database URL. Nothing in here opens it.

use std::fmt;
use std::path::{Path, PathBuf};

/// `sqlite://` and the path of a file.
#[derive(Clone, PartialEq, Eq)]
pub struct DatabaseUrl {
    file: PathBuf,
}

/// Why a text names no database. The text itself may hold a password and is not told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BadDatabaseUrl {
    /// It is one of PostgreSQL.
    #[error("for PostgreSQL, but this build keeps its data in SQLite: write sqlite://FILE")]
    Postgres,
    /// It is something else.
    #[error("not a database URL of this build: write sqlite://FILE")]
    Scheme,
    /// What follows is no plain path.
    #[error("not the name of a file: write sqlite://FILE, without ? # or %")]
    File,
}

impl DatabaseUrl {
    /// Reads a URL.
    ///
    /// # Errors
    ///
    /// Where it is not `sqlite://` and a plain path.
    pub fn parse(url: &str) -> Result<Self, BadDatabaseUrl> {
        let Some(file) = url.strip_prefix("sqlite://") else {
            let postgres = url.starts_with("postgres:") || url.starts_with("postgresql:");
            return Err(if postgres { BadDatabaseUrl::Postgres } else { BadDatabaseUrl::Scheme });
        };
        let plain = !file.is_empty()
            && !file.ends_with('/')
            && file != ":memory:"
            && !file.contains(['?', '#', '%'])
            && !file.contains(char::is_control);
        if plain { Ok(Self { file: file.into() }) } else { Err(BadDatabaseUrl::File) }
    }

    /// The file that holds the database.
    #[must_use]
    pub fn file(&self) -> &Path {
        &self.file
    }

    /// The folder of that file.
    #[must_use]
    pub fn folder(&self) -> &Path {
        let parent = self.file.parent().filter(|parent| !parent.as_os_str().is_empty());
        parent.unwrap_or(Path::new("."))
    }
}

impl fmt::Display for DatabaseUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sqlite://{}", self.file.display())
    }
}

impl fmt::Debug for DatabaseUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
