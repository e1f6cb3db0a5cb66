//! `holdfast migrate`

use anyhow::{Context, anyhow};
use holdfast_store::migrate::copy::{CopyError, TableCopy, copy};
use holdfast_store::migrate::{self, IfFilled, MigrationStatus, SchemaError};
use holdfast_store::{DatabaseUrl, ServeLock};
use holdfast_wire::api::rfc3339;
use serde::Serialize;

use crate::arguments::Migrate;
use crate::failure::{CommandFailure, Result};
use crate::output::{Output, note};
use crate::table::{Column, Table};
use holdfast_config::{Config, database_password};

#[derive(Debug, Serialize)]
struct StepView {
    version: u32,
    name: String,
    applied_at: Option<String>,
}

impl From<MigrationStatus> for StepView {
    fn from(step: MigrationStatus) -> Self {
        Self { version: step.version, name: step.name, applied_at: step.applied_at.map(rfc3339) }
    }
}

#[derive(Debug, Serialize)]
struct TableView {
    table: String,
    rows: u64,
    digest: String,
}

impl From<TableCopy> for TableView {
    fn from(TableCopy { table, rows, digest }: TableCopy) -> Self {
        Self { table, rows, digest: format!("{digest:032x}") }
    }
}

pub(super) async fn run(output: Output, config: &Config, command: &Migrate) -> Result {
    let url = &config.database;
    match command {
        Migrate::Status => {
            let steps = migrate::status(url).await.context("migrations were not listed")?;
            list(output, steps)
        }
        Migrate::Up => {
            // The start of `serve` creates its own: a caller of this command has forgotten a file.
            if config.file.is_none() {
                migrate::exists(url).context("nothing was migrated")?;
            }
            // Before the lock: with no migration to apply the command succeeds beside a running
            // gateway too.
            let known = migrate::status(url).await.context("nothing was migrated")?;
            if known.iter().all(|step| step.applied_at.is_some()) {
                note("nothing to do: every migration is applied");
                return list(output, Vec::new());
            }
            // Held to the end: a gateway that starts in between would serve on half a schema.
            let _nobody_serves = ServeLock::take(url).context("nothing was migrated")?;
            let steps = migrate::up(url).await.context("not everything was migrated")?;
            list(output, steps)
        }
        Migrate::Down { yes } => {
            const NOTHING: &str = "nothing was taken back";
            migrate::exists(url).context(NOTHING)?;
            let _nobody_serves = ServeLock::take(url).context(NOTHING)?;
            let if_filled = if *yes { IfFilled::Delete } else { IfFilled::Refuse };
            let taken = migrate::down(url, if_filled).await;
            // Exit status 2: the same command fails until its caller decides about the rows.
            if let Err(error @ SchemaError::Filled(_)) = taken {
                return Err(CommandFailure::Usage(anyhow!(
                    "{NOTHING}: {error} for good; make a backup, and give --yes to delete them"
                )));
            }
            let step = taken.context(NOTHING)?;
            let fields = [("version", step.version.to_string()), ("taken_back", step.name.clone())];
            output.object(&StepView::from(step), &fields)
        }
        Migrate::Copy { to } => copied(output, url, to).await,
    }
}

async fn copied(output: Output, from: &DatabaseUrl, to: &str) -> Result {
    const NOTHING: &str = "nothing was copied";
    // Parsed here and not by the parser of arguments, whose errors repeat the value with its password.
    let to = DatabaseUrl::parse(to)
        .map_err(|error| CommandFailure::Usage(anyhow!("{NOTHING}: --to is not a URL: {error}")))?;
    let to = match database_password() {
        Some(password) => to.with_password(&password),
        None => to,
    };
    migrate::exists(from).context(NOTHING)?;
    // Of the source: a row that a gateway writes after its table was copied would be missing in the
    // target.
    let _right_to_serve = ServeLock::take(from).context(NOTHING)?;
    let progress = |it: &TableCopy| note(&format!("copied: {} rows of {}", it.rows, it.table));
    let copied = copy(from, &to, progress).await;
    if let Err(
        error @ (CopyError::NotAFile
        | CopyError::NotAServer
        | CopyError::Filled(_)
        | CopyError::Copied(_)),
    ) = copied
    {
        return Err(CommandFailure::Usage(anyhow!("{NOTHING}: {error}")));
    }
    let tables: Vec<_> =
        copied.context("the copy was not confirmed")?.into_iter().map(TableView::from).collect();
    note(&format!(
        "the file is marked, and `serve` refuses it: set database.url to {to} with its password, keep server.secrets, and start the gateway"
    ));
    Table::whole(output, &TABLES).print(&tables, &tables, |table, name| match name {
        "table" => table.table.clone(),
        "rows" => table.rows.to_string(),
        _digest => table.digest.clone(),
    })
}

fn list(output: Output, steps: Vec<MigrationStatus>) -> Result {
    let views: Vec<_> = steps.into_iter().map(StepView::from).collect();
    Table::whole(output, &COLUMNS).print(&views, &views, |step, name| match name {
        "version" => step.version.to_string(),
        "name" => step.name.clone(),
        _applied_at => step.applied_at.clone().unwrap_or_else(|| "missing".to_owned()),
    })
}

const COLUMNS: [Column; 3] =
    [Column::number("version"), Column::text("name"), Column::moment("applied_at")];
const TABLES: [Column; 3] = [Column::text("table"), Column::number("rows"), Column::text("digest")];
