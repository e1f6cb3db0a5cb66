//! `holdfast migrate`

use anyhow::{Context, anyhow};
use holdfast_store::ServeLock;
use holdfast_store::migrate::{self, IfFilled, MigrationStatus, SchemaError};
use holdfast_wire::api::rfc3339;
use serde::Serialize;

use crate::arguments::Migrate;
use crate::failure::{CommandFailure, Result};
use crate::output::{Output, note};
use crate::table::{Column, Table};
use holdfast_config::Config;

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

pub(super) async fn run(output: Output, config: &Config, command: &Migrate) -> Result {
    let url = &config.database;
    match command {
        Migrate::Status => {
            let steps = migrate::status(url).await.context("migrations were not listed")?;
            list(output, steps)
        }
        Migrate::Up => {
            // The start of `serve` makes its own: whoever asks for it by hand has forgotten a file.
            if config.file.is_none() {
                migrate::exists(url).context("nothing was migrated")?;
            }
            let known = migrate::status(url).await.context("nothing was migrated")?;
            if known.iter().all(|step| step.applied_at.is_some()) {
                note("nothing to do: every migration is applied");
                return list(output, Vec::new());
            }
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
            if let Err(error @ SchemaError::Filled(_)) = taken {
                return Err(CommandFailure::Usage(anyhow!(
                    "{NOTHING}: {error} for good; make a backup, and give --yes to delete them"
                )));
            }
            let step = taken.context(NOTHING)?;
            let fields = [("version", step.version.to_string()), ("taken_back", step.name.clone())];
            output.object(&StepView::from(step), &fields)
        }
    }
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
