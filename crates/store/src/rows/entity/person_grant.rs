//! `person_grants`: what people may.

use holdfast_domain::admin::{ActorId, Authority, PersonGrant, Reach, Role};
use holdfast_domain::{PersonId, Timestamp};

/// A grant and whose it is.
pub(crate) type GrantRow = (PersonId, PersonGrant);

row! {
    "person_grants" as "g", grant: GrantRow;
    listed { #[sea_orm(primary_key)] seq: i64 }
    made {
        person_id: PersonId = grant.0,
        role: Role = grant.1.authority.role,
        wallet_id: Reach = grant.1.authority.reach,
        granted_at: Timestamp = grant.1.granted_at,
        granted_by: ActorId = grant.1.granted_by,
    }
    set {}
    (person_id, PersonGrant { authority: Authority { role, reach: wallet_id }, granted_at, granted_by })
}
