//! Reports: usage, and statements of wallets.
//!
//! What a role may not see is refused or marked here, and left out by every door: support and holders
//! see no costs, and holders no routes, which are the operator's.
//!
//! A report is bounded: whole hours, which are summed beforehand, and [`ROWS_MAX`] rows. A statement
//! comes in pages from its end. A page leads on with the number of its first entry. Entries that were
//! written without one come first in the ledger, and a page leads on with their moment: all of one
//! moment are on one page, so that such a page may be longer than its limit. Neither bound applies to the actor
//! `local`, with direct database access: its first page has as many entries as it requests.

use holdfast_domain::admin::listing::{PageCursor, PageRequest, Period};
use holdfast_domain::admin::report::{
    DailyStatement, EntryPlace, GroupBy, Grouping, Statement, UsageError, UsageFilter, UsageQuery,
    UsageRow,
};
use holdfast_domain::admin::{UseCase, WalletRecord};
use holdfast_domain::limits::Counter;
use holdfast_domain::{Micros, Timestamp};

use crate::{Accounts, AccountsError, ApiKeyRecord, Principal, Reference, ResourceKind, Result};

/// Most rows of a report of usage.
const ROWS_MAX: u32 = 20_000;
/// Most entries that are read for one page of a statement.
const ENTRIES_MAX: u32 = 20_000;
/// Most movements of a statement by day with the references of its payments: more of them are added up by day.
const MOVEMENTS_MAX: u32 = 90;
const HOUR_MICROS: i64 = 3_600_000_000;

/// A report of usage, for the calling principal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UsageReport {
    /// The sums, by group and currency.
    pub rows: Vec<UsageRow>,
    /// False if the principal may not see the operator's cost of usage.
    pub shows_costs: bool,
}

/// A page of a wallet's statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StatementPage {
    /// The wallet.
    pub wallet: WalletRecord,
    /// The entries of the page, oldest first, with the balances before and after them.
    pub statement: Statement,
    /// Cursor of the page before it in time, if the period has earlier entries.
    pub next: Option<PageCursor>,
}

impl Accounts {
    /// Usage that finished in a period, summed by groups.
    pub async fn usage(&self, principal: &Principal, query: UsageQuery) -> Result<UsageReport> {
        let mut query = Self::judged_usage(principal, query)?;
        let shows_costs = principal.sees_costs();
        if !principal.has_unbounded_reports() {
            query.rows_max = Some(ROWS_MAX);
        }
        let wallet = query.filter.wallet;
        if wallet.is_some_and(|id| principal.reach(id, ResourceKind::Wallet).is_err()) {
            // An empty report, as of a wallet without usage: an error would reveal that the wallet
            // exists.
            return Ok(UsageReport { rows: Vec::new(), shows_costs });
        }
        let rows = self.book.usage(query).await.map_err(|error| match error {
            UsageError::TooManyRows(most) => AccountsError::Invalid {
                field: "by",
                message: format!(
                    "the report has more than {most} rows: choose a shorter period, longer intervals, fewer \
                     groups, or one wallet, API key or model, or export it as CSV or JSON lines"
                ),
            },
            UsageError::Unavailable(error) => error.into(),
        })?;
        self.note_read(principal, UseCase::UsageRead, wallet).await?;
        Ok(UsageReport { rows, shows_costs })
    }

    /// The query of a report that the principal may read, of its own wallet if it has one.
    pub(crate) fn judged_usage(principal: &Principal, mut query: UsageQuery) -> Result<UsageQuery> {
        principal.authorize(UseCase::UsageRead)?;
        let by_route = query.by.keys().any(|by| by == GroupBy::Route);
        if !principal.sees_routes() && (by_route || query.filter.route.is_some()) {
            let field = if by_route { "by" } else { "route" };
            let message = "routes are the operator's: leave them out".to_owned();
            return Err(AccountsError::Invalid { field, message });
        }
        if !principal.has_unbounded_reports() {
            refuse_parts_of_hours(query.period)?;
        }
        query.filter.wallet = query.filter.wallet.or(principal.only_wallet());
        Ok(query)
    }

    /// Exposure of this month, by the database's clock, that an API key has brought about; `None` for a
    /// principal that sees no costs.
    pub async fn exposure(
        &self,
        principal: &Principal,
        ApiKeyRecord { api_key, counters }: &ApiKeyRecord,
    ) -> Result<Option<Micros>> {
        if !principal.sees_costs() {
            return Ok(None);
        }
        let (month, now) = (Counter::SpendMonth, counters.now);
        let query = UsageQuery {
            by: Grouping::by(GroupBy::Month),
            filter: UsageFilter {
                wallet: Some(api_key.wallet),
                api_key: Some(api_key.id),
                ..UsageFilter::default()
            },
            period: Period { from: Some(month.window(now)), to: month.window_end(now) },
            rows_max: None,
        };
        // By the report and not by a sum of its own: the figures of the key's page and of the
        // report cannot disagree.
        let report = self.usage(principal, query).await?;
        // A wallet has one currency, so a month of it is one row.
        Ok(Some(report.rows.first().map_or(Micros::ZERO, |row| row.totals.exposure)))
    }

    /// The statement of a wallet over a period by day: charges of a day in one sum, and payments with a reference by
    /// themselves if they are few.
    pub async fn daily_statement(
        &self,
        principal: &Principal,
        wallet: &Reference,
        period: Period,
    ) -> Result<DailyStatement> {
        principal.authorize(UseCase::StatementRead)?;
        let wallet = self.reachable_wallet(principal, wallet).await?.wallet.id;
        self.note_read(principal, UseCase::StatementRead, Some(wallet)).await?;
        Ok(self.book.daily_statement(wallet, period, MOVEMENTS_MAX).await?)
    }

    /// The statement of a wallet over a period: the last entries of it, or those before a page.
    pub async fn statement(
        &self,
        principal: &Principal,
        wallet: &Reference,
        period: Period,
        page: PageRequest,
    ) -> Result<StatementPage> {
        principal.authorize(UseCase::StatementRead)?;
        let wallet = self.reachable_wallet(principal, wallet).await?;
        let id = wallet.wallet.id;
        self.note_read(principal, UseCase::StatementRead, Some(id)).await?;
        if principal.has_unbounded_reports() && page.after.is_none() {
            let statement = self.book.statement(id, period, page.limit).await?;
            return Ok(StatementPage { wallet, statement, next: None });
        }
        let before = page.after.map(place);
        let mut limit = page.limit.clamp(1, ENTRIES_MAX);
        loop {
            // One entry more than is shown: it decides if the first moment of the page is whole.
            let read = limit.saturating_add(1);
            let statement = match before {
                Some(before) => self.book.statement_before(id, period, before, read).await?,
                None => self.book.statement(id, period, read).await?,
            };
            if let Some(statement) = from_whole_place(statement, limit) {
                let first = statement.entries.first().map(|entry| cursor(entry.place));
                let next = first.filter(|_| statement.omitted > 0);
                return Ok(StatementPage { wallet, statement, next });
            }
            // More entries of one moment than the page has room for: a batch made them together.
            if limit >= ENTRIES_MAX {
                return Err(AccountsError::Invalid {
                    field: "limit",
                    message: format!("more than {ENTRIES_MAX} entries are of one moment"),
                });
            }
            limit = limit.saturating_mul(4).min(ENTRIES_MAX);
        }
    }
}

/// Cursor of the page before an entry: a moment, or a number below zero.
fn cursor(place: EntryPlace) -> PageCursor {
    // Moments are positive, so the sign separates the two kinds: a cursor has room for one number.
    PageCursor(match place {
        EntryPlace::Moment(at) => at.as_micros(),
        EntryPlace::Number(number) => number.saturating_neg(),
    })
}

/// Reads a [`cursor`].
fn place(PageCursor(at): PageCursor) -> EntryPlace {
    if at < 0 {
        EntryPlace::Number(at.saturating_neg())
    } else {
        EntryPlace::Moment(Timestamp::from_micros(at))
    }
}

/// A statement of more entries than `limit` without those of its first place, of which earlier ones may have
/// been left out; `None` if no entry would be left.
fn from_whole_place(mut statement: Statement, limit: u32) -> Option<Statement> {
    if u32::try_from(statement.entries.len()).is_ok_and(|count| count <= limit) {
        return Some(statement);
    }
    let cut = statement.entries.first()?.place;
    let count = statement.entries.iter().take_while(|entry| entry.place == cut).count();
    if count == statement.entries.len() {
        return None;
    }
    for entry in statement.entries.drain(..count) {
        // The balances of a shortened page still join: its opening is the balance after the last
        // entry cut off.
        statement.opening = entry.after;
        statement.omitted = statement.omitted.saturating_add(1);
    }
    Some(statement)
}

/// Refuses bounds within an hour: what is not summed by the hour is found among all operations.
fn refuse_parts_of_hours(Period { from, to }: Period) -> Result<()> {
    for (field, bound) in [("from", from), ("to", to)] {
        if bound.is_some_and(|at| at.as_micros().rem_euclid(HOUR_MICROS) != 0) {
            let message =
                "a report is of whole hours, in UTC: send the first moment of one".to_owned();
            return Err(AccountsError::Invalid { field, message });
        }
    }
    if from.zip(to).is_some_and(|(from, to)| from >= to) {
        let message = "the end is not after the beginning, and is not included".to_owned();
        return Err(AccountsError::Invalid { field: "to", message });
    }
    Ok(())
}
