//! Findings as JSON, kept between two pages, and shown to people.
//!
//! The members are closed: a member of another version that this one does not know is refused and not lost.

use holdfast_domain::ports::Cause;
use serde_json::{Map, Value, json};

use super::{Mismatch, Subject, Verification};

/// Text that holds no findings.
#[derive(Debug, thiserror::Error)]
#[error("it holds no findings of an audit")]
pub struct BadReport(#[source] Cause);

/// Member that is missing, has a wrong type, or is not known.
#[derive(Debug, thiserror::Error)]
#[error("the member {0} is not what it should be")]
struct BadMember(String);

/// Object of which each member is taken once.
struct Members(Map<String, Value>);

impl Verification {
    /// The findings as JSON.
    #[must_use]
    pub fn to_json(&self) -> String {
        let Self { wallets, operations, transfers, mismatches, unlisted, notes } = self;
        let mismatches: Vec<Value> = mismatches.iter().map(line).collect();
        let mut members = json!({
            "wallets": wallets,
            "operations": operations,
            "transfers": transfers,
            "mismatches": mismatches,
            "unlisted": unlisted,
        });
        // A version before knows no notes, and most books have none.
        if let Some(members) = members.as_object_mut().filter(|_members| !notes.is_empty()) {
            members.insert("notes".to_owned(), notes.iter().map(line).collect());
        }
        members.to_string()
    }

    /// Reads the text of [`Self::to_json`].
    ///
    /// # Errors
    ///
    /// [`BadReport`] for any text that [`Self::to_json`] did not write.
    pub fn from_json(text: &str) -> Result<Self, BadReport> {
        read(text).map_err(BadReport)
    }
}

fn line(Mismatch { subject, sentence }: &Mismatch) -> Value {
    let (label, id) = match subject {
        Subject::Wallet(id) => ("wallet", Some(id.to_string())),
        Subject::ApiKey(id) => ("api_key", Some(id.to_string())),
        Subject::Operation(id) => ("operation", Some(id.to_string())),
        Subject::Posting(id) => ("posting", Some(id.to_string())),
        Subject::AdminKey(id) => ("admin_key", Some(id.to_string())),
        Subject::Person(id) => ("person", Some(id.to_string())),
        Subject::Webhook(id) => ("webhook", Some(id.to_string())),
        Subject::Ledger => ("book", None),
    };
    json!({ "subject": label, "id": id, "sentence": sentence })
}

fn read(text: &str) -> Result<Verification, Cause> {
    let mut members = Members(serde_json::from_str(text)?);
    let lines = |value: Value| match value {
        Value::Array(lines) => Some(lines),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Object(_) => {
            None
        }
    };
    let mismatches = members.take("mismatches", lines)?;
    let notes = members.0.contains_key("notes").then(|| members.take("notes", lines));
    let notes = notes.transpose()?.unwrap_or_default();
    let mut number = |name| members.take(name, |value| value.as_u64());
    let found = Verification {
        wallets: number("wallets")?,
        operations: number("operations")?,
        transfers: number("transfers")?,
        unlisted: number("unlisted")?,
        mismatches: mismatches.into_iter().map(mismatch).collect::<Result<_, _>>()?,
        notes: notes.into_iter().map(mismatch).collect::<Result<_, _>>()?,
    };
    members.end()?;
    Ok(found)
}

fn mismatch(line: Value) -> Result<Mismatch, Cause> {
    let mut members = Members(serde_json::from_value(line)?);
    let text = |value: Value| value.as_str().map(str::to_owned);
    let label = members.take("subject", text)?;
    let id = members.take("id", |id| Some(text(id).unwrap_or_default()))?;
    let subject = match label.as_str() {
        "wallet" => Subject::Wallet(id.parse()?),
        "api_key" => Subject::ApiKey(id.parse()?),
        "operation" => Subject::Operation(id.parse()?),
        "posting" => Subject::Posting(id.parse()?),
        "admin_key" => Subject::AdminKey(id.parse()?),
        "person" => Subject::Person(id.parse()?),
        "webhook" => Subject::Webhook(id.parse()?),
        // There is one ledger, without an id.
        "book" => Subject::Ledger,
        _ => return Err(Box::new(BadMember(label))),
    };
    let sentence = members.take("sentence", text)?;
    members.end()?;
    Ok(Mismatch { subject, sentence })
}

impl Members {
    fn take<T>(
        &mut self,
        name: &str,
        read: impl FnOnce(Value) -> Option<T>,
    ) -> Result<T, BadMember> {
        let value = self.0.remove(name).and_then(read);
        value.ok_or_else(|| BadMember(name.to_owned()))
    }

    /// Refuses members that were not taken.
    fn end(self) -> Result<(), BadMember> {
        self.0.into_iter().next().map_or(Ok(()), |(name, _value)| Err(BadMember(name)))
    }
}

#[cfg(test)]
mod tests {
    use holdfast_domain::{
        AdminKeyId, ApiKeyId, OperationId, PersonId, PostingId, WalletId, WebhookId,
    };

    use super::*;

    #[test]
    fn findings_are_read_as_they_were_written() {
        let mut found =
            Verification { wallets: 1, operations: 2, transfers: 3, ..Default::default() };
        found.unlisted = 4;
        for subject in [
            Subject::Wallet(WalletId::from_u128(1)),
            Subject::ApiKey(ApiKeyId::from_u128(2)),
            Subject::Operation(OperationId::from_u128(3)),
            Subject::Posting(PostingId::from_u128(4)),
            Subject::AdminKey(AdminKeyId::from_u128(5)),
            Subject::Person(PersonId::from_u128(6)),
            Subject::Webhook(WebhookId::from_u128(7)),
            Subject::Ledger,
        ] {
            found.report(subject, "it is \"torn\"");
        }
        let text = found.to_json();
        assert_eq!(Verification::from_json(&text).unwrap(), found, "{text}");
        found.note(Subject::Posting(PostingId::from_u128(4)), "it is booked twice");
        let noted = found.to_json();
        assert_eq!(Verification::from_json(&noted).unwrap(), found, "{noted}");
        let closed = text.replacen('{', "{\"also\":1,", 1);
        for text in ["", "{}", &closed, &text.replace("00000000-0000", "0")] {
            assert!(Verification::from_json(text).is_err(), "{text}");
        }
    }
}
