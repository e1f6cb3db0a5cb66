//! `holdfast wallet ledger`: a wallet's statement.
//!
//! Opening balance, entries, closing balance: the three add up, and the closing balance of a period is the opening
//! one of the next. Entries that are left out are the oldest, so that the closing balance is always that of the
//! last row.
//!
//! With direct database access a table is one snapshot. Over the network it is put together from pages, the newest
//! first, whose balances meet: entries that are booked meanwhile are on none of them.
//!
//! A table has decimal units for people. A file, CSV or JSON lines, is the API's own, whole and in integer micros.

use holdfast_domain::admin::listing;
use holdfast_wire::api::rfc3339;
use serde_json::{Value, json};

use crate::admin_client::PAGE_ROWS;
use crate::arguments::read::ColumnChoice;
use crate::command::CommandContext;
use crate::command::resource_view::given;
use crate::failure::Result;
use crate::file_output::FileOutput;
use crate::output::{Output, note};
use crate::table::{Column, Table};
use crate::view::{NOTHING, amount, member, some_text, text};

const COLUMNS: [Column; 8] = [
    Column::moment("at"),
    Column::text("kind"),
    Column::text("debit").third(),
    Column::text("credit").third(),
    Column::number("amount_micros"),
    Column::number("available_micros"),
    Column::number("held_micros").second(),
    Column::text("source").second(),
];

/// Table of a statement that a command shows.
pub(crate) struct StatementOrder {
    table: Table,
    period: listing::Period,
    limit: u32,
}

impl StatementOrder {
    pub(crate) fn new(
        output: Output,
        period: listing::Period,
        limit: u32,
        columns: &ColumnChoice,
    ) -> Result<Self> {
        Ok(Self { table: Table::new(output, columns, &COLUMNS)?, period, limit })
    }
}

/// Writes the statement of a wallet to a file.
pub(super) async fn export(
    context: &CommandContext<'_>,
    wallet: &Value,
    period: listing::Period,
    file: FileOutput,
) -> Result {
    let path = format!("/wallets/{}/statement", text(wallet, "id"));
    let [from, to] = [period.from, period.to].map(|bound| bound.map(rfc3339));
    let query = [("from", from), ("to", to)];
    context.client.download((&path, &given(&query)), file, "the ledger was not read").await?;
    Ok(())
}

/// Prints the statement of a wallet.
pub(super) async fn show(
    context: &CommandContext<'_>,
    wallet: &Value,
    order: &StatementOrder,
) -> Result {
    let path = format!("/wallets/{}/statement", text(wallet, "id"));
    let limit = usize::try_from(order.limit).unwrap_or(usize::MAX);
    let bounds = [order.period.from, order.period.to].map(|bound| bound.map(rfc3339));
    let [from, to] = bounds.clone();
    // In this process a page has no bound, so one page is one snapshot.
    let rows_max = if context.local.is_some() { usize::MAX } else { PAGE_ROWS };
    let mut closing = None;
    let mut entries: Vec<Value> = Vec::new();
    let mut cursor = None;
    loop {
        let rows = (limit - entries.len()).clamp(1, rows_max).to_string();
        let query = [
            ("from", from.clone()),
            ("to", to.clone()),
            ("limit", Some(rows)),
            ("cursor", cursor.take()),
        ];
        let page = context.client.get(&path, &given(&query)).await;
        let page = page.map_err(|error| error.because("the ledger was not read"))?;
        let older = member(&page, "entries").as_array().cloned().unwrap_or_default();
        entries.splice(0..0, older);
        // Of the newest page, which is the first: entries that are booked meanwhile are on none of
        // the pages.
        let closing: &Value = closing.get_or_insert_with(|| member(&page, "closing").clone());
        cursor = some_text(&page, "next_cursor");
        if cursor.is_some() && entries.len() < limit {
            continue;
        }
        // Entries without a number that share a moment are on one page: it may have more than requested.
        let beyond = entries.len().saturating_sub(limit);
        let dropped: Vec<_> = entries.drain(..beyond).collect();
        let opening = dropped.last().unwrap_or_else(|| member(&page, "opening"));
        let omitted = member(&page, "omitted_entries").as_u64().unwrap_or_default();
        let omitted = omitted.saturating_add(u64::try_from(beyond).unwrap_or(u64::MAX));
        let balance = |of: &Value| {
            json!({
                "available_micros": member(of, "available_micros"),
                "held_micros": member(of, "held_micros"),
            })
        };
        let view = json!({
            "wallet_id": member(&page, "wallet_id"),
            "currency": member(&page, "currency"),
            "from": from,
            "to": to,
            "opening": balance(opening),
            "entries": entries,
            "omitted_entries": omitted,
            "closing": closing,
        });
        return print(&order.table, &view);
    }
}

fn print(table: &Table, view: &Value) -> Result {
    let mut rows = vec![total(view, "opening", "from")];
    rows.extend(entries(view).cloned());
    rows.push(total(view, "closing", "to"));
    table.print(view, &rows, |row, name| match name {
        "amount_micros" | "available_micros" | "held_micros" => amount(row, name),
        "source" => source(row),
        name => text(row, name),
    })?;
    // The oldest are left out, not the newest: the closing balance is always that of the last row.
    let omitted = member(view, "omitted_entries");
    if *omitted != 0 {
        note(&format!(
            "{omitted} earlier entries of the period are not listed, the opening balance is after them: \
             --limit lists more"
        ));
    }
    Ok(())
}

const BALANCE: [&str; 2] = ["available_micros", "held_micros"];

fn entries(view: &Value) -> impl Iterator<Item = &Value> {
    member(view, "entries").as_array().into_iter().flatten()
}

/// The row of a balance, with its member's name for its kind.
fn total(view: &Value, kind: &str, bound: &str) -> Value {
    let [available, held] = BALANCE.map(|it| member(member(view, kind), it));
    json!({
        "at": member(view, bound), "kind": kind, "available_micros": available, "held_micros": held,
    })
}

fn source(entry: &Value) -> String {
    let [operation, posting, reason] =
        ["operation_id", "posting_id", "reason"].map(|it| some_text(entry, it));
    match (posting, operation, reason) {
        (None, Some(id), _) => format!("operation {id}/{}", text(entry, "generation")),
        (None, None, _) => NOTHING.to_owned(),
        (Some(id), Some(operation), _) => format!("posting {id}, operation {operation}"),
        (Some(id), None, Some(reason)) => format!("posting {id}, {reason}"),
        (Some(id), None, None) => format!("posting {id}"),
    }
}
