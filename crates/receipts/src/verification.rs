//! Verification of signed documents against public keys: offline, by the files only.
//!
//! A document is genuine if its signature is that of a key of the list over its canonical form. The id in the list is
//! not believed: it follows from the key. A verified receipt shows the charge as the ledger's owner signed it; whether
//! that owner may be trusted with the key is for people to know.

use aws_lc_rs::error::Unspecified;
use serde_json::Value;

use crate::canonical::NotCanonical;
use crate::key::{ALGORITHM, PublicKey, message};
use crate::root;
use crate::tree::{TreeHash, root_of_proof};
use crate::{DocumentKind, hex};

/// Public keys that a verifier trusts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrustedKeys(Vec<PublicKey>);

/// A file that is not a list of public keys.
#[derive(Debug, thiserror::Error)]
pub enum BadKeys {
    /// Not JSON.
    #[error("the keys are not JSON")]
    Json(#[source] serde_json::Error),
    /// JSON of another shape.
    #[error("the keys are not an object with a list `keys`, as `GET /v1/receipts/keys` answers")]
    Shape,
    /// An element that is not a key.
    #[error("key {0} is not an Ed25519 key of 64 lower-case hexadecimal digits")]
    Key(usize),
}

/// Document that is not genuine, or not shown to be.
#[derive(Debug, thiserror::Error)]
pub enum VerificationError {
    /// JSON of another shape.
    #[error("there is no `{0}` with a `signature` of `algorithm`, `key_id` and `value`")]
    Shape(&'static str),
    /// A signature by another algorithm.
    #[error("the signature is by another algorithm than {ALGORITHM}")]
    Algorithm,
    /// A signature by a key that is not in the list.
    #[error("the keys do not have {0}, which signed")]
    UnknownKey(String),
    /// A document with values that are not signed.
    #[error("the document has no canonical form")]
    Document(#[source] NotCanonical),
    /// A signature of another document, kind or key.
    #[error("the signature does not fit: the document was changed, or another key signed it")]
    Signature(#[source] Unspecified),
}

impl TrustedKeys {
    /// Reads the keys as `GET /v1/receipts/keys` answers them.
    ///
    /// # Errors
    ///
    /// [`BadKeys::Json`], [`BadKeys::Shape`] or [`BadKeys::Key`] for anything else.
    pub fn parse(text: &[u8]) -> Result<Self, BadKeys> {
        let file: Value = serde_json::from_slice(text).map_err(BadKeys::Json)?;
        let keys = file.get("keys").and_then(Value::as_array).ok_or(BadKeys::Shape)?;
        let keys = keys.iter().enumerate().map(|(at, key)| {
            let is_known = key.get("algorithm").and_then(Value::as_str) == Some(ALGORITHM);
            let bytes = key.get("public_key").and_then(Value::as_str).and_then(PublicKey::read);
            bytes.filter(|_key| is_known).ok_or(BadKeys::Key(at))
        });
        keys.collect::<Result<_, _>>().map(Self)
    }

    /// Trusts these keys.
    #[must_use]
    pub fn of(keys: &[PublicKey]) -> Self {
        Self(keys.to_vec())
    }

    /// The document of a file, if it is genuine.
    ///
    /// # Errors
    ///
    /// [`VerificationError::Shape`] for JSON of another shape, [`VerificationError::Algorithm`] and
    /// [`VerificationError::UnknownKey`] for a signature that these keys cannot have made,
    /// [`VerificationError::Document`] for a value that is never signed, and [`VerificationError::Signature`] if the
    /// document was changed.
    pub fn verify<'a>(
        &self,
        kind: DocumentKind,
        file: &'a Value,
    ) -> Result<&'a Value, VerificationError> {
        let shape = || VerificationError::Shape(kind.member());
        let document = file.get(kind.member()).ok_or_else(shape)?;
        let signature = file.get("signature").ok_or_else(shape)?;
        let member = |name| signature.get(name).and_then(Value::as_str).ok_or_else(shape);
        if member("algorithm")? != ALGORITHM {
            return Err(VerificationError::Algorithm);
        }
        let key_id = member("key_id")?;
        let key = self.0.iter().find(|key| key.id() == key_id);
        let key = key.ok_or_else(|| VerificationError::UnknownKey(key_id.to_owned()))?;
        let value = hex::read(member("value")?).ok_or_else(shape)?;
        let message = message(kind, document).map_err(VerificationError::Document)?;
        key.verify(&message, &value).map_err(VerificationError::Signature)?;
        Ok(document)
    }
}

/// A proof that does not lead from a receipt to a root.
#[derive(Debug, thiserror::Error)]
pub enum InclusionError {
    /// A member that is missing or of another form.
    #[error("`{0}` of the proof is missing or malformed")]
    Member(&'static str),
    /// A charge without a canonical form.
    #[error("the charge has no canonical form")]
    Charge(#[source] NotCanonical),
    /// Hashes that lead elsewhere.
    #[error("the proof does not lead from this receipt to this root")]
    OtherRoot,
}

/// Follows the proof of a file from the leaf of a receipt to a root, both of which were verified.
///
/// # Errors
///
/// [`InclusionError::Member`] and [`InclusionError::Charge`] for a malformed file, [`InclusionError::OtherRoot`] if the
/// proof does not lead there.
pub fn check_inclusion(receipt: &Value, root: &Value, file: &Value) -> Result<(), InclusionError> {
    let charge = receipt.get("charge").ok_or(InclusionError::Member("charge"))?;
    let leaf = root::charge_leaf(charge).map_err(InclusionError::Charge)?;
    let proof = file.get("proof").ok_or(InclusionError::Member("proof"))?;
    let place = |of: &Value, member| {
        let digits = of.get(member).and_then(Value::as_str);
        digits.and_then(|digits| digits.parse().ok()).ok_or(InclusionError::Member(member))
    };
    let place = (place(proof, "index")?, place(root, "leaves")?);
    let path = proof.get("path").and_then(Value::as_array);
    let path = path.ok_or(InclusionError::Member("path"))?.iter();
    let path: Option<Vec<_>> = path.map(|hash| TreeHash::read(hash.as_str()?)).collect();
    let path = path.ok_or(InclusionError::Member("path"))?;
    let led = root_of_proof(leaf, place, &path).map(|hash| hash.to_string());
    let signed = root.get("root").and_then(Value::as_str);
    if led.is_some() && led.as_deref() == signed { Ok(()) } else { Err(InclusionError::OtherRoot) }
}

/// A bill whose parts contradict each other. No gateway signs one.
#[derive(Debug, thiserror::Error)]
pub enum BillError {
    /// A member that is missing or no integer.
    #[error("`{0}` of the charge is missing, or not an integer in decimal digits")]
    Member(&'static str),
    /// Price lines that come to another amount.
    #[error(
        "the price lines come to {lines} micros, and the charge and the shortfall to {charged}"
    )]
    Sum {
        /// Sum of the price lines, rounded up.
        lines: u128,
        /// Charge and shortfall together.
        charged: u128,
    },
    /// A charge above the hold.
    #[error("the charge is above the hold")]
    AboveHold,
}

/// Computes the charge of a receipt once more, from its price lines.
///
/// # Errors
///
/// [`BillError`] if the charge does not follow from the lines, or is above the hold.
pub fn check_bill(receipt: &Value) -> Result<(), BillError> {
    let charge = receipt.get("charge").ok_or(BillError::Member("charge"))?;
    let lines = charge.get("price_lines").and_then(Value::as_array);
    let mut millionths = 0_u128;
    for line in lines.ok_or(BillError::Member("price_lines"))? {
        let amount = number(line, "units")?.checked_mul(number(line, "price_micros")?);
        let amount = amount.and_then(|amount| amount.checked_mul(1_000_000));
        let amount = amount.and_then(|amount| amount.checked_div(number(line, "per_units").ok()?));
        millionths = amount
            .and_then(|amount| millionths.checked_add(amount))
            .ok_or(BillError::Member("price_lines"))?;
    }
    let lines = millionths.div_ceil(1_000_000);
    let (charged, hold) = (number(charge, "charge_micros")?, number(charge, "hold_micros")?);
    if charged > hold {
        return Err(BillError::AboveHold);
    }
    let charged = charged.saturating_add(number(charge, "shortfall_micros")?);
    // The ledger's amounts end at the largest one.
    if lines.min(i64::MAX.unsigned_abs().into()) == charged {
        Ok(())
    } else {
        Err(BillError::Sum { lines, charged })
    }
}

fn number(of: &Value, member: &'static str) -> Result<u128, BillError> {
    let digits = of.get(member).and_then(Value::as_str);
    // Bounded, so that products fit: no amount and no rate has more than 20 digits.
    let digits = digits.filter(|digits| digits.len() <= 20);
    digits.and_then(|digits| digits.parse().ok()).ok_or(BillError::Member(member))
}

#[cfg(test)]
mod tests {
    use holdfast_domain::secret::{ReceiptKey, ServerSecret};
    use serde_json::json;

    use super::*;
    use crate::key::Signer;

    fn key(seed: u8) -> ReceiptKey {
        ServerSecret::new(&[seed; 32]).unwrap().receipt_key()
    }

    fn signer() -> Signer {
        Signer::new(&key(1), &[], &[]).unwrap()
    }

    fn document() -> Value {
        json!({"charge": {"charge_micros": "37", "meters": null}, "refunded_micros": "0"})
    }

    #[test]
    fn a_signed_document_is_verified_with_the_keys_as_they_are_served() {
        let file = signer().sign(DocumentKind::Receipt, document()).unwrap();
        let keys = TrustedKeys::parse(signer().keys_document().to_string().as_bytes()).unwrap();
        // Written and read by another program: other white space, other order.
        let file = serde_json::from_str(&serde_json::to_string_pretty(&file).unwrap()).unwrap();
        assert_eq!(keys.verify(DocumentKind::Receipt, &file).unwrap(), &document());
    }

    #[test]
    fn a_change_anywhere_is_found() {
        let file = signer().sign(DocumentKind::Receipt, document()).unwrap();
        let keys = TrustedKeys::of(signer().keys());
        for (place, value) in [
            ("/receipt/charge/charge_micros", json!("36")),
            ("/receipt/charge/charge_micros", json!("037")),
            ("/receipt/charge/meters", json!("null")),
            ("/receipt/refunded_micros", json!(["0"])),
        ] {
            let mut changed = file.clone();
            *changed.pointer_mut(place).unwrap() = value;
            let fault = keys.verify(DocumentKind::Receipt, &changed).unwrap_err();
            assert!(matches!(fault, VerificationError::Signature(_)), "{place}: {fault:?}");
        }
        let mut more = file.clone();
        more["receipt"]["note"] = json!("x");
        assert!(keys.verify(DocumentKind::Receipt, &more).is_err());
        let mut number = file;
        number["receipt"]["refunded_micros"] = json!(0);
        let fault = keys.verify(DocumentKind::Receipt, &number).unwrap_err();
        assert!(matches!(fault, VerificationError::Document(_)), "{fault:?}");
    }

    #[test]
    fn a_signature_of_one_kind_is_none_of_another() {
        let mut file = signer().sign(DocumentKind::Receipt, document()).unwrap();
        file["root"] = file["receipt"].take();
        let keys = TrustedKeys::of(signer().keys());
        let fault = keys.verify(DocumentKind::Root, &file).unwrap_err();
        assert!(matches!(fault, VerificationError::Signature(_)), "{fault:?}");
    }

    #[test]
    fn keys_rotate_and_old_ones_verify() {
        let old = signer().sign(DocumentKind::Receipt, document()).unwrap();
        let rotated = Signer::new(&key(2), &[key(1)], signer().keys()).unwrap();
        assert_eq!(rotated.keys().len(), 2, "each once");
        let new = rotated.sign(DocumentKind::Receipt, document()).unwrap();
        assert_ne!(old["signature"]["key_id"], new["signature"]["key_id"]);
        let keys = TrustedKeys::of(rotated.keys());
        for file in [&old, &new] {
            assert!(keys.verify(DocumentKind::Receipt, file).is_ok());
        }
        let before = TrustedKeys::of(signer().keys());
        let fault = before.verify(DocumentKind::Receipt, &new).unwrap_err();
        assert!(matches!(fault, VerificationError::UnknownKey(_)), "{fault:?}");
        // Without the old secret its public key is enough.
        let retired = Signer::new(&key(2), &[], signer().keys()).unwrap();
        assert!(TrustedKeys::of(retired.keys()).verify(DocumentKind::Receipt, &old).is_ok());
    }

    #[test]
    fn an_id_that_another_key_claims_is_not_believed() {
        let file = signer().sign(DocumentKind::Receipt, document()).unwrap();
        let mut keys = Signer::new(&key(2), &[], &[]).unwrap().keys_document();
        keys["keys"][0]["key_id"] = file["signature"]["key_id"].clone();
        let keys = TrustedKeys::parse(keys.to_string().as_bytes()).unwrap();
        let fault = keys.verify(DocumentKind::Receipt, &file).unwrap_err();
        assert!(matches!(fault, VerificationError::UnknownKey(_)), "{fault:?}");
    }

    fn bill(charge: &str, lines: &Value) -> Value {
        let charge = json!({
            "charge_micros": charge, "shortfall_micros": "1", "hold_micros": "40", "price_lines": lines,
        });
        json!({ "charge": charge })
    }

    #[test]
    fn the_lines_make_the_charge_rounded_up_once() {
        let line = |units: &str, per: &str| json!({"units": units, "price_micros": "333333", "per_units": per});
        let lines = json!([line("100", "1000000"), line("3", "1000000")]);
        assert!(check_bill(&bill("34", &lines)).is_ok());
        assert!(matches!(
            check_bill(&bill("35", &lines)),
            Err(BillError::Sum { lines: 35, charged: 36 })
        ));
        assert!(matches!(check_bill(&bill("41", &lines)), Err(BillError::AboveHold)));
        for lines in [json!(null), json!([line("x", "1")]), json!([line("1", "0")])] {
            assert!(
                matches!(check_bill(&bill("34", &lines)), Err(BillError::Member(_))),
                "{lines}"
            );
        }
    }

    #[test]
    fn other_files_are_refused() {
        for text in ["", "[]", "{}", r#"{"keys": [{"algorithm": "Ed25519", "public_key": "00"}]}"#]
        {
            assert!(TrustedKeys::parse(text.as_bytes()).is_err(), "{text}");
        }
        let keys = TrustedKeys::of(signer().keys());
        for file in [json!([]), json!({"receipt": {}}), json!({"receipt": {}, "signature": {}})] {
            assert!(keys.verify(DocumentKind::Receipt, &file).is_err(), "{file}");
        }
    }
}
