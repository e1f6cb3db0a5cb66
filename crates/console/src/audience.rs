//! Audience of a listener: the roles that may sign in there.

use holdfast_domain::admin::Role;

/// Roles that may sign in at a listener.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Audience {
    /// All.
    Everyone,
    /// Roles of the operator; holders of wallets do not sign in at this listener.
    Operators,
    /// Roles of holders of wallets, at a listener of their own.
    Holders,
}

impl Audience {
    /// True if the role may be used here.
    pub(crate) const fn admits(self, role: Role) -> bool {
        match self {
            Self::Everyone => true,
            Self::Operators => !role.is_holder(),
            Self::Holders => role.is_holder(),
        }
    }
}
