//! Healing of answers that break, come late, are too long, or are another's.

use rusqlite::Connection;

use super::*;
use crate::JournalOptions;
use crate::attendance::SlotRegistry;
use crate::budget::{BYTES_MAX, Reservation};
use crate::journal::{FULL, Journal};
use crate::table::Rules;

const GOOD: &str = "{\"choices\":[{\"message\":{\"content\":\"Good day\"}}]}";

#[tokio::test(start_paused = true)]
async fn a_stream_that_comes_again_as_another_answer_ends_with_an_error_and_no_end() {
    let bad = chunk("{\"role\":\"assistant\",\"content\":\"Bad day\"}", "null");
    let short = chunk("{\"role\":\"assistant\",\"content\":\"Go\"}", "\"stop\"");
    for other in [bad, short] {
        let bench = Bench::start().await;
        let client = bench.send(&post("", "{}")).await;
        let (all, done) = (events(), "data: [DONE]\n\n");
        let mut asked = bench.asked().await;
        let key = asked.key().to_owned();
        asked.answer(&format!("{HEAD}{}", all[..2].concat())).await;
        drop(asked);
        bench.asked().await.answer(&format!("{HEAD}{other}{done}")).await;
        let events_sent = rest(client).await;
        assert!(events_sent.contains("\"code\":\"internal_error\""), "{events_sent}");
        assert!(events_sent.contains("Good ") && events_sent.contains("day"), "{events_sent}");
        for word in ["Bad", "Go\"", "stop", "[DONE]"] {
            assert!(!events_sent.contains(word), "{word}: {events_sent}");
        }
        assert!(!events_sent.ends_with(END), "{events_sent}");
        // A retry replays what was begun.
        let client = bench.send(&post("", "{}")).await;
        let mut asked = bench.asked().await;
        assert_eq!(asked.key(), key);
        asked.answer(&format!("{HEAD}{}", all.concat())).await;
        let events_sent = rest(client).await;
        assert!(
            events_sent.contains("Good ")
                && events_sent.contains(done)
                && events_sent.ends_with(END),
            "{events_sent}"
        );
    }
}

/// A bench whose answers have room for so many bytes together.
async fn with_room_for(bytes: usize) -> (Bench, Reservation) {
    let mut taken = None;
    let bench = Bench::with(|options| {
        let sidecar = Sidecar::open(options).unwrap();
        let mut others = sidecar.service.answers.reserve();
        assert!(others.grow(BYTES_MAX - bytes));
        taken = Some(others);
        sidecar
    })
    .await;
    (bench, taken.unwrap())
}

#[tokio::test(start_paused = true)]
async fn an_answer_for_which_there_is_no_room_is_passed_on_as_it_comes() {
    let answer = json("200 OK", "", GOOD);
    let (beginning, end) = answer.split_at(answer.len() - 9);
    for is_cut in [false, true] {
        let (bench, _others) = with_room_for(4).await;
        let mut client = bench.send(&post("", "{}")).await;
        let mut asked = bench.asked().await;
        asked.answer(beginning).await;
        // Before the end is there; an answer that has room is written with its end alone.
        let mut events_sent = until(&mut client, "Good").await;
        assert!(events_sent.contains(&format!("content-length: {}", GOOD.len())), "{events_sent}");
        let key = asked.key().to_owned();
        if is_cut {
            drop(asked);
            let mut more = Vec::new();
            // An end or a reset, and before the length that was told.
            drop(client.read_to_end(&mut more).await);
            events_sent += str::from_utf8(&more).unwrap();
            assert!(!events_sent.ends_with(GOOD), "{events_sent}");
        } else {
            asked.answer(end).await;
            events_sent += &rest(client).await;
            assert!(events_sent.ends_with(GOOD), "{events_sent}");
        }
        // The client's to heal: under the same key.
        assert_eq!(bench.key_of(&post("", "{}")).await == key, is_cut);
    }
    let (bench, others) = with_room_for(4).await;
    drop(others);
    let client = bench.send(&post("", "{}")).await;
    for events_sent in [beginning, &answer] {
        bench.asked().await.answer(events_sent).await;
    }
    assert!(rest(client).await.ends_with(GOOD), "what has room is asked for again");
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_says_nothing_has_a_head_and_a_comment_every_fifteen_seconds() {
    let bench = Bench::start().await;
    let began = Instant::now();
    let mut client = bench.send(&post("", "{}")).await;
    let mut asked = bench.asked().await;
    asked.answer(HEAD).await;
    let head = until(&mut client, ":").await;
    assert!(head.starts_with("HTTP/1.1 200 OK"), "{head}");
    assert_eq!(began.elapsed().as_secs(), 15);
    let comment = str::from_utf8(holdfast_wire::sse::PING).unwrap();
    if !head.contains(comment) {
        until(&mut client, comment).await;
    }
    for seconds in [30, 45] {
        until(&mut client, comment).await;
        assert_eq!(began.elapsed().as_secs(), seconds);
    }
    asked.answer(&events().concat()).await;
    assert!(rest(client).await.ends_with(END));
}

#[tokio::test(start_paused = true)]
async fn a_whole_answer_after_a_head_that_had_to_be_written_is_an_event() {
    let refused = "{\"error\":{\"code\":\"outcome_unknown\",\"message\":\"m\"}}";
    for (body, code) in [(refused, "outcome_unknown"), ("<html>", "gateway_unreachable")] {
        let bench = Bench::start().await;
        let mut client = bench.send(&post("", "{}")).await;
        let mut asked = bench.asked().await;
        asked.answer(HEAD).await;
        until(&mut client, "200 OK").await;
        drop(asked);
        let hint = "x-should-retry: false\r\n";
        bench.asked().await.answer(&json("502 Bad Gateway", hint, body)).await;
        let events_sent = rest(client).await;
        assert!(
            events_sent.contains("data: {\"error\":") && events_sent.contains(code),
            "{events_sent}"
        );
        assert!(!events_sent.ends_with(END), "{events_sent}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_with_its_own_key_is_asked_for_again_as_well() {
    let bench = Bench::start().await;
    let own = "7f2c1a9e-5b7d-4c3e-9a51-0f8e6d2b4c11";
    let client = bench.send(&post(&format!("idempotency-key: {own}\r\n"), "{}")).await;
    let cut = bench.asked().await;
    assert_eq!(cut.key(), own);
    drop(cut);
    let mut refused = bench.asked().await;
    assert_eq!(refused.key(), own);
    refused.answer(&json("503 Service Unavailable", "x-should-retry: true\r\n", "{}")).await;
    let mut asked = bench.asked().await;
    assert_eq!(asked.key(), own);
    asked.answer(&json("200 OK", "", GOOD)).await;
    assert!(rest(client).await.ends_with(GOOD));
}

// Its clock goes: the journal is written by a thread.
#[tokio::test]
async fn a_call_that_the_journal_does_not_have_is_not_sent() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.db");
    let journal = Some(JournalOptions { path: path.clone(), is_synced: false });
    Journal::open(&path, false).unwrap().0.close().await;
    let bench = Bench::with(|options| {
        let options = Options { journal, ..options };
        Connection::open(&path).unwrap().execute_batch(FULL).unwrap();
        Sidecar::open(options).unwrap()
    })
    .await;
    let events_sent = rest(bench.send(&post("", "{}")).await).await;
    assert!(
        events_sent.starts_with("HTTP/1.1 503 ") && events_sent.contains("storage_unavailable"),
        "{events_sent}"
    );
    assert!(events_sent.contains("x-should-retry: true"), "{events_sent}");
    let sent = tokio::time::timeout(Duration::ZERO, bench.gateway.accept()).await;
    assert!(sent.is_err(), "{sent:?}");
}

#[tokio::test]
async fn a_sidecar_whose_journal_is_gone_ends() {
    let folder = tempfile::tempdir().unwrap();
    let [path, other] = ["journal.db", "other.db"].map(|name| folder.path().join(name));
    let journal = Some(JournalOptions { path: path.clone(), is_synced: false });
    let open = |options| Sidecar::open(Options { journal, ..options }).unwrap();
    let mut bench = Bench::with(open).await;
    std::fs::rename(&path, &other).unwrap();
    let ended = bench.tasks.join_next().await.unwrap().unwrap();
    let events_sent = ended.unwrap_err().to_string();
    assert!(
        events_sent.starts_with(path.to_str().unwrap()) && events_sent.contains("replaced"),
        "{events_sent}"
    );
}

#[tokio::test]
async fn a_call_beyond_the_queue_of_a_hanging_disk_is_not_sent() {
    let (journal, _disk) = Journal::hanging();
    let bench = Bench::with(|options| {
        let rules = Rules { identical: options.identical, window: options.window };
        let mut sidecar = Sidecar::open(options).unwrap();
        let registry = Arc::new(SlotRegistry::new(rules, journal, Vec::new()));
        Arc::get_mut(&mut sidecar.service).unwrap().registry = registry;
        sidecar
    })
    .await;
    let refused = rest(bench.send(&post("", "{}")).await).await;
    assert!(refused.starts_with("HTTP/1.1 503 "), "{refused}");
    assert!(refused.contains("\r\nretry-after: 1\r\n"), "{refused}");
    assert!(refused.contains("x-should-retry: true"), "{refused}");
    let sent = tokio::time::timeout(Duration::ZERO, bench.gateway.accept()).await;
    assert!(sent.is_err(), "{sent:?}");
}
