//! Failures of use cases as errors of the API: one exhaustive match, so that a new refusal breaks
//! the build here.

use std::error::Error;

use holdfast_accounts::{AccountsError, AuthenticationError, sentence};
use holdfast_domain::admin::{AccountRefusal, BoundedKind};
use holdfast_domain::ledger::{Posting, PostingKind};
use holdfast_domain::{ErrorChain, Micros, PostingId, Timestamp};
use holdfast_wire::api::rfc3339;

use super::{Code, FailureCause, Problem};

/// Seconds after which an export that was refused is tried again: others take that long, and longer.
const EXPORT_RETRY_SECONDS: u16 = 10;

impl From<AccountsError> for Problem {
    fn from(error: AccountsError) -> Self {
        match error {
            AccountsError::Forbidden { use_case, role } => Self::forbidden(
                use_case,
                format!("The role {role} may not do {use_case}. Use a key whose role has that."),
            ),
            AccountsError::NotFound(kind) => {
                let message = format!("There is no such {kind}, or none that this key reaches.");
                Self::with_message(Code::NotFound, message)
            }
            // Requests name resources by id here, which is never ambiguous.
            error @ AccountsError::Ambiguous(_) => {
                Self::with_message(Code::InvalidValue, sentence(&error.to_string()))
            }
            AccountsError::Invalid { field, message } => Self::invalid(field, sentence(&message)),
            AccountsError::Refused(refusal) => Self::from(refusal),
            AccountsError::TooManyCreations { retry_after } => {
                Self { retry_after, ..Self::new(Code::TooManyCreations) }
            }
            error @ AccountsError::ExportTooLarge { .. } => {
                Self::with_message(Code::ExportTooLarge, sentence(&error.to_string()))
            }
            AccountsError::ExportsBusy => {
                Self { retry_after: EXPORT_RETRY_SECONDS, ..Self::new(Code::TooManyExports) }
            }
            error @ AccountsError::ExportInProgress(_) => Self {
                retry_after: EXPORT_RETRY_SECONDS,
                ..Self::with_message(Code::TooManyExports, sentence(&error.to_string()))
            },
            error @ AccountsError::NoSecret => logged(Code::InternalError, &error),
            AccountsError::NoRandom(cause) => logged(Code::InternalError, &*cause),
            AccountsError::Unavailable(cause) => logged(Code::StorageUnavailable, &*cause),
            // Not the code of an unavailable store: that one promises that the change was not made.
            AccountsError::Uncertain(cause) => logged(Code::OutcomeUnknown, &*cause),
        }
    }
}

impl From<AuthenticationError> for Problem {
    fn from(error: AuthenticationError) -> Self {
        match error {
            AuthenticationError::Invalid => Self::new(Code::InvalidAdminKey),
            AuthenticationError::Unavailable(cause) => logged(Code::StorageUnavailable, &*cause),
        }
    }
}

impl From<AccountRefusal> for Problem {
    fn from(refusal: AccountRefusal) -> Self {
        use AccountRefusal as Refusal;
        let reason = sentence(&refusal.to_string());
        let about = |param: &'static str, code, remedy: &str| Self {
            param: Some(param.into()),
            ..Self::with_message(code, format!("{reason} {remedy}"))
        };
        match refusal {
            Refusal::RequestKeyConflict => Self::new(Code::IdempotencyKeyConflict),
            Refusal::LedgerRestored { until } => ledger_restored(until),
            Refusal::PostingConflict(known) => posting_conflict(&known),
            Refusal::ExternalReferenceConflict(posting) => reference_conflict(posting),
            Refusal::CurrencyMismatch { .. } => Self::invalid("currency", reason),
            Refusal::ReferenceNotAscii(field) => Self::invalid(field, reason),
            Refusal::NoWallet
            | Refusal::NoApiKey
            | Refusal::NoOperation
            | Refusal::NoAdminKey
            | Refusal::NoPerson
            | Refusal::NoWebhook
            | Refusal::NoJob
            | Refusal::NoDelivery => Self::with_message(Code::NotFound, reason),
            Refusal::WebhookDisabled => Self::new(Code::WebhookDisabled),
            Refusal::TooManyWebhooks => Self::new(Code::TooManyWebhooks),
            Refusal::BoundReached { kind, .. } => bound_reached(kind, &reason),
            Refusal::TooManyCredentials => Self::new(Code::CredentialsMax),
            Refusal::TooManyModels(_) => Self::invalid("models", reason),
            Refusal::PostingTooLarge => Self::invalid("amount_micros", reason),
            Refusal::JobPending(_) => job_pending(&reason),
            Refusal::JobStarted => Self::new(Code::JobStarted),
            Refusal::TooManyTests => Self::new(Code::TooManyTests),
            Refusal::NameTaken(_) => about("name", Code::NameTaken, "Choose another one."),
            Refusal::ExternalIdTaken(_) => {
                about("external_id", Code::ExternalIdTaken, "Choose another one.")
            }
            Refusal::EditConflict { edited } => {
                Self { edited: Some(edited), ..Self::new(Code::EditConflict) }
            }
            Refusal::WalletClosed => Self::new(Code::WalletClosed),
            Refusal::WalletNotEmpty { available, held } => wallet_not_empty(available, held),
            Refusal::WalletFull => Self::new(Code::WalletFull),
            Refusal::InsufficientFunds { .. } => {
                about("amount_micros", Code::InsufficientFunds, "Take less.")
            }
            Refusal::NothingCharged => Self::new(Code::NothingCharged),
            Refusal::RefundTooLarge { .. } => {
                about("amount_micros", Code::RefundTooLarge, "Refund less.")
            }
            Refusal::AllowanceSpent { .. } => {
                about("amount_micros", Code::AllowanceSpent, "Refund less, or ask finance.")
            }
            Refusal::EndPassed => Self::invalid("ends_at", reason),
            Refusal::KeySpendUnset => Self::with_message(Code::BoundNotSet, reason),
            Refusal::KeySpendExceeded(_) => Self::invalid("spend_micros", reason),
            Refusal::ApiKeyRevoked => Self::new(Code::ApiKeyRevoked),
            Refusal::ApiKeyEnded => Self::new(Code::ApiKeyEnded),
            Refusal::AdminKeyEnded => Self::new(Code::AdminKeyEnded),
            Refusal::LastOwner => Self::new(Code::LastOwner),
            Refusal::PersonEnded => Self::new(Code::PersonEnded),
            Refusal::PersonHasLink => Self::new(Code::PersonHasLink),
            Refusal::NothingOffered => Self::new(Code::NothingOffered),
            Refusal::BeyondGrantor => Self::new(Code::BeyondRole),
            // What a person does with a link and a password has no endpoint here.
            Refusal::EmailTaken
            | Refusal::NoLink
            | Refusal::SignInFirst
            | Refusal::PasswordMissing
            | Refusal::PasswordChanged
            | Refusal::OwnerExists => Self::with_message(Code::InvalidValue, reason),
        }
    }
}

fn ledger_restored(until: Timestamp) -> Problem {
    let message =
        format!("{} It ends at {}.", Problem::new(Code::LedgerRestored).message(), rfc3339(until));
    Problem::with_message(Code::LedgerRestored, message)
}

fn bound_reached(kind: BoundedKind, reason: &str) -> Problem {
    let (remedy, setting) = (kind.remedy(), kind.setting());
    let message = format!("{reason} First {remedy}, or have the operator raise {setting}.");
    Problem::with_message(Code::WalletBoundReached, message)
}

fn job_pending(reason: &str) -> Problem {
    let message = format!("{reason} Wait for it, or cancel it while it is queued.");
    Problem::with_message(Code::JobPending, message)
}

fn wallet_not_empty(available: Micros, held: Micros) -> Problem {
    let message = format!(
        "The wallet has {available} available and {held} held. Wait until no funds are held, and \
        adjust the available amount to 0."
    );
    Problem::with_message(Code::WalletNotEmpty, message)
}

fn posting_conflict(known: &Posting) -> Problem {
    let (id, what) = (known.id, described(known));
    let message =
        format!("The Idempotency-Key {id} is {what} already. Send this one with a new key.");
    Problem::with_message(Code::IdempotencyKeyConflict, message)
}

fn reference_conflict(posting: PostingId) -> Problem {
    let message = format!(
        "This payment is booked already, as deposit {posting} of another amount or to another wallet. \
         Look at that one before you send anything again."
    );
    Problem {
        param: Some("external_reference".into()),
        ..Problem::with_message(Code::ExternalReferenceConflict, message)
    }
}

fn described(posting: &Posting) -> String {
    let Posting { amount, wallet, kind, .. } = posting;
    match kind {
        PostingKind::Deposit => format!("a deposit of {amount} to wallet {wallet}"),
        PostingKind::Refund(operation) => format!("a refund of {amount} for operation {operation}"),
        PostingKind::Adjustment(reason) => {
            format!("an adjustment of {amount} to wallet {wallet} ({reason})")
        }
    }
}

/// Logs the cause of a failure, which callers do not get.
fn logged(code: Code, error: &dyn Error) -> Problem {
    let error = ErrorChain(error);
    tracing::error!(%error, code = code.label(), "a request of administration failed");
    Problem { cause: Some(FailureCause(error.to_string())), ..Problem::new(code) }
}
