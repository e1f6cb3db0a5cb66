//! Money: charges, caps, balances and holds.

use history_checker::Rule;
use serde_json::{Value, json};

use super::{broken, call, completed, error, run, with};

/// A deposit or a refund that was done between two moments, or whose outcome is unknown.
fn posting(kind: &str, amount: i64, (called, returned): (u64, Option<u64>)) -> Value {
    json!({
        "type": "posting", "kind": kind, "wallet": "w", "operation": null,
        "amount_micros": amount, "called": called, "returned": returned,
    })
}

/// A reading of the wallet.
fn balance((available, held): (i64, i64), (called, returned): (u64, u64)) -> Value {
    json!({
        "type": "balance", "wallet": "w", "called": called, "returned": returned,
        "available_micros": available, "held_micros": held,
    })
}

/// A deposit of a hundred, one answer for ten between 10 and 20 whose run arrives at 15, and this.
fn after_one_charge(then: Value) -> Vec<Value> {
    let deposit = posting("deposit", 100, (1, Some(2)));
    vec![deposit, call("r", (10, 20), completed("b")), run("r", 15), then]
}

#[test]
fn a_balance_is_read_before_or_after_a_charge_at_the_same_time_and_not_after_it() {
    for (read, moments) in [(100, (3, 4)), (100, (16, 17)), (90, (16, 17)), (90, (21, 22))] {
        let records = after_one_charge(balance((read, 0), moments));
        assert_eq!(broken(records), [], "{read} at {moments:?}");
    }
    for (read, moments) in [(90, (3, 4)), (100, (21, 22)), (91, (21, 22)), (95, (16, 17))] {
        let records = after_one_charge(balance((read, 0), moments));
        assert_eq!(broken(records), [Rule::Wallet], "{read} at {moments:?}");
    }
}

#[test]
fn balances_that_go_back_and_forth_are_found() {
    let mut records = after_one_charge(balance((90, 0), (16, 17)));
    records.push(balance((100, 0), (18, 19)));
    assert_eq!(broken(records), [Rule::Wallet]);
}

#[test]
fn a_posting_of_unknown_outcome_may_be_seen_or_not() {
    for read in [90, 97] {
        let mut records = after_one_charge(balance((read, 0), (40, 41)));
        records.push(posting("refund", 7, (30, None)));
        assert_eq!(broken(records), [], "{read}");
    }
    let mut records = after_one_charge(balance((90, 0), (40, 41)));
    records.push(posting("refund", 7, (30, Some(31))));
    assert_eq!(broken(records), [Rule::Wallet]);
}

#[test]
fn a_hold_is_allowed_while_a_request_has_no_end_and_not_after_all_have_theirs() {
    assert_eq!(broken(after_one_charge(balance((60, 40), (16, 17)))), []);
    assert_eq!(broken(after_one_charge(balance((50, 40), (21, 22)))), [Rule::Holds]);
    assert_eq!(broken(after_one_charge(balance((100, -10), (21, 22)))), [Rule::Holds]);
    let mut open = after_one_charge(balance((50, 40), (21, 22)));
    open.push(with(call("s", (18, 19), Value::Null), "key", json!("2")));
    assert_eq!(broken(open), []);
    let mut refused = after_one_charge(balance((50, 40), (21, 22)));
    let refusal = call("s", (18, 19), error(402, "insufficient_funds"));
    refused.push(with(refusal, "key", json!("2")));
    assert_eq!(broken(refused), [Rule::Holds]);
}

#[test]
fn a_charge_is_the_cost_of_its_run_and_nothing_without_an_answer() {
    let dear = with(completed("b"), "charge_micros", json!(11));
    assert_eq!(broken(vec![call("r", (1, 4), dear), run("r", 2)]), [Rule::Charge]);
    let unknown = with(error(502, "outcome_unknown"), "charge_micros", json!(1));
    assert_eq!(broken(vec![call("r", (1, 4), unknown), run("r", 2)]), [Rule::Charge]);
}

#[test]
fn charges_beyond_a_cap_are_found() {
    let of = |key: &str, operation: &str| {
        let answer = with(completed("b"), "operation", json!(operation));
        let both = [call("r", (1, 4), answer), run("r", 2)];
        both.map(|record| with(with(record, "api_key", json!("c")), "key", json!(key)))
    };
    assert_eq!(broken(of("1", "o").to_vec()), []);
    assert_eq!(broken([of("1", "o"), of("2", "p")].concat()), [Rule::Cap]);
}
