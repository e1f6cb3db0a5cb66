//! Requests of every sort, as the normal form has them.

use std::collections::BTreeMap;

use holdfast_domain::model::PublicModelId;
use holdfast_domain::request::{
    AssistantMessage, Audio, AudioFormat, BreakpointTtl, CacheBreakpoint, CacheMode, CacheOptions,
    CacheRetention, CacheTtl, Content, ContentPart, CustomTool, Decimal, Function, FunctionCall,
    FunctionChoice, ImageDetail, Item, JsonSchema, Message, Modalities, Opaque, ReasoningEffort,
    RecordingFormat, Request, ResponseFormat, Role, ServiceTier, Tool, ToolCall, ToolChoice,
    ToolKind, ToolMode, Verbosity, Voice,
};
use proptest::option::of;
use proptest::prelude::*;
use proptest::sample::select;

/// Before every member that is not known to the wire.
pub(crate) const EXTRA: &str = "x_";

/// A request with any part of what there is to ask for.
pub(crate) fn requests() -> impl Strategy<Value = Request> {
    let messages = prop::collection::vec(turns(), 1..4);
    let (offers, output) = (offers().boxed(), output().boxed());
    (messages.boxed(), basics(), sampling(), offers, output, service(), extras()).prop_map(
        |(messages, basics, sampling, offers, output, service, extras)| {
            let model = PublicModelId::try_from("a/B:1").unwrap();
            let mut request = Request::new(model, messages);
            for set in [basics, sampling, offers, output, service] {
                set.0(&mut request);
            }
            request.extras = extras;
            request.fold();
            without_empty_turns(request)
        },
    )
}

/// The request with the turns that are hashed and sent, and no others.
pub(crate) fn without_empty_turns(mut request: Request) -> Request {
    request.messages = request.turns().cloned().collect();
    request
}

pub(crate) fn texts() -> impl Strategy<Value = String> {
    prop_oneof![any::<String>(), "[a-z/\"\\\\\n\u{0}é😀]{0,12}"]
}

/// Some fields of a request.
struct Set(Box<dyn FnOnce(&mut Request)>);

impl std::fmt::Debug for Set {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Set")
    }
}

fn basics() -> impl Strategy<Value = Set> {
    let bounds = (of(1_u64..=1 << 53), prop_oneof![Just(1), 1_u32..=128]);
    let metadata = prop::collection::btree_map("[a-zA-Zé ]{0,64}", "[a-z😀\n]{0,40}", 0..=16);
    (bounds, prop::collection::vec(texts(), 0..=4), any::<Option<i64>>(), of(texts()), metadata)
        .prop_map(|((bound, n), stop, seed, user, metadata)| {
            Set(Box::new(move |request| {
                (request.max_output_tokens, request.n) = (bound, n);
                (request.stop, request.seed) = (stop, seed);
                (request.user, request.metadata) = (user, metadata);
            }))
        })
}

fn sampling() -> impl Strategy<Value = Set> {
    let numbers = [decimals(0, 2), decimals(0, 1), decimals(-2, 2), decimals(-2, 2)];
    let bias = prop::collection::btree_map("[0-9a-z]{0,6}", -100_i8..=100, 0..4);
    let logprobs = prop_oneof![Just(None), of(0_u8..=20).prop_map(Some)];
    (numbers, bias, logprobs).prop_map(|(numbers, bias, logprobs)| {
        Set(Box::new(move |request| {
            let [temperature, top_p, presence, frequency] = numbers;
            (request.temperature, request.top_p) = (temperature, top_p);
            (request.presence_penalty, request.frequency_penalty) = (presence, frequency);
            request.logit_bias = bias;
            (request.logprobs, request.top_logprobs) = (logprobs.is_some(), logprobs.flatten());
        }))
    })
}

fn offers() -> impl Strategy<Value = Set> {
    let tool = prop_oneof![
        (functions(), any::<Option<bool>>(), extras()).prop_map(|(function, strict, extras)| {
            Tool::Function(Function { strict, extras, ..function })
        }),
        (texts(), of(texts()), of(formats()), extras()).prop_map(
            |(name, description, format, extras)| {
                Tool::Custom(CustomTool { name, description, format, extras })
            }
        ),
    ];
    let kinds = select(vec![ToolKind::Function, ToolKind::Custom]);
    let modes = select(vec![ToolMode::Auto, ToolMode::Required]);
    let choice = prop_oneof![
        select(ToolMode::ALL).prop_map(ToolChoice::Mode),
        (kinds, texts()).prop_map(|(kind, name)| ToolChoice::Named { kind, name }),
        (modes, prop::collection::vec(objects(), 0..3))
            .prop_map(|(mode, tools)| ToolChoice::Allowed { mode, tools }),
    ];
    let old_choice = prop_oneof![
        Just(FunctionChoice::None),
        Just(FunctionChoice::Auto),
        texts().prop_map(FunctionChoice::Named),
    ];
    let tools = prop::collection::vec(tool, 0..3);
    let functions = prop::collection::vec(functions(), 0..2);
    (tools, of(choice), any::<Option<bool>>(), functions, of(old_choice)).prop_map(
        |(tools, choice, parallel, functions, function_call)| {
            Set(Box::new(move |request| {
                (request.tools, request.tool_choice) = (tools, choice);
                request.parallel_tool_calls = parallel;
                (request.functions, request.function_call) = (functions, function_call);
            }))
        },
    )
}

fn output() -> impl Strategy<Value = Set> {
    let schema = (identifiers(), of(texts()), of(objects()), any::<Option<bool>>());
    let schema = schema.prop_map(|(name, description, schema, strict)| {
        ResponseFormat::JsonSchema(JsonSchema { name, description, schema, strict })
    });
    let format = prop_oneof![Just(ResponseFormat::JsonObject), schema];
    let voice = prop_oneof![texts().prop_map(Voice::Named), texts().prop_map(Voice::Custom)];
    let audio =
        (voice, select(AudioFormat::ALL)).prop_map(|(voice, format)| Audio { voice, format });
    let prediction = predictions();
    let how = (of(select(ReasoningEffort::ALL)), of(select(Verbosity::ALL)));
    (of(format), select(Modalities::ALL), of(audio), of(prediction), how).prop_map(
        |(format, modalities, audio, prediction, (effort, verbosity))| {
            Set(Box::new(move |request| {
                (request.response_format, request.modalities) = (format, modalities);
                (request.audio, request.prediction) = (audio, prediction);
                (request.reasoning_effort, request.verbosity) = (effort, verbosity);
            }))
        },
    )
}

fn service() -> impl Strategy<Value = Set> {
    let json = |all: &'static [&str]| {
        of(select(all).prop_map(|json: &str| Opaque::from_json(json.to_owned())))
    };
    let web = json(&[
        "{}",
        r#"{"search_context_size":"medium"}"#,
        r#"{"search_context_size":"high","user_location":{"type":"approximate","approximate":{}}}"#,
        r#"{"user_location":{"type":"approximate","approximate":{"city":"é","country":"CH"}}}"#,
        r#"{"user_location":{"approximate":{"region":"x","timezone":"y"},"type":"approximate"}}"#,
        r#"{"user_location":null,"search_context_size":"low"}"#,
    ]);
    let moderation = json(&[
        r#"{"model":"m"}"#,
        r#"{"policy":{"input":{"mode":"score"},"output":null},"model":"m"}"#,
        r#"{"policy":{"output":{"mode":"score"},"input":{"mode":"block"}},"model":"m"}"#,
        r#"{"policy":{"input":null,"output":{"mode":"block"}},"model":"m"}"#,
        r#"{"model":"m","policy":null}"#,
    ]);
    let caching = (of(select(CacheMode::ALL)), of(select(CacheTtl::ALL)));
    let caching = of(caching.prop_map(|(mode, ttl)| CacheOptions { mode, ttl }));
    let tiers = (of(select(ServiceTier::ALL)), any::<Option<bool>>(), of("[a-z😀]{0,128}"));
    let caches = (of(texts()), of(select(CacheRetention::ALL)), caching);
    (tiers, caches, web, moderation).prop_map(|(tiers, caches, web, moderation)| {
        Set(Box::new(move |request| {
            (request.service_tier, request.store, request.safety_identifier) = tiers;
            (request.prompt_cache_key, request.prompt_cache_retention) = (caches.0, caches.1);
            request.prompt_cache_options = caches.2;
            (request.web_search_options, request.moderation) = (web, moderation);
        }))
    })
}

fn extras() -> BoxedStrategy<BTreeMap<String, Opaque>> {
    let name = "[a-z\"é]{0,4}".prop_map(|name| format!("{EXTRA}{name}"));
    let value = json().prop_filter("a null is absent", |json| json != "null");
    prop::collection::btree_map(name, value.prop_map(Opaque::from_json), 0..3).boxed()
}

/// Numbers from `low` (zero or `-high`) to `high`, as a caller may write them.
fn decimals(low: i32, high: i32) -> BoxedStrategy<Option<Decimal>> {
    let sign = if low < 0 { select(vec!["", "-"]) } else { select(vec![""]) };
    let number = (sign, 0..high, 0_u64..10_000_000_000_000_000, 0_usize..16).prop_map(
        |(sign, whole, fraction, zeros)| {
            format!("{sign}{whole}.{}{fraction}", "0".repeat(zeros)).parse().unwrap()
        },
    );
    of(prop_oneof![number, Just(high.to_string().parse().unwrap())]).boxed()
}

fn identifiers() -> impl Strategy<Value = String> {
    "[a-zA-Z0-9_-]{1,64}"
}

fn functions() -> impl Strategy<Value = Function> {
    (identifiers(), of(texts()), of(objects())).prop_map(|(name, description, parameters)| {
        Function { name, description, parameters, strict: None, extras: BTreeMap::new() }
    })
}

fn formats() -> impl Strategy<Value = Opaque> {
    let syntax = select(vec!["lark", "regex"]);
    let grammar = (syntax, texts()).prop_map(|(syntax, text)| {
        let grammar = format!(r#"{{"syntax":"{syntax}","definition":{}}}"#, quoted(&text));
        format!(r#"{{"type":"grammar","grammar":{grammar}}}"#)
    });
    prop_oneof![Just(r#"{"type":"text"}"#.to_owned()), grammar].prop_map(Opaque::from_json)
}

/// A string or parts, as the caller wrote them.
fn predictions() -> impl Strategy<Value = Opaque> {
    let mark = select(vec![
        "",
        r#","prompt_cache_breakpoint":{"mode":"explicit"}"#,
        r#","prompt_cache_breakpoint":{"ttl":"30m","mode":"explicit"}"#,
        r#","prompt_cache_breakpoint":{"mode":"explicit","ttl":"12h"}"#,
    ]);
    let part = (texts(), mark)
        .prop_map(|(text, mark)| format!(r#"{{"type":"text","text":{}{mark}}}"#, quoted(&text)));
    let parts =
        prop::collection::vec(part, 1..3).prop_map(|parts| format!("[{}]", parts.join(",")));
    let content = prop_oneof![texts().prop_map(|text| quoted(&text)), parts];
    content.prop_map(|content| {
        Opaque::from_json(format!(r#"{{"content":{content},"type":"content"}}"#))
    })
}

/// JSON without white space, members in any order, numbers in any spelling.
fn json() -> impl Strategy<Value = String> {
    let numbers =
        ["0", "-0", "1", "1.0", "1e0", "10E-1", "0.1", "9007199254740993", "123456789012345678901"];
    let leaf = prop_oneof![
        select(&["null", "true", "false"][..]).prop_map(str::to_owned),
        select(numbers.to_vec()).prop_map(str::to_owned),
        texts().prop_map(|text| quoted(&text)),
    ];
    leaf.prop_recursive(3, 12, 3, |inner| {
        let members = prop::collection::vec((texts(), inner.clone()), 0..3);
        let elements = prop::collection::vec(inner, 0..3);
        let array = elements.prop_map(|elements| format!("[{}]", elements.join(",")));
        prop_oneof![array, members.prop_map(object)]
    })
}

fn objects() -> impl Strategy<Value = Opaque> {
    let members = prop::collection::vec((texts(), json()), 0..4);
    members.prop_map(|members| Opaque::from_json(object(members)))
}

/// No name twice.
fn object(members: Vec<(String, String)>) -> String {
    let members = members.into_iter().enumerate();
    let members =
        members.map(|(at, (name, value))| format!("{}:{value}", quoted(&format!("{name}{at}"))));
    format!("{{{}}}", members.collect::<Vec<_>>().join(","))
}

fn quoted(text: &str) -> String {
    serde_json::to_string(text).unwrap()
}

fn turns() -> impl Strategy<Value = Message> {
    let role = prop_oneof![Just(Role::Developer), Just(Role::System)];
    let instructions = (role, of(texts()), contents(text_parts().boxed()))
        .prop_map(|(role, name, content)| Message { name, ..Message::new(role, Some(content)) });
    let user = (of(texts()), contents(parts().boxed()))
        .prop_map(|(name, content)| Message { name, ..Message::new(Role::User, Some(content)) });
    let tool = (texts(), of(texts()), contents(text_parts().boxed()));
    let tool = tool.prop_map(|(call_id, name, content)| Message {
        name,
        ..Message::new(Role::Tool { call_id }, Some(content))
    });
    let function = (texts(), of(texts())).prop_map(|(name, text)| Message {
        name: Some(name),
        ..Message::new(Role::Function, text.map(Content::Text))
    });
    // In boxes: strategies are moved whole, and these are large.
    let turn = prop_oneof![
        instructions.boxed(),
        user.boxed(),
        tool.boxed(),
        function.boxed(),
        assistants().boxed()
    ];
    (turn, extras()).prop_map(|(turn, extras)| Message { extras, ..turn })
}

fn assistants() -> impl Strategy<Value = Message> {
    let refusal = texts().prop_map(|text| Content::Parts(vec![Item::Refusal(text).into()]));
    let content = prop_oneof![contents(text_parts().boxed()), refusal];
    let kinds = select(vec![ToolKind::Function, ToolKind::Custom]);
    let call = (texts(), kinds, texts(), texts()).prop_map(|(id, kind, name, input)| ToolCall {
        id,
        kind,
        name,
        input,
    });
    let old_call =
        (texts(), texts()).prop_map(|(name, arguments)| FunctionCall { name, arguments });
    let calls = (prop::collection::vec(call, 0..3), of(old_call));
    (of(texts()), of(content), of(texts()), of(texts()), calls).prop_map(
        |(name, content, refusal, audio_id, (tool_calls, function_call))| {
            let reply = AssistantMessage { refusal, audio_id, tool_calls, function_call };
            let is_silent = reply == AssistantMessage::default();
            let text = is_silent.then(|| Content::Text(String::new()));
            Message { name, ..Message::new(Role::Assistant(reply), content.or(text)) }
        },
    )
}

/// A string, a part that is more than bare text, or several parts.
fn contents(part: BoxedStrategy<ContentPart>) -> impl Strategy<Value = Content> {
    let several = prop::collection::vec(part.clone(), 2..4).prop_map(Content::Parts);
    let one = part.prop_map(move |part| match part {
        ContentPart { item: Item::Text(text), cache_breakpoint: None, extras }
            if extras.is_empty() =>
        {
            Content::Text(text)
        }
        part => Content::Parts(vec![part]),
    });
    prop_oneof![texts().prop_map(Content::Text), several, one]
}

fn text_parts() -> impl Strategy<Value = ContentPart> {
    (texts().prop_map(Item::Text), breakpoints(), extras())
        .prop_map(|(item, cache_breakpoint, extras)| ContentPart { item, cache_breakpoint, extras })
}

fn breakpoints() -> impl Strategy<Value = Option<CacheBreakpoint>> {
    of(of(select(BreakpointTtl::ALL)).prop_map(|ttl| CacheBreakpoint { ttl }))
}

fn parts() -> impl Strategy<Value = ContentPart> {
    let scheme = select(vec!["https://", "http://", "data:", "HTTPS://"]);
    // A host of any text is now and then one that is refused.
    let image =
        (scheme, texts(), of(select(ImageDetail::ALL))).prop_map(|(scheme, rest, detail)| {
            Item::Image { url: format!("{scheme}example.org/{rest}"), detail }
        });
    let audio = (texts(), select(RecordingFormat::ALL))
        .prop_map(|(data, format)| Item::Audio { data, format });
    let file =
        (of(texts()), of(texts()), texts(), any::<bool>()).prop_map(|(id, name, data, is_sent)| {
            let data = (is_sent || id.is_none()).then_some(data);
            Item::File { id, name, data }
        });
    let item = prop_oneof![texts().prop_map(Item::Text), image, audio, file];
    (item, breakpoints(), extras()).prop_map(|(item, cache_breakpoint, extras)| ContentPart {
        item,
        cache_breakpoint,
        extras,
    })
}
