//! The statement of a wallet as an export: entries in their order, which is neither that of operations nor that of
//! postings. Each part of the two tables is counted beforehand, with the place of its first entry, and the parts
//! are read in the order of these places:
//!
//! ```text
//! parts by their first entries    [12 … 31]   [30 … 95]   [90 … 140]
//! read the first part          -> entries 12 … 31 in a heap; those before 30 go out
//! read the second one          -> entries 30 … 95 join them; those before 90 go out
//! ```
//!
//! So the heap holds only entries that ended after later operations began, and the order is exact, whatever the
//! clock did.
//!
//! The last number of the wallet that a first pass finds is the end of the export. Entries get their numbers under
//! the wallet's lock: a snapshot with that entry has all before it, and none of them changes any more. Entries of the
//! oldest releases have no number: they come first, by moment.

use std::cmp::{Ordering, Reverse};
use std::collections::{BinaryHeap, VecDeque};

use async_trait::async_trait;
use holdfast_domain::admin::listing::Period;
use holdfast_domain::admin::report::{
    EXPORT_PAGE, ExportError, ExportPages, StatementBalance, StatementEntry, StatementExport,
    StatementLine,
};
use holdfast_domain::ports::Unavailable;
use holdfast_domain::{Micros, WalletId};
use sea_orm::{QueryResult, Value};

use super::{ExportReader, ExportedTable, Part, TableScan};
use crate::error::unavailable;
use crate::reading::statement::{EntryBounds, line, values};
use crate::rows::{BadRow, Cells};

/// Source of the entries of operations; `t` is the entry.
macro_rules! operations {
    () => {
        "FROM operations AS o JOIN transfers AS t ON t.op_seq = o.seq WHERE o.wallet_id = $1"
    };
}

/// Source of the entries that are postings; `t` is the entry.
macro_rules! postings {
    () => {
        "FROM postings AS t WHERE t.wallet_id = $1"
    };
}

/// The last numbers with a moment before each end of a period, in one part.
macro_rules! bounds {
    ($of:ident, $seq:literal) => {
        concat!(
            "SELECT max(t.number) FILTER (WHERE t.created_at < $2), max(t.number) FILTER (WHERE t.created_at < $3) ",
            $of!(), " AND ", $seq, " > $4 AND ", $seq, " <= $5"
        )
    };
}

/// Condition: an entry is in the period, by its number, or by its moment if it has none.
macro_rules! in_span {
    () => {
        "CASE WHEN t.number IS NULL THEN t.created_at >= $2 AND t.created_at < $3
         ELSE t.number > $4 AND t.number <= $5 END"
    };
}

/// Balance before the period, balance of the period, number of its entries, and the places of the first ones, in one
/// part.
macro_rules! sums {
    ($available:literal, $held:literal, $of:ident, $seq:literal) => {
        concat!(
            "SELECT CAST(coalesce(sum(available) FILTER (WHERE is_in = 0), 0) AS bigint),
                CAST(coalesce(sum(held) FILTER (WHERE is_in = 0), 0) AS bigint),
                CAST(coalesce(sum(available) FILTER (WHERE is_in = 1), 0) AS bigint),
                CAST(coalesce(sum(held) FILTER (WHERE is_in = 1), 0) AS bigint),
                count(*) FILTER (WHERE is_in = 1),
                min(at) FILTER (WHERE is_in = 1 AND number IS NULL), min(number) FILTER (WHERE is_in = 1)
             FROM (SELECT t.number AS number, t.created_at AS at, ", $available, " AS available, ", $held, " AS held,
                CASE WHEN CASE WHEN t.number IS NULL THEN t.created_at >= $2 ELSE t.number > $4 END
                    THEN 1 ELSE 0 END AS is_in ",
            $of!(), " AND ", $seq, " > $6 AND ", $seq, " <= $7
                AND CASE WHEN t.number IS NULL THEN t.created_at < $3 ELSE t.number <= $5 END) AS l"
        )
    };
}

/// Balance of a wallet, as a sum of changes.
type Sums = [i64; 2];

impl ExportedTable {
    const fn bounds(self) -> &'static str {
        match self {
            Self::Operations => bounds!(operations, "o.seq"),
            Self::Postings => bounds!(postings, "t.seq"),
        }
    }

    const fn sums(self) -> &'static str {
        match self {
            Self::Operations => sums!(
                "CASE t.leg & 7 WHEN 0 THEN -t.amount WHEN 1 THEN 0 ELSE t.amount END",
                "CASE t.leg & 7 WHEN 0 THEN t.amount ELSE -t.amount END",
                operations,
                "o.seq"
            ),
            Self::Postings => sums!("t.amount", "CAST(0 AS bigint)", postings, "t.seq"),
        }
    }

    /// Entries of a part as [`line`] reads them, with the number of their rows, from a row and a leg on.
    const fn lines(self) -> &'static str {
        match self {
            Self::Operations => concat!(
                "SELECT t.created_at, coalesce(t.number, 0), CAST(1 AS bigint), t.leg, t.amount, o.id,
                 NULL, NULL, NULL, o.model, o.api_key_id, k.name, o.seq
                 FROM operations AS o JOIN transfers AS t ON t.op_seq = o.seq
                 LEFT JOIN api_keys AS k ON k.id = o.api_key_id
                 WHERE o.wallet_id = $1 AND o.seq >= $6 AND o.seq <= $7 AND (o.seq > $6 OR t.leg > $8) AND ",
                in_span!(),
                " ORDER BY o.seq, t.leg LIMIT $9"
            ),
            // A posting has one entry: the leg only passes over the one that was read last.
            Self::Postings => concat!(
                "SELECT t.created_at, coalesce(t.number, 0),
                 CAST(CASE t.kind WHEN 'refund' THEN 2 ELSE 0 END AS bigint), CAST(0 AS bigint), t.amount, t.id,
                 t.kind, t.operation_id, t.reason, NULL, NULL, NULL, t.seq ",
                postings!(),
                " AND t.seq >= $6 AND t.seq <= $7 AND (t.seq > $6 OR 0 > $8) AND ",
                in_span!(),
                " ORDER BY t.seq LIMIT $9"
            ),
        }
    }
}

/// Place of an entry among those of its wallet: number, moment, what comes first of one moment, row and leg.
type LinePlace = (i64, i64, i64, i64, i64);

/// An entry in the heap.
struct PlacedLine(LinePlace, StatementLine);

impl PartialEq for PlacedLine {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}

impl Eq for PlacedLine {}

impl PartialOrd for PlacedLine {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for PlacedLine {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.cmp(&other.0)
    }
}

/// A part that has entries of the period.
#[derive(Debug, Clone, Copy)]
struct PlannedPart {
    part: Part,
    /// Number and moment of its first entry; no entry of it comes before them.
    first: (i64, i64),
    /// Row and leg that were read last.
    read: (i64, i64),
}

/// Entries of a statement, a page at a time.
pub(in crate::reading) struct StatementPages {
    reader: ExportReader,
    /// The binds of a span.
    span: [Value; 5],
    parts: VecDeque<PlannedPart>,
    heap: BinaryHeap<Reverse<PlacedLine>>,
    balance: StatementBalance,
    closing: StatementBalance,
    left: u64,
}

impl StatementPages {
    /// Finds ends, opening balance, rows and closing balance of the statement.
    pub(in crate::reading) async fn begin(
        reader: ExportReader,
        wallet: WalletId,
        period: Period,
        rows_max: u64,
    ) -> Result<StatementExport, ExportError> {
        let now = reader.now().await?;
        let until = period.to.map(|to| to.min(now));
        let (parts, bounds) = bounds(&reader, wallet, period).await?;
        let [id, from, to, above, up_to, _limit] = values(wallet, bounds, 0);
        let span = [id, from, to, above, up_to];
        let (mut planned, mut opening, mut moved, mut rows) = (Vec::new(), [0; 2], [0; 2], 0_u64);
        for part in parts {
            let sums = part_sums(&reader, &span, part).await?;
            opening = added(opening, sums.before)?;
            moved = added(moved, sums.within)?;
            rows = rows.saturating_add(sums.rows);
            if let Some(first) = sums.first {
                // The row before the part counts as read with every leg: it belongs to the part
                // before.
                planned.push(PlannedPart { part, first, read: (part.after, i64::MAX) });
            }
        }
        if rows > rows_max {
            return Err(ExportError::TooManyRows { rows, rows_max });
        }
        // `take_settled` compares with the first part only: it must be the one with the earliest
        // entry.
        planned.sort_by_key(|it| it.first);
        let closing = balance(added(opening, moved)?);
        let opening = balance(opening);
        let pages = Self {
            reader,
            span,
            parts: planned.into(),
            heap: BinaryHeap::new(),
            balance: opening,
            closing,
            left: rows,
        };
        Ok(StatementExport { opening, closing, until, rows, pages: Box::new(pages) })
    }

    /// Entries that come before every entry of an unread part.
    fn take_settled(&mut self) -> Result<Vec<StatementEntry>, Unavailable> {
        let mut page = Vec::new();
        let most = usize::try_from(EXPORT_PAGE).unwrap_or(usize::MAX);
        while page.len() < most
            && let Some(Reverse(PlacedLine((number, at, ..), _))) = self.heap.peek()
            && self.parts.front().is_none_or(|next| (*number, *at) < next.first)
            && let Some(Reverse(PlacedLine(_, line))) = self.heap.pop()
        {
            let StatementLine { place, transfer, posted, operation } = line;
            let after = self.balance.after(&transfer).ok_or_else(not_as_counted)?;
            self.balance = after;
            page.push(StatementEntry { place, transfer, posted, operation, after });
        }
        let count = u64::try_from(page.len()).unwrap_or(u64::MAX);
        self.left = self.left.checked_sub(count).ok_or_else(not_as_counted)?;
        Ok(page)
    }

    /// Reads the next entries of the first part into the heap.
    async fn read_on(&mut self) -> Result<(), Unavailable> {
        let Some(mut planned) = self.parts.front().copied() else { return Ok(()) };
        let Part { table, up_to, .. } = planned.part;
        let [id, from, to, above, last] = self.span.clone();
        let (seq, leg) = planned.read;
        let limit = i64::from(EXPORT_PAGE).into();
        let binds = [id, from, to, above, last, seq.into(), up_to.into(), leg.into(), limit];
        let rows = self.reader.query(table.lines(), binds).await?;
        for row in &rows {
            let (place, line) = placed(row).map_err(unavailable)?;
            planned.read = (place.3, place.4);
            self.heap.push(Reverse(PlacedLine(place, line)));
        }
        self.parts.pop_front();
        // Back to the front: no entry of a part goes out before all of it is read.
        if u32::try_from(rows.len()).is_ok_and(|count| count >= EXPORT_PAGE) {
            self.parts.push_front(planned);
        }
        Ok(())
    }
}

#[async_trait]
impl ExportPages<StatementEntry> for StatementPages {
    async fn next_page(&mut self) -> Result<Option<Vec<StatementEntry>>, Unavailable> {
        loop {
            let page = self.take_settled()?;
            if !page.is_empty() {
                return Ok(Some(page));
            }
            if self.parts.is_empty() {
                break;
            }
            self.read_on().await?;
        }
        // An export is never cut: entries that are gone since the count are an error, not a shorter
        // file.
        if self.left > 0 || self.balance != self.closing {
            return Err(not_as_counted());
        }
        Ok(None)
    }
}

/// The parts of both tables, and the bounds of the period by the numbers that they have.
async fn bounds(
    reader: &ExportReader,
    wallet: WalletId,
    period: Period,
) -> Result<(Vec<Part>, EntryBounds), Unavailable> {
    let (from, to) = period.bounds();
    let (mut parts, mut above, mut up_to) = (Vec::new(), 0, 0);
    for table in [ExportedTable::Operations, ExportedTable::Postings] {
        let mut scan = TableScan::of_wallet(table, wallet);
        while let Some(part) = scan.next(reader).await? {
            let [id, ..] = values(wallet, EntryBounds::NONE, 0);
            let binds = [id, from.into(), to.into(), part.after.into(), part.up_to.into()];
            let numbers = |cells: &mut Cells<'_>| Ok((cells.opt_int()?, cells.opt_int()?));
            let (before, within) = reader.row(table.bounds(), binds, numbers).await?;
            above = before.unwrap_or(0).max(above);
            up_to = within.unwrap_or(0).max(up_to);
            parts.push(part);
        }
    }
    Ok((parts, EntryBounds::of(period, (above, up_to))))
}

/// Sums of one part.
struct PartSums {
    before: Sums,
    within: Sums,
    rows: u64,
    first: Option<(i64, i64)>,
}

async fn part_sums(
    reader: &ExportReader,
    span: &[Value; 5],
    Part { table, after, up_to }: Part,
) -> Result<PartSums, Unavailable> {
    let [id, from, to, above, last] = span.clone();
    let binds = [id, from, to, above, last, after.into(), up_to.into()];
    let read = |cells: &mut Cells<'_>| {
        let before = [cells.int()?, cells.int()?];
        let within = [cells.int()?, cells.int()?];
        let rows = cells.small()?;
        let (at, number) = (cells.opt_int()?, cells.opt_int()?);
        // Entries without a number come first.
        let first = at.map(|at| (0, at)).or_else(|| number.map(|number| (number, i64::MIN)));
        Ok(PartSums { before, within, rows, first })
    };
    reader.row(table.sums(), binds, read).await
}

/// Reads a row of [`ExportedTable::lines`].
fn placed(row: &QueryResult) -> Result<(LinePlace, StatementLine), BadRow> {
    let mut cells = Cells::new(row);
    let (at, number, order, leg) = (cells.int()?, cells.int()?, cells.int()?, cells.int()?);
    cells.skip(8);
    Ok(((number, at, order, cells.int()?, leg), line(row)?))
}

fn balance([available, held]: Sums) -> StatementBalance {
    StatementBalance { available: Micros::new(available), held: Micros::new(held) }
}

fn added(one: Sums, other: Sums) -> Result<Sums, Unavailable> {
    let [(a, b), (c, d)] = [(one[0], other[0]), (one[1], other[1])];
    let sums = a.checked_add(b).zip(c.checked_add(d));
    sums.map(|(available, held)| [available, held]).ok_or_else(not_as_counted)
}

/// Entries that are not those that were counted.
#[derive(Debug, thiserror::Error)]
#[error("the entries of an export are not those that were counted: run `holdfast ledger verify`")]
struct ChangedEntries;

fn not_as_counted() -> Unavailable {
    unavailable(ChangedEntries)
}
