//! Notes in the audit log of events without a change: reads, and failed sign-ins.
//!
//! | note | rows |
//! |---|---|
//! | a read of statements, usage, the audit log or people | one for each UTC day, actor, kind and wallet |
//! | failed sign-ins | for each hour, person and address group one at the first failure, and one of the others once the hour is over |
//!
//! Notes wait in memory, and the process writes them every few seconds ([`Accounts::write_notes`]). So neither a read
//! nor a failure waits for a write. A flood of failures makes no more rows than three times [`PAIRS_MAX`] pairs do. Of
//! the wallets that an actor reads within a day beyond [`WALLET_READS_MAX`] one row of each kind is left, without a
//! wallet. The command line with direct database access leaves no note of its reads.
//!
//! The request key of a read's note is made of the day, the actor, the kind and the wallet: several processes write one
//! row. A wallet that a filter names and that does not exist is left out of its read's note.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use holdfast_domain::admin::{
    AccountAction, AccountCommand, ActorId, Note, RequestBinding, ResourceId, UseCase, WalletBounds,
};
use holdfast_domain::{CommandKey, PersonId, Timestamp, WalletId};
use tokio::time::Instant;
use uuid::Uuid;

use crate::attempts::address_group;
use crate::{Accounts, Principal, Result, digest};

const DAY_MICROS: i64 = 86_400_000_000;
const HOUR_MICROS: i64 = 3_600_000_000;
/// Reads that wait for their row. One more waits without its wallet.
const READS_MAX: usize = 256;
/// Reads of wallets by one actor that are noted within a day, each with its wallet.
const WALLET_READS_MAX: u32 = 64;
/// Reads that are remembered as written.
const WRITTEN_MAX: usize = 4_096;
/// Pairs of person and address group whose failures are counted apart within an hour, and as many of no person. Beyond
/// them a person's failures share a row without an address group, of as many people; all others share one without either.
const PAIRS_MAX: usize = 64;

/// Read that is noted once a day.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Read {
    actor: ActorId,
    use_case: UseCase,
    thing: ResourceId,
}

/// Pair that failed sign-ins are counted by, with what is left out beyond [`PAIRS_MAX`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Pair {
    person: Option<PersonId>,
    group: Option<IpAddr>,
}

/// Failures of a pair within the hour.
#[derive(Debug, Clone, Copy, Default)]
struct Failures {
    counted: u64,
    written: u64,
}

#[derive(Debug, Default)]
struct State {
    /// Number of the day that `written` and `wallet_reads` are of.
    day: i64,
    /// End of that day; `None` before the first write.
    day_end: Option<Instant>,
    written: BTreeSet<Read>,
    /// Reads of wallets that were noted within the day, by actor.
    wallet_reads: BTreeMap<ActorId, u32>,
    /// Each with the network address of its actor.
    reads: BTreeMap<Read, Option<String>>,
    /// Number of the hour that `failures` are of; `None` before the first write.
    hour: Option<i64>,
    failures: BTreeMap<Pair, Failures>,
}

/// Notes that are not written yet.
#[derive(Debug, Default)]
pub(crate) struct Notes(Mutex<State>);

/// Failed sign-ins that were written to the audit log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FailedSignIns {
    /// Person of the e-mail address, if one with a password has it.
    pub person: Option<PersonId>,
    /// Address group of the clients; `None` for the failures beyond the pairs that are counted apart.
    pub group: Option<IpAddr>,
    /// Number of the failures.
    pub attempts: u64,
}

impl Notes {
    pub(crate) fn add_failure(&self, person: Option<PersonId>, address: IpAddr) {
        let mut state = self.state();
        // The finest row that has room: first the address group goes, then the person, and the
        // count never.
        let apart = Pair { person, group: Some(address_group(address)) };
        let of_person = Pair { person, group: None };
        let pair = [apart, of_person].into_iter().find(|pair| state.has_room(pair));
        let pair = pair.unwrap_or(Pair { person: None, group: None });
        let failures = state.failures.entry(pair).or_default();
        failures.counted = failures.counted.saturating_add(1);
    }

    /// True if a read waits for its row, or was written within the day.
    fn has_read(&self, read: &Read, now: Instant) -> bool {
        let mut state = self.state();
        // By the clock of this process: most reads end here, and must not cost a statement for the
        // database's.
        if state.day_end.is_some_and(|end| end <= now) {
            state.day_end = None;
            state.forget_day();
        }
        state.has_read(read)
    }

    /// Adds a read, without its wallet if its actor has read many or many wait. `own` takes the wallet's place.
    fn add_read(&self, mut read: Read, own: ResourceId, address: Option<String>) {
        let mut state = self.state();
        if state.has_read(&read) {
            return;
        }
        if read.thing != own {
            let noted = state.wallet_reads.get(&read.actor);
            let is_many = noted.is_some_and(|noted| *noted >= WALLET_READS_MAX);
            if is_many || state.reads.len() >= READS_MAX {
                read.thing = own;
            } else {
                let noted = state.wallet_reads.entry(read.actor).or_default();
                *noted = noted.saturating_add(1);
            }
        }
        if !state.has_read(&read) {
            state.reads.insert(read, address);
        }
    }

    /// The failures that are to be written at this moment, which count as written from now on.
    fn take_failures(&self, now: Timestamp, is_last: bool) -> Vec<FailedSignIns> {
        let mut state = self.state();
        let hour = now.as_micros().div_euclid(HOUR_MICROS);
        let before = state.hour.replace(hour);
        // Of the pair's first failure the row is written at once, for a person who looks on; the
        // others wait for the hour, so that a guesser does not write a row per guess.
        let is_over = is_last || before.is_some_and(|before| before != hour);
        let mut taken = Vec::new();
        for (pair, failures) in &mut state.failures {
            let attempts = failures.counted.saturating_sub(failures.written);
            if attempts > 0 && (is_over || failures.written == 0) {
                let Pair { person, group } = *pair;
                taken.push(FailedSignIns { person, group, attempts });
                failures.written = failures.counted;
            }
        }
        if is_over {
            state.failures.clear();
        }
        taken
    }

    /// Gives failures back that were not written.
    fn give_back(&self, FailedSignIns { person, group, attempts }: FailedSignIns) {
        let mut state = self.state();
        let failures = state.failures.entry(Pair { person, group }).or_default();
        // The hour may have ended with them: then they are counted again, beside those since.
        let kept = failures.written.min(attempts);
        failures.written = failures.written.saturating_sub(kept);
        failures.counted = failures.counted.saturating_add(attempts.saturating_sub(kept));
    }

    /// The reads that wait at this moment of the database's clock.
    fn waiting_reads(&self, at: Timestamp, now: Instant) -> Vec<(Read, Option<String>)> {
        let mut state = self.state();
        let day = at.as_micros().div_euclid(DAY_MICROS);
        if state.day != day {
            state.day = day;
            state.forget_day();
        }
        if state.written.len() > WRITTEN_MAX {
            // Forgetting is safe: a read that is noted again has the same request key, and the
            // store answers it as a repetition.
            state.written.clear();
        }
        let rest = DAY_MICROS.saturating_sub(at.as_micros().rem_euclid(DAY_MICROS));
        state.day_end = u64::try_from(rest).ok().map(|rest| now + Duration::from_micros(rest));
        state.reads.iter().map(|(read, address)| (*read, address.clone())).collect()
    }

    fn is_written(&self, read: Read) {
        let mut state = self.state();
        state.reads.remove(&read);
        state.written.insert(read);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Maps of counts are whole after a panic.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// True if failures of a pair are counted apart. Each kind of pair has a quota of its own, so that e-mail addresses
    /// of no person do not hide people.
    fn has_room(&self, pair: &Pair) -> bool {
        let kind = |pair: &Pair| (pair.person.is_some(), pair.group.is_some());
        let same_kind = self.failures.keys().filter(|counted| kind(counted) == kind(pair));
        self.failures.contains_key(pair) || same_kind.count() < PAIRS_MAX
    }

    fn has_read(&self, read: &Read) -> bool {
        self.written.contains(read) || self.reads.contains_key(read)
    }

    fn forget_day(&mut self) {
        self.written.clear();
        self.wallet_reads.clear();
    }
}

impl Accounts {
    /// Notes a read over a wallet, or over all of them. The note is written later.
    ///
    /// # Errors
    ///
    /// An [`AccountsError`](crate::AccountsError) if the wallet cannot be looked up.
    pub(crate) async fn note_read(
        &self,
        principal: &Principal,
        use_case: UseCase,
        wallet: Option<WalletId>,
    ) -> Result<()> {
        let own = match principal.actor {
            ActorId::Local | ActorId::Anonymous => return Ok(()),
            ActorId::AdminKey(id) => ResourceId::AdminKey(id),
            ActorId::Person(id) => ResourceId::Person(id),
        };
        let thing = principal.only_wallet().or(wallet).map_or(own, ResourceId::Wallet);
        let mut read = Read { actor: principal.actor, use_case, thing };
        if self.notes.has_read(&read, Instant::now()) {
            return Ok(());
        }
        let filter = wallet.filter(|_| principal.only_wallet().is_none());
        if let Some(wallet) = filter
            && self.book.wallet_record(wallet).await?.is_none()
        {
            read.thing = own;
        }
        self.notes.add_read(read, own, principal.address.clone());
        Ok(())
    }

    /// Writes the notes that are due, and returns the failed sign-ins among them. `is_last` at the end of the process:
    /// then all are due.
    ///
    /// # Errors
    ///
    /// An [`AccountsError`](crate::AccountsError): notes that were not written wait for the next call.
    pub async fn write_notes(&self, is_last: bool) -> Result<Vec<FailedSignIns>> {
        if self.notes.is_empty() {
            return Ok(Vec::new());
        }
        let now = self.book.clock().await?;
        self.write_reads(now).await?;
        // Taken out before they are written, so that the lock is not held across the writes; each
        // that is not written goes back.
        let taken = self.notes.take_failures(now, is_last);
        for (written, failed) in taken.iter().enumerate() {
            let note = Note::failed_sign_ins(failed.person, failed.attempts);
            let address = failed.group.map(|group| group.to_string());
            let key = CommandKey::from(Uuid::new_v4());
            let digest = digest(&[b"failed sign-ins", &key.to_bytes()]);
            let command = command(ActorId::Anonymous, address, (key, digest), note);
            if let Err(error) = self.book.administer(&command, self.writing_secret()?).await {
                taken.iter().skip(written).for_each(|failed| self.notes.give_back(*failed));
                return Err(error.into());
            }
        }
        Ok(taken)
    }

    async fn write_reads(&self, now: Timestamp) -> Result<()> {
        let day = now.as_micros().div_euclid(DAY_MICROS);
        for (read, address) in self.notes.waiting_reads(now, Instant::now()) {
            let Read { actor, use_case, thing } = read;
            let (by, of) = (actor.to_string(), thing.to_string());
            let (day, kind) = (day.to_be_bytes(), use_case.label().as_bytes());
            let digest = digest(&[b"read", &day, by.as_bytes(), kind, of.as_bytes()]);
            // Derived, not random: nodes that note the same read write one row between them.
            let [key @ .., _, _, _, _, _, _, _, _, _, _, _, _, _, _, _, _] = digest;
            let note = Note::read(use_case, thing);
            let command = command(actor, address, (CommandKey::from_bytes(key), digest), note);
            self.book.administer(&command, self.writing_secret()?).await?;
            // Only after its commit: a read that is marked before it would be lost with the write.
            self.notes.is_written(read);
        }
        Ok(())
    }
}

impl Notes {
    fn is_empty(&self) -> bool {
        let state = self.state();
        let is_waiting = |failures: &Failures| failures.counted > failures.written;
        state.reads.is_empty() && !state.failures.values().any(is_waiting)
    }
}

fn command(
    actor: ActorId,
    address: Option<String>,
    (key, digest): (CommandKey, [u8; 32]),
    note: Note,
) -> AccountCommand {
    let request = RequestBinding { key, digest, canonical: None };
    let (bounds, action) = (WalletBounds::DEFAULT, AccountAction::Note(note));
    let is_after_restore = false;
    AccountCommand { actor, address, request, reason: None, bounds, is_after_restore, action }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(hours: i64) -> Timestamp {
        Timestamp::from_micros(hours * HOUR_MICROS)
    }

    #[test]
    fn failures_of_a_pair_are_two_rows_an_hour_however_many_there_are() {
        let notes = Notes::default();
        let (person, address) = (Some(PersonId::from_u128(7)), IpAddr::from([192, 0, 2, 1]));
        let failed = |attempts| FailedSignIns { person, group: Some(address), attempts };
        notes.add_failure(person, address);
        assert_eq!(notes.take_failures(at(1), false), [failed(1)]);
        for _failure in 0..1_000 {
            notes.add_failure(person, address);
            assert_eq!(notes.take_failures(at(1), false), []);
        }
        assert_eq!(notes.take_failures(at(2), false), [failed(1_000)], "the hour is over");
        notes.add_failure(person, address);
        assert_eq!(notes.take_failures(at(2), false), [failed(1)]);
        notes.give_back(failed(1));
        assert_eq!(notes.take_failures(at(2), false), [failed(1)], "the write had failed");
        notes.add_failure(person, address);
        assert_eq!(notes.take_failures(at(2), true), [failed(1)], "the process ends");
    }

    #[test]
    fn reads_of_an_actor_are_bounded_within_a_day() {
        let (notes, start) = (Notes::default(), Instant::now());
        let actor = ActorId::Person(PersonId::from_u128(7));
        let own = ResourceId::Person(PersonId::from_u128(7));
        let read_all = || {
            for wallet in 0..1_000 {
                let thing = ResourceId::Wallet(WalletId::from_u128(wallet));
                notes.add_read(Read { actor, use_case: UseCase::UsageRead, thing }, own, None);
            }
        };
        let write = |at: Timestamp, now| {
            let waiting = notes.waiting_reads(at, now);
            waiting.iter().for_each(|(read, _address)| notes.is_written(*read));
            let without_wallet = waiting.iter().filter(|(read, _address)| read.thing == own);
            (waiting.len(), without_wallet.count())
        };
        read_all();
        let bound = usize::try_from(WALLET_READS_MAX).unwrap() + 1;
        assert_eq!(write(at(23), start), (bound, 1));
        read_all();
        assert_eq!(write(at(23), start), (0, 0));
        // The next day is noted even if nothing was to be written since.
        let (first, hour) = (WalletId::from_u128(0), Duration::from_secs(3_600));
        let read = Read { actor, use_case: UseCase::UsageRead, thing: ResourceId::Wallet(first) };
        assert!(notes.has_read(&read, start));
        assert!(!notes.has_read(&read, start + hour));
        read_all();
        assert_eq!(write(at(24), start + hour), (bound, 1));
    }

    #[test]
    fn pairs_of_an_hour_are_bounded_and_the_others_share_a_row() {
        let notes = Notes::default();
        for host in 0..1_000_u32 {
            notes.add_failure(None, IpAddr::from(host.to_be_bytes()));
        }
        let taken = notes.take_failures(at(1), false);
        assert_eq!(taken.len(), PAIRS_MAX + 1);
        assert_eq!(taken.iter().map(|failed| failed.attempts).sum::<u64>(), 1_000);
        let others = taken.iter().find(|failed| failed.group.is_none()).unwrap();
        assert_eq!(others.attempts, 1_000 - u64::try_from(PAIRS_MAX).unwrap());
    }

    #[test]
    fn failures_of_no_person_and_of_one_person_hide_no_other_one() {
        let notes = Notes::default();
        let (ada, bob) = (Some(PersonId::from_u128(7)), Some(PersonId::from_u128(8)));
        let address = IpAddr::from([192, 0, 2, 1]);
        for host in 0..1_000_u32 {
            notes.add_failure(None, IpAddr::from(host.to_be_bytes()));
        }
        notes.add_failure(bob, address);
        for host in 0..1_000_u32 {
            notes.add_failure(ada, IpAddr::from(host.to_be_bytes()));
        }
        notes.add_failure(bob, IpAddr::from([192, 0, 2, 2]));
        let taken = notes.take_failures(at(1), false);
        let of_bob = |group| FailedSignIns { person: bob, group, attempts: 1 };
        assert!(taken.contains(&of_bob(Some(address))) && taken.contains(&of_bob(None)));
        let of_ada = taken.iter().filter(|failed| failed.person == ada);
        assert_eq!(of_ada.map(|failed| failed.attempts).sum::<u64>(), 1_000);
        assert!(taken.len() <= 3 * PAIRS_MAX + 1);
    }

    #[test]
    fn failures_that_were_not_written_are_added_to_those_since() {
        let (notes, address) = (Notes::default(), IpAddr::from([192, 0, 2, 1]));
        let failed = |attempts| FailedSignIns { person: None, group: Some(address), attempts };
        for _failure in 0..5 {
            notes.add_failure(None, address);
        }
        assert_eq!(notes.take_failures(at(1), true), [failed(5)], "the hour is over");
        for _failure in 0..3 {
            notes.add_failure(None, address);
        }
        notes.give_back(failed(5));
        assert_eq!(notes.take_failures(at(1), true), [failed(8)]);
    }
}
