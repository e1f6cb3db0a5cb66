//! The fingerprint: equal for equal requests, another one for any difference.

use std::collections::BTreeMap;

use holdfast_domain::ApiKeyId;
use holdfast_domain::model::PublicModelId;
use holdfast_domain::request::{
    AssistantMessage, CacheBreakpoint, CacheOptions, Content, ContentPart, CustomTool,
    FINGERPRINT_VERSION, Function, FunctionChoice, Item, JsonSchema, Message, Modalities, Opaque,
    RecordingFormat, Request, ResponseFormat, Role, Tool, ToolChoice, ToolMode, UNFOLDED_VERSION,
    fingerprint,
};
use holdfast_domain::secret::{Fingerprint, FingerprintKey, ServerSecret};
use proptest::prelude::{Strategy, any, prop_assert_eq, proptest};

fn key(n: u8) -> FingerprintKey {
    ServerSecret::new(&[n; 16]).unwrap().fingerprint_key(ApiKeyId::from_u128(1))
}

fn of(request: &Request) -> Fingerprint {
    fingerprint(&key(1), FINGERPRINT_VERSION, 1, request).unwrap()
}

fn turn(role: Role, text: &str) -> Message {
    Message::new(role, Some(Content::Text(text.to_owned())))
}

fn request() -> Request {
    let model = PublicModelId::try_from("holdfast/sample").unwrap();
    Request::new(model, vec![turn(Role::System, "Be brief."), turn(Role::User, "hello")])
}

/// The sample request with one thing changed, each time another.
fn variants() -> Vec<(&'static str, Request)> {
    let mut variants = vec![("nothing", request())];
    let mut vary = |name, change: &dyn Fn(&mut Request)| {
        let mut request = request();
        change(&mut request);
        variants.push((name, request));
    };
    let decimal = |text: &str| Some(text.parse().unwrap());
    let pair = |name: &str, value: &str| BTreeMap::from([(name.to_owned(), value.to_owned())]);
    vary("model", &|r| r.model = PublicModelId::try_from("holdfast/other").unwrap());
    vary("text", &|r| r.messages[1] = turn(Role::User, "Hello"));
    vary("empty text", &|r| r.messages[1] = turn(Role::User, ""));
    vary("no content", &|r| r.messages[1].content = None);
    vary("assistant", &|r| r.messages[1].role = Role::Assistant(AssistantMessage::default()));
    vary("developer", &|r| r.messages[0].role = Role::Developer);
    vary("name", &|r| r.messages[1].name = Some("hello".to_owned()));
    vary("empty name", &|r| r.messages[1].name = Some(String::new()));
    vary("name of the other turn", &|r| r.messages[0].name = Some("hello".to_owned()));
    vary("order", &|r| r.messages.reverse());
    vary("one turn less", &|r| r.messages.truncate(1));
    vary("one turn more", &|r| {
        r.messages.push(turn(Role::Assistant(AssistantMessage::default()), ""));
    });
    let parts = |texts: &[&str]| {
        Content::Parts(texts.iter().map(|t| ContentPart::from((*t).to_owned())).collect())
    };
    vary("parts", &|r| r.messages[1].content = Some(parts(&["hel", "lo"])));
    vary("other parts", &|r| r.messages[1].content = Some(parts(&["hell", "o"])));
    vary("joined turns", &|r| r.messages = vec![turn(Role::System, "Be brief.hello")]);
    vary("bound", &|r| r.max_output_tokens = Some(1));
    vary("other bound", &|r| r.max_output_tokens = Some(256));
    vary("choices", &|r| r.n = 2);
    vary("temperature", &|r| r.temperature = decimal("1"));
    vary("other temperature", &|r| r.temperature = decimal("0.1"));
    vary("cold", &|r| r.temperature = decimal("0"));
    vary("top_p", &|r| r.top_p = decimal("1"));
    vary("presence", &|r| r.presence_penalty = decimal("1"));
    vary("negative presence", &|r| r.presence_penalty = decimal("-1"));
    vary("frequency", &|r| r.frequency_penalty = decimal("1"));
    vary("stop", &|r| r.stop = vec!["a".to_owned()]);
    vary("empty stop", &|r| r.stop = vec![String::new()]);
    vary("two stops", &|r| r.stop = vec!["a".to_owned(), "b".to_owned()]);
    vary("stops in another order", &|r| r.stop = vec!["b".to_owned(), "a".to_owned()]);
    vary("joined stops", &|r| r.stop = vec!["ab".to_owned()]);
    vary("seed", &|r| r.seed = Some(0));
    vary("negative seed", &|r| r.seed = Some(-1));
    vary("user", &|r| r.user = Some("a".to_owned()));
    vary("empty user", &|r| r.user = Some(String::new()));
    vary("metadata", &|r| r.metadata = pair("a", "b"));
    vary("metadata turned", &|r| r.metadata = pair("b", "a"));
    vary("metadata shifted", &|r| r.metadata = pair("ab", ""));
    variants
}

fn parts(items: Vec<Item>) -> Content {
    Content::Parts(items.into_iter().map(ContentPart::from).collect())
}

fn extras() -> BTreeMap<String, Opaque> {
    BTreeMap::from([("a".to_owned(), Opaque::from_json("1".to_owned()))])
}

fn function(name: &str) -> Function {
    Function {
        name: name.to_owned(),
        description: None,
        parameters: None,
        strict: None,
        extras: BTreeMap::new(),
    }
}

/// Requests with the newer fields, each another, many of them easy to take for one another.
fn newer_variants() -> Vec<(&'static str, Request)> {
    let mut variants = vec![("nothing", request())];
    let mut vary = |name, change: &dyn Fn(&mut Request)| {
        let mut request = request();
        change(&mut request);
        variants.push((name, request));
    };
    let opaque = |json: &str| Opaque::from_json(json.to_owned());
    let image = |url: &str| Item::Image { url: url.to_owned(), detail: None };
    let file = |id: Option<&str>, name: Option<&str>, data: Option<&str>| {
        let owned = |text: Option<&str>| text.map(str::to_owned);
        Item::File { id: owned(id), name: owned(name), data: owned(data) }
    };
    let say = |items: Vec<Item>| Some(parts(items));
    vary("image", &|r| r.messages[1].content = say(vec![image("hello")]));
    vary("refusal part", &|r| r.messages[1].content = say(vec![Item::Refusal("hello".to_owned())]));
    vary("file id", &|r| r.messages[1].content = say(vec![file(Some("a"), None, None)]));
    vary("file name", &|r| r.messages[1].content = say(vec![file(None, Some("a"), None)]));
    vary("file data", &|r| r.messages[1].content = say(vec![file(None, None, Some("a"))]));
    vary("marked text", &|r| {
        let item = Item::Text("hello".to_owned());
        let cache_breakpoint = Some(CacheBreakpoint { ttl: None });
        let part = ContentPart { cache_breakpoint, ..ContentPart::from(item) };
        r.messages[1].content = Some(Content::Parts(vec![part]));
    });
    vary("tool result", &|r| r.messages[1].role = Role::Tool { call_id: String::new() });
    vary("function result", &|r| r.messages[1].role = Role::Function);
    let reply = |change: fn(&mut AssistantMessage)| {
        move |r: &mut Request| {
            let mut reply = AssistantMessage::default();
            change(&mut reply);
            r.messages[1].role = Role::Assistant(reply);
        }
    };
    vary("refusal", &reply(|said| said.refusal = Some("a".to_owned())));
    vary("audio id", &reply(|said| said.audio_id = Some("a".to_owned())));
    vary("extra of a turn", &|r| {
        r.messages[1].role = Role::Assistant(AssistantMessage::default());
        r.messages[1].extras = extras();
    });
    vary("extra", &|r| r.extras = extras());
    vary("logprobs", &|r| r.logprobs = true);
    vary("top logprobs", &|r| (r.logprobs, r.top_logprobs) = (true, Some(0)));
    vary("bias", &|r| r.logit_bias = BTreeMap::from([("1".to_owned(), 1)]));
    vary("other bias", &|r| r.logit_bias = BTreeMap::from([("1".to_owned(), -1)]));
    vary("tool", &|r| r.tools = vec![Tool::Function(function("f"))]);
    vary("two tools", &|r| r.tools = ["f", "g"].map(|f| Tool::Function(function(f))).to_vec());
    vary("functions", &|r| r.functions = vec![function("f")]);
    vary("custom tool", &|r| {
        let (description, format) = (None, None);
        let name = "f".to_owned();
        r.tools =
            vec![Tool::Custom(CustomTool { name, description, format, extras: BTreeMap::new() })];
    });
    vary("no tool", &|r| r.tool_choice = Some(ToolChoice::Mode(ToolMode::None)));
    vary("no function", &|r| r.function_call = Some(FunctionChoice::None));
    let named_none = || Some(FunctionChoice::Named("none".to_owned()));
    vary("function named none", &|r| r.function_call = named_none());
    vary("text and audio", &|r| r.modalities = Modalities::Both);
    vary("audio", &|r| r.modalities = Modalities::Audio);
    vary("not several calls", &|r| r.parallel_tool_calls = Some(false));
    vary("several calls", &|r| r.parallel_tool_calls = Some(true));
    vary("not stored", &|r| r.store = Some(false));
    vary("safety", &|r| r.safety_identifier = Some("a".to_owned()));
    vary("cache key", &|r| r.prompt_cache_key = Some("a".to_owned()));
    vary("caching", &|r| r.prompt_cache_options = Some(CacheOptions { mode: None, ttl: None }));
    vary("prediction", &|r| r.prediction = Some(opaque("1")));
    vary("search", &|r| r.web_search_options = Some(opaque("1")));
    vary("moderation", &|r| r.moderation = Some(opaque("1")));
    vary("moderation 1.0", &|r| r.moderation = Some(opaque("1.0")));
    variants
}

/// Requests for answers of a shape, each another.
fn shaped_variants() -> Vec<(&'static str, Request)> {
    let schema = |name: &str, strict, json: Option<&str>| {
        let schema = json.map(|json| Opaque::from_json(json.to_owned()));
        ResponseFormat::JsonSchema(JsonSchema {
            name: name.to_owned(),
            description: None,
            schema,
            strict,
        })
    };
    let shapes = [
        ("json", ResponseFormat::JsonObject),
        ("schema", schema("a", None, None)),
        ("other schema's name", schema("b", None, None)),
        ("strict schema", schema("a", Some(true), None)),
        ("schema of 1", schema("a", None, Some("{\"b\":1}"))),
        ("schema of 1.0", schema("a", None, Some("{\"b\":1.0}"))),
    ];
    shapes
        .map(|(name, shape)| (name, Request { response_format: Some(shape), ..request() }))
        .to_vec()
}

#[test]
fn the_facts_count_every_string_and_what_has_no_length() {
    let of = |change: &dyn Fn(&mut Request)| {
        let mut request = request();
        change(&mut request);
        request.cost_factors()
    };
    let plain = request().cost_factors();
    assert_eq!((plain.prompt_bytes, plain.messages, plain.n), (9 + 5, 2, 1));
    assert_eq!(plain.text_bytes, plain.prompt_bytes);
    let image = Item::Image { url: "https://x".to_owned(), detail: None };
    let data = "AAAA".to_owned();
    let audio = Item::Audio { data, format: RecordingFormat::Wav };
    let file = Item::File {
        id: Some("iiiii".to_owned()),
        name: Some("n".to_owned()),
        data: Some("dd".to_owned()),
    };
    let mixed = of(&|r| {
        let items = vec![image.clone(), image.clone(), audio.clone(), file.clone()];
        r.messages[1].content = Some(parts(items));
    });
    let counts = (mixed.images, mixed.recordings, mixed.files);
    assert_eq!((counts, mixed.prompt_bytes), ((2, 1, 1), 9 + 4 + 5 + 3));
    // The bound has all of them; text is the first turn's and the name of the document.
    assert_eq!(mixed.text_bytes, 9 + 1);
    let kept = of(&|r| {
        let audio_id = Some("id".to_owned());
        r.messages[1].role =
            Role::Assistant(AssistantMessage { audio_id, ..AssistantMessage::default() });
    });
    assert_eq!((kept.recordings, kept.prompt_bytes, kept.text_bytes), (1, 9 + 5 + 2, 9 + 5));
    let offered = of(&|r| {
        r.extras = BTreeMap::from([("key".to_owned(), Opaque::from_json("[1]".to_owned()))]);
        r.functions = vec![Function {
            name: "f".to_owned(),
            description: Some("dd".to_owned()),
            parameters: Some(Opaque::from_json("{}".to_owned())),
            strict: None,
            extras: BTreeMap::new(),
        }];
    });
    assert_eq!((offered.tools, offered.prompt_bytes), (1, 9 + 5 + 6 + 5));
    assert!(of(&|r| r.web_search_options = Some(Opaque::from_json("{}".to_owned()))).searches);
    assert!(of(&|r| r.modalities = Modalities::Both).audio_output);
    assert!(!plain.searches && !plain.audio_output);
    let set = of(&|r| {
        (r.user, r.stop) = (Some("u".to_owned()), vec!["st".to_owned()]);
        r.metadata = BTreeMap::from([("key".to_owned(), "value".to_owned())]);
    });
    assert_eq!(set.prompt_bytes, 9 + 5 + 1 + 2 + 8);
}

#[test]
fn any_difference_is_another_fingerprint() {
    let mut variants = variants();
    variants.extend(newer_variants().split_off(1));
    variants.extend(shaped_variants());
    for (at, (name, one)) in variants.iter().enumerate() {
        for (other_name, other) in &variants[at + 1..] {
            assert_ne!(of(one), of(other), "{name} and {other_name}");
        }
    }
}

#[test]
fn the_same_request_under_other_terms_is_another_fingerprint() {
    let under = |key, contract| fingerprint(&key, FINGERPRINT_VERSION, contract, &request());
    assert_ne!(under(key(1), 1), under(key(1), 2));
    assert_ne!(under(key(1), 1), under(key(2), 1));
    assert_eq!(under(key(1), 1), Some(of(&request())));
    assert_eq!(fingerprint(&key(1), FINGERPRINT_VERSION + 1, 1, &request()), None);
    assert_eq!(fingerprint(&key(1), 0, 1, &request()), None);
}

#[test]
fn the_first_version_of_the_feed_never_changes() {
    let mut whole = request();
    whole.messages[0].name = Some("ops".to_owned());
    let content = Content::Parts(vec!["ä".to_owned().into(), String::new().into()]);
    whole.messages.push(Message::new(Role::Developer, Some(content)));
    whole.messages.push(Message::new(Role::Assistant(AssistantMessage::default()), None));
    whole.max_output_tokens = Some(77);
    whole.n = 3;
    whole.temperature = Some("0.7".parse().unwrap());
    whole.top_p = Some("1".parse().unwrap());
    whole.presence_penalty = Some("-1.5".parse().unwrap());
    whole.frequency_penalty = Some("2e-3".parse().unwrap());
    whole.stop = vec!["\n".to_owned(), "END".to_owned()];
    whole.seed = Some(i64::MIN);
    whole.user = Some("u".to_owned());
    whole.metadata = BTreeMap::from([("k".to_owned(), "v".to_owned())]);
    let hex = |request: &Request| {
        let first = fingerprint(&key(1), UNFOLDED_VERSION, 1, request).unwrap();
        blake3::Hash::from_bytes(first.to_bytes()).to_string()
    };
    let golden = [
        "fc1357dbe28a4a5a4685e9fde00db896c0269ca5a0afbfff6f200089c004ba5e",
        "ccae45b79700a062cc3d7c968a1abcf88180c6a0068010836acba3444138bd3a",
    ];
    assert_eq!([hex(&request()), hex(&whole)], golden);
}

#[test]
fn nor_do_the_fields_that_joined_it() {
    let mut all = blake3::Hasher::new();
    for (_, request) in newer_variants() {
        let first = fingerprint(&key(1), UNFOLDED_VERSION, 1, &request).unwrap();
        all.update(&first.to_bytes());
    }
    assert_eq!(
        all.finalize().to_string(),
        "733ffd50300ee6ef9e20c8c62868b762f1d890216e581f56cb20c71c660715d2"
    );
}

/// Requests that differ in a few small ways, so that equal ones come up too.
fn any_request() -> impl Strategy<Value = Request> {
    let text = || proptest::sample::select(vec!["", "a", "b", "ab", "\0"]);
    let role = proptest::sample::select(vec![
        Role::Developer,
        Role::System,
        Role::User,
        Role::Assistant(AssistantMessage::default()),
    ]);
    let content =
        (any::<bool>(), proptest::collection::vec(text(), 0..3)).prop_map(|(is_some, texts)| {
            let mut texts: Vec<String> = texts.into_iter().map(str::to_owned).collect();
            let content = if texts.len() == 1 {
                Content::Text(texts.remove(0))
            } else {
                Content::Parts(texts.into_iter().map(ContentPart::from).collect())
            };
            is_some.then_some(content)
        });
    let message =
        (role, proptest::option::of(text()), content).prop_map(|(role, name, content)| Message {
            name: name.map(str::to_owned),
            ..Message::new(role, content)
        });
    let messages = proptest::collection::vec(message, 0..3);
    let number = || proptest::option::of(proptest::sample::select(vec!["0", "1", "-1", "0.1"]));
    let stop = proptest::collection::vec(text(), 0..3);
    let metadata = proptest::collection::btree_map(text(), text(), 0..3);
    let rest = (proptest::option::of(0_i64..2), proptest::option::of(text()), metadata);
    (messages, proptest::option::of(1_u64..3), 1_u32..3, [number(), number()], stop, rest).prop_map(
        |(messages, max_output_tokens, n, [temperature, top_p], stop, (seed, user, metadata))| {
            Request {
                messages,
                max_output_tokens,
                n,
                temperature: temperature.map(|text| text.parse().unwrap()),
                top_p: top_p.map(|text| text.parse().unwrap()),
                stop: stop.into_iter().map(str::to_owned).collect(),
                seed,
                user: user.map(str::to_owned),
                metadata: metadata
                    .into_iter()
                    .map(|(name, value)| (name.to_owned(), value.to_owned()))
                    .collect(),
                ..request()
            }
        },
    )
}

proptest! {
    #[test]
    fn requests_are_equal_exactly_where_their_fingerprints_are(
        one in any_request(),
        other in any_request(),
    ) {
        prop_assert_eq!(of(&one) == of(&other), one == other);
    }
}
