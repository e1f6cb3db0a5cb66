//! Attempts to sign in. Failures slow an attempt down, and lock no person out.
//!
//! | counted for | after a failure |
//! |---|---|
//! | an e-mail address, an address group and a listener | a pause of 1 s, doubled by each failure, at most 60 s |
//! | an e-mail address and a listener, over all address groups | 30 an hour, then one attempt a minute |
//! | a browser with a mark of the person, or a session | the pause alone, under a key of its own |
//!
//! An attempt counts as a failure before its hash is computed, in the step that judges the pause: of parallel
//! attempts within one pause one is judged. A success takes its own count back, and so does an attempt without a
//! verdict.
//!
//! Counts are in the memory of this process, and bounded: the ones that would be forgotten first go first. A new
//! password forgets all of its person. A network of IPv6 (/64) is one address group. E-mail addresses are kept as
//! hashes, unknown ones too.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use holdfast_domain::Timestamp;
use tokio::time::Instant;

use crate::origin::Listener;

// Every unknown address adds an entry: without a bound a flood of made-up ones fills the memory.
/// Entries of each map.
const ENTRIES_MAX: usize = 10_000;
const PAUSE_MAX: Duration = Duration::from_secs(60);
/// Time without a failure after which a pause begins with a second again.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(3_600);
const HOUR: Duration = Duration::from_secs(3_600);
/// Failures of an e-mail address at a listener within an hour that the pauses of pairs alone slow down.
const HOURLY_MAX: u32 = 30;
/// Pause of all address groups together above [`HOURLY_MAX`].
const PAUSE_ABOVE: Duration = Duration::from_secs(60);

/// The e-mail address of an attempt, and the listener.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct AttemptSubject {
    email: [u8; 16],
    listener: Listener,
}

/// Client of an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum AttemptClient {
    /// An address group.
    Stranger(IpAddr),
    /// A browser with a mark of the person, or a session of theirs.
    Known([u8; 16]),
}

/// Attempt to prove a password.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Attempt {
    subject: AttemptSubject,
    client: AttemptClient,
    /// Moment at which the person's password was set; failures of before are forgotten.
    password_set_at: Timestamp,
}

impl Attempt {
    /// An attempt of an address group. `password_set_at` is `None` if no person has the e-mail address.
    pub(crate) fn of_stranger(
        (address, listener): (IpAddr, Listener),
        email: &str,
        password_set_at: Option<Timestamp>,
    ) -> Self {
        let subject = AttemptSubject { email: short_hash(email.as_bytes()), listener };
        let client = AttemptClient::Stranger(address_group(address));
        let password_set_at = password_set_at.unwrap_or(Timestamp::from_micros(0));
        Self { subject, client, password_set_at }
    }

    /// The same attempt by a browser with a mark, or in a session, which has these bytes.
    pub(crate) fn by_known(self, browser: &[u8]) -> Self {
        Self { client: AttemptClient::Known(short_hash(browser)), ..self }
    }
}

/// The first half of a hash.
fn short_hash(bytes: &[u8]) -> [u8; 16] {
    let [half @ .., _, _, _, _, _, _, _, _, _, _, _, _, _, _, _, _] =
        *blake3::hash(bytes).as_bytes();
    half
}

/// Addresses that count as one: an address of IPv4, or a network of IPv6 (/64).
pub(crate) fn address_group(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(_) => address,
        IpAddr::V6(inner) => inner.to_ipv4_mapped().map_or_else(
            || IpAddr::V6((u128::from(inner) & !u128::from(u64::MAX)).into()),
            IpAddr::V4,
        ),
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct AttemptCount {
    failures: u32,
    /// Moment before which no attempt is judged.
    closed_until: Instant,
    forgotten_at: Instant,
    password_set_at: Timestamp,
}

#[derive(Debug, Default)]
struct AttemptCounts {
    clients: BTreeMap<(AttemptSubject, AttemptClient), AttemptCount>,
    emails: BTreeMap<AttemptSubject, AttemptCount>,
}

/// A count that an attempt has changed.
#[derive(Debug, Clone, Copy)]
struct CountChange {
    before: Option<AttemptCount>,
    after: AttemptCount,
}

/// Failures that are remembered. One lock for clients and addresses: an attempt is judged by both and counted in one
/// step, or parallel attempts would all pass the same pause.
#[derive(Debug, Default)]
pub(crate) struct FailedAttempts(Mutex<AttemptCounts>);

/// An attempt that is judged now. Dropped without [`AttemptReservation::keep`], the failure that it counts as is taken back.
#[derive(Debug)]
pub(crate) struct AttemptReservation<'a> {
    attempts: &'a FailedAttempts,
    attempt: Attempt,
    client: CountChange,
    email: Option<CountChange>,
    is_kept: bool,
}

impl FailedAttempts {
    /// Judges the pauses of an attempt and counts it as a failure, in one step.
    ///
    /// # Errors
    ///
    /// Time that has to pass before the attempt is judged.
    pub(crate) fn reserve(
        &self,
        attempt: Attempt,
        now: Instant,
    ) -> Result<AttemptReservation<'_>, Duration> {
        let Attempt { subject, client, password_set_at } = attempt;
        let mut counts = self.counts();
        let of_client = remembered(&counts.clients, &(subject, client), attempt, now);
        let is_stranger = matches!(client, AttemptClient::Stranger(_));
        // A known browser is not held up by the count of its address: a stranger could otherwise
        // keep a person from signing in with thirty wrong guesses.
        let of_email = remembered(&counts.emails, &subject, attempt, now).filter(|_| is_stranger);
        let closed = of_client.into_iter().chain(of_email).map(|it| it.closed_until).max();
        let pause = closed.map(|closed| closed.saturating_duration_since(now));
        if let Some(pause) = pause.filter(|pause| !pause.is_zero()) {
            return Err(pause);
        }
        let failures = of_client.map_or(0, |count| count.failures);
        // Six doublings are 64 s, the first value above the bound; a larger shift would have the
        // same result.
        let pause = Duration::from_secs(1_u64.checked_shl(failures.min(6)).unwrap_or(u64::MAX));
        let after = AttemptCount {
            failures: failures.saturating_add(1),
            closed_until: now + pause.min(PAUSE_MAX),
            forgotten_at: now + FORGOTTEN_AFTER,
            password_set_at,
        };
        put(&mut counts.clients, (subject, client), after, now);
        let email = is_stranger.then(|| {
            let failures = of_email.map_or(0, |count| count.failures).saturating_add(1);
            let pause = if failures >= HOURLY_MAX { PAUSE_ABOVE } else { Duration::ZERO };
            // The hour runs from its first failure and is not extended: else one guess per minute
            // would keep the bound in force for as long as an attacker likes.
            let forgotten_at = of_email.map_or(now + HOUR, |count| count.forgotten_at);
            let closed_until = now + pause;
            let after = AttemptCount { failures, closed_until, forgotten_at, password_set_at };
            put(&mut counts.emails, subject, after, now);
            CountChange { before: of_email, after }
        });
        let client = CountChange { before: of_client, after };
        Ok(AttemptReservation { attempts: self, attempt, client, email, is_kept: false })
    }

    fn counts(&self) -> MutexGuard<'_, AttemptCounts> {
        // Maps of counts are whole after a panic.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl AttemptReservation<'_> {
    /// Keeps the failure: the password was wrong.
    pub(crate) fn keep(mut self) {
        self.is_kept = true;
    }

    /// Forgets the failures of the client: the password was right.
    pub(crate) fn succeed(self) {
        let key = (self.attempt.subject, self.attempt.client);
        // Only this client's count: a success in one place does not vouch for the guesses of
        // others. `Drop` takes the failure of the address back; it locks again, so no guard may
        // live until then.
        self.attempts.counts().clients.remove(&key);
    }
}

impl Drop for AttemptReservation<'_> {
    fn drop(&mut self) {
        if self.is_kept {
            return;
        }
        let Attempt { subject, client, .. } = self.attempt;
        let mut counts = self.attempts.counts();
        take_back(&mut counts.clients, (subject, client), self.client);
        if let Some(email) = self.email {
            take_back(&mut counts.emails, subject, email);
        }
    }
}

/// The count of a key, unless it is forgotten or of a password before.
fn remembered<K: Ord>(
    counts: &BTreeMap<K, AttemptCount>,
    key: &K,
    attempt: Attempt,
    now: Instant,
) -> Option<AttemptCount> {
    let is_of_now = |count: &&AttemptCount| {
        // A count of the password before ends here, or a person with a new password would wait for
        // the guesses at the old one.
        count.forgotten_at > now && count.password_set_at >= attempt.password_set_at
    };
    counts.get(key).filter(is_of_now).copied()
}

fn put<K: Ord + Copy>(
    counts: &mut BTreeMap<K, AttemptCount>,
    key: K,
    count: AttemptCount,
    now: Instant,
) {
    if counts.len() >= ENTRIES_MAX && !counts.contains_key(&key) {
        // Only when full, because it walks the whole map under the lock.
        counts.retain(|_key, count| count.forgotten_at > now);
        let first = counts.iter().min_by_key(|(_key, count)| count.forgotten_at);
        if let Some(first) = first.map(|(key, _count)| *key).filter(|_| counts.len() >= ENTRIES_MAX)
        {
            counts.remove(&first);
        }
    }
    counts.insert(key, count);
}

/// Takes one failure back: the whole change, unless another attempt came after it.
fn take_back<K: Ord>(counts: &mut BTreeMap<K, AttemptCount>, key: K, change: CountChange) {
    let Some(count) = counts.get_mut(&key) else { return };
    // Another attempt was counted meanwhile: its pause stays, and restoring the count of before
    // would forgive it.
    if *count != change.after {
        count.failures = count.failures.saturating_sub(1);
        return;
    }
    match change.before {
        Some(before) => *count = before,
        None => {
            counts.remove(&key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ADMIN: Listener = Listener::Operators;

    fn attempt(address: &str, email: &str) -> Attempt {
        Attempt::of_stranger((address.parse().unwrap(), ADMIN), email, None)
    }

    fn fail(attempts: &FailedAttempts, attempt: Attempt, now: Instant) {
        attempts.reserve(attempt, now).unwrap().keep();
    }

    /// The pause before an attempt, which then is not made.
    fn pause(attempts: &FailedAttempts, attempt: Attempt, now: Instant) -> Option<Duration> {
        attempts.reserve(attempt, now).err()
    }

    #[test]
    fn a_pair_waits_twice_as_long_after_each_failure_and_a_minute_at_most() {
        let (attempts, ours) = (FailedAttempts::default(), attempt("192.0.2.1", "a@b"));
        let mut now = Instant::now();
        assert_eq!(pause(&attempts, ours, now), None);
        for seconds in [1, 2, 4, 8, 16, 32, 60, 60] {
            fail(&attempts, ours, now);
            assert_eq!(pause(&attempts, ours, now), Some(Duration::from_secs(seconds)));
            now += Duration::from_secs(seconds);
            assert_eq!(pause(&attempts, ours, now), None, "it slows down, and never locks");
        }
        assert_eq!(pause(&attempts, attempt("192.0.2.2", "a@b"), now), None);
        fail(&attempts, ours, now);
        assert_eq!(pause(&attempts, attempt("192.0.2.1", "b@b"), now), None);
        now += PAUSE_MAX;
        attempts.reserve(ours, now).unwrap().succeed();
        assert_eq!(pause(&attempts, ours, now), None);
        fail(&attempts, ours, now);
        now += FORGOTTEN_AFTER;
        fail(&attempts, ours, now);
        assert_eq!(pause(&attempts, ours, now), Some(Duration::from_secs(1)), "it is forgotten");
    }

    #[test]
    fn of_parallel_attempts_within_one_pause_one_is_judged() {
        let (attempts, ours) = (FailedAttempts::default(), attempt("192.0.2.1", "a@b"));
        let now = Instant::now();
        let first = attempts.reserve(ours, now).unwrap();
        for _parallel in 0..24 {
            assert_eq!(pause(&attempts, ours, now), Some(Duration::from_secs(1)));
        }
        // No verdict: the attempt was none.
        drop(first);
        let second = attempts.reserve(ours, now).unwrap();
        let later = attempts.reserve(ours, now + Duration::from_secs(1)).unwrap();
        drop(second);
        later.keep();
        let now = now + Duration::from_secs(1);
        assert_eq!(pause(&attempts, ours, now), Some(Duration::from_secs(2)), "of the later one");
    }

    #[test]
    fn an_email_address_above_its_hourly_bound_has_one_attempt_a_minute() {
        let attempts = FailedAttempts::default();
        let mut now = Instant::now();
        for host in 1..=HOURLY_MAX {
            fail(&attempts, attempt(&format!("192.0.2.{host}"), "a@b"), now);
        }
        let elsewhere = attempt("198.51.100.1", "a@b");
        for host in 2..5 {
            assert_eq!(pause(&attempts, elsewhere, now), Some(PAUSE_ABOVE));
            now += PAUSE_ABOVE;
            assert_eq!(pause(&attempts, elsewhere, now), None, "one is judged all the same");
            fail(&attempts, attempt(&format!("198.51.100.{host}"), "a@b"), now);
        }
        assert_eq!(pause(&attempts, attempt("198.51.100.1", "c@b"), now), None);
        now += HOUR;
        fail(&attempts, elsewhere, now);
        assert_eq!(pause(&attempts, attempt("198.51.100.9", "a@b"), now), None, "an hour is over");
    }

    #[test]
    fn failures_at_one_listener_close_no_other_one() {
        let attempts = FailedAttempts::default();
        let now = Instant::now();
        let at = |listener, host: u32| {
            let address = format!("192.0.2.{host}").parse().unwrap();
            Attempt::of_stranger((address, listener), "a@b", None)
        };
        for host in 1..=HOURLY_MAX {
            fail(&attempts, at(Listener::Holders, host), now);
        }
        assert_eq!(pause(&attempts, at(Listener::Holders, 99), now), Some(PAUSE_ABOVE));
        for host in [1, 99] {
            assert_eq!(pause(&attempts, at(Listener::Operators, host), now), None);
        }
    }

    #[test]
    fn a_browser_with_a_mark_has_a_pause_of_its_own() {
        let attempts = FailedAttempts::default();
        let now = Instant::now();
        for host in 1..=HOURLY_MAX {
            fail(&attempts, attempt(&format!("192.0.2.{host}"), "a@b"), now);
        }
        let stranger = attempt("192.0.2.1", "a@b");
        let [ours, other] = [&b"ours"[..], b"other"].map(|mark| stranger.by_known(mark));
        fail(&attempts, ours, now);
        assert_eq!(pause(&attempts, ours, now), Some(Duration::from_secs(1)));
        assert_eq!(pause(&attempts, other, now), None);
        assert_eq!(pause(&attempts, ours, now + Duration::from_secs(1)), None);
        // Nor is its failure one of the e-mail address.
        assert_eq!(attempts.counts().emails.values().next().unwrap().failures, HOURLY_MAX);
    }

    #[test]
    fn a_new_password_forgets_the_failures_of_before() {
        let attempts = FailedAttempts::default();
        let now = Instant::now();
        let address = "192.0.2.1".parse().unwrap();
        let set_at = |micros| {
            let set_at = Some(Timestamp::from_micros(micros));
            Attempt::of_stranger((address, ADMIN), "a@b", set_at)
        };
        for host in 1..=HOURLY_MAX {
            fail(&attempts, attempt(&format!("198.51.100.{host}"), "a@b"), now);
        }
        assert_eq!(pause(&attempts, attempt("192.0.2.1", "a@b"), now), Some(PAUSE_ABOVE));
        assert_eq!(pause(&attempts, set_at(1), now), None);
        fail(&attempts, set_at(1), now);
        assert_eq!(pause(&attempts, set_at(1), now), Some(Duration::from_secs(1)));
        assert_eq!(pause(&attempts, set_at(2), now), None);
    }

    #[test]
    fn what_is_remembered_is_bounded_and_a_network_is_one_address() {
        let attempts = FailedAttempts::default();
        let now = Instant::now();
        for count in 0..=ENTRIES_MAX {
            fail(&attempts, attempt("192.0.2.1", &format!("{count}@b")), now);
        }
        assert_eq!(attempts.counts().clients.len(), ENTRIES_MAX);
        assert_eq!(attempts.counts().emails.len(), ENTRIES_MAX);
        let [one, other] = ["2001:db8::1", "2001:db8::2"].map(|host| attempt(host, "a@b"));
        assert_eq!(one, other);
        assert_ne!(one, attempt("2001:db8:0:1::1", "a@b"));
        assert_eq!(attempt("::ffff:192.0.2.1", "a@b"), attempt("192.0.2.1", "a@b"));
    }
}
