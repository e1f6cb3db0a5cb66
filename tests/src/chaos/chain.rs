//! Calls through a gateway upstream of a gateway, over connections that break at any byte, and past the deaths of
//! either.
//!
//! Checks: each call ends with the whole answer or with `outcome_unknown`, it ran once at most by its own body, an
//! answer was paid once at each gateway, and a call without one is paid only at the inner, if it ran there. A call
//! that was cancelled at the outer ends there with the text that had arrived, or with none; no amount of it is
//! held, and it does not run any more, at either gateway.

use std::time::{Duration, Instant};

use serde_json::Value;

use super::Dice;
use super::cuts::{CallOutcome, KILL_EVERY, KILL_MS_MAX, ask, check_bodies, request};
use crate::chain::{CHARGE, COST, Chain, SAID};
use crate::{PATIENCE, Proxy, Request, Site, request_key};

/// Funds of each wallet, in whole units and in micros.
const FUNDS: (&str, i64) = ("1000", 1_000_000_000);
/// About as many bytes as an answer has.
const ANSWER: u64 = 1_000;
/// Every so often a call is cancelled while it is under way.
const CANCEL_EVERY: u32 = 7;

/// Sums of the calls so far.
#[derive(Debug, Default)]
struct Tally {
    /// Calls, each with a body of its own.
    calls: i64,
    /// Calls with a whole answer, paid in full at both gateways.
    answered: i64,
    /// Charge of those that were cancelled at the outer.
    cancelled_micros: i64,
    /// Number of those.
    cancelled: i64,
}

/// Makes so many calls; `tell` receives the progress.
pub fn chain(calls: u32, seed: u64, mut tell: impl FnMut(u32)) {
    let mut dice = Dice(seed);
    let mut chain = Chain::start(
        |config| {
            let site = Site::unwatched_in(&std::env::temp_dir(), config);
            drop(site.cli(&["migrate", "up"]).ok());
            let account = site.account("chain", "USD", FUNDS.0);
            (site, account)
        },
        |config, _inner| config,
    );
    let front = Proxy::start(chain.outer.gateway.address());
    let mut tally = Tally::default();
    for call in 0..calls {
        let mut request = request(&chain.outer.account, &format!("Say {call}"), dice.below(2) == 0);
        let key = request_key();
        request = request.header("Idempotency-Key", &key);
        let mut length = || usize::try_from(1 + dice.below(ANSWER)).expect("few");
        chain.between.cut_next(&[length()]);
        front.cut_next(&[length()]);
        let address = front.address();
        let is_death = call % KILL_EVERY == KILL_EVERY - 1;
        let is_cancel = !is_death && call % CANCEL_EVERY == CANCEL_EVERY - 1;
        let said = std::thread::scope(|scope| {
            let asked = scope.spawn(|| ask(&request, address));
            if is_death {
                let (pause, is_inner) = (dice.below(KILL_MS_MAX), dice.below(2) == 0);
                std::thread::sleep(Duration::from_millis(pause));
                if is_inner {
                    chain.between.turn_to(chain.inner.start_again());
                } else {
                    front.turn_to(chain.outer.start_again());
                }
            } else if is_cancel {
                std::thread::sleep(Duration::from_millis(dice.below(KILL_MS_MAX)));
                cancel(&chain, &key);
            }
            asked.join().expect("an answer")
        });
        tally.calls += 1;
        match said {
            _ if is_cancel => {
                tally.cancelled += 1;
                tally.cancelled_micros += charge_of_cancelled(&chain, &key);
            }
            CallOutcome::Whole(text) => {
                assert_eq!(text, SAID, "call {call} of seed {seed}");
                tally.answered += 1;
            }
            CallOutcome::Error(code) => {
                assert_eq!(code, "outcome_unknown", "call {call} of seed {seed}");
                assert!(is_death, "nothing died: call {call} of seed {seed}");
            }
        }
        if call % 50 == 49 || call + 1 == calls {
            check(&chain, &tally);
            tell(call + 1);
        }
    }
    let in_full = tally.cancelled * CHARGE;
    let is_few = calls < 20 * CANCEL_EVERY;
    assert!(is_few || tally.cancelled_micros < in_full, "no cancel cut a call: {tally:?}");
}

/// Sends the outer a cancel of a call, which may not have arrived there yet.
fn cancel(chain: &Chain, key: &str) {
    let path = format!("/v1/operations/{key}/cancel");
    let asking = Request::post(&path, "").bearer(&chain.outer.account.key);
    let answer = chain.outer.gateway.send(&asking);
    assert!([200, 202, 404].contains(&answer.status), "{answer:?}");
}

/// Charge at the outer of a call that was cancelled, and that has ended with any answer.
fn charge_of_cancelled(chain: &Chain, key: &str) -> i64 {
    let look = || {
        let path = format!("/v1/operations/{key}");
        let answer = chain.outer.gateway.get(&chain.outer.account, &path);
        let operation: Value = serde_json::from_slice(&answer.body).expect("an operation");
        operation
    };
    let until = Instant::now() + PATIENCE;
    loop {
        let operation = look();
        match operation["status"].as_str() {
            Some("completed" | "abandoned") => {
                return operation["charge_micros"].as_i64().expect("a charge");
            }
            _ => assert!(Instant::now() < until, "it does not end: {operation}"),
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn check(chain: &Chain, tally: &Tally) {
    let until = Instant::now() + PATIENCE;
    // What the outer gave up may still run at the inner.
    while chain.inner.site.balance(&chain.inner.account).1 > 0 {
        assert!(Instant::now() < until, "the inner holds for ever");
        std::thread::sleep(Duration::from_millis(20));
    }
    check_bodies(&chain.upstream);
    let runs = i64::try_from(chain.upstream.runs()).expect("few");
    assert!(runs <= tally.calls, "{runs} runs of {tally:?}");
    let (available, _) = chain.inner.site.balance(&chain.inner.account);
    let paid = FUNDS.1 - available;
    // Only a run that was cancelled may cost a part of an answer.
    let whole = tally.answered * COST;
    assert!((whole..=runs * COST).contains(&paid), "{paid}, {runs} runs, {tally:?}");
    assert!(tally.cancelled > 0 || (paid - whole) % COST == 0, "{paid}, {tally:?}");
    let outer = chain.outer.site.balance(&chain.outer.account);
    let charged = tally.answered * CHARGE + tally.cancelled_micros;
    assert_eq!(outer, (FUNDS.1 - charged, 0), "{tally:?}");
    for node in [&chain.inner, &chain.outer] {
        let _verified = node.site.verify();
    }
}
