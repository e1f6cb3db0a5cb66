//! Connections that send no head, or no request any more, and what crosses to the gateway.

use super::*;

/// Time until the sidecar closes a connection.
async fn time_to_close(client: &mut TcpStream) -> Duration {
    let began = Instant::now();
    let mut events_sent = Vec::new();
    // A reset is an end too.
    drop(client.read_to_end(&mut events_sent).await);
    began.elapsed()
}

#[tokio::test(start_paused = true)]
async fn a_head_that_does_not_end_closes_its_connection() {
    let bench = Bench::start().await;
    for beginning in ["", "GET /v1/models HTTP/1.1\r\nhost: side"] {
        let mut client = bench.send(beginning).await;
        let closed = time_to_close(&mut client).await;
        assert!(closed >= HEAD_TIME && closed < HEAD_TIME * 2, "{beginning}: {closed:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_connection_without_requests_is_closed_and_one_that_waits_is_not() {
    let bench = Bench::start().await;
    let get = "GET /v1/models HTTP/1.1\r\nhost: sidecar\r\n\r\n";
    let mut client = bench.send(get).await;
    let mut asked = bench.asked().await;
    tokio::time::sleep(IDLE_TIME * 2).await;
    asked.answer(&json("200 OK", "", "{}")).await;
    until(&mut client, "{}").await;
    let closed = time_to_close(&mut client).await;
    assert!(closed >= IDLE_TIME && closed < IDLE_TIME * 2, "{closed:?}");
}

#[tokio::test(start_paused = true)]
async fn cookies_and_forwarded_headers_stay_here() {
    let bench = Bench::start().await;
    let headers = "cookie: session=1\r\nforwarded: for=1\r\nx-forwarded-for: 1\r\nx-real-ip: 1\r\n\
                   via: 1.1 a\r\norigin: http://a\r\nreferer: http://a/\r\n";
    let get = format!("GET /v1/models HTTP/1.1\r\nhost: sidecar\r\n{headers}x-own: 1\r\n\r\n");
    for request in [post(&format!("{headers}x-own: 1\r\n"), "{}"), get] {
        let _client = bench.send(&request).await;
        let asked = bench.asked().await.head.to_ascii_lowercase();
        assert!(asked.contains("x-own: 1"), "{asked}");
        for name in ["cookie", "forwarded", "x-forwarded", "x-real-ip", "via", "origin", "referer"]
        {
            assert!(!asked.contains(&format!("\n{name}")), "{name}: {asked}");
        }
    }
}
