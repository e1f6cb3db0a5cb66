//! `holdfast usage exclude-costs`: provider costs that no run can have caused are taken out of the sums that an
//! earlier version has made.
//!
//! The row of the audit log is written first, and the sums are corrected after it: no correction is without one. A
//! command that was cut off is given again, and leaves a row of its own. Without a cost to take out, no row is
//! written.

use anyhow::Context;
use holdfast_accounts::{Reason, Request};
use holdfast_domain::CommandKey;
use holdfast_store::usage::AbsurdCosts;
use serde::Serialize;
use uuid::Uuid;

use super::context::{CommandContext, LocalLedger};
use crate::failure::{CommandFailure, Result};
use crate::output::note;
use holdfast_bootstrap::accounts::LocalAccounts;

/// Order of one exclusion.
pub(super) struct ExclusionOrder {
    pub(super) dry_run: bool,
    pub(super) reason: Option<Reason>,
}

/// Answer of the command.
#[derive(Debug, Serialize)]
struct ExclusionView {
    costs_excluded: u64,
    dry_run: bool,
}

/// Refusal over the network.
pub(super) fn local_only() -> CommandFailure {
    super::local_only("usage exclude-costs", "run it with direct database access, with --config")
}

pub(super) async fn run(
    context: &CommandContext<'_>,
    ExclusionOrder { dry_run, reason }: ExclusionOrder,
) -> Result {
    let Some(LocalLedger { config, store }) = context.local else {
        return Err(local_only());
    };
    let found = store.absurd_costs().await.context("costs were not read")?;
    let costs_excluded = match found {
        None => {
            note("no cost is to be taken out: the sums are as they should be");
            0
        }
        Some(AbsurdCosts { operations, .. }) if dry_run => {
            note("nothing was changed: leave --dry-run out to take these costs out of the sums");
            operations
        }
        Some(AbsurdCosts { first, operations }) => {
            let local = LocalAccounts::to_change(config, store, note).await?;
            let parts: [&[u8]; 3] =
                [b"usage exclude-costs", &first.to_bytes(), &operations.to_be_bytes()];
            // A new key for each run: one that is repeated after a failed correction leaves a row
            // of its own.
            let request = Request::new(CommandKey::from(Uuid::new_v4()), &parts, reason);
            let LocalAccounts { accounts, principal } = local;
            let noted = accounts.note_excluded_costs(&principal, &request, first, operations).await;
            noted.context("the audit log was not written, and the sums are unchanged")?;
            let excluded = store.exclude_costs().await;
            excluded.context("costs are still in the sums: give the command again")?
        }
    };
    let view = ExclusionView { costs_excluded, dry_run };
    let fields = [
        ("costs_excluded", view.costs_excluded.to_string()),
        ("dry_run", view.dry_run.to_string()),
    ];
    context.output.object(&view, &fields)
}
