//! Looks at the sockets of clients, without anybody who reads from these sockets: what a look finds
//! is then found by nobody else.

use tokio::time::sleep;

use super::*;
use crate::attendance::{Attendance, SlotRegistry};
use crate::journal::Journal;
use crate::socket::CallerState;
use crate::table::{BodyDigest, CallEnd, Rules};

const BODY: BodyDigest = BodyDigest([1; 32]);

fn registry() -> Arc<SlotRegistry> {
    let rules = Rules { identical: IdenticalCalls::New, window: Duration::from_secs(600) };
    Arc::new(SlotRegistry::new(rules, Journal::none(), Vec::new()))
}

/// A connection: the client's side, and the sidecar's.
async fn connection() -> (TcpStream, Arc<TcpStream>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
    let (socket, _) = listener.accept().await.unwrap();
    (client, Arc::new(socket))
}

async fn admit(registry: &Arc<SlotRegistry>, socket: &Arc<TcpStream>) -> Attendance {
    registry.admit(BODY, false, socket).await.unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_slot_whose_client_has_hung_up_is_found_by_a_look() {
    let registry = registry();
    let (client, socket) = connection().await;
    let first = admit(&registry, &socket).await;
    drop(client);
    let (_other, socket) = connection().await;
    let second = admit(&registry, &socket).await;
    assert_eq!(second.key(), first.key());
    let (_third, socket) = connection().await;
    assert_ne!(admit(&registry, &socket).await.key(), second.key(), "that one is there");
}

#[tokio::test(start_paused = true)]
async fn a_hang_up_that_is_on_its_way_is_found_by_a_second_look() {
    let registry = registry();
    let (client, socket) = connection().await;
    let first = admit(&registry, &socket).await;
    let (_other, socket) = connection().await;
    let began = Instant::now();
    let hang_up = async move {
        sleep(Duration::from_millis(10)).await;
        drop(client);
    };
    let (second, ()) = tokio::join!(admit(&registry, &socket), hang_up);
    assert_eq!(second.key(), first.key());
    assert!((20..30).contains(&began.elapsed().as_millis()), "{:?}", began.elapsed());
}

#[tokio::test(start_paused = true)]
async fn an_answer_is_not_delivered_to_a_client_that_has_hung_up_before_its_last_bytes() {
    for has_hung_up in [true, false] {
        let registry = registry();
        let (client, socket) = connection().await;
        let mut attendance = admit(&registry, &socket).await;
        attendance.set_end(CallEnd::Delivered);
        let (key, state) = (attendance.key(), Arc::<CallerState>::default());
        let mut io = CallerSocket::new(socket, Arc::clone(&state));
        let client = (!has_hung_up).then_some(client);
        state.hand_over(attendance);
        io.write_all(b"an answer").await.unwrap();
        io.flush().await.unwrap();
        let (_other, socket) = connection().await;
        let next = admit(&registry, &socket).await.key();
        assert_eq!(next == key, has_hung_up, "{client:?}");
    }
}
