//! Failures as pages: what could not be done, in the words that every door has for it, and what to do now.

use holdfast_accounts::AccountsError;
use holdfast_admin::{Code, Problem};
use holdfast_domain::admin::UseCase;
use http::StatusCode;

/// A request that is answered by a failure.
#[derive(Debug, Clone)]
pub(crate) struct Failure {
    pub(crate) status: StatusCode,
    pub(crate) message: String,
    /// Field that the failure is about, where there is one.
    pub(crate) field: Option<String>,
    /// Use case that the visitor's role does not have.
    pub(crate) refused: Option<UseCase>,
}

const NOT_FOUND: &str = "There is no such page, or none that you may see.";

/// Words of pages, for errors whose words are for whoever sends requests.
const WORDS: &[(Code, &str)] = &[
    (Code::NotFound, NOT_FOUND),
    (Code::IdempotencyKeyConflict, "This form was sent before with other values. Open a new form."),
    (
        Code::EditConflict,
        "Somebody else has edited it since. Open the form again: it has what stands now.",
    ),
];

impl Failure {
    pub(crate) fn new(status: StatusCode, message: impl Into<String>) -> Self {
        Self { status, message: message.into(), field: None, refused: None }
    }

    /// A value of a field that cannot stand.
    pub(crate) fn field(field: &str, message: impl Into<String>) -> Self {
        let field = Some(field.to_owned());
        Self { field, ..Self::new(StatusCode::UNPROCESSABLE_ENTITY, message) }
    }

    /// The same, told of a use case where it is a refusal.
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
        Self { status, message, field: field.map(str::to_owned), refused }
    }
}
