//! Note of a call that failed, for operators: `HTTP 429, code rate_limit_exceeded, type requests: Rate limit …`.
//!
//! [`failure_note`] is the one place in which a provider's words become a text that is kept. It is made so that
//! it never contains a part of a prompt, or a credential, for any text of the provider:
//!
//! | part | condition |
//! |---|---|
//! | status | always |
//! | names: `code`, `type`, `param`, in lower case | each matches `[a-z0-9_.-]{1,64}`, repeats no value of the request and no credential, and looks like none |
//! | message | not for 400, 413 and 422, which are about the request; not if it has coded characters; up to its first quote or bracket, because servers quote a model's answer there; at most [`SHOWN_MAX`] printable characters |
//!
//! In the message every run of [`RUN`](super::echoes::RUN) characters that the request contains, and everything
//! that looks like a credential, is `…`: first by the body as it was sent, then by each text in it, unescaped,
//! and once more if the text itself has escapes. The names are compared with the texts alone and not with the
//! body's own member names at the top, which `param` repeats.
//!
//! Never: called for a success, or the only reason for anything that happens. Costs are bounded: of a message
//! [`READ_MAX`] characters are read; a request of more than [`SENT_BYTES_MAX`] leaves a bare status. A long one is
//! searched on a thread of its own, if one is free at once and ends within [`SEARCH_MAX`]: a failure that is proven
//! must not become an unknown one because its call waits for a note.

use std::time::Duration;

use bytes::Bytes;
use holdfast_domain::ports::FailureNote;
use holdfast_net::SendError;
use holdfast_wire::json::{Node, parse_answer};
use http::{Request, StatusCode};

use super::echoes::{Echoes, is_coded, printed_text, unescaped};
use super::{UpstreamErrorBody, credentials};
use crate::adapter::ErrorResponse;
use crate::long_reading::{INLINE_BYTES_MAX, offload_at_once};

/// Length of a request up to which it is searched, in bytes.
pub(crate) const SENT_BYTES_MAX: usize = 1024 * 1024;
/// Time that a call waits for the search of a long request.
const SEARCH_MAX: Duration = Duration::from_millis(50);
/// Length of a message, as it is read and as it is shown, in characters.
const READ_MAX: usize = 1_024;
const SHOWN_MAX: usize = 200;
const NAME_MAX: usize = 64;
/// Levels of escapes in a text of the request that are read.
const ESCAPES_MAX: usize = 2;
/// Sign before a message. Compared with it, because a request may contain it, too.
const MESSAGE_MARK: &str = ": ";

/// Names of an error, as kinds of providers call them: OpenAI, Anthropic and Holdfast by `code`, `type` and `param`;
/// Google by `status`.
const NAMES: [(&str, &str); 4] =
    [("code", "code"), ("status", "code"), ("type", "type"), ("param", "param")];

/// Note of an answer that is no success; of a long request no more than the status, unless the search is short.
pub(crate) async fn failure_note(rejected: ErrorResponse, sent: &Request<Bytes>) -> FailureNote {
    if sent.body().len() > SENT_BYTES_MAX {
        return note_of_status(rejected.status);
    }
    if sent.body().len() <= INLINE_BYTES_MAX {
        return note(&rejected, sent);
    }
    let (bare, sent) = (note_of_status(rejected.status), sent.clone());
    offload_at_once(SEARCH_MAX, move || note(&rejected, &sent)).await.unwrap_or(bare)
}

/// Note of an answer of which no more than its status may be kept.
pub(crate) fn note_of_status(status: StatusCode) -> FailureNote {
    FailureNote::new(&format!("HTTP {}", status.as_u16()))
}

/// Note of a request without an answer: a name of the failure, and no address.
pub(crate) fn note_of_send_error(error: SendError) -> FailureNote {
    match error {
        SendError::Unsent(cause) => FailureNote::new(&cause.to_string()),
        SendError::Sent => FailureNote::new("connection broken after the request was sent"),
        SendError::TooLarge => FailureNote::new("answer too large"),
    }
}

fn note(rejected: &ErrorResponse, sent: &Request<Bytes>) -> FailureNote {
    let bare = || note_of_status(rejected.status);
    // Only a body that can be read can be compared: one that cannot leaves nothing but the status.
    let (Ok(text), Ok(tree)) = (str::from_utf8(sent.body()), parse_answer(sent.body())) else {
        return bare();
    };
    let own = credentials::of_headers(sent.headers());
    let names = names_of(rejected);
    let message = message_of(rejected);
    let names_printed: Vec<Vec<char>> =
        names.iter().map(|(_, name)| name.chars().collect()).collect();
    let mut echoes =
        Echoes::of(names_printed.iter().map(Vec::as_slice).chain([message.as_slice()]));
    read_texts(&tree, 0, &mut echoes);
    let mut note = format!("HTTP {}", rejected.status.as_u16());
    for ((label, name), printed) in names.iter().zip(&names_printed) {
        let mut hidden = vec![false; printed.len()];
        echoes.mark(printed, &mut hidden);
        credentials::mark_own(printed, &own, &mut hidden);
        if !hidden.contains(&true) && !credentials::is_like(name) {
            note = format!("{note}, {label} {name}");
        }
    }
    echoes.read(text);
    let mut hidden = vec![false; message.len()];
    echoes.mark(&message, &mut hidden);
    credentials::mark(&message, &own, &mut hidden);
    let shown = shown(&message, &hidden);
    if !shown.is_empty() {
        note = format!("{note}{MESSAGE_MARK}{shown}");
    }
    FailureNote::new(&note)
}

/// Names of an error, each with its label, the first of each label.
fn names_of(rejected: &ErrorResponse) -> Vec<(&'static str, String)> {
    let mut names: Vec<(&'static str, String)> = Vec::new();
    let mut add = |label: &'static str, name: &str| {
        let name = name.to_ascii_lowercase();
        let is_name = (1..=NAME_MAX).contains(&name.len())
            && name.bytes().all(|byte| {
                byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"_.-".contains(&byte)
            });
        // A number is most often the status once more.
        let is_number = name.bytes().all(|byte| byte.is_ascii_digit());
        if is_name && !is_number && names.iter().all(|(other, _)| *other != label) {
            names.push((label, name));
        }
    };
    // AWS: a URL may follow the name.
    if let Some(name) = rejected.kind.as_deref().and_then(|kind| kind.split(':').next()) {
        add("type", name);
    }
    if let Ok(tree) = parse_answer(&rejected.body) {
        let top = tree.as_array().and_then(<[_]>::first).unwrap_or(&tree);
        let error = top.get("error").unwrap_or(top);
        for (member, label) in NAMES {
            if let Some(name) = error.get(member).and_then(Node::as_str) {
                add(label, name);
            }
        }
    }
    names
}

/// Message of an error as it is printed, after its mark; none for a status that is about the request.
fn message_of(rejected: &ErrorResponse) -> Vec<char> {
    let is_about_request = matches!(
        rejected.status,
        StatusCode::BAD_REQUEST | StatusCode::PAYLOAD_TOO_LARGE | StatusCode::UNPROCESSABLE_ENTITY
    );
    if is_about_request {
        return Vec::new();
    }
    let UpstreamErrorBody { message, mut texts, .. } = UpstreamErrorBody::of_openai(&rejected.body);
    let first = if texts.is_empty() { None } else { Some(texts.swap_remove(0)) };
    let message = message.or(first).unwrap_or_default();
    let own = before_quote(&message);
    if own.is_empty() || is_coded(&message) {
        return Vec::new();
    }
    printed_text(&format!("{MESSAGE_MARK}{own}"), READ_MAX)
}

/// Message up to its first quote or bracket. An apostrophe inside of a word is none.
fn before_quote(message: &str) -> &str {
    let mut is_in_word = false;
    let end = message.find(|c: char| {
        let was_in_word = std::mem::replace(&mut is_in_word, c.is_alphanumeric());
        matches!(c, '"' | '`' | '{' | '[' | '<' | '“' | '„' | '‘' | '«')
            || (c == '\'' && !was_in_word)
    });
    end.and_then(|end| message.get(..end)).unwrap_or(message)
}

/// Reads the texts of a request. Names of members are texts, too, because a schema's are its caller's; only those
/// of the body itself are ours.
fn read_texts(node: &Node<'_>, level: usize, echoes: &mut Echoes) {
    match node {
        Node::String(text) => read_text(text, echoes),
        Node::Array(nodes) => nodes.iter().for_each(|node| read_texts(node, level + 1, echoes)),
        Node::Object(members) => {
            for (name, node) in members {
                if level > 0 {
                    read_text(name, echoes);
                }
                read_texts(node, level + 1, echoes);
            }
        }
        Node::Null | Node::Bool(_) | Node::Number(_) => {}
    }
}

/// Reads a text, and the texts that its escapes stand for: a conversation may carry JSON of JSON.
fn read_text(text: &str, echoes: &mut Echoes) {
    echoes.read(text);
    let mut plain = std::borrow::Cow::Borrowed(text);
    for _level in 0..ESCAPES_MAX {
        if !plain.contains("\\u") {
            return;
        }
        plain = unescaped(&plain).into();
        echoes.read(&plain);
    }
}

/// Message with `…` for each part that is hidden, up to its longest length.
fn shown(message: &[char], hidden: &[bool]) -> String {
    let mut shown = Vec::new();
    let mut was_hidden = false;
    for (c, is_hidden) in message.iter().zip(hidden).skip(MESSAGE_MARK.len()) {
        match (is_hidden, was_hidden) {
            (true, true) => {}
            (true, false) => shown.push('…'),
            (false, _) => shown.push(*c),
        }
        was_hidden = *is_hidden;
    }
    let shown: String = shown.into_iter().take(SHOWN_MAX).collect();
    shown.trim().to_owned()
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::pin::pin;
    use std::task::Poll;

    use http::HeaderValue;
    use http::header::AUTHORIZATION;
    use proptest::prelude::*;

    use super::super::echoes::{RUN, lower};
    use super::*;
    use crate::long_reading::take_permits;

    const STATUSES: [u16; 11] = [400, 401, 402, 403, 404, 413, 422, 429, 500, 503, 529];

    fn sent(prompt: &str, credential: &str) -> Request<Bytes> {
        let body = serde_json::json!({
            "model": "gpt-9", "max_completion_tokens": 9,
            "messages": [{"role": "user", "content": prompt}],
        });
        let mut request = Request::new(Bytes::from(body.to_string()));
        let mut bearer = HeaderValue::try_from(format!("Bearer {credential}")).unwrap();
        bearer.set_sensitive(true);
        request.headers_mut().insert(AUTHORIZATION, bearer);
        request
    }

    fn note_of(status: u16, body: &str, sent: &Request<Bytes>) -> String {
        let status = StatusCode::from_u16(status).unwrap();
        let rejected = ErrorResponse { status, kind: None, body: body.to_owned().into() };
        note(&rejected, sent).as_str().to_owned()
    }

    #[track_caller]
    fn check(status: u16, body: &str, expected: &str) {
        let sent = sent("Who betrayed the duke of Northmoor?", "s3cret-of-the-route");
        assert_eq!(note_of(status, body, &sent), expected);
    }

    #[test]
    fn names_and_message_are_shown() {
        let body = r#"{"error":{"message":"Rate limit reached: retry in 20s.","type":"requests",
            "param":"max_completion_tokens","code":"rate_limit_exceeded"}}"#;
        let names = "code rate_limit_exceeded, type requests, param max_completion_tokens";
        check(429, body, &format!("HTTP 429, {names}: Rate limit reached: retry in 20s."));
        check(400, body, &format!("HTTP 400, {names}"));
        let google =
            r#"[{"error":{"code":429,"message":"No more.","status":"RESOURCE_EXHAUSTED"}}]"#;
        check(429, google, "HTTP 429, code resource_exhausted: No more.");
        check(502, "<html>Bad gateway</html>", "HTTP 502");
        check(502, "upstream  is\ngone", "HTTP 502: upstream is gone");
        check(
            500,
            r#"{"error":{"message":"no","type":"Not a name","code":"a b"}}"#,
            "HTTP 500: no",
        );
    }

    #[test]
    fn request_and_credentials_are_not() {
        for (message, shown) in [
            ("bad: who betrayed the Duke of Northmoor", "bad: …"),
            ("bad: Who\\nbetrayed\\tthe duke", "bad: …"),
            (r#"bad: [{\"content\":\"Who"#, "bad:"),
            (r#"no call: raw='{\"name\":\"pay\",\"to\":\"Ann\"}'"#, "no call: raw="),
            ("the model's answer: `Dear Ann`", "the model's answer:"),
            ("key s3cret-of is wrong", "key … is wrong"),
            ("key sk-proj-x is wrong", "key … is wrong"),
            ("send Bearer abc then", "send Bearer … then"),
            ("write to ops@example.org now", "write to … now"),
            ("id 0123456789abcdef0 failed", "id … failed"),
        ] {
            let body = format!(r#"{{"error":{{"message":"{message}"}}}}"#);
            check(503, &body, &format!("HTTP 503: {shown}"));
        }
        for coded in ["%57ho betrayed", "Who\\\\u0020b", "a &amp; b", "57686f 626574", "WhoĠbet"] {
            let body = format!(r#"{{"error":{{"message":"no: {coded}"}}}}"#);
            check(503, &body, "HTTP 503");
        }
        let echoed = r#"{"error":{"code":"whobetrayedthe","type":"s3cret-of-the-route"}}"#;
        check(400, echoed, "HTTP 400");
    }

    #[test]
    fn escapes_in_a_text_of_the_request_are_read() {
        for text in [
            r#"{"a":"Z\u00fcrich \u6f22\u5b57 by night"}"#,
            r#"{"b":"{\"a\":\"Z\\u00fcrich \\u6f22\\u5b57 by night\"}"}"#,
        ] {
            let body = r#"{"error":{"message":"bad: Zürich 漢字 by night"}}"#;
            assert_eq!(note_of(500, body, &sent(text, "s3cret-of-the-route")), "HTTP 500: bad: …");
        }
    }

    #[test]
    fn a_message_is_cut_and_a_long_request_leaves_the_status() {
        let long = "ab ".repeat(900);
        let body = serde_json::json!({"error": {"message": long}}).to_string();
        let shown = note_of(500, &body, &sent("hi", "s3cret"));
        assert!(shown.chars().count() <= "HTTP 500: ".len() + SHOWN_MAX, "{shown}");
    }

    #[tokio::test]
    async fn note_of_a_long_request_waits_for_no_permit() {
        let sent = sent(&"word ".repeat(INLINE_BYTES_MAX), "s3cret");
        let rejected = || {
            let body = Bytes::from_static(br#"{"error":{"code":"busy"}}"#);
            ErrorResponse { status: StatusCode::SERVICE_UNAVAILABLE, kind: None, body }
        };
        assert_eq!(failure_note(rejected(), &sent).await.as_str(), "HTTP 503, code busy");
        let permits = take_permits().await;
        let mut noted = pin!(failure_note(rejected(), &sent));
        let polled = poll_fn(|context| Poll::Ready(noted.as_mut().poll(context))).await;
        drop(permits);
        assert!(matches!(polled, Poll::Ready(note) if note.as_str() == "HTTP 503"));
    }

    #[tokio::test]
    async fn panic_and_late_end_of_a_search_leave_the_status() {
        assert_eq!(offload_at_once(SEARCH_MAX, || panic!("a search")).await, None::<()>);
        let (_end, ended) = std::sync::mpsc::channel::<()>();
        let late = offload_at_once(Duration::ZERO, move || ended.recv().is_ok());
        assert_eq!(late.await, None);
    }

    /// True if one part of a note has a run of the letters and digits of a text, whatever their case.
    fn has_run(note: &str, of: &str, length: usize) -> bool {
        let letters = |text: &str| -> Vec<char> {
            text.chars().filter(|c| c.is_alphanumeric()).map(lower).collect()
        };
        let of = letters(of);
        let mut marked = note.replace(MESSAGE_MARK, "…");
        for label in [", code ", ", type ", ", param "] {
            marked = marked.replace(label, "…");
        }
        let parts: Vec<_> = marked.split('…').map(letters).collect();
        of.windows(length)
            .any(|run| parts.iter().any(|part| part.windows(length).any(|window| window == run)))
    }

    /// Words, signs, white space, quotes, letters of other scripts.
    fn prompts() -> impl Strategy<Value = String> {
        prop::collection::vec(
            prop::sample::select(vec![
                "a", "Z", "q7", "word ", "Zürich ", "\n", "\t", "  ", "\"", "\\", "{", "}", "/",
                "-", "_", ".", "漢字", "ß", "Ω", "😀", "4711", "\u{7f}", "\r\n", "x.y",
            ]),
            12..60,
        )
        .prop_map(|parts| parts.concat())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(200))]

        /// However a provider echoes a prompt and a credential, wherever the echo begins and ends, no run of them
        /// is in the note.
        #[test]
        fn no_echo_is_in_a_note(
            prompt in prompts(),
            credential in "[a-zA-Z0-9_-]{12,40}",
            (begin, end) in (0_usize..80, 0_usize..80),
            at in 0..STATUSES.len(),
        ) {
            let sent = sent(&prompt, &credential);
            let part = |text: &str| -> String {
                let length = text.chars().count();
                text.chars().skip(begin.min(length)).take(end).collect()
            };
            let whole = String::from_utf8(sent.body().to_vec()).unwrap();
            let escaped = serde_json::to_string(&serde_json::to_string(&prompt).unwrap()).unwrap();
            for echo in [
                prompt.clone(), part(&prompt), part(&whole), part(&escaped), prompt.to_uppercase(),
                format!("no: {}", part(&prompt)), format!("{} {}", part(&credential), part(&prompt)),
                credential.clone(), part(&credential), format!("key {credential} is bad"),
            ] {
                let names = serde_json::json!(
                    {"error": {"message": echo, "code": echo, "type": echo, "param": echo}}
                );
                for body in [names.to_string(), part(&names.to_string()), echo.clone(), format!("{{\"detail\":{names}}}")] {
                    let status = STATUSES[at];
                    let note = note_of(status, &body, &sent);
                    prop_assert!(!has_run(&note, &prompt, RUN), "{status} {body:?} left {note:?}");
                    prop_assert!(!has_run(&note, &credential, 8), "{status} {body:?} left {note:?}");
                }
            }
        }
    }
}
