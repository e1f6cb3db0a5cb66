//! Verbs of one shape (`holdfast_accounts::VERBS`): one handler, and the description of each row.

use axum::routing::{MethodRouter, post};
use holdfast_accounts::{Subject, SubjectKind, Verb};
use serde::Serialize;
use utoipa::openapi::path::{
    HttpMethod, Operation, OperationBuilder, ParameterBuilder, ParameterIn,
};
use utoipa::openapi::request_body::RequestBodyBuilder;
use utoipa::openapi::schema::{ObjectBuilder, OneOfBuilder, SchemaFormat, Type};
use utoipa::openapi::{
    ContentBuilder, Paths, Ref, RefOr, Required, ResponseBuilder, ResponsesBuilder, Schema,
};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::UtoipaMethodRouter;

use crate::answer::Answer;
use crate::api_keys::ApiKeyView;
use crate::description::{ChangeHeader, Errors};
use crate::error::Problem;
use crate::gate::Gate;
use crate::request::{Caller, Change, ReasonBody};
use crate::value::schema::ReasonGiven;
use crate::wallets::WalletView;
use crate::webhooks::WebhookView;

/// Resource as a verb has left it.
#[derive(Debug, Serialize)]
#[serde(untagged)]
enum SubjectView {
    Wallet(WalletView),
    ApiKey(ApiKeyView),
    Webhook(WebhookView),
}

/// Handler of a verb.
pub(crate) fn handler(verb: &'static Verb) -> MethodRouter<Gate> {
    let handler = async move |caller: Caller, Change { request, .. }: Change<ReasonBody>| {
        let (principal, id) = (&caller.principal, caller.id()?);
        let done = caller.accounts().carry_out(principal, &request, verb, id).await?;
        let (view, edited) = match done.thing {
            Subject::Wallet(wallet) => (SubjectView::Wallet(wallet.clone().into()), wallet.edited),
            Subject::ApiKey(key) => (SubjectView::ApiKey(key.clone().into()), key.edited),
            Subject::Webhook(webhook) => {
                let edited = webhook.edited;
                (SubjectView::Webhook(WebhookView::new(webhook, principal.role)), edited)
            }
        };
        Ok::<_, Problem>(Answer::changed(view, done.replayed).edited(edited))
    };
    post(handler)
}

/// Description of a verb, with its handler.
pub(crate) fn described(verb: &'static Verb) -> UtoipaMethodRouter<Gate> {
    let mut paths = Paths::new();
    paths.add_path_operation(verb.endpoint(), vec![HttpMethod::Post], operation(verb));
    // Other endpoints have the schemas of bodies and answers.
    (Vec::new(), paths, handler(verb))
}

/// Words of a resource in the description.
struct SubjectWords {
    id: &'static str,
    schema: std::borrow::Cow<'static, str>,
}

fn words(verb: &Verb) -> SubjectWords {
    let (id, schema) = match verb.subject {
        SubjectKind::Wallet => ("wallet", WalletView::name()),
        SubjectKind::ApiKey => ("api_key", ApiKeyView::name()),
        SubjectKind::Webhook => ("webhook", WebhookView::name()),
    };
    SubjectWords { id, schema }
}

fn operation(verb: &Verb) -> Operation {
    let SubjectWords { id, schema } = words(verb);
    let name = verb.subject.nouns().name;
    let json = |schema: RefOr<Schema>| ContentBuilder::new().schema(Some(schema)).build();
    let reference = |name: &str| RefOr::Ref(Ref::from_schema_name(name));
    let uuid = SchemaFormat::Custom("uuid".to_owned());
    let uuid = ObjectBuilder::new().schema_type(Type::String).format(Some(uuid));
    let id_parameter = ParameterBuilder::new()
        .name("id")
        .parameter_in(ParameterIn::Path)
        .required(Required::True)
        .description(Some(format!("Id of the {name}.")))
        .schema(Some(uuid));
    let body = if verb.needs_reason {
        let reason = reference(&ReasonGiven::name());
        let body = RequestBodyBuilder::new().content("application/json", json(reason));
        body.required(Some(Required::True))
    } else {
        let none = ObjectBuilder::new().schema_type(Type::Null);
        let reason = OneOfBuilder::new().item(reference(&ReasonBody::name())).item(none);
        RequestBodyBuilder::new().content("application/json", json(reason.into()))
    };
    let answer = ResponseBuilder::new()
        .description(format!("The {name}."))
        .content("application/json", json(reference(&schema)));
    OperationBuilder::new()
        .tag(verb.subject.nouns().collection)
        .summary(Some(verb.summary))
        .operation_id(Some(format!("{}_{id}", verb.word)))
        .parameter(id_parameter)
        .parameters(Some(ChangeHeader::into_params(|| None)))
        .request_body(Some(body.build()))
        .responses(
            ResponsesBuilder::new()
                .response("200", answer)
                .responses_from_into_responses::<Errors>(),
        )
        .build()
}
