//! `holdfast ledger export`: every payment and every charge of a period, as the API writes them. `holdfast ledger
//! roots`: the signed roots of the ledger.
//!
//! The file is the server's, with its closing row; no row is added up or left out here.

use holdfast_wire::api::rfc3339;
use holdfast_wire::file::FileFormat;

use super::resource_view::given;
use super::{CommandContext, wallet};
use crate::arguments::LedgerExport;
use crate::arguments::read::Rows;
use crate::failure::Result;
use crate::file_output::FileOutput;
use crate::output::{Output, note};
use crate::table::{Column, Table};
use crate::view::{member, text};

/// Columns of the list of roots: members of the signed document.
const ROOTS: &[Column] = &[
    Column::number("number"),
    Column::moment("from").second(),
    Column::moment("to"),
    Column::number("leaves"),
    Column::text("root"),
    Column::moment("signed_at").third(),
];

/// Lists the signed roots.
pub(super) async fn roots(context: &CommandContext<'_>, rows: &Rows) -> Result {
    let table = Table::new(context.output, &rows.columns, ROOTS)?;
    let count = usize::try_from(rows.limit).unwrap_or(usize::MAX);
    let listed = context.client.list("/receipts/roots", &[], Some(count)).await;
    let listed = listed.map_err(|error| error.because("the roots were not listed"))?;
    table.print(&listed.rows, &listed.rows, |row, name| text(member(row, "root"), name))?;
    if listed.is_cut {
        note(&format!("only the newest {count} are shown: there are more, --limit N shows N"));
    }
    Ok(())
}

/// Writes the file.
pub(super) async fn export(context: &CommandContext<'_>, order: LedgerExport) -> Result {
    let LedgerExport { period, wallet, format, output } = order;
    let period = period.period()?;
    let [from, to] = [period.from, period.to].map(|bound| bound.map(rfc3339));
    let wallet = wallet::id_of(context, wallet.as_ref()).await?;
    let query = [("wallet_id", wallet), ("from", from), ("to", to)];
    // With --json each line is JSON.
    let format =
        if matches!(context.output, Output::Json) { FileFormat::JsonLines } else { format.into() };
    let file = FileOutput::create(output.as_deref(), format)?;
    context.client.download(("/ledger", &given(&query)), file, "the ledger was not read").await?;
    Ok(())
}
