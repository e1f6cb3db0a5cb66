//! Database URLs: the one place that reads them. It never opens a database.
//!
//! A URL must mean the same on every machine: parameters that the driver would skip are refused, and the driver's
//! defaults from the environment are replaced for every part that the URL leaves out. A server on another machine
//! needs an explicit `sslmode`: the default of PostgreSQL clients may send the password in the clear to any host
//! that answers. A password is never shown, neither by `Display` nor by `Debug`, nor in an error.

#[cfg(feature = "postgres")]
mod server;

use std::fmt;
use std::path::{Path, PathBuf};

#[cfg(feature = "postgres")]
pub(crate) use self::server::{ServerDatabase, ServerHost};
use super::Dialect;

/// `sqlite://` and the path of a file, or `postgres://` and a database of a server.
#[derive(Clone, PartialEq, Eq)]
pub struct DatabaseUrl(DatabaseLocation);

/// Location of a database.
#[derive(Clone, PartialEq, Eq)]
pub(crate) enum DatabaseLocation {
    #[cfg(feature = "sqlite")]
    File(PathBuf),
    /// With a password, perhaps. It is not shown.
    #[cfg(feature = "postgres")]
    Server(ServerDatabase),
}

/// A text that names no database. The text itself may hold a password and is in no message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BadDatabaseUrl {
    /// The scheme is neither `sqlite://` nor `postgres://`.
    #[error("not a database URL: write sqlite://FILE or postgres://USER:PASSWORD@HOST/DATABASE")]
    Scheme,
    /// The path is not a plain path.
    #[error("not the name of a file: write sqlite://FILE, without ? # or %")]
    File,
    /// The address names no server or no database.
    #[error(
        "not the name of a database: write postgres://USER:PASSWORD@HOST:PORT/DATABASE, with other \
         characters than letters and digits percent-encoded"
    )]
    Server,
    /// A parameter has no effect.
    #[error(
        "for PostgreSQL, with another parameter than host, port, sslmode, sslrootcert, sslcert, sslkey, \
         application_name or target_session_attrs=primary"
    )]
    Parameter,
    /// A host of several is missing, or there are too many.
    #[error(
        "for several hosts with an empty one among them, or for more than 8: write \
         postgres://USER:PASSWORD@HOST1:PORT,HOST2:PORT/DATABASE"
    )]
    Hosts,
    /// Ports that cannot be matched to hosts.
    #[error(
        "for another number of ports than of hosts: give each host its port, or none of them, or one to all \
         by ?port=PORT"
    )]
    Ports,
    /// A machine in between could read the password and answer for the server.
    #[error(
        "for a server on another machine, without sslmode=verify-full, which asks it for its \
         certificate, or one of verify-ca, require and disable, which ask less"
    )]
    Encryption,
    /// `PGOPTIONS` would change settings that a connection relies on.
    #[error("usable while PGOPTIONS is set: unset it")]
    Environment,
    /// The program is built without this database.
    #[error("for a database that is not compiled in: the feature `{0}` of holdfast-store has it")]
    NotCompiled(&'static str),
}

impl DatabaseUrl {
    /// Reads a URL.
    ///
    /// # Errors
    ///
    /// A [`BadDatabaseUrl`] if the text is neither `sqlite://` and a plain path nor `postgres://` and a server's
    /// database, or if the program is built without that database.
    pub fn parse(url: &str) -> Result<Self, BadDatabaseUrl> {
        if url.starts_with("postgres://") || url.starts_with("postgresql://") {
            return DatabaseLocation::server(url).map(Self);
        }
        let file = url.strip_prefix("sqlite://").ok_or(BadDatabaseUrl::Scheme)?;
        let plain = !file.is_empty()
            && !file.ends_with('/')
            // Neither a database that ends with the process, nor what SQLite would read as its own URL.
            && file != ":memory:"
            && !file.contains(['?', '#', '%'])
            && !file.contains(char::is_control);
        if plain {
            DatabaseLocation::file(file.into()).map(Self)
        } else {
            Err(BadDatabaseUrl::File)
        }
    }

    /// The same database with this password, unless the URL has one. A file has no password.
    #[must_use]
    pub fn with_password(self, password: &str) -> Self {
        Self(by_database!(self.0;
            DatabaseLocation::File(file) => {
                let _unused = password;
                DatabaseLocation::File(file)
            };
            DatabaseLocation::Server(server) => DatabaseLocation::Server(server.with_password(password))))
    }

    /// The file that holds the database; none if a server does.
    #[must_use]
    pub fn file(&self) -> Option<&Path> {
        by_database!(&self.0;
            DatabaseLocation::File(file) => Some(file);
            DatabaseLocation::Server(_) => None)
    }

    /// The folder of that file.
    #[must_use]
    pub fn folder(&self) -> Option<&Path> {
        let parent = self.file()?.parent().filter(|parent| !parent.as_os_str().is_empty());
        Some(parent.unwrap_or(Path::new(".")))
    }

    pub(crate) const fn place(&self) -> &DatabaseLocation {
        &self.0
    }

    pub(crate) const fn dialect(&self) -> Dialect {
        by_database!(self.0;
            DatabaseLocation::File(_) => Dialect::Sqlite;
            DatabaseLocation::Server(_) => Dialect::Postgres)
    }
}

impl DatabaseLocation {
    #[cfg(feature = "sqlite")]
    const fn file(path: PathBuf) -> Result<Self, BadDatabaseUrl> {
        Ok(Self::File(path))
    }

    #[cfg(not(feature = "sqlite"))]
    fn file(_path: PathBuf) -> Result<Self, BadDatabaseUrl> {
        Err(BadDatabaseUrl::NotCompiled("sqlite"))
    }

    #[cfg(feature = "postgres")]
    fn server(url: &str) -> Result<Self, BadDatabaseUrl> {
        ServerDatabase::parse(url).map(Self::Server)
    }

    #[cfg(not(feature = "postgres"))]
    const fn server(_url: &str) -> Result<Self, BadDatabaseUrl> {
        Err(BadDatabaseUrl::NotCompiled("postgres"))
    }
}

impl fmt::Display for DatabaseUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        by_database!(&self.0;
            DatabaseLocation::File(file) => write!(f, "sqlite://{}", file.display());
            DatabaseLocation::Server(server) => fmt::Display::fmt(server, f))
    }
}

impl fmt::Debug for DatabaseUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_of_a_database_that_is_not_compiled_in_names_its_feature() {
        for (url, feature, is_compiled) in [
            ("sqlite://holdfast.db", "sqlite", cfg!(feature = "sqlite")),
            ("postgres://me@localhost/holdfast", "postgres", cfg!(feature = "postgres")),
        ] {
            let refused = DatabaseUrl::parse(url).err();
            let expected = (!is_compiled).then_some(BadDatabaseUrl::NotCompiled(feature));
            assert_eq!(refused, expected, "{url}");
            let is_named =
                refused.is_none_or(|it| it.to_string().contains(&format!("`{feature}`")));
            assert!(is_named, "{refused:?}");
        }
    }
}
