//! A result whose settlement the database refuses, because a hand changed the wallet's row while the
//! model ran: it is kept, nobody is told half of it, and it is settled once when the row is mended.

use holdfast_tests::database::execute;
use holdfast_tests::{Account, Config, Gate, Gateway, Reply, Request, Site, Upstream, request_key};
use holdfast_wire::error::Code;
use serde_json::{Value, json};

use crate::admin::{metrics, value};
use crate::bodies::acme;
use crate::check::{charge, check_completion, check_json, content, error, until};

const CHARGE: i64 = 367;
const FUNDS: i64 = 10_000_000;

/// A request that was answered by the model and cannot be settled.
struct RecordedRun {
    upstream: Upstream,
    site: Site,
    account: Account,
    key: String,
    /// What the wallet really holds for it.
    held: i64,
}

/// A heartbeat so slow that only a request can have settled anything.
fn nobody_in_the_background(config: Config) -> Config {
    beating(config, "300s", "900s")
}

fn beating(config: Config, heartbeat: &str, lease: &str) -> Config {
    config.set("operations", "heartbeat", &format!("\"{heartbeat}\"")).set(
        "operations",
        "lease",
        &format!("\"{lease}\""),
    )
}

impl RecordedRun {
    /// Breaks the wallet's row while the model runs, and lets the model answer.
    fn bring_about(configure: impl Fn(Config) -> Config) -> (Self, Gateway) {
        let gate = Gate::new();
        let upstream = Upstream::start(Reply::saying("Good day").after(&gate));
        let config = Config::upstream(&upstream).set("log", "format", "\"json\"");
        let (site, account) = Site::funded(&configure(config));
        let gateway = site.serve();
        let key = request_key();
        let recorded = Self { upstream, site, account, key, held: 0 };
        let waiting = recorded.request().begin(gateway.address());
        recorded.upstream.wait_for(1);
        let (available, held) = recorded.site.balance(&recorded.account);
        assert_eq!(available + held, FUNDS);
        assert!(held > CHARGE);
        let recorded = Self { held, ..recorded };
        recorded.set_held(0);
        gate.open();
        let told = waiting.answer();
        let unavailable = error(Code::StorageUnavailable).echo(&recorded.key).bound();
        let unavailable = unavailable.charged(CHARGE);
        unavailable.replayed(false).check(&told);
        recorded.check_kept(&gateway);
        (recorded, gateway)
    }

    fn request(&self) -> Request {
        Request::completion(&self.account.key, &self.key, acme("Say hello"))
    }

    fn cancel(&self) -> Request {
        let path = format!("/v1/operations/{}/cancel", self.key);
        Request::post(&path, "").bearer(&self.account.key)
    }

    fn set_held(&self, micros: i64) {
        let statement = format!("UPDATE wallets SET held = {micros}");
        assert_eq!(execute(&self.site.database(), &statement), Vec::<String>::new());
    }

    fn mend(&self) {
        self.set_held(self.held);
    }

    /// The operation as its caller sees it.
    #[track_caller]
    fn look(&self, gateway: &Gateway) -> Value {
        let path = format!("/v1/operations/{}", self.key);
        check_json(&gateway.get(&self.account, &path), 200)
    }

    /// The operation as the operator sees it.
    #[track_caller]
    fn show(&self) -> Value {
        self.site.json(&["operation", "show", "--api-key", &self.account.id, &self.key])
    }

    /// As long as the row is broken nothing is settled, run again or given away.
    #[track_caller]
    fn check_kept(&self, gateway: &Gateway) {
        let again = gateway.send(&self.request());
        let unavailable = error(Code::StorageUnavailable).echo(&self.key).bound();
        let unavailable = unavailable.charged(CHARGE);
        unavailable.replayed(true).check(&again);
        assert!(!again.everything().contains("Good day"), "{again:?}");
        let stands = ["status", "situation", "charge_micros", "hold_micros", "finished_at"];
        let recorded = json!(["recorded", "stale", CHARGE, self.held, null]);
        let seen = self.look(gateway);
        assert_eq!(json!(stands.map(|name| &seen[name])), recorded);
        assert_eq!((&seen["result"], &seen["result_state"]), (&Value::Null, &json!("none")));
        let shown = self.show();
        assert_eq!(json!(stands.map(|name| &shown[name])), recorded);
        assert_eq!(self.upstream.runs(), 1, "nothing runs again");
        let (available, held) = self.site.balance(&self.account);
        assert_eq!((available, held), (FUNDS - self.held, 0), "nothing is taken");
        let said = self.site.cli(&["ledger", "verify", "--json"]);
        assert_eq!(said.code, Some(1), "{said:?}");
    }

    /// Settled: the full answer, one run and one charge.
    #[track_caller]
    fn check_settled(&self, gateway: &Gateway) {
        let answer = gateway.send(&self.request());
        let completion = check_completion(&answer, &self.key, true);
        assert_eq!(content(&completion), "Good day");
        assert_eq!(charge(&completion), CHARGE);
        assert_eq!(gateway.send(&self.request()).body, answer.body);
        let seen = self.look(gateway);
        let stands = ["status", "situation", "charge_micros", "generation"];
        let settled = json!(["completed", "completed", CHARGE, 1]);
        assert_eq!(json!(stands.map(|name| &seen[name])), settled);
        assert_eq!(seen["result"], completion);
        assert_eq!(self.upstream.runs(), 1, "one run");
        assert_eq!(self.site.balance(&self.account), (FUNDS - CHARGE, 0), "one charge");
        self.site.verify();
    }
}

/// The lines of a log of JSON that somebody must act on. The last one may be half written.
fn errors(log: &str) -> Vec<Value> {
    let whole = log.split_inclusive('\n').filter(|line| line.ends_with('\n'));
    let lines = whole.map(|line| serde_json::from_str::<Value>(line).unwrap());
    lines.filter(|line| line["level"] == "ERROR").collect()
}

#[test]
fn sqlite_row_that_refuses_a_settlement_is_told_and_a_retry_settles_it_when_mended() {
    let (recorded, gateway) = RecordedRun::bring_about(nobody_in_the_background);
    let errors = errors(&gateway.said());
    assert_eq!(errors.len(), 1, "one line: {errors:?}");
    assert_eq!(errors[0]["operation.id"], recorded.show()["id"], "{errors:?}");
    let text = errors[0].to_string();
    assert!(text.contains("refuses to settle") && text.contains("ledger verify"), "{text}");
    assert!(!text.contains("Good day") && !text.contains("Say hello"), "{text}");
    let told = metrics(&gateway);
    let ended = value(&told, "holdfast_operations_total", "recorded");
    assert_eq!(ended.to_string(), "1");
    let tokens = |told: &str| {
        ["input", "output"]
            .map(|kind| value(told, "holdfast_tokens_total", &format!("\"{kind}\"")).to_string())
    };
    let used = tokens(&told);
    assert!(!used.contains(&"0".to_owned()), "{used:?}");
    // A fact of the database, looked up now and then.
    until("its hold is told", || {
        let held = value(&metrics(&gateway), "holdfast_holds_outstanding", "");
        (held.to_string() == "1").then_some(())
    });
    let listed = recorded.site.json(&["operation", "list", "--stale"]);
    assert_eq!(listed[0]["id"], recorded.show()["id"], "{listed}");

    recorded.mend();
    recorded.check_settled(&gateway);
    let told = metrics(&gateway);
    assert_eq!(value(&told, "holdfast_operations_total", "recorded").to_string(), "1");
    assert_eq!(value(&told, "holdfast_operations_total", "completed").to_string(), "1");
    assert_eq!(tokens(&told), used, "they were counted with the result");
}

#[test]
fn sqlite_row_that_is_mended_is_settled_without_anybody_asking() {
    let (recorded, gateway) = RecordedRun::bring_about(|config| beating(config, "200ms", "2s"));
    let refusals = || errors(&gateway.said()).len();
    let before = refusals();
    until("the operator is told again", || (refusals() > before).then_some(()));
    recorded.check_kept(&gateway);
    recorded.mend();
    until("it is settled", || (recorded.show()["status"] == "completed").then_some(()));
    let by_reconciler = "phase=\"completed\"";
    let count = || {
        let reconciled = value(&metrics(&gateway), "holdfast_reconciled_total", by_reconciler);
        (reconciled > 0.0).then_some(reconciled)
    };
    assert_eq!(until("it is counted", count).to_string(), "1");
    recorded.check_settled(&gateway);
}

#[test]
fn sqlite_row_that_refuses_a_settlement_is_found_so_after_a_power_cut() {
    let (recorded, gateway) = RecordedRun::bring_about(nobody_in_the_background);
    let shown = recorded.show();
    gateway.kill();
    let gateway = recorded.site.serve();
    until("the operator is told at the start", || {
        errors(&gateway.said())
            .iter()
            .any(|line| line.to_string().contains("refuses"))
            .then_some(())
    });
    recorded.check_kept(&gateway);
    assert_eq!(recorded.show(), shown, "a power cut changes nothing");
    let told = gateway.send(&recorded.cancel());
    error(Code::StorageUnavailable).bound().charged(CHARGE).check(&told);
    recorded.mend();
    let settled = check_json(&gateway.send(&recorded.cancel()), 200);
    assert_eq!(settled["status"], "completed", "a cancel settles it, as a retry would");
    recorded.check_settled(&gateway);
    gateway.kill();
    let gateway = recorded.site.serve();
    recorded.check_settled(&gateway);
}
