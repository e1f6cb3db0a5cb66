//! Proofs by errors of Google's Gemini API. "API errors" is the page of that name in its
//! documentation.

use holdfast_domain::ports::CallFailure;

use crate::adapter::ErrorResponse;
use crate::proof::{
    ACCOUNT, CONTEXT_LENGTH, ErrorPattern, ProofRow, RATE_LIMITED, REQUEST, UpstreamErrorBody,
};

/// Reported as an invalid argument, and a matter of the account.
const KEY: ErrorPattern = ErrorPattern::Message(&["API key not valid", "API key expired"]);

/// Rows by status; the first that fits counts, so names and texts stand above the bare status.
#[rustfmt::skip]
const TABLE: &[ProofRow] = &[
    // API errors, RESOURCE_EXHAUSTED: a rate limit, by the minute or the day.
    ProofRow(429, ErrorPattern::Anything, RATE_LIMITED),
    // Google's error model, UNAUTHENTICATED: no valid credential.
    ProofRow(401, ErrorPattern::Anything, ACCOUNT),
    // API errors, PERMISSION_DENIED: the API key has not the permissions.
    ProofRow(403, ErrorPattern::Anything, ACCOUNT),
    // API errors, NOT_FOUND: the model, or the path.
    ProofRow(404, ErrorPattern::Anything, ACCOUNT),
    // API errors, FAILED_PRECONDITION: the project's billing or region.
    ProofRow(400, ErrorPattern::Name(&["FAILED_PRECONDITION"]), ACCOUNT),
    // The example of an error in its documentation, with the reason API_KEY_INVALID.
    ProofRow(400, KEY, ACCOUNT),
    // The shared table: no model of the route's name.
    ProofRow(400, ErrorPattern::NoModel, ACCOUNT),
    // The shared table: the prompt does not fit.
    ProofRow(400, ErrorPattern::Overflow, CONTEXT_LENGTH),
    ProofRow(413, ErrorPattern::Overflow, CONTEXT_LENGTH),
    // API errors, INVALID_ARGUMENT: the request.
    ProofRow(400, ErrorPattern::Anything, REQUEST),
    // RFC 9110, 15.5.14: the server refuses to process the request because it is too large.
    ProofRow(413, ErrorPattern::Anything, REQUEST),
];

/// Proof of an answer that is not a 200.
pub(crate) fn of_status(rejected: &ErrorResponse) -> CallFailure {
    UpstreamErrorBody::read(&rejected.body, &[&["status"]]).judge(TABLE, rejected.status)
}
