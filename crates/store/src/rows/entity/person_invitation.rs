//! `person_invitations`: the first invitation of each person for each wallet.

use holdfast_domain::admin::{ActorId, PersonInvitation};
use holdfast_domain::private::Private;
use holdfast_domain::{PersonId, Timestamp, WalletId};

row! {
    "person_invitations" as "i", row: (PersonId, PersonInvitation);
    listed {}
    made {
        #[sea_orm(primary_key, auto_increment = false)] person_id: PersonId = row.0,
        #[sea_orm(primary_key, auto_increment = false)] wallet_id: WalletId = row.1.wallet,
        name: Option<Private<String>> = row.1.name,
        invited_at: Timestamp = row.1.invited_at,
        invited_by: ActorId = row.1.invited_by,
    }
    set {}
    (person_id, PersonInvitation { wallet: wallet_id, name, invited_at, invited_by })
}
