//! Reasons why a command of administration is not done.
//!
//! Each answer that a caller can act on has a variant, with the values that the answer names: the bound that was met,
//! the posting that has the request key already. The administration's API translates them in one exhaustive match
//! (`admin/src/error/translation.rs`), so that a new refusal does not compile without its code.
//!
//! A refusal binds no request key, so that the same command may be sent again once its cause is gone. Never in here: a
//! failure of the store, which proves neither that a command was done nor that it was not.

use super::BoundedKind;
use super::event::NewEvent;
use crate::credential::{CREDENTIALS_MAX, MODELS_MAX};
use crate::ledger::Posting;
use crate::limits::SpendLimit;
use crate::{Currency, JobId, Micros, PostingId, Timestamp};

/// A refusal with its event. Only the event is written.
#[derive(Debug)]
pub struct Rejection {
    /// The refusal.
    pub refusal: AccountRefusal,
    /// Event of the refusal, if it has one.
    pub event: Option<Box<NewEvent>>,
}

impl From<AccountRefusal> for Rejection {
    fn from(refusal: AccountRefusal) -> Self {
        Self { refusal, event: None }
    }
}

/// Reason why a command was not done. A refusal binds no key and changes no row.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AccountRefusal {
    /// The request key is bound to another request of the same actor.
    #[error("the request key belongs to another request")]
    RequestKeyConflict,
    /// The ledger was restored, and does not know the request key: money may have been booked or a key issued under it.
    #[error(
        "the ledger was restored and does not know this request key, which may have been used before"
    )]
    LedgerRestored {
        /// Moment from which unknown request keys are accepted.
        until: Timestamp,
    },
    /// A posting of this id has other content.
    #[error("the request key belongs to another posting")]
    PostingConflict(Posting),
    /// A deposit of this reference has other content.
    #[error("the external reference belongs to another deposit")]
    ExternalReferenceConflict(PostingId),
    /// The amount is of another currency than the wallet.
    #[error("the wallet is in {wallet}, and not in {named}: amounts are not converted")]
    CurrencyMismatch {
        /// Currency of the wallet.
        wallet: Currency,
        /// Currency that the command names.
        named: Currency,
    },
    /// A field of a deposit's reference, with this name, has characters beyond the visible ones of ASCII.
    #[error("write visible ASCII characters only: letters, digits and signs, no blanks")]
    ReferenceNotAscii(&'static str),
    /// There is no such wallet.
    #[error("there is no such wallet")]
    NoWallet,
    /// There is no such API key.
    #[error("there is no such API key")]
    NoApiKey,
    /// There is no such operation.
    #[error("there is no such operation")]
    NoOperation,
    /// There is no such admin key.
    #[error("there is no such admin key")]
    NoAdminKey,
    /// There is no such webhook.
    #[error("there is no such webhook")]
    NoWebhook,
    /// The event was never on its way to the webhook.
    #[error("this event was never sent to this webhook")]
    NoDelivery,
    /// A disabled webhook gets no deliveries.
    #[error("the webhook is disabled")]
    WebhookDisabled,
    /// The owner has as many webhooks in force as one may have.
    #[error("there are as many webhooks in force already as there may be")]
    TooManyWebhooks,
    /// The wallet has as many of a kind in force as one may have.
    #[error("the wallet has {bound} {kind} in force, which is the most that {} allows", .kind.setting())]
    BoundReached {
        /// The kind.
        kind: BoundedKind,
        /// The bound.
        bound: u32,
    },
    /// The key has as many credentials in force as one may have.
    #[error(
        "the key has {CREDENTIALS_MAX} credentials in force, which is the most that a key may have"
    )]
    TooManyCredentials,
    /// An allow-list is longer than one may be.
    #[error("an allow-list has at most {MODELS_MAX} entries, and this one has {0}")]
    TooManyModels(usize),
    /// There is no such job.
    #[error("there is no such job")]
    NoJob,
    /// The actor has a job that has not ended.
    #[error("your job {0} is queued or runs")]
    JobPending(JobId),
    /// Only a queued job is taken back.
    #[error("the job is not queued any more")]
    JobStarted,
    /// The webhook was tested as often as it may be within a minute.
    #[error("the webhook was tested 6 times within a minute")]
    TooManyTests,
    /// Another resource of the kind has the name.
    #[error("the name {0} is taken")]
    NameTaken(String),
    /// Another resource of the kind has the external id.
    #[error("the external id {0} is taken")]
    ExternalIdTaken(String),
    /// Another actor has edited it since.
    #[error("it was edited since: {edited} times by now")]
    EditConflict {
        /// Number of edits by now.
        edited: u32,
    },
    /// A closed wallet takes no edit, no key and no money.
    #[error("the wallet is closed")]
    WalletClosed,
    /// Only an empty wallet is closed.
    #[error("the wallet is not empty")]
    WalletNotEmpty {
        /// Amount that is available.
        available: Micros,
        /// Amount that is held.
        held: Micros,
    },
    /// A posting moves more than one may.
    #[error("a posting moves at most {}", Micros::POSTING_MAX)]
    PostingTooLarge,
    /// A balance has no room for more.
    #[error("the wallet cannot hold that much")]
    WalletFull,
    /// Too little is available.
    #[error("the wallet has {available} available")]
    InsufficientFunds {
        /// Amount that is available.
        available: Micros,
    },
    /// Only a completed operation was charged.
    #[error("the operation was not charged")]
    NothingCharged,
    /// More than is left of the charge.
    #[error("{left} is left of the charge of {charge}")]
    RefundTooLarge {
        /// The charge.
        charge: Micros,
        /// Part of it that was not refunded yet.
        left: Micros,
    },
    /// More than is left of what the actor may give back in a UTC day.
    #[error("{left} is left of the {allowance} that this role may refund in a UTC day")]
    AllowanceSpent {
        /// Most of a day; zero if none is set.
        allowance: Micros,
        /// Part of it that was not given back yet.
        left: Micros,
    },
    /// An end has to be a moment to come, by the database's clock.
    #[error("the end has passed: name a moment to come")]
    EndPassed,
    /// The actor grants no more than a bound that the wallet has not.
    #[error(
        "the wallet has no key_spend: an owner sets how much a key may spend that this role issues"
    )]
    KeySpendUnset,
    /// The actor grants no more than this bound of the wallet.
    #[error("a key of this wallet may spend {} in a window of {} at most", .0.micros, .0.window.label())]
    KeySpendExceeded(SpendLimit),
    /// A revoked API key stays as it is.
    #[error("the API key is revoked")]
    ApiKeyRevoked,
    /// An API key past its end gets no credential.
    #[error("the API key has ended")]
    ApiKeyEnded,
    /// An admin key past its end gets no credential.
    #[error("the admin key has ended")]
    AdminKeyEnded,
    /// There is no such person.
    #[error("there is no such person")]
    NoPerson,
    /// An ended person stays as they are.
    #[error("the person has ended")]
    PersonEnded,
    /// Another person who has not ended has the address.
    #[error("another person has this e-mail address")]
    EmailTaken,
    /// A link that others made is open, or the person has lost their password.
    #[error("the person waits for another link: they use that one first")]
    PersonHasLink,
    /// A person without a role or an offer cannot be offered a link.
    #[error("the person has no open invitation: invite them")]
    NothingOffered,
    /// The person has, or is offered, what the actor could not give.
    #[error("the person has a role that this role may not give")]
    BeyondGrantor,
    /// The link is unknown, used, or has expired: the answer does not reveal which.
    #[error("the link is not valid any more")]
    NoLink,
    /// A person with a password accepts signed in.
    #[error("sign in first: the person has a password")]
    SignInFirst,
    /// A person without a password sets one.
    #[error("set a password")]
    PasswordMissing,
    /// The password was changed since it was proven.
    #[error("the password was changed meanwhile")]
    PasswordChanged,
    /// The first owner is there.
    #[error("there is an owner already")]
    OwnerExists,
    /// At least one person must be able to issue keys, and stay so.
    #[error("the last owner cannot be ended: create another one without an end first")]
    LastOwner,
}
