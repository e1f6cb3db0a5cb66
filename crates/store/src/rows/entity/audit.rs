//! `audit`: the audit log of administration.

use holdfast_domain::admin::audit::TrailRow;
use holdfast_domain::admin::{ActorId, FieldChange, ResourceId, UseCase};
use holdfast_domain::secret::ServerSecretId;
use holdfast_domain::{CommandKey, Timestamp};

row! {
    "audit" as "a", row: TrailRow;
    listed {}
    made {
        #[sea_orm(primary_key, auto_increment = false)] seq: u64 = row.seq,
        created_at: Timestamp = row.at,
        actor: ActorId = row.actor,
        use_case: UseCase = row.use_case,
        thing_kind: String = row.thing.kind().to_owned(),
        thing_id: [u8; 16] = row.thing.id(),
        request_key: CommandKey = row.request_key,
        digest: [u8; 32] = row.digest,
        changes: Vec<FieldChange> = row.changes,
        reason: Option<String> = row.reason,
        server_secret: ServerSecretId = row.server_secret,
        mac: [u8; 32] = row.mac,
    }
    set {}
    {
        let thing = ResourceId::from_row(&thing_kind, thing_id).ok_or(BadRow::Value(5))?;
        let at = created_at;
        TrailRow {
            seq, at, actor, use_case, thing, request_key, digest, changes, reason, server_secret, mac
        }
    }
}

/// Changes as a row holds them: a list of `[field, before, after]`.
impl Cell for Vec<FieldChange> {
    type Raw = String;

    fn from_raw(raw: String) -> Option<Self> {
        let changes: Vec<(String, Option<String>, Option<String>)> =
            serde_json::from_str(&raw).ok()?;
        let change = |(field, before, after)| FieldChange { field, before, after };
        Some(changes.into_iter().map(change).collect())
    }

    fn to_raw(&self) -> String {
        let changes: Vec<_> = self.iter().map(|it| (&it.field, &it.before, &it.after)).collect();
        serde_json::json!(changes).to_string()
    }
}
