//! The principal of a request: its actor and its rights.

use holdfast_domain::admin::{ActorId, AdminKey, Authority, Reach, Role, UseCase};
use holdfast_domain::{PersonId, Timestamp, WalletId};

use crate::{AccountsError, ResourceKind, Result};

/// The authenticated caller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Principal {
    /// Identity in the trail.
    pub actor: ActorId,
    /// Role.
    pub role: Role,
    /// Wallets that the role is for.
    pub reach: Reach,
    /// Moment from which the principal is accepted no more, if there is one.
    pub ends_at: Option<Timestamp>,
    /// Network address, if there is one.
    pub address: Option<String>,
}

impl Principal {
    /// The command line with direct database access: it may do everything, as may any process with that access.
    #[must_use]
    pub const fn local() -> Self {
        let (role, reach) = (Role::Owner, Reach::All);
        Self { actor: ActorId::Local, role, reach, ends_at: None, address: None }
    }

    /// The bearer of an admin key.
    #[must_use]
    pub const fn of_admin_key(key: &AdminKey, address: Option<String>) -> Self {
        let (actor, role, reach) = (ActorId::AdminKey(key.id), key.role, key.reach);
        Self { actor, role, reach, ends_at: key.ends_at, address }
    }

    /// A person in a session, with the authority that is in use.
    #[must_use]
    pub const fn of_person(id: PersonId, authority: Authority, address: Option<String>) -> Self {
        let Authority { role, reach } = authority;
        Self { actor: ActorId::Person(id), role, reach, ends_at: None, address }
    }

    /// A person who acts on their own behalf, such as by taking up a link: no use case that requires a role is
    /// open to this principal.
    pub(crate) const fn acting_person(id: PersonId) -> Self {
        // The narrowest role, because none is used: the link is the right, and the transaction
        // judges that.
        let (actor, role, reach) = (ActorId::Person(id), Role::HolderViewer, Reach::All);
        Self { actor, role, reach, ends_at: None, address: None }
    }

    /// Authority of the principal: its role, and the wallets that this is for.
    #[must_use]
    pub const fn authority(&self) -> Authority {
        Authority { role: self.role, reach: self.reach }
    }

    /// Refuses a use case that the role has not.
    ///
    /// # Errors
    ///
    /// [`AccountsError::Forbidden`], which names the use case.
    pub fn authorize(&self, use_case: UseCase) -> Result<()> {
        if self.role.may(use_case) {
            Ok(())
        } else {
            Err(AccountsError::Forbidden { use_case, role: self.role })
        }
    }

    /// Refuses a resource of a wallet that is out of reach, as if it did not exist.
    ///
    /// # Errors
    ///
    /// [`AccountsError::NotFound`].
    pub fn reach(&self, wallet: WalletId, kind: ResourceKind) -> Result<()> {
        if self.reach.covers(wallet) { Ok(()) } else { Err(AccountsError::NotFound(kind)) }
    }

    /// True if the principal sees the operator's cost of usage.
    #[must_use]
    pub const fn sees_costs(&self) -> bool {
        match self.role {
            Role::Owner | Role::Operator | Role::Finance | Role::Auditor => true,
            Role::Support | Role::HolderAdmin | Role::HolderDeveloper | Role::HolderViewer => false,
        }
    }

    /// True if the principal sees routes and nodes, which are the operator's.
    #[must_use]
    pub const fn sees_routes(&self) -> bool {
        !self.role.is_holder()
    }

    /// True if reports have no bounds: of any period and length, and statements on one page.
    #[must_use]
    pub const fn has_unbounded_reports(&self) -> bool {
        matches!(self.actor, ActorId::Local)
    }

    /// The only wallet whose resources the principal sees, if there is such a one.
    #[must_use]
    pub const fn only_wallet(&self) -> Option<WalletId> {
        match self.reach {
            Reach::All => None,
            Reach::Wallet(wallet) => Some(wallet),
        }
    }
}
