//! Proofs by errors of Anthropic's Messages API. "Errors" is the page of that name in its
//! documentation.

use holdfast_domain::ports::CallFailure;

use crate::adapter::ErrorResponse;
use crate::proof::{
    ACCOUNT, CONTEXT_LENGTH, ErrorPattern, OVERLOADED, ProofRow, RATE_LIMITED, REQUEST,
    UpstreamErrorBody,
};

/// The account may spend no more: its balance or a limit of its own.
const SPENT: ErrorPattern = ErrorPattern::Message(&[
    "Your credit balance is too low",
    "You have reached your specified API usage limits",
]);

/// Rows by status; the first that fits counts, so names and texts stand above the bare status.
#[rustfmt::skip]
const TABLE: &[ProofRow] = &[
    // Errors, "spend limit reached": not retried until the next month or another tier.
    ProofRow(429, ErrorPattern::Name(&["enforced_spend_limit_reached", "contract_spend_limit_reached"]), ACCOUNT),
    // Errors, `rate_limit_error`: the account has hit a rate limit.
    ProofRow(429, ErrorPattern::Anything, RATE_LIMITED),
    // Errors, `authentication_error`: the API key.
    ProofRow(401, ErrorPattern::Anything, ACCOUNT),
    // Errors, `billing_error`: the account's payment.
    ProofRow(402, ErrorPattern::Anything, ACCOUNT),
    // Errors, `permission_error`: the API key may not use this.
    ProofRow(403, ErrorPattern::Anything, ACCOUNT),
    // Errors, `not_found_error`: the model, or the path.
    ProofRow(404, ErrorPattern::Anything, ACCOUNT),
    // Errors, `overloaded_error`: high traffic across all users; the API declined the request, as
    // Microsoft's Dev Proxy documents it. Only as a status: within a stream it comes too late.
    ProofRow(529, ErrorPattern::Name(&["overloaded_error"]), OVERLOADED),
    // Told as an invalid request, and not one: the texts of its error.
    ProofRow(400, SPENT, ACCOUNT),
    // The shared table: no model of the route's name.
    ProofRow(400, ErrorPattern::NoModel, ACCOUNT),
    // The shared table: the prompt does not fit.
    ProofRow(400, ErrorPattern::Overflow, CONTEXT_LENGTH),
    ProofRow(413, ErrorPattern::Overflow, CONTEXT_LENGTH),
    // Errors, `invalid_request_error`: format or content of the request.
    ProofRow(400, ErrorPattern::Anything, REQUEST),
    // Errors, `request_too_large`: turned away before it reaches the API's servers.
    ProofRow(413, ErrorPattern::Anything, REQUEST),
];

/// Proof of an answer that is not a 200.
pub(crate) fn of_status(rejected: &ErrorResponse) -> CallFailure {
    UpstreamErrorBody::read(&rejected.body, &[&["type"], &["details", "error_code"]])
        .judge(TABLE, rejected.status)
}
