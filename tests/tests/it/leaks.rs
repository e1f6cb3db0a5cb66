//! Nothing that the upstream says about itself is ever seen outside: not in an answer, not in a log.

use holdfast_tests::config::{UPSTREAM_KEY, UPSTREAM_MODEL};
use holdfast_tests::upstream::{completion, error as upstream_error, marked};
use holdfast_tests::{Config, Reply, Request, Site, Upstream, request_key};
use serde_json::json;

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
