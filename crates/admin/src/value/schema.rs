//! Texts and numbers as the description has them: their bounds in the terms of JSON Schema, once.
//!
//! A member stays a plain text in its body, and its use case judges it, so that a refusal names the member. These
//! bounds must be the same: a client that is generated from the description sends values within them, and those
//! must be accepted.

use holdfast_accounts::{ExternalId, Name, Note, Reason, Source};
use serde::Deserialize;
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{ObjectBuilder, Schema, Type};
use utoipa::{PartialSchema, ToSchema};

/// No control characters, and no blanks around. `holdfast_accounts` refuses more of Unicode, by categories that patterns
/// of JSON Schema cannot name.
const PRINTABLE: &str =
    r"^[^\s\x00-\x1f\x7f-\x9f]([^\x00-\x1f\x7f-\x9f]*[^\s\x00-\x1f\x7f-\x9f])?$";

/// Visible characters of ASCII.
const ASCII_GRAPHIC: &str = "^[!-~]+$";

/// Writes schemas of texts: their bound, their pattern, their description.
macro_rules! texts {
    ($($name:ident($schema:literal, $chars_max:expr, $pattern:expr, $description:literal);)+) => {$(
        #[doc = $description]
        pub(crate) struct $name;

        impl PartialSchema for $name {
            fn schema() -> RefOr<Schema> {
                ObjectBuilder::new()
                    .schema_type(Type::String)
                    .min_length(Some(1))
                    .max_length(Some($chars_max))
                    .pattern(Some($pattern))
                    .description(Some($description))
                    .into()
            }
        }

        impl ToSchema for $name {
            fn name() -> std::borrow::Cow<'static, str> {
                $schema.into()
            }
        }
    )+};
}

texts! {
    NameText("Name", Name::CHARS_MAX, PRINTABLE,
        "1 to 64 printable characters, not like an id, without blanks around them.");
    ReasonText("Reason", Reason::CHARS_MAX, PRINTABLE,
        "Reason of a change, for the audit log: 1 to 200 printable characters.");
    NoteText("Note", Note::CHARS_MAX, PRINTABLE,
        "Note of a posting, like the number of an invoice: 1 to 200 printable characters.");
    ExternalIdText("ExternalId", ExternalId::CHARS_MAX, PRINTABLE,
        "Id that an outer system has for a resource: 1 to 128 printable characters.");
    SourceText("Source", Source::CHARS_MAX, ASCII_GRAPHIC,
        "System that a payment came through, like `stripe`: 1 to 32 ASCII characters without blanks.");
    PaymentReferenceText("PaymentReference", ExternalId::CHARS_MAX, ASCII_GRAPHIC,
        "Id of a payment at its source: 1 to 128 ASCII characters without blanks.");
    CurrencyText("Currency", 3, "^[A-Z]{3}$", "ISO 4217, like `USD`.");
    ModelPatternText("ModelPattern", 128,
        r"^[a-z0-9][a-z0-9._-]{0,62}/([A-Za-z0-9][A-Za-z0-9._:-]{0,62}|\*)$",
        "Entry of an allow-list: public id of a model, or `publisher/*` for each model of a publisher.");
}

/// Body of a change that requires a reason.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ReasonGiven {
    #[schema(value_type = ReasonText)]
    #[expect(dead_code, reason = "the description alone has it; `ReasonBody` is what is read")]
    reason: String,
}
