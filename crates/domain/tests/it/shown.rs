//! What reaches a log through `{:?}` tells lengths, never what was asked or answered.

use std::fmt::Debug;

use holdfast_domain::answer::{Answer, ChoiceDelta, Delta, FinishReason, ToolCallDelta};
use holdfast_domain::conduct::Conduct;
use holdfast_domain::private::Private;
use holdfast_domain::request::{
    AssistantMessage, Content, ContentPart, CustomTool, Function, FunctionCall, FunctionChoice,
    Item, JsonSchema, Message, Opaque, RecordingFormat, ResponseFormat, Role, Tool, ToolCall,
    ToolChoice, ToolKind, ToolMode, Voice,
};
use holdfast_domain::secret::CredentialSecret;
use holdfast_domain::state::ProviderState;
use holdfast_domain::{Currency, OperationId, RequestKey};
use holdfast_testkit::{MemoryJournal, NoPause, sample};

const SECRET: &str = "the treasure is under the old oak";

#[track_caller]
fn check(value: &dyn Debug, expected: &str) {
    assert_eq!(format!("{value:?}"), expected);
    assert!(!format!("{value:#?}").contains("oak"));
}

#[test]
fn requests_and_calls_tell_their_length() {
    let mut request = sample::request(SECRET);
    request.messages[0].name = Some("oak".to_owned());
    request.stop = vec!["oak".to_owned()];
    request.user = Some("oak".to_owned());
    request.metadata = [("oak".to_owned(), "oak".to_owned())].into();
    check(&request, "Request(holdfast/sample, 1 messages, 48 bytes)");
    let call = format!("{:?}", sample::call(SECRET));
    assert!(call.contains("Request(holdfast/sample, 1 messages, 33 bytes)"), "{call}");
}

#[test]
fn the_pieces_of_a_request_tell_their_length() {
    let text = || SECRET.to_owned();
    let opaque = || Opaque::from_json(format!("{{\"{SECRET}\":1}}"));
    let call = ToolCall { id: text(), kind: ToolKind::Function, name: text(), input: text() };
    let reply = AssistantMessage {
        refusal: Some(text()),
        audio_id: Some(text()),
        tool_calls: vec![call],
        function_call: Some(FunctionCall { name: text(), arguments: text() }),
    };
    let extras = || [(text(), opaque())].into();
    let shown = "assistant(refusal Some(33), [ToolCall(Function, name 33, input 33)], \
                 Some(FunctionCall(name 33, arguments 33)))";
    check(&reply, shown);
    let message = |role| Message {
        name: Some(text()),
        extras: extras(),
        ..Message::new(role, Some(Content::Text(text())))
    };
    check(&message(Role::User), "Message(user, name Some(33), Some(Text(33 bytes)))");
    let answer = Message { content: None, name: None, ..message(Role::Assistant(reply)) };
    check(&answer, &format!("Message({shown}, name None, None)"));
    check(&message(Role::Tool { call_id: text() }).role, "tool");
    let file = Item::File { id: Some(text()), name: Some(text()), data: Some(text()) };
    for (item, expected) in [
        (Item::Text(text()), "Text(33 bytes)"),
        (Item::Refusal(text()), "Refusal(33 bytes)"),
        (Item::Image { url: text(), detail: None }, "Image(33 bytes)"),
        (Item::Audio { data: text(), format: RecordingFormat::Wav }, "Audio(33 bytes)"),
        (file, "File(Some(33) bytes)"),
    ] {
        check(&item, expected);
        let part = ContentPart { extras: extras(), ..ContentPart::from(item) };
        let shown = format!("Parts([ContentPart {{ item: {expected}, cache_breakpoint: None }}])");
        check(&Content::Parts(vec![part]), &shown);
    }
    let (name, description) = (text(), Some(text()));
    let (parameters, strict) = (Some(opaque()), Some(true));
    let function = Function { name, description, parameters, strict, extras: extras() };
    check(&Tool::Function(function), "Function(Function(name 33, Some(Opaque(39 bytes))))");
    let (name, description) = (text(), Some(text()));
    let custom = CustomTool { name, description, format: None, extras: extras() };
    check(&custom, "CustomTool(name 33, None)");
    let named = ToolChoice::Named { kind: ToolKind::Custom, name: text() };
    check(&named, "Named(Custom, name 33)");
    let allowed = ToolChoice::Allowed { mode: ToolMode::Auto, tools: vec![opaque()] };
    check(&allowed, "Allowed(Auto, [Opaque(39 bytes)])");
    check(&ToolChoice::Mode(ToolMode::Auto), "Auto");
    check(&FunctionChoice::Named(text()), "Named(name 33)");
    let (name, description) = (text(), Some(text()));
    let schema = JsonSchema { name, description, schema: Some(opaque()), strict: None };
    let format = ResponseFormat::JsonSchema(schema);
    check(&format, "JsonSchema(JsonSchema(name 33, Some(Opaque(39 bytes))))");
    check(&Voice::Named(text()), "Named(name 33)");
    check(&Voice::Custom(text()), "Custom(id 33)");
}

#[test]
fn answers_tell_their_length() {
    let choice = ChoiceDelta {
        index: 0,
        content: Some(SECRET.to_owned()),
        refusal: Some("oak".to_owned()),
        finish: Some(FinishReason::Stop),
        ..ChoiceDelta::default()
    };
    let delta = Delta::from(vec![choice]);
    let shown = "content Some(33), refusal Some(3), finish Some(Stop))";
    let beside = "service_tier: None, predicted: None, moderation: None";
    check(&delta, &format!("Delta {{ choices: [ChoiceDelta(0: {shown}], {beside} }}"));
    let mut answer = Answer::default();
    answer.append(delta);
    let beside = "service_tier: None, predicted: PredictionTokens { accepted: 0, rejected: 0 }, moderation: None";
    check(&answer, &format!("Answer {{ choices: {{0: Choice({shown}}}, {beside} }}"));
}

#[test]
fn what_a_provider_wants_back_tells_its_length() {
    let state = ProviderState::new(SECRET);
    check(&state, "Some(ProviderState(33 bytes))");
    let call = ToolCallDelta { state, ..ToolCallDelta::default() };
    check(&call, "ToolCallDelta(0: None, name None, input None)");
    let choice = ChoiceDelta { tool_calls: vec![call], ..ChoiceDelta::default() };
    let mut answer = Answer::default();
    answer.append(Delta::from(vec![choice]));
    let called = answer.choices().flat_map(|(_, choice)| choice.tool_calls.values());
    check(&called.collect::<Vec<_>>(), "[ToolCall(Function, name 0, input 0)]");
}

#[test]
fn a_sealed_result_tells_its_length_and_whose_it_is() {
    let result = sample::result(SECRET);
    let (bytes, credential) = (result.sealed.len(), result.credential);
    check(&result, &format!("SealedResult({bytes} bytes for {credential})"));
}

#[test]
fn an_order_is_shown_as_its_claim_and_its_conduct_as_what_it_may_reap() {
    let claim = sample::claim().request(SECRET).build();
    check(&sample::order(&claim), &format!("{claim:?}"));
    let journal = MemoryJournal::with_funds(0);
    let conduct = Conduct { journal: &journal, pause: &NoPause, orphan_grace: None };
    check(&conduct, "Conduct(orphan_grace: None)");
}

#[test]
fn values_are_shown_with_their_names() {
    check(&"EUR".parse::<Currency>().unwrap(), "Currency(EUR)");
    let key = "7f2c1a9e-5b7d-4c3e-9a51-0f8e6d2b4c11";
    check(&key.parse::<RequestKey>().unwrap(), &format!("RequestKey({key})"));
}

#[test]
fn private_content_tells_its_length_wherever_it_is() {
    check(&Private(SECRET.to_owned()), "33 bytes");
    check(&Some(Private(Box::<str>::from(SECRET))), "Some(33 bytes)");
    check(&[Private(SECRET.as_bytes().to_vec())], "[33 bytes]");
    // No larger than what it wraps: it costs nothing to hold.
    assert_eq!(size_of::<Private<String>>(), size_of::<String>());
}

#[test]
fn keys_and_secrets_show_their_names_only() {
    let secret = CredentialSecret::new(*b"the treasure is under the oak...");
    check(&secret, "CredentialSecret(…)");
    check(&secret.result_key(OperationId::from_u128(1)), "ResultKey(…)");
}
