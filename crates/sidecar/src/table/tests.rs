//! The table, row by row, as the manual lists them.
//!
//! A bench has a table and a clock in milliseconds that only its test moves, so that each test is a history of arrivals
//! and ends. Keys are compared: the same key is the same run, another one is another charge.
//!
//! The last test compares the names here with the manual's list, so that a rule of the manual without a test fails.
//! Histories that no table lists are the model's (`table/model.rs`).

use super::*;

const BODY: BodyDigest = BodyDigest([1; 32]);
const WINDOW: Duration = Duration::from_secs(600);

/// Moment at which an arrival is judged: before the sockets of its twins were checked, or after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Look {
    Before,
    After,
}

/// A table and its clock, in milliseconds.
struct Bench {
    table: CallTable,
    now: u64,
    callers: u64,
}

fn bench(identical: IdenticalCalls) -> Bench {
    let rules = Rules { identical, window: WINDOW };
    let now = 1_000_000;
    Bench { table: CallTable::restore(rules, Vec::new(), Moment(now)), now, callers: 0 }
}

impl Bench {
    fn admit(&mut self, is_retry: bool, look: Look) -> (CallerId, SlotAdmission) {
        self.admit_with(BODY, is_retry, look)
    }

    fn admit_with(
        &mut self,
        body: BodyDigest,
        is_retry: bool,
        look: Look,
    ) -> (CallerId, SlotAdmission) {
        let has_looked = look == Look::After;
        self.callers += 1;
        let (caller, fresh) = (CallerId(self.callers), Uuid::from_u128(self.callers.into()));
        let arrival = Arrival { caller, body, is_retry, has_looked, fresh };
        (caller, self.table.arrive(&arrival, Moment(self.now)))
    }

    /// A call whose twins were looked at, and found alive.
    fn arrive(&mut self, is_retry: bool) -> (CallerId, Uuid) {
        let (caller, admission) = self.admit(is_retry, Look::After);
        let SlotAdmission::Slot { record, .. } = admission else { panic!("{admission:?}") };
        (caller, record.key)
    }

    fn leave(&mut self, caller: CallerId, end: CallEnd) -> Option<TableChange> {
        self.table.leave(caller, end, Moment(self.now))
    }

    fn sweep(&mut self) -> Vec<Uuid> {
        let old = self.table.sweep(Moment(self.now));
        old.into_iter().map(|record| record.key).collect()
    }

    fn pass(&mut self, time: Duration) {
        self.now += u64::try_from(time.as_millis()).unwrap();
    }

    /// The key after a call under a new key ended so.
    fn after(&mut self, end: CallEnd) -> Uuid {
        let (caller, key) = self.arrive(false);
        self.leave(caller, end);
        key
    }
}

const SECOND: Duration = Duration::from_secs(1);

#[test]
fn identical_calls_one_after_the_other_are_two() {
    let mut bench = bench(IdenticalCalls::New);
    let first = bench.after(CallEnd::Delivered);
    assert_ne!(bench.arrive(false).1, first);
}

#[test]
fn identical_calls_at_once_are_two_unless_they_share() {
    let mut apart = bench(IdenticalCalls::New);
    assert_ne!(apart.arrive(false).1, apart.arrive(false).1);
    let mut shared = bench(IdenticalCalls::Attach);
    assert_eq!(shared.arrive(false).1, shared.arrive(false).1);
}

#[test]
fn who_comes_with_the_body_of_an_orphan_takes_the_oldest() {
    let mut bench = bench(IdenticalCalls::New);
    let (one, oldest) = bench.arrive(false);
    let (two, newer) = bench.arrive(false);
    bench.leave(two, CallEnd::Gone);
    bench.leave(one, CallEnd::Gone);
    assert_eq!(bench.arrive(false).1, oldest);
    assert_eq!(bench.arrive(true).1, newer);
}

#[test]
fn an_error_that_may_pass_leaves_an_orphan() {
    let mut bench = bench(IdenticalCalls::New);
    let key = bench.after(CallEnd::Retryable);
    assert_eq!(bench.arrive(false).1, key);
}

#[test]
fn a_marked_retry_gets_what_was_delivered_within_two_minutes() {
    let mut bench = bench(IdenticalCalls::New);
    let key = bench.after(CallEnd::Delivered);
    bench.pass(REPLAY_TIME - SECOND);
    let (caller, again) = bench.arrive(true);
    assert_eq!(again, key);
    bench.leave(caller, CallEnd::Delivered);
    bench.pass(REPLAY_TIME);
    assert_ne!(bench.arrive(true).1, key);
}

#[test]
fn a_marked_retry_prefers_the_latest() {
    let mut bench = bench(IdenticalCalls::New);
    bench.after(CallEnd::Delivered);
    bench.pass(SECOND);
    let latest = bench.after(CallEnd::Delivered);
    assert_eq!(bench.arrive(true).1, latest);
}

#[test]
fn a_marked_retry_joins_what_is_attended() {
    let mut bench = bench(IdenticalCalls::New);
    let (_, oldest) = bench.arrive(false);
    bench.arrive(false);
    assert_eq!(bench.arrive(true).1, oldest);
}

#[test]
fn a_final_error_is_everybodys_for_a_minute() {
    let mut bench = bench(IdenticalCalls::New);
    let key = bench.after(CallEnd::Final);
    bench.pass(FAILED_TIME - SECOND);
    let (caller, again) = bench.arrive(false);
    assert_eq!(again, key);
    bench.leave(caller, CallEnd::Final);
    bench.pass(FAILED_TIME);
    assert_ne!(bench.arrive(false).1, key);
}

#[test]
fn a_client_that_retries_a_final_error_gets_it_for_ten_minutes() {
    for is_retry in [false, true] {
        let mut bench = bench(IdenticalCalls::New);
        let key = bench.after(CallEnd::Final);
        let pause = FAILED_TIME - SECOND;
        let mut passed = pause;
        while passed < FAILED_TIME_MAX {
            bench.pass(pause);
            let (caller, again) = bench.arrive(is_retry);
            assert_eq!(again, key, "after {passed:?}");
            bench.leave(caller, CallEnd::Final);
            assert!(!bench.sweep().contains(&key), "after {passed:?}");
            passed += pause;
        }
        bench.pass(pause);
        let (caller, next) = bench.arrive(is_retry);
        assert_ne!(next, key, "no longer, however often it was requested");
        bench.leave(caller, CallEnd::Final);
        bench.pass(pause);
        assert_eq!(bench.arrive(is_retry).1, next, "the new call's error is given as long");
    }
}

#[test]
fn a_refusal_that_binds_nothing_ends_the_slot() {
    let mut bench = bench(IdenticalCalls::New);
    let (caller, key) = bench.arrive(false);
    let change = bench.leave(caller, CallEnd::Refused);
    assert!(matches!(change, Some(TableChange::Remove { key: gone, .. }) if gone == key));
    assert_ne!(bench.arrive(true).1, key);
}

#[test]
fn a_refusal_after_a_cut_leaves_an_orphan() {
    let mut bench = bench(IdenticalCalls::New);
    let (caller, key) = bench.arrive(false);
    bench.table.cut(caller);
    bench.leave(caller, CallEnd::Refused);
    assert_eq!(bench.arrive(false).1, key);
}

#[test]
fn a_refusal_after_a_caller_went_leaves_an_orphan() {
    let mut bench = bench(IdenticalCalls::New);
    let key = bench.after(CallEnd::Gone);
    let (caller, _) = bench.arrive(false);
    bench.leave(caller, CallEnd::Refused);
    assert_eq!(bench.arrive(false).1, key);
}

#[test]
fn a_refusal_after_nobody_knew_leaves_an_orphan() {
    let mut bench = bench(IdenticalCalls::New);
    for (end, is_kept) in [(CallEnd::Unsure, true), (CallEnd::Retryable, false)] {
        let key = bench.after(end);
        let (caller, again) = bench.arrive(false);
        assert_eq!(again, key, "{end:?}");
        bench.leave(caller, CallEnd::Refused);
        let (caller, next) = bench.arrive(false);
        assert_eq!(next == key, is_kept, "{end:?}");
        bench.leave(caller, CallEnd::Delivered);
    }
}

#[test]
fn a_twin_waits_until_the_sockets_were_looked_at() {
    let mut bench = bench(IdenticalCalls::New);
    let (first, key) = bench.arrive(false);
    assert_eq!(bench.admit(false, Look::Before).1, SlotAdmission::Look(vec![first]));
    assert_eq!(bench.admit(true, Look::Before).1, SlotAdmission::Look(vec![first]));
    bench.leave(first, CallEnd::Gone);
    let (_, admission) = bench.admit(false, Look::Before);
    assert!(matches!(admission, SlotAdmission::Slot { record, .. } if record.key == key));
}

#[test]
fn a_shared_answer_that_somebody_has_had_is_delivered() {
    let mut bench = bench(IdenticalCalls::Attach);
    let (one, key) = bench.arrive(false);
    let (two, _) = bench.arrive(false);
    assert_eq!(bench.leave(one, CallEnd::Delivered), None);
    bench.leave(two, CallEnd::Gone);
    assert_ne!(bench.arrive(false).1, key);
}

#[test]
fn a_reset_after_the_answer_takes_the_delivery_back() {
    let mut bench = bench(IdenticalCalls::New);
    let key = bench.after(CallEnd::Delivered);
    assert!(bench.table.reset(key, Moment(bench.now)).is_some());
    assert_eq!(bench.arrive(false).1, key);
}

#[test]
fn a_slot_stays_for_its_window_and_never_goes_while_it_is_attended() {
    let mut bench = bench(IdenticalCalls::New);
    let (caller, key) = bench.arrive(false);
    bench.pass(WINDOW * 2);
    assert!(bench.sweep().is_empty());
    bench.leave(caller, CallEnd::Gone);
    bench.pass(WINDOW - SECOND);
    assert!(bench.sweep().is_empty());
    bench.pass(SECOND);
    assert_eq!(bench.sweep(), [key]);
    assert_ne!(bench.arrive(true).1, key);
}

#[test]
fn a_window_is_over_before_the_table_is_swept() {
    for (end, is_retry) in
        [(CallEnd::Gone, false), (CallEnd::Delivered, true), (CallEnd::Final, false)]
    {
        let mut bench = bench(IdenticalCalls::Attach);
        bench.table.rules.window = SECOND * 5;
        let key = bench.after(end);
        bench.pass(SECOND * 4);
        let (caller, again) = bench.arrive(is_retry);
        assert_eq!(again, key, "{end:?}");
        bench.leave(caller, end);
        bench.pass(SECOND * 5);
        assert_ne!(bench.arrive(is_retry).1, key, "{end:?}");
    }
}

#[test]
fn a_sidecar_that_died_has_left_orphans() {
    let mut bench = bench(IdenticalCalls::New);
    let (_, open) = bench.arrive(false);
    let record = bench.table.slots[&open].record;
    bench.pass(WINDOW * 2);
    let now = Moment(bench.now);
    bench.table = CallTable::restore(bench.table.rules, vec![record], now);
    assert!(bench.sweep().is_empty(), "nobody knows when its caller went");
    let (caller, key) = bench.arrive(false);
    assert_eq!(key, open);
    bench.leave(caller, CallEnd::Refused);
    assert_eq!(bench.arrive(false).1, open, "it may have been asked for");
}

#[test]
fn a_full_table_drops_what_has_ended_and_nothing_else() {
    let mut bench = bench(IdenticalCalls::New);
    let first = bench.after(CallEnd::Delivered);
    bench.pass(SECOND);
    let second = bench.after(CallEnd::Delivered);
    for number in 2..SLOTS_MAX {
        let mut body = [0; 32];
        body[..8].copy_from_slice(&number.to_be_bytes());
        bench.admit_with(BodyDigest(body), false, Look::After);
    }
    assert_eq!(bench.arrive(true).1, second, "who asks again keeps it");
    let (_, admission) = bench.admit(false, Look::After);
    assert!(matches!(admission, SlotAdmission::Slot { evicted: Some(it), .. } if it.key == first));
    assert_eq!(bench.admit(false, Look::After).1, SlotAdmission::Full);
}

#[test]
fn the_manual_names_every_test_of_the_table_and_no_other() {
    let manual = include_str!("../../../../docs/how-to/use-the-sidecar.md");
    let rows = manual.lines().filter(|line| line.starts_with('|'));
    let last = rows.filter_map(|row| row.trim_end_matches([' ', '|']).rsplit(" | ").next());
    let named: BTreeSet<&str> =
        last.flat_map(|cell| cell.split('`')).filter(|it| it.matches('_').count() > 3).collect();
    let tests = include_str!("tests.rs").split("#[test]\nfn ").skip(1);
    let tests = tests.filter_map(|it| it.split('(').next());
    let tests: BTreeSet<&str> = tests.filter(|it| !it.starts_with("the_manual_names")).collect();
    assert_eq!(named, tests);
}

#[test]
fn what_ended_by_a_clock_that_was_ahead_ends_for_its_time_and_no_longer() {
    let rules = Rules { identical: IdenticalCalls::New, window: WINDOW };
    let now = 1_000_000;
    let ahead = Moment(now + 3_600_000);
    let key = Uuid::from_u128(7);
    let record = Record { key, body: BODY, stage: Stage::Failed, born: ahead, seen: ahead };
    let table = CallTable::restore(rules, vec![record], Moment(now));
    let mut bench = Bench { table, now, callers: 0 };
    bench.pass(FAILED_TIME);
    assert_ne!(bench.arrive(false).1, key);
}
