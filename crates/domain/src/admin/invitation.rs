//! Invitations of people to the roles of one wallet: what its holder sees of a person before they accept.

use super::ActorId;
use crate::private::Private;
use crate::{Timestamp, WalletId};

/// First invitation of a person for a wallet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PersonInvitation {
    /// The wallet.
    pub wallet: WalletId,
    /// Name that the invitation gave the person.
    pub name: Option<Private<String>>,
    /// Moment of the invitation.
    pub invited_at: Timestamp,
    /// Actor that made it.
    pub invited_by: ActorId,
}
