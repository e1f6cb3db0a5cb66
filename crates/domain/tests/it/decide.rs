//! Every event over every phase, as one table; and what each change moves.

mod moves;
mod reap;

use holdfast_domain::limits::CounterReadings;
use holdfast_domain::operation::{
    Claim, Disown, Effect, Event, Finish, Lease, Operation, Receipt, SendStatus, Snapshot,
    Transition, Version, decide,
};
use holdfast_domain::{ClaimId, Micros, Refusal, Timestamp};
use holdfast_testkit::sample::{self, CLAIM, LEASE, NOW};

const OTHER: ClaimId = ClaimId::from_u128(0xff);

/// What is expected, in words: an effect, or a refusal with its first letter capital. The columns are
/// no row, leased, recorded, open, completed, refused, abandoned.
#[rustfmt::skip]
const TABLE: [(&str, [&str; 7]); 30] = [
    ("claim",                  ["admit",     "Leased",       "Recorded",     "reopen",       "Ended",        "Ended",        "Ended"]),
    ("claim, other request",   ["admit",     "OtherRequest", "OtherRequest", "OtherRequest", "OtherRequest", "OtherRequest", "OtherRequest"]),
    ("claim, own lease dead",  ["LeaseLost", "Leased",       "Recorded",     "LeaseLost",    "Ended",        "Ended",        "Ended"]),
    ("claim, both of these",   ["LeaseLost", "OtherRequest", "OtherRequest", "OtherRequest", "OtherRequest", "OtherRequest", "OtherRequest"]),
    ("claim, id used",         ["admit",     "Leased",       "Recorded",     "ClaimUsed",    "Ended",        "Ended",        "Ended"]),
    ("claim, too soon",        ["admit",     "Leased",       "Recorded",     "TooSoon",      "Ended",        "Ended",        "Ended"]),
    ("claim, in a window",     ["LedgerRestored", "Leased",  "Recorded",     "LedgerRestored", "Ended",      "Ended",        "Ended"]),
    ("claim, window over",     ["admit",     "Leased",       "Recorded",     "reopen",       "Ended",        "Ended",        "Ended"]),
    ("finish",                 ["Missing",   "complete",     "Recorded",     "NotRunning",   "Ended",        "Ended",        "Ended"]),
    ("finish by another",      ["Missing",   "NotOwner",     "Recorded",     "NotRunning",   "Ended",        "Ended",        "Ended"]),
    ("record",                 ["Missing",   "record",       "Recorded",     "NotRunning",   "Ended",        "Ended",        "Ended"]),
    ("record by another",      ["Missing",   "NotOwner",     "Recorded",     "NotRunning",   "Ended",        "Ended",        "Ended"]),
    ("settle",                 ["Missing",   "Leased",       "settle",       "NotRunning",   "Ended",        "Ended",        "Ended"]),
    ("ask to cancel",          ["Missing",   "ask",          "Recorded",     "cancel",       "Ended",        "Ended",        "Ended"]),
    ("not run",                ["Missing",   "open",         "Recorded",     "NotRunning",   "Ended",        "Ended",        "Ended"]),
    ("not run, by another",    ["Missing",   "NotOwner",     "Recorded",     "NotRunning",   "Ended",        "Ended",        "Ended"]),
    ("refuse",                 ["Missing",   "refuse",       "Recorded",     "NotRunning",   "Ended",        "Ended",        "Ended"]),
    ("refuse by another",      ["Missing",   "NotOwner",     "Recorded",     "NotRunning",   "Ended",        "Ended",        "Ended"]),
    ("give up",                ["Missing",   "abandon",      "Recorded",     "NotRunning",   "Ended",        "Ended",        "Ended"]),
    ("give up by another",     ["Missing",   "NotOwner",     "Recorded",     "NotRunning",   "Ended",        "Ended",        "Ended"]),
    ("reap, owner gone",       ["Missing",   "abandon",      "Recorded",     "NotRunning",   "Ended",        "Ended",        "Ended"]),
    ("reap, owner alive",      ["Missing",   "OwnerAlive",   "Recorded",     "NotRunning",   "Ended",        "Ended",        "Ended"]),
    ("reap, past deadline",    ["Missing",   "abandon",      "Recorded",     "NotRunning",   "Ended",        "Ended",        "Ended"]),
    ("disown, never sent",     ["Missing",   "open",         "Recorded",     "NotRunning",   "Ended",        "Ended",        "Ended"]),
    ("disown, perhaps sent",   ["Missing",   "abandon",      "Recorded",     "NotRunning",   "Ended",        "Ended",        "Ended"]),
    ("disown another's",       ["Missing",   "NotOwner",     "Recorded",     "NotRunning",   "Ended",        "Ended",        "Ended"]),
    ("ask to cancel, again",   ["Missing",   "CancelAsked",  "Recorded",     "cancel",       "Ended",        "Ended",        "Ended"]),
    ("finish, cancel asked",   ["Missing",   "complete",     "Recorded",     "NotRunning",   "Ended",        "Ended",        "Ended"]),
    ("not run, cancel asked",  ["Missing",   "abandon",      "Recorded",     "NotRunning",   "Ended",        "Ended",        "Ended"]),
    ("disown, cancel asked",   ["Missing",   "abandon",      "Recorded",     "NotRunning",   "Ended",        "Ended",        "Ended"]),
];

#[test]
fn every_event_over_every_phase_does_what_the_table_says() {
    for (name, expected) in TABLE {
        for (phase, expected) in phases().into_iter().zip(expected) {
            let label = phase.as_ref().map_or("no row", |row| row.phase.label());
            let (snapshot, event) = arrange(name, phase);
            let decided = decide(&snapshot, event);
            assert_eq!(outcome(&decided), expected, "{name} over {label}");
        }
    }
}

#[test]
fn a_change_names_its_operation_and_the_version_it_was_judged_over() {
    for (name, _) in TABLE {
        for phase in phases() {
            let (snapshot, event) = arrange(name, phase);
            let Ok(transition) = decide(&snapshot, event) else { continue };
            let row = snapshot.operation;
            let judged = row.as_ref().map(|row| (row.version, row.owner.claim));
            let operation = leased();
            assert!(transition.matches_row(judged), "{name}");
            let another = judged.map(|(version, _)| (version, sample::fresh()));
            assert_eq!(transition.matches_row(another), another.is_none(), "{name}");
            assert_eq!(transition.expected, judged.map(|(version, _)| version), "{name}");
            assert_eq!(transition.operation, operation.id);
            assert_eq!(transition.wallet, operation.wallet, "{name}");
            assert_eq!(transition.api_key, operation.api_key, "{name}");
            let is_start = matches!(transition.effect, Effect::Admit(_) | Effect::Reopen(_));
            assert_eq!(transition.start().is_some(), is_start, "{name}");
            let admitted_at = row.as_ref().map(|row| row.admitted_at);
            assert_eq!(transition.admitted_at, if is_start { None } else { admitted_at }, "{name}");
            let generation = if matches!(transition.effect, Effect::Reopen(_)) { 2 } else { 1 };
            assert_eq!(transition.generation, generation, "{name}");
        }
    }
}

#[test]
fn an_ending_keeps_what_its_owner_tells() {
    let owned = Snapshot { operation: Some(leased()), ..Snapshot::vacant(NOW) };
    for name in ["finish", "record", "refuse", "not run", "give up"] {
        let (_, event) = arrange(name, Some(leased()));
        let transition = decide(&owned, event).unwrap();
        let kept = ["finish", "record", "refuse"].contains(&name);
        assert_eq!(transition.result().is_some(), kept, "{name}");
        let after = transition.apply(Some(&leased()), receipt(2)).unwrap();
        assert_eq!(after.attempts, sample::attempts(), "{name}");
    }
}

#[test]
#[should_panic(expected = "a hold is never negative")]
fn a_negative_hold_is_not_admitted() {
    let claim = sample::claim().hold(-1).build();
    drop(decide(&Snapshot::vacant(NOW), Event::Claim(Box::new(claim))));
}

/// Each column of the table, as its row stands.
fn phases() -> [Option<Operation>; 7] {
    let after = |event: Event| Some(follow(leased(), event));
    [
        None,
        Some(leased()),
        after(Event::Record(finish(CLAIM))),
        after(Event::NotRun { claim: CLAIM, attempts: [].into() }),
        after(Event::Finish(finish(CLAIM))),
        after(refuse(CLAIM)),
        after(Event::GiveUp { claim: CLAIM, attempts: [].into() }),
    ]
}

/// The row and the event of one line of the table.
fn arrange(name: &str, row: Option<Operation>) -> (Snapshot, Event) {
    let mut snapshot = Snapshot {
        operation: row,
        result: None,
        lease: Some(Lease { node: sample::node("a"), ends_at: NOW.after(LEASE) }),
        now: NOW,
    };
    if let Some(row) = &mut snapshot.operation {
        row.cancel_asked = name.ends_with("again") || name.ends_with("cancel asked");
        if name == "claim, too soon" {
            row.generation = 3;
        }
    }
    let dead = Lease { node: sample::node("b"), ends_at: NOW };
    let claim = |vary: fn(sample::ClaimBuilder) -> sample::ClaimBuilder| {
        Event::Claim(Box::new(vary(all_limits().claim_id(OTHER)).build()))
    };
    let dead_claim = |request: &str| {
        let claim = all_limits().claim_id(OTHER).lease(dead.clone()).request(request);
        Event::Claim(Box::new(claim.build()))
    };
    let reap = Event::Reap { orphan_grace: Some(LEASE) };
    let attempts = sample::attempts;
    let event = match name {
        "claim" | "claim, too soon" => claim(|claim| claim),
        "claim, other request" => claim(|claim| claim.request("another")),
        "claim, own lease dead" => dead_claim("hello"),
        "claim, both of these" => dead_claim("another"),
        "claim, in a window" => claim(|claim| claim.unknown_until(Some(NOW.after(LEASE)))),
        "claim, window over" => claim(|claim| claim.unknown_until(Some(NOW))),
        "claim, id used" => claim(|claim| claim.claim_id(CLAIM)),
        "finish" => Event::Finish(finish(CLAIM)),
        "finish by another" => Event::Finish(finish(OTHER)),
        "record" => Event::Record(finish(CLAIM)),
        "record by another" => Event::Record(finish(OTHER)),
        "settle" => Event::Settle,
        "ask to cancel" => Event::AskCancel,
        "ask to cancel, again" => Event::AskCancel,
        "finish, cancel asked" => Event::Finish(finish(CLAIM)),
        "not run, cancel asked" => Event::NotRun { claim: CLAIM, attempts: attempts() },
        "disown, cancel asked" => Event::Disown(Disown { claim: CLAIM, sent: SendStatus::Never }),
        "not run" => Event::NotRun { claim: CLAIM, attempts: attempts() },
        "not run, by another" => Event::NotRun { claim: OTHER, attempts: attempts() },
        "refuse" => refuse(CLAIM),
        "refuse by another" => refuse(OTHER),
        "give up" => Event::GiveUp { claim: CLAIM, attempts: attempts() },
        "give up by another" => Event::GiveUp { claim: OTHER, attempts: attempts() },
        "reap, owner gone" => {
            snapshot.lease = None;
            reap
        }
        "reap, owner alive" => reap,
        "reap, past deadline" => {
            snapshot.now = NOW.after(sample::TIME * 2);
            let ends_at = NOW.after(sample::TIME * 3);
            snapshot.lease = Some(Lease { node: sample::node("a"), ends_at });
            reap
        }
        "disown, never sent" => Event::Disown(Disown { claim: CLAIM, sent: SendStatus::Never }),
        "disown, perhaps sent" => Event::Disown(Disown { claim: CLAIM, sent: SendStatus::Perhaps }),
        "disown another's" => Event::Disown(Disown { claim: OTHER, sent: SendStatus::Never }),
        unknown => panic!("the table has a line of another name: {unknown}"),
    };
    (snapshot, event)
}

fn outcome(decided: &Result<Transition, Refusal>) -> String {
    match decided {
        Err(refusal) => format!("{refusal:?}"),
        Ok(transition) => match &transition.effect {
            Effect::Admit(_) => "admit",
            Effect::Reopen(_) => "reopen",
            Effect::Complete { .. } => "complete",
            Effect::Record { .. } => "record",
            Effect::Settle => "settle",
            Effect::AskCancel => "ask",
            Effect::Cancel => "cancel",
            Effect::Open { .. } => "open",
            Effect::Refuse { .. } => "refuse",
            Effect::Abandon { .. } => "abandon",
        }
        .to_owned(),
    }
}

fn all_limits() -> sample::ClaimBuilder {
    sample::claim().limits(moves::LIMITS)
}

/// The row of [`sample::claim`], admitted at [`NOW`].
fn leased() -> Operation {
    admitted(&all_limits().build())
}

fn admitted(claim: &Claim) -> Operation {
    let snapshot = Snapshot::vacant(NOW);
    let admitted = decide(&snapshot, Event::Claim(Box::new(claim.clone()))).unwrap();
    admitted.apply(None, receipt(1)).unwrap()
}

fn follow(row: Operation, event: Event) -> Operation {
    let snapshot = Snapshot { operation: Some(row), ..Snapshot::vacant(NOW) };
    let transition = decide(&snapshot, event).unwrap();
    transition.apply(snapshot.operation.as_ref(), receipt(2)).unwrap()
}

fn receipt(version: u32) -> Receipt {
    Receipt { version: Version::new(version), at: NOW, counters: CounterReadings::default() }
}

fn finish(claim: ClaimId) -> Finish {
    let (metered, result) = (sample::metered(20, 10), sample::result("answer"));
    Finish { claim, metered, result, attempts: sample::attempts() }
}

fn refuse(claim: ClaimId) -> Event {
    Event::Refuse {
        claim,
        refusal: holdfast_domain::operation::ProviderRefusal::Request,
        result: sample::result("error"),
        attempts: sample::attempts(),
    }
}

fn micros(amount: i64) -> Micros {
    Micros::new(amount)
}

fn later(seconds: u64, micros: i64) -> Timestamp {
    let whole = NOW.after(std::time::Duration::from_secs(seconds));
    Timestamp::from_micros(whole.as_micros() + micros)
}
