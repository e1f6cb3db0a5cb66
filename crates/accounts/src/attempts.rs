//! Failed attempts to sign in. They slow down, and lock nobody out.
//!
//! | counted for | after a failure |
//! |---|---|
//! | an address and an e-mail address | a pause of 1 s, twice as long after each one, at most 60 s |
//! | an e-mail address, over all addresses | 30 an hour, but for browsers that signed in before |
//!
//! Counts are of this process alone and last as long as it. They are bounded: what would be forgotten
//! first anyway goes first. A network of IPv6 (/64) is one address. E-mail addresses are kept as
//! hashes, those of nobody too.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// Entries of each of both maps.
const ENTRIES_MAX: usize = 10_000;
const PAUSE_MAX: Duration = Duration::from_secs(60);
/// Time without a failure after which a pause begins with a second again.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(3_600);
const HOUR: Duration = Duration::from_secs(3_600);
/// Failures of an e-mail address within an hour.
const HOURLY_MAX: u32 = 30;

/// Somebody who tries to sign in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Attempt {
    address: IpAddr,
    email: [u8; 16],
    /// True for a browser that the e-mail address signed in from before.
    is_known_device: bool,
}

impl Attempt {
    pub(crate) fn new(address: IpAddr, email: &str, is_known_device: bool) -> Self {
        let address = match address {
            IpAddr::V4(_) => address,
            IpAddr::V6(address) => match address.to_ipv4_mapped() {
                Some(inner) => IpAddr::V4(inner),
                None => {
                    let network = u128::from(address) & !u128::from(u64::MAX);
                    IpAddr::V6(network.into())
                }
            },
        };
        let [hash @ .., _, _, _, _, _, _, _, _, _, _, _, _, _, _, _, _] =
            *blake3::hash(email.as_bytes()).as_bytes();
        Self { address, email: hash, is_known_device }
    }
}

#[derive(Debug, Clone, Copy)]
struct Count {
    failures: u32,
    /// Moment until which whoever comes has to wait.
    closed_until: Instant,
    forgotten_at: Instant,
}

#[derive(Debug, Default)]
struct Counts {
    pairs: BTreeMap<(IpAddr, [u8; 16]), Count>,
    emails: BTreeMap<[u8; 16], Count>,
}

/// Failed attempts that are remembered.
#[derive(Debug, Default)]
pub(crate) struct FailedAttempts(Mutex<Counts>);

impl FailedAttempts {
    /// Time that has to pass before this attempt is judged.
    pub(crate) fn pause(&self, attempt: Attempt, now: Instant) -> Option<Duration> {
        let counts = self.counts();
        let pair = counts.pairs.get(&(attempt.address, attempt.email));
        let email = counts.emails.get(&attempt.email).filter(|_| !attempt.is_known_device);
        let closed = pair.into_iter().chain(email).map(|count| count.closed_until).max()?;
        Some(closed.saturating_duration_since(now)).filter(|pause| !pause.is_zero())
    }

    /// Notes that an attempt has failed.
    pub(crate) fn failed(&self, attempt: Attempt, now: Instant) {
        let mut counts = self.counts();
        let pair = entry(&mut counts.pairs, (attempt.address, attempt.email), now);
        let doublings = pair.failures.min(6);
        pair.failures = pair.failures.saturating_add(1);
        let pause = Duration::from_secs(1_u64.checked_shl(doublings).unwrap_or(u64::MAX));
        pair.closed_until = now + pause.min(PAUSE_MAX);
        pair.forgotten_at = now + FORGOTTEN_AFTER;
        if attempt.is_known_device {
            return;
        }
        let email = entry(&mut counts.emails, attempt.email, now);
        if email.failures == 0 {
            email.forgotten_at = now + HOUR;
        }
        email.failures = email.failures.saturating_add(1);
        if email.failures >= HOURLY_MAX {
            email.closed_until = email.forgotten_at;
        }
    }

    /// Notes that somebody has signed in.
    pub(crate) fn succeeded(&self, attempt: Attempt) {
        self.counts().pairs.remove(&(attempt.address, attempt.email));
    }

    fn counts(&self) -> MutexGuard<'_, Counts> {
        // Maps of counts are whole after a panic.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The count of a key, which is made where there is none, or none that is remembered.
fn entry<K: Ord + Copy>(counts: &mut BTreeMap<K, Count>, key: K, now: Instant) -> &mut Count {
    if counts.len() >= ENTRIES_MAX && !counts.contains_key(&key) {
        counts.retain(|_key, count| count.forgotten_at > now);
        let first = counts.iter().min_by_key(|(_key, count)| count.forgotten_at);
        if let Some(first) = first.map(|(key, _count)| *key).filter(|_| counts.len() >= ENTRIES_MAX)
        {
            counts.remove(&first);
        }
    }
    let fresh = Count { failures: 0, closed_until: now, forgotten_at: now };
    let count = counts.entry(key).or_insert(fresh);
    if count.forgotten_at <= now {
        *count = fresh;
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attempt(address: &str, email: &str) -> Attempt {
        Attempt::new(address.parse().unwrap(), email, false)
    }

    #[test]
    fn a_pair_waits_twice_as_long_after_each_failure_and_a_minute_at_most() {
        let (attempts, ours) = (FailedAttempts::default(), attempt("192.0.2.1", "a@b"));
        let mut now = Instant::now();
        assert_eq!(attempts.pause(ours, now), None);
        for seconds in [1, 2, 4, 8, 16, 32, 60, 60] {
            attempts.failed(ours, now);
            assert_eq!(attempts.pause(ours, now), Some(Duration::from_secs(seconds)));
            now += Duration::from_secs(seconds);
            assert_eq!(attempts.pause(ours, now), None, "it slows down, and never locks");
        }
        assert_eq!(attempts.pause(attempt("192.0.2.2", "a@b"), now), None);
        attempts.failed(ours, now);
        assert_eq!(attempts.pause(attempt("192.0.2.1", "b@b"), now), None);
        attempts.succeeded(ours);
        assert_eq!(attempts.pause(ours, now), None);
        attempts.failed(ours, now);
        now += FORGOTTEN_AFTER;
        attempts.failed(ours, now);
        assert_eq!(attempts.pause(ours, now), Some(Duration::from_secs(1)), "it is forgotten");
    }

    #[test]
    fn an_address_of_mail_has_30_failures_an_hour_but_for_browsers_that_are_known() {
        let attempts = FailedAttempts::default();
        let now = Instant::now();
        for host in 1..=30 {
            let from = attempt(&format!("192.0.2.{host}"), "a@b");
            assert_eq!(attempts.pause(from, now), None);
            attempts.failed(from, now);
        }
        let elsewhere = attempt("198.51.100.1", "a@b");
        assert_eq!(attempts.pause(elsewhere, now), Some(HOUR));
        assert_eq!(attempts.pause(Attempt { is_known_device: true, ..elsewhere }, now), None);
        assert_eq!(attempts.pause(attempt("198.51.100.1", "c@b"), now), None);
        assert_eq!(attempts.pause(elsewhere, now + HOUR), None);
    }

    #[test]
    fn what_is_remembered_is_bounded_and_a_network_is_one_address() {
        let attempts = FailedAttempts::default();
        let now = Instant::now();
        for count in 0..=ENTRIES_MAX {
            attempts.failed(attempt("192.0.2.1", &format!("{count}@b")), now);
        }
        assert_eq!(attempts.counts().pairs.len(), ENTRIES_MAX);
        assert_eq!(attempts.counts().emails.len(), ENTRIES_MAX);
        let [one, other] = ["2001:db8::1", "2001:db8::2"].map(|host| attempt(host, "a@b"));
        assert_eq!(one, other);
        assert_ne!(one, attempt("2001:db8:0:1::1", "a@b"));
        assert_eq!(attempt("::ffff:192.0.2.1", "a@b"), attempt("192.0.2.1", "a@b"));
    }
}
