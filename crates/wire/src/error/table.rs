//! Row of each code: its `code`, status, `type`, and whether to retry.
//!
//! SDKs act on the status first. OpenAI's SDKs, and most that wrap them, try 408, 409, 429 and 5xx
//! three times, some frameworks up to twelve times, unless `x-should-retry` says `false`; a few
//! clients ignore that header. So a 409 that can never succeed says `false`, and one whose
//! operation still runs says `true`. A refusal of a provider is 422, which most do not retry.
//!
//! A row never changes its `code`: callers have it in their programs.

use super::Code;

impl Code {
    /// Every code, in the order of the table in the API's documentation.
    pub const ALL: [Self; 32] = [
        Self::IdempotencyKeyRequired,
        Self::IdempotencyKeyMalformed,
        Self::InvalidJson,
        Self::InvalidValue,
        Self::UnknownParameter,
        Self::UnsupportedParameter,
        Self::ContextLengthExceeded,
        Self::InvalidApiKey,
        Self::InsufficientFunds,
        Self::SpendLimitExceeded,
        Self::ChargeLimitExceeded,
        Self::ModelNotAllowed,
        Self::ModelNotFound,
        Self::NotFound,
        Self::MethodNotAllowed,
        Self::RequestTimeout,
        Self::RequestTooLarge,
        Self::UnsupportedMediaType,
        Self::HeadersTooLarge,
        Self::IdempotencyKeyConflict,
        Self::OperationInProgress,
        Self::ResultExpired,
        Self::ResultSealed,
        Self::ProviderRefused,
        Self::RateLimitExceeded,
        Self::TooManyOperations,
        Self::InternalError,
        Self::OutcomeUnknown,
        Self::UpstreamUnavailable,
        Self::StorageUnavailable,
        Self::Draining,
        Self::Overloaded,
    ];

    /// Value of `code` in the body.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::IdempotencyKeyRequired => "idempotency_key_required",
            Self::IdempotencyKeyMalformed => "idempotency_key_malformed",
            Self::InvalidJson => "invalid_json",
            Self::InvalidValue => "invalid_value",
            Self::UnknownParameter => "unknown_parameter",
            Self::UnsupportedParameter => "unsupported_parameter",
            Self::ContextLengthExceeded => "context_length_exceeded",
            Self::InvalidApiKey => "invalid_api_key",
            Self::InsufficientFunds => "insufficient_funds",
            Self::SpendLimitExceeded => "spend_limit_exceeded",
            Self::ChargeLimitExceeded => "charge_limit_exceeded",
            Self::ModelNotAllowed => "model_not_allowed",
            Self::ModelNotFound => "model_not_found",
            Self::NotFound => "not_found",
            Self::MethodNotAllowed => "method_not_allowed",
            Self::RequestTimeout => "request_timeout",
            Self::RequestTooLarge => "request_too_large",
            Self::UnsupportedMediaType => "unsupported_media_type",
            Self::HeadersTooLarge => "headers_too_large",
            Self::IdempotencyKeyConflict => "idempotency_key_conflict",
            Self::OperationInProgress => "operation_in_progress",
            Self::ResultExpired => "result_expired",
            Self::ResultSealed => "result_sealed",
            Self::ProviderRefused => "provider_refused",
            Self::RateLimitExceeded => "rate_limit_exceeded",
            Self::TooManyOperations => "too_many_operations",
            Self::InternalError => "internal_error",
            Self::OutcomeUnknown => "outcome_unknown",
            Self::UpstreamUnavailable => "upstream_unavailable",
            Self::StorageUnavailable => "storage_unavailable",
            Self::Draining => "draining",
            Self::Overloaded => "overloaded",
        }
    }

    /// HTTP status.
    #[must_use]
    pub const fn status(self) -> u16 {
        match self {
            Self::IdempotencyKeyRequired
            | Self::IdempotencyKeyMalformed
            | Self::InvalidJson
            | Self::InvalidValue
            | Self::UnknownParameter
            | Self::UnsupportedParameter
            | Self::ContextLengthExceeded => 400,
            Self::InvalidApiKey => 401,
            Self::InsufficientFunds | Self::SpendLimitExceeded | Self::ChargeLimitExceeded => 402,
            Self::ModelNotAllowed => 403,
            Self::ModelNotFound | Self::NotFound => 404,
            Self::MethodNotAllowed => 405,
            Self::RequestTimeout => 408,
            // Most SDKs retry a 409 unless told otherwise: `retry` tells them, differently for each
            // of the two.
            Self::IdempotencyKeyConflict | Self::OperationInProgress => 409,
            Self::ResultExpired | Self::ResultSealed => 410,
            Self::RequestTooLarge => 413,
            Self::UnsupportedMediaType => 415,
            Self::ProviderRefused => 422,
            Self::RateLimitExceeded | Self::TooManyOperations => 429,
            Self::HeadersTooLarge => 431,
            Self::InternalError => 500,
            Self::OutcomeUnknown => 502,
            Self::UpstreamUnavailable
            | Self::StorageUnavailable
            | Self::Draining
            | Self::Overloaded => 503,
        }
    }

    /// Value of `type` in the body.
    #[must_use]
    pub const fn kind(self) -> &'static str {
        match self {
            Self::IdempotencyKeyRequired
            | Self::IdempotencyKeyMalformed
            | Self::InvalidJson
            | Self::InvalidValue
            | Self::UnknownParameter
            | Self::UnsupportedParameter
            | Self::ContextLengthExceeded
            | Self::InvalidApiKey
            | Self::ModelNotAllowed
            | Self::ModelNotFound
            | Self::NotFound
            | Self::MethodNotAllowed
            | Self::RequestTimeout
            | Self::RequestTooLarge
            | Self::UnsupportedMediaType
            | Self::HeadersTooLarge
            | Self::ProviderRefused => "invalid_request_error",
            Self::InsufficientFunds | Self::SpendLimitExceeded | Self::ChargeLimitExceeded => {
                "insufficient_quota"
            }
            Self::IdempotencyKeyConflict
            | Self::OperationInProgress
            | Self::ResultExpired
            | Self::ResultSealed => "idempotency_error",
            Self::RateLimitExceeded | Self::TooManyOperations => "rate_limit_error",
            Self::InternalError
            | Self::OutcomeUnknown
            | Self::UpstreamUnavailable
            | Self::StorageUnavailable
            | Self::Draining
            | Self::Overloaded => "server_error",
        }
    }

    /// Value of `x-should-retry`: whether the same request with the same key may fare better. An
    /// internal error says so only before the claim; after it, the operation's state decides.
    #[must_use]
    pub const fn retry(self) -> bool {
        match self {
            Self::RequestTimeout
            | Self::OperationInProgress
            | Self::RateLimitExceeded
            | Self::TooManyOperations
            | Self::InternalError
            | Self::UpstreamUnavailable
            | Self::StorageUnavailable
            | Self::Draining
            | Self::Overloaded => true,
            Self::IdempotencyKeyRequired
            | Self::IdempotencyKeyMalformed
            | Self::InvalidJson
            | Self::InvalidValue
            | Self::UnknownParameter
            | Self::UnsupportedParameter
            | Self::ContextLengthExceeded
            | Self::InvalidApiKey
            | Self::InsufficientFunds
            | Self::SpendLimitExceeded
            | Self::ChargeLimitExceeded
            | Self::ModelNotAllowed
            | Self::ModelNotFound
            | Self::NotFound
            | Self::MethodNotAllowed
            | Self::RequestTooLarge
            | Self::UnsupportedMediaType
            | Self::HeadersTooLarge
            | Self::IdempotencyKeyConflict
            | Self::ResultExpired
            | Self::ResultSealed
            | Self::ProviderRefused
            | Self::OutcomeUnknown => false,
        }
    }
}
