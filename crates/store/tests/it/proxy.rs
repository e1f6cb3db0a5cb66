//! A server's socket with somebody in between, who cuts one connection at a moment that is named, or
//! lets connections fall silent without an end.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard};

use holdfast_store::DatabaseUrl;
use sqlx::postgres::PgConnectOptions;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{UnixListener, UnixStream};
use tokio::task::JoinSet;

use crate::server::Database;

/// What a server calls its socket.
const SOCKET: &str = ".s.PGSQL.5432";

/// More than is sent at once.
const ROOM: usize = 1 << 16;

/// How long a client's first message is where it asks for TLS before it says who it is.
const ASKS_FOR_TLS: usize = 8;

/// Where a connection is cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cut {
    /// The beginning of a transaction does not arrive.
    Begin,
    /// The lock of the audit log's head, of a command of administration, does not arrive.
    Head,
    /// COMMIT does not arrive.
    Commit,
    /// COMMIT arrives, its answer does not.
    Answer,
}

pub(crate) struct Proxy {
    folder: TempDir,
    database: String,
    state: Arc<Mutex<State>>,
    _accepting: JoinSet<()>,
}

#[derive(Debug, Default)]
struct State {
    cut: Option<Cut>,
    /// Connections that came, and how many of the first of them say nothing any more.
    came: usize,
    silent: usize,
    /// How often somebody asked, and how often before the answer to what was asked before.
    asked: usize,
    hurried: usize,
}

impl Proxy {
    /// Stands in front of a database, and lets everything through at first.
    pub(crate) fn of(database: &Database) -> Self {
        Self::start(database, accept)
    }

    /// Has all who come share one session, as a pooler does between transactions.
    pub(crate) fn sharing(database: &Database) -> Self {
        Self::start(database, share)
    }

    fn start<F: Future<Output = ()> + Send + 'static>(
        database: &Database,
        accept: fn(UnixListener, PathBuf, Arc<Mutex<State>>) -> F,
    ) -> Self {
        let folder = TempDir::new().unwrap();
        let listener = UnixListener::bind(folder.path().join(SOCKET)).unwrap();
        let server: PgConnectOptions = database.url_text().parse().unwrap();
        let server = server.get_socket().unwrap().join(SOCKET);
        let state = Arc::default();
        let mut accepting = JoinSet::new();
        accepting.spawn(accept(listener, server, Arc::clone(&state)));
        Self { folder, database: database.name.clone(), state, _accepting: accepting }
    }

    pub(crate) fn url(&self) -> DatabaseUrl {
        let folder = self.folder.path().display();
        let url = format!("postgres://holdfast@localhost/{}?host={folder}", self.database);
        DatabaseUrl::parse(&url).unwrap()
    }

    /// Cuts the next connection that comes to it, and no other.
    pub(crate) fn cut(&self, at: Cut) {
        self.state().cut = Some(at);
    }

    /// Whether that has happened.
    pub(crate) fn has_cut(&self) -> bool {
        self.state().cut.is_none()
    }

    /// From now on the connections that there are hand nothing on and do not end, as where a network
    /// has forgotten them.
    pub(crate) fn silence(&self) {
        let mut state = self.state();
        state.silent = state.came;
    }

    /// So does the next one that comes, too.
    pub(crate) fn silence_next(&self) {
        let mut state = self.state();
        state.silent = state.came + 1;
    }

    /// So do all that come.
    pub(crate) fn silence_for_good(&self) {
        self.state().silent = usize::MAX;
    }

    /// How often something was asked, and how often before the answer to what was asked before: a network
    /// holds such a packet back until the one before it is acknowledged.
    pub(crate) fn asked(&self) -> (usize, usize) {
        let state = self.state();
        (state.asked, state.hurried)
    }

    /// How many connections came.
    pub(crate) fn came(&self) -> usize {
        self.state().came
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }
}

async fn accept(listener: UnixListener, server: PathBuf, state: Arc<Mutex<State>>) {
    let mut passing = JoinSet::new();
    loop {
        let (client, _) = listener.accept().await.unwrap();
        let server = UnixStream::connect(&server).await.unwrap();
        let number = state.lock().unwrap().came;
        state.lock().unwrap().came += 1;
        passing.spawn(pass(client, server, number, Arc::clone(&state)));
    }
}

/// Passes bytes on until one side hangs up, or the cut.
async fn pass(
    mut client: UnixStream,
    mut server: UnixStream,
    number: usize,
    state: Arc<Mutex<State>>,
) {
    let (mut asked, mut told) = (Vec::with_capacity(ROOM), Vec::with_capacity(ROOM));
    let mut is_waiting = false;
    loop {
        let is_asked = tokio::select! {
            read = client.read_buf(&mut asked) => matches!(read, Ok(1..)).then_some(true),
            read = server.read_buf(&mut told) => matches!(read, Ok(1..)).then_some(false),
        };
        if number < state.lock().unwrap().silent {
            return swallow(client).await;
        }
        let Some(is_asked) = is_asked else { return };
        if is_asked {
            let mut state = state.lock().unwrap();
            state.asked += 1;
            state.hurried += usize::from(is_waiting);
        }
        is_waiting = is_asked;
        if !is_asked {
            if client.write_all(&told).await.is_err() {
                return;
            }
            told.clear();
            continue;
        }
        let at = next_cut(&asked, &mut state.lock().unwrap().cut);
        if matches!(at, Some(Cut::Begin | Cut::Head | Cut::Commit))
            || server.write_all(&asked).await.is_err()
        {
            return;
        }
        asked.clear();
        if at == Some(Cut::Answer) {
            // It has answered, so it is done.
            assert!(server.read_buf(&mut told).await.unwrap() > 0);
            return;
        }
    }
}

/// Hears all and says nothing, until the client has had enough.
async fn swallow(mut client: UnixStream) {
    let mut asked = Vec::new();
    while matches!(client.read_buf(&mut asked).await, Ok(1..)) {
        asked.clear();
    }
}

/// The one session, and what it was greeted with.
#[derive(Default)]
struct Session(Option<(UnixStream, Vec<u8>)>);

async fn share(listener: UnixListener, server: PathBuf, _state: Arc<Mutex<State>>) {
    let session = Arc::<tokio::sync::Mutex<Session>>::default();
    let mut passing = JoinSet::new();
    loop {
        let (client, _) = listener.accept().await.unwrap();
        passing.spawn(take_turns(client, server.clone(), Arc::clone(&session)));
    }
}

/// Whoever asks has the session until it is answered. Transactions are not kept together.
async fn take_turns(
    mut client: UnixStream,
    server: PathBuf,
    session: Arc<tokio::sync::Mutex<Session>>,
) {
    let mut asked = Vec::with_capacity(ROOM);
    let mut is_new = true;
    while matches!(client.read_buf(&mut asked).await, Ok(1..)) && !asked.starts_with(b"X") {
        if is_new && asked.len() == ASKS_FOR_TLS {
            client.write_all(b"N").await.unwrap();
            asked.clear();
            continue;
        }
        let mut session = session.lock().await;
        let told = match &mut session.0 {
            Some((_, greeting)) if is_new => greeting.clone(),
            Some((server, _)) => ask(server, &asked).await,
            None => {
                let mut server = UnixStream::connect(&server).await.unwrap();
                let greeting = ask(&mut server, &asked).await;
                session.0 = Some((server, greeting.clone()));
                greeting
            }
        };
        if client.write_all(&told).await.is_err() {
            return;
        }
        is_new = false;
        asked.clear();
    }
}

/// Asks, and hears until the server is ready to be asked again.
async fn ask(server: &mut UnixStream, asked: &[u8]) -> Vec<u8> {
    const READY: &[u8] = b"Z\0\0\0\x05";
    server.write_all(asked).await.unwrap();
    let mut told = Vec::with_capacity(ROOM);
    while told.len() < 6 || told[told.len() - 6..told.len() - 1] != *READY {
        assert!(server.read_buf(&mut told).await.unwrap() > 0);
    }
    told
}

/// Whether this is to be cut; it is then not cut again.
fn next_cut(bytes: &[u8], cut: &mut Option<Cut>) -> Option<Cut> {
    let says = |text: &[u8]| bytes.windows(text.len()).any(|part| part == text);
    let text: &[u8] = match (*cut)? {
        Cut::Begin => b"BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE; SELECT ",
        Cut::Head => b"FROM audit_head AS h WHERE h.id = 1 FOR NO KEY UPDATE",
        Cut::Commit | Cut::Answer => b"COMMIT\0",
    };
    if says(text) { cut.take() } else { None }
}
