//! Proofs by errors of OpenAI, or of a server that speaks like it.

use holdfast_domain::ports::CallFailure;

use crate::adapter::ErrorResponse;
use crate::proof::{
    ACCOUNT, CONTEXT_LENGTH, ErrorPattern, OVERLOADED, ProofRow, RATE_LIMITED, REQUEST,
    UpstreamErrorBody,
};

/// The operator's account is out of funds or over its limits. OpenAI's error guide, 429: the first
/// is the old code, the next four are today's, the last is that of older billing limits.
const BILLING: ErrorPattern = ErrorPattern::Name(&[
    "insufficient_quota",
    "credit_balance_exhausted",
    "organization_spend_limit_exceeded",
    "project_spend_limit_exceeded",
    "organization_usage_limit_exceeded",
    "billing_hard_limit_reached",
]);

/// Rows by status and codes; the first that fits counts.
#[rustfmt::skip]
const TABLE: &[ProofRow] = &[
    // OpenAI's error guide, "429 - quota": no credits or a limit of the account; not retried, not
    // run.
    ProofRow(429, BILLING, ACCOUNT),
    // OpenAI's API reference, TooManyRequests with Retry-After; error guide, "429 - rate limit".
    ProofRow(429, ErrorPattern::Anything, RATE_LIMITED),
    // OpenAI's error guide, "401": key, organization or address are not allowed.
    ProofRow(401, ErrorPattern::Anything, ACCOUNT),
    // DeepSeek and OpenRouter: no balance. OpenAI has no 402.
    ProofRow(402, ErrorPattern::Anything, ACCOUNT),
    // OpenAI's error guide, "403": the region or the key's permissions.
    ProofRow(403, ErrorPattern::Anything, ACCOUNT),
    // OpenAI's error guide, `model_not_found`; any wrong path: the route is wrong.
    ProofRow(404, ErrorPattern::Anything, ACCOUNT),
    // OpenAI's error guide, "503 - server_is_overloaded": not enough capacity to process the
    // request. No other 503 says that nothing was processed.
    ProofRow(503, ErrorPattern::Name(&["server_is_overloaded"]), OVERLOADED),
    // The shared table: no model of the route's name.
    ProofRow(400, ErrorPattern::NoModel, ACCOUNT),
    ProofRow(422, ErrorPattern::NoModel, ACCOUNT),
    // The shared table: the prompt does not fit.
    ProofRow(400, ErrorPattern::Overflow, CONTEXT_LENGTH),
    ProofRow(413, ErrorPattern::Overflow, CONTEXT_LENGTH),
    ProofRow(422, ErrorPattern::Overflow, CONTEXT_LENGTH),
    // OpenAI's error guide, `invalid_request_error`: parameters, values, content policy.
    ProofRow(400, ErrorPattern::Anything, REQUEST),
    // RFC 9110, 15.5.14: the server refuses to process the request because it is too large.
    ProofRow(413, ErrorPattern::Anything, REQUEST),
    // OpenAI's clients, UnprocessableEntityError; Mistral's and vLLM's validation errors.
    ProofRow(422, ErrorPattern::Anything, REQUEST),
];

/// Proof of an answer that is not a 200.
pub(crate) fn of_status(rejected: &ErrorResponse) -> CallFailure {
    UpstreamErrorBody::of_openai(&rejected.body).judge(TABLE, rejected.status)
}
