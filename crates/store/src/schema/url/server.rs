//! URLs of databases of servers: one host, or several of which one is the primary.
//!
//! A URL with several hosts means the same as for libpq, or is refused: each host has its port, or none has one, or
//! the parameter `port` has one for all or one for each. `h1,h2:5433` is refused: for libpq `h1` would have the usual
//! port there, and a reader expects 5433.

mod address;

use std::fmt;
use std::net::IpAddr;

use sqlx::postgres::{PgConnectOptions, PgSslMode};

use self::address::{Address, Parameters};
use super::BadDatabaseUrl;

/// Application name of a connection if the URL has none.
const APPLICATION: &str = "holdfast";
/// The port of a server whose URL names none.
const PORT: u16 = 5432;

/// A database of a server, or of several that replicate it.
#[derive(Clone)]
pub(crate) struct ServerDatabase {
    text: String,
    hosts: Vec<ServerHost>,
    has_password: bool,
}

/// One of the servers. The options may hold a password, and are not shown.
#[derive(Clone)]
pub(crate) struct ServerHost {
    /// Host and port, or the folder of its socket.
    pub(crate) name: String,
    pub(crate) options: PgConnectOptions,
}

impl ServerDatabase {
    pub(super) fn parse(url: &str) -> Result<Self, BadDatabaseUrl> {
        let (address, parameters) = url.split_once('?').unwrap_or((url, ""));
        // For the driver a `#` ends the URL: a password with one in it would be cut short in silence.
        if address.contains('#') || parameters.contains('#') {
            return Err(BadDatabaseUrl::Server);
        }
        let parameters = Parameters::read(parameters)?;
        let address = Address::read(address, &parameters).ok_or(BadDatabaseUrl::Server)?;
        let urls = address.urls(&parameters)?;
        let hosts = urls.iter().map(|(url, has_port)| {
            let options = options(url, *has_port, &address, &parameters)?;
            Ok(ServerHost { name: name(&options), options })
        });
        let (hosts, has_password) = (hosts.collect::<Result<_, _>>()?, address.has_password());
        Ok(Self { text: url.to_owned(), hosts, has_password })
    }

    /// The same servers with this password, unless the URL has one.
    pub(super) fn with_password(mut self, password: &str) -> Self {
        if !self.has_password {
            let with = |ServerHost { name, options }| ServerHost {
                name,
                options: options.password(password),
            };
            self.hosts = self.hosts.into_iter().map(with).collect();
        }
        self
    }

    /// In the order in which they are tried; at least one.
    pub(crate) fn hosts(&self) -> &[ServerHost] {
        &self.hosts
    }
}

/// Options of the driver for one host: all parts are the URL's or defaults of here, none the environment's.
fn options(
    url: &str,
    has_port: bool,
    address: &Address<'_>,
    parameters: &Parameters<'_>,
) -> Result<PgConnectOptions, BadDatabaseUrl> {
    let bad = |_told_without_the_password: sqlx::Error| BadDatabaseUrl::Server;
    // The driver begins with the environment's values; parts that the URL leaves out are set here.
    let mut options: PgConnectOptions = url.parse().map_err(bad)?;
    // Of PGOPTIONS: a URL with options of its own was refused above.
    if options.get_options().is_some() {
        return Err(BadDatabaseUrl::Environment);
    }
    if !has_port {
        options = options.port(PORT);
    }
    if !address.has_password() {
        // Empty, not missing: for a missing one the driver has looked into PGPASSWORD and ~/.pgpass.
        options = options.password("");
    }
    if parameters.get("sslmode").is_none() {
        options = options.ssl_mode(PgSslMode::Prefer);
    }
    if parameters.get("application_name").is_none() {
        options = options.application_name(APPLICATION);
    }
    let may_be_read = matches!(options.get_ssl_mode(), PgSslMode::Prefer | PgSslMode::Allow);
    if may_be_read && !is_local(&options) {
        return Err(BadDatabaseUrl::Encryption);
    }
    Ok(options)
}

fn name(options: &PgConnectOptions) -> String {
    match options.get_socket() {
        Some(socket) => socket.display().to_string(),
        None => format!("{}:{}", options.get_host(), options.get_port()),
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
        let first = self.hosts.first().map(|host| &host.options);
        let database = first.and_then(PgConnectOptions::get_database).unwrap_or_default();
        let names: Vec<&str> = self.hosts.iter().map(|host| host.name.as_str()).collect();
        if first.is_some_and(|options| options.get_socket().is_some()) {
            write!(f, "postgres:///{database} at {}", names.join(", "))
        } else {
            write!(f, "postgres://{}/{database}", names.join(","))
        }
    }
}
