//! Wallets, a page by their numbers, compared with the sums of all their movements: postings, the transfers of
//! their operations, and the holds of running ones. The database sums; no transfer leaves it.
//!
//! Each page is one snapshot, in which a wallet's row and its sums fit each other whatever is written meanwhile.
//! Sums go by the index of a wallet's operations, so that SQLite, which sorts in memory, sorts only running
//! operations.

use std::collections::BTreeMap;

use holdfast_domain::WalletId;
use holdfast_domain::ledger::{Account, TransferKind};

use super::{PageBounds, id, number, report_gap, tracked, wide, wide_sum};
use crate::audit::verify::{Subject, Verification, wallet_mismatches};
use crate::reading::{ReadError, ReadTransaction};
use crate::rows::{self, BadRow, Cells};
use crate::schema::Dialect;

/// Wallets read at once.
const PAGE: usize = 500;

/// Every kind of transfer: sums are of all of them.
const KINDS: [TransferKind; 5] = [
    TransferKind::Hold,
    TransferKind::Settle,
    TransferKind::Rest,
    TransferKind::Release,
    TransferKind::Lapse,
];

/// Sums of a wallet, in micros.
#[derive(Debug, Default)]
struct WalletSums {
    available: i128,
    held: i128,
    /// Holds of what runs, by its phase and not by its transfers: both must come to the same.
    active: i128,
    numbers: NumberSums,
}

/// Numbers of a wallet's entries, of those that have one.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct NumberSums {
    count: i64,
    last: i64,
    sum: i128,
}

impl NumberSums {
    /// True if so many different numbers from 1 to this one can make these sums.
    fn are_within(self, entries: i64) -> bool {
        // In 128 bits: the product of two counts may not fit into 64.
        let (count, last) = (i128::from(self.count), i128::from(entries));
        let first_ones = count * (count + 1) / 2;
        let last_ones = count * last - count * (count - 1) / 2;
        count <= last && self.last <= entries && (first_ones..=last_ones).contains(&self.sum)
    }

    fn add(&mut self, other: Self) {
        self.count = self.count.saturating_add(other.count);
        self.last = self.last.max(other.last);
        self.sum += other.sum;
    }

    fn read(cells: &mut Cells<'_>) -> Result<Self, BadRow> {
        Ok(Self { count: cells.int()?, last: cells.int()?, sum: wide(cells)? })
    }
}

/// Text of [`NumberSums`].
fn number_sums() -> String {
    let sum = wide_sum("t.number");
    format!("count(t.number), coalesce(max(t.number), 0), {sum}")
}

pub(super) async fn check(
    db: &ReadTransaction,
    PageBounds { after, until, .. }: PageBounds,
    found: &mut Verification,
) -> Result<Option<i64>, ReadError> {
    let sql = format!(
        "SELECT w.seq, {}, {} FROM wallets AS w
         WHERE w.seq > $1 AND w.seq <= $2 ORDER BY w.seq LIMIT $3",
        rows::WALLET,
        // Only a file's wallets count their entries: a server numbers those of all wallets together.
        match db.dialect() {
            Dialect::Sqlite => "w.entries",
            Dialect::Postgres => "CAST(NULL AS bigint)",
        }
    );
    let limit = i64::try_from(PAGE).unwrap_or(i64::MAX);
    let page = db.query(&sql, [after.into(), until.into(), limit.into()]).await?;
    let last = page.last().map(number).transpose()?.unwrap_or(after);
    tracked::check_wallets(db, [after, last], found).await?;
    let mut sums = sums(db, after, last).await?;
    let mut before = after;
    for row in &page {
        let seq = number(row)?;
        report_gap(db, found, "wallets", [before, seq]);
        before = seq;
        found.wallets += 1;
        let subject = Subject::Wallet(id(row, 1, WalletId::from_bytes)?);
        let mut cells = Cells::new(row);
        cells.skip(1);
        match rows::wallet(&mut cells).and_then(|wallet| Ok((wallet, cells.opt_int()?))) {
            Ok((wallet, entries)) => {
                let WalletSums { available, held, active, numbers } =
                    sums.remove(&seq).unwrap_or_default();
                if entries.is_some_and(|entries| !numbers.are_within(entries)) {
                    found.report(subject, "its entries have other numbers than its row counts");
                }
                let balance = [wallet.available, wallet.held];
                for sentence in wallet_mismatches(balance, [available, held], active) {
                    found.report(subject, sentence);
                }
            }
            Err(error) => found.unreadable(subject, &error),
        }
    }
    Ok((page.len() == PAGE).then_some(before))
}

/// Sums of the wallets with these numbers, of those that have moved.
async fn sums(
    db: &ReadTransaction,
    after: i64,
    last: i64,
) -> Result<BTreeMap<i64, WalletSums>, ReadError> {
    let mut sums: BTreeMap<i64, WalletSums> = BTreeMap::new();
    for row in db.query(&transfers(), [after.into(), last.into()]).await? {
        let mut cells = Cells::new(&row);
        let mut read = || {
            let (seq, available, held) = (cells.int()?, wide(&mut cells)?, wide(&mut cells)?);
            Ok::<_, BadRow>((seq, available, held, NumberSums::read(&mut cells)?))
        };
        let (seq, available, held, numbers) = read().map_err(ReadError::Row)?;
        let of = sums.entry(seq).or_default();
        (of.available, of.held, of.numbers) = (available, held, numbers);
    }
    for row in db.query(&postings(), [after.into(), last.into()]).await? {
        let mut cells = Cells::new(&row);
        let (seq, amount) = sum(&mut cells)?;
        let numbers = NumberSums::read(&mut cells).map_err(ReadError::Row)?;
        let of = sums.entry(seq).or_default();
        of.available += amount;
        of.numbers.add(numbers);
    }
    for row in db.query(&active(db), [after.into(), last.into()]).await? {
        let (seq, amount) = sum(&mut Cells::new(&row))?;
        sums.entry(seq).or_default().active = amount;
    }
    Ok(sums)
}

fn sum(cells: &mut Cells<'_>) -> Result<(i64, i128), ReadError> {
    let mut read = || Ok::<_, BadRow>((cells.int()?, wide(cells)?));
    read().map_err(ReadError::Row)
}

/// Text of the sums over transfers. CROSS JOIN: SQLite takes tables in this order then, and finds the
/// rows of each wallet together.
fn transfers() -> String {
    let [available, held] = [Account::Available, Account::Held].map(|account| {
        // Half by half: the product of a whole amount may not fit if it is the lowest of all.
        let sign = sign(account);
        format!(
            "CAST(sum((t.amount >> 32) * {sign}) AS bigint),
             CAST(sum((t.amount & 4294967295) * {sign}) AS bigint)"
        )
    });
    format!(
        "SELECT w.seq, {available}, {held}, {}
         FROM wallets AS w CROSS JOIN operations AS o CROSS JOIN transfers AS t
         WHERE w.seq > $1 AND w.seq <= $2 AND o.wallet_id = w.id AND t.op_seq = o.seq
         GROUP BY w.seq",
        number_sums()
    )
}

/// Expression for the sign with which a transfer moves an account, by its leg: the domain defines it for each kind.
fn sign(account: Account) -> String {
    let signs = KINDS.map(|kind| {
        let sign = match kind.accounts() {
            (debit, _credit) if debit == account => -1,
            (_debit, credit) if credit == account => 1,
            (_debit, _credit) => 0,
        };
        format!("WHEN {} THEN {sign}", rows::leg(0, kind))
    });
    format!("CASE t.leg & 7 {} ELSE 0 END", signs.join(" "))
}

fn postings() -> String {
    format!(
        "SELECT w.seq, {}, {} FROM wallets AS w CROSS JOIN postings AS t
         WHERE w.seq > $1 AND w.seq <= $2 AND t.wallet_id = w.id GROUP BY w.seq",
        wide_sum("t.amount"),
        number_sums()
    )
}

fn active(db: &ReadTransaction) -> String {
    format!(
        "SELECT w.seq, {} FROM operations AS o CROSS JOIN wallets AS w
         WHERE {} AND w.id = o.wallet_id AND w.seq > $1 AND w.seq <= $2 GROUP BY w.seq",
        wide_sum("o.hold"),
        db.dialect().is_running("o")
    )
}
