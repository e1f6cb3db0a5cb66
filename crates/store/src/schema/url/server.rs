//! URLs of databases of a server.

use std::fmt;
use std::net::IpAddr;

use sqlx::postgres::{PgConnectOptions, PgSslMode};

use super::BadDatabaseUrl;

/// Parameters after `?`; the driver would skip others in silence, or almost.
const PARAMETERS: [&str; 6] =
    ["host", "sslmode", "sslrootcert", "sslcert", "sslkey", "application_name"];
/// Application name of a connection if the URL has none.
const APPLICATION: &str = "holdfast";
/// The port of a server whose URL names none.
const PORT: u16 = 5432;

/// A database of a server.
#[derive(Clone)]
pub(crate) struct ServerDatabase {
    text: String,
    options: Box<PgConnectOptions>,
}

impl ServerDatabase {
    pub(super) fn parse(url: &str) -> Result<Self, BadDatabaseUrl> {
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
        let parts = UrlParts::of(address, names.contains(&"host")).ok_or(BadDatabaseUrl::Server)?;
        // The driver begins with the environment's values; parts that the URL leaves out are set here.
        let mut options: PgConnectOptions = url.parse().map_err(bad)?;
        // Of PGOPTIONS: a URL with options of its own was refused above.
        if options.get_options().is_some() {
            return Err(BadDatabaseUrl::Environment);
        }
        if !parts.port {
            options = options.port(PORT);
        }
        if !parts.password {
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
    /// None if it names no user, no database, or no host, unless a parameter has that.
    fn of(address: &str, has_host: bool) -> Option<Self> {
        let (_scheme, rest) = address.split_once("://")?;
        let (authority, database) = rest.split_once('/')?;
        // The last `@`, as in the driver: a password may have one that was not encoded.
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

/// True if the server is on this machine: no network is between.
fn is_local(options: &PgConnectOptions) -> bool {
    let host = options.get_host();
    let address = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
    options.get_socket().is_some()
        || host == "localhost"
        || address.is_ok_and(|address| address.is_loopback())
}

impl PartialEq for ServerDatabase {
    fn eq(&self, other: &Self) -> bool {
        // By their texts: the driver compares no options.
        self.text == other.text
    }
}

impl Eq for ServerDatabase {}

impl fmt::Display for ServerDatabase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let database = self.options.get_database().unwrap_or_default();
        match self.options.get_socket() {
            Some(socket) => write!(f, "postgres:///{database} at {}", socket.display()),
            None => {
                let (host, port) = (self.options.get_host(), self.options.get_port());
                write!(f, "postgres://{host}:{port}/{database}")
            }
        }
    }
}
