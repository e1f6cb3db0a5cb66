//! `holdfast receipt verify`: a receipt or a root of the ledger against public keys, by files only.
//!
//! A file that cannot be read, or is something else, is wrong usage (2); a document that is not genuine is a failure
//! (1). A script that pays invoices must not take one for the other.

use std::fs;
use std::path::Path;

use anyhow::{Context, anyhow};
use holdfast_domain::Micros;
use holdfast_receipts::DocumentKind;
use holdfast_receipts::verification::{
    TrustedKeys, VerificationError, check_bill, check_inclusion,
};
use serde_json::{Value, json};

use crate::failure::{CommandFailure, Refusal, Result};
use crate::output::Output;

/// Field of a document for people.
type Field = (&'static str, String);

/// Verifies a file, and the proof that its operation is in a root.
pub(super) fn verify(output: Output, (file, proof): (&Path, Option<&Path>), keys: &Path) -> Result {
    let keys = TrustedKeys::parse(&read(keys)?).with_context(|| keys.display().to_string());
    let keys = keys.map_err(CommandFailure::Usage)?;
    let signed = json_of(file)?;
    let kind = kind_of(&signed, file)?;
    if kind == DocumentKind::Root && proof.is_some() {
        let error = anyhow!("{} is a root: --proof is of a receipt", file.display());
        return Err(CommandFailure::Usage(error));
    }
    let document = genuine(&keys, (kind, file), &signed)?;
    let key_id = text(&signed, "/signature/key_id");
    let mut view = json!({ "genuine": true, "key_id": key_id, kind.member(): document });
    let mut fields = vec![("genuine", format!("yes, signed by key {key_id}"))];
    match kind {
        DocumentKind::Root => fields.extend(root_fields(document)),
        DocumentKind::Receipt => {
            check_bill(document).map_err(not_genuine)?;
            fields.extend(receipt_fields(document));
        }
    }
    if let Some(proof) = proof {
        let with_root = json_of(proof)?;
        let root = genuine(&keys, (DocumentKind::Root, proof), &with_root)?;
        check_inclusion(document, root, &with_root).map_err(not_genuine)?;
        fields.push(("in root", text(root, "/number").to_owned()));
        if let Some(members) = view.as_object_mut() {
            members.insert("root".to_owned(), root.clone());
        }
    }
    output.object(&view, &fields)
}

/// Kind of a signed document. A file with members of two kinds is none: only one of them would be verified.
fn kind_of(signed: &Value, file: &Path) -> Result<DocumentKind> {
    let has = |kind: DocumentKind| signed.get(kind.member()).is_some();
    match (has(DocumentKind::Receipt), has(DocumentKind::Root)) {
        (true, false) => Ok(DocumentKind::Receipt),
        (false, true) => Ok(DocumentKind::Root),
        (true, true) | (false, false) => {
            let error =
                anyhow!("{} is not one receipt, nor one root of the ledger", file.display());
            Err(CommandFailure::Usage(error))
        }
    }
}

fn genuine<'a>(
    keys: &TrustedKeys,
    (kind, file): (DocumentKind, &Path),
    signed: &'a Value,
) -> Result<&'a Value> {
    keys.verify(kind, signed).map_err(|error| match error {
        VerificationError::Shape(_) => {
            CommandFailure::Usage(anyhow!("{}: {error}", file.display()))
        }
        VerificationError::Algorithm
        | VerificationError::UnknownKey(_)
        | VerificationError::Document(_)
        | VerificationError::Signature(_) => not_genuine(error),
    })
}

fn not_genuine(error: impl std::error::Error) -> CommandFailure {
    Refusal::failed("not_genuine", error.to_string())
}

fn receipt_fields(receipt: &Value) -> Vec<Field> {
    let of_charge = |name: &str| text(receipt, &format!("/charge/{name}")).to_owned();
    let amount = |micros: &str| {
        // Any digits can be signed, also those of an amount that no ledger has.
        let amount = micros.parse().map(|micros| Micros::new(micros).to_string());
        let amount = amount.unwrap_or_else(|_too_long| format!("{micros} micros"));
        format!("{amount} {}", of_charge("currency"))
    };
    vec![
        ("operation", of_charge("operation_id")),
        ("status", of_charge("status")),
        ("model", of_charge("model")),
        ("price version", of_charge("price_version")),
        ("charge", amount(&of_charge("charge_micros"))),
        ("refunded", amount(text(receipt, "/refunded_micros"))),
        ("finished", of_charge("finished_at")),
        ("issued", text(receipt, "/issued_at").to_owned()),
    ]
}

fn root_fields(root: &Value) -> Vec<Field> {
    let member = |place| text(root, place).to_owned();
    vec![
        ("number", member("/number")),
        ("to", member("/to")),
        ("leaves", member("/leaves")),
        ("root", member("/root")),
        ("signed", member("/signed_at")),
    ]
}

fn json_of(file: &Path) -> Result<Value> {
    let read = serde_json::from_slice(&read(file)?);
    read.with_context(|| format!("{} is not JSON", file.display())).map_err(CommandFailure::Usage)
}

fn read(file: &Path) -> Result<Vec<u8>> {
    let read = fs::read(file).with_context(|| format!("{} cannot be read", file.display()));
    read.map_err(CommandFailure::Usage)
}

/// Text at this place of a document that was verified; empty for another value.
fn text<'a>(document: &'a Value, place: &str) -> &'a str {
    document.pointer(place).and_then(Value::as_str).unwrap_or("")
}
