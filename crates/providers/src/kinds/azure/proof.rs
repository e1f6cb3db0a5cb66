//! Proofs by errors of Azure OpenAI, whose names are OpenAI's if it has them.

use holdfast_domain::ports::CallFailure;

use crate::adapter::ErrorResponse;
use crate::proof::{
    ACCOUNT, CONTEXT_LENGTH, ErrorPattern, ProofRow, RATE_LIMITED, REQUEST, UpstreamErrorBody,
};

/// Rows by status and codes; the first that fits counts.
#[rustfmt::skip]
const TABLE: &[ProofRow] = &[
    // OpenAI's error guide, "429 - quota": no credits or a limit of the account; not retried, not
    // run.
    ProofRow(429, ErrorPattern::Name(&["insufficient_quota"]), ACCOUNT),
    // Azure's guide to quotas: the deployment's tokens or requests a minute are used up.
    ProofRow(429, ErrorPattern::Anything, RATE_LIMITED),
    // Azure's REST reference: the key or the token is wrong.
    ProofRow(401, ErrorPattern::Anything, ACCOUNT),
    // Azure's guide to networks and roles: this address or this identity may not.
    ProofRow(403, ErrorPattern::Anything, ACCOUNT),
    // Azure's `DeploymentNotFound`; any wrong path: the route is wrong.
    ProofRow(404, ErrorPattern::Anything, ACCOUNT),
    // The shared table: no model of the route's name.
    ProofRow(400, ErrorPattern::NoModel, ACCOUNT),
    ProofRow(422, ErrorPattern::NoModel, ACCOUNT),
    // The shared table: the prompt does not fit.
    ProofRow(400, ErrorPattern::Overflow, CONTEXT_LENGTH),
    ProofRow(413, ErrorPattern::Overflow, CONTEXT_LENGTH),
    ProofRow(422, ErrorPattern::Overflow, CONTEXT_LENGTH),
    // Azure's guide to content filters, `content_filter`: the prompt; OpenAI's error guide: the
    // rest.
    ProofRow(400, ErrorPattern::Anything, REQUEST),
    // RFC 9110, 15.5.14: the server refuses to process the request because it is too large.
    ProofRow(413, ErrorPattern::Anything, REQUEST),
    // OpenAI's clients, UnprocessableEntityError.
    ProofRow(422, ErrorPattern::Anything, REQUEST),
];

/// Proof of an answer that is not a 200.
pub(crate) fn of_status(rejected: &ErrorResponse) -> CallFailure {
    UpstreamErrorBody::of_openai(&rejected.body).judge(TABLE, rejected.status)
}
