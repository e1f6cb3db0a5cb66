//! Tables of the process: `[server]`, `[admin]`, `[database]`, `[limits]`, `[operations]`,
//! `[routes]`, `[retention]`, `[webhooks]` and `[log]`. Each has a struct, and a function that reads it.
//!
//! Sizes are bytes, times are `Duration`s, and counts are whole numbers; each has bounds, and a
//! value beyond them is a mistake of its line. Bounds that join two settings are checked here too:
//! a lease lasts for at least three heartbeats, a cool-down is not longer than its maximum, and no
//! two listeners have one address.
//!
//! A setting with a mistake gets its default for the rest of the reading. That is harmless: a
//! configuration with a mistake is never used.
//!
//! The settings take effect elsewhere: sockets in the gateway, limits in `http` and `engine`.

use std::net::SocketAddr;
use std::time::Duration;

use holdfast_admin::AdminOptions;
use holdfast_domain::NodeName;
use holdfast_domain::admin::WalletBounds;
use holdfast_domain::admin::event::UNLISTED_KEPT;
use holdfast_domain::admin::webhook::Origin;
use holdfast_domain::cell::Cell;
use holdfast_domain::secret::ServerSecret;
use holdfast_engine::BreakerRules;
use holdfast_http::AllowedOrigin;
use holdfast_net::{AdminUrl, Network};
use holdfast_store::DatabaseUrl;

use crate::document::{ConfigTable, Field};
use crate::listen::ListenAddress;
use crate::value::Secret;

const MILLISECOND: Duration = Duration::from_millis(1);
const SECOND: Duration = Duration::from_secs(1);
const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(3_600);
/// Shortest time for which events are listed: longer than any delivery of one is tried.
const LISTED_MIN: Duration = UNLISTED_KEPT;
/// The longest span that a result may be kept for: ten years.
const KEPT_MAX: Duration = Duration::from_secs(87_600 * 3_600);
/// End of the message for a PostgreSQL database without `server.secrets`, which its nodes must
/// share.
pub(crate) const NEEDS_SECRETS: &str = "for PostgreSQL, where `server.secrets` is required: create \
    a secret with `openssl rand -hex 32`, and give the same one to every node";
/// A heartbeat may fail twice before the lease ends.
const HEARTBEATS_PER_LEASE: u32 = 3;

/// `[server]`
#[derive(Debug, Clone)]
pub struct ServerConfig {
    pub listen: ListenAddress,
    /// Address of the API as callers type it, for display. Unset: the address on which it listens.
    pub url: Option<AdminUrl>,
    /// Unset: the name that a process on SQLite has, another one at each start on PostgreSQL.
    pub node: Option<NodeName>,
    /// Beginning of the credentials' ids that this installation makes; unset: they are random throughout.
    pub cell: Option<Cell>,
    /// The first writes, all read. Empty: one is made beside the database.
    pub secrets: Vec<ServerSecret>,
    pub drain: Duration,
    /// From the signal on: not ready, and yet everything is served.
    pub drain_delay: Duration,
    /// Proxies in front, whose `X-Forwarded-For` is believed as the clients' address.
    pub trusted_proxies: Vec<Network>,
    /// Origins of pages in browsers that may call; empty if CORS is off.
    pub cors_origins: Vec<AllowedOrigin>,
}

/// `[admin]`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AdminConfig {
    pub listen: ListenAddress,
    /// Bearer token of the metrics; an empty one admits no client.
    pub token: Secret,
    /// Address that people type. Unset: loopback names with the listener's port.
    pub url: Option<AdminUrl>,
    /// Proxies in front, whose `X-Forwarded-For` is believed as the clients' address.
    pub proxies: Vec<Network>,
    /// Bounds on what one wallet has in force.
    pub bounds: WalletBounds,
    /// API keys, people, webhooks and admin keys that one wallet gets per minute, from one process.
    pub creations_per_minute: u32,
}

/// `[limits]`
#[derive(Debug, Clone)]
pub struct LimitsConfig {
    pub header_bytes: usize,
    pub body_bytes: usize,
    pub header_time: Duration,
    pub body_time: Duration,
    pub idle_time: Duration,
    pub write_time: Duration,
    pub connections: usize,
    pub connections_per_address: usize,
    pub body_bytes_in_memory: usize,
    pub commit_queue: usize,
    pub answer_bytes: usize,
    pub operations_per_key: usize,
    pub waiters_per_operation: usize,
    pub retry_wait: Duration,
    pub result_bytes: usize,
    pub result_bytes_per_key: usize,
}

/// `[operations]`
#[derive(Debug, Clone)]
pub struct OperationsConfig {
    pub lease: Duration,
    pub heartbeat: Duration,
    pub orphan_grace: Duration,
}

/// `[retention]`
#[derive(Debug, Clone)]
pub struct RetentionConfig {
    pub results: Duration,
    /// Time for which the list of events keeps one; `None`: there is no list.
    pub events: Option<Duration>,
    /// Time for which hours of statistics are kept.
    pub statistics: Duration,
}

/// `[webhooks]`
#[derive(Debug, Clone)]
pub struct WebhooksConfig {
    /// Origins that may receive webhooks with any scheme, port and address.
    pub allow: Vec<Origin>,
}

/// `[routes]`
pub(crate) fn routes(table: &ConfigTable<'_>) -> BreakerRules {
    let failures = table
        .field("failures")
        .and_then(|field| u32::try_from(field.count(1..=1_000_000)?).ok())
        .unwrap_or(3);
    let first = span(table, "cool_down", MILLISECOND..=HOUR, Duration::from_secs(5));
    // The default must not fall below a long `cool_down`: the operator did not write it, and could not correct
    // it.
    let usual = Duration::from_secs(60).max(first);
    let given = table.field("cool_down_max");
    let longest = given.as_ref().and_then(|field| field.span(MILLISECOND..=HOUR)).unwrap_or(usual);
    if let Some(field) = given.filter(|_field| longest < first) {
        field.mistake("must not be shorter than `routes.cool_down`, the first one");
    }
    table.refuse_unknown();
    BreakerRules { failures, first, longest }
}

/// `[log]`
#[derive(Debug, Clone)]
pub struct LogConfig {
    pub format: LogFormat,
    /// In the syntax of `tracing_subscriber`'s `EnvFilter`; checked.
    pub level: String,
}

/// Format of the log's lines: text for people, or JSON for machines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogFormat {
    /// For people.
    Pretty,
    /// For machines.
    Json,
}

pub(crate) fn server(table: &ConfigTable<'_>) -> ServerConfig {
    let listen = table.field("listen").and_then(|field| field.parse(ListenAddress::parse));
    let node = table.field("node").and_then(|field| field.parse(NodeName::try_from));
    let cell = table.field("cell").and_then(|field| field.parse(Cell::try_from));
    let secrets = table.field("secrets").and_then(|field| secrets(&field)).unwrap_or_default();
    let url_field = table.field("url");
    let server = ServerConfig {
        url: url_field.and_then(|field| field.parse(AdminUrl::parse)),
        listen: listen.unwrap_or_else(|| SocketAddr::from(([127, 0, 0, 1], 8080)).into()),
        node,
        cell,
        secrets,
        drain: span(table, "drain", Duration::ZERO..=HOUR, Duration::from_secs(30)),
        drain_delay: span(table, "drain_delay", Duration::ZERO..=MINUTE, Duration::ZERO),
        trusted_proxies: networks(table, "trusted_proxies"),
        cors_origins: table
            .field("cors_origins")
            .and_then(|field| field.each(|item| item.parse(AllowedOrigin::parse)))
            .unwrap_or_default(),
    };
    table.refuse_unknown();
    server
}

/// Addresses and networks; empty if the key is missing.
pub(crate) fn networks(table: &ConfigTable<'_>, key: &'static str) -> Vec<Network> {
    let field = table.field(key);
    field.and_then(|field| field.each(|item| item.parse(Network::parse))).unwrap_or_default()
}

fn secrets(field: &Field<'_>) -> Option<Vec<ServerSecret>> {
    let given = field.secrets()?;
    let secrets: Vec<_> = given
        .iter()
        .filter_map(|(item, secret)| {
            let server_secret = ServerSecret::new(secret.expose().as_bytes());
            if server_secret.is_err() {
                let least = ServerSecret::LEN_MIN;
                item.mistake(format_args!(
                    "has a secret of fewer than {least} bytes: create one with `openssl rand -hex 32`"
                ));
            }
            server_secret.ok()
        })
        .collect();
    // An empty array reads as "no secrets", but would mean "create one": the operator has to choose.
    if field.value.as_array().is_some_and(|items| items.is_empty()) {
        field.mistake(
            "is empty: name a secret, or remove the key to have one created next to the database",
        );
    }
    Some(secrets)
}

pub(crate) fn admin(table: &ConfigTable<'_>) -> Option<AdminConfig> {
    let listen = table
        .required("listen", "listen = \"127.0.0.1:8081\"")
        .and_then(|field| field.parse(ListenAddress::parse));
    let token = table.required("token", "token = \"${HOLDFAST_ADMIN_TOKEN}\"").and_then(|field| {
        let token = field.secret()?;
        // The token travels in a header, where a blank or a letter beyond ASCII would never match.
        let visible = token.expose().bytes().all(|byte| byte.is_ascii_graphic());
        if token.expose().len() >= 16 && visible {
            return Some(token);
        }
        field.mistake(
            "must be at least 16 visible ASCII characters: create one with `openssl rand -hex 32`",
        );
        None
    });
    let url_field = table.field("url");
    let url = url_field.as_ref().map(|field| field.parse(AdminUrl::parse));
    if let (Some(field), Some(listen), Some(Some(url))) = (&url_field, listen, &url)
        && AdminOptions::new(listen.first(), Some(url.clone())).is_none()
    {
        field.mistake(format_args!(
            "is {url} and `admin.listen` is {listen}: admin keys would cross a network in plain text. \
             Write the https:// address of a proxy with TLS, or listen on 127.0.0.1"
        ));
    }
    let proxies = networks(table, "proxies");
    let (bounds, creations_per_minute) = bounds(table);
    table.refuse_unknown();
    // A URL with a mistake is no URL that was left out: the rest of the table is not used either.
    let url = url.map_or(Some(None), |url| url.map(Some));
    let (listen, token, url) = (listen?, token?, url?);
    Some(AdminConfig { listen, token, url, proxies, bounds, creations_per_minute })
}

/// Bounds on one wallet: what it has in force, and what it gets per minute.
fn bounds(table: &ConfigTable<'_>) -> (WalletBounds, u32) {
    const MOST: u64 = 1_000_000;
    let count = |key, most, default| {
        let field = table.field(key);
        field.and_then(|field| u32::try_from(field.count(1..=most)?).ok()).unwrap_or(default)
    };
    let usual = WalletBounds::DEFAULT;
    let bounds = WalletBounds {
        api_keys: count("api_keys_per_wallet", MOST, usual.api_keys),
        people: count("people_per_wallet", MOST, usual.people),
        // Each is tried by turns: a wallet with many waits for itself.
        webhooks: count("webhooks_per_wallet", 1_000, usual.webhooks),
        admin_keys: count("admin_keys_per_wallet", MOST, usual.admin_keys),
    };
    (bounds, count("creations_per_minute", MOST, WalletBounds::CREATIONS_PER_MINUTE))
}

/// A listener: the setting of its address, the address, and its table.
type ListenerRow<'t, 'd> = (&'static str, ListenAddress, &'t ConfigTable<'d>);

/// No two listeners can have one address; port 0 is another one each time.
pub(crate) fn keep_apart(listeners: [Option<ListenerRow<'_, '_>>; 4]) {
    // 0.0.0.0 takes a port on every address of its family. The kernel would refuse the second bind
    // too, but without naming the two settings.
    let covers = |one: SocketAddr, other: SocketAddr| {
        one.ip() == other.ip() || (one.ip().is_unspecified() && one.is_ipv4() == other.is_ipv4())
    };
    let given: Vec<_> = listeners.into_iter().flatten().collect();
    for (at, (name, own, table)) in given.iter().enumerate() {
        let is_taken = |(_, other, _): &&ListenerRow<'_, '_>| {
            let meet =
                |one: SocketAddr, other: SocketAddr| covers(one, other) || covers(other, one);
            own.first().port() == other.first().port()
                && own.all().any(|own| other.all().any(|other| meet(own, other)))
        };
        let taken = given.iter().take(at).find(is_taken);
        if let Some((other_name, other, _)) = taken.filter(|_taken| own.first().port() != 0) {
            table.mistake(format!(
                "`{name}` has the address of {other_name} ({other}): write another port, each has \
                a listener of \
                 its own"
            ));
        }
    }
}

/// The database, and whether its commits must reach a standby.
pub(crate) fn database(table: &ConfigTable<'_>) -> (Option<DatabaseUrl>, bool) {
    let url = match table.field("url") {
        None => DatabaseUrl::parse("sqlite://holdfast-data/holdfast.db").ok(),
        Some(field) => field.expanded().and_then(|url| {
            if field.text().is_some_and(has_literal_password) {
                field.note_literal_secret();
            }
            let parsed = DatabaseUrl::parse(url.expose());
            if let Err(error) = &parsed {
                field.mistake(format_args!("is {error}"));
            }
            parsed.ok()
        }),
    };
    let requires_synchronous = table.field("require_synchronous").and_then(|field| field.flag());
    table.refuse_unknown();
    (url, requires_synchronous.unwrap_or(false))
}

/// True if a URL, as it is written, has a password that contains no variable and no file.
fn has_literal_password(url: &str) -> bool {
    let password = url
        .split_once("://")
        // The last `@`, as the driver does: a password may have one that was not encoded.
        .and_then(|(_scheme, rest)| rest.rsplit_once('@'))
        .and_then(|(user, _host)| user.split_once(':'))
        .map(|(_name, password)| password);
    password.is_some_and(|password| !password.is_empty() && !password.contains("${"))
}

pub(crate) fn limits(table: &ConfigTable<'_>) -> LimitsConfig {
    const MANY: u32 = 1 << 20;
    const LARGE: u32 = 1 << 30;
    let size = |key, bounds, default| {
        table.field(key).and_then(|field| field.size(bounds)).unwrap_or(default)
    };
    let connections = size("connections", 1..=MANY, 4_096);
    let limits = LimitsConfig {
        header_bytes: size("header_bytes", 1_024..=MANY, 32_768),
        body_bytes: size("body_bytes", 1_024..=LARGE, 33_554_432),
        header_time: span(table, "header_time", MILLISECOND..=HOUR, Duration::from_secs(10)),
        body_time: span(table, "body_time", MILLISECOND..=HOUR, Duration::from_secs(30)),
        write_time: span(table, "write_time", MILLISECOND..=HOUR, Duration::from_secs(30)),
        idle_time: span(table, "idle_time", MILLISECOND..=HOUR, Duration::from_secs(120)),
        connections,
        connections_per_address: size(
            "connections_per_address",
            1..=MANY,
            // All connections belong to no one address; a balancer that is not listed still has most.
            connections.saturating_mul(3).div_ceil(4),
        ),
        body_bytes_in_memory: size("body_bytes_in_memory", MANY..=LARGE, 268_435_456),
        commit_queue: size("commit_queue", 1..=MANY, 4_096),
        answer_bytes: size("answer_bytes", MANY..=u32::MAX, 268_435_456),
        operations_per_key: size("operations_per_key", 1..=MANY, 1_024),
        waiters_per_operation: size("waiters_per_operation", 1..=MANY, 256),
        retry_wait: span(table, "retry_wait", MILLISECOND..=HOUR, Duration::from_secs(600)),
        result_bytes: size("result_bytes", MANY..=LARGE, 268_435_456),
        result_bytes_per_key: size("result_bytes_per_key", MANY..=LARGE, 67_108_864),
    };
    table.refuse_unknown();
    limits
}

pub(crate) fn operations(table: &ConfigTable<'_>) -> OperationsConfig {
    let operations = OperationsConfig {
        lease: span(table, "lease", SECOND..=HOUR, Duration::from_secs(15)),
        heartbeat: span(table, "heartbeat", MILLISECOND..=HOUR, Duration::from_secs(4)),
        orphan_grace: span(table, "orphan_grace", Duration::ZERO..=HOUR, Duration::from_secs(60)),
    };
    // A node whose lease ends while it lives has its operations taken from it by the others.
    if operations.lease < operations.heartbeat.saturating_mul(HEARTBEATS_PER_LEASE) {
        table.mistake(format!(
            "`operations.lease` must be at least {HEARTBEATS_PER_LEASE} times `operations.heartbeat`, \
             so that one lost heartbeat does not end it"
        ));
    }
    table.refuse_unknown();
    operations
}

pub(crate) fn retention(table: &ConfigTable<'_>) -> RetentionConfig {
    let results = span(table, "results", SECOND..=KEPT_MAX, HOUR.saturating_mul(24));
    let given = table.field("events");
    let events = given.as_ref().and_then(|field| field.span(Duration::ZERO..=KEPT_MAX));
    let events = events.unwrap_or(HOUR.saturating_mul(720));
    if let Some(field) = given.filter(|_field| !events.is_zero() && events < LISTED_MIN) {
        field.mistake("must be 168h or more, or 0s for no list: deliveries of an event take days");
    }
    let statistics = span(table, "statistics", HOUR..=KEPT_MAX, HOUR.saturating_mul(720));
    table.refuse_unknown();
    RetentionConfig { results, events: (!events.is_zero()).then_some(events), statistics }
}

pub(crate) fn webhooks(table: &ConfigTable<'_>) -> WebhooksConfig {
    let origins =
        table.field("allow").and_then(|field| field.each(|item| item.parse(Origin::try_from)));
    table.refuse_unknown();
    WebhooksConfig { allow: origins.unwrap_or_default() }
}

pub(crate) fn log(table: &ConfigTable<'_>) -> LogConfig {
    let format = table.field("format").and_then(|field| match field.text()? {
        "pretty" => Some(LogFormat::Pretty),
        "json" => Some(LogFormat::Json),
        _ => {
            field.mistake("must be \"pretty\" or \"json\"");
            None
        }
    });
    let level = table.field("level").and_then(|field| {
        let level = field.text()?;
        if is_log_level(level) {
            return Some(level.to_owned());
        }
        field.mistake("is no level: write error, warn, info, debug or trace, or a list like \"info,holdfast_store=debug\"");
        None
    });
    table.refuse_unknown();
    LogConfig {
        format: format.unwrap_or(LogFormat::Pretty),
        level: level.unwrap_or_else(|| "info".to_owned()),
    }
}

/// True for a level, or a list of levels and `target=level`, that the log understands.
fn is_log_level(text: &str) -> bool {
    // `EnvFilter` takes a bare word that is no level for a target: "wran" would be accepted, and
    // silence everything else.
    const LEVELS: [&str; 6] = ["off", "error", "warn", "info", "debug", "trace"];
    let known = |part: &str| part.contains(['=', ':', '[']) || LEVELS.contains(&part.trim());
    text.split(',').all(known) && tracing_subscriber::EnvFilter::builder().parse(text).is_ok()
}

fn span(
    table: &ConfigTable<'_>,
    key: &'static str,
    bounds: std::ops::RangeInclusive<Duration>,
    default: Duration,
) -> Duration {
    table.field(key).and_then(|field| field.span(bounds)).unwrap_or(default)
}
