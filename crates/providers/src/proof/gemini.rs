//! What an error of Google's Gemini API proves. "API errors" is the page of that name in its
//! documentation.

use holdfast_domain::ports::Failure;

use super::{ACCOUNT, CONTEXT_LENGTH, RATE_LIMITED, REQUEST, Row, Says, Told, first};
use crate::server::Rejected;

/// Told as an invalid argument, and a matter of the account.
const KEY: Says = Says::Message(&["API key not valid", "API key expired"]);

/// The text of its error.
const TOO_LONG: Says = Says::Message(&["The input token count"]);

/// The first row that fits counts.
#[rustfmt::skip]
const TABLE: &[Row<Says>] = &[
    // API errors, RESOURCE_EXHAUSTED: a rate limit, by the minute or the day.
    Row(429, Says::Anything, RATE_LIMITED),
    // Google's error model, UNAUTHENTICATED: no valid credential.
    Row(401, Says::Anything, ACCOUNT),
    // API errors, PERMISSION_DENIED: the API key has not the permissions.
    Row(403, Says::Anything, ACCOUNT),
    // API errors, NOT_FOUND: the model, or the path.
    Row(404, Says::Anything, ACCOUNT),
    // API errors, FAILED_PRECONDITION: the project's billing or region.
    Row(400, Says::Name(&["FAILED_PRECONDITION"]), ACCOUNT),
    // The example of an error in its documentation, with the reason API_KEY_INVALID.
    Row(400, KEY, ACCOUNT),
    // API errors, INVALID_ARGUMENT; the text that its own command line is told.
    Row(400, TOO_LONG, CONTEXT_LENGTH),
    // API errors, INVALID_ARGUMENT: the request.
    Row(400, Says::Anything, REQUEST),
    // RFC 9110, 15.5.14: the server refuses to process the request because it is too large.
    Row(413, Says::Anything, REQUEST),
];

/// What an answer proves that is not a 200.
pub(crate) fn of_status(rejected: &Rejected) -> Failure {
    let told = Told::read(&rejected.body, &[&["status"]]);
    first(TABLE, rejected.status, |says| told.fits(says))
}
