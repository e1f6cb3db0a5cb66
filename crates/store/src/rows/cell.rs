//! Values of one column each: their kind in both databases, and the way there and back.

#![expect(unreachable_pub, reason = "the model of an entity is public, and names these")]

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;

use holdfast_domain::admin::event::EventKind;
use holdfast_domain::admin::job::{JobKind, JobState};
use holdfast_domain::admin::webhook::{DeliveryState, DisableReason};
use holdfast_domain::admin::{ActorId, EmailAddress, Reach, Role, UseCase};
use holdfast_domain::credential::{BalanceVisibility, UsageScope};
use holdfast_domain::limits::SpendWindow;
use holdfast_domain::model::{ModelPattern, PublicModelId};
use holdfast_domain::ports::FailureNote;
use holdfast_domain::private::Private;
use holdfast_domain::secret::ServerSecretId;
use holdfast_domain::statistics::{AttemptOutcome, BreakerCondition, Latencies};
use holdfast_domain::{
    AdminKeyId, ApiKeyId, CommandKey, Currency, Micros, PersonId, PostingId, RequestId, Timestamp,
    WalletId, WebhookId,
};
use sea_orm::Value;

/// Kind of a column that every source of rows can read.
#[cfg(feature = "sqlite")]
pub trait Primitive: sea_orm::TryGetable + rusqlite::types::FromSql {}

#[cfg(feature = "sqlite")]
impl<T: sea_orm::TryGetable + rusqlite::types::FromSql> Primitive for T {}

#[cfg(not(feature = "sqlite"))]
pub use sea_orm::TryGetable as Primitive;

/// Value in one column.
pub trait Cell: Sized {
    /// Integer, text or bytes, or one of them that may be absent.
    type Raw: Primitive + Into<Value>;

    /// `None` for a value that cannot stand there.
    fn from_raw(raw: Self::Raw) -> Option<Self>;

    fn to_raw(&self) -> Self::Raw;
}

/// Kind of the column of a value.
pub type Raw<C> = <C as Cell>::Raw;

/// Cells of these types: their kind, and the two ways between a type and its kind.
macro_rules! cells {
    ($raw:ty: $($cell:ty),+; |$from:ident| $read:expr, |$value:ident| $write:expr) => {$(
        impl Cell for $cell {
            type Raw = $raw;

            fn from_raw($from: $raw) -> Option<Self> {
                $read
            }

            fn to_raw(&self) -> $raw {
                let $value = self;
                $write
            }
        }
    )+};
}

cells!(Vec<u8>: AdminKeyId, ApiKeyId, CommandKey, PersonId, PostingId, RequestId,
    ServerSecretId, WalletId, WebhookId;
    |raw| Some(Self::from_bytes(raw.try_into().ok()?)), |id| id.to_bytes().to_vec());
cells!(Vec<u8>: [u8; 16], [u8; 32]; |raw| raw.try_into().ok(), |bytes| bytes.to_vec());
cells!(Option<Vec<u8>>: Reach;
|raw| Some(Option::from_raw(raw)?.map_or(Self::All, Self::Wallet)),
|reach| match reach {
    Self::All => None,
    Self::Wallet(wallet) => Some(wallet.to_raw()),
});
cells!(i64: i64; |raw| Some(raw), |number| *number);
cells!(i64: u16; |raw| raw.try_into().ok(), |number| i64::from(*number));
cells!(i64: u32; |raw| raw.try_into().ok(), |count| i64::from(*count));
// Counts beyond the signed range are bounds that are never reached.
cells!(i64: u64; |raw| raw.try_into().ok(), |count| i64::try_from(*count).unwrap_or(i64::MAX));
cells!(i64: Micros; |raw| Some(Self::new(raw)), |amount| amount.get());
cells!(i64: Timestamp; |raw| Some(Self::from_micros(raw)), |moment| moment.as_micros());
cells!(String: String; |raw| Some(raw), |text| text.clone());
cells!(String: Cow<'static, str>; |raw| Some(raw.into()), |text| text.clone().into_owned());
cells!(String: PublicModelId;
    |raw| Self::try_from(&*raw).ok(), |model| model.as_str().to_owned());
cells!(String: Private<String>; |raw| Some(Self(raw)), |text| text.0.clone());
cells!(String: EmailAddress; |raw| Self::known(&raw), |email| email.as_str().to_owned());
cells!(String: Arc<str>; |raw| Some(raw.into()), |text| text.to_string());
cells!(String: FailureNote; |raw| Some(Self::new(&raw)), |note| note.as_str().to_owned());
cells!(String: Latencies; |raw| Self::from_text(&raw), |latencies| latencies.to_text());
cells!(String: ActorId, Currency; |raw| raw.parse().ok(), |value| value.to_string());
cells!(String: AttemptOutcome, BalanceVisibility, BreakerCondition, DeliveryState, DisableReason, EventKind, JobKind, JobState, Role,
    SpendWindow, UsageScope, UseCase;
    |raw| Self::ALL.iter().copied().find(|it| it.label() == raw), |value| value.label().to_owned());
// Ids and names of kinds have no commas.
cells!(String: BTreeSet<ModelPattern>;
    |raw| raw.split(',').map(|id| ModelPattern::try_from(id).ok()).collect(),
    |models| models.iter().map(ModelPattern::as_str).collect::<Vec<_>>().join(","));
// A kind of a later version is passed over: it must not keep this process from all that it can deliver.
cells!(String: BTreeSet<EventKind>;
    |raw| Some(raw.split(',').filter_map(EventKind::from_label).collect()),
    |kinds| kinds.iter().map(|kind| kind.label()).collect::<Vec<_>>().join(","));

impl<C: Cell> Cell for Option<C>
where
    Option<C::Raw>: Primitive + Into<Value>,
{
    type Raw = Option<C::Raw>;

    fn from_raw(raw: Self::Raw) -> Option<Self> {
        raw.map(C::from_raw).map_or(Some(None), |value| value.map(Some))
    }

    fn to_raw(&self) -> Self::Raw {
        self.as_ref().map(C::to_raw)
    }
}
