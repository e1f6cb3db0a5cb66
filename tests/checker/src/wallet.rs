//! Model of one wallet: deposits and refunds come in, charges go out, and a reading of available and held together is
//! what is left. A hold moves money within the wallet, and so changes no sum.
//!
//! A charge happened after its run had arrived upstream, and before the first caller had its answer. One that no caller
//! was answered may have happened, at any later moment or never.

use std::collections::BTreeMap;

use todc_utils::specifications::Specification;

use crate::history::{History, PostingKind, Reaction};
use crate::records::Keys;
use crate::search::{Interval, has_order};
use crate::{Rule, Violation};

/// A step that one record stands for.
#[derive(Debug, Clone, Copy)]
enum Step {
    /// The balance changed by so much.
    Move(i64),
    /// The balance was read.
    Read(i64),
}

/// The model of a wallet: its balance.
struct Model;

impl Specification for Model {
    type State = i64;
    type Operation = Step;

    fn init() -> i64 {
        0
    }

    fn apply(step: &Step, balance: &i64) -> (bool, i64) {
        match step {
            Step::Move(amount) => (true, balance + amount),
            Step::Read(read) => (read == balance, *balance),
        }
    }
}

/// Steps of a wallet, with the lines of its readings.
#[derive(Default)]
struct WalletSteps {
    steps: Vec<Interval<Step>>,
    lines: Vec<usize>,
}

/// Judges the balances of all wallets.
pub(crate) fn check(history: &History, keys: &Keys<'_>) -> Vec<Violation> {
    let mut violations = Vec::new();
    for (wallet, WalletSteps { steps, lines }) in steps(history, keys) {
        if let Some((at, least, most, read)) = first_out_of_bounds(&steps) {
            let text = format!("{read} micros were read at {at}, where {least} to {most} can be");
            violations.push(Violation { rule: Rule::Wallet, object: object(wallet), text, lines });
        } else if !has_order::<Model>(&steps) {
            let text = "no order of its charges, postings and readings".to_owned();
            violations.push(Violation { rule: Rule::Wallet, object: object(wallet), text, lines });
        }
    }
    violations
}

pub(crate) fn object(wallet: &str) -> String {
    format!("wallet {wallet}")
}

fn steps<'h>(history: &'h History, keys: &Keys<'h>) -> BTreeMap<&'h str, WalletSteps> {
    let mut wallets: BTreeMap<&str, WalletSteps> = BTreeMap::new();
    for posting in &history.postings {
        let posting = &posting.record;
        let amount = match posting.kind {
            PostingKind::Deposit | PostingKind::Refund => posting.amount_micros,
        };
        let (called, returned) = (posting.called, posting.returned);
        let steps = &mut wallets.entry(&posting.wallet).or_default().steps;
        steps.push(Interval { called, returned, step: Step::Move(amount) });
    }
    for (id, records) in keys {
        let Some(api_key) = history.api_keys.get(id.api_key) else { continue };
        let answered = records.runs.iter().find(|it| it.record.reaction == Reaction::Answered);
        let Some(run) = answered.map(|it| &it.record) else { continue };
        let step = match (records.charge(), records.ended()) {
            (Some((charge, returned)), _) => {
                Interval { called: run.at, returned: Some(returned), step: Step::Move(-charge) }
            }
            // It ended, and without a charge.
            (None, Some(_)) => continue,
            (None, None) => {
                let cost = run.cost_micros.unwrap_or(0);
                Interval { called: run.at, returned: None, step: Step::Move(-cost) }
            }
        };
        wallets.entry(&api_key.wallet).or_default().steps.push(step);
    }
    for balance in &history.balances {
        let line = balance.line;
        let balance = &balance.record;
        let wallet = wallets.entry(&balance.wallet).or_default();
        let step = Step::Read(balance.available_micros.saturating_add(balance.held_micros));
        let (called, returned) = (balance.called, Some(balance.returned));
        wallet.steps.push(Interval { called, returned, step });
        wallet.lines.push(line);
    }
    wallets
}

/// The first reading that no order can explain, because it is beyond the sums of what must and what may have moved
/// before it. A search need not be begun then, and people see by how much it is wrong.
fn first_out_of_bounds(steps: &[Interval<Step>]) -> Option<(u64, i64, i64, i64)> {
    let mut wrong = Vec::new();
    for read in steps {
        let (Step::Read(balance), Some(returned)) = (read.step, read.returned) else { continue };
        let (mut least, mut most) = (0_i64, 0_i64);
        for moved in steps {
            let Step::Move(amount) = moved.step else { continue };
            let is_done = moved.returned.is_some_and(|returned| returned < read.called);
            if is_done || (moved.called <= returned && amount < 0) {
                least += amount;
            }
            if is_done || (moved.called <= returned && amount > 0) {
                most += amount;
            }
        }
        if !(least..=most).contains(&balance) {
            wrong.push((read.called, least, most, balance));
        }
    }
    wrong.into_iter().min()
}
