//! An anchor: what it costs to take a request in and hand it on with the same HTTP library, when
//! nothing is parsed, checked or kept.

use std::net::SocketAddr;

use hyper::body::Incoming;
use hyper::header::HOST;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response, Uri};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::TcpListener;
use tokio::runtime::Builder;
use tokio::task::JoinSet;

use crate::{LISTENS, say};

type Upstream = Client<HttpConnector, Incoming>;

/// The address that the arguments name for requests; nothing when they are wrong.
#[must_use]
pub fn parse(arguments: &[String]) -> Option<SocketAddr> {
    match arguments {
        [option, address] if option == "--to" => address.parse().ok(),
        _ => None,
    }
}

/// Serves until the process is ended.
pub fn run(to: SocketAddr) {
    // As the gateway has it: as many threads as it may use cores.
    let runtime = Builder::new_multi_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async move {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        say(&format!("{LISTENS}{}", listener.local_addr().expect("an address")));
        let mut connector = HttpConnector::new();
        connector.set_nodelay(true);
        let upstream: Upstream = Client::builder(TokioExecutor::new()).build(connector);
        let mut connections = JoinSet::new();
        loop {
            let (stream, _peer) = listener.accept().await.expect("a connection");
            stream.set_nodelay(true).expect("a socket");
            let upstream = upstream.clone();
            connections.spawn(async move {
                let service = service_fn(move |request| hand_on(request, upstream.clone(), to));
                // A client that goes away ends its connection, and that is all.
                drop(http1::Builder::new().serve_connection(TokioIo::new(stream), service).await);
            });
        }
    });
}

async fn hand_on(
    mut request: Request<Incoming>,
    upstream: Upstream,
    to: SocketAddr,
) -> Result<Response<Incoming>, hyper_util::client::legacy::Error> {
    let path = request.uri().path_and_query().map_or("/", |it| it.as_str());
    let uri = Uri::builder().scheme("http").authority(to.to_string()).path_and_query(path);
    *request.uri_mut() = uri.build().expect("a path of a request is a path");
    request.headers_mut().remove(HOST);
    upstream.request(request).await
}
