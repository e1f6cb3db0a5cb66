//! `holdfast receipt verify`: a receipt against public keys, by two files only.
//!
//! A file that cannot be read, or is something else, is wrong usage (2); a receipt that is not genuine is a failure
//! (1). A script that pays invoices must not take one for the other.

use std::fs;
use std::path::Path;

use anyhow::{Context, anyhow};
use holdfast_domain::Micros;
use holdfast_receipts::DocumentKind;
use holdfast_receipts::verification::{TrustedKeys, VerificationError, check_bill};
use serde_json::{Value, json};

use crate::failure::{CommandFailure, Refusal, Result};
use crate::output::Output;

/// Code of a receipt that is not genuine.
const NOT_GENUINE: &str = "not_genuine";

pub(super) fn verify(output: Output, file: &Path, keys: &Path) -> Result {
    let keys = TrustedKeys::parse(&read(keys)?).with_context(|| keys.display().to_string());
    let keys = keys.map_err(CommandFailure::Usage)?;
    let signed =
        serde_json::from_slice(&read(file)?).context(format!("{} is not JSON", file.display()));
    let signed: Value = signed.map_err(CommandFailure::Usage)?;
    let receipt = keys.verify(DocumentKind::Receipt, &signed).map_err(|error| match error {
        VerificationError::Shape(_) => {
            CommandFailure::Usage(anyhow!("{}: {error}", file.display()))
        }
        VerificationError::Algorithm
        | VerificationError::UnknownKey(_)
        | VerificationError::Document(_)
        | VerificationError::Signature(_) => Refusal::failed(NOT_GENUINE, error.to_string()),
    })?;
    check_bill(receipt).map_err(|error| Refusal::failed(NOT_GENUINE, error.to_string()))?;
    let key_id = text(&signed, "/signature/key_id");
    let view = json!({ "genuine": true, "key_id": key_id, "receipt": receipt });
    let [charge, refunded] = ["/charge/charge_micros", "/refunded_micros"].map(|place| {
        // Any digits are signed, also those of an amount that no ledger has.
        let micros = text(receipt, place).parse().map(|micros| Micros::new(micros).to_string());
        let amount = micros.unwrap_or_else(|_too_long| format!("{} micros", text(receipt, place)));
        format!("{amount} {}", text(receipt, "/charge/currency"))
    });
    output.object(
        &view,
        &[
            ("genuine", format!("yes, signed by key {key_id}")),
            ("operation", text(receipt, "/charge/operation_id").to_owned()),
            ("status", text(receipt, "/charge/status").to_owned()),
            ("model", text(receipt, "/charge/model").to_owned()),
            ("price version", text(receipt, "/charge/price_version").to_owned()),
            ("charge", charge),
            ("refunded", refunded),
            ("finished", text(receipt, "/charge/finished_at").to_owned()),
            ("issued", text(receipt, "/issued_at").to_owned()),
        ],
    )
}

fn read(file: &Path) -> Result<Vec<u8>> {
    let read = fs::read(file).with_context(|| format!("{} cannot be read", file.display()));
    read.map_err(CommandFailure::Usage)
}

/// Text at this place of a document that was verified; empty for another value.
fn text<'a>(document: &'a Value, place: &str) -> &'a str {
    document.pointer(place).and_then(Value::as_str).unwrap_or("")
}
