//! Transfers of a batch, written after all its rows of operations, many by one statement.
//!
//! A transfer is five integers: to open its table and to end a statement costs SQLite more than the row itself. So
//! rows are gathered over the batch and written in groups of 16, 8, 4, 2 and 1, each by a statement of that size.
//! Rows with many columns do not gain by this: SQLite copies each value once more for a statement of several rows.
//!
//! A row that is gathered is written before COMMIT or undone with its batch, never later.

use holdfast_domain::Timestamp;
use rusqlite::Statement;

/// Rows of each statement, largest first. The last is one, so that every number of rows is a sum of them.
const SIZES: [usize; 5] = [16, 8, 4, 2, 1];

/// A row of `transfers`; its moment is the batch's.
#[derive(Debug, Clone, Copy)]
pub(super) struct TransferRow {
    pub(super) seq: i64,
    pub(super) leg: i64,
    pub(super) amount: i64,
    pub(super) number: i64,
}

/// Gathered rows, and the statements that write them.
#[derive(Debug)]
pub(super) struct Transfers<'c> {
    rows: Vec<TransferRow>,
    statements: Vec<(usize, Statement<'c>)>,
}

impl<'c> Transfers<'c> {
    pub(super) fn prepared(
        prepare: &mut impl FnMut(&str) -> rusqlite::Result<Statement<'c>>,
    ) -> rusqlite::Result<Self> {
        let statements = SIZES.into_iter().map(|size| Ok((size, prepare(&insert(size))?)));
        let statements = statements.collect::<rusqlite::Result<_>>()?;
        Ok(Self { rows: Vec::new(), statements })
    }

    pub(super) fn add(&mut self, row: TransferRow) {
        self.rows.push(row);
    }

    pub(super) fn len(&self) -> usize {
        self.rows.len()
    }

    pub(super) fn clear(&mut self) {
        self.rows.clear();
    }

    /// Writes the gathered rows with this moment. Returns the number of statements and of rows written.
    pub(super) fn write(&mut self, now: Timestamp) -> rusqlite::Result<(u64, usize)> {
        let (mut run, mut written) = (0, 0);
        let mut rest = self.rows.as_slice();
        for (size, statement) in &mut self.statements {
            while let Some((group, others)) = rest.split_at_checked(*size) {
                written += insert_group(statement, now, group)?;
                run += 1;
                rest = others;
            }
        }
        self.rows.clear();
        Ok((run, written))
    }
}

fn insert_group(
    statement: &mut Statement<'_>,
    now: Timestamp,
    group: &[TransferRow],
) -> rusqlite::Result<usize> {
    statement.raw_bind_parameter(1, now.as_micros())?;
    for (at, TransferRow { seq, leg, amount, number }) in group.iter().enumerate() {
        for (column, value) in [seq, leg, amount, number].into_iter().enumerate() {
            statement.raw_bind_parameter(at * 4 + column + 2, *value)?;
        }
    }
    statement.raw_execute()
}

/// An INSERT of so many rows: the moment is its first parameter, then four for each row.
///
/// FAIL, because ABORT of several rows has SQLite copy each page first that it changes: whatever fails here ends with
/// its transaction.
fn insert(rows: usize) -> String {
    let row = |at: usize| {
        let [seq, leg, amount, number] = [2, 3, 4, 5].map(|column| at * 4 + column);
        format!("(?{seq}, ?{leg}, ?{amount}, ?1, ?{number})")
    };
    let rows: Vec<_> = (0..rows).map(row).collect();
    let into = "INSERT OR FAIL INTO transfers (op_seq, leg, amount, created_at, number) VALUES";
    format!("{into} {}", rows.join(", "))
}

#[cfg(test)]
mod tests {
    use rusqlite::Connection;

    use super::*;

    #[test]
    fn every_number_of_rows_is_written_once() {
        let connection = Connection::open_in_memory().unwrap();
        let table = "CREATE TABLE transfers (op_seq, leg, amount, created_at, number,
            PRIMARY KEY (op_seq, leg)) WITHOUT ROWID";
        connection.execute_batch(table).unwrap();
        let mut transfers = Transfers::prepared(&mut |sql| connection.prepare(sql)).unwrap();
        for rows in 0..70_i64 {
            for seq in 0..rows {
                transfers.add(TransferRow { seq, leg: rows, amount: 3, number: seq });
            }
            let (run, written) = transfers.write(Timestamp::from_micros(rows)).unwrap();
            assert_eq!(i64::try_from(written), Ok(rows));
            assert_eq!(run, (rows / 16).unsigned_abs() + u64::from((rows % 16).count_ones()));
            let kept =
                "SELECT count(*) FROM transfers WHERE leg = ?1 AND created_at = ?1 AND amount = 3
                AND number = op_seq";
            let kept: i64 = connection.query_row(kept, [rows], |row| row.get(0)).unwrap();
            assert_eq!(kept, rows);
        }
    }
}
