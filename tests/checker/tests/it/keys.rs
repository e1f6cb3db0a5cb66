//! Request keys: bound once, run once, answered alike.

use history_checker::Rule;
use serde_json::{Value, json};

use super::{broken, call, completed, error, run, with};

#[test]
fn a_key_that_runs_once_and_is_replayed_is_allowed() {
    let answer = completed("b");
    let streamed = with(answer.clone(), "bytes", Value::Null);
    let records = vec![
        call("r", (1, 4), answer.clone()),
        run("r", 2),
        call("r", (5, 6), streamed),
        call("r", (7, 8), answer),
        call("other", (9, 10), error(409, "idempotency_key_conflict")),
    ];
    assert_eq!(broken(records), []);
}

#[test]
fn a_call_that_was_cut_may_take_effect_later_or_never() {
    let later = vec![
        call("r", (1, 2), Value::Null),
        call("other", (3, 4), error(409, "idempotency_key_conflict")),
    ];
    assert_eq!(broken(later), []);
    let never = vec![
        call("r", (1, 2), Value::Null),
        call("other", (3, 6), completed("b")),
        run("other", 4),
    ];
    assert_eq!(broken(never), []);
    let too_early = vec![
        call("other", (1, 2), error(409, "idempotency_key_conflict")),
        call("r", (3, 4), Value::Null),
    ];
    assert_eq!(broken(too_early), [Rule::Key]);
}

#[test]
fn a_key_that_was_turned_away_runs_again_and_no_other_does() {
    let turned_away = |at| with(run("r", at), "reaction", json!("turned_away"));
    let again = |first: Value| vec![call("r", (1, 9), completed("b")), first, run("r", 3)];
    assert_eq!(broken(again(turned_away(2))), []);
    assert_eq!(broken(again(run("r", 2))), [Rule::Key]);
    let failed = with(run("r", 2), "reaction", json!("failed"));
    assert_eq!(broken(again(failed)), [Rule::Key]);
}

#[test]
fn another_answer_another_request_and_a_lost_answer_are_found() {
    let after = |later: Value| vec![call("r", (1, 4), completed("b")), run("r", 2), later];
    for later in [
        call("r", (5, 6), completed("c")),
        call("r", (5, 6), error(502, "outcome_unknown")),
        call("r", (5, 6), error(503, "upstream_unavailable")),
        call("r", (5, 6), error(402, "insufficient_funds")),
        call("r", (5, 6), error(409, "idempotency_key_conflict")),
        call("other", (5, 6), completed("b")),
    ] {
        assert_eq!(broken(after(later.clone())), [Rule::Key], "{later}");
    }
    let storage = call("r", (5, 6), error(503, "storage_unavailable"));
    assert_eq!(broken(after(storage)), []);
    let content = with(completed("b"), "content", json!("other"));
    assert_eq!(broken(after(call("r", (5, 6), content))), [Rule::Key]);
}

#[test]
fn calls_at_once_may_have_either_order_and_calls_one_after_the_other_have_one() {
    let refused = error(402, "insufficient_funds");
    let at_once =
        vec![call("r", (1, 4), completed("b")), run("r", 2), call("r", (3, 6), refused.clone())];
    assert_eq!(broken(at_once), []);
    let after = vec![call("r", (1, 4), completed("b")), run("r", 2), call("r", (5, 6), refused)];
    assert_eq!(broken(after), [Rule::Key]);
}

#[test]
fn an_answer_without_a_run_and_a_run_without_a_caller_are_found() {
    let answered = vec![call("r", (1, 4), completed("b"))];
    assert_eq!(broken(answered), [Rule::Key, Rule::Charge]);
    let unasked = vec![call("r", (3, 4), Value::Null), run("r", 2)];
    assert_eq!(broken(unasked), [Rule::Caller]);
}

#[test]
fn an_answer_that_the_contract_does_not_list_is_found() {
    assert_eq!(broken(vec![call("r", (1, 2), error(500, "internal_error"))]), [Rule::Answer]);
    assert_eq!(broken(vec![call("r", (1, 2), error(200, "provider_refused"))]), [Rule::Answer]);
}

#[test]
fn an_operation_of_two_keys_is_found() {
    let other = |record| with(record, "key", json!("2"));
    let both = |operation: &str| {
        let answer = with(completed("b"), "operation", json!(operation));
        vec![
            call("r", (1, 4), completed("b")),
            run("r", 2),
            other(call("r", (5, 8), answer)),
            other(run("r", 6)),
        ]
    };
    assert_eq!(broken(both("p")), []);
    assert_eq!(broken(both("o")), [Rule::Operation]);
}
