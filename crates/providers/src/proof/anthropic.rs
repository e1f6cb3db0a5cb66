//! What an error of Anthropic's Messages API proves. "Errors" is the page of that name in its
//! documentation.

use holdfast_domain::ports::Failure;

use super::{ACCOUNT, CONTEXT_LENGTH, OVERLOADED, RATE_LIMITED, REQUEST, Row, Says, Told, first};
use crate::server::Rejected;

/// The account may spend no more: its balance or a limit of its own.
const SPENT: Says = Says::Message(&[
    "Your credit balance is too low",
    "You have reached your specified API usage limits",
]);

/// The prompt does not fit, alone or with the answer's bound.
const TOO_LONG: Says =
    Says::Message(&["prompt is too long", "input length and `max_tokens` exceed context limit"]);

/// The first row that fits counts.
#[rustfmt::skip]
const TABLE: &[Row<Says>] = &[
    // Errors, "spend limit reached": not retried until the next month or another tier.
    Row(429, Says::Name(&["enforced_spend_limit_reached", "contract_spend_limit_reached"]), ACCOUNT),
    // Errors, `rate_limit_error`: the account has hit a rate limit.
    Row(429, Says::Anything, RATE_LIMITED),
    // Errors, `authentication_error`: the API key.
    Row(401, Says::Anything, ACCOUNT),
    // Errors, `billing_error`: the account's payment.
    Row(402, Says::Anything, ACCOUNT),
    // Errors, `permission_error`: the API key may not use this.
    Row(403, Says::Anything, ACCOUNT),
    // Errors, `not_found_error`: the model, or the path.
    Row(404, Says::Anything, ACCOUNT),
    // Errors, `overloaded_error`: high traffic across all users; the API declined the request, as
    // Microsoft's Dev Proxy documents it. Only as a status: within a stream it comes too late.
    Row(529, Says::Name(&["overloaded_error"]), OVERLOADED),
    // Told as an invalid request, and not one: the texts of its error.
    Row(400, SPENT, ACCOUNT),
    // Errors, `invalid_request_error`; the texts of its error.
    Row(400, TOO_LONG, CONTEXT_LENGTH),
    // Errors, `invalid_request_error`: format or content of the request.
    Row(400, Says::Anything, REQUEST),
    // Errors, `request_too_large`: turned away before it reaches the API's servers.
    Row(413, Says::Anything, REQUEST),
];

/// What an answer proves that is not a 200.
pub(crate) fn of_status(rejected: &Rejected) -> Failure {
    let told = Told::read(&rejected.body, &[&["type"], &["details", "error_code"]]);
    first(TABLE, rejected.status, |says| told.fits(says))
}
