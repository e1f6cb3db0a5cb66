//! Calls through a gateway behind a gateway, over connections that break at any byte, and past the
//! deaths of either.
//!
//! Checks: each call ends with the whole answer or with `outcome_unknown`, it ran once at
//! most by its own body, what was answered was paid once at each gateway, and what was not is paid at the inner
//! alone, where it ran.

use std::time::{Duration, Instant};

use super::Dice;
use super::cuts::{CallOutcome, KILL_EVERY, KILL_MS_MAX, ask, check_bodies, request};
use crate::chain::{CHARGE, COST, Chain, SAID};
use crate::{PATIENCE, Proxy, Site, request_key};

/// Funds of each wallet, in whole units and in micros.
const FUNDS: (&str, i64) = ("1000", 1_000_000_000);
/// About as many bytes as an answer has.
const ANSWER: u64 = 1_000;

/// Makes so many calls; `tell` hears of progress.
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
    let mut answered = 0;
    for call in 0..calls {
        let mut request = request(&chain.outer.account, &format!("Say {call}"), dice.below(2) == 0);
        request = request.header("Idempotency-Key", &request_key());
        let mut length = || usize::try_from(1 + dice.below(ANSWER)).expect("few");
        chain.between.cut_next(&[length()]);
        front.cut_next(&[length()]);
        let address = front.address();
        let said = if call % KILL_EVERY == KILL_EVERY - 1 {
            let (pause, is_inner) = (dice.below(KILL_MS_MAX), dice.below(2) == 0);
            std::thread::scope(|scope| {
                let asked = scope.spawn(|| ask(&request, address));
                std::thread::sleep(Duration::from_millis(pause));
                if is_inner {
                    chain.between.turn_to(chain.inner.start_again());
                } else {
                    front.turn_to(chain.outer.start_again());
                }
                asked.join().expect("an answer")
            })
        } else {
            ask(&request, address)
        };
        match said {
            CallOutcome::Whole(text) => {
                assert_eq!(text, SAID, "call {call} of seed {seed}");
                answered += 1;
            }
            CallOutcome::Error(code) => {
                assert_eq!(code, "outcome_unknown", "call {call} of seed {seed}");
                let is_death = call % KILL_EVERY == KILL_EVERY - 1;
                assert!(is_death, "nothing died: call {call} of seed {seed}");
            }
        }
        if call % 50 == 49 || call + 1 == calls {
            check(&chain, i64::from(call + 1), answered);
            tell(call + 1);
        }
    }
}

fn check(chain: &Chain, calls: i64, answered: i64) {
    let until = Instant::now() + PATIENCE;
    // What the outer gave up may still run at the inner.
    while chain.inner.site.balance(&chain.inner.account).1 > 0 {
        assert!(Instant::now() < until, "the inner holds for ever");
        std::thread::sleep(Duration::from_millis(20));
    }
    check_bodies(&chain.upstream);
    let runs = i64::try_from(chain.upstream.runs()).expect("few");
    assert!(runs <= calls, "{runs} runs of {calls} calls");
    let (available, _) = chain.inner.site.balance(&chain.inner.account);
    let paid = FUNDS.1 - available;
    assert_eq!(paid % COST, 0, "{paid}");
    assert!((answered..=runs).contains(&(paid / COST)), "{answered}, {paid}, {runs}");
    let outer = chain.outer.site.balance(&chain.outer.account);
    assert_eq!(outer, (FUNDS.1 - answered * CHARGE, 0));
    for node in [&chain.inner, &chain.outer] {
        let _verified = node.site.verify();
    }
}
