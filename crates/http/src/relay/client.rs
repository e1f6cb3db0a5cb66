//! The client of node listeners: a connection of its own for each relay, and never a proxy, even if the
//! environment names one, because addresses of nodes are those of a private network.

use std::time::Duration;

use bytes::Bytes;
use futures_util::stream;
use futures_util::{FutureExt, StreamExt};
use holdfast_domain::NodeAddress;
use holdfast_domain::ports::{Cause, Unavailable};
use holdfast_engine::{RelayAnswer, RelayFuture, RelayRequest, RelayTransport};
use http::header::HOST;
use http::{Request, StatusCode};
use http_body_util::{BodyExt, Empty};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::{CLAIM, NONCE, PROOF, TAPE, header};

/// Timeout to reach another node and get its head: no caller waits only for this answer.
const ANSWER: Duration = Duration::from_secs(3);
/// The most that is read of a relay ahead of its reader.
const READ_AHEAD: usize = 32 << 10;

/// Reaches other nodes by their addresses.
#[derive(Debug, Clone, Copy, Default)]
pub struct DirectTransport;

impl RelayTransport for DirectTransport {
    fn send(&self, address: NodeAddress, request: RelayRequest) -> RelayFuture {
        let answer = async move {
            let answered = timeout(ANSWER, send(&address, &request)).await;
            answered.unwrap_or_else(|elapsed| Err(elapsed.into())).map_err(Unavailable)
        };
        answer.boxed()
    }
}

async fn send(address: &NodeAddress, request: &RelayRequest) -> Result<Option<RelayAnswer>, Cause> {
    let socket = TcpStream::connect(address.as_str()).await?;
    // A record may be one piece of a stream that a caller reads: never held back for a fuller packet.
    socket.set_nodelay(true)?;
    let mut client = http1::Builder::new();
    let client = client.max_buf_size(READ_AHEAD).handshake(TokioIo::new(socket));
    let (mut sender, connection) = client.await?;
    // It ends with the relay that it is for.
    let mut connections = JoinSet::new();
    connections.spawn(connection);
    let RelayRequest { operation, claim, nonce, proof } = request;
    let http_request = Request::get(format!("{TAPE}{operation}"))
        .header(HOST, address.as_str())
        .header(CLAIM, claim.to_string())
        .header(NONCE, nonce.to_string())
        .header(PROOF, proof.to_string())
        .body(Empty::<Bytes>::new())?;
    let answer = sender.send_request(http_request).await?;
    // Every refusal is a 404: no relay, and the caller is answered from the row instead.
    if answer.status() != StatusCode::OK {
        return Ok(None);
    }
    let Some(nonce) = header(answer.headers(), &NONCE) else { return Ok(None) };
    let records =
        stream::unfold((answer.into_body(), connections), |(mut body, connections)| async {
            next(&mut body).await.map(|bytes| (bytes, (body, connections)))
        });
    Ok(Some(RelayAnswer { nonce, records: records.boxed() }))
}

/// The next bytes of a body; `None` at its end, whether it is whole or not.
async fn next(body: &mut Incoming) -> Option<Bytes> {
    loop {
        if let Ok(bytes) = body.frame().await?.ok()?.into_data() {
            return Some(bytes);
        }
    }
}
