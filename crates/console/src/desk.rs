//! The desk: what every handler has at hand, and where the console is served to whom.

use holdfast_accounts::Accounts;
use holdfast_admin::AdminOptions;
use holdfast_domain::account::Role;

/// What every handler has at hand.
#[derive(Debug, Clone)]
pub(crate) struct Desk {
    pub(crate) accounts: Accounts,
}

/// Options of the console.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConsoleOptions {
    /// Where it is served, and under which name.
    pub address: AdminOptions,
    /// Whoever may sign in there.
    pub audience: Audience,
}

/// Roles that may sign in at a listener.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Audience {
    /// All.
    Everyone,
    /// Those of whoever runs the service; holders of wallets have no business at this listener.
    Operators,
}

impl Audience {
    /// True where the role may be used here.
    pub(crate) const fn admits(self, role: Role) -> bool {
        match self {
            Self::Everyone => true,
            Self::Operators => !role.is_holder(),
        }
    }
}
