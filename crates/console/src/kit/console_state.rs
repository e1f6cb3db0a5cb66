//! State of all handlers, and the listener and tenancy of the console.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use holdfast_accounts::{Accounts, InFlight, Reference, StatementPage, UsageReport};
use holdfast_admin::AdminOptions;
use holdfast_domain::admin::listing::{PageRequest, Period};
use holdfast_domain::admin::report::{DailyStatement, UsageQuery};
use holdfast_domain::secret::SessionToken;
use holdfast_net::UnknownTextLimiter;
use http::HeaderMap;
use tokio::time::Instant;

use crate::audience::Audience;
use crate::cookie;
use crate::failure::Failure;
use crate::kit::Visitor;
use crate::kit::counting::{CountLimits, Counts, ReportView};
use crate::relay::ApiRelay;
use crate::request_origin::RequestOrigin;

/// State of all handlers.
#[derive(Debug, Clone)]
pub(crate) struct ConsoleState {
    pub(crate) accounts: Accounts,
    pub(crate) options: Arc<ConsoleOptions>,
    pub(crate) usage: Counts<UsageQuery, Arc<UsageReport>>,
    statements: Counts<StatementQuery, Arc<StatementView>>,
    /// Answers of the playground that are being written, by their reader.
    pub(crate) relays: InFlight,
    /// Sessions that were let in or begun here, and those that had ended.
    pub(crate) sessions: Arc<UnknownTextLimiter>,
}

impl ConsoleState {
    pub(crate) fn new(accounts: Accounts, options: ConsoleOptions) -> Self {
        let (reports, relays) = (CountLimits::new(), InFlight::of_relays());
        let (usage, statements) = (Counts::new(reports.clone()), Counts::new(reports));
        let (options, sessions) = (Arc::new(options), Arc::default());
        Self { accounts, options, usage, statements, relays, sessions }
    }

    /// Has the browser show this session from now on, and the guard look it up however many forged ones come from
    /// its address.
    pub(crate) fn begin_session(
        &self,
        headers: &mut HeaderMap,
        request_origin: &RequestOrigin,
        token: &SessionToken,
    ) {
        // Known before its first request, which forged sessions of the same address could else
        // have refused.
        self.sessions.on_found(&token.expose());
        cookie::begin(headers, request_origin.jar(), token);
    }

    /// Moment up to which a page waits for all its reports, if it begins to read them now.
    pub(crate) fn deadline(&self) -> Instant {
        Instant::now() + self.options.patience
    }

    /// A report of usage, or that it is being counted.
    pub(crate) async fn usage(
        &self,
        visitor: &Visitor,
        query: UsageQuery,
        until: Instant,
    ) -> Result<ReportView<Arc<UsageReport>>, Failure> {
        let (accounts, principal) = (self.accounts.clone(), visitor.principal.clone());
        let asked = query.clone();
        let count = || async move {
            // Before the rows: a report has all that was committed by its moment.
            let at = accounts.clock().await?;
            Ok((Arc::new(accounts.usage(&principal, query).await?), at))
        };
        self.usage.read(&visitor.principal, &asked, until, count).await
    }

    /// A wallet's statement, or that it is being counted.
    pub(crate) async fn statement(
        &self,
        visitor: &Visitor,
        query: StatementQuery,
    ) -> Result<ReportView<Arc<StatementView>>, Failure> {
        let (accounts, principal) = (self.accounts.clone(), visitor.principal.clone());
        let asked = query.clone();
        let count = || async move {
            let at = accounts.clock().await?;
            let StatementQuery { wallet, period, page } = query;
            let statement = match page {
                None => StatementView::Days(
                    accounts.daily_statement(&principal, &wallet, period).await?,
                ),
                Some(page) => StatementView::Entries(
                    accounts.statement(&principal, &wallet, period, page).await?,
                ),
            };
            Ok((Arc::new(statement), at))
        };
        self.statements.read(&visitor.principal, &asked, self.deadline(), count).await
    }
}

/// Query of a wallet's statement: of a page of its entries, or by day.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct StatementQuery {
    pub(crate) wallet: Reference,
    pub(crate) period: Period,
    pub(crate) page: Option<PageRequest>,
}

/// A wallet's statement.
#[derive(Debug, Clone)]
pub(crate) enum StatementView {
    Days(DailyStatement),
    Entries(StatementPage),
}

/// Operator's brand on holders' pages.
#[derive(Debug, Clone, Default)]
pub struct Brand {
    /// Name in the place of Holdfast.
    pub name: Option<String>,
    /// Logo beside the name.
    pub logo: Option<Logo>,
    /// Address of the operator's support.
    pub support_url: Option<String>,
    /// Address of the operator's payment page.
    pub top_up_url: Option<String>,
}

/// A picture, as it is served.
#[derive(Debug, Clone)]
pub struct Logo {
    /// Value of `Content-Type`.
    pub media_type: &'static str,
    /// The file.
    pub bytes: Bytes,
}

/// Options of the console.
#[derive(Debug, Clone)]
pub struct ConsoleOptions {
    /// Address of its listener, and the name that it has there.
    pub address: AdminOptions,
    /// Roles that may sign in there.
    pub audience: Audience,
    /// Base URL of the public API, with its `/v1`.
    pub base_url: String,
    /// Way to the public API for the playground; unset: there is none.
    pub playground: Option<Arc<dyn ApiRelay>>,
    /// Time for which a page waits for all its reports before it is shown without.
    pub patience: Duration,
    /// Operator's brand on holders' pages.
    pub brand: Brand,
}

impl ConsoleOptions {
    /// Patience of a gateway: a page has as much time again for all else on it.
    pub const PATIENCE: Duration = Duration::from_millis(150);
}
