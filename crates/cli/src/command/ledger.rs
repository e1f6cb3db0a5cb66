//! `holdfast ledger export`: every payment and every charge of a period, as the API writes them.
//!
//! The file is the server's, with its closing row; no row is added up or left out here.

use holdfast_wire::api::rfc3339;
use holdfast_wire::file::FileFormat;

use super::resource_view::given;
use super::{CommandContext, wallet};
use crate::arguments::LedgerExport;
use crate::failure::Result;
use crate::file_output::FileOutput;
use crate::output::Output;

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
