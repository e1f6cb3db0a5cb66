//! `holdfast sidecar`: a proxy on the host of a client that cannot make request keys. It exposes the OpenAI
//! API, gives every chat completion a key that survives, and repeats the request under that key until the
//! client has the answer.
//!
//! ```text
//! client ─▶ serve ─▶ service ─▶ attendance (SlotRegistry) ─▶ table: which key     ─▶ journal: kept first
//!                       │
//!                       └─▶ call: sent, repeated ─▶ stream: resumed ─▶ body ─▶ socket: taken?
//! ```
//!
//! Pure are `table`, `answer` and `retry_budget`; the rest carries out their decisions. Everything but
//! `POST …/chat/completions` is passed on as it is. A client's own `Idempotency-Key` wins.
//!
//! Never: a request under another host's name, or of a page that is not allowed (`guard`); a prompt, an answer or a
//! credential in the journal or in the log; a splice of two answers; a second key for a call whose first one may still
//! have an answer.
//!
//! Limits: 64 MiB of requests, and as much of answers that are read whole; 65,536 slots.
#![warn(missing_docs)]

mod answer;
mod attendance;
mod body;
mod budget;
mod call;
mod guard;
mod health;
mod journal;
mod peek;
mod retry_budget;
mod serve;
mod service;
mod socket;
mod stream;
mod table;
mod upstream;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use holdfast_net::{BadOptions, Proxies, ServerClient};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::attendance::SlotRegistry;
use crate::budget::ByteBudget;
use crate::guard::Guard;
pub use crate::guard::{AllowedHost, AllowedOrigin, BadAllowedOrigin, BadHost};
use crate::journal::Journal;
pub use crate::journal::{BadJournal, LostJournal};
pub use crate::serve::serve;
use crate::service::Service;
pub use crate::table::IdenticalCalls;
use crate::table::Rules;
pub use crate::upstream::{BadUpstreamUrl, UpstreamUrl};

/// Meaning of a hang-up for the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HangUpPolicy {
    /// The run ends by itself, and its answer waits for a retry.
    Run,
    /// The gateway gets a request to cancel it.
    Cancel,
}

/// File of the journal, and how it is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JournalOptions {
    /// The file.
    pub path: PathBuf,
    /// Every row is synced before its call goes out, so that a loss of power does not lose it.
    pub is_synced: bool,
}

/// Options of a sidecar.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// The gateway.
    pub upstream: UpstreamUrl,
    /// Proxies on the way to it.
    pub proxies: Proxies,
    /// The journal; without one a restart forgets all keys.
    pub journal: Option<JournalOptions>,
    /// Meaning of identical calls at once.
    pub identical: IdenticalCalls,
    /// Time that a slot stays after a caller was last seen.
    pub window: Duration,
    /// Meaning of a hang-up.
    pub hang_up: HangUpPolicy,
    /// Retry time with a gateway that fails, if a client announces no timeout.
    pub patience: Duration,
    /// Names under which clients reach it, besides those of loopback.
    pub hosts: Vec<AllowedHost>,
    /// Origins of pages that may call it.
    pub origins: Vec<AllowedOrigin>,
}

/// Reason for which a sidecar does not start.
#[derive(Debug, thiserror::Error)]
pub enum BadSidecar {
    /// The journal cannot be used.
    #[error("the journal cannot be used")]
    Journal(#[source] BadJournal),
    /// No client can be made.
    #[error("no client of the gateway can be made")]
    Client(#[source] BadOptions),
}

/// A sidecar with its journal open, which listens nowhere yet.
pub struct Sidecar {
    service: Arc<Service>,
}

impl std::fmt::Debug for Sidecar {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Sidecar")
    }
}

impl Sidecar {
    /// Opens the journal and takes it for this process.
    ///
    /// # Errors
    ///
    /// [`BadSidecar`]: no file was changed.
    pub fn open(options: Options) -> Result<Self, BadSidecar> {
        let client = ServerClient::new(options.proxies, ServerClient::POOL_IDLE);
        let client = Arc::new(client.map_err(BadSidecar::Client)?);
        let (journal, records) = match &options.journal {
            None => (Journal::none(), Vec::new()),
            Some(JournalOptions { path, is_synced }) => {
                Journal::open(path, *is_synced).map_err(BadSidecar::Journal)?
            }
        };
        let rules = Rules { identical: options.identical, window: options.window };
        Ok(Self {
            service: Arc::new(Service {
                upstream: options.upstream,
                client,
                guard: Guard { hosts: options.hosts, origins: options.origins },
                health: Arc::default(),
                registry: Arc::new(SlotRegistry::new(rules, journal, records)),
                patience: options.patience,
                hang_up: options.hang_up,
                requests: ByteBudget::new(),
                answers: ByteBudget::new(),
                tasks: TaskTracker::new(),
                cut: CancellationToken::new(),
            }),
        })
    }
}
