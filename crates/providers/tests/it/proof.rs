//! A test for every row of what proves what, through a real socket; and in every case the request
//! was sent once at most.

use holdfast_domain::operation::ProviderRefusal;
use holdfast_domain::ports::{CallFailure, NotRunProof, UnknownReason, UnreadableReason};
use holdfast_providers::{HttpProvider, ServerOptions};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpListener;
use tokio::time::Instant;

use crate::authority::Authority;
use crate::calls::{call, request, run};
use crate::openai::{completion, options, server};
use crate::upstream::{ScriptedReply, Upstream, answer};

const CONNECT: CallFailure = CallFailure::NotRun(NotRunProof::Connect);
const ACCOUNT: CallFailure = CallFailure::NotRun(NotRunProof::Account);
const RATE_LIMITED: CallFailure = CallFailure::NotRun(NotRunProof::RateLimited);
const OVERLOADED: CallFailure = CallFailure::NotRun(NotRunProof::Overloaded);
const REQUEST: CallFailure = CallFailure::Refused(ProviderRefusal::Request);
const CONTEXT_LENGTH: CallFailure = CallFailure::Refused(ProviderRefusal::ContextLength);
const STATUS: CallFailure = CallFailure::Unknown(UnknownReason::Status);
const BROKEN: CallFailure = CallFailure::Unknown(UnknownReason::Broken);

/// Asks once and expects this failure, nothing said, and one request upstream.
async fn check(reply: ScriptedReply, failure: CallFailure) {
    let upstream = Upstream::start(reply).await;
    let client = HttpProvider::new(options(server(&upstream.base_url()))).unwrap();
    let ran = run(&client, &call(request("hi"))).await;
    let seen = (ran.outcome, ran.answer.choices().count(), upstream.arrived().len());
    assert_eq!(seen, (Err(failure), 0, 1));
    assert!(ran.was_sent);
}

async fn check_status(status: u16, body: &str, failure: CallFailure) {
    check(ScriptedReply::Send(answer(status, body)), failure).await;
}

fn error(code: &str) -> String {
    format!(r#"{{"error":{{"message":"no","type":"some_error","param":null,"code":"{code}"}}}}"#)
}

/// Asks a server that cannot be reached, or not be trusted.
async fn check_unsent(url: &str) {
    let (begun, asked) = (Instant::now(), call(request("hi")));
    let ran = run(&HttpProvider::new(options(server(url))).unwrap(), &asked).await;
    assert_eq!((ran.outcome, ran.was_sent), (Err(CONNECT), false), "{url}");
    assert!(begun.elapsed() < asked.connect, "{url}: only the time to connect ended it");
}

#[tokio::test]
async fn a_rate_limit_is_not_run() {
    check_status(429, &error("rate_limit_exceeded"), RATE_LIMITED).await;
    check_status(429, &error("slow_down"), RATE_LIMITED).await;
    check_status(429, "too many requests", RATE_LIMITED).await;
}

#[tokio::test]
async fn a_billing_limit_is_the_accounts() {
    for code in [
        "insufficient_quota",
        "credit_balance_exhausted",
        "organization_spend_limit_exceeded",
        "project_spend_limit_exceeded",
        "organization_usage_limit_exceeded",
        "billing_hard_limit_reached",
    ] {
        check_status(429, &error(code), ACCOUNT).await;
    }
    check_status(429, r#"{"error":{"type":"insufficient_quota","code":null}}"#, ACCOUNT).await;
}

#[tokio::test]
async fn a_wrong_key_account_or_path_is_the_routes() {
    for status in [401, 402, 403, 404] {
        check_status(status, &error("anything"), ACCOUNT).await;
        check_status(status, "<html>", ACCOUNT).await;
    }
}

#[tokio::test]
async fn an_overload_is_not_run_only_where_that_is_documented() {
    check_status(503, &error("server_is_overloaded"), OVERLOADED).await;
    check_status(503, &error("slow_down"), STATUS).await;
    check_status(503, "{}", STATUS).await;
    check_status(500, &error("server_is_overloaded"), STATUS).await;
}

#[tokio::test]
async fn a_bad_request_is_refused() {
    for status in [400, 413, 422] {
        check_status(status, &error("invalid_value"), REQUEST).await;
        check_status(status, "<html>", REQUEST).await;
    }
}

#[tokio::test]
async fn a_prompt_that_does_not_fit_is_refused_as_such() {
    let llama_cpp = r#"{"error":{"code":400,"message":"no","type":"exceed_context_size_error","n_prompt_tokens":9,"n_ctx":8}}"#;
    for status in [400, 413, 422] {
        check_status(status, &error("context_length_exceeded"), CONTEXT_LENGTH).await;
        check_status(status, llama_cpp, CONTEXT_LENGTH).await;
    }
}

#[tokio::test]
async fn a_status_without_a_row_proves_nothing() {
    for status in [201, 202, 206, 300, 304, 405, 408, 409, 410, 418, 424, 451, 498] {
        check_status(status, &error("rate_limit_exceeded"), STATUS).await;
    }
    for status in [500, 501, 502, 504, 520, 524, 529, 599] {
        check_status(status, &error("context_length_exceeded"), STATUS).await;
    }
}

#[tokio::test]
async fn a_success_without_content_proves_nothing() {
    check(ScriptedReply::Send("HTTP/1.1 204 Empty\r\n\r\n".to_owned()), STATUS).await;
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    let elsewhere = Upstream::start(completion()).await;
    let location = format!("{}/chat/completions", elsewhere.base_url());
    for status in [301, 302, 303, 307, 308] {
        let head =
            format!("HTTP/1.1 {status} Elsewhere\r\nlocation: {location}\r\ncontent-length: 0");
        check(ScriptedReply::Send(format!("{head}\r\n\r\n")), STATUS).await;
    }
    assert_eq!(elsewhere.connections(), 0);
}

#[tokio::test]
async fn the_status_counts_where_its_body_breaks_hangs_or_never_ends() {
    let head = "HTTP/1.1 429 Slow\r\ncontent-length: 1000000\r\n\r\n";
    check(ScriptedReply::SendAndClose(head.to_owned()), RATE_LIMITED).await;
    check(ScriptedReply::SendAndHang(head.to_owned()), RATE_LIMITED).await;
    let filler = " ".repeat(1_000_000);
    check(ScriptedReply::Send(format!("{head}{filler}")), RATE_LIMITED).await;
    // Without its body, nothing says that a 503 was not processed.
    let head = "HTTP/1.1 503 Busy\r\ncontent-length: 1000000\r\n\r\n";
    check(ScriptedReply::SendAndClose(head.to_owned() + &error("server_is_overloaded")), STATUS)
        .await;
}

#[tokio::test]
async fn a_200_that_is_no_whole_completion_is_unreadable() {
    let choice =
        r#"{"index":0,"message":{"role":"assistant","content":"a"},"finish_reason":"stop"}"#;
    for (body, why) in [
        (String::new(), UnreadableReason::Json),
        // Events, although none were requested, that say nothing.
        ("data: {}\n\n".to_owned(), UnreadableReason::Choices("choices")),
        ("null".to_owned(), UnreadableReason::Choices("choices")),
        ("{}".to_owned(), UnreadableReason::Choices("choices")),
        (error("server_error"), UnreadableReason::Error),
        (
            format!(r#"{{"choices":[{choice}],"error":{{"code":502,"message":"no"}}}}"#),
            UnreadableReason::Error,
        ),
        (r#"{"choices":[]}"#.to_owned(), UnreadableReason::Choices("choices")),
        (format!(r#"{{"choices":[{choice},{choice}]}}"#), UnreadableReason::Choices("choices")),
        (format!(r#"{{"choices":[{choice}]"#), UnreadableReason::Json),
        (
            format!(r#"{{"choices":[{}]}}"#, choice.replace("\"stop\"", "\"abort\"")),
            UnreadableReason::Finish("choices[].finish_reason"),
        ),
        (
            format!(r#"{{"choices":[{}]}}"#, choice.replace("\"stop\"", "\"error\"")),
            UnreadableReason::Finish("choices[].finish_reason"),
        ),
        (format!(r#"{{"junk":[{}0]}}"#, "0,".repeat(200_000)), UnreadableReason::Values),
    ] {
        check_status(200, &body, CallFailure::Unknown(UnknownReason::Unreadable(why))).await;
    }
}

#[tokio::test]
async fn an_answer_that_is_too_large_is_unreadable() {
    let body = " ".repeat(ServerOptions::RESPONSE_BYTES_MAX + 1);
    check_status(
        200,
        &body,
        CallFailure::Unknown(UnknownReason::Unreadable(UnreadableReason::Long)),
    )
    .await;
}

#[tokio::test]
async fn a_connection_that_breaks_after_the_request_proves_nothing() {
    let whole = answer(200, "0123456789");
    let chunked = "HTTP/1.1 200 Fine\r\ntransfer-encoding: chunked\r\n\r\n5\r\n01234\r\n";
    for cut in ["", "HTT", "HTTP/1.1 200 Fine\r\ncontent-", &whole[..whole.len() - 1], chunked] {
        check(ScriptedReply::SendAndClose(cut.to_owned()), BROKEN).await;
    }
    check(ScriptedReply::Reset, BROKEN).await;
    check(ScriptedReply::Send("SSH-2.0-OpenSSH_9.2\r\n\r\n".to_owned()), BROKEN).await;
}

#[tokio::test]
async fn a_refused_connection_is_not_run() {
    let taken = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = taken.local_addr().unwrap().port();
    drop(taken);
    check_unsent(&format!("http://127.0.0.1:{port}/v1")).await;
}

#[tokio::test]
async fn a_name_that_does_not_resolve_is_not_run() {
    // A label of more than 63 bytes is no name: no resolver is asked.
    check_unsent(&format!("http://{}.invalid/v1", "a".repeat(64))).await;
}

#[tokio::test]
async fn a_server_without_tls_is_not_run() {
    let plain = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("https://127.0.0.1:{}/v1", plain.local_addr().unwrap().port());
    let serve = async {
        let (mut stream, _) = plain.accept().await.unwrap();
        stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await.unwrap();
        stream
    };
    tokio::join!(check_unsent(&url), serve);
}

#[tokio::test]
async fn a_certificate_that_nobody_vouches_for_is_not_run() {
    let authority = Authority::new();
    let upstream = Upstream::start_tls(completion(), authority.acceptor("localhost")).await;
    check_unsent(&upstream.base_url()).await;
    assert_eq!((upstream.connections(), upstream.arrived().len()), (1, 0));
}

#[tokio::test]
async fn a_certificate_for_another_name_is_not_run() {
    let authority = Authority::new();
    let upstream = Upstream::start_tls(completion(), authority.acceptor("elsewhere")).await;
    let extra_roots = vec![authority.root()];
    let options = options(ServerOptions { extra_roots, ..server(&upstream.base_url()) });
    let ran = run(&HttpProvider::new(options).unwrap(), &call(request("hi"))).await;
    assert_eq!(ran.outcome, Err(CONNECT));
    assert_eq!(upstream.arrived().len(), 0);
}

#[tokio::test]
async fn a_server_with_a_trusted_certificate_answers() {
    let authority = Authority::new();
    let upstream = Upstream::start_tls(completion(), authority.acceptor("localhost")).await;
    let extra_roots = vec![authority.root()];
    let options = options(ServerOptions { extra_roots, ..server(&upstream.base_url()) });
    let ran = run(&HttpProvider::new(options).unwrap(), &call(request("hi"))).await;
    assert_eq!(ran.usage(), Some((9, 3)));
    assert_eq!(upstream.arrived().len(), 1);
}
