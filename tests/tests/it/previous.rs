//! Two versions on one PostgreSQL database, as during an update: the gateway of the release before, which started
//! before the migration, and the current one. A key is one run and one charge, whichever of them it reaches.
//!
//! The release's binary is built by `cargo xtask test tests` from the clone's own history. A file is served by one
//! process, so there is no such update of SQLite.

use holdfast_tests::config::ACME;
use holdfast_tests::postgres::Database;
use holdfast_tests::{
    Account, Answer, Config, Gate, Gateway, Reply, Request, Site, Streaming, Upstream, request_key,
};
use holdfast_wire::error::Code;
use serde_json::json;

use crate::administration;
use crate::bodies::acme;
use crate::check::{check_completion, content, error, until};
use crate::streaming::check_stream;

const CHARGE: i64 = 367;
const FUNDS: i64 = 10_000_000;
/// Model of a second provider, whose routes cool down on their own.
const OTHER: &str = "acme/other-1";
const SAID: &str = "Good day";

/// Gateway of the release before and the current one, by turns in either order.
struct Pair {
    previous: Gateway,
    current: Gateway,
    site: Site,
    account: Account,
    upstream: Upstream,
    database: Database,
}

/// A node that is killed is believed to be dead within seconds.
fn config(upstream: &Upstream, database: &Database) -> Config {
    let rates = "input = 2_500_000, cached_input = 250_000, output = 10_000_000";
    let spans = [("lease", "6s"), ("heartbeat", "1s"), ("orphan_grace", "1s")];
    let config = database
        .configure(Config::upstream(upstream))
        .set("providers.other", "kind", "\"openai\"")
        .set("providers.other", "base_url", &format!("\"{}\"", upstream.base_url()))
        .set("providers.other", "api_key", "\"${UPSTREAM_KEY}\"")
        .model(OTHER, "other", "other-model", rates);
    let set = |config: Config, (key, span): (&str, &str)| {
        config.set("operations", key, &format!("\"{span}\""))
    };
    spans.into_iter().fold(config, set)
}

impl Pair {
    /// The release creates the database and serves it; then the current version migrates it and serves it as well.
    fn start() -> Self {
        let said =
            Reply::as_wanted(Streaming::saying(&["Good ", "day"]).reply(), Reply::saying(SAID));
        let upstream = Upstream::start(said);
        let database = Database::make();
        let site = Site::configured(&config(&upstream, &database));
        drop(site.previous_cli(&["migrate", "up"]).ok());
        let account = site.account_by_previous("main", "USD", "10.00");
        let previous = site.serve_previous();
        drop(site.cli(&["migrate", "up"]).ok());
        let current = site.serve();
        Self { previous, current, site, account, upstream, database }
    }

    fn orders(&self) -> [[&Gateway; 2]; 2] {
        [[&self.previous, &self.current], [&self.current, &self.previous]]
    }

    fn request(&self, key: &str, body: &str) -> Request {
        Request::completion(&self.account.key, key, body)
    }

    /// So many runs, each charged once, and a ledger in order. The release's own command refuses to
    /// start on a newer schema, so that only the current one verifies.
    #[track_caller]
    fn check(&self, runs: usize, charged: usize) {
        assert_eq!(self.upstream.runs(), runs, "each key ran once");
        let charged = i64::try_from(charged).unwrap() * CHARGE;
        assert_eq!(self.site.balance(&self.account), (FUNDS - charged, 0));
        self.database.check_book();
        self.site.verify();
    }
}

fn streamed(body: &str) -> String {
    body.replacen('{', r#"{"stream":true,"#, 1)
}

/// The other form of a request of the same key has the same content, or is not compared: a release does not know a form
/// of fingerprints that is newer than itself. It never runs.
#[track_caller]
fn check_other_form(gateway: &Gateway, request: &Request, key: &str, is_previous: bool) {
    let came = request.begin(gateway.address()).rest();
    if came.starts_with("HTTP/1.1 200 ") {
        assert!(came.contains("idempotent-replayed: true") && came.contains("Good "), "{came}");
    } else {
        let is_refused =
            ["409", "503"].iter().any(|it| came.starts_with(&format!("HTTP/1.1 {it} ")));
        assert!(is_previous && is_refused, "{key}: {came}");
    }
}

#[test]
fn postgres_previous_version_and_this_one_replay_each_others_keys() {
    let pair = Pair::start();
    let body = acme("Say hello");
    for [first, second] in pair.orders() {
        let is_previous = std::ptr::eq(second, &raw const pair.previous);
        let key = request_key();
        let request = pair.request(&key, &body);
        let answer = first.send(&request);
        check_completion(&answer, &key, false);
        for gateway in [first, second] {
            let replayed = gateway.send(&request);
            check_completion(&replayed, &key, true);
            assert_eq!(replayed.body, answer.body, "the same bytes");
        }
        check_other_form(second, &pair.request(&key, &streamed(&body)), &key, is_previous);

        let key = request_key();
        let request = pair.request(&key, &streamed(&body));
        let streams = [first, first, second].map(|it| request.begin(it.address()).events().rest());
        let said = check_stream(&streams[0], &key, false);
        assert_eq!(content(&said), SAID);
        assert_eq!(streams[1].events, streams[2].events, "the same events");
        assert_eq!(check_stream(&streams[2], &key, true), said);
        check_other_form(second, &pair.request(&key, &body), &key, is_previous);

        let other = second.send(&pair.request(&key, &acme("Say goodbye")));
        error(Code::IdempotencyKeyConflict).echo(&key).replayed(false).check(&other);
    }
    pair.check(4, 4);
}

#[test]
fn postgres_previous_version_and_this_one_wait_for_each_others_runs() {
    let pair = Pair::start();
    for (turn, [first, second]) in (1..).zip(pair.orders()) {
        let gate = Gate::new();
        pair.upstream.next(Reply::saying(SAID).after(&gate));
        let key = request_key();
        let request = pair.request(&key, &acme("Say hello"));
        let running = request.begin(first.address());
        pair.upstream.wait_for(turn);
        let waiting: Vec<_> =
            [second, first, second].iter().map(|it| request.begin(it.address())).collect();
        gate.open();
        let answer = running.answer();
        check_completion(&answer, &key, false);
        for waiting in waiting {
            assert_eq!(waiting.answer().body, answer.body);
        }
    }
    pair.check(2, 2);
}

#[test]
fn postgres_previous_version_and_this_one_race_for_a_key_that_runs_once() {
    const ROUNDS: usize = 12;
    let pair = Pair::start();
    for _round in 0..ROUNDS {
        let key = request_key();
        let request = pair.request(&key, &acme("Say hello"));
        let gateways = pair.orders().concat();
        let racing: Vec<_> = gateways.iter().map(|it| request.begin(it.address())).collect();
        let answers: Vec<Answer> = racing.into_iter().map(|it| it.answer()).collect();
        assert!(answers.iter().all(|it| it.status == 200), "{answers:?}");
        assert!(answers.iter().all(|it| it.body == answers[0].body), "{answers:?}");
        let ran = answers.iter().filter(|it| it.header("idempotent-replayed") == Some("false"));
        assert_eq!(ran.count(), 1, "{answers:?}");
    }
    pair.check(ROUNDS, ROUNDS);
}

#[test]
fn postgres_previous_version_and_this_one_run_what_the_other_proved_not_run() {
    let pair = Pair::start();
    // A model each: a route cools down after a 429, but not in the other process.
    for ([first, second], model) in pair.orders().into_iter().zip([ACME, OTHER]) {
        let body = acme("Say hello").replace(ACME, model);
        pair.upstream.next(Reply::json(429, &json!({ "error": { "code": "slow_down" } })));
        let key = request_key();
        let request = pair.request(&key, &body);
        assert_eq!(first.send(&request).status, 503);
        let answer = second.send(&request);
        check_completion(&answer, &key, false);
        assert_eq!(first.send(&request).body, answer.body);
    }
    pair.check(4, 2);
}

#[test]
fn postgres_previous_version_and_this_one_give_up_what_the_other_left_running() {
    let mut pair = Pair::start();
    pair.upstream.otherwise(Reply::Silence);
    let requests: Vec<_> = (0..2)
        .map(|_| {
            let key = request_key();
            let request = pair.request(&key, &acme("Say hello"));
            (key, request)
        })
        .collect();
    let cut = requests[0].1.begin(pair.current.address());
    pair.upstream.wait_for(1);
    pair.current.kill_in_place();
    assert_eq!(cut.try_answer(), None);
    let answer = pair.previous.send(&requests[0].1);
    let unknown = |key: &str| error(Code::OutcomeUnknown).echo(key).replayed(true).bound();
    unknown(&requests[0].0).check(&answer);

    pair.current = pair.site.serve();
    let cut = requests[1].1.begin(pair.previous.address());
    pair.upstream.wait_for(2);
    pair.previous.kill_in_place();
    assert_eq!(cut.try_answer(), None);
    unknown(&requests[1].0).check(&pair.current.send(&requests[1].1));
    let again = pair.current.send(&requests[0].1);
    assert_eq!(again.body, answer.body, "the answer of the release");
    pair.check(2, 0);
}

#[test]
fn postgres_previous_version_and_this_one_repeat_each_others_changes() {
    let pair = Pair::start();
    let key = request_key();
    check_completion(&pair.previous.send(&pair.request(&key, &acme("Say hello"))), &key, false);
    let show = ["operation", "show", "--api-key", &pair.account.id, &key];
    let id = pair.site.json(&show)["id"].as_str().unwrap().to_owned();
    let owner = pair.site.json(&["admin-key", "issue", "--name", "owner", "--role", "owner"]);
    let owner = owner["key"].as_str().unwrap();
    let changes = [
        (
            "/deposits",
            json!({ "wallet_id": pair.account.wallet, "amount_micros": 500_000, "source": "bank" }),
        ),
        ("/refunds", json!({ "operation_id": id, "amount_micros": 10 })),
    ];
    for (path, change) in changes {
        for (turn, order) in pair.orders().into_iter().enumerate() {
            let mut change = change.clone();
            if path == "/deposits" {
                change["external_reference"] = json!(turn.to_string());
            }
            let request = administration::change(order[0], path, &change, owner);
            let [made, repeated] = order.map(|gateway| {
                let host = administration::host(gateway);
                request.clone().host(&host).send(gateway.admin_address())
            });
            assert_eq!((made.status, repeated.status), (201, 201), "{made:?} {repeated:?}");
            assert_eq!(made.json()["id"], repeated.json()["id"]);
        }
    }
    let balance = FUNDS - CHARGE + 2 * (500_000 + 10);
    assert_eq!(pair.site.balance(&pair.account), (balance, 0));
    let revoked = format!("/api_keys/{}/revoke", pair.account.id);
    let revoke =
        administration::change(&pair.previous, &revoked, &json!({ "reason": "lost" }), owner);
    assert_eq!(revoke.send(pair.previous.admin_address()).status, 200);
    for gateway in [&pair.previous, &pair.current] {
        until("the revocation is known", || {
            (gateway.get(&pair.account, "/v1/wallet").status == 401).then_some(())
        });
    }
    pair.site.verify();
}
