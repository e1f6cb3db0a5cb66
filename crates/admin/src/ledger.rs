//! `/ledger`: every payment and every charge of a period in one file, of one wallet or of all, for an accountant.
//!
//! A row counts at the moment at which it was booked. Reports of usage count a charge, and its refunds with it, in the
//! hour in which the request finished: `/usage`.

use holdfast_accounts::Reference;
use holdfast_domain::admin::listing::Period;
use holdfast_wire::file::FileFormat;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;

use crate::csv::ReportAnswer;
use crate::description::Errors;
use crate::error::Problem;
use crate::export::ledger_file;
use crate::request::{Caller, Params};
use crate::value::{Moment, parse_some};

/// Format of the file.
#[derive(Debug, Clone, Copy, Deserialize, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum LedgerFormat {
    Csv,
    /// JSON lines: an object for each row.
    Jsonl,
}

/// Period and wallet of a file.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct LedgerParams {
    /// Payments and charges of this wallet; of all wallets if absent.
    #[param(format = "uuid")]
    wallet_id: Option<String>,
    /// First moment of the period; the beginning of the ledger if absent.
    #[param(inline)]
    from: Option<Moment>,
    /// The moment after the period; now if absent.
    #[param(inline)]
    to: Option<Moment>,
    /// Format of the file; `csv` if absent.
    #[param(inline)]
    format: Option<LedgerFormat>,
}

#[utoipa::path(
    get, path = "/ledger", operation_id = "export_ledger", tag = "reports", params(LedgerParams),
    responses(
        (
            status = 200,
            description = "All rows as a file, whose last row is `closing` with their number.",
            content((String = "text/csv"), (String = "application/jsonl")),
        ),
        Errors,
    )
)]
/// Exports every payment and every charge of a period: amounts in units, references, names of wallets and API keys. A
/// row counts on the day on which it was booked, in UTC.
pub(crate) async fn export(
    caller: Caller,
    Params(params): Params<LedgerParams>,
) -> Result<ReportAnswer<()>, Problem> {
    let wallet: Option<Uuid> = parse_some("wallet_id", params.wallet_id.as_deref())?;
    let wallet = wallet.map(Reference::Id);
    let [from, to] = [params.from, params.to].map(|bound| bound.map(|Moment(at)| at));
    let format = match params.format {
        None | Some(LedgerFormat::Csv) => FileFormat::Csv,
        Some(LedgerFormat::Jsonl) => FileFormat::JsonLines,
    };
    let (principal, period) = (&caller.principal, Period { from, to });
    let file = caller.accounts().export_ledger(principal, wallet.as_ref(), period).await?;
    Ok(ReportAnswer::File(ledger_file(file, format)))
}
