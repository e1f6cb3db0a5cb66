//! A balancer before several gateways, on a loopback socket: connections go round, past gateways that do not listen
//! or report not ready. A connection stays with the gateway at which it began.

use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::proxy::hand_on;
use crate::{PATIENCE, Request};

/// The balancer. Dropping it ends it.
#[derive(Debug)]
pub struct Balancer {
    shared: Arc<Mutex<State>>,
    address: SocketAddr,
}

#[derive(Debug, Default)]
struct State {
    gateways: Vec<SocketAddr>,
    /// Connections so far.
    count: usize,
    is_over: bool,
}

impl Balancer {
    /// A balancer before these gateways.
    #[must_use]
    pub fn before(gateways: &[SocketAddr]) -> Self {
        let anywhere = SocketAddr::from(([127, 0, 0, 1], 0));
        let listener = TcpListener::bind(anywhere).expect("a loopback address");
        let address = listener.local_addr().expect("an address");
        let shared = Arc::<Mutex<State>>::default();
        let accepting = Arc::clone(&shared);
        std::thread::spawn(move || {
            for client in listener.incoming() {
                let Some(gateways) = locked(&accepting).next_round() else { return };
                let Ok(client) = client else { continue };
                std::thread::spawn(move || serve(&client, gateways));
            }
        });
        let balancer = Self { shared, address };
        balancer.turn_to(gateways);
        balancer
    }

    /// New connections go to these from now on.
    pub fn turn_to(&self, gateways: &[SocketAddr]) {
        locked(&self.shared).gateways = gateways.to_vec();
    }

    /// Address on which it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl State {
    /// The gateways in the order in which the next connection tries them; `None` when it is over.
    fn next_round(&mut self) -> Option<Vec<SocketAddr>> {
        let mut gateways = self.gateways.clone();
        let turn = self.count.checked_rem(gateways.len()).unwrap_or(0);
        gateways.rotate_left(turn);
        self.count += 1;
        (!self.is_over).then_some(gateways)
    }
}

impl Drop for Balancer {
    fn drop(&mut self) {
        locked(&self.shared).is_over = true;
        // The next connection is the last: it finds that it is over.
        drop(TcpStream::connect(self.address));
    }
}

fn locked(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Hands a client to the first gateway that is ready; closes its connection if none is for as long as tests wait.
fn serve(client: &TcpStream, gateways: Vec<SocketAddr>) {
    let is_ready = |gateway: &SocketAddr| {
        Request::get("/readyz").try_send(*gateway).is_some_and(|answer| answer.status == 200)
    };
    let until = Instant::now() + PATIENCE;
    while Instant::now() < until {
        if let Some(gateway) = gateways.iter().copied().find(is_ready) {
            return hand_on(client, gateway, None, &|_bytes| {});
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}
