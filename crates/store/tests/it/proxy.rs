//! A server's socket with somebody in between, who cuts one connection at a moment that is named.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use holdfast_store::DatabaseUrl;
use sqlx::postgres::PgConnectOptions;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{UnixListener, UnixStream};
use tokio::task::JoinSet;

use crate::server::Database;

/// What a server calls its socket.
const SOCKET: &str = ".s.PGSQL.5432";

/// Where a connection is cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cut {
    /// The beginning of a transaction does not arrive.
    Begin,
    /// COMMIT does not arrive.
    Commit,
    /// COMMIT arrives, its answer does not.
    Answer,
}

pub(crate) struct Proxy {
    folder: TempDir,
    database: String,
    cut: Arc<Mutex<Option<Cut>>>,
    _accepting: JoinSet<()>,
}

impl Proxy {
    /// Stands in front of a database, and lets everything through at first.
    pub(crate) fn of(database: &Database) -> Self {
        let folder = TempDir::new().unwrap();
        let listener = UnixListener::bind(folder.path().join(SOCKET)).unwrap();
        let server: PgConnectOptions = database.url_text().parse().unwrap();
        let server = server.get_socket().unwrap().join(SOCKET);
        let cut = Arc::new(Mutex::new(None));
        let mut accepting = JoinSet::new();
        accepting.spawn(accept(listener, server, Arc::clone(&cut)));
        Self { folder, database: database.name.clone(), cut, _accepting: accepting }
    }

    pub(crate) fn url(&self) -> DatabaseUrl {
        let folder = self.folder.path().display();
        let url = format!("postgres://holdfast@localhost/{}?host={folder}", self.database);
        DatabaseUrl::parse(&url).unwrap()
    }

    /// Cuts the next connection that comes to it, and no other.
    pub(crate) fn cut(&self, at: Cut) {
        *self.cut.lock().unwrap() = Some(at);
    }

    /// Whether that has happened.
    pub(crate) fn has_cut(&self) -> bool {
        self.cut.lock().unwrap().is_none()
    }
}

async fn accept(listener: UnixListener, server: PathBuf, cut: Arc<Mutex<Option<Cut>>>) {
    let mut passing = JoinSet::new();
    loop {
        let (client, _) = listener.accept().await.unwrap();
        let server = UnixStream::connect(&server).await.unwrap();
        passing.spawn(pass(client, server, Arc::clone(&cut)));
    }
}

/// Passes bytes on until one side hangs up, or the cut.
async fn pass(mut client: UnixStream, mut server: UnixStream, cut: Arc<Mutex<Option<Cut>>>) {
    let (mut asked, mut told) = (Vec::new(), Vec::new());
    loop {
        tokio::select! {
            read = client.read_buf(&mut asked) => {
                let at = next_cut(&asked, &mut cut.lock().unwrap());
                if !matches!(read, Ok(1..)) || matches!(at, Some(Cut::Begin | Cut::Commit)) {
                    return;
                }
                if server.write_all(&asked).await.is_err() {
                    return;
                }
                asked.clear();
                if at == Some(Cut::Answer) {
                    // It has answered, so it is done.
                    assert!(server.read_buf(&mut told).await.unwrap() > 0);
                    return;
                }
            }
            read = server.read_buf(&mut told) => {
                if !matches!(read, Ok(1..)) || client.write_all(&told).await.is_err() {
                    return;
                }
                told.clear();
            }
        }
    }
}

/// Whether this is to be cut; it is then not cut again.
fn next_cut(bytes: &[u8], cut: &mut Option<Cut>) -> Option<Cut> {
    let says = |text: &[u8]| bytes.windows(text.len()).any(|part| part == text);
    let text: &[u8] = match (*cut)? {
        Cut::Begin => b"BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE\0",
        Cut::Commit | Cut::Answer => b"COMMIT\0",
    };
    if says(text) { cut.take() } else { None }
}
