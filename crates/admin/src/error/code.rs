//! Codes of errors, a row each, in the form of [`table`](holdfast_wire::error::table).
//!
//! ```text
//! codes!  EditConflict { cause, label, status, kind, retry, message }
//!            │            │                 │             │
//!            │            docs/reference/administration-api.md  the body that callers get
//!            └ a variant of Code, its place in Code::ALL, its arm of Code::row
//! ```
//!
//! A message names the next step. `retry` is the header `x-should-retry`: SDKs repeat 409, 429 and 5xx unless the
//! header is `false`. No error of this table binds the `Idempotency-Key`, except perhaps `outcome_unknown`, which
//! is repeated with the same key for that reason.

use holdfast_wire::codes;
use holdfast_wire::error::table::kind::{IDEMPOTENCY, INVALID_REQUEST, RATE_LIMIT, SERVER};

const AUTHENTICATION: &str = "authentication_error";
const PERMISSION: &str = "permission_error";
const CONFLICT: &str = "conflict_error";

/// Constants of one error.
struct Row {
    cause: &'static str,
    label: &'static str,
    status: u16,
    kind: &'static str,
    retry: bool,
    message: &'static str,
}

codes! {
    IdempotencyKeyRequired {
        cause: "A change has no `Idempotency-Key`.",
        label: "idempotency_key_required", status: 400, kind: INVALID_REQUEST, retry: false,
        message: "Send the header Idempotency-Key, exactly once: a new UUID for each change, and the \
            same one when you repeat it. Make one with `uuidgen | tr A-Z a-z`.",
    }
    IdempotencyKeyMalformed {
        cause: "The `Idempotency-Key` is not one UUID in its canonical spelling, or was sent more \
            than once.",
        label: "idempotency_key_malformed", status: 400, kind: INVALID_REQUEST, retry: false,
        message: "The header Idempotency-Key must be one UUID in its canonical spelling, like \
            7f2c1a9e-5b7d-4c3e-9a51-0f8e6d2b4c11: 36 lower-case hexadecimal digits and hyphens. Make \
            one with `uuidgen | tr A-Z a-z`.",
    }
    InvalidJson {
        cause: "The body is not one JSON object in UTF-8, or its bytes did not all come.",
        label: "invalid_json", status: 400, kind: INVALID_REQUEST, retry: false,
        message: "The body is not JSON. Send one JSON object in UTF-8.",
    }
    InvalidValue {
        cause: "A member of the body, a parameter or a header is missing, is not known, or has a \
            value that it cannot have; `param` names it.",
        label: "invalid_value", status: 400, kind: INVALID_REQUEST, retry: false,
        message: "A value is not valid. Correct the one that `param` names.",
    }
    InvalidCursor {
        cause: "The `cursor` does not open: it belongs to another list, other filters or another reach, is \
            malformed, or was sealed by a version or a server secret that is gone.",
        label: "invalid_cursor", status: 400, kind: INVALID_REQUEST, retry: false,
        message: "The cursor is not one of this list under these filters. Send `next_cursor` of the \
            page before with the filters of that page, or begin without a cursor.",
    }
    InvalidAdminKey {
        cause: "The admin key is missing, malformed, unknown, revoked or past its end: the same \
            answer for all.",
        label: "invalid_admin_key", status: 401, kind: AUTHENTICATION, retry: false,
        message: "Send `Authorization: Bearer hfa_…` with an admin key that is in force. API keys \
            and the token of /metrics are not admin keys.",
    }
    Forbidden {
        cause: "The role of the admin key lacks the use case that `scope` names.",
        label: "forbidden", status: 403, kind: PERMISSION, retry: false,
        message: "The role of this admin key may not do this. Use a key whose role has the use case \
            in `scope`.",
    }
    BoundNotSet {
        cause: "The role may do this only within a bound, and no bound is set.",
        label: "bound_not_set", status: 403, kind: PERMISSION, retry: false,
        message: "A role without this restriction must set a bound first.",
    }
    AllowanceSpent {
        cause: "The role support refunds no more in a UTC day than `roles.support_refunds` has for the \
            currency, and less than the amount is left of that.",
        label: "allowance_spent", status: 403, kind: PERMISSION, retry: false,
        message: "Refund less, or let a person with the role finance refund it.",
    }
    BeyondRole {
        cause: "The person has, or is offered, a role that your role may not give; an owner's link is \
            created only with direct database access.",
        label: "beyond_role", status: 403, kind: PERMISSION, retry: false,
        message: "The person has a role that yours may not give. Ask an owner, who can give up the \
            password or end the person; an owner's link is created by the command line with direct database access.",
    }
    NotFound {
        cause: "The resource does not exist, or is outside of this admin key's rights.",
        label: "not_found", status: 404, kind: INVALID_REQUEST, retry: false,
        message: "No resource has this path. Check the path and the id in it; /admin/openapi.json lists \
            the paths.",
    }
    MethodNotAllowed {
        cause: "The path does not accept this method; `allow` lists those that it accepts.",
        label: "method_not_allowed", status: 405, kind: INVALID_REQUEST, retry: false,
        message: "This path does not take this method. Send the request with one that the `allow` \
            header names.",
    }
    RequestTimeout {
        cause: "The body did not arrive in time.",
        label: "request_timeout", status: 408, kind: INVALID_REQUEST, retry: true,
        message: "The body did not arrive in time. Send the same request with the same \
            Idempotency-Key again, in one go.",
    }
    IdempotencyKeyConflict {
        cause: "The `Idempotency-Key` is bound to another request, or to another posting.",
        label: "idempotency_key_conflict", status: 409, kind: IDEMPOTENCY, retry: false,
        message: "This Idempotency-Key was used for another request. Send this one with a new key.",
    }
    LedgerRestored {
        cause: "The ledger was restored from a backup that does not know the `Idempotency-Key`: the posting may have \
            been booked, or the API key issued, before. Only without `after_restore`.",
        // Not by itself: the window is as a rule a day, and a person checks.
        label: "ledger_restored", status: 409, kind: IDEMPOTENCY, retry: false,
        message: "The ledger was restored from a backup that does not know this Idempotency-Key. Check whether this \
            was done before, then send it with `?after_restore=true` (`--after-restore` on the command line), or \
            wait until the window of the restore ends.",
    }
    ExternalReferenceConflict {
        cause: "The `source` and `external_reference` belong to a deposit of another amount or to \
            another wallet.",
        label: "external_reference_conflict", status: 409, kind: CONFLICT, retry: false,
        message: "This payment is booked already, with another amount or to another wallet. Find \
            that deposit before you send anything again.",
    }
    NameTaken {
        cause: "Another resource of the kind has the name.",
        label: "name_taken", status: 409, kind: CONFLICT, retry: false,
        message: "The name is taken. Choose another one.",
    }
    ExternalIdTaken {
        cause: "Another resource of the kind has the `external_id`.",
        label: "external_id_taken", status: 409, kind: CONFLICT, retry: false,
        message: "The external id is taken. Choose another one.",
    }
    WalletClosed {
        cause: "A closed wallet takes no edit, no API key and no money.",
        label: "wallet_closed", status: 409, kind: CONFLICT, retry: false,
        message: "The wallet is closed for good. Use another wallet.",
    }
    WalletNotEmpty {
        cause: "Only a wallet without available and held funds can be closed.",
        label: "wallet_not_empty", status: 409, kind: CONFLICT, retry: false,
        message: "The wallet is not empty. Wait until its holds end, and adjust its available amount to 0.",
    }
    ApiKeyRevoked {
        cause: "A revoked API key stays as it is.",
        label: "api_key_revoked", status: 409, kind: CONFLICT, retry: false,
        message: "The API key is revoked for good. Issue another one.",
    }
    ApiKeyEnded {
        cause: "An API key that is revoked or past its end gets no credential.",
        label: "api_key_ended", status: 409, kind: CONFLICT, retry: false,
        message: "The API key is revoked or past its end. Move its end, if it is not revoked, or issue \
            another one.",
    }
    AdminKeyEnded {
        cause: "An admin key that is revoked or past its end gets no credential.",
        label: "admin_key_ended", status: 409, kind: CONFLICT, retry: false,
        message: "The admin key has ended. Issue another one.",
    }
    LastOwner {
        cause: "The last owner, or the last one of them that has no end, cannot be ended: a key, or a \
            person.",
        label: "last_owner", status: 409, kind: CONFLICT, retry: false,
        message: "This is the last owner, or the last one without an end. Issue another owner's key \
            without an end first, or invite another owner and wait until they have a password.",
    }
    PersonEnded {
        cause: "An ended person stays as they are.",
        label: "person_ended", status: 409, kind: CONFLICT, retry: false,
        message: "The person has ended for good. Invite them anew.",
    }
    PersonHasLink {
        cause: "A link that you could not have created is open within the same reach, or the \
            person has lost their \
            password.",
        label: "person_has_link", status: 409, kind: CONFLICT, retry: false,
        message: "The person has another open link. They use that one first, or its creator renews it.",
    }
    NothingOffered {
        cause: "A link is renewed for a person who has no role and is offered none.",
        label: "nothing_offered", status: 409, kind: CONFLICT, retry: false,
        message: "The person has no role, and none is offered. Invite them.",
    }
    WebhookDisabled {
        cause: "A disabled webhook receives no deliveries.",
        label: "webhook_disabled", status: 409, kind: CONFLICT, retry: false,
        message: "The webhook is disabled. Enable it first.",
    }
    TooManyWebhooks {
        cause: "The wallet has as many webhooks in force as `admin.webhooks_per_wallet` allows, or the \
            operator has 16.",
        label: "too_many_webhooks", status: 409, kind: CONFLICT, retry: false,
        message: "There are as many webhooks in force already as there may be. Disable one, or change \
            one.",
    }
    WalletBoundReached {
        cause: "The wallet has as many API keys, people or admin keys in force as `[admin]` of the \
            configuration allows one.",
        label: "wallet_bound_reached", status: 409, kind: CONFLICT, retry: false,
        message: "The wallet has as many of these in force as one may have. End some, or have the \
            operator raise the bound.",
    }
    CredentialsMax {
        cause: "The key has 32 credentials in force, and the rotation would leave them in force.",
        label: "credentials_max", status: 409, kind: CONFLICT, retry: false,
        message: "The key has 32 credentials in force, which is the most that a key may have. Wait for \
            one to expire, rotate with `grace_seconds` 0, which ends them, or revoke the key.",
    }
    JobPending {
        cause: "A job that this admin key or person has started is queued or runs; the message has its id.",
        label: "job_pending", status: 409, kind: CONFLICT, retry: false,
        message: "A job that you have started is queued or runs. Wait for it, or cancel it while it is \
            queued.",
    }
    JobStarted {
        cause: "The job that is to be cancelled is not queued any more.",
        label: "job_started", status: 409, kind: CONFLICT, retry: false,
        message: "The job is not queued any more. Show it to see its state.",
    }
    EditConflict {
        cause: "The resource was edited since the number in `If-Match`.",
        label: "edit_conflict", status: 412, kind: CONFLICT, retry: false,
        message: "It was edited since. Read it again, and send the edit with the new \
            `ETag` and a new Idempotency-Key.",
    }
    RequestTooLarge {
        cause: "The body is larger than 1 MiB.",
        label: "request_too_large", status: 413, kind: INVALID_REQUEST, retry: false,
        message: "The body is larger than 1 MiB. Send a smaller one.",
    }
    ExportTooLarge {
        cause: "The period of an export has more than 5,000,000 rows; the message has their number.",
        label: "export_too_large", status: 413, kind: INVALID_REQUEST, retry: false,
        message: "The period has more rows than an export may have. Request a shorter period, or one wallet.",
    }
    UnsupportedMediaType {
        cause: "The body is not announced as plain JSON.",
        label: "unsupported_media_type", status: 415, kind: INVALID_REQUEST, retry: false,
        message: "The body must be JSON. Send `Content-Type: application/json`, and no content \
            encoding.",
    }
    WrongHost {
        cause: "`Host` is not the one of `admin.url`, or, without that, no loopback name with the \
            port of the listener.",
        label: "wrong_host", status: 421, kind: INVALID_REQUEST, retry: false,
        message: "This is not served under the name in `Host`. Use the address in `admin.url` of the \
            configuration, or without one localhost with the port.",
    }
    InsufficientFunds {
        cause: "The wallet has less available than the adjustment takes.",
        label: "insufficient_funds", status: 422, kind: INVALID_REQUEST, retry: false,
        message: "The wallet has less available than that. Take less.",
    }
    WalletFull {
        cause: "The balance has no room for the amount.",
        label: "wallet_full", status: 422, kind: INVALID_REQUEST, retry: false,
        message: "The wallet cannot hold that much. Add less.",
    }
    NothingCharged {
        cause: "The operation was not charged, or not yet.",
        label: "nothing_charged", status: 422, kind: INVALID_REQUEST, retry: false,
        message: "The operation was not charged, so no charge can be refunded.",
    }
    RefundTooLarge {
        cause: "Less than that is left of the operation's charge.",
        label: "refund_too_large", status: 422, kind: INVALID_REQUEST, retry: false,
        message: "Less than that is left of the charge. Refund less.",
    }
    TooManyRequests {
        cause: "The admin key has 16 requests or a report on the way, or its address sends many keys that are not valid.",
        label: "too_many_requests", status: 429, kind: RATE_LIMIT, retry: true,
        message: "This admin key has 16 requests on the way. Wait for answers, then send the same \
            request again.",
    }
    TooManyExports {
        cause: "The process has 2 exports in progress, or the admin key has one.",
        label: "too_many_exports", status: 429, kind: RATE_LIMIT, retry: true,
        message: "2 exports are in progress, which is the most at once. Send the same request again when one is \
            complete.",
    }
    TooManyCreations {
        cause: "More API keys, people, webhooks and admin keys of the wallet were created within a \
            minute than `admin.creations_per_minute` allows.",
        label: "too_many_creations", status: 429, kind: RATE_LIMIT, retry: true,
        message: "Too many resources were created for this wallet within a minute. Send the same request with the \
            same Idempotency-Key again after `retry-after`.",
    }
    TooManyTests {
        cause: "The webhook was tested 6 times within a minute.",
        label: "too_many_tests", status: 429, kind: RATE_LIMIT, retry: false,
        message: "The webhook was tested 6 times within a minute. Wait for a minute.",
    }
    HeadersTooLarge {
        cause: "The request line and the headers are larger than 16 KiB together.",
        label: "headers_too_large", status: 431, kind: INVALID_REQUEST, retry: false,
        message: "The head of the request is too large. Send fewer or shorter headers.",
    }
    InternalError {
        cause: "The process failed. Its log has the cause.",
        label: "internal_error", status: 500, kind: SERVER, retry: false,
        message: "The request failed because of an error of the server. Its log has the cause.",
    }
    StorageUnavailable {
        cause: "The database cannot be reached or does not work. Nothing was changed.",
        label: "storage_unavailable", status: 503, kind: SERVER, retry: true,
        message: "The database does not work at the moment, and nothing was changed. Send the same \
            request with the same Idempotency-Key again.",
    }
    OutcomeUnknown {
        cause: "The database did not report whether the change was made.",
        label: "outcome_unknown", status: 503, kind: SERVER, retry: true,
        message: "The change may have been made. Send the same request with the same Idempotency-Key \
            again: it is done at most once, and the answer shows whether it was.",
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn labels_are_unique_and_every_message_says_what_to_do() {
        let labels: BTreeSet<_> = Code::ALL.iter().map(|code| code.label()).collect();
        assert_eq!(labels.len(), Code::ALL.len());
        for code in Code::ALL {
            assert!(code.message().ends_with('.') && code.cause().ends_with('.'), "{code:?}");
            assert!((400..600).contains(&code.status()), "{code:?}");
        }
    }

    #[test]
    fn only_what_a_repetition_may_change_is_to_be_repeated() {
        let retried: Vec<_> = Code::ALL.into_iter().filter(|code| code.retry()).collect();
        let temporary = [
            Code::RequestTimeout,
            Code::TooManyRequests,
            Code::TooManyExports,
            Code::TooManyCreations,
            Code::StorageUnavailable,
            Code::OutcomeUnknown,
        ];
        assert_eq!(retried, temporary);
    }
}
