//! `holdfast operation reconcile`: brings operations of dead processes to rest, as far as the rules allow it now.
//! Never proof that a call did not run.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::Context;
use holdfast_domain::conduct::Conduct;
use holdfast_domain::operation::{Node, Phase};
use holdfast_domain::ports::LeaseMode;
use holdfast_domain::{Incarnation, Journal, Nodes, OperationId};
use holdfast_store::{LockError, ServeLock, Store};
use serde::Serialize;
use uuid::Uuid;

use crate::failure::Result;
use crate::output::{Output, note};
use crate::table::{Column, Table};
use holdfast_bootstrap::accounts::FixedPause;
use holdfast_bootstrap::node;
use holdfast_config::Config;

/// Operations that one pass takes.
const SCAN_BATCH: u32 = 1_024;

/// State of one operation after its reconciliation.
#[derive(Debug, Serialize)]
pub(super) struct ReconciledView {
    pub(super) operation_id: String,
    pub(super) status: String,
    pub(super) at_rest: bool,
}

pub(super) async fn run(output: Output, config: &Config, store: &Store) -> Result {
    let views = match ServeLock::take(&config.database) {
        // A server's database has no such lock: nodes on other machines may be alive.
        Ok(_) if config.database.file().is_none() => as_bystander(config, store).await?,
        // The lock is held while the arm runs: a gateway that started meanwhile would be the next
        // incarnation of the same name, and this command would end its leases.
        Ok(_nobody_serves) => as_successor(config, store).await?,
        Err(LockError::Taken(_)) => {
            note(
                "a running `holdfast serve` reconciles by itself: only steps that any process may \
                take are taken",
            );
            // Its operations are its own: a lease that looks dead from here is not believed.
            all_due(store, None).await?
        }
        Err(error @ (LockError::Lost(_) | LockError::Failed(..))) => {
            return Err(anyhow::Error::from(error).context("nothing was reconciled").into());
        }
    };
    print(output, &views)
}

/// Prints the operations that were looked at.
pub(super) fn print(output: Output, views: &[ReconciledView]) -> Result {
    const COLUMNS: [Column; 3] =
        [Column::text("operation"), Column::text("status"), Column::text("at_rest")];
    if views.is_empty() {
        note("nothing was due");
    }
    Table::whole(output, &COLUMNS).print(&views, views, |view, name| match name {
        "operation" => view.operation_id.clone(),
        "status" => view.status.clone(),
        _at_rest => (if view.at_rest { "yes" } else { "no" }).to_owned(),
    })
}

/// Under the lock no process serves: as the next incarnation of the node's name, all leases of the last one are
/// superseded.
async fn as_successor(config: &Config, store: &Store) -> anyhow::Result<Vec<ReconciledView>> {
    let node = Node { name: node::name(config)?, incarnation: Incarnation::from(Uuid::new_v4()) };
    let taken = store.heartbeat(&node, config.operations.lease, LeaseMode::Take).await;
    taken.context("the node's name was not taken")?;
    let views = all_due(store, Some(config.operations.orphan_grace)).await;
    // Left before `?`: a failed pass must not keep the name until the lease ends.
    let left = store.leave(&node).await.context("the node's name was not given back");
    let views = views?;
    left.map(|()| views)
}

/// Without the lock, on a server's database with its nodes. An outage that has just ended makes all of them look
/// dead: a lease is believed to be so when it is not renewed while the database answers.
async fn as_bystander(config: &Config, store: &Store) -> anyhow::Result<Vec<ReconciledView>> {
    let mut views = all_due(store, None).await?;
    if views.iter().all(|view| view.at_rest) {
        return Ok(views);
    }
    let lease = config.operations.lease;
    note(&format!("waiting {} s to see whose nodes are alive", lease.as_secs()));
    // A live node renews its lease within this time, and is no longer due then.
    tokio::time::sleep(lease).await;
    views.retain(|view| view.at_rest);
    views.extend(all_due(store, Some(config.operations.orphan_grace)).await?);
    Ok(views)
}

/// Repeats passes until one moves no operation.
async fn all_due(
    store: &Store,
    orphan_grace: Option<Duration>,
) -> anyhow::Result<Vec<ReconciledView>> {
    let conduct = Conduct { journal: store, pause: &FixedPause, orphan_grace };
    let mut seen = BTreeSet::new();
    let mut views = Vec::new();
    loop {
        let due = store.due(SCAN_BATCH).await.context("due operations were not read")?;
        // An operation that stays due comes back at each pass: without `seen` this would never end.
        let new: Vec<OperationId> = due.into_iter().filter(|id| seen.insert(*id)).collect();
        if new.is_empty() {
            return Ok(views);
        }
        for id in new {
            let found = conduct.reconcile(id).await.context("an operation was not read")?;
            let Some(operation) = found.snapshot.operation else { continue };
            views.push(ReconciledView {
                operation_id: id.to_string(),
                status: operation.phase.label().to_owned(),
                at_rest: !matches!(operation.phase, Phase::Leased | Phase::Recorded(_)),
            });
        }
    }
}
