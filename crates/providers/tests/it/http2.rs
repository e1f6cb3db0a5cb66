//! Calls over HTTP/2, to a server on a loopback socket that has chosen it: what they share, and what a
//! refused stream and a server that goes away prove.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use h2::Reason;
use h2::server::{Builder, SendResponse};
use holdfast_domain::ports::{CallFailure, NotRunProof, UnknownReason};
use holdfast_providers::{HttpProvider, ServerOptions};
use http::{Request, Response};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::pki_types::CertificateDer;

use crate::authority::Authority;
use crate::calls::{call, request, run};
use crate::openai::{COMPLETION, completion, options, server, settle};
use crate::upstream::Upstream;

const CONNECT: CallFailure = CallFailure::NotRun(NotRunProof::Connect);
const BROKEN: CallFailure = CallFailure::Unknown(UnknownReason::Broken);

/// What the server does with a request that it has read.
#[derive(Clone, Copy)]
enum ServerAction {
    Answer,
    /// Resets the stream, for this reason.
    Reset(Reason),
    /// Begins to answer, then resets the stream for this reason.
    Begin(Reason),
    /// Says nothing more on this stream.
    Hang,
    /// Goes away: of the streams that it has looked at, this is the last. Without a library, byte by byte.
    GoAway(u32),
}

struct Http2Server {
    address: SocketAddr,
    root: CertificateDer<'static>,
    seen: Arc<ServerState>,
    _tasks: JoinSet<()>,
}

#[derive(Default)]
struct ServerState {
    then: Mutex<Vec<ServerAction>>,
    /// Of each request its connection, its line, its authority and the size of its body.
    arrived: Mutex<Vec<(usize, String, usize)>>,
    connections: Mutex<usize>,
    requested: Notify,
}

impl Http2Server {
    /// The last thing to do is done for all further requests as well.
    async fn start(then: &[ServerAction], streams_max: u32) -> Self {
        let authority = Authority::new();
        let tls = authority.acceptor_of("localhost", &["h2", "http/1.1"]);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let seen =
            Arc::new(ServerState { then: Mutex::new(then.to_vec()), ..ServerState::default() });
        let mut tasks = JoinSet::new();
        tasks.spawn(accept(listener, tls, Arc::clone(&seen), streams_max));
        Self { address, root: authority.root(), seen, _tasks: tasks }
    }

    fn client(&self, pool_idle: Duration) -> HttpProvider {
        let url = format!("https://localhost:{}/v1", self.address.port());
        let extra_roots = vec![self.root.clone()];
        HttpProvider::new(options(ServerOptions { extra_roots, pool_idle, ..server(&url) }))
            .unwrap()
    }

    fn arrived(&self) -> Vec<(usize, String, usize)> {
        self.seen.arrived.lock().unwrap().clone()
    }

    fn connections(&self) -> usize {
        *self.seen.connections.lock().unwrap()
    }
}

async fn accept(listener: TcpListener, tls: TlsAcceptor, seen: Arc<ServerState>, streams_max: u32) {
    let mut connections = JoinSet::new();
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        let (tls, seen) = (tls.clone(), Arc::clone(&seen));
        connections.spawn(serve(stream, tls, seen, streams_max));
    }
}

async fn serve(stream: TcpStream, tls: TlsAcceptor, seen: Arc<ServerState>, streams_max: u32) {
    let mut stream = tls.accept(stream).await.unwrap();
    let number = {
        let mut connections = seen.connections.lock().unwrap();
        *connections += 1;
        *connections
    };
    let first = seen.then.lock().unwrap().first().copied();
    if let Some(ServerAction::GoAway(last)) = first {
        go_away(&mut stream, &seen, last).await;
        return;
    }
    let mut builder = Builder::new();
    builder.max_concurrent_streams(streams_max);
    let mut connection = builder.handshake::<_, Bytes>(stream).await.unwrap();
    let mut answers = JoinSet::new();
    while let Some(Ok((request, respond))) = connection.accept().await {
        answers.spawn(answer(number, request, respond, Arc::clone(&seen)));
    }
}

async fn answer(
    number: usize,
    request: Request<h2::RecvStream>,
    mut respond: SendResponse<Bytes>,
    seen: Arc<ServerState>,
) {
    let line = format!("{} {}", request.method(), request.uri());
    assert!(!request.headers().contains_key("host"), "{request:?}");
    let (mut body, mut length) = (request.into_body(), 0);
    while let Some(Ok(data)) = body.data().await {
        length += data.len();
        body.flow_control().release_capacity(data.len()).unwrap();
    }
    seen.arrived.lock().unwrap().push((number, line, length));
    let then = {
        let mut then = seen.then.lock().unwrap();
        if then.len() > 1 { then.remove(0) } else { then[0] }
    };
    seen.requested.notify_one();
    let head = Response::builder().header("content-type", "application/json").body(()).unwrap();
    match then {
        ServerAction::Answer => {
            let mut stream = respond.send_response(head, false).unwrap();
            stream.send_data(COMPLETION.into(), true).unwrap();
        }
        ServerAction::Reset(reason) => respond.send_reset(reason),
        ServerAction::Begin(reason) => {
            let mut stream = respond.send_response(head, false).unwrap();
            settle().await;
            stream.send_reset(reason);
        }
        ServerAction::Hang | ServerAction::GoAway(_) => std::future::pending().await,
    }
}

/// Goes away as soon as a request comes, and hangs up when the client does.
async fn go_away(
    stream: &mut (impl AsyncReadExt + AsyncWriteExt + Unpin),
    seen: &ServerState,
    last: u32,
) {
    const PREFACE: usize = 24;
    const HEADERS: u8 = 1;
    stream.write_all(&[0, 0, 0, 4, 0, 0, 0, 0, 0]).await.unwrap();
    stream.flush().await.unwrap();
    stream.read_exact(&mut [0; PREFACE]).await.unwrap();
    loop {
        let mut head = [0; 9];
        stream.read_exact(&mut head).await.unwrap();
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
        stream.read_exact(&mut vec![0; usize::try_from(length).unwrap()]).await.unwrap();
        if head[3] == HEADERS {
            break;
        }
    }
    seen.arrived.lock().unwrap().push((0, "raw".to_owned(), 0));
    let mut frame = vec![0, 0, 8, 7, 0, 0, 0, 0, 0];
    frame.extend_from_slice(&last.to_be_bytes());
    frame.extend_from_slice(&[0; 4]);
    stream.write_all(&frame).await.unwrap();
    stream.shutdown().await.unwrap();
    drop(stream.read(&mut [0; 1]).await);
}

const LONG: Duration = Duration::from_secs(60);

#[tokio::test]
async fn calls_share_a_connection() {
    let server = Http2Server::start(&[ServerAction::Answer], 100).await;
    let client = server.client(LONG);
    let (one, two) = (call(request("hi")), call(request("there")));
    assert_eq!(run(&client, &one).await.usage(), Some((9, 3)));
    let (one, two) = tokio::join!(run(&client, &one), run(&client, &two));
    assert_eq!((one.usage(), two.usage()), (Some((9, 3)), Some((9, 3))));
    let arrived = server.arrived();
    assert_eq!((arrived.len(), server.connections()), (3, 1));
    let line = format!("POST https://localhost:{}/v1/chat/completions", server.address.port());
    assert!(arrived.iter().all(|(_, asked, length)| *asked == line && *length > 0), "{arrived:?}");
}

#[tokio::test]
async fn no_connection_has_more_calls_than_its_server_takes() {
    let server =
        Http2Server::start(&[ServerAction::Answer, ServerAction::Hang, ServerAction::Answer], 1)
            .await;
    let client = server.client(LONG);
    // From now on it is known how many it takes.
    run(&client, &call(request("first"))).await.outcome.unwrap();
    let asked = call(request("second"));
    let second = async {
        server.seen.requested.notified().await;
        server.seen.requested.notified().await;
        run(&client, &call(request("third"))).await
    };
    tokio::select! {
        ran = run(&client, &asked) => panic!("answered: {:?}", ran.outcome),
        third = second => assert_eq!(third.usage(), Some((9, 3))),
    }
    let connections: Vec<_> = server.arrived().iter().map(|(number, ..)| *number).collect();
    assert_eq!(connections, [1, 1, 2]);
}

#[tokio::test]
async fn a_dropped_call_leaves_the_connection_to_the_others() {
    let server = Http2Server::start(&[ServerAction::Hang, ServerAction::Answer], 100).await;
    let client = server.client(LONG);
    let asked = call(request("hi"));
    tokio::select! {
        ran = run(&client, &asked) => panic!("answered: {:?}", ran.outcome),
        () = server.seen.requested.notified() => {}
    }
    assert_eq!(run(&client, &asked).await.usage(), Some((9, 3)));
    assert_eq!((server.arrived().len(), server.connections()), (2, 1));
}

#[tokio::test]
async fn a_connection_that_idles_is_not_used_again() {
    let server = Http2Server::start(&[ServerAction::Answer], 100).await;
    let client = server.client(Duration::from_millis(50));
    run(&client, &call(request("hi"))).await.outcome.unwrap();
    tokio::time::pause();
    tokio::time::advance(Duration::from_millis(60)).await;
    tokio::time::resume();
    run(&client, &call(request("hi"))).await.outcome.unwrap();
    assert_eq!((server.arrived().len(), server.connections()), (2, 2));
}

/// One request arrives, and proves this.
async fn check(then: ServerAction, failure: CallFailure) {
    let server = Http2Server::start(&[then], 100).await;
    let ran = run(&server.client(LONG), &call(request("hi"))).await;
    assert_eq!((ran.outcome, ran.was_sent), (Err(failure), true));
    assert_eq!(server.arrived().len(), 1);
}

#[tokio::test]
async fn a_refused_stream_is_not_run() {
    check(ServerAction::Reset(Reason::REFUSED_STREAM), CONNECT).await;
}

#[tokio::test]
async fn a_stream_that_is_reset_otherwise_or_later_is_unknown() {
    check(ServerAction::Reset(Reason::INTERNAL_ERROR), BROKEN).await;
    check(ServerAction::Reset(Reason::CANCEL), BROKEN).await;
    check(ServerAction::Reset(Reason::ENHANCE_YOUR_CALM), BROKEN).await;
    check(ServerAction::Begin(Reason::INTERNAL_ERROR), BROKEN).await;
    check(ServerAction::Begin(Reason::REFUSED_STREAM), BROKEN).await;
}

#[tokio::test]
async fn a_server_that_goes_away_has_not_run_what_came_after_its_last_stream() {
    // The call is stream 1.
    check(ServerAction::GoAway(0), CONNECT).await;
}

#[tokio::test]
async fn a_server_that_goes_away_may_have_run_its_last_stream() {
    check(ServerAction::GoAway(1), BROKEN).await;
    check(ServerAction::GoAway((1 << 31) - 1), BROKEN).await;
}

#[tokio::test]
async fn a_server_that_does_not_choose_it_is_spoken_to_as_before() {
    let authority = Authority::new();
    let tls = authority.acceptor_of("localhost", &["http/1.1"]);
    let upstream = Upstream::start_tls(completion(), tls).await;
    let extra_roots = vec![authority.root()];
    let options = options(ServerOptions { extra_roots, ..server(&upstream.base_url()) });
    let ran = run(&HttpProvider::new(options).unwrap(), &call(request("hi"))).await;
    assert_eq!(ran.usage(), Some((9, 3)));
    assert!(upstream.arrived()[0].head.starts_with("POST /v1/chat/completions HTTP/1.1\r\n"));
}
