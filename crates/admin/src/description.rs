//! The description of the API, OpenAPI 3.1, generated from the handlers.
//!
//! The description is served without a key: the text is the same for all clients, contains no secret, and generators
//! of client code read it unauthenticated. All operations have the errors of the closed table ([`Errors`]). Security
//! and the header of changes are described once, here.

use std::collections::BTreeMap;

use axum::response::Response;
use bytes::Bytes;
use http::HeaderValue;
use http::header::CONTENT_TYPE;
use utoipa::openapi::path::{Parameter, ParameterBuilder, ParameterIn};
use utoipa::openapi::response::{Response as ResponseDescription, ResponseBuilder};
use utoipa::openapi::schema::{ObjectBuilder, SchemaFormat, Type};
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityRequirement, SecurityScheme};
use utoipa::openapi::{
    ComponentsBuilder, ContentBuilder, InfoBuilder, OpenApi, OpenApiBuilder, Ref, RefOr, Required,
};
use utoipa::{IntoParams, IntoResponses, ToSchema};

use crate::error::{Code, ErrorBody};

/// Beginning of every path but the description's.
pub(crate) const PREFIX: &str = "/admin/v1";
/// Path of the description.
pub(crate) const DESCRIPTION_PATH: &str = "/admin/openapi.json";

const SECURITY: &str = "admin_key";

const TEXT: &str = "\
The administration of a Holdfast gateway: wallets, postings, API keys, operations and admin keys.

Amounts are whole micros of the wallet's currency. Moments are RFC 3339. Unknown members and \
parameters are refused. Every change requires an `Idempotency-Key`, a UUID in lower case: the same \
request with the same key is done once and answered again, with `idempotent-replayed: true`; another \
request with it is a 409. Lists are newest first and come in pages; those of models, prices, nodes, routes, \
usage and held amounts are whole.";

/// The description without its operations.
pub(crate) fn frame() -> OpenApi {
    let bearer = HttpBuilder::new()
        .scheme(HttpAuthScheme::Bearer)
        .bearer_format("hfa_…")
        .description(Some("An admin key."));
    let components = ComponentsBuilder::new()
        .security_scheme(SECURITY, SecurityScheme::Http(bearer.build()))
        .schemas_from_iter(error_schemas());
    OpenApiBuilder::new()
        .info(
            InfoBuilder::new()
                .title("Holdfast administration")
                .version(env!("CARGO_PKG_VERSION"))
                .description(Some(TEXT)),
        )
        .components(Some(components.build()))
        .security(Some([SecurityRequirement::new(SECURITY, Vec::<String>::new())]))
        .build()
}

// By hand, because no handler returns the body of an error: [`Errors`] refers to it by name, and a
// generator of clients fails at a name without a schema.
fn error_schemas() -> Vec<(String, RefOr<utoipa::openapi::Schema>)> {
    let mut schemas =
        vec![(ErrorBody::name().into_owned(), <ErrorBody as utoipa::PartialSchema>::schema())];
    ErrorBody::schemas(&mut schemas);
    schemas
}

/// The description as JSON.
pub(crate) fn render(document: &OpenApi) -> Bytes {
    // Texts and lists always render; an empty document would show in the first test that reads it.
    serde_json::to_vec_pretty(document).unwrap_or_default().into()
}

pub(crate) fn answer(document: Bytes) -> Response {
    let mut answer = Response::new(document.into());
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    answer
}

/// Errors of every operation, by status.
pub(crate) struct Errors;

impl IntoResponses for Errors {
    fn responses() -> BTreeMap<String, RefOr<ResponseDescription>> {
        let mut causes: BTreeMap<u16, Vec<&str>> = BTreeMap::new();
        for code in Code::ALL {
            causes.entry(code.status()).or_default().push(code.label());
        }
        let describe = |(status, labels): (u16, Vec<&str>)| {
            let schema = Ref::from_schema_name(ErrorBody::name());
            let content = ContentBuilder::new().schema(Some(schema)).build();
            let response = ResponseBuilder::new()
                .description(format!("`{}`", labels.join("`, `")))
                .content("application/json", content);
            (status.to_string(), RefOr::T(response.build()))
        };
        causes.into_iter().map(describe).collect()
    }
}

/// Header of every change.
pub(crate) struct ChangeHeader;

impl IntoParams for ChangeHeader {
    fn into_params(_parameter_in: impl Fn() -> Option<ParameterIn>) -> Vec<Parameter> {
        let uuid = SchemaFormat::Custom("uuid".to_owned());
        let schema = ObjectBuilder::new().schema_type(Type::String).format(Some(uuid));
        let header = ParameterBuilder::new()
            .name("Idempotency-Key")
            .parameter_in(ParameterIn::Header)
            .required(Required::True)
            .description(Some("A UUID in lower case, new for each change."))
            .schema(Some(schema));
        vec![header.build()]
    }
}

/// Parameter of changes that can be rehearsed.
pub(crate) struct DryRun;

impl IntoParams for DryRun {
    fn into_params(_parameter_in: impl Fn() -> Option<ParameterIn>) -> Vec<Parameter> {
        let parameter = ParameterBuilder::new()
            .name("dry_run")
            .parameter_in(ParameterIn::Query)
            .required(Required::False)
            .description(Some("True: judged and not made; the answer is `{\"would\": …}`."))
            .schema(Some(ObjectBuilder::new().schema_type(Type::Boolean)));
        vec![parameter.build()]
    }
}

/// Parameter of changes that the window of a restore keeps from being done.
pub(crate) struct AfterRestore;

impl IntoParams for AfterRestore {
    fn into_params(_parameter_in: impl Fn() -> Option<ParameterIn>) -> Vec<Parameter> {
        let description = "True: done although the ledger was restored and does not know the `Idempotency-Key`. \
            Without it such a request is 409 `ledger_restored` until the window of the restore ends.";
        let parameter = ParameterBuilder::new()
            .name("after_restore")
            .parameter_in(ParameterIn::Query)
            .required(Required::False)
            .description(Some(description))
            .schema(Some(ObjectBuilder::new().schema_type(Type::Boolean)));
        vec![parameter.build()]
    }
}

/// Header of edits.
pub(crate) struct IfMatchHeader;

impl IntoParams for IfMatchHeader {
    fn into_params(_parameter_in: impl Fn() -> Option<ParameterIn>) -> Vec<Parameter> {
        let header = ParameterBuilder::new()
            .name("If-Match")
            .parameter_in(ParameterIn::Header)
            .required(Required::False)
            .description(Some("The `ETag` that was shown: the edit is refused if it has changed."))
            .schema(Some(
                ObjectBuilder::new()
                    .schema_type(Type::String)
                    .pattern(Some(r#"^(\*|"[0-9]{1,9}")$"#)),
            ));
        vec![header.build()]
    }
}

/// Writes the parameter of a path that names a resource by its id.
macro_rules! paths {
    ($($name:ident($description:literal);)+) => {$(
        #[doc = $description]
        pub(crate) struct $name;

        impl IntoParams for $name {
            fn into_params(_in: impl Fn() -> Option<ParameterIn>) -> Vec<Parameter> {
                let id = ParameterBuilder::new().name("id").parameter_in(ParameterIn::Path);
                let id = id.required(Required::True).description(Some($description));
                vec![id.schema(Some(uuid_schema())).build()]
            }
        }
    )+};
}

paths! {
    WalletPath("Id of the wallet.");
    ApiKeyPath("Id of the API key.");
    WebhookPath("Id of the webhook.");
    PersonPath("Id of the person.");
    AdminKeyPath("Id of the admin key.");
    OperationPath("Id of the operation.");
    JobPath("Id of the job.");
    EventPath("Id of the event.");
    DepositPath("Id of the deposit.");
    AdjustmentPath("Id of the adjustment.");
    RefundPath("Id of the refund.");
}

fn uuid_schema() -> ObjectBuilder {
    let uuid = SchemaFormat::Custom("uuid".to_owned());
    ObjectBuilder::new().schema_type(Type::String).format(Some(uuid))
}

#[cfg(test)]
mod tests;
