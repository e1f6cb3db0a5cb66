//! Rules that need no order: they hold of sums, or of pairs of records.

use std::collections::BTreeMap;

use crate::history::{Call, History, Line, Reaction};
use crate::outcome::Outcome;
use crate::records::{KeyId, KeyRecords, Keys};
use crate::{Rule, Violation, wallet};

/// Judges a history by all of them.
pub(crate) fn check(history: &History, keys: &Keys<'_>) -> Vec<Violation> {
    let mut violations = Vec::new();
    for (id, records) in keys {
        violations.extend(unlisted_answer(id, records));
        violations.extend(run_without_caller(id, records));
        violations.extend(wrong_charge(id, records));
    }
    violations.extend(shared_operations(keys));
    violations.extend(spent_beyond_cap(history, keys));
    violations.extend(wrong_holds(history, keys));
    violations
}

fn violation(rule: Rule, id: &KeyId<'_>, text: String, lines: Vec<usize>) -> Violation {
    Violation { rule, object: id.object(), text, lines }
}

/// An answer whose status and code the contract does not have.
fn unlisted_answer(id: &KeyId<'_>, records: &KeyRecords<'_>) -> Option<Violation> {
    let unlisted = |it: &&&Line<Call>| {
        it.record.answer.as_ref().is_some_and(|answer| Outcome::of(answer).is_none())
    };
    let call = records.calls.iter().find(unlisted)?;
    let answer = call.record.answer.as_ref()?;
    let text = format!("status {} with code {:?}", answer.status, answer.code);
    Some(violation(Rule::Answer, id, text, vec![call.line]))
}

/// A run of a request that no caller had sent under this key.
fn run_without_caller(id: &KeyId<'_>, records: &KeyRecords<'_>) -> Option<Violation> {
    let run = records.runs.iter().find(|run| {
        let run = &run.record;
        let is_its = |call: &Call| call.request == run.request && call.called <= run.at;
        !records.calls.iter().any(|call| is_its(&call.record))
    })?;
    let text = "ran for no caller".to_owned();
    Some(violation(Rule::Caller, id, text, vec![run.line]))
}

/// A completion that does not charge the cost of its run, or another final answer that charges.
fn wrong_charge(id: &KeyId<'_>, records: &KeyRecords<'_>) -> Option<Violation> {
    for call in &records.calls {
        let Some(answer) = &call.record.answer else { continue };
        let charge = answer.charge_micros;
        let is_right = match Outcome::of(answer) {
            Some(Outcome::Completed) => {
                let answered = |reaction| reaction == Reaction::Answered;
                let mut runs = records.runs.iter().filter(|run| answered(run.record.reaction));
                runs.any(|run| run.record.cost_micros == charge)
            }
            Some(Outcome::Refused | Outcome::Abandoned) => charge == Some(0),
            Some(Outcome::Conflict | Outcome::NotRun | Outcome::Unbound | Outcome::Later)
            | None => charge.is_none_or(|charge| charge == 0),
        };
        if !is_right {
            let text = format!("status {} with a charge of {charge:?}", answer.status);
            return Some(violation(Rule::Charge, id, text, records.lines()));
        }
    }
    None
}

/// An operation id that two request keys have.
fn shared_operations(keys: &Keys<'_>) -> Vec<Violation> {
    let mut owners: BTreeMap<&str, (&KeyId<'_>, usize)> = BTreeMap::new();
    let mut violations = Vec::new();
    for (id, records) in keys {
        for call in &records.calls {
            let answer = call.record.answer.as_ref();
            let Some(operation) = answer.and_then(|it| it.operation.as_deref()) else { continue };
            let (owner, line) = *owners.entry(operation).or_insert((id, call.line));
            if owner != id {
                let text = format!("has operation {operation} of {}", owner.object());
                violations.push(violation(Rule::Operation, id, text, vec![line, call.line]));
                break;
            }
        }
    }
    violations
}

/// An API key whose answers cost more than it may spend.
fn spent_beyond_cap(history: &History, keys: &Keys<'_>) -> Vec<Violation> {
    let mut violations = Vec::new();
    for api_key in history.api_keys.values() {
        let Some(limit) = api_key.spend_limit_micros else { continue };
        let own = keys.iter().filter(|(id, _)| id.api_key == api_key.api_key);
        let spent: i64 = own.filter_map(|(_, records)| Some(records.charge()?.0)).sum();
        if spent > limit {
            violations.push(Violation {
                rule: Rule::Cap,
                object: format!("API key {}", api_key.api_key),
                text: format!("{spent} micros charged, and {limit} at most may be"),
                lines: Vec::new(),
            });
        }
    }
    violations
}

/// A negative amount, or a hold while every request of the wallet has come to its end.
fn wrong_holds(history: &History, keys: &Keys<'_>) -> Vec<Violation> {
    let mut violations = Vec::new();
    for reading in &history.balances {
        let balance = &reading.record;
        let (available, held) = (balance.available_micros, balance.held_micros);
        let mut own = keys.iter().filter(|(id, _)| {
            let api_key = history.api_keys.get(id.api_key);
            api_key.is_some_and(|api_key| api_key.wallet == balance.wallet)
        });
        let is_at_rest =
            held != 0 && own.all(|(_, it)| is_at_rest(it, balance.called, balance.returned));
        if available < 0 || held < 0 || is_at_rest {
            violations.push(Violation {
                rule: Rule::Holds,
                object: wallet::object(&balance.wallet),
                text: format!("{available} micros available and {held} held"),
                lines: vec![reading.line],
            });
        }
    }
    violations
}

/// True if no call of a key can hold anything between two moments: it has its final answer, or nobody called it before,
/// or each of its calls was refused before it bound the key.
fn is_at_rest(records: &KeyRecords<'_>, from: u64, to: u64) -> bool {
    let is_ended = records.ended().is_some_and(|ended| ended < from);
    let holds_nothing = |call: &Call| {
        let answer = call.answer.as_ref().and_then(Outcome::of);
        let is_unbound = matches!(answer, Some(Outcome::Unbound | Outcome::Conflict));
        call.called > to || (is_unbound && call.returned.is_some_and(|returned| returned < from))
    };
    is_ended || records.calls.iter().all(|call| holds_nothing(&call.record))
}
