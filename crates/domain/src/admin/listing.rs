//! Lists, a page at a time: API keys, wallets, operations, postings, admin keys and the trail by their
//! numbers, which the database gives in the order of creation.
//!
//! ```text
//! PageRequest { order, after: None, limit }  ->  Page { rows, next: Some(cursor) }
//! PageRequest { order, after: cursor, limit } -> ... -> Page { rows, next: None }
//! ```
//!
//! A page starts after a number and never at an offset, so rows that are added meanwhile repeat and hide none.
//! Each page is read at its own moment. On a server numbers are given before they are committed: a walk from
//! the oldest row may pass by one that is being added next to a higher number, so an export of rows ends some
//! time before now.
//!
//! A filter that no index serves (an operation's time, model, status or charge, all of an API key's,
//! the balance of a wallet, which each operation moves) is applied to [`ROWS_READ_MAX`] rows a page,
//! to [`SCATTERED_ROWS_READ_MAX`] operations of one wallet or API key: such a page may have few rows
//! or none, and a next one nevertheless.
//!
//! ```
//! use holdfast_domain::admin::listing::{Page, PageCursor};
//!
//! // Three rows were read for a page of two: the third one shows that there are more.
//! let rows = [(4, "d"), (3, "c"), (2, "b")].map(|(seq, name)| (PageCursor(seq), name));
//! let page = Page::of(rows.to_vec(), 2);
//! assert_eq!((page.rows.as_slice(), page.next), (["d", "c"].as_slice(), Some(PageCursor(3))));
//! // A page that may have one byte ends early, and the next one begins with the row that did not fit.
//! let page = page.within(1, |name| name.len());
//! assert_eq!((page.rows, page.next), (vec!["d"], Some(PageCursor(4))));
//! ```

use crate::admin::audit::TrailRow;
use crate::admin::{
    ActorId, PersonState, PostingDetails, ResourceId, Role, UseCase, WalletRecord, WalletState,
};
use crate::credential::ApiKey;
use crate::ledger::Posting;
use crate::model::PublicModelId;
use crate::operation::{Lease, Operation, OperationStatus};
use crate::ports::Durability;
use crate::secret::{ServerSecretId, SettingsDigest};
use crate::{ApiKeyId, CredentialId, Micros, OperationId, Timestamp, WalletId};

/// Rows on one page at most.
pub const PAGE_MAX: u32 = 500;

/// Rows that one page reads at most, if no index finds the rows of a filter.
pub const ROWS_READ_MAX: u32 = 20_000;

/// The same of operations of one wallet or API key, which stand among those of all others: each may
/// be on a page of the database's of its own.
pub const SCATTERED_ROWS_READ_MAX: u32 = 5_000;

/// Order of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// The newest row first.
    Newest,
    /// The oldest row first.
    Oldest,
}

/// Place in a list at the end of a page, in the order of that list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageCursor(pub i64);

/// Request for one page of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageRequest {
    /// Order of the list: the same for all its pages.
    pub order: Order,
    /// End of the page before; `None` before the first.
    pub after: Option<PageCursor>,
    /// At most so many rows; more than [`PAGE_MAX`] are that many, and none are one.
    pub limit: u32,
}

/// A page of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page<T> {
    /// Rows in the order of the list.
    pub rows: Vec<T>,
    /// End of this page, if there may be more after it.
    pub next: Option<PageCursor>,
    /// Place of each row: the page may end early after any of them.
    pub places: Vec<PageCursor>,
}

impl<T> Page<T> {
    /// A page without a row, and the last one.
    #[must_use]
    pub const fn empty() -> Self {
        Self { rows: Vec::new(), next: None, places: Vec::new() }
    }

    /// A list of one row at most.
    #[must_use]
    pub fn whole(row: Option<T>) -> Self {
        // Nothing is listed after a row that is alone: its place is asked of nobody.
        let places = row.iter().map(|_row| PageCursor(0)).collect();
        Self { rows: row.into_iter().collect(), next: None, places }
    }

    /// A page of these rows with their places; rows in excess of `limit` show that there are more.
    #[must_use]
    pub fn of(mut rows: Vec<(PageCursor, T)>, limit: usize) -> Self {
        let has_more = rows.len() > limit;
        rows.truncate(limit);
        let next = rows.last().map(|(place, _row)| *place).filter(|_| has_more);
        let (places, rows) = rows.into_iter().unzip();
        Self { rows, next, places }
    }

    /// The page with other rows, in the same number and order.
    #[must_use]
    pub fn with_rows<U>(self, rows: Vec<U>) -> Page<U> {
        Page { rows, next: self.next, places: self.places }
    }

    /// The page with other views of its rows.
    #[must_use]
    pub fn map<U>(self, view: impl FnMut(T) -> U) -> Page<U> {
        let Self { rows, next, places } = self;
        Page { rows: rows.into_iter().map(view).collect(), next, places }
    }

    /// The page with the views of those rows that have one.
    #[must_use]
    pub fn filter_map<U>(self, mut view: impl FnMut(T) -> Option<U>) -> Page<U> {
        let Self { rows, next, places } = self;
        let rows = places.into_iter().zip(rows);
        let rows = rows.filter_map(|(place, row)| view(row).map(|row| (place, row)));
        let (places, rows) = rows.unzip();
        Page { rows, next, places }
    }

    /// The page up to its last row that fits: it ends early before its sizes exceed `size_max`, after one row at
    /// least, and the next page begins with the row that did not fit.
    #[must_use]
    pub fn within(mut self, size_max: usize, mut size: impl FnMut(&T) -> usize) -> Self {
        let mut whole: usize = 0;
        let fits = self.rows.iter().take_while(|row| {
            whole = whole.saturating_add(size(row));
            whole <= size_max
        });
        let kept = fits.count().max(1);
        if kept < self.rows.len() {
            self.next = self.places.get(kept.saturating_sub(1)).copied();
            self.rows.truncate(kept);
            self.places.truncate(kept);
        }
        self
    }
}

/// A span of time, open on a side without a bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Period {
    /// First moment of the period.
    pub from: Option<Timestamp>,
    /// The first moment after it.
    pub to: Option<Timestamp>,
}

impl Period {
    /// First moment and the one after the last; the ends of time if it has none. No row is ever written in the
    /// last moment of all.
    #[must_use]
    pub fn bounds(self) -> (i64, i64) {
        let from = self.from.map_or(i64::MIN, Timestamp::as_micros);
        (from, self.to.map_or(i64::MAX, Timestamp::as_micros))
    }
}

/// A credential that is in force, without what its bearer is checked by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LiveCredential {
    /// The public half of the credential.
    pub id: CredentialId,
    /// The API key that it belongs to.
    pub api_key: ApiKeyId,
    /// The server secret that it was made with.
    pub server_secret: ServerSecretId,
    /// The moment when it was made.
    pub created_at: Timestamp,
    /// End of the credential, as a rotation sets it; its API key may end before.
    pub ends_at: Option<Timestamp>,
}

/// Filter of a list of wallets. All parts of it apply.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct WalletFilter {
    /// Name of the wallet, which is unique.
    pub name: Option<String>,
    /// Id that an outer system has for it, which is unique.
    pub external_id: Option<String>,
    /// State of all wallets in the list.
    pub state: Option<WalletState>,
    /// Least amount that is available.
    pub available_from: Option<Micros>,
    /// First amount that is more than what is available.
    pub available_below: Option<Micros>,
    /// True for those alone that are below their own threshold, and open.
    pub runs_low: bool,
}

impl WalletFilter {
    /// True for a wallet that is in the list.
    #[must_use]
    pub fn admits(&self, record: &WalletRecord) -> bool {
        let wallet = &record.wallet;
        self.name.as_ref().is_none_or(|name| *name == wallet.name)
            && self.external_id.as_ref().is_none_or(|id| record.external_id.as_ref() == Some(id))
            && self.state.is_none_or(|state| state == record.state())
            && self.available_from.is_none_or(|from| wallet.available >= from)
            && self.available_below.is_none_or(|below| wallet.available < below)
            && (!self.runs_low || record.runs_low())
    }
}

/// Filter of a list of API keys. All parts of it apply.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ApiKeyFilter {
    /// Name of all keys in the list, which is unique within a wallet.
    pub name: Option<String>,
    /// Wallet of all keys in the list.
    pub wallet: Option<WalletId>,
    /// State of all keys in the list.
    pub state: Option<ApiKeyState>,
    /// Model that all keys in the list may use.
    pub model: Option<PublicModelId>,
}

/// State of an API key, by the database's clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ApiKeyState {
    /// Neither revoked nor past its end.
    InForce,
    /// In force, and suspended: no new run starts for it.
    Suspended,
    /// Past its end, and not revoked.
    Ended,
    /// Ended by hand, for good.
    Revoked,
}

/// An API key with its credentials in force.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApiKeyListing {
    /// The row.
    pub api_key: ApiKey,
    /// Credentials in force, oldest first.
    pub credentials: Vec<LiveCredential>,
}

/// Filter of a list of operations. All parts of it apply.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct OperationFilter {
    /// Operations that the list is of.
    pub scope: Scope,
    /// Wallet of all operations in the list.
    pub wallet: Option<WalletId>,
    /// API key of all operations in the list.
    pub api_key: Option<ApiKeyId>,
    /// Period in which all operations of the list were created. Their numbers are taken to follow their
    /// moments: after the database's clock was set back by more than half a minute, operations of
    /// around that time may be left out.
    pub created: Period,
    /// Model of all operations in the list.
    pub model: Option<PublicModelId>,
    /// Status of all operations in the list.
    pub status: Option<OperationStatus>,
    /// Charges of all operations in the list, which are completed ones then.
    pub charge: ChargeRange,
}

/// Range of charges.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ChargeRange {
    /// The least of them.
    pub from: Option<Micros>,
    /// An amount that all of them are below.
    pub to: Option<Micros>,
}

/// Scope of a list of operations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Scope {
    /// All of them.
    #[default]
    All,
    /// Operations that are leased or recorded.
    Running,
    /// Operations of [`Self::Running`] whose owner may be gone or whose settlement is missing.
    Stale,
}

/// An operation with what its situation depends on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OperationListing {
    /// The row.
    pub operation: Operation,
    /// Name of its API key; missing in a damaged book alone.
    pub api_key_name: Option<String>,
    /// Sum of the refunds of its charge.
    pub refunded: Micros,
    /// Cost of its run that came after its ending.
    pub late_cost: Option<Micros>,
    /// The row of its node's name.
    pub lease: Option<Lease>,
    /// The database's clock.
    pub now: Timestamp,
}

/// Filter of a list of postings. All parts of it apply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PostingFilter {
    /// Postings that the list is of.
    pub list: PostingList,
    /// Wallet of all postings in the list.
    pub wallet: Option<WalletId>,
    /// Operation that all postings in the list are refunds of.
    pub operation: Option<OperationId>,
}

/// Filter of a list of people. All parts of it apply: of a wallet and a role, a person has that role there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PersonFilter {
    /// Wallet in which all people of the list have a role, or are offered one.
    pub wallet: Option<WalletId>,
    /// Role that all people in the list have, or are offered.
    pub role: Option<Role>,
    /// State of all people in the list.
    pub state: Option<PersonState>,
    /// Wallet whose holder reads the list: a person who has accepted no role there is pending for them.
    pub seen_from: Option<WalletId>,
}

/// List of postings, by their kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PostingList {
    /// Postings of every kind.
    All,
    /// Funds that were added.
    Deposits,
    /// Parts of charges that were given back.
    Refunds,
    /// Corrections with a reason.
    Adjustments,
}

impl PostingList {
    /// The kind of its rows; `None` for rows of every kind.
    #[must_use]
    pub const fn kind(self) -> Option<&'static str> {
        match self {
            Self::All => None,
            Self::Deposits => Some("deposit"),
            Self::Refunds => Some("refund"),
            Self::Adjustments => Some("adjustment"),
        }
    }
}

/// A posting with the details beyond its money.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PostingListing {
    /// The money.
    pub posting: Posting,
    /// Details beside it.
    pub details: PostingDetails,
    /// Actor that made it; `None` if the audit log has no row of it.
    pub actor: Option<ActorId>,
    /// Moment at which it was made.
    pub created_at: Timestamp,
}

/// State of an admin key, by the database's clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AdminKeyState {
    /// Neither revoked nor past its end.
    InForce,
    /// Revoked, or past its end.
    Ended,
}

/// Filter of the trail. All parts of it apply.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TrailFilter {
    /// Resource of all rows in the list.
    pub thing: Option<ResourceId>,
    /// Actor of all rows in the list.
    pub actor: Option<ActorId>,
    /// Use case of all rows in the list.
    pub use_case: Option<UseCase>,
}

/// A node's name as a process has taken it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeListing {
    /// The row of the name.
    pub lease: Lease,
    /// Address at which other nodes reach the process, if it has one.
    pub address: Option<String>,
    /// Digest of the settings that the process runs under, once it has published them.
    pub settings: Option<SettingsDigest>,
    /// The database's clock.
    pub now: Timestamp,
    /// Reach of the database's commits now: the same for all.
    pub durability: Durability,
}

impl NodeListing {
    /// True as long as the lease lasts.
    #[must_use]
    pub fn is_alive(&self) -> bool {
        self.lease.ends_at > self.now
    }

    /// True if a live node among these runs under other settings; `None` if this one is gone or has not
    /// published its own.
    #[must_use]
    pub fn settings_differ(&self, nodes: &[Self]) -> Option<bool> {
        let own = self.settings.filter(|_| self.is_alive())?;
        // A node without a digest has not published one yet: no difference is known of it.
        let others = nodes.iter().filter(|node| node.is_alive()).filter_map(|node| node.settings);
        Some(others.into_iter().any(|other| other != own))
    }
}

/// A row of the trail with what is kept beside it for a while.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrailListing {
    /// The row.
    pub row: TrailRow,
    /// Network address of the actor, if there was one and it is still kept.
    pub address: Option<String>,
}

impl PageRequest {
    /// The first page of a list.
    #[must_use]
    pub const fn first(order: Order, limit: u32) -> Self {
        Self { order, after: None, limit }
    }
}

impl OperationFilter {
    /// True if no index leads to the rows: they are few among those that are read.
    #[must_use]
    pub fn is_sparse(&self) -> bool {
        let is_filtered = self.created != Period::default()
            || self.model.is_some()
            || self.status.is_some()
            || self.charge != ChargeRange::default();
        is_filtered && self.scope == Scope::All
    }
}
