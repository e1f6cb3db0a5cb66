//! `admin_keys`: who administers over the network.

use holdfast_domain::admin::{ActorId, AdminKey, Reach, Role};
use holdfast_domain::{AdminKeyId, Timestamp};

row! {
    "admin_keys" as "a", key: AdminKey;
    listed { #[sea_orm(primary_key)] seq: i64 }
    made {
        id: AdminKeyId = key.id,
        name: String = key.name,
        role: Role = key.role,
        wallet_id: Reach = key.reach,
        ends_at: Option<Timestamp> = key.ends_at,
        created_at: Timestamp = key.created_at,
        created_by: ActorId = key.created_by,
    }
    set { revoked_at: Option<Timestamp> = key.revoked_at }
    AdminKey { id, name, role, reach: wallet_id, ends_at, created_at, created_by, revoked_at }
}
