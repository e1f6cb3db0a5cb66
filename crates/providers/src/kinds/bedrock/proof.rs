//! Proofs by errors of Amazon Bedrock. "Troubleshooting" is the page on error codes in its user
//! guide; the name of an error is a header of its answer.

use holdfast_domain::ports::CallFailure;

use crate::adapter::ErrorResponse;
use crate::proof::{
    ACCOUNT, CONTEXT_LENGTH, ErrorPattern, ProofRow, RATE_LIMITED, REQUEST, UpstreamErrorBody,
};

/// Reported as a bad request, and a matter of the account or of the signing key.
const ACCOUNTS: ErrorPattern = ErrorPattern::Name(&[
    "IncompleteSignature",
    "IncompleteSignatureException",
    "InvalidAction",
    "NotAuthorized",
    "RequestExpired",
    "ServiceQuotaExceededException",
]);

/// Rows by status; the first that fits counts, so names and texts stand above the bare status.
#[rustfmt::skip]
const TABLE: &[ProofRow] = &[
    // Troubleshooting, ThrottlingException: denied for the account's quotas.
    // ModelNotReadyException: the model does not serve requests yet.
    ProofRow(429, ErrorPattern::Anything, RATE_LIMITED),
    // AWS's common errors, UnrecognizedClientException: the credential.
    ProofRow(401, ErrorPattern::Anything, ACCOUNT),
    // Troubleshooting, AccessDeniedException: no permission, or a session that has ended.
    ProofRow(403, ErrorPattern::Anything, ACCOUNT),
    // Troubleshooting, ResourceNotFoundException: the model, or the path.
    ProofRow(404, ErrorPattern::Anything, ACCOUNT),
    // Troubleshooting, under these names: how the request is signed, and the account's quotas.
    ProofRow(400, ACCOUNTS, ACCOUNT),
    // The shared table: no model of the route's name.
    ProofRow(400, ErrorPattern::NoModel, ACCOUNT),
    // The shared table: the prompt does not fit.
    ProofRow(400, ErrorPattern::Overflow, CONTEXT_LENGTH),
    ProofRow(413, ErrorPattern::Overflow, CONTEXT_LENGTH),
    // Troubleshooting, ValidationException: the request.
    ProofRow(400, ErrorPattern::Anything, REQUEST),
    // RFC 9110, 15.5.14: the server refuses to process the request because it is too large.
    ProofRow(413, ErrorPattern::Anything, REQUEST),
];

/// Proof of an answer that is not a 200.
pub(crate) fn of_status(rejected: &ErrorResponse) -> CallFailure {
    UpstreamErrorBody::from_header(rejected).judge(TABLE, rejected.status)
}
