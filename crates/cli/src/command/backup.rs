//! `holdfast backup` and `holdfast restore`: copies of a database file, each with the server secret that its API
//! keys were made with.
//!
//! ```text
//! backup    database    ─▶ FILE         server.secret ─▶ FILE.secret    (where none is configured)
//! restore   FILE, verified ─▶ database  FILE.secret   ─▶ server.secret
//! declare   database, put back by other means
//! ```
//!
//! A restored database has a mark with the rule for request keys that the copy does not know, before it has its name.
//!
//! A backup does not check the schema: it is made before a migration, by the installed version. A restore goes back
//! in time, and reports that. Neither writes over an existing file.

use std::fs;
use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context, anyhow, bail};
use holdfast_config::Config;
use holdfast_domain::Restores as _;
use holdfast_domain::admin::Directory as _;
use holdfast_domain::admin::listing::{OperationFilter, Order, PageRequest};
use holdfast_domain::restore::{Restore, UnknownKeys};
use holdfast_domain::secret::ServerSecret;
use holdfast_store::backup::{self, CopyReport, LastOperation};
use holdfast_store::verify::AuditOptions;
use holdfast_store::{DatabaseUrl, Options, ServeLock, Store, migrate};
use holdfast_wire::api::{VerificationView, rfc3339};
use serde::Serialize;

use super::book::{self, AuditReport, IN_FILE, ON_TERMINAL};
use crate::failure::{CommandFailure, Result};
use crate::output::{Output, note};
use crate::view::NOTHING;
use holdfast_bootstrap::secret::{self, SecretError};

#[derive(Debug, Serialize)]
struct BackupView {
    file: PathBuf,
    bytes: u64,
    secret_file: Option<PathBuf>,
    last_operation: Option<LastOperationView>,
}

#[derive(Debug, Serialize)]
struct LastOperationView {
    id: String,
    created_at: String,
}

#[derive(Debug, Serialize)]
struct RestoreView<'a> {
    #[serde(flatten)]
    found: &'a VerificationView,
    last_operation: Option<LastOperationView>,
    restored_to: Option<PathBuf>,
    #[serde(flatten)]
    restore: Option<MarkView>,
}

/// The mark of a restored database.
#[derive(Debug, Serialize)]
struct MarkView {
    restored_at: String,
    unknown_until: String,
}

impl From<Restore> for MarkView {
    fn from(restore: Restore) -> Self {
        let Restore { restored_at, unknown_until } = restore;
        Self { restored_at: rfc3339(restored_at), unknown_until: rfc3339(unknown_until) }
    }
}

impl MarkView {
    fn fields(&self) -> [(&'static str, String); 2] {
        [("restored_at", self.restored_at.clone()), ("unknown_until", self.unknown_until.clone())]
    }

    /// Notes the rule for unknown request keys, for the operator who informs callers.
    fn note(&self) {
        let Self { restored_at, unknown_until } = self;
        note(&if restored_at == unknown_until {
            "request keys that this ledger does not know run at once, and may run and be charged a second time".to_owned()
        } else {
            format!(
                "until {unknown_until} request keys that this ledger does not know are refused for API keys of before \
                 {restored_at}; an API key that is issued now runs at once"
            )
        });
    }
}

impl From<LastOperation> for LastOperationView {
    fn from(last: LastOperation) -> Self {
        Self { id: last.id.to_string(), created_at: rfc3339(last.created_at) }
    }
}

/// Copies the database file to another name, with its secret.
pub(super) async fn backup(output: Output, config: &Config, file: &Path) -> Result {
    const NOTHING_DONE: &str = "nothing was backed up";
    let database = database_file(config, "back it up with pg_dump and keep server.secrets")?;
    migrate::exists(&config.database).context(NOTHING_DONE)?;
    let folder = config.database.folder().filter(|_folder| config.server.secrets.is_empty());
    let secret = folder.map(|folder| (folder.join(secret::FILE_NAME), secret_of(file)));
    // Before the copy, which takes as long as the database is large: a refusal after it would waste
    // that, and have a copy without its secret to remove.
    if let Some((_from, to)) = &secret
        && to.exists()
    {
        let to = to.display();
        return Err(anyhow!("{NOTHING_DONE}: {to} exists already: it is not overwritten").into());
    }
    let copied = backup::copy(database, file, progress()).await.context(NOTHING_DONE)?;
    let kept = secret.map(|(from, to)| keep_secret(&from, &to, &copied));
    let secret_file = match kept.transpose() {
        Ok(kept) => kept.flatten(),
        // A copy without the secret of its API keys is not a backup, and must not be taken for one.
        Err(error) => return Err(removed(file, error.into()).context(NOTHING_DONE).into()),
    };
    let last = copied.last.map(LastOperationView::from);
    let fields = [
        ("file", file.display().to_string()),
        ("bytes", copied.bytes.to_string()),
        ("secret_file", shown(secret_file.as_deref())),
        ("last_operation", last_text(last.as_ref())),
    ];
    let (file, bytes) = (file.to_owned(), copied.bytes);
    output.object(&BackupView { file, bytes, secret_file, last_operation: last }, &fields)
}

/// The copy of the secret; none if no API key depends on one yet.
fn keep_secret(
    from: &Path,
    to: &Path,
    copied: &CopyReport,
) -> Result<Option<PathBuf>, SecretError> {
    match secret::copy(from, to) {
        // By the credentials in the copy, not in the live database: a key that was issued meanwhile
        // is not in the backup, and needs no secret there.
        Err(SecretError::Lost(_)) if copied.credentials == 0 => Ok(None),
        copied => copied.map(|()| Some(to.to_owned())),
    }
}

/// Verifies a copy.
pub(super) async fn check(output: Output, config: &Config, file: &Path) -> Result {
    let (audited, last) = audit(output, config, file).await?;
    print(output, &audited, last, None)
}

/// Verifies a copy and puts it at the path of the configured database.
pub(super) async fn restore(
    output: Output,
    config: &Config,
    file: &Path,
    unknown: UnknownKeys,
) -> Result {
    const NOTHING_DONE: &str = "nothing was restored";
    let database = database_file(
        config,
        "restore it with pg_restore, and declare that with `holdfast restore --declare`",
    )?;
    // Held until the end: no gateway begins on half a database.
    let _nobody_serves = ServeLock::take(&config.database).context(NOTHING_DONE)?;
    let (audited, last) = audit(output, config, file).await?;
    // Judged before the database is written: a copy with a mismatch would become the ledger. The
    // report is printed, and has the exit status.
    if !audited.is_ok {
        return print(output, &audited, last, None);
    }
    let from = secret_of(file);
    let folder = config.database.folder().filter(|_folder| config.server.secrets.is_empty());
    let secret = folder.map(|folder| folder.join(secret::FILE_NAME)).filter(|_to| from.exists());
    let copied = backup::restore(file, database, unknown, progress()).await;
    let copied = copied.context(NOTHING_DONE)?;
    let put = secret.map_or(Ok(()), |to| put_secret(&from, &to));
    // Taken back: a database whose secret is missing lets no caller in, and a second `restore`
    // refuses to write over it.
    put.map_err(|error| removed(database, error).context(NOTHING_DONE))?;
    print(output, &audited, last, Some((database.to_owned(), copied.restore)))
}

/// Marks the configured database, which other means have put back.
pub(super) async fn declare(output: Output, config: &Config, unknown: UnknownKeys) -> Result {
    super::with_store(config, async |store| {
        let restore = store
            .declare(unknown)
            .await
            .context("it is not known whether the restore is declared: run the command again")?;
        let view = MarkView::from(restore);
        view.note();
        output.object(&view, &view.fields())
    })
    .await
}

/// The failure, after which the copy is of no use and goes.
fn removed(copy: &Path, failure: anyhow::Error) -> anyhow::Error {
    match fs::remove_file(copy) {
        Ok(()) => failure,
        Err(error) => failure.context(format!("{} was not removed: {error}", copy.display())),
    }
}

/// Puts a secret if there is none, or the same.
fn put_secret(from: &Path, to: &Path) -> anyhow::Result<()> {
    match secret::read_file(to) {
        Err(SecretError::Lost(_)) => Ok(secret::copy(from, to)?),
        // The same secret is no conflict: a restore into the folder that the backup came from must
        // succeed.
        Ok(there) if there == secret::read_file(from)? => Ok(()),
        Ok(_other) => bail!("{} holds another secret: it is not written over", to.display()),
        Err(error) => Err(error.into()),
    }
}

/// Verifies the ledger of a copy, and reports the newest operation in it.
async fn audit(
    output: Output,
    config: &Config,
    file: &Path,
) -> Result<(AuditReport, Option<LastOperation>)> {
    let named = file.to_str().filter(|_name| file.is_file());
    let named = named.ok_or_else(|| anyhow!("there is no copy {}", file.display()));
    let url = DatabaseUrl::parse(&format!("sqlite://{}", named.map_err(CommandFailure::Usage)?));
    let url = url.map_err(|error| CommandFailure::Usage(error.into()))?;
    let unread = || format!("{} was not verified", file.display());
    let store = Store::open(Options::new(url)).await.with_context(unread)?;
    let outcome = audit_opened(output, config, file, &store).await;
    // Closed after a failure too. The failure of the audit is the one that is reported.
    let closed = store.close().await;
    let outcome = outcome?;
    closed.with_context(unread)?;
    Ok(outcome)
}

async fn audit_opened(
    output: Output,
    config: &Config,
    file: &Path,
    store: &Store,
) -> Result<(AuditReport, Option<LastOperation>)> {
    let secrets = secrets(config, file, store).await?;
    let options =
        AuditOptions { secrets: secrets.into(), ..AuditOptions::keeping(config.retention.results) };
    let audited = book::audit(output, store, options, false).await?;
    let newest = PageRequest::first(Order::Newest, 1);
    let newest = store.operations(OperationFilter::default(), newest).await;
    let newest = newest.context("the last operation was not read")?.rows.into_iter().next();
    let last = newest.map(|listed| LastOperation {
        id: listed.operation.id,
        created_at: listed.operation.created_at,
    });
    Ok((audited, last))
}

/// The secrets of the credentials of a copy: those that are configured, else the file that came with it.
async fn secrets(config: &Config, file: &Path, store: &Store) -> Result<Vec<ServerSecret>> {
    let live = store.live_credentials().await.context("API keys were not read")?;
    let secrets = match config.server.secrets.as_slice() {
        [] => match secret::read_file(&secret_of(file)) {
            Err(SecretError::Lost(_)) if live.is_empty() => Vec::new(),
            read => vec![read.map_err(anyhow::Error::from)?],
        },
        configured => configured.to_vec(),
    };
    let is_known = live
        .iter()
        .any(|credential| secrets.iter().any(|secret| secret.id() == credential.server_secret));
    if live.is_empty() || is_known {
        return Ok(secrets);
    }
    Err(anyhow!(
        "none of the API keys in {} was made with {}: without their secret no caller can authenticate",
        file.display(),
        if config.server.secrets.is_empty() { "the secret that came with it" } else { "server.secrets" }
    )
    .into())
}

fn print(
    output: Output,
    audited: &AuditReport,
    last: Option<LastOperation>,
    restored: Option<(PathBuf, Option<Restore>)>,
) -> Result {
    let last = last.map(LastOperationView::from);
    let (restored_to, restore) = restored.unzip();
    let restore = restore.flatten().map(MarkView::from);
    let mut fields = audited.fields.clone();
    fields.push(("last_operation", last_text(last.as_ref())));
    fields.push(("restored_to", shown(restored_to.as_deref())));
    fields.extend(restore.iter().flat_map(MarkView::fields));
    let since = last.as_ref().map_or_else(
        || "this copy knows no request key: every key".to_owned(),
        |last| {
            let moment = &last.created_at;
            format!("no request key that was first used after {moment} is in this copy: such a key")
        },
    );
    note(&format!("{since} may have run and been charged, so inform its caller"));
    if let Some(restore) = &restore {
        restore.note();
    }
    let view = RestoreView { found: &audited.view, last_operation: last, restored_to, restore };
    output.object(&view, &fields)?;
    audited.outcome()
}

/// The file of the database; for a server's database, the failure with the step to take there.
fn database_file<'a>(config: &'a Config, instead: &str) -> Result<&'a Path> {
    config.database.file().ok_or_else(|| {
        let server = &config.database;
        CommandFailure::Usage(anyhow!(
            "{server} is no file: {instead} (docs/how-to/back-up-and-restore.md)"
        ))
    })
}

/// Notes how far a copy is. A short copy ends before the first note.
fn progress() -> impl FnMut(u64, u64) + Send + 'static {
    let every = if io::stderr().is_terminal() { ON_TERMINAL } else { IN_FILE };
    let mut noted = Instant::now();
    move |done, of| {
        if noted.elapsed() >= every {
            note(&format!("copied: {done} of {of} pages"));
            noted = Instant::now();
        }
    }
}

/// Name of the secret of a copy.
fn secret_of(file: &Path) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(".secret");
    PathBuf::from(name)
}

fn shown(path: Option<&Path>) -> String {
    path.map_or_else(|| NOTHING.to_owned(), |path| path.display().to_string())
}

fn last_text(last: Option<&LastOperationView>) -> String {
    last.map_or_else(|| NOTHING.to_owned(), |last| format!("{} {}", last.created_at, last.id))
}
