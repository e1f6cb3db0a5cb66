//! Nothing that the upstream says about itself is ever seen outside: not in an answer, not in a log.

use holdfast_tests::config::{UPSTREAM_KEY, UPSTREAM_MODEL};
use holdfast_tests::upstream::{completion, error as upstream_error, marked};
use holdfast_tests::{Config, Reply, Request, Site, Streaming, Upstream, request_key};
use serde_json::{Value, json};

use crate::bodies::acme;

/// Every way in which the upstream can answer, full of its own marks.
fn replies() -> Vec<Reply> {
    let error = |status, code| Reply::json(status, &upstream_error(code));
    let mut coded = completion("Good day");
    coded["choices"][0]["finish_reason"] = json!("mark-of-code");
    let mut nested = completion("Good day");
    nested["error"] = json!({"message": "mark-of-message"});
    vec![
        Reply::saying("Good day"),
        error(400, "mark-of-code"),
        error(400, "context_length_exceeded"),
        error(401, "mark-of-code"),
        error(402, "mark-of-code"),
        error(403, "mark-of-code"),
        error(404, "model_not_found"),
        error(413, "mark-of-code"),
        error(422, "mark-of-code"),
        error(429, "mark-of-code"),
        error(429, "insufficient_quota"),
        error(500, "mark-of-code"),
        error(503, "server_is_overloaded"),
        error(503, "mark-of-code"),
        error(302, "mark-of-code"),
        error(418, "mark-of-code"),
        Reply::Send(500, "<html>mark-of-message</html>".to_owned()),
        Reply::Send(200, "mark-of-message".to_owned()),
        Reply::Raw("mark-of-message".to_owned()),
        Reply::Raw("HTTP/1.1 200 OK\r\ncontent-length: 99\r\n\r\nmark-of-message".to_owned()),
        Reply::Reset,
        Reply::json(200, &coded),
        Reply::json(200, &nested),
    ]
}

/// What goes with a text, by the members of OpenAI's schema and with members of the upstream's own.
fn beside() -> [(&'static str, Value); 3] {
    let extra = json!({"x": "mark-of-extra"});
    let likely = json!({"token": "day", "logprob": -0.5, "bytes": [100], "x": extra});
    let mut token = likely.clone();
    token["top_logprobs"] = json!([likely]);
    let judged = json!({"type": "moderation_results", "model": "mark-of-model", "id": "mark-of-id",
        "results": [{"type": "moderation_result", "model": "mark-of-model", "flagged": false, "x": extra}]});
    let url = "https://news.test/?utm_source=mark-of-extra&a=1";
    [
        (
            "annotations",
            json!([
                {"type": "file_citation", "file_id": "mark-of-id", "filename": "mark-of-id"},
                {"type": "url_citation", "file_id": "mark-of-id", "x": extra, "url_citation":
                    {"url": url, "title": "News", "start_index": 0, "end_index": 4, "x": extra}},
            ]),
        ),
        ("logprobs", json!({"content": [token], "refusal": null, "x": extra})),
        ("moderation", json!({"input": judged, "output": judged, "x": extra})),
    ]
}

#[test]
fn what_goes_with_a_text_has_the_members_of_the_schema_and_no_others() {
    let upstream = Upstream::start(Reply::Silence);
    let (site, account) = Site::funded(&Config::upstream(&upstream));
    let gateway = site.serve();
    let [(_, annotations), (_, logprobs), (_, moderation)] = beside();
    let mut whole = completion("Good day");
    whole["moderation"] = moderation.clone();
    whole["choices"][0]["message"]["annotations"] = annotations.clone();
    whole["choices"][0]["logprobs"] = logprobs.clone();
    let said = json!({"index": 0, "logprobs": logprobs,
        "delta": {"content": "Good day", "annotations": annotations}});
    let streamed = Streaming::new().opening().choice(&said).finish("stop");
    let streamed = streamed.event(&json!({"choices": [], "moderation": moderation})).usage().done();
    upstream.otherwise(Reply::as_wanted(streamed.reply(), Reply::json(200, &whole)));
    for (stream, asked) in [(false, false), (false, true), (true, false), (true, true)] {
        let mut body: Value = serde_json::from_str(&acme("Say hello")).unwrap();
        body["stream"] = json!(stream);
        body["logprobs"] = json!(asked);
        let key = request_key();
        let request = Request::completion(&account.key, &key, body.to_string());
        let look = Request::get(&format!("/v1/operations/{key}")).bearer(&account.key);
        let streamed = |request: &Request| {
            let told = request.begin(gateway.address()).events().rest();
            format!("{:?}{}", told.head, told.events.concat())
        };
        let ask = || if stream { streamed(&request) } else { gateway.send(&request).everything() };
        for seen in [ask(), gateway.send(&look).everything(), ask()] {
            assert_eq!(marked(&seen), Vec::<&str>::new(), "{stream} {asked}: {seen}");
            assert!(seen.contains("https://news.test/?a=1"), "{seen}");
            assert_eq!(seen.contains("-0.5"), asked, "{seen}");
        }
    }
    gateway.stop();
    check_logs(&site);
}

#[test]
fn nothing_of_the_upstream_is_seen_outside() {
    let upstream = Upstream::start(Reply::saying("Good day"));
    let (site, account) = Site::funded(&Config::upstream(&upstream));
    let gateway = site.serve();
    let replies = replies();
    let n_replies = replies.len();
    for (at, reply) in replies.into_iter().enumerate() {
        let key = request_key();
        upstream.otherwise(reply.clone());
        let request = Request::completion(&account.key, &key, acme("Say hello"));
        let look = Request::get(&format!("/v1/operations/{key}")).bearer(&account.key);
        for request in [&request, &look, &request] {
            let seen = gateway.send(request).everything();
            assert_eq!(marked(&seen), Vec::<&str>::new(), "reply {at}: {seen}");
            assert!(!seen.contains(UPSTREAM_KEY), "reply {at}: {seen}");
        }
    }
    assert!(upstream.runs() >= n_replies, "each was given");
    for path in ["/v1/models", "/v1/models/acme/large-1", "/v1/wallet", "/healthz", "/readyz"] {
        let seen = gateway.get(&account, path).everything();
        assert_eq!(marked(&seen), Vec::<&str>::new(), "{path}: {seen}");
    }
    gateway.stop();
    check_logs(&site);
}

/// The log is the operator's and may name the operator's route; no word of the upstream's.
fn check_logs(site: &Site) {
    let logs = site.logs();
    assert!(logs.contains("acme/large-1"), "it is the log");
    let found: Vec<_> = marked(&logs).into_iter().filter(|mark| *mark != UPSTREAM_MODEL).collect();
    assert_eq!(found, Vec::<&str>::new());
    assert!(!logs.contains(UPSTREAM_KEY));
}
