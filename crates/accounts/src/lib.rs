//! The use cases of administration: who may change what of wallets, API keys, postings, operations,
//! admin keys and people, how people sign in, and who may read what of them, of usage, of the trail and of what is on offer.
//!
//! ```text
//! command line ─┐                ┌─ authorization (role, wallet)
//! HTTP API ─────┼─▶ Accounts ────┼─ values (names, limits, ends)
//! console ──────┘                └─ ports: Administration (changes), Directory, Events (lists),
//!                                      Reports, Jobs, Webhooks, Sessions, Journal
//! ```
//!
//! Every interface parses, calls a use case and renders its result. So permissions, refusals and the rows of
//! the audit log are the same for every principal and every interface. The effect of a change on the ledger is
//! judged one step further in, by [`holdfast_domain::admin::decide`], in the transaction that writes it.
//!
//! | refusal | answer of the interfaces |
//! |---|---|
//! | a use case that the role has not | 403, which names it |
//! | a resource of another wallet, for a holder | 404: it does not exist for them |
//! | a value that cannot stand | 400, which names the field |
//! | every decision of the ledger | 409 or 422, and no request key is bound |
//!
//! Never in here: HTTP, SQL, arguments of a command line, a secret in an error.

mod admin_keys;
mod api_keys;
mod attempts;
mod authentication;
mod creations;
mod cursors;
mod error;
mod events;
mod exports;
pub mod fields;
mod in_flight;
mod jobs;
mod links;
mod names;
mod notes;
mod offers;
mod operations;
mod origin;
mod passwords;
mod people;
mod postings;
mod principal;
mod refusals;
mod refused_requests;
mod reports;
mod roots;
mod routes;
mod search;
mod sentence;
mod sessions;
mod table;
mod text;
mod trail;
pub mod verbs;
mod wallets;
mod webhooks;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use holdfast_domain::admin::offer::Offers;
use holdfast_domain::admin::ports::CommandError;
use holdfast_domain::admin::{
    AccountAction, AccountCommand, AccountReceipt, ActorId, CanonicalDigest, RequestBinding,
    RequestRecord, UseCase, WalletBounds,
};
use holdfast_domain::admin::{
    Administration, Directory, Endpoints, Events, Jobs, LedgerRoots, RefusedRequests, Reports,
    RouteReports, Sessions, Webhooks,
};
use holdfast_domain::cell::Cell;
use holdfast_domain::debug_as;
use holdfast_domain::ports::Pause;
use holdfast_domain::secret::ServerSecret;
use holdfast_domain::{
    ApiKeys, CommandKey, Currency, Journal, Micros, Restores, Timestamp, Wallets,
};

use uuid::Uuid;

use self::attempts::FailedAttempts;
use self::creations::CreationRates;
use self::cursors::CursorKeys;
use self::notes::Notes;
use self::passwords::PasswordHasher;
use self::refusals::RefusalCounts;

pub use self::admin_keys::{IssuedAdminKey, NewAdminKey};
pub use self::api_keys::{ApiKeyRecord, IssuedApiKey, KeyOrder};
pub use self::authentication::AuthenticationError;
pub use self::cursors::{BadCursor, PagedList};
pub(crate) use self::error::Result;
pub use self::error::{AccountsError, ResourceKind};
pub use self::exports::{LedgerFile, StatementFile, UsageFile};
pub use self::in_flight::{InFlight, Place};
pub use self::links::{AcceptedLink, LinkError, LinkView, UsedLink};
pub use self::notes::FailedSignIns;
pub use self::offers::OfferedModels;
pub use self::operations::OperationRecord;
pub use self::origin::{Listener, SignInOrigin};
pub use self::passwords::{BadPassword, Password};
pub use self::people::{InvitationWithLink, NewInvitation};
pub use self::postings::{PostingOrder, PostingRecord};
pub use self::principal::Principal;
pub use self::refused_requests::REFUSAL_HOURS_MAX;
pub use self::reports::{StatementPage, UsageReport};
pub use self::routes::{AttemptSums, RouteHistory, RouteReport};
pub use self::search::{BadSearchTerm, SearchHit, SearchLimits, SearchOutcome, SearchTerm};
pub use self::sentence::sentence;
pub use self::sessions::{BegunSession, RenewedSession, SessionError, SignInError, SignedIn};
pub use self::table::{INTERFACES, Interfaces};
pub use self::text::{BadText, Description, ExternalId, Name, Note, Reason, Reference, Source};
pub use self::verbs::forms::FormWords;
pub use self::verbs::{Subject, SubjectKind, SubjectNouns, VERBS, Verb};
pub use self::wallets::NewWallet;
pub use self::webhooks::{NewWebhook, SecretText, WebhookWithSecret};

/// The ports that the use cases work through: one store has them all.
pub trait Book:
    Administration
    + ApiKeys
    + Directory
    + Events
    + Jobs
    + Journal
    + LedgerRoots
    + RefusedRequests
    + Reports
    + Restores
    + RouteReports
    + Sessions
    + Wallets
    + Webhooks
{
}

impl<T> Book for T where
    T: Administration
        + ApiKeys
        + Directory
        + Events
        + Jobs
        + Journal
        + LedgerRoots
        + RefusedRequests
        + Reports
        + Restores
        + RouteReports
        + Sessions
        + Wallets
        + Webhooks
{
}

/// The use cases, over one book.
#[derive(Clone)]
pub struct Accounts {
    book: Arc<dyn Book>,
    /// The secrets of the server; the first one writes, the others are read by.
    secrets: Arc<[ServerSecret]>,
    cursor_keys: CursorKeys,
    pause: Arc<dyn Pause>,
    /// Micros that an actor with the role support gives back in a UTC day, by currency.
    support_refunds: Arc<BTreeMap<Currency, Micros>>,
    refusals: Arc<RefusalCounts>,
    passwords: Arc<PasswordHasher>,
    attempts: Arc<FailedAttempts>,
    notes: Arc<Notes>,
    exports: InFlight,
    /// Cell that the ids of new credentials begin with.
    cell: Option<Cell>,
    /// Bounds on what one wallet has.
    bounds: WalletBounds,
    creations: Arc<CreationRates>,
    endpoints: Arc<dyn Endpoints>,
    /// Offers of this process; `None` if it serves none.
    offers: Option<Arc<dyn Offers>>,
}

debug_as!(Accounts: "Accounts");

/// Request of a change: what makes it safe to repeat, and why it is made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// Request key, which its sender chose.
    pub key: CommandKey,
    /// Digest of all that was requested: the same key with another digest is another request.
    pub digest: [u8; 32],
    /// Canonical digest, by which a version with other optional members recognizes the request.
    pub canonical: Option<CanonicalDigest>,
    /// Reason that its sender gives.
    pub reason: Option<Reason>,
    /// True if the change is judged and not made.
    pub dry_run: bool,
    /// True if the change is made although a restored ledger may have lost that it was made before.
    pub after_restore: bool,
}

impl Request {
    /// A request whose digest is that of these parts, such as method, path and body.
    #[must_use]
    pub fn new(key: CommandKey, parts: &[&[u8]], reason: Option<Reason>) -> Self {
        Self {
            key,
            digest: digest(parts),
            canonical: None,
            reason,
            dry_run: false,
            after_restore: false,
        }
    }

    /// The same with the canonical digest of these parts: those of its canonical form.
    #[must_use]
    pub fn with_canonical(self, parts: &[&[u8]]) -> Self {
        Self { canonical: Some(CanonicalDigest::new(digest(parts))), ..self }
    }

    /// Binding of its key.
    #[must_use]
    pub const fn binding(&self) -> RequestBinding {
        RequestBinding { key: self.key, digest: self.digest, canonical: self.canonical }
    }

    /// A request of the process itself, which is never repeated.
    fn own(parts: &[&[u8]]) -> Self {
        Self::new(CommandKey::from(Uuid::new_v4()), parts, None)
    }
}

fn digest(parts: &[&[u8]]) -> [u8; 32] {
    let mut hasher = blake3::Hasher::new();
    for part in parts {
        // The length first: two lists of parts are never spelled alike.
        hasher.update(&u64::try_from(part.len()).unwrap_or(u64::MAX).to_be_bytes());
        hasher.update(part);
    }
    *hasher.finalize().as_bytes()
}

/// True for an error after which no change was made.
const fn is_refusal(error: &CommandError) -> bool {
    matches!(error, CommandError::Refused(_))
}

/// Edit of a resource, and the number of edits of it that its sender has seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Edit<P> {
    /// The members that change.
    pub patch: P,
    /// Number of edits; `None` if the sender does not care.
    pub expected: Option<u32>,
}

/// Outcome of a change: the resource as it is now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome<T> {
    /// The resource, read after the change.
    pub thing: T,
    /// True if an earlier request made the change, and this one none.
    pub replayed: bool,
}

impl Accounts {
    /// The use cases over this book. `secrets` are the server's, the one that writes first.
    #[must_use]
    pub fn new(
        book: Arc<dyn Book>,
        secrets: impl Into<Arc<[ServerSecret]>>,
        pause: Arc<dyn Pause>,
    ) -> Self {
        let secrets = secrets.into();
        Self {
            book,
            cursor_keys: CursorKeys::new(&secrets),
            secrets,
            pause,
            support_refunds: Arc::default(),
            refusals: Arc::default(),
            passwords: Arc::default(),
            attempts: Arc::default(),
            notes: Arc::default(),
            exports: InFlight::of_exports(),
            cell: None,
            bounds: WalletBounds::DEFAULT,
            creations: Arc::default(),
            endpoints: Arc::new(webhooks::PublicEndpoints),
            offers: None,
        }
    }

    /// The same with an allowance of refunds for each actor with the role support: micros of a UTC day, by
    /// currency. Without one they can make no refund.
    #[must_use]
    pub fn with_support_refunds(self, allowances: BTreeMap<Currency, Micros>) -> Self {
        Self { support_refunds: Arc::new(allowances), ..self }
    }

    /// The same with other bounds on what one wallet has, and on what is made for one per minute in this process.
    #[must_use]
    pub fn bounded_by(self, bounds: WalletBounds, creations_per_minute: u32) -> Self {
        let creations = Arc::new(CreationRates::new(creations_per_minute));
        Self { bounds, creations, ..self }
    }

    /// The same in an installation of this cell: the ids of new credentials begin with it.
    #[must_use]
    pub fn in_cell(self, cell: Option<Cell>) -> Self {
        Self { cell, ..self }
    }

    /// The same with another judge of receivers' addresses: without one, the text of an address is
    /// judged alone, and no origin is listed.
    #[must_use]
    pub fn judging(self, endpoints: Arc<dyn Endpoints>) -> Self {
        Self { endpoints, ..self }
    }

    /// The same use cases in a process that serves these models.
    #[must_use]
    pub fn serving(self, offers: Arc<dyn Offers>) -> Self {
        Self { offers: Some(offers), ..self }
    }

    /// The clock that ends are judged by: the database's.
    ///
    /// # Errors
    ///
    /// [`AccountsError::Unavailable`].
    pub async fn clock(&self) -> Result<Timestamp> {
        Ok(self.book.clock().await?)
    }

    /// Record to which a request key of this principal is bound; `None` for a free key.
    ///
    /// # Errors
    ///
    /// [`AccountsError::Unavailable`].
    pub async fn request_record(
        &self,
        principal: &Principal,
        key: CommandKey,
    ) -> Result<Option<RequestRecord>> {
        Ok(self.book.request_record(principal.actor, key).await?)
    }

    fn writing_secret(&self) -> Result<&ServerSecret> {
        self.secrets.first().ok_or(AccountsError::NoSecret)
    }

    /// Makes a change for a principal that may make it.
    async fn change(
        &self,
        principal: &Principal,
        request: &Request,
        action: AccountAction,
    ) -> Result<AccountReceipt> {
        // Outside the transaction: a flood of creations is refused before it takes a connection and
        // locks.
        let taken = self.take_creations(principal, request, &action).await?;
        let command = AccountCommand {
            bounds: self.bounds,
            actor: principal.actor,
            address: principal.address.clone(),
            request: request.binding(),
            reason: request.reason.as_ref().map(|reason| reason.as_str().to_owned()),
            is_after_restore: request.after_restore,
            action,
        };
        let secret = self.writing_secret()?;
        let done = if request.dry_run {
            self.book.rehearse(&command, secret).await
        } else {
            self.book.administer(&command, secret).await
        };
        // Not for an unknown outcome: the change may have been made, and would then cost no
        // creation.
        if let Some((owner, creations)) = taken
            && done.as_ref().map_or_else(is_refusal, |receipt| receipt.replayed)
        {
            self.creations.give_back(owner, creations);
        }
        done.map_err(AccountsError::from)
    }

    /// Takes an action's creations out of the rate of its owner. A repetition is answered even if the rate is
    /// used up.
    async fn take_creations(
        &self,
        principal: &Principal,
        request: &Request,
        action: &AccountAction,
    ) -> Result<Option<(creations::Owner, usize)>> {
        let is_counted = !request.dry_run && principal.actor != ActorId::Local;
        let made = creations::of(action).filter(|_made| is_counted);
        let Some((owner, creations)) = made else { return Ok(None) };
        // The rate before the request key: only a request that it would refuse costs the look-up.
        let Err(wait) = self.creations.take(owner, creations, Instant::now()) else {
            return Ok(made);
        };
        if self.book.request_record(principal.actor, request.key).await?.is_some() {
            return Ok(None);
        }
        // Rounded up: a caller that waits exactly the announced seconds must find room.
        let seconds = wait.as_millis().div_ceil(1_000);
        Err(AccountsError::TooManyCreations {
            retry_after: u16::try_from(seconds).unwrap_or(u16::MAX),
        })
    }

    /// Refuses a change that requires a reason and has none.
    fn want_reason(use_case: UseCase, request: &Request) -> Result<()> {
        if request.reason.is_none() {
            return Err(AccountsError::Invalid {
                field: "reason",
                message: format!("{use_case} requires a reason"),
            });
        }
        Ok(())
    }
}
