//! Records of a history by request key, and what follows from those of one key without an order.

use std::collections::{BTreeMap, BTreeSet};

use crate::Counts;
use crate::history::{Call, History, Line, Run};
use crate::outcome::Outcome;

/// A request key of an API key.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct KeyId<'h> {
    pub(crate) api_key: &'h str,
    pub(crate) key: &'h str,
}

impl KeyId<'_> {
    pub(crate) fn object(&self) -> String {
        format!("request key {} of {}", self.key, self.api_key)
    }
}

/// Records of one request key.
#[derive(Debug, Default)]
pub(crate) struct KeyRecords<'h> {
    pub(crate) calls: Vec<&'h Line<Call>>,
    pub(crate) runs: Vec<&'h Line<Run>>,
}

/// Records of all request keys.
pub(crate) type Keys<'h> = BTreeMap<KeyId<'h>, KeyRecords<'h>>;

impl KeyRecords<'_> {
    /// Charge of its answer, and the moment of the first caller that had it.
    pub(crate) fn charge(&self) -> Option<(i64, u64)> {
        let charges = self.calls.iter().filter_map(|it| {
            let answer = it.record.answer.as_ref()?;
            let is_charged = Outcome::of(answer) == Some(Outcome::Completed);
            is_charged.then_some((answer.charge_micros?, it.record.returned?))
        });
        charges.min_by_key(|(_, returned)| *returned)
    }

    /// Moment of the first final answer.
    pub(crate) fn ended(&self) -> Option<u64> {
        let ends = self.calls.iter().filter_map(|it| {
            let outcome = Outcome::of(it.record.answer.as_ref()?)?;
            if outcome.is_final() { it.record.returned } else { None }
        });
        ends.min()
    }

    /// Lines of all records.
    pub(crate) fn lines(&self) -> Vec<usize> {
        let calls = self.calls.iter().map(|it| it.line);
        let lines: BTreeSet<usize> = calls.chain(self.runs.iter().map(|it| it.line)).collect();
        lines.into_iter().collect()
    }
}

/// Groups the records of a history by request key.
pub(crate) fn by_key(history: &History) -> Keys<'_> {
    let mut keys = Keys::new();
    for call in &history.calls {
        let Call { api_key, key, .. } = &call.record;
        keys.entry(KeyId { api_key, key }).or_default().calls.push(call);
    }
    for run in &history.runs {
        let Run { api_key, key, .. } = &run.record;
        keys.entry(KeyId { api_key, key }).or_default().runs.push(run);
    }
    keys
}

/// Counts the records of a history.
pub(crate) fn count(history: &History, keys: &Keys<'_>) -> Counts {
    let calls = history.calls.iter().filter(|it| it.record.returned.is_none()).count();
    let postings = history.postings.iter().filter(|it| it.record.returned.is_none()).count();
    Counts {
        calls: history.calls.len(),
        keys: keys.len(),
        unknown: calls + postings,
        runs: history.runs.len(),
        charged: keys.values().filter(|records| records.charge().is_some()).count(),
        balances: history.balances.len(),
        postings: history.postings.len(),
        kills: history.kills.len(),
    }
}
