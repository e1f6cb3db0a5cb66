//! Labels and hints of the members that forms have, with their names there.
//!
//! All forms read the same table, so that a member of several forms has one label and one hint. A name is that of the
//! API's member without its unit: amounts are units of a currency in a form, and micros in JSON.
//!
//! Never in here: a bound of a value ([`super`] has those), or a default.

/// Member of a resource, as a form has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Member {
    /// Name in forms.
    pub name: &'static str,
    /// Label of its field.
    pub label: &'static str,
    /// Sentence below its field: the form or the use of its value.
    pub hint: &'static str,
    /// True if a form requires a value.
    pub is_required: bool,
}

const fn required(name: &'static str, label: &'static str, hint: &'static str) -> Member {
    Member { name, label, hint, is_required: true }
}

const fn optional(name: &'static str, label: &'static str, hint: &'static str) -> Member {
    Member { name, label, hint, is_required: false }
}

/// Name of a wallet.
pub const WALLET_NAME: Member = required("name", "Name", "Name of your customer, unique.");

/// Currency of a wallet.
pub const WALLET_CURRENCY: Member =
    required("currency", "Currency", "Three capital letters, fixed for the life of the wallet.");

/// External id of a wallet.
pub const WALLET_EXTERNAL_ID: Member =
    optional("external_id", "External id", "Id of the customer in your own system, unique.");

/// Threshold of the event `wallet.low`.
pub const WALLET_LOW_BALANCE: Member = optional(
    "low_balance",
    "Low-balance threshold",
    "Sends wallet.low when the balance falls below this amount. 0: when it is empty.",
);

/// Bound on the keys that others than an owner or the holder's administrator issue.
pub const WALLET_KEY_SPEND: Member = optional(
    "key_spend",
    "Spend limit of a key",
    "Bound for keys issued by anyone but an owner or the holder's administrator, who issue none without it.",
);

/// Window of [`WALLET_KEY_SPEND`].
pub const WALLET_KEY_SPEND_WINDOW: Member = required("key_spend_window", "Within", "");

/// Wallet that pays for an API key.
pub const KEY_WALLET: Member = required("wallet", "Wallet: name or id", "");

/// Name of an API key.
pub const KEY_NAME: Member =
    optional("name", "Name", "Unique within the wallet. Empty: a generated name.");

/// Name that an API key has after an edit.
pub const KEY_NEW_NAME: Member = required("name", "Name", "");

/// External id of an API key.
pub const KEY_EXTERNAL_ID: Member = optional("external_id", "External id", "");

/// Bound on the spend of an API key.
pub const KEY_SPEND: Member =
    optional("spend", "Spend limit", "Empty: the whole balance of the wallet.");

/// Window of [`KEY_SPEND`].
pub const KEY_SPEND_WINDOW: Member = required("spend_window", "Within", "");

/// Models that an API key may use.
pub const KEY_MODELS: Member = optional("models", "Models", "None chosen: all models.");

/// End of an API key.
pub const KEY_ENDS_AT: Member = optional("ends_at", "Ends (UTC)", "");

/// Usage that an API key may read.
pub const KEY_USAGE: Member = required("usage", "Visible usage", "");

/// Visibility of the balance to an API key.
pub const KEY_BALANCE: Member = required("balance", "Wallet balance", "");

/// Span for which earlier credentials of an API key stay.
pub const KEY_GRACE: Member = required(
    "grace_seconds",
    "The other credentials",
    "Programs that use another credential work until it ends.",
);

/// Reason of an operator for a change of a customer's key.
pub const KEY_REASON: Member =
    required("reason", "Reason", "The holder of the wallet sees the change in the audit log.");

/// Amount of a payment.
pub const AMOUNT: Member = required("amount", "Amount", "");

/// Amount of an adjustment.
pub const ADJUSTMENT: Member =
    required("amount", "Amount", "A negative amount, such as -2.50, reduces the balance.");

/// System that a deposit came through.
pub const SOURCE: Member =
    optional("source", "Payment system", "System that took the money, such as stripe or bank.");

/// Id of a deposit in its system.
pub const REFERENCE: Member = optional(
    "external_reference",
    "Payment id",
    "Id of the payment in that system. A payment is credited only once.",
);

/// Note of a payment.
pub const NOTE: Member =
    optional("note", "Note", "Shown on the statement, such as an invoice or a ticket.");

/// Reason of an adjustment.
pub const ADJUSTMENT_REASON: Member =
    required("reason", "Reason", "Shown on the wallet's statement, also to its holder.");

/// Reason of a change.
pub const REASON: Member = optional("reason", "Reason", "");

/// Reason of a cancellation.
pub const CANCEL_REASON: Member = required("reason", "Reason", "Recorded in the audit log.");

/// Earlier checksum that a ledger check verifies.
pub const CHECKSUM: Member = optional(
    "since",
    "Audit checksum that you kept",
    "A number, a colon and 64 digits: the audit log must still contain it.",
);

/// Name of an admin key.
pub const ADMIN_KEY_NAME: Member = required("name", "Name", "");

/// Role of an admin key.
pub const ADMIN_KEY_ROLE: Member = required("role", "Role", "");

/// Wallet of a holder's admin key.
pub const ADMIN_KEY_WALLET: Member =
    optional("wallet", "Wallet", "Name or id; only for a holder's role.");

/// End of an admin key.
pub const ADMIN_KEY_ENDS_AT: Member = optional(
    "ends_at",
    "Ends (UTC)",
    "The key is rejected after this moment. Empty: valid until revoked.",
);

/// Span for which the old secret of an admin key stays.
pub const ADMIN_KEY_GRACE: Member = required("grace_seconds", "The old secret ends", "");

/// E-mail address of a person.
pub const PERSON_EMAIL: Member = required("email", "E-mail address", "");

/// Name of a person.
pub const PERSON_NAME: Member = optional("name", "Name", "");

/// Role of a person.
pub const PERSON_ROLE: Member = required("role", "Role", "");

/// Wallet of a holder's role.
pub const PERSON_WALLET: Member =
    optional("wallet", "Wallet", "Name or id; only for a holder's role.");

/// Erasure of a person's data.
pub const PERSON_ERASURE: Member =
    optional("erase", "Erase the e-mail address and the name too", "");

/// Address of a webhook.
pub const WEBHOOK_URL: Member =
    required("url", "Address", "https, on port 443, of a host with a public address.");

/// Wallet of a webhook.
pub const WEBHOOK_WALLET: Member =
    optional("wallet", "Wallet", "Name or id. Empty: events of all wallets.");

/// Kinds of events of a webhook.
pub const WEBHOOK_KINDS: Member = optional("kinds", "Kinds of events: none chosen is all", "");

/// Description of a webhook.
pub const WEBHOOK_DESCRIPTION: Member = optional("description", "Description", "");

/// API key that the playground uses.
pub const PASTED_KEY: Member =
    required("api_key", "API key", "Begins with hfk_. Used for this request, and stored nowhere.");

/// Model of a request of the playground.
pub const MODEL: Member = required("model", "Model", "");

/// Message of a request of the playground.
pub const MESSAGE: Member = required(
    "message",
    "Message",
    "A line in double brackets is a command to the simulated models.",
);

/// Request key of a request of the playground.
pub const REQUEST_KEY: Member = required(
    "request_key",
    "Request key",
    "One key is one run and one charge, however often it is sent.",
);

/// Password of a sign-in.
pub const PASSWORD: Member = required("password", "Password", "");

/// Password before a change.
pub const OLD_PASSWORD: Member = required("old", "Current password", "");

/// New password.
pub const NEW_PASSWORD: Member = required(
    "password",
    "New password",
    "At least 12 characters: a few words are easier to remember than signs.",
);

/// New password, typed once more.
pub const NEW_PASSWORD_AGAIN: Member = required("again", "The new password again", "");

/// Month of a statement.
pub const MONTH: Member = optional("month", "Month", "UTC, such as 2026-11. Empty: this month.");
