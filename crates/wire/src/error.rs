//! Errors that a caller can get: a closed table of codes, and the body that carries one.
//!
//! A code is one row of `code`; `message` makes the messages that name a part of a request. The set is part of
//! the API: clients branch on `code`, and SDKs retry by status and `x-should-retry`.
//!
//! A body never quotes a provider, a prompt or an internal name. `charged_micros` is the charge of the key; it
//! is absent while that is unknown, so that no client books a zero. Not here: the decision which code is given
//! when (engine and http), and the headers that go with it (http).

mod code;
mod message;
pub mod table;

use holdfast_domain::OperationId;
use holdfast_domain::operation::ProviderRefusal;
use holdfast_domain::usage::Meters;
use serde::Serialize;

pub(crate) use self::code::Step;
pub use self::code::{Code, KeyEffect};
pub use self::message::{
    KeyPlace, context_length_exceeded, malformed_key, model_not_found, no_price, repeated_key,
    two_keys,
};
use crate::api::MetersView;
use crate::render;

/// Error body, ready to render.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ErrorBody<'a> {
    /// Event and remedy in words; never a text of a provider or of the request.
    pub message: &'a str,
    /// Name of the error.
    pub code: Code,
    /// Field that the error is about.
    pub param: Option<&'a str>,
    /// Charge of this key, in micros; `None` if it is not known yet.
    pub charged_micros: Option<i64>,
    /// Amount that running operations hold of the wallet, in micros; `None` unless their ends may make up for what is
    /// missing and the API key may see the balance.
    pub held_micros: Option<i64>,
    /// Operation, once a key is bound; absent on a conflict, which reveals no part of the other request.
    pub operation_id: Option<OperationId>,
    /// Meters of the run, if the answer is gone but its bill is not.
    pub meters: Option<&'a Meters>,
}

impl<'a> ErrorBody<'a> {
    /// Error with its usual message: no field, no operation, and no charge if that is known.
    #[must_use]
    pub const fn new(code: Code) -> Self {
        Self {
            message: code.message(),
            code,
            param: None,
            charged_micros: if code.is_charge_known() { Some(0) } else { None },
            held_micros: None,
            operation_id: None,
            meters: None,
        }
    }

    /// Renders the body as JSON.
    #[must_use]
    pub fn render(&self) -> Vec<u8> {
        render::to_bytes(&Envelope {
            error: Fields {
                message: self.message,
                kind: self.code.kind(),
                param: self.param,
                code: self.code.label(),
                charged_micros: self.charged_micros,
                held_micros: self.held_micros,
                operation_id: self.operation_id.map(|id| id.to_string()),
                meters: self.meters.map(MetersView::of),
            },
        })
    }
}

#[derive(Serialize)]
struct Envelope<'a> {
    error: Fields<'a>,
}

#[derive(Serialize)]
struct Fields<'a> {
    message: &'a str,
    // The first four are always there, if only as null, because OpenAI's SDKs read them without asking.
    #[serde(rename = "type")]
    kind: &'a str,
    param: Option<&'a str>,
    code: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    charged_micros: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    held_micros: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    operation_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    meters: Option<MetersView>,
}

/// Error for a provider's definitive refusal: its rendering is sealed, and this rebuilds it after
/// the sealed content is gone.
#[must_use]
pub const fn refused(refusal: ProviderRefusal, operation: OperationId) -> ErrorBody<'static> {
    let param = match refusal {
        // The provider's own `param` is not passed on: nothing of a provider is quoted.
        ProviderRefusal::Request => None,
        ProviderRefusal::ContextLength => Some("messages"),
    };
    // The same body on every replay, also when the sealed first one is gone: so nothing in it may vary.
    ErrorBody { param, operation_id: Some(operation), ..ErrorBody::new(Code::of(refusal)) }
}
