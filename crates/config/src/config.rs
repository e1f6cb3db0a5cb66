//! Reading of a configuration: a file, or the embedded default, becomes a checked [`Config`] or the
//! list of everything that is wrong with it.
//!
//! Every table is read before anything is given up, because an operator who mends one mistake at a
//! time starts the process as often as there are mistakes. Values of the environment override the
//! file after it was read, and their mistakes come last: they have no line.
//! A mistake must never print its value: most of them may be secrets.

use std::collections::BTreeMap;
use std::fmt;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use holdfast_domain::admin::WalletBounds;
use holdfast_domain::price::PriceVersionId;
use holdfast_engine::{BreakerRules, Model};
use holdfast_failpoint::{Failpoint, Fault};
use holdfast_net::Proxies;
use holdfast_store::DatabaseUrl;

use crate::console::{self, ConsoleConfig};
use crate::document::{ConfigTable, Document, Mistake, SecretUse};
use crate::environment::{self, Environment};
use crate::error::BadConfig;
use crate::exposure::SecretExposure;
use crate::listen::ListenAddress;
use crate::model;
use crate::node::{self, RelayConfig};
use crate::price::PricePlaces;
use crate::process::{
    self, AdminConfig, LimitsConfig, LogConfig, OperationsConfig, RetentionConfig, ServerConfig,
    WebhooksConfig,
};
use crate::provider::{self, ProviderKind};
use crate::role::{self, RolesConfig};
use crate::stamp::FileStamp;
use crate::telemetry::{self, TelemetryConfig};
use crate::value::Secret;

pub(crate) const FILE_VARIABLE: &str = "HOLDFAST_CONFIG";
const LISTEN_VARIABLE: &str = "HOLDFAST_LISTEN";
const ADMIN_LISTEN_VARIABLE: &str = "HOLDFAST_ADMIN_LISTEN";
const DATABASE_VARIABLE: &str = "HOLDFAST_DATABASE_URL";
/// Step at which a build with debug assertions stops for ever; other builds do not look at it.
const FAILPOINT_VARIABLE: &str = "HOLDFAST_FAILPOINT";
/// Guard of the contract that a build with debug assertions switches off. Other builds do not read it.
const FAULT_VARIABLE: &str = "HOLDFAST_FAULT";

/// Text of the configuration that runs without a file: SQLite in the working folder and the simulated provider,
/// so that no data leaves this machine.
pub(crate) const EMBEDDED: &str = include_str!("embedded.toml");

/// Everything that an operator can set.
#[derive(Debug, Clone)]
pub struct Config {
    /// Path of the file that was read; `None`: the embedded default.
    pub file: Option<PathBuf>,
    /// Stamp of the file, taken before its text was read; `None` if it is no regular file.
    pub stamp: Option<FileStamp>,
    /// Secrets that are written in the file although others may read it.
    pub exposure: Option<SecretExposure>,
    /// Paths of the secrets that are written in the text itself.
    pub(crate) literal_secrets: Vec<String>,
    pub server: ServerConfig,
    pub admin: Option<AdminConfig>,
    pub console: ConsoleConfig,
    pub node: Option<RelayConfig>,
    pub database: DatabaseUrl,
    /// True if a start is refused on a server whose commits reach no standby.
    pub requires_synchronous: bool,
    pub limits: LimitsConfig,
    pub operations: OperationsConfig,
    pub routes: BreakerRules,
    pub roles: RolesConfig,
    pub retention: RetentionConfig,
    pub webhooks: WebhooksConfig,
    pub log: LogConfig,
    /// `None`: no traces.
    pub telemetry: Option<TelemetryConfig>,
    pub providers: BTreeMap<String, ProviderKind>,
    pub models: Vec<Model>,
    /// File and line of each price version, kept after the reading: only the database knows whether
    /// a version already has other numbers, and that mistake needs a line as well.
    pub(crate) price_places: PricePlaces,
}

impl Config {
    /// The mistakes of prices that the database has with other numbers; `None` if one of them is not of this
    /// configuration.
    pub fn price_mistakes<W: fmt::Display>(
        &self,
        conflicts: Vec<(PriceVersionId, W)>,
    ) -> Option<BadConfig> {
        let mistake = |(version, what): (PriceVersionId, W)| {
            Some(Mistake::at(self.price_places.get(&version)?.clone(), what))
        };
        Some(BadConfig::Mistakes(conflicts.into_iter().map(mistake).collect::<Option<_>>()?))
    }
}

/// Reads this file, or the embedded default.
///
/// # Errors
///
/// A [`BadConfig`] with everything that is wrong.
pub fn load(file: Option<&Path>) -> Result<Config, BadConfig> {
    load_for(file, SecretUse::All)
}

/// Reads this file, or the embedded default, for work that uses these secrets: of the others, those
/// that are not in the environment are not missed.
///
/// # Errors
///
/// A [`BadConfig`] with everything that is wrong.
pub fn load_for(file: Option<&Path>, uses: SecretUse) -> Result<Config, BadConfig> {
    let Some(file) = file else {
        let config = parse("embedded default", EMBEDDED, &environment::process, uses)?;
        let admin = Some(embedded_admin(&environment::process));
        // Only this machine reaches it, and newcomers try it first.
        let console = ConsoleConfig { playground: true, ..ConsoleConfig::default() };
        return Ok(Config { admin, console, ..config });
    };
    // Before the text: a file that is written in between then has another stamp at the next look,
    // and is read again. The other way round, that change would go unnoticed.
    let stamp = FileStamp::of(file).ok();
    let text = std::fs::read_to_string(file)
        .map_err(|error| BadConfig::Unreadable(file.to_path_buf(), error))?;
    let config = parse(&file.to_string_lossy(), &text, &environment::process, uses)?;
    let exposure = SecretExposure::of(file, &config.literal_secrets);
    Ok(Config { file: Some(file.to_path_buf()), stamp, exposure, ..config })
}

/// Reads a file once more. A file that is not regular can be read at the start only: a second open of a pipe
/// may wait for ever.
///
/// # Errors
///
/// A [`BadConfig`] with everything that is wrong.
pub fn load_again(file: &Path) -> Result<Config, BadConfig> {
    match FileStamp::of(file) {
        Ok(_) => load(Some(file)),
        Err(error) => Err(BadConfig::Unreadable(file.to_path_buf(), error)),
    }
}

/// Reads a configuration's text; `name` is what its mistakes call it.
pub(crate) fn parse(
    name: &str,
    text: &str,
    environment: Environment<'_>,
    uses: SecretUse,
) -> Result<Config, BadConfig> {
    let document = Document::new(name, text, environment, uses);
    let root = document.parse();
    let config = root.as_ref().and_then(|root| read(&document, &document.root(root), environment));
    match (config, document.mistakes()) {
        (Some(mut config), mistakes) if mistakes.is_empty() => {
            if uses == SecretUse::Database {
                // What stands for a secret must never write anything.
                config.server.secrets.clear();
            }
            Ok(config)
        }
        (_, mistakes) => Err(BadConfig::Mistakes(mistakes)),
    }
}

/// Reads every table before it gives up, so that every mistake is found.
fn read(
    document: &Document<'_>,
    root: &ConfigTable<'_>,
    environment: Environment<'_>,
) -> Option<Config> {
    let server_table = root.table("server");
    let mut server = process::server(&server_table);
    let admin_table = root.table("admin");
    let mut admin = admin_table.is_present().then(|| process::admin(&admin_table));
    let console_table = root.table("console");
    let console = console::console(&console_table);
    let node_table = root.table("node");
    let node = listening(document, &node_table);
    let database_table = root.table("database");
    let (mut database, requires_synchronous) = process::database(&database_table);
    let limits = process::limits(&root.table("limits"));
    let operations = process::operations(&root.table("operations"));
    let routes = process::routes(&root.table("routes"));
    let roles = role::roles(&root.table("roles"));
    let retention = process::retention(&root.table("retention"));
    let webhooks = process::webhooks(&root.table("webhooks"));
    let log = process::log(&root.table("log"));
    let telemetry = telemetry::telemetry(document, &root.table("telemetry"), environment);
    let proxies = Proxies::read(environment).unwrap_or_else(|(name, why)| {
        document.mistake_in_variable(name, why);
        // Only to read on: with a mistake no configuration comes of it.
        Proxies::none()
    });
    let providers = provider::all(&root.table("providers"), &proxies);
    let (models, price_places) = model::all(root, &providers, &limits);
    root.refuse_unknown();
    override_listen(document, environment, &mut server, admin.iter_mut().flatten().next());
    process::keep_apart([
        Some(("server.listen", server.listen, &server_table)),
        admin.iter().flatten().map(|it| ("admin.listen", it.listen, &admin_table)).next(),
        console
            .as_ref()
            .and_then(|it| it.holders.as_ref())
            .map(|it| ("console.listen", it.listen, &console_table)),
        node.iter().flatten().map(|it| ("node.listen", it.listen, &node_table)).next(),
    ]);
    override_database(document, environment, &mut database, [&server_table, &database_table]);
    if requires_synchronous {
        needs_standby(database.as_ref(), &database_table);
    }
    if let (Some(database), true) = (&database, node_table.is_present()) {
        node::needs_server(database, &node_table);
    }
    arm_failpoint(document, environment);
    // Every table has been read by here: `?` gives up without hiding a mistake.
    Some(Config {
        file: None,
        stamp: None,
        exposure: None,
        literal_secrets: document.literal_secrets(),
        server,
        admin: whole(admin)?,
        console: console?,
        node: whole(node)?,
        database: database?,
        requires_synchronous,
        limits,
        operations,
        routes,
        roles,
        retention,
        webhooks,
        log,
        telemetry,
        providers: providers
            .into_iter()
            .filter_map(|(name, kind)| Some((name.to_owned(), kind?)))
            .collect(),
        models,
        price_places,
    })
}

/// Has the variable name the database, and refuses one that needs secrets of its own and has none.
fn override_database(
    document: &Document<'_>,
    environment: Environment<'_>,
    database: &mut Option<DatabaseUrl>,
    [server_table, database_table]: [&ConfigTable<'_>; 2],
) {
    // A secret beside an SQLite file serves its one process. Nodes on PostgreSQL have no folder in
    // common, and with a secret each they would refuse one another's keys.
    let needs = |it: &DatabaseUrl| it.file().is_none() && server_table.field("secrets").is_none();
    if let Some(url) = environment::overriding(environment, DATABASE_VARIABLE) {
        match DatabaseUrl::parse(&url) {
            Ok(url) if needs(&url) => {
                document.mistake_in_variable(DATABASE_VARIABLE, process::NEEDS_SECRETS);
            }
            Ok(url) => *database = Some(url),
            Err(error) => document.mistake_in_variable(DATABASE_VARIABLE, error),
        }
    } else if database.as_ref().is_some_and(needs)
        && let Some(field) = database_table.field("url")
    {
        field.mistake(format_args!("is {}", process::NEEDS_SECRETS));
    }
}

/// Refuses to require a standby of a file.
fn needs_standby(database: Option<&DatabaseUrl>, table: &ConfigTable<'_>) {
    if database.is_some_and(|it| it.file().is_some())
        && let Some(field) = table.field("require_synchronous")
    {
        field.mistake("is for a PostgreSQL database: an SQLite file has no standby");
    }
}

/// Listener for other nodes. A command that does not serve has none, and need not know its address.
fn listening(document: &Document<'_>, table: &ConfigTable<'_>) -> Option<Option<RelayConfig>> {
    if table.is_present() && document.is_served() {
        return Some(node::node(table));
    }
    table.ignore_unknown();
    None
}

/// A table that may be missing, but not be half of one.
fn whole<T>(table: Option<Option<T>>) -> Option<Option<T>> {
    table.map_or(Some(None), |read| read.map(Some))
}

/// The operator's listener of the embedded default, with the console. Its token is empty, which admits no
/// client.
fn embedded_admin(environment: Environment<'_>) -> AdminConfig {
    let given = environment::overriding(environment, ADMIN_LISTEN_VARIABLE);
    // An invalid address was already reported when the file and the environment were read.
    let listen = given.and_then(|listen| ListenAddress::parse(&listen).ok());
    AdminConfig {
        listen: listen.unwrap_or_else(|| SocketAddr::from(([127, 0, 0, 1], 8081)).into()),
        token: Secret::new(""),
        url: None,
        proxies: Vec::new(),
        bounds: WalletBounds::DEFAULT,
        creations_per_minute: WalletBounds::CREATIONS_PER_MINUTE,
    }
}

/// The addresses to listen on, if the environment has some.
fn override_listen(
    document: &Document<'_>,
    environment: Environment<'_>,
    server: &mut ServerConfig,
    admin: Option<&mut AdminConfig>,
) {
    if let Some(listen) = environment::overriding(environment, ADMIN_LISTEN_VARIABLE) {
        match (ListenAddress::parse(&listen), admin) {
            (Ok(listen), Some(admin)) => admin.listen = listen,
            // No listener to move; the embedded default's comes later.
            (Ok(_), None) => {}
            (Err(error), _) => document.mistake_in_variable(ADMIN_LISTEN_VARIABLE, error),
        }
    }
    if let Some(listen) = environment::overriding(environment, LISTEN_VARIABLE) {
        match ListenAddress::parse(&listen) {
            Ok(listen) => server.listen = listen,
            Err(error) => document.mistake_in_variable(LISTEN_VARIABLE, error),
        }
    }
}

/// Stops at a step, or switches off a guard, in a build with debug assertions.
fn arm_failpoint(document: &Document<'_>, environment: Environment<'_>) {
    if holdfast_failpoint::ENABLED
        && let Some(failpoint) = environment::overriding(environment, FAILPOINT_VARIABLE)
    {
        match Failpoint::try_from(failpoint.as_str()) {
            Ok(failpoint) => holdfast_failpoint::arm(failpoint),
            Err(error) => document.mistake_in_variable(FAILPOINT_VARIABLE, error),
        }
    }
    if holdfast_failpoint::ENABLED
        && let Some(fault) = environment::overriding(environment, FAULT_VARIABLE)
    {
        match Fault::try_from(fault.as_str()) {
            Ok(fault) => holdfast_failpoint::break_guard(fault),
            Err(error) => document.mistake_in_variable(FAULT_VARIABLE, error),
        }
    }
}
