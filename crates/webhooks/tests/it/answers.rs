//! What is sent, and what each kind of answer is taken for.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use holdfast_domain::WebhookId;
use holdfast_domain::admin::webhook::TryResult;
use holdfast_webhooks::Sender;
use tokio::net::{TcpListener, TcpSocket};

use crate::names::SilentNames;
use crate::receiver::{Receiver, Reply, status, within};
use crate::sample::{BODY, WEBHOOK, allowed, delivery, hasty_sender, key, send, sender, sender_by};

/// Webhooks that have no permit left.
fn full(sender: &Sender) -> Vec<WebhookId> {
    sender.room().full().collect()
}

#[tokio::test]
async fn a_delivery_is_one_signed_post() {
    let receiver = Receiver::start(status(204)).await;
    let sender = sender();
    let endpoint = allowed(&receiver.url("localhost", "/in?from=holdfast"));
    let mut signed_twice = delivery(endpoint);
    signed_twice.keys = vec![key(2), key(1)];
    let result = sender.send(sender.permit(None, WEBHOOK).unwrap(), signed_twice).await;
    assert_eq!(result, TryResult::Answered(204));
    let requests = receiver.requests();
    let (head, body) = requests[0].split_once("\r\n\r\n").unwrap();
    assert_eq!((requests.len(), body), (1, BODY));
    let mut lines: Vec<&str> = head.lines().collect();
    let signature = lines.iter().position(|line| line.starts_with("webhook-signature: ")).unwrap();
    let signature = lines.remove(signature);
    // The libraries of Standard Webhooks verify it, in the suite `tests`.
    assert_eq!(signature.matches(" v1,").count(), 2, "{signature}");
    assert_eq!(
        lines,
        [
            "POST /in?from=holdfast HTTP/1.1".to_owned(),
            format!("host: localhost:{}", receiver.address.port()),
            format!("user-agent: holdfast/{}", env!("CARGO_PKG_VERSION")),
            "content-type: application/json".to_owned(),
            "connection: close".to_owned(),
            "webhook-id: 00000000-0000-0000-0000-000000000009".to_owned(),
            "webhook-timestamp: 1800000000".to_owned(),
            format!("content-length: {}", BODY.len()),
        ]
    );
}

#[tokio::test]
async fn the_status_is_all_that_counts_of_an_answer() {
    let sender = sender();
    for answer in [200, 201, 404, 410, 429, 500, 503] {
        let receiver = Receiver::start(status(answer)).await;
        let endpoint = allowed(&receiver.url("localhost", "/in"));
        assert_eq!(send(&sender, endpoint).await, TryResult::Answered(answer));
        assert_eq!(receiver.requests().len(), 1, "{answer}: nothing is sent again");
    }
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    let elsewhere = Receiver::start(status(200)).await;
    for answer in [301, 302, 307, 308] {
        let location = elsewhere.url("localhost", "/in");
        let head = format!("HTTP/1.1 {answer} Moved\r\nlocation: {location}\r\n");
        let receiver =
            Receiver::start(Reply::Text(format!("{head}content-length: 0\r\n\r\n"))).await;
        let result = send(&sender(), allowed(&receiver.url("localhost", "/in"))).await;
        assert_eq!((result, result.label()), (TryResult::Answered(answer), "redirect"));
    }
    assert_eq!(elsewhere.connections(), 0);
}

#[tokio::test]
async fn a_body_is_read_to_a_bound_and_the_status_stands() {
    let chunked = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";
    let endless = "HTTP/1.1 200 OK\r\n\r\n".to_owned();
    for reply in [
        Reply::Endless(endless),
        Reply::Unended(format!("{chunked}5\r\nhello\r\n")),
        Reply::Text(format!("{chunked}nonsense\r\n")),
        Reply::Text("HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhe".to_owned()),
    ] {
        let receiver = Receiver::start(reply).await;
        let endpoint = allowed(&receiver.url("localhost", "/in"));
        assert_eq!(within(send(&sender(), endpoint)).await, TryResult::Answered(200));
        receiver.closed().await;
    }
}

#[tokio::test]
async fn what_is_no_http_is_broken() {
    let long = format!("HTTP/1.1 200 OK\r\nx: {}\r\n\r\n", "x".repeat(64 * 1024));
    for text in
        ["", "SSH-2.0-OpenSSH_9.2\r\n", "HTTP/1.1 two hundred\r\n\r\n", "HTTP/1.1 200", &long]
    {
        let receiver = Receiver::start(Reply::Text(text.to_owned())).await;
        let result = send(&sender(), allowed(&receiver.url("localhost", "/in"))).await;
        assert_eq!(result, TryResult::Broken, "{text:.20}");
    }
}

#[tokio::test]
async fn a_slow_receiver_has_its_time_and_no_more() {
    let sender = hasty_sender();
    for reply in [Reply::Silence, Reply::Unended("HTTP/1.1 200 OK\r\nx: ".to_owned())] {
        let receiver = Receiver::start(reply).await;
        let endpoint = allowed(&receiver.url("localhost", "/in"));
        assert_eq!(within(send(&sender, endpoint)).await, TryResult::TimedOut);
        receiver.closed().await;
    }
    // Takes the connection, and never says a word of TLS.
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("https://localhost:{}/in", listener.local_addr().unwrap().port());
    assert_eq!(within(send(&sender, allowed(&url))).await, TryResult::TimedOut);
}

#[tokio::test(start_paused = true)]
async fn a_silent_resolver_has_fifteen_seconds() {
    let sender = sender_by(&Arc::new(SilentNames));
    let started = tokio::time::Instant::now();
    let result = send(&sender, allowed("http://hooks.test/in")).await;
    assert_eq!(result, TryResult::TimedOut);
    assert_eq!(started.elapsed().as_secs(), 15);
}

#[tokio::test]
async fn a_receiver_that_is_gone_is_not_reached() {
    // Bound and not listening: the port stays this test's, and refuses.
    let gone = TcpSocket::new_v4().unwrap();
    gone.bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).unwrap();
    let url = format!("http://localhost:{}/in", gone.local_addr().unwrap().port());
    assert_eq!(send(&sender(), allowed(&url)).await, TryResult::Unreached);
}

#[tokio::test]
async fn a_try_keeps_its_permit_until_it_ends() {
    let (quick, silent) =
        (Receiver::start(status(200)).await, Receiver::start(Reply::Silence).await);
    let sender = sender();
    let whole = sender.free();
    let attempt = |receiver: &Receiver| {
        let endpoint = allowed(&receiver.url("localhost", "/in"));
        Box::pin(sender.send(sender.permit(None, WEBHOOK).unwrap(), delivery(endpoint)))
    };
    let (answered, begun) = (attempt(&quick), attempt(&silent));
    let unbegun = [attempt(&silent), attempt(&silent)];
    assert!(sender.permit(None, WEBHOOK).is_none());
    assert_eq!((sender.free(), full(&sender)), (whole - 4, vec![WEBHOOK]));
    assert_eq!(answered.await, TryResult::Answered(200));
    assert_eq!((sender.free(), full(&sender)), (whole - 3, Vec::new()));
    let on_its_way = async {
        silent.requested().await;
        assert_eq!(sender.free(), whole - 3);
    };
    tokio::select! {
        result = begun => panic!("{result:?} before it was on its way"),
        () = on_its_way => {}
    }
    // The other one was dropped.
    assert_eq!(sender.free(), whole - 2);
    silent.closed().await;
    drop(unbegun);
    assert_eq!(sender.free(), whole);
}

#[test]
fn a_delivery_prints_neither_path_nor_body_nor_key() {
    let printed = format!("{:?}", delivery(allowed("http://localhost:9000/secret")));
    for hidden in ["/secret", "wallet", "acme"] {
        assert!(!printed.contains(hidden), "{printed}");
    }
    assert!(printed.contains("46 bytes") && printed.contains("WebhookKey(…)"), "{printed}");
}
