//! Failures as pages: the cause in the words of all front ends, and what to do now. Their texts are here, with their
//! types.
//!
//! ```text
//! AccountsError ─▶ the API's problem: status, code, text, member ─▶ Failure ─▶ beside its field, or a page of its own
//! ```
//!
//! - Errors of use cases take the way over the API's table of problems, so that a page and the API have one status for
//!   each. A few texts are replaced ([`WORDS`]), since theirs are for API clients.
//! - A refusal that has a time to wait carries it as `Retry-After`.
//! - A failed sign-in has one text, and a link that was used, replaced or never made has one.
//!
//! Never: an internal cause in a page. It is in the log.

use std::time::Duration;

use holdfast_accounts::{AccountsError, LinkError, SignInError};
use holdfast_admin::{Code, Problem};
use holdfast_domain::admin::UseCase;
use http::header::RETRY_AFTER;
use http::{HeaderMap, StatusCode};

/// A request that is answered by a failure.
#[derive(Debug, Clone)]
pub(crate) struct Failure {
    pub(crate) status: StatusCode,
    pub(crate) message: String,
    /// Field that the failure is about.
    pub(crate) field: Option<String>,
    /// Use case that the visitor's role does not have.
    pub(crate) refused: Option<UseCase>,
    /// Time after which a retry may succeed.
    pub(crate) retry_after: Option<Duration>,
}

const NOT_FOUND: &str = "There is no such page, or none that you may see.";

/// Words of pages for errors whose own words are for API clients.
const WORDS: &[(Code, &str)] = &[
    (Code::NotFound, NOT_FOUND),
    (Code::IdempotencyKeyConflict, "This form was sent before with other values. Open a new form."),
    (
        Code::LedgerRestored,
        "The ledger was restored from a backup, so this may have been done before. Check that, and then use the \
         command line with --after-restore, or wait until the window of the restore ends.",
    ),
    (
        Code::EditConflict,
        "The resource was edited in the meantime. Open the form again for its current values.",
    ),
];

impl Failure {
    pub(crate) fn new(status: StatusCode, message: impl Into<String>) -> Self {
        Self { status, message: message.into(), field: None, refused: None, retry_after: None }
    }

    /// A value of a field that is not accepted.
    pub(crate) fn field(field: &str, cause: impl ToString) -> Self {
        let field = Some(field.to_owned());
        Self { field, ..Self::new(StatusCode::UNPROCESSABLE_ENTITY, cause.to_string()) }
    }

    /// The same with the time after which a retry may succeed.
    pub(crate) fn after(self, retry_after: Duration) -> Self {
        Self { retry_after: Some(retry_after), ..self }
    }

    /// Writes the time after which a retry may succeed into the head of the answer.
    pub(crate) fn put_retry_after(&self, headers: &mut HeaderMap) {
        if let Some(time) = self.retry_after {
            // Rounded up, and never zero: a client that comes back too early is refused again.
            let begun = u64::from(time.subsec_nanos() > 0);
            headers.insert(RETRY_AFTER, time.as_secs().saturating_add(begun).max(1).into());
        }
    }

    /// The same with its use case, if the failure is a refusal of one.
    pub(crate) fn of(mut self, use_case: UseCase) -> Self {
        if self.status == StatusCode::FORBIDDEN && self.refused.is_none() {
            self.refused = Some(use_case);
        }
        self
    }

    pub(crate) fn not_found() -> Self {
        Self::new(StatusCode::NOT_FOUND, NOT_FOUND)
    }

    pub(crate) fn not_signed_in() -> Self {
        Self::new(StatusCode::UNAUTHORIZED, "Sign in first.")
    }
}

impl From<AccountsError> for Failure {
    fn from(error: AccountsError) -> Self {
        let (refused, forbidden) = if let AccountsError::Forbidden { use_case, role } = &error {
            let message = "Ask an owner for a role that has it.";
            let message = format!("Your role {role} may not do {use_case}. {message}");
            (Some(*use_case), Some(message))
        } else {
            (None, None)
        };
        let problem = Problem::from(error);
        let status = StatusCode::from_u16(problem.code().status());
        let status = status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let of_pages = WORDS.iter().find(|(code, _)| *code == problem.code());
        let message = match of_pages {
            Some((_, message)) => (*message).to_owned(),
            None => forbidden.unwrap_or_else(|| problem.message().to_owned()),
        };
        // Fields of forms are units of a currency, and members of the API micros.
        let field = problem.param().map(|param| param.strip_suffix("_micros").unwrap_or(param));
        // Of 429 only: a page that failed is loaded again by a person, who does not wait for a header.
        let retry_after =
            problem.retry_after().filter(|_time| status == StatusCode::TOO_MANY_REQUESTS);
        let field = field.map(str::to_owned);
        Self { field, refused, retry_after, ..Self::new(status, message) }
    }
}

/// Refusal of a value in a field of a form or a filter.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FieldRefusal {
    #[error("Choose one of the values.")]
    NotAChoice,
    #[error("Write a day like 2026-11-28.")]
    NotADay,
    #[error("Choose two different dimensions.")]
    SameDimensions,
    #[error("There is no such wallet.")]
    UnknownWallet,
    #[error("There is no such API key. A name needs its wallet.")]
    UnknownApiKey,
    #[error("A model is publisher/name, such as acme/large.")]
    NotAModel,
    #[error(
        "{0} is not a model id: write publisher/name, or publisher/* for every model of a publisher."
    )]
    NotAPattern(String),
    #[error(
        "A resource is its kind and its id, such as wallet:7f2c1a9e-5b7d-4c3e-9a51-0f8e6d2b4c11."
    )]
    NotAResource,
    #[error("A request key belongs to an API key: enter that key too.")]
    ApiKeyMissing,
    #[error("Enter the id of the payment too.")]
    ReferenceMissing,
    #[error("Enter the payment system of this id.")]
    SourceMissing,
    #[error("Enter the wallet of the role.")]
    WalletMissing,
    #[error("Only a holder's role has a wallet.")]
    WalletNotAllowed,
    #[error("Write a message of at most 32 KiB.")]
    MessageLength,
    #[error("Paste an API key, which begins with hfk_.")]
    NotAnApiKey,
    #[error("A password has 12 to 256 characters.")]
    PasswordLength,
    #[error("The two passwords differ.")]
    PasswordsDiffer,
    #[error("This is not your password.")]
    WrongPassword,
}

/// Refusal of a whole request.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RequestRefusal {
    #[error(
        "Your role is for the holder of a wallet, and this is the operators' console. Sign in at the address of the \
         holders' console, which the operator of the service knows."
    )]
    ForOperators,
    #[error(
        "This is the console of wallets' holders, and you have no role for a wallet. Sign in at the address of the \
         operators' console."
    )]
    ForHolders,
    #[error(
        "This link gives no role for a wallet: open it at the address of the operators' console."
    )]
    LinkForOperators,
    #[error("The answer broke off. Send the request again under its key.")]
    BrokenAnswer,
    #[error("Four of your requests are being answered here. Wait for one of them.")]
    TooManyAnswers,
}

/// Time until a place among the passwords that are checked is free, at most.
const PASSWORD_WAIT: Duration = Duration::from_secs(2);
/// Time until one of the visitor's own requests has ended, as a guess.
const ANSWER_WAIT: Duration = Duration::from_secs(5);

impl From<RequestRefusal> for Failure {
    fn from(refusal: RequestRefusal) -> Self {
        let status = match refusal {
            RequestRefusal::ForOperators | RequestRefusal::ForHolders => StatusCode::FORBIDDEN,
            RequestRefusal::LinkForOperators => StatusCode::NOT_FOUND,
            RequestRefusal::BrokenAnswer => StatusCode::BAD_GATEWAY,
            RequestRefusal::TooManyAnswers => {
                let failure = Self::new(StatusCode::TOO_MANY_REQUESTS, refusal.to_string());
                return failure.after(ANSWER_WAIT);
            }
        };
        Self::new(status, refusal.to_string())
    }
}

impl From<SignInError> for Failure {
    fn from(error: SignInError) -> Self {
        let slow = |message: &str| Self::new(StatusCode::TOO_MANY_REQUESTS, message);
        match error {
            SignInError::Wrong => {
                Self::new(StatusCode::UNAUTHORIZED, "The e-mail address or the password is wrong.")
            }
            SignInError::Slow { retry_after } => {
                // Rounded up: an attempt after the time that is shown is judged.
                let seconds = retry_after.as_secs().saturating_add(1);
                let message = format!("Too many failed attempts. Wait {seconds} s, then try once.");
                slow(&message).after(retry_after)
            }
            SignInError::Busy => {
                slow("Too many sign-ins at this moment. Try again in a few seconds.")
                    .after(PASSWORD_WAIT)
            }
            SignInError::Unavailable(error) => {
                tracing::warn!(%error, "sign-in is unavailable");
                let message = "Sign-in is unavailable at this moment. Try again.";
                Self::new(StatusCode::SERVICE_UNAVAILABLE, message)
            }
        }
    }
}

impl From<LinkError> for Failure {
    fn from(error: LinkError) -> Self {
        match error {
            LinkError::NotValid => Self::new(
                StatusCode::NOT_FOUND,
                "This link is not valid any more: it was used, replaced or is too old. Ask for another one where you \
                 got it.",
            ),
            LinkError::SignInFirst => Self::new(
                StatusCode::FORBIDDEN,
                "Sign in first, as the person whom the link is for.",
            ),
            LinkError::PasswordMissing => Self::field("password", "Set a password."),
            LinkError::EmailTaken => {
                Self::field("email", "Another person has this e-mail address.")
            }
            LinkError::Busy => Self::new(
                StatusCode::TOO_MANY_REQUESTS,
                "Too many passwords are set at this moment. Try again in a few seconds.",
            )
            .after(PASSWORD_WAIT),
            LinkError::Failed(error) => error.into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_for_a_time_has_its_time_and_no_other_one() {
        let of = |error: AccountsError| Failure::from(error).retry_after.map(|it| it.as_secs());
        assert_eq!(of(AccountsError::ExportsBusy), Some(10));
        assert_eq!(of(AccountsError::TooManyCreations { retry_after: 7 }), Some(7));
        assert_eq!(of(AccountsError::NoSecret), None);
    }
}
