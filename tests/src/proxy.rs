//! A proxy between clients and a gateway, on a loopback socket: it hands bytes on as they come, and resets chosen
//! connections in the middle of the gateway's answer.

use std::collections::VecDeque;
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::PATIENCE;

/// The proxy. Dropping it ends it.
#[derive(Debug)]
pub struct Proxy {
    shared: Arc<SharedState>,
    address: SocketAddr,
}

#[derive(Debug, Default)]
struct SharedState {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// Target of connections; none yet, if it was started before its gateway.
    to: Option<SocketAddr>,
    /// After how many bytes of answers the next connections break.
    cuts: VecDeque<usize>,
    /// Bytes of answers that each connection has had, in the order in which they came.
    told: Vec<usize>,
    is_over: bool,
}

impl SharedState {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Proxy {
    /// A proxy before this address.
    #[must_use]
    pub fn start(to: SocketAddr) -> Self {
        let proxy = Self::ahead();
        proxy.turn_to(to);
        proxy
    }

    /// A proxy without a target yet: for a gateway that has to know its address.
    #[must_use]
    pub fn ahead() -> Self {
        let anywhere = SocketAddr::from(([127, 0, 0, 1], 0));
        let listener = TcpListener::bind(anywhere).expect("a loopback address");
        let address = listener.local_addr().expect("an address");
        let shared = Arc::<SharedState>::default();
        let accepting = Arc::clone(&shared);
        std::thread::spawn(move || {
            for client in listener.incoming() {
                if accepting.state().is_over {
                    return;
                }
                let Ok(client) = client else { continue };
                let shared = Arc::clone(&accepting);
                let (at, cut, to) = {
                    let mut state = shared.state();
                    state.told.push(0);
                    (state.told.len() - 1, state.cuts.pop_front(), state.to)
                };
                let Some(to) = to else { continue };
                std::thread::spawn(move || {
                    hand_on(&client, to, cut, &|bytes| shared.told(at, bytes));
                });
            }
        });
        Self { shared, address }
    }

    /// New connections go here from now on.
    pub fn turn_to(&self, to: SocketAddr) {
        self.shared.state().to = Some(to);
    }

    /// Each of the next connections is reset after so many bytes of its answer; later ones are not.
    pub fn cut_next(&self, cuts: &[usize]) {
        self.shared.state().cuts.extend(cuts);
    }

    /// Address on which it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Bytes of answers that each connection has had so far.
    #[must_use]
    pub fn told(&self) -> Vec<usize> {
        self.shared.state().told.clone()
    }

    /// Waits until this connection, counted from zero, has received so many bytes.
    pub fn wait_for(&self, connection: usize, bytes: usize) {
        let until = Instant::now() + PATIENCE;
        let mut state = self.shared.state();
        while state.told.get(connection).is_none_or(|told| *told < bytes) {
            let left = until.saturating_duration_since(Instant::now());
            assert!(!left.is_zero(), "connection {connection} was told too little: {state:?}");
            let waited = self.shared.changed.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

impl SharedState {
    fn told(&self, connection: usize, bytes: usize) {
        self.state().told[connection] += bytes;
        self.changed.notify_all();
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.shared.state().is_over = true;
        // The next connection is the last: it finds that it is over.
        drop(TcpStream::connect(self.address));
    }
}

/// Hands on in both directions until one side ends, or until the client has had as much as it may.
pub(crate) fn hand_on(
    client: &TcpStream,
    to: SocketAddr,
    cut: Option<usize>,
    told: &dyn Fn(usize),
) {
    // The gateway may be gone.
    let Ok(server) = TcpStream::connect(to) else { return };
    for socket in [client, &server] {
        socket.set_nodelay(true).expect("a socket");
    }
    std::thread::scope(|scope| {
        scope.spawn(|| {
            copy(client, &server, None, &|_bytes| {});
            drop(server.shutdown(Shutdown::Write));
        });
        if copy(&server, client, cut, told) {
            drop(client.shutdown(Shutdown::Write));
        } else {
            let socket = socket2::SockRef::from(client);
            socket.set_linger(Some(Duration::ZERO)).expect("a socket");
            // The other thread has no more to read, which the client does not see.
            drop(client.shutdown(Shutdown::Read));
            drop(server.shutdown(Shutdown::Both));
        }
    });
}

/// Copies bytes; true if the source came to its own end and not to the cut.
fn copy(
    mut from: &TcpStream,
    mut to: &TcpStream,
    cut: Option<usize>,
    told: &dyn Fn(usize),
) -> bool {
    let mut left = cut.unwrap_or(usize::MAX);
    let mut bytes = [0; 16_384];
    while left > 0 {
        let Ok(read) = from.read(&mut bytes) else { return true };
        let read = read.min(left);
        if read == 0 {
            return true;
        }
        // Before the receiver can react.
        told(read);
        if to.write_all(&bytes[..read]).is_err() {
            return true;
        }
        left -= read;
    }
    false
}
