//! Endpoints of receipts: the signed charge of an operation, and the public keys that verify it.
//!
//! A receipt is made of the row when it is requested, so that a run costs nothing for it. It needs no content: an
//! operation whose answer was deleted, or is sealed under another credential, has the same receipt. Public keys are
//! for everybody who is shown a receipt, and need no API key.

use holdfast_domain::ErrorChain;
use holdfast_domain::admin::report::HolderReports;
use holdfast_domain::operation::Phase;
use holdfast_engine::{Caller, Engine};
use holdfast_receipts::DocumentKind;
use holdfast_receipts::charge::Charge;
use holdfast_receipts::key::Signer;
use holdfast_wire::api::render;
use holdfast_wire::error::Code;
use http::StatusCode;

use crate::headers;
use crate::log::RequestLog;
use crate::problem::Problem;
use crate::reply::{HttpResponse, json};
use crate::resources::{about_operation, internal, unavailable};

const NOT_RUN: &str = "The operation under this Idempotency-Key has proven not to run, and may run again: nothing was \
                       charged, and there is no receipt before it ends.";

/// A request for a receipt: its caller, and the parts that make one.
#[derive(Debug)]
pub(crate) struct ReceiptCall<'a> {
    pub(crate) caller: &'a Caller,
    pub(crate) engine: &'a Engine,
    pub(crate) reports: &'a dyn HolderReports,
    pub(crate) signer: &'a Signer,
}

/// `GET /v1/operations/{idempotency-key}/receipt`
pub(crate) async fn receipt(
    ReceiptCall { caller, engine, reports, signer }: ReceiptCall<'_>,
    key: &str,
    log: &mut RequestLog,
) -> Result<HttpResponse, Problem> {
    let request_key = headers::request_key_of_path(key)?;
    let found = engine.operation(caller, request_key).await;
    let (operation, issued_at) = found.map_err(|error| about_operation(&error))?;
    log.facts.operation = Some(operation.id);
    log.facts.phase = Some(operation.phase.label());
    let charge = match &operation.phase {
        Phase::Leased => return Err(Problem::bound(Code::OperationInProgress, operation.id)),
        Phase::Recorded(usage) => {
            let charged = Some(usage.charge);
            return Err(Problem {
                charged,
                ..Problem::bound(Code::StorageUnavailable, operation.id)
            });
        }
        Phase::Open => {
            return Err(Problem { message: NOT_RUN.into(), ..Problem::new(Code::NotFound) });
        }
        Phase::Completed { .. } | Phase::Refused { .. } | Phase::Abandoned { .. } => {
            Charge::of(&operation)
        }
    };
    let charge = charge.ok_or_else(|| internal(operation.id))?;
    let refunded = reports.refunded(operation.id).await;
    let refunded = refunded.map_err(|error| unavailable(&error))?;
    let signed = signer.sign(DocumentKind::Receipt, charge.receipt(refunded, issued_at));
    let signed = signed.map_err(|error| {
        let error = ErrorChain(&error);
        tracing::error!(operation.id = %operation.id, %error, "a receipt was not signed");
        internal(operation.id)
    })?;
    Ok(json(StatusCode::OK, render(&signed)))
}

/// `GET /v1/receipts/keys`
pub(crate) fn keys(signer: &Signer) -> HttpResponse {
    json(StatusCode::OK, render(&signer.keys_document()))
}
