//! Calls through a proxy on a loopback socket: what it is told, what reaches the server, and what it
//! proves that it does not connect. Names end with `.test`, which nothing but the proxy knows.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use holdfast_domain::ports::{Call, CallFailure, NotRunProof, UnknownReason};
use holdfast_net::Proxies;
use holdfast_providers::{HttpProvider, ServerOptions};
use tokio::io::{AsyncReadExt, AsyncWriteExt, copy_bidirectional};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::task::JoinSet;

use crate::authority::Authority;
use crate::calls::{call, request, run};
use crate::openai::{completion, options, server};
use crate::upstream::{ScriptedReply, Upstream, answer};

const CONNECT: CallFailure = CallFailure::NotRun(NotRunProof::Connect);
/// `user:pass`.
const CREDENTIALS: &str = "Basic dXNlcjpwYXNz";

/// What the proxy says to whoever wants to be connected.
#[derive(Clone, Copy)]
enum Answer {
    /// Connects to the server, whatever its name is.
    Connect(SocketAddr),
    /// Says this and closes the connection.
    Say(&'static str),
    /// Says nothing.
    Nothing,
}

struct Proxy {
    address: SocketAddr,
    heads: Arc<Mutex<Vec<String>>>,
    _tasks: JoinSet<()>,
}

impl Proxy {
    async fn start(answer: Answer) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let heads = Arc::new(Mutex::default());
        let mut tasks = JoinSet::new();
        let told = Arc::clone(&heads);
        tasks.spawn(async move {
            let mut connections = JoinSet::new();
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                connections.spawn(serve(stream, answer, Arc::clone(&told)));
            }
        });
        Self { address, heads, _tasks: tasks }
    }

    /// What it was asked, one head for each connection.
    fn heads(&self) -> Vec<String> {
        self.heads.lock().unwrap().clone()
    }

    /// For everything, with these credentials in front.
    fn for_all(&self, credentials: &str) -> Proxies {
        let url = format!("http://{credentials}{}", self.address);
        Proxies::read(&|name| name.ends_with("s_proxy").then(|| url.clone())).unwrap()
    }
}

async fn serve(mut stream: TcpStream, answer: Answer, heads: Arc<Mutex<Vec<String>>>) {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        match stream.read_u8().await {
            Ok(byte) => head.push(byte),
            Err(_) => return,
        }
    }
    heads.lock().unwrap().push(String::from_utf8(head).unwrap());
    match answer {
        Answer::Connect(server) => {
            let mut server = TcpStream::connect(server).await.unwrap();
            stream.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n").await.unwrap();
            drop(copy_bidirectional(&mut stream, &mut server).await);
        }
        Answer::Say(text) => stream.write_all(text.as_bytes()).await.unwrap(),
        Answer::Nothing => drop(stream.read_u8().await),
    }
}

#[tokio::test]
async fn a_server_with_tls_is_reached_through_the_proxy_by_its_name() {
    let authority = Authority::new();
    let upstream = Upstream::start_tls(completion(), authority.acceptor("api.test")).await;
    let proxy = Proxy::start(Answer::Connect(upstream.address)).await;
    let client = HttpProvider::new(options(ServerOptions {
        extra_roots: vec![authority.root()],
        proxies: proxy.for_all("user:pass@"),
        ..server("https://api.test/v1")
    }));
    let client = client.unwrap();
    for _call in 0..2 {
        let ran = run(&client, &call(request("hi"))).await;
        assert_eq!(ran.usage(), Some((9, 3)));
    }
    let head = format!(
        "CONNECT api.test:443 HTTP/1.1\r\nhost: api.test:443\r\nproxy-authorization: {CREDENTIALS}\r\n\r\n"
    );
    // The second call has the connection of the first.
    assert_eq!(proxy.heads(), [head]);
    let arrived = upstream.arrived();
    assert!(arrived[0].head.starts_with("POST /v1/chat/completions HTTP/1.1\r\n"));
    assert!(arrived[0].head.contains("host: api.test\r\n"), "{}", arrived[0].head);
    assert!(!arrived[0].head.contains("proxy-"), "{}", arrived[0].head);
}

#[tokio::test]
async fn a_server_without_tls_is_asked_by_a_proxy_that_is_told_its_whole_address() {
    // The server stands where the proxy is said to be.
    let upstream = Upstream::start(completion()).await;
    let url = format!("http://user:pass@{}", upstream.address);
    let proxies = Proxies::read(&|name| (name == "http_proxy").then(|| url.clone())).unwrap();
    let options = options(ServerOptions { proxies, ..server("http://api.test:8080/v1") });
    let ran = run(&HttpProvider::new(options).unwrap(), &call(request("hi"))).await;
    assert_eq!(ran.usage(), Some((9, 3)));
    let head = &upstream.arrived()[0].head;
    let line = "POST http://api.test:8080/v1/chat/completions HTTP/1.1\r\n";
    assert!(head.starts_with(line), "{head}");
    assert!(head.contains("host: api.test:8080\r\n"), "{head}");
    assert!(head.contains(&format!("proxy-authorization: {CREDENTIALS}\r\n")), "{head}");
}

#[tokio::test]
async fn what_a_proxy_tells_in_the_place_of_a_server_proves_nothing() {
    for status in [401, 403, 429] {
        let upstream = Upstream::start(ScriptedReply::Send(answer(status, "{}"))).await;
        let url = format!("http://{}", upstream.address);
        let proxies = Proxies::read(&|name| (name == "http_proxy").then(|| url.clone())).unwrap();
        let options = options(ServerOptions { proxies, ..server("http://api.test:8080/v1") });
        let ran = run(&HttpProvider::new(options).unwrap(), &call(request("hi"))).await;
        assert_eq!(ran.outcome, Err(CallFailure::Unknown(UnknownReason::Status)), "{status}");
    }
}

#[tokio::test]
async fn a_proxy_that_does_not_connect_proves_that_nothing_ran() {
    for answer in [
        Answer::Say("HTTP/1.1 407 Proxy Authentication Required\r\ncontent-length: 2\r\n\r\nno"),
        Answer::Say("HTTP/1.1 502 Bad Gateway\r\n\r\n"),
        Answer::Say("HTTP/1.1 200 OK\r\n"),
        Answer::Say("SSH-2.0-OpenSSH_9.2\r\n\r\n"),
        Answer::Say(""),
        // What it then is, is no TLS.
        Answer::Say("HTTP/1.1 200 OK\r\n\r\n"),
        Answer::Nothing,
    ] {
        let proxy = Proxy::start(answer).await;
        let options =
            options(ServerOptions { proxies: proxy.for_all(""), ..server("https://api.test/v1") });
        let connect = match answer {
            Answer::Nothing => Duration::from_secs(2),
            Answer::Connect(_) | Answer::Say(_) => Duration::from_secs(20),
        };
        let asked = Call { connect, ..call(request("hi")) };
        let ran = run(&HttpProvider::new(options).unwrap(), &asked).await;
        assert_eq!((ran.outcome, ran.was_sent), (Err(CONNECT), false));
        assert_eq!(proxy.heads().len(), 1);
    }
}

#[tokio::test]
async fn a_proxy_that_is_not_there_proves_that_nothing_ran() {
    // Bound and not listening: the port stays this test's, and refuses.
    let gone = TcpSocket::new_v4().unwrap();
    gone.bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).unwrap();
    let url = format!("http://{}", gone.local_addr().unwrap());
    let proxies = Proxies::read(&|name| (name == "HTTPS_PROXY").then(|| url.clone())).unwrap();
    let options = options(ServerOptions { proxies, ..server("https://api.test/v1") });
    let ran = run(&HttpProvider::new(options).unwrap(), &call(request("hi"))).await;
    assert_eq!((ran.outcome, ran.was_sent), (Err(CONNECT), false));
}
