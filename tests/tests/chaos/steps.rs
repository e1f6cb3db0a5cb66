//! Each step alone: one caller, one key, killed exactly there. What the caller finds afterwards is
//! determined, and each row of the table is another moment between two effects.

use holdfast_tests::chaos::steps::{ROWS, RetryOutcome, Row, STEPS};
use holdfast_tests::{Config, Gateway, Reply, Request, Site, Upstream, request_key};

use crate::{CHARGE, FUNDS, acme, check_wallet, until};

#[test]
fn every_step_is_in_the_table() {
    for step in STEPS {
        assert!(ROWS.iter().any(|row| row.step == step), "{step}");
    }
}

#[test]
fn killed_at_a_step_a_caller_finds_what_was_durable_there() {
    let upstream = Upstream::start(Reply::saying("Good day"));
    let (site, account) = Site::funded(&Config::upstream(&upstream));
    let mut charged = 0;
    for (operations, Row { step, nth, runs, found }) in ROWS.into_iter().enumerate() {
        let runs_before = upstream.runs();
        let gateway = site.serve_until(&format!("{step}:{nth}"));
        let request = Request::completion(&account.key, &request_key(), acme("Hello"));
        let waiting = request.begin(gateway.address());
        until(step, || gateway.is_stopped().then_some(()));
        assert_eq!(upstream.runs() - runs_before, runs, "{step}");
        gateway.kill();
        assert_eq!(waiting.try_answer(), None, "{step}");

        let gateway = site.serve();
        check_found(&gateway, &request, found);
        let runs = if found == RetryOutcome::NotBound { 1 } else { runs };
        assert_eq!(upstream.runs() - runs_before, runs, "{step}: never a second time");
        charged += if found == RetryOutcome::Unknown { 0 } else { CHARGE };
        check_wallet(&gateway, &account, FUNDS - charged);
        assert_eq!(site.verify()["operations"], operations + 1);
        gateway.kill();
    }
}

#[track_caller]
fn check_found(gateway: &Gateway, request: &Request, found: RetryOutcome) {
    let first = gateway.send(request);
    let body = first.json();
    let (status, replayed) = match found {
        RetryOutcome::NotBound => (200, "false"),
        RetryOutcome::Settled => (200, "true"),
        RetryOutcome::Unknown => (502, "true"),
    };
    assert_eq!(first.status, status, "{first:?}");
    assert_eq!(first.header("idempotent-replayed"), Some(replayed), "{first:?}");
    if found == RetryOutcome::Unknown {
        assert_eq!(body["error"]["code"], "outcome_unknown");
        assert_eq!(body["error"]["charged_micros"], 0);
    } else {
        assert_eq!(body["usage"]["customer_charge_micros"], CHARGE);
    }
    assert_eq!(gateway.send(request).body, first.body);
}

#[test]
fn killed_at_a_step_a_reader_of_a_stream_has_seen_no_end() {
    let upstream = Upstream::start(Reply::saying("Good day"));
    let (site, account) = Site::funded(&Config::upstream(&upstream));
    let mut charged = 0;
    for Row { step, nth, runs, found } in ROWS.into_iter().filter(|row| row.runs > 0) {
        let runs_before = upstream.runs();
        let gateway = site.serve_until(&format!("{step}:{nth}"));
        let key = request_key();
        let body = acme("Hello").replacen('{', r#"{"stream":true,"#, 1);
        let request = Request::completion(&account.key, &key, body);
        let mut reading = request.begin(gateway.address());
        until(step, || gateway.is_stopped().then_some(()));
        gateway.kill();
        let told = reading.rest();
        assert!(
            !told.contains(r#""finish_reason":""#) && !told.contains("[DONE]"),
            "{step}: {told}"
        );

        let gateway = site.serve();
        check_found(&gateway, &Request::completion(&account.key, &key, acme("Hello")), found);
        charged += if found == RetryOutcome::Unknown { 0 } else { CHARGE };
        if found == RetryOutcome::Settled {
            let again = request.begin(gateway.address()).rest();
            assert!(again.contains("Good day") && again.contains("[DONE]"), "{step}: {again}");
        }
        assert_eq!(upstream.runs() - runs_before, runs, "{step}: never a second time");
        check_wallet(&gateway, &account, FUNDS - charged);
        drop(site.verify());
        gateway.kill();
    }
}
