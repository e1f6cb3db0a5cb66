//! A server that speaks OpenAI's dialect behind the gateway: what it is sent, and what its answers
//! cost.

use holdfast_tests::config::{ACME, UPSTREAM_KEY, UPSTREAM_MODEL};
use holdfast_tests::upstream::{Tls, completion};
use holdfast_tests::{Config, Reply, Site, Upstream, request_key};
use serde_json::json;

use crate::bodies::acme;
use crate::check::{charge, check_completion, content};

/// 60 tokens read anew at 2.5 micros, 40 from the cache at 0.25, 20 out at 10, and 7 for the request.
const CHARGE: i64 = 150 + 10 + 200 + 7;

#[test]
fn a_completion_is_charged_by_its_prices_and_replayed_after_a_restart() {
    let upstream = Upstream::start(Reply::saying("Good day"));
    let (site, account) = Site::funded(&Config::upstream(&upstream));
    let key = request_key();
    let gateway = site.serve();
    let first = gateway.complete(&account, &key, &acme("Say hello"));
    let body = check_completion(&first, &key, false);
    assert_eq!(body["model"], ACME);
    assert_eq!(
        body["choices"],
        json!([{
            "index": 0,
            "message": {
                "role": "assistant", "content": "Good day", "refusal": null, "annotations": [],
            },
            "logprobs": null,
            "finish_reason": "stop",
        }])
    );
    assert_eq!(
        body["usage"],
        json!({
            "prompt_tokens": 100,
            "completion_tokens": 20,
            "total_tokens": 120,
            "prompt_tokens_details": {
                "cached_tokens": 40, "audio_tokens": 0, "cache_write_tokens": 0,
            },
            "completion_tokens_details": {
                "reasoning_tokens": 5, "audio_tokens": 0, "accepted_prediction_tokens": 0,
                "rejected_prediction_tokens": 0,
            },
            "customer_charge_micros": CHARGE,
        })
    );
    gateway.stop();

    let gateway = site.serve();
    let again = gateway.complete(&account, &key, &acme("Say hello"));
    check_completion(&again, &key, true);
    assert_eq!(again.body, first.body);
    assert_eq!(upstream.runs(), 1);
    assert_eq!(site.balance(&account), (10_000_000 - CHARGE, 0));
    site.verify();
    gateway.stop();
}

#[test]
fn a_proxy_of_the_environment_is_asked_for_servers_of_other_machines_alone() {
    let here = Upstream::start(Reply::saying("Good day"));
    let proxy = Upstream::start(Reply::saying("Good evening"));
    for (server, asked) in [("http://api.test/v1", &proxy), (&here.base_url(), &here)] {
        let (site, account) = Site::funded(&Config::at(server));
        let url = proxy.base_url();
        let site = site.with_env("HTTP_PROXY", url.trim_end_matches("/v1"));
        let gateway = site.serve();
        let key = request_key();
        check_completion(&gateway.complete(&account, &key, &acme("Say hello")), &key, false);
        assert_eq!(asked.runs(), 1, "{server}");
    }
    let head = &proxy.arrived()[0].head;
    assert!(head.starts_with("POST http://api.test/v1/chat/completions HTTP/1.1\r\n"), "{head}");
    assert_eq!((here.runs(), proxy.runs()), (1, 1));
}

#[test]
fn the_upstream_is_sent_what_was_asked_under_its_own_names_and_nothing_else() {
    let upstream = Upstream::start(Reply::saying("Good day"));
    let (site, account) = Site::funded(&Config::upstream(&upstream));
    let gateway = site.serve();
    let request = holdfast_tests::Request::completion(
        &account.key,
        &request_key(),
        r#"{"model":"acme/large-1","messages":[{"role":"system","content":"Be brief"},
            {"role":"user","content":"Say hello"}],"temperature":0.70,"stop":"END","seed":7}"#,
    );
    let request = request
        .header("OpenAI-Organization", "org-of-the-caller")
        .header("X-Forwarded-For", "192.0.2.1")
        .header("Cookie", "a=b")
        .header("traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
        .header("User-Agent", "OpenAI/Python 3.51.0");
    assert_eq!(gateway.send(&request).status, 200);

    let arrived = upstream.arrived();
    assert_eq!(arrived.len(), 1);
    assert!(arrived[0].head.starts_with("POST /v1/chat/completions HTTP/1.1\r\n"));
    let headers = arrived[0].headers();
    let names: Vec<_> = headers.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(
        names,
        ["accept", "authorization", "content-length", "content-type", "host", "user-agent"]
    );
    let value = |name: &str| &headers.iter().find(|(other, _)| other == name).unwrap().1;
    assert_eq!(value("authorization"), &format!("Bearer {UPSTREAM_KEY}"));
    assert!(value("user-agent").starts_with("holdfast/"));
    assert_eq!(
        arrived[0].json(),
        json!({
            "model": UPSTREAM_MODEL,
            "messages": [
                {"role": "system", "content": "Be brief"},
                {"role": "user", "content": "Say hello"},
            ],
            "max_completion_tokens": 500,
            "temperature": 0.7,
            "stop": ["END"],
            "seed": 7,
        })
    );
}

#[test]
fn the_bound_of_a_request_reaches_the_upstream_and_the_hold() {
    let upstream = Upstream::start(Reply::saying("Good day"));
    let (site, account) = Site::funded(&Config::upstream(&upstream));
    let gateway = site.serve();
    let key = request_key();
    let body = r#"{"model":"acme/large-1","max_tokens":20,"n":1,
        "messages":[{"role":"user","content":"Say hello"}]}"#;
    check_completion(&gateway.complete(&account, &key, body), &key, false);
    let sent = upstream.arrived()[0].json();
    assert_eq!(sent["max_completion_tokens"], 20);
    assert_eq!(sent.get("max_tokens"), None);
    let operation = gateway.get(&account, &format!("/v1/operations/{key}")).json();
    // 9 bytes of prompt, 16 for the message's frame and 64 for any; 20 out; the request.
    assert_eq!(operation["hold_micros"], ((9 + 16 + 64) * 25_i64).div_euclid(10) + 1 + 200 + 7);
}

#[test]
fn a_charge_ends_at_the_hold_and_the_operator_bears_the_rest() {
    let mut absurd = completion("Good day");
    absurd["usage"]["completion_tokens"] = json!(1_000);
    let upstream = Upstream::start(Reply::json(200, &absurd));
    let (site, account) = Site::funded(&Config::upstream(&upstream));
    let gateway = site.serve();
    let key = request_key();
    let body = r#"{"model":"acme/large-1","max_completion_tokens":10,
        "messages":[{"role":"user","content":"Say hello"}]}"#;
    let completion = check_completion(&gateway.complete(&account, &key, body), &key, false);
    let operation = gateway.get(&account, &format!("/v1/operations/{key}")).json();
    let cost = 150 + 10 + 10_000 + 7;
    assert_eq!(operation["charge_micros"], operation["hold_micros"]);
    assert_eq!(operation["charge_micros"], charge(&completion));
    assert_eq!(operation["shortfall_micros"], cost - charge(&completion));
    assert_eq!(site.balance(&account), (10_000_000 - charge(&completion), 0));
    site.verify();
}

#[test]
fn an_answer_without_usage_is_counted_here() {
    let mut silent = completion("Good day");
    silent["usage"] = json!(null);
    let upstream = Upstream::start(Reply::json(200, &silent));
    let (site, account) = Site::funded(&Config::upstream(&upstream));
    let gateway = site.serve();
    let key = request_key();
    let answer = gateway.complete(&account, &key, &acme("Say hello"));
    let completion = check_completion(&answer, &key, false);
    let operation = gateway.get(&account, &format!("/v1/operations/{key}")).json();
    assert_eq!(operation["meters_source"], "estimated");
    assert!(charge(&completion) > 0 && charge(&completion) < 367, "{completion}");
    site.verify();
}

#[test]
fn an_upstream_over_tls_is_reached_when_its_certificate_is_trusted() {
    let tls = Tls::new();
    let upstream = Upstream::start_tls(Reply::saying("Good day"), tls.clone());
    let (site, account) = Site::funded(&Config::upstream(&upstream));
    site.write("roots.pem", tls.certificate());
    let gateway = site.serve();
    let key = request_key();
    let distrusted = gateway.complete(&account, &key, &acme("Say hello"));
    assert_eq!(distrusted.status, 503, "{distrusted:?}");
    assert_eq!(upstream.runs(), 0);
    gateway.stop();

    let roots = site.path("roots.pem");
    let site = site.with_env("SSL_CERT_FILE", roots);
    let gateway = site.serve();
    let answer = gateway.complete(&account, &key, &acme("Say hello"));
    assert_eq!(content(&check_completion(&answer, &key, false)), "Good day");
    assert_eq!(upstream.runs(), 1);
}
