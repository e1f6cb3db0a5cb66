//! The desk: what every handler has at hand, and where the console is served to whom.

use std::sync::Arc;

use holdfast_accounts::Accounts;
use holdfast_admin::{AdminOptions, InFlight, Place};
use holdfast_domain::account::Role;
use http::StatusCode;

use crate::failure::Failure;
use crate::relay::ApiRelay;
use crate::visitor::Visitor;

/// What every handler has at hand.
#[derive(Debug, Clone)]
pub(crate) struct Desk {
    pub(crate) accounts: Accounts,
    pub(crate) options: Arc<ConsoleOptions>,
    /// Reports that are being read, by their reader.
    reports: InFlight,
    /// Answers of the playground that are being written, by their reader.
    pub(crate) relays: InFlight,
}

impl Desk {
    pub(crate) fn new(accounts: Accounts, options: ConsoleOptions) -> Self {
        let (reports, relays) = (InFlight::of_reports(), InFlight::of_relays());
        Self { accounts, options: Arc::new(options), reports, relays }
    }

    /// A place for a report, until it is dropped: the database has few readers for them.
    pub(crate) fn begin_report(&self, visitor: &Visitor) -> Result<Place, Failure> {
        let message =
            "You have a report on the way, and have one at once. Load this page again in a moment.";
        let busy = || Failure::new(StatusCode::TOO_MANY_REQUESTS, message);
        self.reports.enter(visitor.principal.actor).ok_or_else(busy)
    }
}

/// Options of the console.
#[derive(Debug, Clone)]
pub struct ConsoleOptions {
    /// Where it is served, and under which name.
    pub address: AdminOptions,
    /// Whoever may sign in there.
    pub audience: Audience,
    /// Where the public API begins for callers, with its `/v1`.
    pub base_url: String,
    /// Way to the public API for the playground; unset: there is none.
    pub playground: Option<Arc<dyn ApiRelay>>,
}

/// Roles that may sign in at a listener.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Audience {
    /// All.
    Everyone,
    /// Those of whoever runs the service; holders of wallets have no business at this listener.
    Operators,
    /// Those of holders of wallets, at a listener of their own.
    Holders,
}

impl Audience {
    /// True where the role may be used here.
    pub(crate) const fn admits(self, role: Role) -> bool {
        match self {
            Self::Everyone => true,
            Self::Operators => !role.is_holder(),
            Self::Holders => role.is_holder(),
        }
    }
}
