//! A server that streams in OpenAI's dialect, or in what it takes for it: what callers are told of that,
//! and what it costs.

use holdfast_tests::events::{DONE, End, chunk};
use holdfast_tests::upstream::{completion, marked};
use holdfast_tests::{Config, Events, Gate, Reply, Request, Streaming, request_key};
use holdfast_wire::error::Code;
use serde_json::{Value, json};

use crate::bodies::acme;
use crate::check::{charge, check_completion, content, error};
use crate::streaming::check_stream;
use crate::world::World;

const FUNDS: i64 = 10_000_000;
/// 60 tokens read anew at 2.5 micros, 40 from the cache at 0.25, 20 out at 10, and 7 for the request.
const CHARGE: i64 = 150 + 10 + 200 + 7;

fn configured(change: impl FnOnce(Config) -> Config) -> World {
    World::replying(Reply::Silence, change)
}

impl World {
    fn stream_of(&self, key: &str) -> Events {
        let mut body: Value = serde_json::from_str(&acme("Say hello")).unwrap();
        body["stream"] = json!(true);
        body["stream_options"] = json!({"include_usage": true});
        let request = Request::completion(&self.account.key, key, body.to_string());
        request.begin(self.gateway.address()).events()
    }

    /// The completion that a new key's stream says when the upstream replies so.
    #[track_caller]
    fn completion_of(&self, reply: Reply) -> Value {
        self.upstream.next(reply);
        let key = request_key();
        check_stream(&self.stream_of(&key).rest(), &key, false)
    }

    /// What a new key's stream says before it breaks, where the upstream opens a choice and, once the
    /// caller was told of that, goes on so; whoever asks again is told of the same error.
    #[track_caller]
    fn broken(&self, reply: impl FnOnce(Streaming) -> Reply) -> String {
        let told = Gate::new();
        self.upstream.next(reply(Streaming::new().opening().wait(&told)));
        let key = request_key();
        let mut events = self.stream_of(&key);
        assert_eq!(chunk(&events.event())["choices"][0]["delta"]["role"], "assistant");
        told.open();
        let rest = events.rest();
        assert_eq!(rest.end, End::BrokenOff, "{rest:?}");
        let mut chunks = rest.chunks();
        let why = chunks.pop().unwrap()["error"].take();
        assert_eq!(why["code"], "outcome_unknown");
        assert!(chunks.iter().all(|chunk| chunk["choices"][0]["finish_reason"].is_null()));
        let again = self.gateway.complete(&self.account, &key, &acme("Say hello"));
        let again = error(Code::OutcomeUnknown).echo(&key).replayed(true).bound().check(&again);
        assert_eq!(again, why);
        let texts = chunks.iter().map(|chunk| &chunk["choices"][0]["delta"]["content"]);
        texts.map(|text| text.as_str().unwrap()).collect()
    }
}

fn good_day() -> Streaming {
    Streaming::new().opening().text("Good ").text("day")
}

#[test]
fn a_stream_says_what_was_said_and_shows_nothing_of_the_upstream() {
    let world = configured(|config| config);
    world.upstream.next(Streaming::saying(&["Good ", "day"]).reply());
    let key = request_key();
    let streamed = world.stream_of(&key).rest();
    let shown = format!("{:?}{}", streamed.head, streamed.events.concat());
    assert_eq!(marked(&shown), [""; 0], "{shown}");
    let told = check_stream(&streamed, &key, false);
    assert_eq!((content(&told), charge(&told)), ("Good day", CHARGE));
    let sent = world.upstream.arrived()[0].json();
    assert_eq!(sent["stream"], true);
    assert_eq!(sent["stream_options"], json!({"include_usage": true}));
    let kept = world.gateway.complete(&world.account, &key, &acme("Say hello"));
    let kept = check_completion(&kept, &key, true);
    assert_eq!((content(&kept), &kept["usage"]), ("Good day", &told["usage"]));
    assert_eq!(world.upstream.runs(), 1);
    assert_eq!(world.site.balance(&world.account), (FUNDS - CHARGE, 0));
    world.site.verify();
}

#[test]
fn a_piece_is_told_before_the_next_is_said() {
    let world = configured(|config| config);
    let (second, last) = (Gate::new(), Gate::new());
    let reply = Streaming::new().opening().text("Good ").wait(&second).text("day").wait(&last);
    world.upstream.next(reply.finish("stop").usage().done().reply());
    let key = request_key();
    let mut events = world.stream_of(&key);
    let mut said = |piece: &str| {
        let chunk = chunk(&events.event());
        assert_eq!(chunk["choices"][0]["delta"]["content"], piece, "{chunk}");
    };
    said("");
    said("Good ");
    second.open();
    said("day");
    last.open();
    let rest = events.rest();
    assert_eq!(rest.events.len(), 3, "the end, the usage, and that it is over: {rest:?}");
    assert_eq!(rest.events[2], DONE);
}

#[test]
fn servers_that_stream_in_their_own_way_are_understood() {
    let world = configured(|config| config);
    let done = |stream: Streaming| stream.finish("stop").usage().done().reply();
    let usage = completion("")["usage"].clone();
    let both = json!({"index": 0, "delta": {"content": "day"}, "finish_reason": "stop"});
    let filtered = json!({"id": "", "model": "", "choices": [], "prompt_filter_results": []});
    let groq = json!({"choices": [], "x_groq": {"id": "mark-of-id", "usage": usage}});
    let comments = Streaming::new().raw(": OPENROUTER PROCESSING\n\n").opening().text("Good ");
    for (how, reply) in [
        ("byte by byte", Streaming::saying(&["Good ", "day"]).byte_by_byte().reply()),
        ("in one piece", Streaming::saying(&["Good day"]).reply()),
        ("without its last word", good_day().finish("stop").usage().reply()),
        ("cut after everything", good_day().finish("stop").usage().cut()),
        ("without an opening", done(Streaming::new().text("Good ").text("day"))),
        ("with comments", done(comments.raw(": \n\n").text("day"))),
        ("with a chunk of its filter", done(Streaming::new().event(&filtered).text("Good day"))),
        ("with its end in the last piece", {
            Streaming::new().opening().text("Good ").choice(&both).usage().done().reply()
        }),
        ("with usage in its own place", good_day().finish("stop").event(&groq).done().reply()),
        ("with lines of its own", {
            let crlf = "event: message\r\nid: 1\r\ndata: {\"choices\":[{\"index\":0,\r\n\
                        data: \"delta\":{\"content\":\"Good day\"}}]}\r\n\r\n";
            done(Streaming::new().raw(crlf))
        }),
        ("not at all", Reply::saying("Good day")),
    ] {
        let told = world.completion_of(reply);
        assert_eq!((content(&told), charge(&told)), ("Good day", CHARGE), "{how}");
        assert_eq!(told["choices"][0]["finish_reason"], "stop", "{how}");
    }
    world.site.verify();
}

#[test]
fn a_stream_without_usage_is_counted() {
    let world = configured(|config| config);
    let told = world.completion_of(good_day().finish("length").done().reply());
    // "Say hello" and "Good day", four bytes a token.
    let counts = ["prompt_tokens", "completion_tokens"].map(|name| &told["usage"][name]);
    assert_eq!(counts[1], 2, "{told}");
    assert_eq!(told["choices"][0]["finish_reason"], "length");
    assert!(charge(&told) >= 7 + 20, "{told}");
}

#[test]
fn calls_and_thoughts_are_told_under_our_names() {
    let world = configured(|config| config);
    let call = |call: Value| json!({"tool_calls": [call]});
    let reply = Streaming::new()
        .opening()
        .delta(&json!({"reasoning": "hm"}))
        .delta(&call(json!({"id": "mark-of-id", "function": {"name": "look", "arguments": "{"}})))
        .delta(&call(json!({"id": "mark-of-id", "function": {"name": "look", "arguments": "}"}})))
        .finish("tool_calls")
        .usage()
        .done();
    world.upstream.next(reply.reply());
    let key = request_key();
    let streamed = world.stream_of(&key).rest();
    assert_eq!(marked(&streamed.events.concat()), [""; 0], "{streamed:?}");
    check_stream(&streamed, &key, false);
    let deltas = streamed.chunks();
    let deltas: Vec<_> = deltas.iter().map(|chunk| &chunk["choices"][0]["delta"]).collect();
    assert_eq!(deltas[1]["reasoning_content"], "hm");
    let first = &deltas[2]["tool_calls"][0];
    assert_eq!((&first["index"], &first["type"]), (&json!(0), &json!("function")));
    assert_eq!(first["function"], json!({"name": "look", "arguments": "{"}));
    assert!(first["id"].as_str().unwrap().starts_with("call_"), "{first}");
    assert_eq!(deltas[3]["tool_calls"], json!([{"index": 0, "function": {"arguments": "}"}}]));
    let kept = world.gateway.complete(&world.account, &key, &acme("Say hello"));
    let kept = check_completion(&kept, &key, true);
    assert_eq!(kept["choices"][0]["message"]["tool_calls"][0]["id"], first["id"]);
}

#[test]
fn a_stream_that_breaks_is_never_an_answer() {
    let world = configured(|config| config);
    let failed = json!({"error": {"message": "mark-of-message", "code": 502}});
    type Ending<'a> = (&'a str, &'a dyn Fn(Streaming) -> Reply);
    let endings: [Ending<'_>; 5] = [
        ("it ends too soon", &Streaming::reply),
        ("it says that it is over too soon", &|said| said.done().reply()),
        ("it tells of an error", &|said| said.event(&failed).done().reply()),
        ("it ends in an unknown way", &|said| said.finish("error").done().reply()),
        ("it says something that is no JSON", &|said| said.raw("data: <html>\n\n").reply()),
    ];
    for (how, ending) in endings {
        let said = world.broken(|opened| ending(opened.text("Good ").text("day")));
        assert_eq!(said, "Good day", "{how}");
    }
    // What was said and not yet read when a connection is reset is lost with it.
    let said = world.broken(|opened| opened.text("Good day").reset());
    assert!("Good day".starts_with(&said), "{said}");
    assert_eq!(world.upstream.runs(), 6);
    assert_eq!(world.site.balance(&world.account), (FUNDS, 0));
    world.site.verify();
}

#[test]
fn a_stream_that_is_cut_anywhere_is_told_as_far_as_it_came() {
    let world = configured(|config| config);
    let whole = good_day().finish("stop").usage().done();
    let opened = Streaming::new().opening().bytes();
    let finished = good_day().finish("stop").bytes();
    let mut paid = 0;
    let cuts = (0..whole.bytes()).step_by(61).chain([opened - 1, opened, finished - 1, finished]);
    for cut in cuts {
        if (opened..finished).contains(&cut) {
            let rest = |opened: Streaming| {
                opened.text("Good ").text("day").finish("stop").usage().done().cut_after(cut)
            };
            let said = world.broken(rest);
            assert!("Good day".starts_with(&said), "cut after {cut}: {said}");
            continue;
        }
        world.upstream.next(whole.clone().cut_after(cut));
        let key = request_key();
        if cut < opened {
            // Nothing was told: the error has its status.
            let answer = world.gateway.complete(&world.account, &key, &acme("Say hello"));
            error(Code::OutcomeUnknown).echo(&key).replayed(false).bound().check(&answer);
        } else {
            let told = check_stream(&world.stream_of(&key).rest(), &key, false);
            assert_eq!(content(&told), "Good day", "cut after {cut}");
            paid += charge(&told);
        }
    }
    assert_eq!(world.site.balance(&world.account), (FUNDS - paid, 0));
    world.site.verify();
}

#[test]
fn a_stream_that_does_not_begin_in_time_is_unknown() {
    let world = configured(|config| config.replace("total =", "first_token = \"500ms\", total ="));
    world.upstream.next(Streaming::new().raw(": wait for it\n\n").silence());
    let key = request_key();
    let body = acme("Say hello").replacen('{', "{\"stream\":true,", 1);
    let answer = world.gateway.complete(&world.account, &key, &body);
    error(Code::OutcomeUnknown).echo(&key).replayed(false).bound().check(&answer);
    world.upstream.wait_for_hang_ups(1);
    assert_eq!(world.site.balance(&world.account), (FUNDS, 0));
}

#[test]
fn a_stream_that_falls_silent_ends_with_what_was_said() {
    let world =
        configured(|config| config.replace("total =", "between_tokens = \"500ms\", total ="));
    world.upstream.next(good_day().silence());
    let key = request_key();
    let told = check_stream(&world.stream_of(&key).rest(), &key, false);
    assert!("Good day".starts_with(content(&told)), "{told}");
    assert_eq!(told["choices"][0]["finish_reason"], "length");
    world.upstream.wait_for_hang_ups(1);
    assert!(charge(&told) >= 7, "{told}");
    assert_eq!(world.site.balance(&world.account), (FUNDS - charge(&told), 0));
}
