//! The line between gateways and a database server: an address that stays while the server behind it is another
//! one, and that breaks a COMMIT in the middle on request.

use std::collections::VecDeque;
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// End of the text of a statement that commits.
const COMMIT: &[u8] = b"COMMIT\0";

/// Place at which a connection that commits breaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cut {
    /// The server does not receive the COMMIT.
    Before,
    /// The server receives half of it.
    Within,
    /// The server has committed, and its client gets no answer.
    After,
}

/// The line. Dropping it ends it.
#[derive(Debug)]
pub struct Line {
    shared: Arc<SharedState>,
    address: SocketAddr,
}

#[derive(Debug)]
struct SharedState(Mutex<State>);

#[derive(Debug)]
struct State {
    to: PathBuf,
    cuts: VecDeque<Cut>,
    /// Number of connections that were cut.
    n_cut: usize,
    is_over: bool,
}

impl SharedState {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Place at which to break this one, if any.
    fn cut(&self) -> Option<Cut> {
        let mut state = self.state();
        let cut = state.cuts.pop_front();
        state.n_cut += usize::from(cut.is_some());
        cut
    }
}

impl Line {
    /// A line to the server at this socket.
    #[must_use]
    pub fn to(socket: PathBuf) -> Self {
        let listener = TcpListener::bind(SocketAddr::from(([127, 0, 0, 1], 0)));
        let listener = listener.expect("a loopback address");
        let address = listener.local_addr().expect("an address");
        let state = State { to: socket, cuts: VecDeque::new(), n_cut: 0, is_over: false };
        let shared = Arc::new(SharedState(Mutex::new(state)));
        let accepting = Arc::clone(&shared);
        std::thread::spawn(move || {
            for client in listener.incoming() {
                if accepting.state().is_over {
                    return;
                }
                let Ok(client) = client else { continue };
                let shared = Arc::clone(&accepting);
                std::thread::spawn(move || hand_on(&client, &shared));
            }
        });
        Self { shared, address }
    }

    /// Connections from now on lead to this socket.
    pub fn lead_to(&self, socket: PathBuf) {
        self.shared.state().to = socket;
    }

    /// The next COMMITs break so.
    pub fn cut_next(&self, cuts: impl IntoIterator<Item = Cut>) {
        self.shared.state().cuts.extend(cuts);
    }

    /// Number of cuts so far.
    #[must_use]
    pub fn n_cut(&self) -> usize {
        self.shared.state().n_cut
    }

    /// Forgets what was still to be cut.
    pub fn cut_no_more(&self) {
        self.shared.state().cuts.clear();
    }

    /// The URL of the server, without a database.
    #[must_use]
    pub fn url(&self) -> String {
        format!("postgres://holdfast@{}", self.address)
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        self.shared.state().is_over = true;
        // The next connection is the last: it finds that it is over.
        drop(TcpStream::connect(self.address));
    }
}

/// Hands on in both directions until one side ends or the line is cut.
fn hand_on(client: &TcpStream, shared: &SharedState) {
    let to = shared.state().to.clone();
    // The server may be gone.
    let Ok(server) = UnixStream::connect(to) else { return };
    client.set_nodelay(true).expect("a socket");
    let is_cut = AtomicBool::new(false);
    // Either side may have ended first.
    let end = || {
        drop(client.shutdown(Shutdown::Both));
        drop(server.shutdown(Shutdown::Both));
    };
    std::thread::scope(|scope| {
        scope.spawn(|| {
            tell(client, &server, shared, &is_cut);
            end();
        });
        answer(&server, client, &is_cut);
        end();
    });
}

/// Copies the clients' bytes.
fn tell(
    mut client: &TcpStream,
    mut server: &UnixStream,
    shared: &SharedState,
    is_cut: &AtomicBool,
) {
    let mut bytes = [0; 16_384];
    loop {
        let Ok(read) = client.read(&mut bytes) else { return };
        let said = &bytes[..read];
        let at = said.windows(COMMIT.len()).position(|window| window == COMMIT);
        let said = match at.and_then(|at| Some((at, shared.cut()?))) {
            Some((_at, Cut::Before)) => return,
            Some((at, Cut::Within)) => {
                // The server is alone with that when the connection ends.
                drop(server.write_all(&said[..at]));
                return;
            }
            Some((_at, Cut::After)) => {
                is_cut.store(true, Ordering::Release);
                said
            }
            None => said,
        };
        if said.is_empty() || server.write_all(said).is_err() {
            return;
        }
    }
}

/// Copies the server's answer, unless it is cut.
fn answer(mut server: &UnixStream, mut client: &TcpStream, is_cut: &AtomicBool) {
    let mut bytes = [0; 16_384];
    loop {
        let Ok(read) = server.read(&mut bytes) else { return };
        if read == 0 || is_cut.load(Ordering::Acquire) || client.write_all(&bytes[..read]).is_err()
        {
            return;
        }
    }
}
