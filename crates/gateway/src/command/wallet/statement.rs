//! `holdfast wallet ledger`: a wallet's statement.
//!
//! Opening balance, entries, closing balance: the three add up, and the closing balance of a period
//! is the opening one of the next. Where entries are left out they are the oldest, so that the closing
//! balance is always that of the last row.
//!
//! A table has decimal units for people, CSV integer micros for programs, with a row for each of the
//! two balances. Reasons are texts that people chose: none of them begins a formula.

use anyhow::{Context, anyhow};
use holdfast_accounts::Reference;
use holdfast_domain::ledger::PostingKind;
use holdfast_domain::listing::Period;
use holdfast_domain::ports::LedgerSource;
use holdfast_domain::report::{Reports as _, Statement, StatementBalance, StatementEntry};
use holdfast_store::Store;
use holdfast_wire::api::{BalanceView, LedgerEntryView, StatementView, rfc3339};
use holdfast_wire::csv;

use crate::accounts::find_wallet;
use crate::failure::CommandFailure;
use crate::output::{Output, note, text};

const HEAD: [&str; 8] = ["at", "kind", "debit", "credit", "amount", "available", "held", "source"];

/// Format of a statement: CSV, or one of the formats that every command has.
pub(crate) enum StatementFormat {
    Csv,
    Output(Output),
}

impl StatementFormat {
    pub(crate) fn of(output: Output, csv: bool) -> Result<Self, CommandFailure> {
        match (csv, output) {
            (false, output) => Ok(Self::Output(output)),
            (true, Output::Table | Output::Plain) => Ok(Self::Csv),
            (true, Output::Json) => Err(CommandFailure::Usage(anyhow!(
                "--json prints JSON: leave it out or leave --csv out"
            ))),
        }
    }
}

pub(crate) async fn run(
    form: StatementFormat,
    store: &Store,
    wallet: &Reference,
    period: Period,
    limit: u32,
) -> Result<(), CommandFailure> {
    let wallet = find_wallet(store, wallet).await?.wallet;
    let statement = store.statement(wallet.id, period, limit).await;
    let statement = statement.context("the book was not read")?;
    let Statement { opening, entries, omitted, closing } = &statement;
    let output = match form {
        StatementFormat::Csv => return text(&csv::statement(&statement, period, wallet.currency)),
        StatementFormat::Output(output) => output,
    };
    let view = StatementView {
        wallet_id: wallet.id.to_string(),
        currency: wallet.currency.to_string(),
        from: period.from.map(rfc3339),
        to: period.to.map(rfc3339),
        opening: view(*opening),
        entries: entries
            .iter()
            .map(|entry| {
                LedgerEntryView::of(&entry.transfer, entry.posted.as_ref(), view(entry.after))
            })
            .collect(),
        omitted_entries: *omitted,
        closing: view(*closing),
    };
    let mut rows = vec![total("opening", view_at(view.from.as_ref()), *opening)];
    rows.extend(entries.iter().map(row));
    rows.push(total("closing", view_at(view.to.as_ref()), *closing));
    output.sheet(&view, HEAD, &rows)?;
    // The oldest are left out, not the newest: the closing balance is always that of the last row.
    if *omitted > 0 {
        note(&format!(
            "{omitted} earlier entries of the period are not listed, the opening balance is after them: \
             --limit lists more"
        ));
    }
    Ok(())
}

const fn view(balance: StatementBalance) -> BalanceView {
    BalanceView::of(balance.available, balance.held)
}

fn view_at(moment: Option<&String>) -> String {
    moment.cloned().unwrap_or_else(dash)
}

fn dash() -> String {
    "-".to_owned()
}

fn total(
    kind: &str,
    at: String,
    StatementBalance { available, held }: StatementBalance,
) -> [String; 8] {
    let kind = kind.to_owned();
    [at, kind, dash(), dash(), dash(), available.to_string(), held.to_string(), dash()]
}

fn row(StatementEntry { transfer, posted, after }: &StatementEntry) -> [String; 8] {
    [
        rfc3339(transfer.at),
        transfer.kind.to_owned(),
        transfer.debit.label().to_owned(),
        transfer.credit.label().to_owned(),
        transfer.amount.to_string(),
        after.available.to_string(),
        after.held.to_string(),
        source(transfer.source, posted.as_ref()),
    ]
}

fn source(source: LedgerSource, posted: Option<&PostingKind>) -> String {
    match (source, posted) {
        (LedgerSource::Operation(id, generation), _) => format!("operation {id}/{generation}"),
        (LedgerSource::Posting(id), None | Some(PostingKind::Deposit)) => format!("posting {id}"),
        (LedgerSource::Posting(id), Some(PostingKind::Refund(operation))) => {
            format!("posting {id}, operation {operation}")
        }
        (LedgerSource::Posting(id), Some(PostingKind::Adjustment(reason))) => {
            format!("posting {id}, {reason}")
        }
    }
}
