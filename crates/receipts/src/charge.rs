//! Charge of an ended operation as a document: the part of its row that never changes again.
//!
//! A receipt has the charge with the refunds up to its moment; the leaf of an operation in a day's tree is the charge
//! only. One function makes both, so that a receipt leads to its leaf without any other knowledge.
//!
//! Never in a document: a provider, a route, a node, a cost of the operator, a prompt, an answer, a request key. The
//! request key is a capability for its caller's answer: only its digest is shown.

use std::fmt::Display;

use aws_lc_rs::digest::{SHA256, digest};
use holdfast_domain::operation::Operation;
use holdfast_domain::price::PriceLine;
use holdfast_domain::{Micros, Timestamp};
use holdfast_wire::api::rfc3339;
use serde_json::{Value, json};

use crate::hex;

/// Charge of an operation that has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Charge(Value);

impl Charge {
    /// Charge by the row of an operation; `None` as long as it has no final ending.
    #[must_use]
    pub fn of(operation: &Operation) -> Option<Self> {
        let finished_at = operation.phase.finished_at()?;
        let charge = operation.phase.charge()?;
        let usage = operation.phase.usage();
        let meters = usage.map(|usage| &usage.metered.meters);
        let lines = meters.into_iter().flat_map(|meters| {
            operation.price.tariff.applied(meters).lines(meters).map(|it| line(&it))
        });
        let lines: Vec<Value> = lines.collect();
        let counts = meters.map(|meters| {
            let counts = meters.iter().map(|(kind, count)| (kind.label().to_owned(), text(count)));
            Value::Object(counts.collect())
        });
        let request_key = digest(&SHA256, operation.request_key.to_string().as_bytes());
        Some(Self(json!({
            "operation_id": operation.id.to_string(),
            "api_key_id": operation.api_key.to_string(),
            "idempotency_key_sha256": hex::write(request_key.as_ref()),
            "fingerprint": hex::write(&operation.binding.fingerprint.to_bytes()),
            "fingerprint_version": text(operation.binding.terms.fingerprint_version),
            "contract": text(operation.binding.terms.contract),
            "model": operation.model.as_str(),
            "status": operation.phase.label(),
            "generation": text(operation.generation),
            "currency": operation.price.currency.to_string(),
            "hold_micros": micros(operation.hold),
            "charge_micros": micros(charge),
            "shortfall_micros": micros(usage.map_or(Micros::ZERO, |usage| usage.shortfall)),
            "meters": counts,
            "meters_source": usage.map(|usage| usage.metered.source.label()),
            "price_version": operation.price.id.as_str(),
            "price_lines": lines,
            "created_at": rfc3339(operation.created_at),
            "admitted_at": rfc3339(operation.admitted_at),
            "finished_at": rfc3339(finished_at),
        })))
    }

    /// The document.
    #[must_use]
    pub const fn document(&self) -> &Value {
        &self.0
    }

    /// Receipt of the charge at a moment, with the refunds up to it.
    #[must_use]
    pub fn receipt(self, refunded: Micros, issued_at: Timestamp) -> Value {
        json!({
            "charge": self.0,
            "refunded_micros": micros(refunded),
            "issued_at": rfc3339(issued_at),
        })
    }
}

fn line(line: &PriceLine) -> Value {
    json!({
        "kind": line.kind.label(),
        "units": text(line.units),
        "price_micros": text(line.rate),
        "per_units": if line.kind.per_million() { "1000000" } else { "1" },
    })
}

/// Integer as decimal digits.
fn text(number: impl Display) -> Value {
    Value::String(number.to_string())
}

fn micros(amount: Micros) -> Value {
    text(amount.get())
}

#[cfg(test)]
mod tests {
    use holdfast_domain::Phase;
    use holdfast_domain::billing::UsageRecord;
    use holdfast_domain::limits::CounterReadings;
    use holdfast_domain::operation::{Receipt, Version};
    use holdfast_testkit::sample;

    use super::*;
    use crate::canonical::canonical;

    #[test]
    fn a_completed_operation_has_its_bill_and_a_running_one_none() {
        let (completed, leased) = (completed(), leased());
        assert_eq!(Charge::of(&leased), None);
        let document = Charge::of(&completed).unwrap().0;
        assert_eq!(document["status"], "completed");
        let usage = completed.phase.usage().unwrap();
        assert_eq!(document["charge_micros"], usage.charge.get().to_string());
        assert_eq!(document["model"], completed.model.as_str());
        let text = String::from_utf8(canonical(&document).unwrap()).unwrap();
        assert!(!text.contains(&completed.request_key.to_string()), "{text}");
        let lines = document["price_lines"].as_array().unwrap();
        let kinds: Vec<_> = lines.iter().map(|line| line["kind"].as_str().unwrap()).collect();
        let counted = usage.metered.meters.iter().filter(|(_, count)| *count > 0);
        assert_eq!(kinds, counted.map(|(kind, _)| kind.label()).collect::<Vec<_>>());
    }

    #[test]
    fn an_abandoned_operation_has_a_charge_of_zero_and_no_meters() {
        let operation =
            Operation { phase: Phase::Abandoned { finished_at: sample::NOW }, ..leased() };
        let document = Charge::of(&operation).unwrap().0;
        assert_eq!(document["charge_micros"], "0");
        assert_eq!((&document["meters"], &document["price_lines"]), (&Value::Null, &json!([])));
        let receipt = Charge::of(&operation).unwrap().receipt(Micros::new(3), sample::NOW);
        assert_eq!((&receipt["refunded_micros"], &receipt["charge"]), (&json!("3"), &document));
    }

    fn leased() -> Operation {
        let counters = CounterReadings::default();
        let receipt = Receipt { version: Version::FIRST, at: sample::NOW, counters };
        sample::admission(&sample::claim().build()).apply(None, receipt).unwrap()
    }

    fn completed() -> Operation {
        let leased = leased();
        let usage = UsageRecord::of(sample::metered(3, 5), &leased.price, leased.hold);
        Operation { phase: Phase::Completed { usage, finished_at: sample::NOW }, ..leased }
    }
}
