//! Documentation of each code beside its row: cause, effect on the request key, and the field that
//! it names. Messages, which callers get, are not here.

use super::Code;

/// Effect of an error on the request key that it answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyEffect {
    /// The key is as free or as bound as it was before.
    Untouched,
    /// The key may be bound; where it is, the error names its operation.
    Unsure,
    /// The key is bound, and the same request may get another answer later.
    Bound,
    /// The key is bound, and every retry gets this answer.
    Final,
}

impl KeyEffect {
    /// Wording of the documentation.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::Untouched => "untouched",
            Self::Unsure => "may be bound",
            Self::Bound => "bound",
            Self::Final => "bound, replays",
        }
    }
}

impl Code {
    /// Effect on the request key.
    #[must_use]
    pub const fn key_effect(self) -> KeyEffect {
        match self {
            Self::IdempotencyKeyRequired
            | Self::IdempotencyKeyMalformed
            | Self::InvalidJson
            | Self::InvalidValue
            | Self::UnknownParameter
            | Self::UnsupportedParameter
            | Self::InvalidApiKey
            | Self::InsufficientFunds
            | Self::SpendLimitExceeded
            | Self::ChargeLimitExceeded
            | Self::ModelNotAllowed
            | Self::ModelNotFound
            | Self::NotFound
            | Self::MethodNotAllowed
            | Self::RequestTimeout
            | Self::RequestTooLarge
            | Self::UnsupportedMediaType
            | Self::HeadersTooLarge
            | Self::IdempotencyKeyConflict
            | Self::RateLimitExceeded
            | Self::TooManyOperations
            | Self::Draining
            | Self::Overloaded => KeyEffect::Untouched,
            // Free before the claim, bound after it: the error names an operation where there is
            // one.
            Self::InternalError | Self::StorageUnavailable | Self::UpstreamUnavailable => {
                KeyEffect::Unsure
            }
            Self::OperationInProgress => KeyEffect::Bound,
            Self::ContextLengthExceeded
            | Self::ResultExpired
            | Self::ResultSealed
            | Self::ProviderRefused
            | Self::OutcomeUnknown => KeyEffect::Final,
        }
    }

    /// Tells whether the caller's charge is certain when this code is given. It is not while an
    /// outcome is still to be confirmed: a caller that books what it reads must not book zero then.
    #[must_use]
    pub const fn is_charge_known(self) -> bool {
        !matches!(self, Self::OperationInProgress | Self::StorageUnavailable)
    }

    /// Target of `param`, in words; null where there is nothing to name.
    #[must_use]
    pub const fn param(self) -> Option<&'static str> {
        match self {
            Self::InvalidValue => Some("the field, `Host` or `Holdfast-Max-Charge-Micros`"),
            Self::UnknownParameter | Self::UnsupportedParameter => Some("the field"),
            Self::ContextLengthExceeded => Some("`messages`"),
            Self::ModelNotAllowed => Some("`model`"),
            Self::ModelNotFound => Some("`model`, where the body named it"),
            Self::IdempotencyKeyRequired
            | Self::IdempotencyKeyMalformed
            | Self::InvalidJson
            | Self::InvalidApiKey
            | Self::InsufficientFunds
            | Self::SpendLimitExceeded
            | Self::ChargeLimitExceeded
            | Self::NotFound
            | Self::MethodNotAllowed
            | Self::RequestTimeout
            | Self::RequestTooLarge
            | Self::UnsupportedMediaType
            | Self::HeadersTooLarge
            | Self::IdempotencyKeyConflict
            | Self::OperationInProgress
            | Self::ResultExpired
            | Self::ResultSealed
            | Self::ProviderRefused
            | Self::RateLimitExceeded
            | Self::TooManyOperations
            | Self::InternalError
            | Self::OutcomeUnknown
            | Self::UpstreamUnavailable
            | Self::StorageUnavailable
            | Self::Draining
            | Self::Overloaded => None,
        }
    }

    /// Cause, as one sentence of the documentation.
    #[must_use]
    pub const fn cause(self) -> &'static str {
        match self {
            Self::IdempotencyKeyRequired => "The request has no `Idempotency-Key`.",
            Self::IdempotencyKeyMalformed => {
                "The `Idempotency-Key`, or the identifier in the path, is not one canonical UUIDv4, \
                 or was sent more than once."
            }
            Self::InvalidJson => {
                "The body is not one JSON object in UTF-8, a member name stands twice in an object, \
                 it is nested deeper than 64, it has more than 131,072 values, or its chunks are garbled."
            }
            Self::InvalidValue => "A field is missing or has a value that it cannot have.",
            Self::UnknownParameter => {
                "A field is not known and the model does not accept it by name."
            }
            Self::UnsupportedParameter => {
                "A known field asks for what this gateway does not do, or what the model does not allow."
            }
            Self::ContextLengthExceeded => "The provider refused the prompt as too long.",
            Self::InvalidApiKey => {
                "The API key is missing, malformed, unknown, revoked or expired: the same answer for all."
            }
            Self::InsufficientFunds => "The wallet has less available than the hold.",
            Self::SpendLimitExceeded => "The hold would pass the API key's spend limit.",
            Self::ChargeLimitExceeded => "The hold would pass `Holdfast-Max-Charge-Micros`.",
            Self::ModelNotAllowed => {
                "The API key may not use the model, or the model has no price in the wallet's currency."
            }
            Self::ModelNotFound => {
                "There is no such model, or none that this API key may use and can pay for."
            }
            Self::NotFound => "There is nothing at this path, or no operation under this key.",
            Self::MethodNotAllowed => {
                "The path does not take this method; `allow` names what it takes."
            }
            Self::RequestTimeout => "The body did not arrive in time.",
            Self::RequestTooLarge => "The body is larger than the model takes.",
            Self::UnsupportedMediaType => "The body is not announced as plain JSON.",
            Self::HeadersTooLarge => "The request line and the headers are too large together.",
            Self::IdempotencyKeyConflict => {
                "The key is bound to another request. Nothing of that request is told."
            }
            Self::OperationInProgress => {
                "The key's operation still runs and this request cannot wait any longer."
            }
            Self::ResultExpired => "The operation completed and its answer is no longer kept.",
            Self::ResultSealed => {
                "The operation completed and its answer opens only with the credential that asked for it."
            }
            Self::ProviderRefused => "The provider refused the request for good.",
            Self::RateLimitExceeded => "A limit of the API key is reached.",
            Self::TooManyOperations => {
                "Too many requests of the API key, or for one operation, are in hand."
            }
            Self::InternalError => "A defect of the gateway; the operator is told.",
            Self::OutcomeUnknown => {
                "The request was sent, may have run once, and no answer can come any more; or it was \
                 cancelled before one came."
            }
            Self::UpstreamUnavailable => {
                "No provider took the request, or none wants to be asked now: proven not run."
            }
            Self::StorageUnavailable => "The database does not answer, or refuses to settle.",
            Self::Draining => "The process is about to end and takes no new work.",
            Self::Overloaded => {
                "A limit of the process is reached: connections, waiting commits, or calls of every route."
            }
        }
    }
}
