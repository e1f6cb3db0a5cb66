//! Form of a table of error codes, for this API and for the administration's: a row for each code, in which
//! all that is constant of the error stands, and nowhere else.
//!
//! A new error is a new row. A row without one of its members does not build. A `label` never changes:
//! callers have it in their programs.

/// Kinds of errors that both APIs have: values of `type` in the body.
pub mod kind {
    /// The request cannot be served as it is.
    pub const INVALID_REQUEST: &str = "invalid_request_error";
    /// The idempotency key is bound.
    pub const IDEMPOTENCY: &str = "idempotency_error";
    /// A limit is reached for some time.
    pub const RATE_LIMIT: &str = "rate_limit_error";
    /// The request failed for a reason of the server's.
    pub const SERVER: &str = "server_error";
}

/// Makes `Code` of its rows; a struct `Row` with at least the six members below is in scope. The cause
/// documents the variant too, so that it is written once.
///
/// ```text
/// codes! { Gone { cause: "It has ended.", label: "gone", status: 410, kind: SERVER, retry: false, message: "Stop." } }
///
/// pub enum Code {
///     /// It has ended.
///     Gone,
/// }
/// impl Code {
///     pub const ALL: [Self; 1] = [Self::Gone];
///     const fn row(self) -> &'static Row { match self { Self::Gone => &const { Row { cause: .. } } } }
///     pub const fn label(self) -> &'static str { self.row().label }   // and status, kind, retry, cause, message
/// }
/// ```
#[macro_export]
macro_rules! codes {
    ($($code:ident { cause: $cause:literal, $($members:tt)+ })+) => {
        /// Names of the errors, in the order of the table in the API's documentation.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Code {
            $(#[doc = $cause] $code,)+
        }

        impl Code {
            /// Every code.
            pub const ALL: [Self; [$(Self::$code),+].len()] = [$(Self::$code),+];

            const fn row(self) -> &'static Row {
                // In a `const` block, so that a row is a constant of the program and is not made at each call.
                match self {
                    $(Self::$code => &const { Row { cause: $cause, $($members)+ } },)+
                }
            }
        }

        $crate::codes! {@constants
            /// Value of `code` in the body.
            label: &'static str,
            /// HTTP status.
            status: u16,
            /// Value of `type` in the body.
            kind: &'static str,
            /// Value of `x-should-retry`: whether the same request with the same key may fare better.
            retry: bool,
            /// Cause, as one sentence of the documentation.
            cause: &'static str,
            /// Message of this code if no request has a better one.
            message: &'static str,
        }
    };
    (@constants $(#[doc = $text:literal] $name:ident: $type:ty,)+) => {
        impl Code {
            $(
                #[doc = $text]
                #[must_use]
                pub const fn $name(self) -> $type {
                    self.row().$name
                }
            )+
        }
    };
}
