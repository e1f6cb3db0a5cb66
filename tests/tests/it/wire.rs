//! Requests of every sort, each as large as its sort can be, through a running gateway: the upstream is
//! sent what was asked for, byte for byte, and its answer reaches the caller as the caller may see it.

use holdfast_tests::upstream::marked;
use holdfast_tests::{Reply, request_key};
use serde_json::{Value, json};

use crate::world::World;

/// A model that takes everything, and one extra field.
fn world() -> World {
    let takes = r#"contract = 1
accepts = ["top_k"]
allow = ["file_id", "audio.id", "voice.id", "store", "service_tier", "web_search_options", "moderation", "prompt_cache_retention"]"#;
    World::configured(|config| config.replace("contract = 1", takes))
}

/// A request of some sort, and what is made of it. Line ends and indents of bodies are for reading.
struct Sort {
    /// The members beside `model`, as the caller writes them.
    asked: &'static str,
    /// The members beside `model`, as the upstream is sent them.
    sent: &'static str,
    /// What the upstream answers beside its marks: its choices, and other members.
    answered: (Value, Value),
    /// What the caller is told: the choices, and other members. `<22>` and `<32>` are the operation's
    /// id, in base62 and in hexadecimal digits.
    told: (Value, Value),
    /// What of the answer is passed on as it is spelled.
    kept: &'static [&'static str],
}

/// The same number in the digits that ids of calls are written in.
fn base62(hexadecimal: &str) -> String {
    let digits = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    let mut number = u128::from_str_radix(hexadecimal, 16).unwrap();
    let mut text = [b'0'; 22];
    for digit in text.iter_mut().rev() {
        *digit = digits[usize::try_from(number % 62).unwrap()];
        number /= 62;
    }
    String::from_utf8(text.to_vec()).unwrap()
}

/// One line of what is written in several.
fn line(text: &str) -> String {
    text.lines().map(str::trim_start).collect()
}

impl World {
    fn check_sort(&self, sort: &Sort) {
        let (choices, beside) = &sort.answered;
        let mut answer = holdfast_tests::upstream::completion("");
        answer["choices"] = choices.clone();
        for (name, member) in beside.as_object().unwrap() {
            answer[name] = member.clone();
        }
        self.upstream.next(Reply::Send(200, spelled(&answer)));
        let (runs, key) = (self.upstream.runs(), request_key());
        let asked = format!("{{{},\"model\":\"acme/large-1\"}}", sort.asked);
        let told = self.gateway.complete(&self.account, &key, &asked);
        assert_eq!(told.status, 200, "{asked}\n{told:?}");
        let arrived = self.upstream.arrived();
        let sent = format!("{{\"model\":\"upstream-model-mark\",{}}}", line(sort.sent));
        assert_eq!(nameless(&arrived[runs].body), sent);
        assert_eq!(marked(&told.everything()), Vec::<&str>::new(), "{told:?}");
        let body = told.json();
        let digits = body["id"].as_str().unwrap().trim_start_matches("chatcmpl_").to_owned();
        let own = |value: &Value| -> Value {
            let text = value.to_string().replace("<22>", &base62(&digits)).replace("<32>", &digits);
            serde_json::from_str(&text).unwrap()
        };
        assert_eq!(body["choices"], own(&sort.told.0));
        for (name, member) in sort.told.1.as_object().unwrap() {
            assert_eq!(body[name], own(member), "{name}");
        }
        let expected = 6 + ["service_tier", "moderation"]
            .iter()
            .filter(|name| sort.told.1.get(name).is_some())
            .count();
        assert_eq!(body.as_object().unwrap().len(), expected, "{body}");
        for kept in sort.kept {
            assert!(told.text().contains(&unspelled(kept)), "{kept}: {}", told.text());
        }
        let again = self.gateway.complete(&self.account, &key, &asked);
        assert_eq!((again.status, again.body), (200, told.body));
        assert_eq!(self.upstream.runs(), runs + 1);
    }
}

/// What was sent, with a mark for each pseudonym of 22 letters and digits: which, is the API key's.
fn nameless(sent: &str) -> String {
    let marks = [("user", "<u>"), ("safety_identifier", "<s>"), ("prompt_cache_key", "<k>")];
    marks.into_iter().fold(sent.to_owned(), |sent, (name, mark)| {
        let Some((before, rest)) = sent.split_once(&format!("\"{name}\":\"")) else { return sent };
        let (pseudonym, after) = rest.split_once('"').unwrap();
        assert_eq!(pseudonym.len(), 22, "{name}: {pseudonym}");
        format!("{before}\"{name}\":\"{mark}\"{after}")
    })
}

/// Numbers are spelled in a string with `#` before it: a tree of JSON would not keep the spelling.
fn spelled(answer: &Value) -> String {
    unspelled(&answer.to_string())
}

fn unspelled(text: &str) -> String {
    let mut parts = text.split("\"#");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |all, part| all + &part.replacen('"', "", 1))
}

/// A choice that ended so.
fn choice(index: u32, message: Value, logprobs: Value, finish: &str) -> Value {
    json!({"index": index, "message": message, "logprobs": logprobs, "finish_reason": finish})
}

/// A message with the members that every message has, and more.
fn message(content: Value, refusal: Value, more: Value) -> Value {
    let mut message = json!({
        "role": "assistant", "content": content, "refusal": refusal, "annotations": [],
    });
    for (name, member) in more.as_object().unwrap() {
        message[name] = member.clone();
    }
    message
}

fn usage(prompt: [u64; 4], completion: [u64; 5]) -> Value {
    let [all_in, cached, heard, written] = prompt;
    let [all_out, thought, spoken, accepted, rejected] = completion;
    json!({
        "prompt_tokens": all_in, "completion_tokens": all_out, "total_tokens": all_in + all_out,
        "prompt_tokens_details": {
            "cached_tokens": cached, "audio_tokens": heard, "cache_write_tokens": written,
        },
        "completion_tokens_details": {
            "reasoning_tokens": thought, "audio_tokens": spoken,
            "accepted_prediction_tokens": accepted, "rejected_prediction_tokens": rejected,
        },
    })
}

/// The same with what it costs.
fn charged(mut usage: Value, micros: i64) -> Value {
    usage["customer_charge_micros"] = json!(micros);
    usage
}

/// Every option that needs no tools, no sound and no pictures.
const TEXT_ASKED: &str = r#""logit_bias":{"9":1e1, "50256":-100},"top_logprobs":2.0,"logprobs":true,
    "metadata":{"b":"2","a":"1"},"user":"u","seed":-9223372036854775808,"stop":"END","n":2,
    "frequency_penalty":-0.50,"presence_penalty":1e0,"top_p":0.90,"temperature":0.70,
    "max_tokens":50,"top_k" : 1.50,"moderation":{"policy":null,"model":"m"},
    "prediction":{"content":[{"text":"yes","type":"text"}],"type":"content"},
    "prompt_cache_options":{"ttl":"30m","mode":"explicit"},"prompt_cache_retention":"24h",
    "prompt_cache_key":"k","safety_identifier":"s","store":true,"service_tier":"flex",
    "verbosity":"low","reasoning_effort":"xhigh","response_format":{"type":"json_object"},
    "messages":[{"content":"d","name":"app","role":"developer"},
        {"role":"system","content":[{"prompt_cache_breakpoint":{"ttl":"12h","mode":"explicit"},
            "type":"text","text":"s"}]},
        {"role":"user","name":"ann","content":[{"type":"text","text":"caf\u00e9"}]},
        {"role":"assistant","content":[{"type":"refusal","refusal":"no"}]},
        {"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}]"#;

const TEXT_SENT: &str = r#""messages":[{"role":"developer","name":"app","content":"d"},
    {"role":"system","content":[{"type":"text","text":"s",
        "prompt_cache_breakpoint":{"mode":"explicit","ttl":"12h"}}]},
    {"role":"user","name":"ann","content":"café"},
    {"role":"assistant","content":[{"type":"refusal","refusal":"no"}]},
    {"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}],
    "max_completion_tokens":50,"n":2,"temperature":0.7,"top_p":0.9,"presence_penalty":1,
    "frequency_penalty":-0.5,"stop":["END"],"seed":-9223372036854775808,"user":"<u>",
    "metadata":{"a":"1","b":"2"},"logprobs":true,"top_logprobs":2,
    "logit_bias":{"50256":-100,"9":10},"response_format":{"type":"json_object"},
    "prediction":{"content":[{"text":"yes","type":"text"}],"type":"content"},
    "reasoning_effort":"xhigh","verbosity":"low","service_tier":"flex","store":true,
    "safety_identifier":"<s>","prompt_cache_key":"<k>","prompt_cache_retention":"24h",
    "prompt_cache_options":{"mode":"explicit","ttl":"30m"},
    "moderation":{"policy":null,"model":"m"},"top_k":1.50"#;

/// What a moderation says, as it comes and as it is told.
fn judgements() -> [Value; 2] {
    let told = json!({
        "type": "moderation_results", "model": "moderation",
        "results": [{
            "type": "moderation_result", "model": "moderation", "flagged": false,
            "category_scores": {"violence": 0.25},
        }],
    });
    let mut marked = told.clone();
    marked["id"] = json!("mark-of-id");
    marked["model"] = json!("mark-of-model");
    marked["results"][0]["model"] = json!("mark-of-model");
    [marked, told]
}

#[test]
fn options_of_text_arrive_and_so_does_what_they_ask_for() {
    let entry = |token: &str| {
        json!({
            "token": token, "logprob": "#-0.10", "bytes": [121],
            "top_logprobs": [{"token": "no", "logprob": "#-9999.0", "bytes": null}],
        })
    };
    let read = |token: &str| -> Value {
        serde_json::from_str(&unspelled(&entry(token).to_string())).unwrap()
    };
    let [marked, judged] = judgements();
    let failed = json!({"type": "error", "code": "mark-of-code", "message": "mark-of-message"});
    let own = json!({
        "type": "error", "code": "moderation_failed",
        "message": "The moderation did not judge this.",
    });
    let counts = || usage([100, 10, 0, 5], [50, 20, 0, 7, 3]);
    world().check_sort(&Sort {
        asked: TEXT_ASKED,
        sent: TEXT_SENT,
        answered: (
            json!([
                choice(
                    1,
                    json!({"refusal": "no"}),
                    json!({"content": null, "refusal": [entry("no")]}),
                    "content_filter"
                ),
                choice(
                    0,
                    json!({"content": "yes"}),
                    json!({"content": [entry("yes")], "refusal": null}),
                    "stop"
                ),
            ]),
            json!({
                "usage": counts(), "service_tier": "flex",
                "moderation": {"input": marked, "output": failed},
            }),
        ),
        told: (
            json!([
                choice(
                    0,
                    message(json!("yes"), json!(null), json!({})),
                    json!({"content": [read("yes")], "refusal": null}),
                    "stop"
                ),
                choice(
                    1,
                    message(json!(null), json!("no"), json!({})),
                    json!({"content": null, "refusal": [read("no")]}),
                    "content_filter"
                ),
            ]),
            json!({
                // 85 read anew and 5 written at 2.5, 10 from the cache at 0.25, 50 said at 10, 7 each.
                "usage": charged(counts(), 735), "service_tier": "flex",
                "moderation": {"input": judged, "output": own},
            }),
        ),
        kept: &[r#""logprob":-0.10,"#, r#""logprob":-9999.0"#],
    });
}

#[test]
fn tools_arrive_in_their_order_and_so_do_their_calls() {
    let calls = json!([
        {"id": "call_mark-of-id", "type": "function",
         "function": {"name": "look", "arguments": "{\"z\": 1.0, \"a\":null}"}},
        {"id": "call_mark-of-id", "type": "custom", "custom": {"name": "write", "input": "a\nb"}},
    ]);
    let mut own = calls.clone();
    for at in 0..2 {
        own[at]["id"] = json!(format!("call_<22>_0_{at}"));
    }
    world().check_sort(&Sort {
        asked: r#""parallel_tool_calls":false,"tool_choice":{"allowed_tools":{"tools":[
                {"type":"custom","custom":{"name":"write"}},{"function":{"name":"look"},"type":"function"}],
                "mode":"required"},"type":"allowed_tools"},
            "tools":[{"function":{"strict":true,"parameters":{"type":"object","properties":{
                "z":{"type":"number","default":1.0},"a":{"enum":[null, 1e0, "\u00e9"]}},"required":["z"]},
                "description":"Looks.","name":"look"},"type":"function"},
                {"type":"custom","custom":{"format":{"grammar":{"syntax":"lark","definition":"start: /x+/"},
                "type":"grammar"},"description":"Writes.","name":"write"}},
                {"custom":{"name":"say","format":{"type":"text"}},"type":"custom"}],
            "response_format":{"json_schema":{"schema":{"z":1.0,"a":{"b":[ ]}},"strict":true,
                "description":"x","name":"s_1"},"type":"json_schema"},
            "messages":[{"role":"user","content":"go"},
                {"tool_calls":[{"function":{"arguments":"{ \"z\":1.0 }","name":"look"},"type":"function","id":"c1"},
                {"custom":{"input":"x","name":"write"},"id":"c2","type":"custom"}],"content":null,"role":"assistant"},
                {"tool_call_id":"c1","content":"1","role":"tool"},
                {"role":"tool","tool_call_id":"c2","content":[{"type":"text","text":"1"},{"type":"text","text":"2"}]}]"#,
        sent: r#""messages":[{"role":"user","content":"go"},
            {"role":"assistant","content":null,"tool_calls":[
                {"id":"c1","type":"function","function":{"name":"look","arguments":"{ \"z\":1.0 }"}},
                {"id":"c2","type":"custom","custom":{"name":"write","input":"x"}}]},
            {"role":"tool","content":"1","tool_call_id":"c1"},
            {"role":"tool","content":[{"type":"text","text":"1"},{"type":"text","text":"2"}],"tool_call_id":"c2"}],
            "max_completion_tokens":500,
            "tools":[{"type":"function","function":{"name":"look","description":"Looks.",
                "parameters":{"type":"object","properties":{"z":{"type":"number","default":1.0},
                "a":{"enum":[null,1e0,"é"]}},"required":["z"]},"strict":true}},
                {"type":"custom","custom":{"name":"write","description":"Writes.",
                "format":{"grammar":{"syntax":"lark","definition":"start: /x+/"},"type":"grammar"}}},
                {"type":"custom","custom":{"name":"say","format":{"type":"text"}}}],
            "tool_choice":{"type":"allowed_tools","allowed_tools":{"mode":"required","tools":[
                {"type":"custom","custom":{"name":"write"}},{"function":{"name":"look"},"type":"function"}]}},
            "parallel_tool_calls":false,
            "response_format":{"type":"json_schema","json_schema":{"name":"s_1","description":"x",
                "schema":{"z":1.0,"a":{"b":[]}},"strict":true}}"#,
        answered: (
            json!([choice(0, json!({"content": null, "tool_calls": calls}), json!(null), "tool_calls")]),
            json!({"service_tier": "default"}),
        ),
        told: (
            json!([choice(0, message(json!(null), json!(null), json!({"tool_calls": own})), json!(null), "tool_calls")]),
            json!({}),
        ),
        kept: &[],
    });
}

#[test]
fn pictures_and_sound_arrive_and_so_do_speech_and_sources() {
    let cited = json!({"type": "url_citation", "url_citation": {
        "start_index": 0, "end_index": 3, "url": "https://example.org/", "title": "t"}});
    let audio = |id: &str| json!({"id": id, "expires_at": 1_790_000_000, "data": "AA==", "transcript": "yes"});
    let counts = || usage([60, 0, 40, 0], [30, 0, 25, 0, 0]);
    world().check_sort(&Sort {
        asked: r#""modalities":["audio","text"],"audio":{"format":"wav","voice":{"id":"v"}},
            "web_search_options":{"user_location":{"approximate":{"city":"Z\u00fcrich"},"type":"approximate"},
                "search_context_size":"low"},
            "messages":[{"role":"assistant","audio":{"id":"kept"}},{"role":"user","content":[
                {"image_url":{"detail":"original","url":"https://example.org/a.png"},"type":"image_url"},
                {"type":"image_url","image_url":{"url":"data:image/png;base64,AA==","detail":"auto"}},
                {"type":"input_audio","input_audio":{"format":"mp3","data":"AA=="}},
                {"type":"file","file":{"file_id":"f"}},
                {"file":{"file_data":"data:;base64,AA==","filename":"n"},"type":"file"}]}]"#,
        sent: r#""messages":[{"role":"assistant","content":null,"audio":{"id":"kept"}},
            {"role":"user","content":[
                {"type":"image_url","image_url":{"url":"https://example.org/a.png","detail":"original"}},
                {"type":"image_url","image_url":{"url":"data:image/png;base64,AA=="}},
                {"type":"input_audio","input_audio":{"data":"AA==","format":"mp3"}},
                {"type":"file","file":{"file_id":"f"}},
                {"type":"file","file":{"filename":"n","file_data":"data:;base64,AA=="}}]}],
            "max_completion_tokens":500,"modalities":["text","audio"],
            "audio":{"voice":{"id":"v"},"format":"wav"},
            "web_search_options":{"user_location":{"approximate":{"city":"Zürich"},"type":"approximate"},
                "search_context_size":"low"}"#,
        answered: (
            json!([choice(
                0,
                json!({"content": "yes", "annotations": [cited], "audio": audio("mark-of-id")}),
                json!(null),
                "length",
            )]),
            json!({"usage": counts()}),
        ),
        told: (
            json!([choice(
                0,
                message(
                    json!("yes"),
                    json!(null),
                    json!({"annotations": [cited], "audio": audio("audio_<32>_0")}),
                ),
                json!(null),
                "length",
            )]),
            json!({"usage": charged(counts(), 457)}),
        ),
        kept: &[],
    });
}

#[test]
fn the_older_form_of_functions_arrives_and_so_does_its_call() {
    world().check_sort(&Sort {
        asked: r#""function_call":{"name":"f"},
            "functions":[{"parameters":{"z":1.0,"a":2},"name":"f","description":"d"},{"name":"g"}],
            "messages":[{"role":"user","content":"go"},
                {"function_call":{"arguments":"no JSON","name":"f"},"role":"assistant"},
                {"content":"1","role":"function","name":"f"},
                {"name":"g","role":"function","content":null}]"#,
        sent: r#""messages":[{"role":"user","content":"go"},
            {"role":"assistant","content":null,"function_call":{"name":"f","arguments":"no JSON"}},
            {"role":"function","name":"f","content":"1"},
            {"role":"function","name":"g","content":null}],"max_completion_tokens":500,
            "functions":[{"name":"f","description":"d","parameters":{"z":1.0,"a":2}},{"name":"g"}],
            "function_call":{"name":"f"}"#,
        answered: (
            json!([choice(
                0,
                json!({"content": null, "function_call": {"name": "f", "arguments": "{ }"}}),
                json!(null),
                "function_call",
            )]),
            json!({}),
        ),
        told: (
            json!([choice(
                0,
                message(
                    json!(null),
                    json!(null),
                    json!({"function_call": {"name": "f", "arguments": "{ }"}}),
                ),
                json!(null),
                "function_call",
            )]),
            json!({}),
        ),
        kept: &[],
    });
}

#[test]
fn every_word_of_a_choice_arrives() {
    let world = world();
    let tool = r#""tools":[{"type":"function","function":{"name":"f"}}]"#;
    for (name, words) in [
        (
            "tool_choice",
            &[
                r#""none""#,
                r#""auto""#,
                r#""required""#,
                r#"{"type":"function","function":{"name":"f"}}"#,
                r#"{"type":"custom","custom":{"name":"f"}}"#,
                r#"{"type":"allowed_tools","allowed_tools":{"mode":"auto","tools":[]}}"#,
            ][..],
        ),
        ("function_call", &[r#""none""#, r#""auto""#]),
        (
            "reasoning_effort",
            &[
                r#""none""#,
                r#""minimal""#,
                r#""low""#,
                r#""medium""#,
                r#""high""#,
                r#""xhigh""#,
                r#""max""#,
            ],
        ),
        ("verbosity", &[r#""low""#, r#""medium""#, r#""high""#]),
        (
            "service_tier",
            &[r#""auto""#, r#""default""#, r#""flex""#, r#""scale""#, r#""priority""#, r#""fast""#],
        ),
        ("prompt_cache_retention", &[r#""in_memory""#, r#""24h""#]),
        ("parallel_tool_calls", &["true", "false"]),
        ("store", &["true", "false"]),
    ] {
        for word in words {
            let ask = format!(
                r#"{{"model":"acme/large-1","messages":[{{"role":"user","content":"x"}}],{tool},"{name}":{word}}}"#
            );
            let told = world.gateway.complete(&world.account, &request_key(), &ask);
            assert_eq!(told.status, 200, "{ask}: {told:?}");
            let arrived = world.upstream.arrived();
            let member = format!("\"{name}\":{word}");
            assert!(arrived.last().unwrap().body.contains(&member), "{member}: {arrived:?}");
        }
    }
}
