//! What an error of Amazon Bedrock proves. "Troubleshooting" is the page on error codes in its user guide;
//! the name of an error is a header of its answer.

use holdfast_domain::ports::Failure;

use super::{ACCOUNT, CONTEXT_LENGTH, RATE_LIMITED, REQUEST, Row, Says, Told, first};
use crate::server::Rejected;

/// Told as a bad request, and a matter of the account or of who signs.
const ACCOUNTS: Says = Says::Name(&[
    "IncompleteSignature",
    "IncompleteSignatureException",
    "InvalidAction",
    "NotAuthorized",
    "RequestExpired",
    "ServiceQuotaExceededException",
]);

/// The texts of its error: Bedrock's own, and that of Anthropic's models there.
const TOO_LONG: Says = Says::Message(&["Input is too long", "prompt is too long"]);

/// The first row that fits counts.
#[rustfmt::skip]
const TABLE: &[Row<Says>] = &[
    // Troubleshooting, ThrottlingException: denied for the account's quotas. ModelNotReadyException: the
    // model does not serve requests yet.
    Row(429, Says::Anything, RATE_LIMITED),
    // AWS's common errors, UnrecognizedClientException: the credential.
    Row(401, Says::Anything, ACCOUNT),
    // Troubleshooting, AccessDeniedException: no permission, or a session that has ended.
    Row(403, Says::Anything, ACCOUNT),
    // Troubleshooting, ResourceNotFoundException: the model, or the path.
    Row(404, Says::Anything, ACCOUNT),
    // Troubleshooting, under these names: how the request is signed, and the account's quotas.
    Row(400, ACCOUNTS, ACCOUNT),
    // Troubleshooting, ValidationException; the texts of its error.
    Row(400, TOO_LONG, CONTEXT_LENGTH),
    // Troubleshooting, ValidationException: the request.
    Row(400, Says::Anything, REQUEST),
    // RFC 9110, 15.5.14: the server refuses to process the request because it is too large.
    Row(413, Says::Anything, REQUEST),
];

/// What an answer proves that is not a 200.
pub(crate) fn of_status(rejected: &Rejected) -> Failure {
    let told = Told::named(rejected);
    first(TABLE, rejected.status, |says| told.fits(says))
}
