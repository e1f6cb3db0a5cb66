//! Files of whole periods, streamed: a page of rows is read, written off the runtime's workers and sent, then the next.
//!
//! ```text
//! columns, opening ─▶ rows ─▶ rows ─▶ … ─▶ closing, with the number of rows
//!                                 └─ failure ─▶ error of the body: the connection ends, no closing
//! ```
//!
//! The client's pace is the pace of the reading: no page is read before the one before it is taken. A client that goes
//! away drops the body, and with it the export.

use std::future::ready;
use std::sync::Arc;

use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use futures_util::stream::{self, StreamExt};
use holdfast_accounts::{LedgerFile, Place, StatementFile, UsageFile};
use holdfast_domain::ErrorChain;
use holdfast_domain::Timestamp;
use holdfast_domain::admin::WalletRecord;
use holdfast_domain::admin::listing::Period;
use holdfast_domain::admin::report::{ExportPages, LedgerExport, StatementExport, UsageExport};
use holdfast_domain::limits::Counter;
use holdfast_domain::ports::Unavailable;
use holdfast_wire::api::rfc3339;
use holdfast_wire::file::{
    CostColumns, FileFormat, LedgerFileRows, StatementFileRows, UsageFileRows,
};
use http::HeaderValue;
use http::header::{CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_TYPE, VARY};

use crate::off_workers::off_workers;

// As long as the longest name of a wallet: none is cut.
/// Longest part of a file's name that a wallet gives.
const NAME_MAX: usize = 64;

/// Failure of an export on its way. The log has the cause.
#[derive(Debug, thiserror::Error)]
#[error("the export was interrupted")]
struct InterruptedExport;

/// A wallet's statement as a file.
#[must_use]
pub fn statement_file(file: StatementFile, format: FileFormat) -> Response {
    let StatementFile { wallet, period, export, place } = file;
    let StatementExport { opening, closing, until, rows: _, pages } = export;
    let rows = StatementFileRows { format, period, currency: wallet.wallet.currency };
    let body = body(
        rows.opening(opening),
        (pages, place),
        move |entry| rows.entry(entry),
        move |count| rows.closing(closing, until, count),
    );
    answer(body, format, &file_name("statement", Some(&wallet), period, format))
}

/// Payments and charges as a file.
#[must_use]
pub fn ledger_file(file: LedgerFile, format: FileFormat) -> Response {
    let LedgerFile { wallet, period, export, place } = file;
    let LedgerExport { query: _, until, pages } = export;
    let rows = LedgerFileRows { format };
    let body = body(
        rows.head(),
        (pages, place),
        move |row| rows.row(row),
        move |count| rows.closing(until, count),
    );
    answer(body, format, &file_name("ledger", wallet.as_ref(), period, format))
}

/// Usage as a file.
#[must_use]
pub fn usage_file(file: UsageFile, format: FileFormat) -> Response {
    let UsageFile { query, shows_costs, export: UsageExport { pages }, place } = file;
    let costs = if shows_costs { CostColumns::Shown } else { CostColumns::Hidden };
    let rows = Arc::new(UsageFileRows::new(format, query.by, costs));
    let (head, closing) = (rows.head(), Arc::clone(&rows));
    let body =
        body(head, (pages, place), move |row| rows.row(row), move |count| closing.closing(count));
    answer(body, format, &file_name("usage", None, query.period, format))
}

fn body<T: Send + 'static>(
    head: String,
    (pages, place): (Box<dyn ExportPages<T>>, Place),
    line: impl Fn(&T) -> String + Send + Sync + 'static,
    closing: impl Fn(u64) -> String + Send + 'static,
) -> Body {
    let (line, begun) = (Arc::new(line), Some((pages, place, 0_u64, closing)));
    // Pulled by the body and not sent through a channel: the next page is read when the connection
    // takes it, so that a slow client has one page in memory, and one that is gone has none.
    let rest = stream::try_unfold(begun, move |export| {
        let line = Arc::clone(&line);
        async move {
            let Some((mut pages, place, count, closing)) = export else { return Ok(None) };
            let page = match pages.next_page().await {
                Ok(Some(page)) => page,
                // The state ends here, and with it the actor's place: the connection may still have
                // bytes to send.
                Ok(None) => return Ok(Some((Bytes::from(closing(count)), None))),
                // The status was sent long ago. Only a body that breaks off shows a client that
                // rows are missing: an orderly end without `closing` would look like a shorter
                // file.
                Err(Unavailable(error)) => return Err(interrupted(&*error)),
            };
            let count = count.saturating_add(u64::try_from(page.len()).unwrap_or(u64::MAX));
            let text = off_workers(move || page.iter().map(|row| line(row)).collect::<String>());
            let text = text.await.map_err(|error| interrupted(&error))?;
            Ok(Some((Bytes::from(text), Some((pages, place, count, closing)))))
        }
    });
    let head = stream::once(ready(Ok(Bytes::from(head))));
    Body::from_stream(head.chain(rest))
}

fn interrupted(error: &dyn std::error::Error) -> InterruptedExport {
    tracing::error!(error = %ErrorChain(error), "an export was interrupted");
    InterruptedExport
}

fn answer(body: Body, format: FileFormat, name: &str) -> Response {
    let mut answer = Response::new(body);
    let headers = answer.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(format.content_type()));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(VARY, HeaderValue::from_static("accept"));
    if let Ok(disposition) = HeaderValue::try_from(format!("attachment; filename=\"{name}\"")) {
        headers.insert(CONTENT_DISPOSITION, disposition);
    }
    answer
}

/// Name of a file: what it is, the wallet, the period. Of a wallet's name only what every file system takes is kept.
fn file_name(
    of: &str,
    wallet: Option<&WalletRecord>,
    period: Period,
    format: FileFormat,
) -> String {
    let wallet = wallet.map(|record| {
        // A wallet's name is its owner's text, and this header is read by file systems and shells:
        // no quote, no separator, no leading dot.
        let is_plain = |it: char| it.is_ascii_alphanumeric() || matches!(it, '.' | '_' | '-');
        let name = record.wallet.name.chars().map(|it| if is_plain(it) { it } else { '-' });
        let name: String = name.take(NAME_MAX).collect();
        let name = name.trim_matches(['-', '.']);
        if name.is_empty() { record.wallet.id.to_string() } else { name.to_owned() }
    });
    let parts = [Some(of.to_owned()), wallet, period_name(period)];
    let name: Vec<_> = parts.into_iter().flatten().collect();
    format!("{}.{}", name.join("-"), format.extension())
}

/// Month, or the first and the last day of any other period; `None` for all time.
fn period_name(Period { from, to }: Period) -> Option<String> {
    let text = |at: Timestamp, length: usize| {
        let mut text = rfc3339(at);
        text.truncate(length);
        text
    };
    let day = |at| text(at, "2026-11-01".len());
    let last = |to: Timestamp| day(Timestamp::from_micros(to.as_micros().saturating_sub(1)));
    let month = Counter::SpendMonth;
    Some(match (from, to) {
        (None, None) => return None,
        (Some(from), Some(to))
            if month.window(from) == from && month.window_end(from) == Some(to) =>
        {
            text(from, "2026-11".len())
        }
        (Some(from), Some(to)) => format!("{}-to-{}", day(from), last(to)),
        (Some(from), None) => format!("from-{}", day(from)),
        (None, Some(to)) => format!("to-{}", last(to)),
    })
}

#[cfg(test)]
mod tests {
    use holdfast_wire::api::moment;

    use super::*;

    #[test]
    fn a_period_is_named_by_its_month_or_its_days() {
        let check = |from: &str, to: &str, expected: Option<&str>| {
            let period = Period { from: moment(from), to: moment(to) };
            assert_eq!(period_name(period).as_deref(), expected);
        };
        check("2026-11-01", "2026-12-01", Some("2026-11"));
        check("2026-11-01", "2026-11-15", Some("2026-11-01-to-2026-11-14"));
        check("2026-11-01", "", Some("from-2026-11-01"));
        check("", "2026-11-01", Some("to-2026-10-31"));
        check("", "", None);
    }
}
