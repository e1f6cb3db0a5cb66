//! Collector of refused requests: counts by API key, code and hour, and the newest requests of each count.
//!
//! A flood of refusals costs memory and writes as a trickle does: a count is one row whatever its number, and of
//! each count at most [`LISTED_OF_CODE`] requests are listed in a second, the newest. Both have a bound over all
//! API keys. A request that finds no room to be listed is counted all the same; one of an API key that finds no
//! room to be counted is in the number that the log shows.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use holdfast_domain::model::PublicModelId;
use holdfast_domain::statistics::{
    RefusalBatch, RefusalCount, RefusalHour, RefusedRequest, Shortage, hour_of,
};
use holdfast_domain::{ApiKeyId, RequestId, Timestamp, WalletId};

/// API keys that are counted between two writes.
const KEYS_MAX: usize = 4_096;
/// Requests that are listed between two writes, of all API keys.
const LISTED_MAX: usize = 4_096;
/// Requests of one API key and code that are listed between two writes.
const LISTED_OF_CODE: usize = 25;
/// Codes of one API key, each with its hour, that are counted between two writes: a store that is away for days must
/// not make the list of each key grow with every hour.
const COUNTS_OF_KEY: usize = 64;
/// API keys of one transaction: the store reads the ring of each.
const KEYS_OF_BATCH: usize = 64;

/// Facts of a refusal that its caller does not know yet.
#[derive(Debug, Clone)]
pub struct RefusalFacts {
    /// Value of `x-request-id`.
    pub id: RequestId,
    /// Error code.
    pub code: &'static str,
    /// HTTP status.
    pub status: u16,
    /// Model that the request names; kept only if the configuration has it.
    pub model: Option<PublicModelId>,
    /// Amounts that were compared, if money was missing.
    pub shortage: Option<Shortage>,
}

/// Refusals that are not written yet.
#[derive(Debug, Default)]
pub(crate) struct RefusalCollector(Mutex<RefusalBuffer>);

/// Refusals between two writes.
#[derive(Debug, Default)]
pub(crate) struct RefusalBuffer {
    keys: HashMap<ApiKeyId, KeyRefusals>,
    /// Requests in all lists.
    listed: usize,
    /// Requests that found no room to be counted.
    pub(crate) uncounted: u64,
}

/// Refusals of one API key.
#[derive(Debug)]
pub(crate) struct KeyRefusals {
    wallet: WalletId,
    /// By hour and code: a flush may be late. At most [`COUNTS_OF_KEY`].
    codes: BTreeMap<(Timestamp, &'static str), CodeRefusals>,
}

#[derive(Debug, Default)]
struct CodeRefusals {
    count: u64,
    /// The newest of them, oldest first.
    newest: VecDeque<RefusedRequest>,
}

/// Refusals of some API keys, and the batch that is made of them.
type KeysOfBatch = (Vec<(ApiKeyId, KeyRefusals)>, RefusalBatch);

impl RefusalCollector {
    /// Notes a refusal of an API key.
    pub(crate) fn note(
        &self,
        (api_key, wallet): (ApiKeyId, WalletId),
        at: Timestamp,
        facts: RefusalFacts,
    ) {
        let RefusalFacts { id, code, status, model, shortage } = facts;
        let code_of_row = code.into();
        let request =
            RefusedRequest { id, at, api_key, wallet, code: code_of_row, status, model, shortage };
        let mut collected = self.lock();
        let RefusalBuffer { keys, listed, uncounted } = &mut *collected;
        if keys.len() >= KEYS_MAX && !keys.contains_key(&api_key) {
            *uncounted = uncounted.saturating_add(1);
            return;
        }
        let of_key =
            keys.entry(api_key).or_insert_with(|| KeyRefusals { wallet, codes: BTreeMap::new() });
        let of_code = of_key.codes.entry((hour_of(at), code)).or_default();
        of_code.count = of_code.count.saturating_add(1);
        if of_code.newest.len() >= LISTED_OF_CODE && of_code.newest.pop_front().is_some() {
            *listed = listed.saturating_sub(1);
        }
        if *listed < LISTED_MAX {
            of_code.newest.push_back(request);
            *listed = listed.saturating_add(1);
        }
        of_key.drop_oldest(listed, uncounted);
    }

    /// Takes all that was collected.
    pub(crate) fn take(&self) -> RefusalBuffer {
        std::mem::take(&mut *self.lock())
    }

    /// Takes refusals back that were not written. They are older than those that came meanwhile.
    pub(crate) fn put_back(&self, keys: impl Iterator<Item = (ApiKeyId, KeyRefusals)>) {
        let mut collected = self.lock();
        let RefusalBuffer { keys: own, listed, uncounted } = &mut *collected;
        for (api_key, KeyRefusals { wallet, codes }) in keys {
            if own.len() >= KEYS_MAX && !own.contains_key(&api_key) {
                let counts = codes.values().map(|of_code| of_code.count);
                *uncounted = counts.fold(*uncounted, u64::saturating_add);
                continue;
            }
            let of_key = own
                .entry(api_key)
                .or_insert_with(|| KeyRefusals { wallet, codes: BTreeMap::new() });
            for (key, before) in codes {
                let of_code = of_key.codes.entry(key).or_default();
                of_code.count = of_code.count.saturating_add(before.count);
                for request in before.newest.into_iter().rev() {
                    if of_code.newest.len() < LISTED_OF_CODE && *listed < LISTED_MAX {
                        of_code.newest.push_front(request);
                        *listed = listed.saturating_add(1);
                    }
                }
            }
            of_key.drop_oldest(listed, uncounted);
        }
    }

    fn lock(&self) -> MutexGuard<'_, RefusalBuffer> {
        // Counts are whole after a panic.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl KeyRefusals {
    /// Drops the counts of the oldest hours beyond the bound, and numbers their requests.
    fn drop_oldest(&mut self, listed: &mut usize, uncounted: &mut u64) {
        while self.codes.len() > COUNTS_OF_KEY {
            let Some((_, dropped)) = self.codes.pop_first() else { return };
            *uncounted = uncounted.saturating_add(dropped.count);
            *listed = listed.saturating_sub(dropped.newest.len());
        }
    }
}

impl RefusalBuffer {
    /// Batches of a few API keys each, with what they are made of.
    pub(crate) fn into_batches(self) -> Vec<KeysOfBatch> {
        // Sorted: of two processes that add at once, none waits for a row of the other that waits for one of its own.
        let mut keys = self.keys.into_iter().collect::<BTreeMap<_, _>>().into_iter().peekable();
        let mut batches = Vec::new();
        while keys.peek().is_some() {
            let of_batch: Vec<_> = keys.by_ref().take(KEYS_OF_BATCH).collect();
            let batch = batch(&of_batch);
            batches.push((of_batch, batch));
        }
        batches
    }
}

fn batch(keys: &[(ApiKeyId, KeyRefusals)]) -> RefusalBatch {
    let mut batch = RefusalBatch::default();
    for (api_key, KeyRefusals { wallet, codes }) in keys {
        for ((hour, code), CodeRefusals { count, newest }) in codes {
            let of = RefusalHour {
                hour: *hour,
                wallet: *wallet,
                api_key: *api_key,
                code: (*code).into(),
            };
            batch.counts.push(RefusalCount { of, count: *count });
            batch.listed.extend(newest.iter().cloned());
        }
    }
    batch.listed.sort_by_key(|request| request.at);
    batch
}

#[cfg(test)]
mod tests {
    use super::*;

    fn note(collector: &RefusalCollector, api_key: u128, n: u128, code: &'static str) {
        let facts = RefusalFacts {
            id: RequestId::from_u128(n),
            code,
            status: 429,
            model: None,
            shortage: None,
        };
        let at = Timestamp::from_micros(i64::try_from(n).unwrap());
        collector.note((ApiKeyId::from_u128(api_key), WalletId::from_u128(1)), at, facts);
    }

    fn counted(batches: &[KeysOfBatch]) -> u64 {
        batches.iter().flat_map(|(_, batch)| &batch.counts).map(|count| count.count).sum()
    }

    fn listed(batches: &[KeysOfBatch]) -> usize {
        batches.iter().map(|(_, batch)| batch.listed.len()).sum()
    }

    #[test]
    fn a_flood_is_counted_and_only_its_newest_are_listed() {
        let collector = RefusalCollector::default();
        for n in 0..100_000 {
            note(&collector, 1, n, "rate_limit_exceeded");
        }
        note(&collector, 1, 100_000, "model_not_found");
        let batches = collector.take().into_batches();
        assert_eq!((batches.len(), counted(&batches)), (1, 100_001));
        let (_, batch) = &batches[0];
        assert_eq!((batch.counts.len(), batch.listed.len()), (2, LISTED_OF_CODE + 1));
        let newest = batch.listed.last().unwrap();
        assert_eq!((newest.id, &*newest.code), (RequestId::from_u128(100_000), "model_not_found"));
        assert!(batch.listed.iter().all(|request| request.at.as_micros() >= 99_975));
    }

    #[test]
    fn many_keys_meet_the_bounds_and_the_rest_is_numbered() {
        let collector = RefusalCollector::default();
        let keys = u128::try_from(KEYS_MAX).unwrap() + 10;
        for n in 0..3 * keys {
            note(&collector, n % keys, n, "overloaded");
        }
        let collected = collector.take();
        assert_eq!(collected.uncounted, 30);
        let batches = collected.into_batches();
        assert_eq!(listed(&batches), LISTED_MAX);
        assert_eq!(counted(&batches), u64::try_from(KEYS_MAX).unwrap() * 3);
        assert!(batches.iter().all(|(keys, _)| keys.len() <= KEYS_OF_BATCH));
    }

    #[test]
    fn counts_of_a_key_are_bounded_and_the_oldest_hours_go() {
        const HOUR: u128 = 3_600_000_000;
        let hours = u128::try_from(COUNTS_OF_KEY).unwrap() + 10;
        let collector = RefusalCollector::default();
        for hour in 0..hours {
            note(&collector, 1, hour * HOUR, "draining");
            note(&collector, 1, hour * HOUR + 1, "draining");
            let batches = collector.take().into_batches();
            collector.put_back(batches.into_iter().flat_map(|(keys, _)| keys));
        }
        let collected = collector.take();
        let batches = collected.into_batches();
        assert_eq!(batches[0].1.counts.len(), COUNTS_OF_KEY);
        let oldest = batches[0].1.counts.iter().map(|count| count.of.hour.as_micros()).min();
        assert_eq!(oldest, i64::try_from(10 * HOUR).ok());
        for hour in 0..hours {
            note(&collector, 1, hour * HOUR, "draining");
        }
        let collected = collector.take();
        assert_eq!((collected.uncounted, collected.listed), (10, COUNTS_OF_KEY));
    }

    #[test]
    fn what_was_not_written_comes_with_the_next_ones_and_stays_within_the_bounds() {
        let collector = RefusalCollector::default();
        for second in 0..10 {
            for n in 0..20 {
                note(&collector, 1, second * 20 + n, "draining");
            }
            let batches = collector.take().into_batches();
            collector.put_back(batches.into_iter().flat_map(|(keys, _)| keys));
        }
        let batches = collector.take().into_batches();
        assert_eq!((counted(&batches), listed(&batches)), (200, LISTED_OF_CODE));
        let oldest = &batches[0].1.listed[0];
        assert_eq!(oldest.at.as_micros(), 175, "the newest are kept");
    }
}
