//! Journal of a sidecar: a SQLite file that remembers which key each slot has, so that a sidecar which was
//! killed repeats requests under the same keys.
//!
//! ```text
//! call ─▶ put ─▶ queue ─▶ writer thread ─▶ one transaction for all that has come ─▶ answer
//! end  ─▶ note ─▶ queue ─┘ (no call waits for it; it waits at most `LATE` for others)
//! ```
//!
//! Rows are in the order of their slots' births, so that those of one transaction are neighbours: by
//! their keys, which are random, each would be on a page of its own.
//!
//! A row has the key, a keyed digest of the call, its stage and two moments: no prompt, no answer, no
//! credential. The file is readable only by its owner (0600), belongs to the process's own user (`owner`), and
//! one process has it at a time. A row is committed before a byte of its call goes out; a kill does not lose
//! it, and if every commit is synced (`is_synced`) a loss of power does not either. Ends are written late: a lost
//! one replays once.
//!
//! A transaction that fails is reported to each caller that waits for a row of it. Its ends go into the next
//! one.

mod file;
mod owner;
mod queue;

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{io, thread};

use rusqlite::{Connection, ErrorCode, OpenFlags, Transaction, params};
use tokio::sync::oneshot;
use uuid::Uuid;

pub(crate) use crate::journal::file::JournalFile;
pub use crate::journal::file::LostJournal;
use crate::journal::queue::{ChangeReceiver, ChangeSender, Entry};
use crate::table::{BodyDigest, Moment, Record, Stage, TableChange};

/// Distinguishes a journal from any other SQLite file: `HFsc`.
const APPLICATION: i32 = 0x4846_7363;
/// Version of the table below.
const VERSION: i32 = 2;

const TABLE: &str = "\
CREATE TABLE slots (
    key BLOB NOT NULL CHECK (length(key) = 16),
    body BLOB NOT NULL CHECK (length(body) = 32),
    stage INTEGER NOT NULL CHECK (stage BETWEEN 0 AND 2),
    born INTEGER NOT NULL,
    seen INTEGER NOT NULL,
    PRIMARY KEY (born, key)
) STRICT, WITHOUT ROWID";

/// The longest that the end of the process waits for the last ends.
const CLOSE: Duration = Duration::from_secs(5);

/// Reason for which a journal cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum BadJournal {
    /// Another process has it.
    #[error("{0} is another sidecar's: one journal is for one sidecar at a time")]
    Taken(PathBuf),
    /// A file of another program, or of another version.
    #[error("{0} is no journal of this version of the sidecar: name another file")]
    Foreign(PathBuf),
    /// A file with several names, each of which would have a log of its own.
    #[error("{0} has a second name (a hard link): name another file, or remove one of the names")]
    Linked(PathBuf),
    /// A symbolic link in the place of the file.
    #[error("{0} is a symbolic link: name the file itself")]
    Link(PathBuf),
    /// A file that belongs to another user, or is not a file.
    #[error("{0} is not a file of the sidecar's own user: name another file")]
    ForeignOwner(PathBuf),
    /// A folder in which others may replace the file.
    #[error(
        "{0} is a folder of another user, or one that everybody may write: keep the journal in a folder of its own"
    )]
    OpenFolder(PathBuf),
    /// Another file took the place of the one that was opened.
    #[error("{0} was replaced while it was opened: start the sidecar again")]
    Replaced(PathBuf),
    /// A file that cannot be made, or whose permissions cannot be set.
    #[error("{0} cannot be made, or kept from others")]
    File(PathBuf, #[source] io::Error),
    /// A file that cannot be read or written.
    #[error("{0} cannot be read or written")]
    Database(PathBuf, #[source] rusqlite::Error),
}

/// Handle of the journal; without a file it remembers no row.
#[derive(Debug)]
pub(crate) struct Journal(Option<OpenJournal>);

#[derive(Debug)]
struct OpenJournal {
    changes: ChangeSender,
    /// Completed by the writer at its end.
    ended: oneshot::Receiver<()>,
    file: JournalFile,
}

/// Row on its way into the journal; the row is written even if the receipt is dropped.
#[derive(Debug)]
#[must_use = "no byte of a call goes out before its row is kept"]
pub(crate) struct RowReceipt(Option<oneshot::Receiver<()>>);

/// The writer could not commit a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the journal was not written")]
pub(crate) struct NotWritten;

impl Journal {
    /// A journal that remembers no row.
    pub(crate) const fn none() -> Self {
        Self(None)
    }

    /// Opens or makes the file, and reads what it has.
    pub(crate) fn open(path: &Path, is_synced: bool) -> Result<(Self, Vec<Record>), BadJournal> {
        let (connection, records) = prepare(path, is_synced)?;
        let of_file = |error| BadJournal::File(path.to_owned(), error);
        let file = JournalFile::open_at(path).map_err(of_file)?;
        let written = file.clone();
        let (changes, receiver) = queue::queue();
        let (end, ended) = oneshot::channel();
        // A thread of its own: a commit blocks on the disk, and one writer keeps the order of the changes.
        let spawned = thread::Builder::new().name("journal".to_owned()).spawn(move || {
            write_all(connection, &receiver, &written);
            if end.send(()).is_err() {
                tracing::debug!("the journal's writer has ended after the process did");
            }
        });
        drop(spawned.map_err(of_file)?);
        Ok((Self(Some(OpenJournal { changes, ended, file })), records))
    }

    /// A journal on a disk that hangs: its queue is full, and the receiver never takes.
    #[cfg(test)]
    pub(crate) fn hanging() -> (Self, impl Sized) {
        let ((changes, receiver), (end, ended)) = (queue::queue(), oneshot::channel());
        let journal = Self(Some(OpenJournal { changes, ended, file: JournalFile::none() }));
        for number in 0..=queue::ROWS_MAX {
            let key = Uuid::from_u128(u128::try_from(number).unwrap());
            journal.note(TableChange::Remove { key, born: Moment(1) });
        }
        (journal, (receiver, end))
    }

    /// Has a row written at once.
    pub(crate) fn put(&self, record: Record) -> RowReceipt {
        RowReceipt(self.0.as_ref().map(|open| {
            let (written, answer) = oneshot::channel();
            let entry = Entry { change: TableChange::Put(record), written: Some(written) };
            if let Err(error) = open.changes.push(entry) {
                tracing::warn!(%error, "the journal's writer has ended");
            }
            answer
        }))
    }

    /// Has a change written soon.
    pub(crate) fn note(&self, change: TableChange) {
        if let Some(open) = &self.0
            && let Err(error) = open.changes.push(Entry { change, written: None })
        {
            tracing::warn!(%error, "the journal's writer has ended");
        }
    }

    /// The file, if there is one.
    pub(crate) fn file(&self) -> Option<JournalFile> {
        self.0.as_ref().map(|open| open.file.clone())
    }

    /// Writes what waits, and ends the writer. A disk that hangs is not waited for.
    pub(crate) async fn close(self) {
        let Some(OpenJournal { changes, ended, .. }) = self.0 else { return };
        // The writer ends once its sender is gone, after the changes that wait.
        drop(changes);
        match tokio::time::timeout(CLOSE, ended).await {
            Ok(Ok(())) => {}
            Ok(Err(_dropped)) => tracing::warn!("the journal's writer has failed"),
            Err(_elapsed) => tracing::warn!("the journal's last ends were not written in time"),
        }
    }
}

impl RowReceipt {
    /// Waits until the row is kept.
    pub(crate) async fn kept(self) -> Result<(), NotWritten> {
        match self.0 {
            // The log has the reason: the code that dropped the entry has logged it.
            Some(answer) => answer.await.map_err(|_dropped| NotWritten),
            None => Ok(()),
        }
    }
}

fn prepare(path: &Path, is_synced: bool) -> Result<(Connection, Vec<Record>), BadJournal> {
    let of_file = |error| BadJournal::File(path.to_owned(), error);
    let of_database = |error: rusqlite::Error| match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
            BadJournal::Taken(path.to_owned())
        }
        Some(ErrorCode::NotADatabase) => BadJournal::Foreign(path.to_owned()),
        Some(_) | None => BadJournal::Database(path.to_owned(), error),
    };
    let opened = owner::open(path)?;
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NOFOLLOW;
    let mut connection = Connection::open_with_flags(&opened.path, flags).map_err(of_database)?;
    // SQLite opens by name: the name must still be that of the file that was judged.
    opened.check_name()?;
    // No wait: another sidecar keeps its lock until it ends, so that a wait only delays the error.
    connection.busy_timeout(Duration::ZERO).map_err(of_database)?;
    // Set before the first read, so that the lock is taken once and kept until the process ends.
    connection.pragma_update(None, "locking_mode", "EXCLUSIVE").map_err(of_database)?;
    let mode = if is_synced { "FULL" } else { "NORMAL" };
    connection.pragma_update(None, "synchronous", mode).map_err(of_database)?;
    let begun = connection.transaction_with_behavior(rusqlite::TransactionBehavior::Exclusive);
    let transaction = begun.map_err(of_database)?;
    if !is_ours(&transaction).map_err(of_database)? {
        return Err(BadJournal::Foreign(path.to_owned()));
    }
    transaction.commit().map_err(of_database)?;
    // Only now: the mode of a file of another program must not be changed.
    std::fs::set_permissions(&opened.path, PermissionsExt::from_mode(0o600)).map_err(of_file)?;
    connection
        .pragma_update_and_check(None, "journal_mode", "WAL", |_mode| Ok(()))
        .map_err(of_database)?;
    let records = read(&connection).map_err(of_database)?;
    Ok((connection, records))
}

/// True if the file is a journal of this version; an empty one becomes it.
fn is_ours(transaction: &Transaction<'_>) -> rusqlite::Result<bool> {
    let number =
        |name: &str| transaction.pragma_query_value(None, name, |row| row.get::<_, i32>(0));
    let (application, version) = (number("application_id")?, number("user_version")?);
    let count = "SELECT count(*) FROM sqlite_schema";
    let tables: i64 = transaction.query_row(count, [], |row| row.get(0))?;
    if tables > 0 {
        return Ok((application, version) == (APPLICATION, VERSION));
    }
    transaction.execute_batch(TABLE)?;
    transaction.pragma_update(None, "application_id", APPLICATION)?;
    transaction.pragma_update(None, "user_version", VERSION)?;
    Ok(true)
}

fn read(connection: &Connection) -> rusqlite::Result<Vec<Record>> {
    let mut rows = connection.prepare("SELECT key, body, stage, born, seen FROM slots")?;
    let rows = rows.query_map([], |row| {
        let moment = |at: i64| Moment(u64::try_from(at).unwrap_or_default());
        Ok(Record {
            key: Uuid::from_bytes(row.get(0)?),
            body: BodyDigest(row.get(1)?),
            stage: match row.get::<_, i64>(2)? {
                1 => Stage::Failed,
                2 => Stage::Delivered,
                // The table's CHECK admits no other. Read as open, it repeats a key and runs none
                // twice.
                _ => Stage::Open,
            },
            born: moment(row.get(3)?),
            seen: moment(row.get(4)?),
        })
    })?;
    rows.collect()
}

/// Changes without a waiting call that could not be written yet: the last of each row.
type Unwritten = BTreeMap<(Moment, Uuid), TableChange>;

/// Writes until the queue is closed.
fn write_all(mut connection: Connection, changes: &ChangeReceiver, file: &JournalFile) {
    let mut unwritten = Unwritten::new();
    while let Some(batch) = changes.take() {
        write_batch(&mut connection, file, &mut unwritten, batch);
    }
    // The last batch may have failed: its ends get one more transaction.
    if !unwritten.is_empty() {
        write_batch(&mut connection, file, &mut unwritten, Vec::new());
    }
}

/// Writes what was left and a batch, in this order, in one transaction; or leaves more.
fn write_batch(
    connection: &mut Connection,
    file: &JournalFile,
    unwritten: &mut Unwritten,
    batch: Vec<Entry>,
) {
    let all = unwritten.values().chain(batch.iter().map(|entry| &entry.change));
    match write(connection, all) {
        // Compared after the COMMIT: no later process finds what was written to a lost file. The
        // end of each channel is an error for its call, and no byte of the call goes out.
        Ok(()) if file.is_lost() => {
            tracing::error!("the journal was not written: it is no longer what was opened");
        }
        Ok(()) => {
            unwritten.clear();
            for written in batch.into_iter().filter_map(|entry| entry.written) {
                if written.send(()).is_err() {
                    tracing::debug!("a row was written that nobody waits for any more");
                }
            }
        }
        Err(error) => {
            tracing::error!(%error, "the journal was not written");
            // A waiting call is notified by the end of its channel.
            let left = batch.into_iter().filter(|entry| entry.written.is_none());
            unwritten.extend(left.map(|entry| (entry.change.row(), entry.change)));
        }
    }
}

fn write<'a>(
    connection: &mut Connection,
    changes: impl Iterator<Item = &'a TableChange>,
) -> rusqlite::Result<()> {
    let transaction = connection.transaction()?;
    {
        let mut put = transaction.prepare_cached(
            "INSERT OR REPLACE INTO slots (key, body, stage, born, seen) VALUES (?, ?, ?, ?, ?)",
        )?;
        let mut remove =
            transaction.prepare_cached("DELETE FROM slots WHERE born = ? AND key = ?")?;
        let moment = |at: Moment| i64::try_from(at.0).unwrap_or(i64::MAX);
        for change in changes {
            match *change {
                TableChange::Put(Record { key, body, stage, born, seen }) => {
                    let stage = match stage {
                        Stage::Open => 0,
                        Stage::Failed => 1,
                        Stage::Delivered => 2,
                    };
                    put.execute(params![
                        key.as_bytes(),
                        body.0,
                        stage,
                        moment(born),
                        moment(seen)
                    ])?;
                }
                TableChange::Remove { key, born } => {
                    remove.execute(params![moment(born), key.as_bytes()])?;
                }
            }
        }
    }
    transaction.commit()
}

/// Has the journal fail as a full disk does.
#[cfg(test)]
pub(crate) const FULL: &str =
    "CREATE TRIGGER full BEFORE INSERT ON slots BEGIN SELECT RAISE(ABORT, 'full'); END";

#[cfg(test)]
mod tests {
    use super::*;

    fn record(number: u128, stage: Stage) -> Record {
        let key = Uuid::from_u128(number);
        Record { key, body: BodyDigest([3; 32]), stage, born: Moment(5), seen: Moment(6) }
    }

    #[tokio::test]
    async fn what_was_put_is_there_after_a_kill_and_ends_follow() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal.db");
        let (journal, records) = Journal::open(&path, false).unwrap();
        assert_eq!(records, []);
        let [one, two] = [1, 2].map(|number| record(number, Stage::Open));
        for record in [one, two] {
            journal.put(record).kept().await.unwrap();
        }
        // A copy of the files is what a kill leaves.
        let copy = folder.path().join("copy.db");
        for end in ["", "-wal"] {
            let from = format!("{}{end}", path.display());
            std::fs::copy(from, format!("{}{end}", copy.display())).unwrap();
        }
        let (left, records) = Journal::open(&copy, true).unwrap();
        assert_eq!(records, [one, two]);
        left.close().await;
        journal.note(one.removal());
        let delivered = Record { stage: Stage::Delivered, seen: Moment(7), ..two };
        journal.note(TableChange::Put(delivered));
        journal.close().await;
        let (_, records) = Journal::open(&path, false).unwrap();
        assert_eq!(records, [delivered]);
    }

    #[tokio::test]
    async fn a_journal_is_its_owners_alone_and_one_sidecars() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal.db");
        std::fs::write(&path, "").unwrap();
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o644)).unwrap();
        let (journal, _) = Journal::open(&path, false).unwrap();
        for end in ["", "-wal"] {
            let file = std::fs::metadata(format!("{}{end}", path.display())).unwrap();
            assert_eq!(file.permissions().mode() & 0o777, 0o600, "{end}");
        }
        let second = Journal::open(&path, false).unwrap_err();
        assert!(matches!(second, BadJournal::Taken(_)), "{second:?}");
        journal.close().await;
        drop(Journal::open(&path, false).unwrap());
    }

    #[test]
    fn what_could_not_be_written_goes_into_the_next_transaction() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal.db");
        let mut connection = Connection::open(&path).unwrap();
        connection.execute_batch(TABLE).unwrap();
        let file = &JournalFile::open_at(&path).unwrap();
        let [one, two] = [1, 2].map(|number| record(number, Stage::Open));
        let entry = |change| Entry { change, written: None };
        let mut unwritten = Unwritten::new();
        write_batch(&mut connection, file, &mut unwritten, vec![entry(TableChange::Put(one))]);
        assert_eq!((unwritten.len(), read(&connection).unwrap()), (0, vec![one]));
        connection.execute_batch(FULL).unwrap();
        let (written, mut answer) = oneshot::channel();
        let awaited = Entry { change: TableChange::Put(two), written: Some(written) };
        let delivered = Record { stage: Stage::Delivered, ..one };
        write_batch(
            &mut connection,
            file,
            &mut unwritten,
            vec![awaited, entry(TableChange::Put(delivered))],
        );
        assert!(answer.try_recv().is_err(), "whoever waited is told");
        write_batch(&mut connection, file, &mut unwritten, vec![entry(one.removal())]);
        assert_eq!(unwritten.values().copied().collect::<Vec<_>>(), [one.removal()]);
        assert_eq!(read(&connection).unwrap(), [one]);
        connection.execute_batch("DROP TRIGGER full").unwrap();
        write_batch(&mut connection, file, &mut unwritten, Vec::new());
        assert_eq!((unwritten.len(), read(&connection).unwrap()), (0, vec![]));
    }

    #[tokio::test(start_paused = true)]
    async fn a_writer_that_hangs_is_not_waited_for() {
        let ((changes, _receiver), (_end, ended)) = (queue::queue(), oneshot::channel());
        let file = JournalFile::none();
        let begun = tokio::time::Instant::now();
        Journal(Some(OpenJournal { changes, ended, file })).close().await;
        assert_eq!(begun.elapsed(), CLOSE);
    }

    #[test]
    fn a_file_with_a_second_name_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let [path, other] = ["journal.db", "other.db"].map(|name| folder.path().join(name));
        std::fs::write(&path, "").unwrap();
        std::fs::hard_link(&path, &other).unwrap();
        for path in [&path, &other] {
            let refused = Journal::open(path, false).unwrap_err();
            assert!(matches!(refused, BadJournal::Linked(_)), "{refused:?}");
        }
        std::fs::remove_file(&other).unwrap();
        drop(Journal::open(&path, false).unwrap());
    }

    #[tokio::test]
    async fn no_row_is_kept_in_a_log_that_was_removed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal.db");
        let (journal, _) = Journal::open(&path, false).unwrap();
        journal.put(record(1, Stage::Open)).kept().await.unwrap();
        std::fs::remove_file(folder.path().join("journal.db-wal")).unwrap();
        let put = journal.put(record(2, Stage::Open)).kept().await;
        assert_eq!(put, Err(NotWritten));
        journal.file().unwrap().lost().await;
    }

    #[test]
    fn a_file_of_something_else_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let text = folder.path().join("notes.txt");
        std::fs::write(&text, "nothing that SQLite could read, and longer than its head".repeat(9))
            .unwrap();
        let other = folder.path().join("other.db");
        Connection::open(&other).unwrap().execute_batch("CREATE TABLE t (a)").unwrap();
        for path in [text, other] {
            std::fs::set_permissions(&path, PermissionsExt::from_mode(0o644)).unwrap();
            let before = std::fs::read(&path).unwrap();
            let refused = Journal::open(&path, false).unwrap_err();
            assert!(matches!(refused, BadJournal::Foreign(_)), "{refused:?}");
            assert_eq!(std::fs::read(&path).unwrap(), before);
            let mode = std::fs::metadata(&path).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o644, "others may read it as before");
        }
    }
}
