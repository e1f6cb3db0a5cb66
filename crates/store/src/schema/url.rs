//! Database URLs: the one place that reads them. Nothing in here opens a database.
//!
//! A URL must mean the same on every machine: parameters that the driver would skip are refused,
//! and the driver's defaults from the environment are replaced wherever the URL leaves something
//! out. A server on another machine needs an explicit `sslmode`: the default of PostgreSQL clients
//! may send the password in the clear to whoever answers. A password is never shown, neither
//! by `Display` nor by `Debug`, nor in an error.

use std::fmt;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use sqlx::postgres::{PgConnectOptions, PgSslMode};

use crate::schema::Dialect;

/// Parameters after `?`; the driver would pass over anything else in silence, or almost.
const PARAMETERS: [&str; 6] =
    ["host", "sslmode", "sslrootcert", "sslcert", "sslkey", "application_name"];
/// Application name of a connection where the URL has none.
const APPLICATION: &str = "holdfast";
/// The port of a server whose URL names none.
const PORT: u16 = 5432;

/// `sqlite://` and the path of a file, or `postgres://` and a database of a server.
#[derive(Clone, PartialEq, Eq)]
pub struct DatabaseUrl(DatabaseLocation);

/// Location of a database.
#[derive(Clone)]
pub(crate) enum DatabaseLocation {
    File(PathBuf),
    /// With a password, perhaps. It is not shown.
    Server(ServerDatabase),
}

/// A database of a server.
#[derive(Clone)]
pub(crate) struct ServerDatabase {
    text: String,
    options: Box<PgConnectOptions>,
}

/// A text that names no database. The text itself may hold a password and is not told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BadDatabaseUrl {
    /// The scheme is neither `sqlite://` nor `postgres://`.
    #[error("not a database URL: write sqlite://FILE or postgres://USER:PASSWORD@HOST/DATABASE")]
    Scheme,
    /// The path is no plain path.
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
        "for PostgreSQL, with another parameter than host, sslmode, sslrootcert, sslcert, sslkey or \
         application_name"
    )]
    Parameter,
    /// A machine in between could read the password and answer for the server.
    #[error(
        "for a server on another machine, without sslmode=verify-full, which asks it for its \
         certificate, or one of verify-ca, require and disable, which ask less"
    )]
    Encryption,
    /// `PGOPTIONS` would change settings that a connection relies on.
    #[error("usable while PGOPTIONS is set: unset it")]
    Environment,
}

impl DatabaseUrl {
    /// Reads a URL.
    ///
    /// # Errors
    ///
    /// Where it is neither `sqlite://` and a plain path nor `postgres://` and a server's database.
    pub fn parse(url: &str) -> Result<Self, BadDatabaseUrl> {
        if url.starts_with("postgres://") || url.starts_with("postgresql://") {
            return ServerDatabase::parse(url).map(|server| Self(DatabaseLocation::Server(server)));
        }
        let file = url.strip_prefix("sqlite://").ok_or(BadDatabaseUrl::Scheme)?;
        let plain = !file.is_empty()
            && !file.ends_with('/')
            // Neither a database that ends with the process, nor what SQLite would read as its own URL.
            && file != ":memory:"
            && !file.contains(['?', '#', '%'])
            && !file.contains(char::is_control);
        if plain {
            Ok(Self(DatabaseLocation::File(file.into())))
        } else {
            Err(BadDatabaseUrl::File)
        }
    }

    /// The file that holds the database; none where a server does.
    #[must_use]
    pub fn file(&self) -> Option<&Path> {
        match &self.0 {
            DatabaseLocation::File(file) => Some(file),
            DatabaseLocation::Server(_) => None,
        }
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
        match self.0 {
            DatabaseLocation::File(_) => Dialect::Sqlite,
            DatabaseLocation::Server(_) => Dialect::Postgres,
        }
    }
}

impl ServerDatabase {
    fn parse(url: &str) -> Result<Self, BadDatabaseUrl> {
        let bad = |_told_without_the_password: sqlx::Error| BadDatabaseUrl::Server;
        let (address, parameters) = url.split_once('?').unwrap_or((url, ""));
        let names = parameters.split('&').filter(|pair| !pair.is_empty());
        let names: Vec<&str> =
            names.map(|pair| pair.split_once('=').map_or(pair, |(name, _)| name)).collect();
        // For the driver a `#` ends the URL: a password with one in it would be cut short in silence.
        if address.contains('#') || parameters.contains('#') {
            return Err(BadDatabaseUrl::Server);
        }
        if names.iter().any(|name| !PARAMETERS.contains(name)) {
            return Err(BadDatabaseUrl::Parameter);
        }
        let said = UrlParts::of(address, names.contains(&"host")).ok_or(BadDatabaseUrl::Server)?;
        // The driver begins with what the environment says; what the URL leaves out is said here.
        let mut options: PgConnectOptions = url.parse().map_err(bad)?;
        // Of PGOPTIONS: a URL with options of its own was refused above.
        if options.get_options().is_some() {
            return Err(BadDatabaseUrl::Environment);
        }
        if !said.port {
            options = options.port(PORT);
        }
        if !said.password {
            // Empty, not missing: for a missing one the driver has looked into PGPASSWORD and ~/.pgpass.
            options = options.password("");
        }
        if !names.contains(&"sslmode") {
            options = options.ssl_mode(PgSslMode::Prefer);
        }
        if !names.contains(&"application_name") {
            options = options.application_name(APPLICATION);
        }
        let may_be_read = matches!(options.get_ssl_mode(), PgSslMode::Prefer | PgSslMode::Allow);
        if may_be_read && !is_local(&options) {
            return Err(BadDatabaseUrl::Encryption);
        }
        Ok(Self { text: url.to_owned(), options: Box::new(options) })
    }

    pub(crate) const fn options(&self) -> &PgConnectOptions {
        &self.options
    }
}

/// Parts that the address of a server has, before the driver fills in the rest.
struct UrlParts {
    port: bool,
    password: bool,
}

impl UrlParts {
    /// None where it names no user, no database, or no host, unless that stands elsewhere.
    fn of(address: &str, has_host: bool) -> Option<Self> {
        let (_scheme, rest) = address.split_once("://")?;
        let (authority, database) = rest.split_once('/')?;
        // The last `@`, as the driver does: a password may have one that nobody encoded.
        let (user, place) = authority.rsplit_once('@')?;
        let (name, password) = user.split_once(':').unwrap_or((user, ""));
        let host = !place.is_empty() && !place.starts_with(':');
        if name.is_empty() || !(host || has_host) || database.trim_start_matches('/').is_empty() {
            return None;
        }
        // The colons of an address in brackets are its own.
        let behind = place.rsplit_once(']').map_or(place, |(_address, behind)| behind);
        let port = behind.rsplit_once(':').is_some_and(|(_host, port)| !port.is_empty());
        Some(Self { port, password: !password.is_empty() })
    }
}

/// True where the server is on this machine: nobody stands between.
fn is_local(options: &PgConnectOptions) -> bool {
    let host = options.get_host();
    let address = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
    options.get_socket().is_some()
        || host == "localhost"
        || address.is_ok_and(|address| address.is_loopback())
}

impl PartialEq for DatabaseLocation {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::File(file), Self::File(other)) => file == other,
            // By their texts: the driver compares no options.
            (Self::Server(server), Self::Server(other)) => server.text == other.text,
            (Self::File(_), Self::Server(_)) | (Self::Server(_), Self::File(_)) => false,
        }
    }
}

impl Eq for DatabaseLocation {}

impl fmt::Display for DatabaseUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            DatabaseLocation::File(file) => write!(f, "sqlite://{}", file.display()),
            DatabaseLocation::Server(ServerDatabase { options, .. }) => {
                let database = options.get_database().unwrap_or_default();
                match options.get_socket() {
                    Some(socket) => write!(f, "postgres:///{database} at {}", socket.display()),
                    None => {
                        let (host, port) = (options.get_host(), options.get_port());
                        write!(f, "postgres://{host}:{port}/{database}")
                    }
                }
            }
        }
    }
}

impl fmt::Debug for DatabaseUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
