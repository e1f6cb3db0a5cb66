//! The principal of a request: who asks, and what for they may.

use holdfast_domain::admin::{ActorId, AdminKey, Authority, Reach, Role, UseCase};
use holdfast_domain::{PersonId, Timestamp, WalletId};

use crate::{AccountsError, Result, ThingKind};

/// Whoever asks, authenticated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Principal {
    /// Identity in the trail.
    pub actor: ActorId,
    /// Role.
    pub role: Role,
    /// Wallets that the role is for.
    pub reach: Reach,
    /// Moment from which the principal is accepted no more, where there is one.
    pub ends_at: Option<Timestamp>,
    /// Network address, where there is one.
    pub address: Option<String>,
}

impl Principal {
    /// The command line beside the database: it may do everything, as whoever has the database can.
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

    /// A person who does what is theirs to do, such as taking what a link gives: no use case is
    /// open to this principal that a role is asked for.
    pub(crate) const fn acting_person(id: PersonId) -> Self {
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

    /// Refuses a thing of a wallet that is out of reach, as if there were no such thing.
    ///
    /// # Errors
    ///
    /// [`AccountsError::NotFound`].
    pub fn reach(&self, wallet: WalletId, kind: ThingKind) -> Result<()> {
        if self.reach.covers(wallet) { Ok(()) } else { Err(AccountsError::NotFound(kind)) }
    }

    /// True where the principal sees what usage cost the operator.
    #[must_use]
    pub const fn sees_costs(&self) -> bool {
        match self.role {
            Role::Owner | Role::Operator | Role::Finance | Role::Auditor => true,
            Role::Support | Role::HolderAdmin | Role::HolderDeveloper | Role::HolderViewer => false,
        }
    }

    /// True where the principal sees routes and nodes, which are the operator's.
    #[must_use]
    pub const fn sees_routes(&self) -> bool {
        !self.role.is_holder()
    }

    /// True if reports have no bounds: of any period and length, and statements on one page.
    #[must_use]
    pub const fn has_unbounded_reports(&self) -> bool {
        matches!(self.actor, ActorId::Local)
    }

    /// Wallet that everything which the principal sees belongs to, where it is one alone.
    #[must_use]
    pub const fn only_wallet(&self) -> Option<WalletId> {
        match self.reach {
            Reach::All => None,
            Reach::Wallet(wallet) => Some(wallet),
        }
    }
}
