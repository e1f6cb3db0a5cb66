//! Payments and charges as a file for an accountant: a row for each, in units of its currency, on its day in UTC.

use holdfast_domain::Timestamp;
use holdfast_domain::admin::report::{LedgerOperation, LedgerPosting, LedgerRow};
use holdfast_domain::ledger::PostingKind;

use super::{CLOSING, FileCell, FileFormat};
use crate::api::rfc3339;

/// Names of the columns. An amount is the change of the wallet's funds: negative for a charge.
const COLUMNS: [&str; 19] = [
    "day",
    "at",
    "kind",
    "wallet",
    "wallet_external_id",
    "currency",
    "amount",
    "source",
    "external_reference",
    "reason",
    "note",
    "model",
    "api_key",
    "operation_id",
    "posting_id",
    "wallet_id",
    "api_key_id",
    "until",
    "rows",
];

/// Rows of a ledger in one format.
#[derive(Debug, Clone, Copy)]
pub struct LedgerFileRows {
    /// Format of the file.
    pub format: FileFormat,
}

impl LedgerFileRows {
    /// The columns.
    #[must_use]
    pub fn head(&self) -> String {
        self.format.head(&COLUMNS)
    }

    /// Row of a payment or a charge.
    #[must_use]
    pub fn row(&self, LedgerRow { at, wallet, amount, posting, operation }: &LedgerRow) -> String {
        let details = posting.as_ref().map(|it| &it.details);
        let reference = details.and_then(|it| it.reference.as_ref());
        let own_reason = match posting {
            Some(LedgerPosting { kind: PostingKind::Adjustment(reason), .. }) => Some(reason),
            Some(LedgerPosting { kind: PostingKind::Deposit | PostingKind::Refund(_), .. })
            | None => None,
        };
        let reason = own_reason.or_else(|| details.and_then(|it| it.reason.as_ref()));
        let of = operation.as_ref();
        let cells = [
            FileCell::text(day(*at)),
            FileCell::text(rfc3339(*at)),
            FileCell::text(posting.as_ref().map_or("charge", |it| it.kind.label())),
            FileCell::chosen(Some(&wallet.name)),
            FileCell::chosen(wallet.external_id.as_deref()),
            FileCell::text(wallet.currency),
            FileCell::text(amount),
            FileCell::chosen(reference.map(|it| it.source.as_str())),
            FileCell::chosen(reference.map(|it| it.external_reference.as_str())),
            FileCell::chosen(reason.map(String::as_str)),
            FileCell::chosen(details.and_then(|it| it.note.as_deref())),
            FileCell::chosen(of.map(|it| it.model.as_str())),
            FileCell::chosen(
                of.and_then(|LedgerOperation { api_key_name, .. }| api_key_name.as_deref()),
            ),
            FileCell::some(of.map(|it| it.id)),
            FileCell::some(posting.as_ref().map(|it| it.id)),
            FileCell::text(wallet.id),
            FileCell::some(of.map(|it| it.api_key)),
            FileCell::Nothing,
            FileCell::Nothing,
        ];
        self.format.line(&COLUMNS, cells)
    }

    /// The number of rows, and the moment up to which they are listed.
    #[must_use]
    pub fn closing(&self, until: Timestamp, rows: u64) -> String {
        let mut cells = [const { FileCell::Nothing }; COLUMNS.len()];
        let [_day, _at, kind, .., last, count] = &mut cells;
        *kind = FileCell::text(CLOSING);
        *last = FileCell::text(rfc3339(until));
        *count = FileCell::Count(rows);
        self.format.line(&COLUMNS, cells)
    }
}

/// Day of a moment in UTC.
fn day(at: Timestamp) -> String {
    let mut text = rfc3339(at);
    text.truncate("2026-11-01".len());
    text
}

#[cfg(test)]
mod tests {
    use holdfast_domain::admin::report::LedgerWallet;
    use holdfast_domain::admin::{DepositReference, PostingDetails};
    use holdfast_domain::{ApiKeyId, Micros, OperationId, PostingId, WalletId};

    use super::*;

    fn row(amount: i64) -> LedgerRow {
        LedgerRow {
            at: Timestamp::from_micros(1_793_491_199_000_000),
            wallet: LedgerWallet {
                id: WalletId::from_u128(1),
                name: "=acme".to_owned(),
                external_id: Some("cus_1".to_owned()),
                currency: "EUR".parse().unwrap(),
            },
            amount: Micros::new(amount),
            posting: None,
            operation: None,
        }
    }

    fn charge() -> LedgerRow {
        let operation = LedgerOperation {
            id: OperationId::from_u128(2),
            model: "a/b".to_owned(),
            api_key: ApiKeyId::from_u128(3),
            api_key_name: Some("ci".to_owned()),
        };
        LedgerRow { operation: Some(operation), ..row(-15) }
    }

    fn deposit() -> LedgerRow {
        let details = PostingDetails {
            reference: Some(DepositReference::new("stripe", "pi_1")),
            reason: None,
            note: Some("invoice 7".to_owned()),
        };
        let posting =
            LedgerPosting { id: PostingId::from_u128(4), kind: PostingKind::Deposit, details };
        LedgerRow { posting: Some(posting), ..row(12_500_000) }
    }

    #[test]
    fn a_csv_file_has_units_days_and_references_and_no_formula() {
        let rows = LedgerFileRows { format: FileFormat::Csv };
        let text = [rows.head(), rows.row(&deposit()), rows.row(&charge())].concat()
            + &rows.closing(Timestamp::from_micros(1_793_491_200_000_000), 2);
        assert_eq!(
            text,
            "day,at,kind,wallet,wallet_external_id,currency,amount,source,external_reference,reason,note,model,\
             api_key,operation_id,posting_id,wallet_id,api_key_id,until,rows\r\n\
             2026-10-31,2026-10-31T23:59:59.000000Z,deposit,'=acme,cus_1,EUR,12.50,stripe,pi_1,,invoice 7,,,,\
             00000000-0000-0000-0000-000000000004,00000000-0000-0000-0000-000000000001,,,\r\n\
             2026-10-31,2026-10-31T23:59:59.000000Z,charge,'=acme,cus_1,EUR,-0.000015,,,,,a/b,ci,\
             00000000-0000-0000-0000-000000000002,,00000000-0000-0000-0000-000000000001,\
             00000000-0000-0000-0000-000000000003,,\r\n\
             ,,closing,,,,,,,,,,,,,,,2026-11-01T00:00:00.000000Z,2\r\n"
        );
    }

    #[test]
    fn the_manual_describes_every_column_in_its_order() {
        let manual = include_str!("../../../../docs/how-to/make-statements-and-reports.md");
        let (_, section) = manual.split_once("\n## Columns of the accountant's file\n").unwrap();
        let (table, _) = section.split_once("\n\n| `kind` | sign of `amount`").unwrap();
        let rows = table.lines().filter_map(|line| line.strip_prefix("| `")?.split_once('`'));
        let columns: Vec<_> = rows.map(|(column, _)| column).collect();
        assert_eq!(columns, COLUMNS);
    }

    #[test]
    fn json_lines_have_the_names_as_they_are_and_the_count_last() {
        let rows = LedgerFileRows { format: FileFormat::JsonLines };
        assert_eq!(rows.head(), "");
        let line: serde_json::Value = serde_json::from_str(&rows.row(&charge())).unwrap();
        assert_eq!(line["wallet"], "=acme");
        assert_eq!(line["amount"], "-0.000015");
        assert_eq!(line["posting_id"], serde_json::Value::Null);
        let closing = rows.closing(Timestamp::from_micros(0), 2);
        assert!(
            closing.contains(r#""kind":"closing""#) && closing.contains(r#""rows":2"#),
            "{closing}"
        );
    }
}
