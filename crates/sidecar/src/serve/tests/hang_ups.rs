//! Ends of clients, as the sidecar's own connections see them: whether the next call of the same body
//! is asked for under the same key.

use super::*;

/// Time for everything to settle: nothing of it takes any.
const SETTLED: Duration = Duration::from_secs(1);

async fn settle() {
    tokio::time::sleep(SETTLED).await;
}

/// An end of one choice, and no more of the stream.
fn finish(choice: u8) -> String {
    chunk("{\"content\":\"Good day\"}", "\"stop\"")
        .replace("\"index\":0", &format!("\"index\":{choice}"))
}

/// Checks whether a call is delivered whose client has read these events and then hung up.
async fn check_delivered(body: &str, events_sent: &[String], is_delivered: bool) {
    let bench = Bench::start().await;
    let request = post("", body);
    let mut client = bench.send(&request).await;
    let mut asked = bench.asked().await;
    asked.answer(&format!("{HEAD}{}", events_sent.concat())).await;
    // All that has come is read: a client that leaves anything resets its connection.
    let mut read = String::new();
    for event in events_sent {
        if !read.contains(event.as_str()) {
            read += &until(&mut client, event).await;
        }
    }
    settle().await;
    drop(client);
    settle().await;
    let next = bench.key_of(&request).await;
    assert_eq!(next != asked.key(), is_delivered, "{body} {events_sent:?}");
}

#[tokio::test(start_paused = true)]
async fn a_stream_is_delivered_with_the_end_of_its_last_choice() {
    check_delivered("{}", &[finish(0)], true).await;
    check_delivered("{}", &events()[..2], false).await;
    check_delivered("{\"n\":2}", &[finish(0)], false).await;
    check_delivered("{\"n\":2}", &[finish(0), finish(1)], true).await;
}

#[tokio::test(start_paused = true)]
async fn a_reset_takes_back_that_an_answer_was_delivered() {
    for is_read in [true, false] {
        let bench = Bench::start().await;
        // The connection stays: nobody but the client ends it.
        let request = post("", "{}").replace("connection: close\r\n", "");
        let mut client = bench.send(&request).await;
        let mut asked = bench.asked().await;
        asked.answer(&json("200 OK", "", "{\"choices\":[]}")).await;
        client.readable().await.unwrap();
        settle().await;
        if is_read {
            until(&mut client, "choices").await;
        }
        // With unread bytes its end is a reset.
        drop(client);
        settle().await;
        let next = bench.key_of(&request).await;
        assert_eq!(next != asked.key(), is_read);
    }
}

#[tokio::test(start_paused = true)]
async fn the_ids_of_a_client_s_requests_bind_nothing() {
    let bench = Bench::start().await;
    let [one, two] = ["1", "2"].map(|id| post(&format!("x-client-request-id: {id}\r\n"), "{}"));
    let client = bench.send(&one).await;
    let mut asked = bench.asked().await;
    let first = asked.key().to_owned();
    asked.answer(&json("200 OK", "", "{}")).await;
    rest(client).await;
    let second = bench.key_of(&one).await;
    assert_ne!(second, first, "the same id is no retry");
    settle().await;
    assert_eq!(bench.key_of(&two).await, second, "nor is another id another call");
}
