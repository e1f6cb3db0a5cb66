//! The audit log: a row for each resource that a command changed, chained by a MAC.
//!
//! ```text
//! mac(n) = BLAKE3 keyed by K("audit", server secret), over (row n ‖ mac(n − 1))
//! ```
//!
//! Rows are numbered by the head: no gaps, in the order of commits. With only the database an attacker can
//! change no row unseen, and drop none but the last ones, with the head set back. With the server secret too
//! they can write the whole log anew. A head that was printed before ([`TrailHead`]) shows both.
//!
//! A row has the actor, the action, its resource, its request, the changes and the reason. Never in it: a
//! secret, a network address (kept apart from it, for a while), the name or address of a person.
//!
//! ```
//! use holdfast_domain::admin::audit::{TrailHead, TrailRow};
//! use holdfast_domain::admin::{
//!     AccountAction, AccountCommand, ActorId, RequestBinding, ResourceId, WalletAction, WalletBounds,
//! };
//! use holdfast_testkit::sample;
//!
//! let suspend = AccountCommand {
//!     actor: ActorId::Local,
//!     address: None,
//!     request: RequestBinding { key: sample::fresh(), digest: [1; 32], canonical: None },
//!     reason: Some("unpaid".to_owned()),
//!     bounds: WalletBounds::DEFAULT,
//!     is_after_restore: false,
//!     action: AccountAction::Wallet(WalletAction::Suspend(sample::WALLET)),
//! };
//! let (secret, changed) = (sample::secret(), (ResourceId::Wallet(sample::WALLET), Vec::new()));
//! let row = TrailRow::after(TrailHead::EMPTY, &suspend, changed, sample::NOW, &secret);
//! assert!(row.follows(TrailHead::EMPTY, &secret.trail_key()));
//!
//! // A row that was altered no longer follows the one before it.
//! let altered = TrailRow { reason: None, ..row };
//! assert!(!altered.follows(TrailHead::EMPTY, &secret.trail_key()));
//! ```

use std::fmt;
use std::str::FromStr;

use crate::admin::{
    AccountCommand, ActorId, CanonicalDigest, FieldChange, RequestBinding, ResourceId, UseCase,
};
use crate::secret::{ServerSecret, ServerSecretId, TrailKey};
use crate::{CommandKey, Timestamp};

/// Head of the trail: its last row, by number and MAC. Printed as `seq:mac`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TrailHead {
    /// Number of the last row; 0 before the first.
    pub seq: u64,
    /// MAC of that row; zeros before the first.
    pub mac: [u8; 32],
}

impl TrailHead {
    /// Head of a trail without rows.
    pub const EMPTY: Self = Self { seq: 0, mac: [0; 32] };
}

impl fmt::Display for TrailHead {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:", self.seq)?;
        self.mac.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// A text that is no head of a trail.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a head is <number>:<64 hexadecimal digits>")]
pub struct BadTrailHead;

impl FromStr for TrailHead {
    type Err = BadTrailHead;

    fn from_str(text: &str) -> Result<Self, BadTrailHead> {
        let (seq, mac) = text.split_once(':').ok_or(BadTrailHead)?;
        let seq = seq.parse().ok().ok_or(BadTrailHead)?;
        let mac = blake3::Hash::from_hex(mac).ok().ok_or(BadTrailHead)?;
        Ok(Self { seq, mac: *mac.as_bytes() })
    }
}

/// Row of the trail.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrailRow {
    /// Number, one more than that of the row before.
    pub seq: u64,
    /// Moment of the command.
    pub at: Timestamp,
    /// Actor that did it.
    pub actor: ActorId,
    /// Use case that was done.
    pub use_case: UseCase,
    /// Resource that it was done to.
    pub thing: ResourceId,
    /// Request key of the command.
    pub request_key: CommandKey,
    /// Digest of the request.
    pub digest: [u8; 32],
    /// Fields that changed.
    pub changes: Vec<FieldChange>,
    /// Reason that the actor gave.
    pub reason: Option<String>,
    /// Server secret that the MAC was made with.
    pub server_secret: ServerSecretId,
    /// MAC over the row and the MAC of the row before.
    pub mac: [u8; 32],
}

impl TrailRow {
    /// The row that follows a head.
    #[must_use]
    pub fn after(
        head: TrailHead,
        command: &AccountCommand,
        (thing, changes): (ResourceId, Vec<FieldChange>),
        at: Timestamp,
        secret: &ServerSecret,
    ) -> Self {
        let mut row = Self {
            seq: head.seq.saturating_add(1),
            at,
            actor: command.actor,
            use_case: command.action.row().0,
            thing,
            request_key: command.request.key,
            digest: command.request.digest,
            changes,
            reason: command.reason.clone(),
            server_secret: secret.id(),
            mac: [0; 32],
        };
        row.mac = row.expected_mac(head, &secret.trail_key());
        row
    }

    /// The head that this row is.
    #[must_use]
    pub const fn head(&self) -> TrailHead {
        TrailHead { seq: self.seq, mac: self.mac }
    }

    /// True if the row follows this head, and was written with the key.
    #[must_use]
    pub fn follows(&self, head: TrailHead, key: &TrailKey) -> bool {
        head.seq.checked_add(1) == Some(self.seq) && self.expected_mac(head, key) == self.mac
    }

    fn expected_mac(&self, head: TrailHead, key: &TrailKey) -> [u8; 32] {
        let mut bytes = Vec::new();
        let actor = self.actor.to_string();
        let parts: [&[u8]; 11] = [
            &head.mac,
            &self.seq.to_be_bytes(),
            &self.at.as_micros().to_be_bytes(),
            actor.as_bytes(),
            self.use_case.label().as_bytes(),
            self.thing.kind().as_bytes(),
            &self.thing.id(),
            &self.request_key.to_bytes(),
            &self.digest,
            &self.server_secret.to_bytes(),
            &u64::try_from(self.changes.len()).unwrap_or(u64::MAX).to_be_bytes(),
        ];
        parts.iter().for_each(|part| push(&mut bytes, Some(part)));
        push(&mut bytes, self.reason.as_deref().map(str::as_bytes));
        for change in &self.changes {
            push(&mut bytes, Some(change.field.as_bytes()));
            push(&mut bytes, change.before.as_deref().map(str::as_bytes));
            push(&mut bytes, change.after.as_deref().map(str::as_bytes));
        }
        *blake3::keyed_hash(key.expose(), &bytes).as_bytes()
    }
}

/// MAC of a canonical digest with the request that it is of: [`TrailRow`] has the digest of every version only, which
/// all nodes compute alike. A digest that was changed by hand would answer another request than it was bound to.
#[must_use]
pub fn canonical_mac(
    actor: ActorId,
    request: &RequestBinding,
    canonical: CanonicalDigest,
    key: &TrailKey,
) -> [u8; 32] {
    let mut bytes = Vec::new();
    let actor = actor.to_string();
    // No row begins like this: its first part has 32 bytes.
    let parts: [&[u8]; 5] = [
        b"request",
        actor.as_bytes(),
        &request.key.to_bytes(),
        &request.digest,
        &canonical.to_bytes(),
    ];
    parts.iter().for_each(|part| push(&mut bytes, Some(part)));
    *blake3::keyed_hash(key.expose(), &bytes).as_bytes()
}

/// Appends a part behind its length, so that no two lists of parts are spelled alike; an empty part and a
/// missing one differ.
fn push(bytes: &mut Vec<u8>, part: Option<&[u8]>) {
    let length = part.map_or(u64::MAX, |part| u64::try_from(part.len()).unwrap_or(u64::MAX));
    bytes.extend_from_slice(&length.to_be_bytes());
    bytes.extend_from_slice(part.unwrap_or_default());
}

/// Attempts of one actor at a use case that its role has not, or not to that extent. They are counted outside
/// the chain: no change was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RefusedAttempts {
    /// Actor of the attempts.
    pub actor: ActorId,
    /// Use case that it attempted.
    pub use_case: UseCase,
    /// Number of attempts.
    pub attempts: u64,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::admin::{AccountAction, RequestBinding, WalletAction};
    use crate::{WalletId, secret::ServerSecret};

    fn secret() -> ServerSecret {
        ServerSecret::new(b"a secret of the operator").unwrap()
    }

    fn row(head: TrailHead) -> TrailRow {
        let wallet = WalletId::from_u128(1);
        let command = AccountCommand {
            is_after_restore: false,
            bounds: crate::admin::WalletBounds::DEFAULT,
            actor: ActorId::Local,
            address: Some("192.0.2.1".to_owned()),
            request: RequestBinding {
                key: CommandKey::from_u128(2),
                digest: [3; 32],
                canonical: None,
            },
            reason: Some("has not paid".to_owned()),
            action: AccountAction::Wallet(WalletAction::Suspend(wallet)),
        };
        let changes = vec![FieldChange::set("suspended_at", 7)];
        let entry = (ResourceId::Wallet(wallet), changes);
        TrailRow::after(head, &command, entry, Timestamp::from_micros(7), &secret())
    }

    #[test]
    fn a_trail_is_numbered_without_gaps_and_each_row_follows_the_one_before() {
        let first = row(TrailHead::EMPTY);
        let second = row(first.head());
        let key = secret().trail_key();
        assert_eq!((first.seq, second.seq), (1, 2));
        assert!(first.follows(TrailHead::EMPTY, &key) && second.follows(first.head(), &key));
        assert!(!second.follows(TrailHead::EMPTY, &key), "a row was dropped");
        let other = ServerSecret::new(b"another secret, as long").unwrap();
        assert!(!first.follows(TrailHead::EMPTY, &other.trail_key()));
    }

    #[test]
    fn no_part_of_a_row_changes_unseen() {
        let good = row(TrailHead::EMPTY);
        let change = |edit: fn(&mut TrailRow)| {
            let mut bad = good.clone();
            edit(&mut bad);
            bad
        };
        let edits: [fn(&mut TrailRow); 9] = [
            |row| row.at = Timestamp::from_micros(8),
            |row| row.actor = ActorId::AdminKey(crate::AdminKeyId::from_u128(1)),
            |row| row.use_case = UseCase::WalletResume,
            |row| row.thing = ResourceId::Wallet(WalletId::from_u128(2)),
            |row| row.request_key = CommandKey::from_u128(3),
            |row| row.digest = [4; 32],
            |row| row.reason = None,
            |row| row.changes.clear(),
            |row| row.changes[0].before = Some(String::new()),
        ];
        for edit in edits {
            let bad = change(edit);
            assert!(!bad.follows(TrailHead::EMPTY, &secret().trail_key()), "{bad:?}");
        }
    }

    #[test]
    fn a_head_reads_what_it_printed() {
        let head = row(TrailHead::EMPTY).head();
        assert_eq!(head.to_string().parse(), Ok(head));
        for text in ["", "1", "1:", "x:00", "1:zz"] {
            assert_eq!(text.parse::<TrailHead>(), Err(BadTrailHead), "{text}");
        }
    }
}
