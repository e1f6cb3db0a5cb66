//! A scrape against the manual: the names of `docs/reference/metrics.md` and no others, money by currency and model,
//! facts of the database, and what Prometheus' own tool says of it.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::Command;

use holdfast_tests::config::{ACME, UPSTREAM_MODEL};
use holdfast_tests::database::execute;
use holdfast_tests::postgres::Database;
use holdfast_tests::{Config, Gate, Ran, Reply, Request, Site, Streaming, Upstream, request_key};
use serde_json::json;

use crate::admin::{metrics, shown_value, value};
use crate::bodies::acme;
use crate::check::{check_completion, until};
use crate::world::World;

const MANUAL: &str = include_str!("../../../docs/reference/metrics.md");
const CHARGE: i64 = 367;

impl World {
    /// A gateway that has answered a completion and a stream, with a cost on its route.
    fn metered() -> Self {
        let streamed = Streaming::saying(&["Good ", "day"]).reply();
        let reply = Reply::as_wanted(streamed, Reply::saying("Good day"));
        let model = format!("model = \"{UPSTREAM_MODEL}\"");
        let cost = format!(
            "{model}\n[models.routes.cost]\nmicros_per_million = {{ input = 1_000_000, output = 1_000_000 }}"
        );
        let world = Self::replying(reply, |config| config.replace(&model, &cost));
        let key = request_key();
        check_completion(&world.complete(&key, &acme("Say hello")), &key, false);
        let streamed = acme("Say hello").replacen('{', r#"{"stream":true,"#, 1);
        let told = world.events(&request_key(), &streamed).rest();
        assert_eq!(told.head.status, 200, "{told:?}");
        world
    }
}

/// Names in the first column of the manual's tables.
fn documented() -> BTreeSet<String> {
    let rows = MANUAL.lines().filter_map(|line| line.strip_prefix("| `"));
    rows.map(|row| row.split(['`', '{']).next().unwrap().to_owned()).collect()
}

#[test]
fn a_scrape_has_the_metrics_of_the_manual_and_no_others() {
    let world = World::metered();
    // The facts of the database come from a task.
    let scraped = until("the facts are there", || {
        let scraped = metrics(&world.gateway);
        scraped.contains("holdfast_outbox_events").then_some(scraped)
    });
    let types = scraped.lines().filter_map(|line| line.strip_prefix("# TYPE "));
    let names: BTreeSet<_> = types.map(|line| line.split(' ').next().unwrap().to_owned()).collect();
    assert_eq!(names, documented());
    let described = scraped.lines().filter(|line| line.starts_with("# HELP ")).count();
    assert_eq!(described, names.len(), "each has its help");
}

#[test]
fn money_is_counted_by_currency_and_model() {
    let world = World::metered();
    let told = metrics(&world.gateway);
    let of_model = format!("currency=\"USD\",model=\"{ACME}\"");
    let count = |name: &str, labels: &str| value(&told, name, labels).to_string();
    assert_eq!(count("holdfast_charge_micros_total", &of_model), (2 * CHARGE).to_string());
    let shown = world.site.json(&["usage", "report", "--by", "model"]);
    let cost = shown[0]["provider_cost_micros"].as_i64().unwrap();
    assert!(cost > 0, "{shown}");
    assert_eq!(count("holdfast_provider_cost_micros_total", &of_model), cost.to_string());
    assert_eq!(count("holdfast_refund_micros_total", &of_model), "0");
    for kind in ["input", "cached_input", "output"] {
        let labels = format!("kind=\"{kind}\",model=\"{ACME}\"");
        let meters = shown[0]["meters"][kind].as_i64().unwrap();
        assert_eq!(count("holdfast_tokens_total", &labels), meters.to_string(), "{kind}");
    }
    let calls = format!("gen_ai_request_model=\"{UPSTREAM_MODEL}\"");
    assert_eq!(count("gen_ai_client_operation_duration_seconds_count", &calls), "2");
    assert!(told.contains("gen_ai_provider_name=\"openai\""), "{told}");
    // By the administration, over the network: what the command line does beside it is not this process's.
    let owner = world.site.json(&["admin-key", "issue", "--name", "me", "--role", "owner"]);
    let operations = world.site.json(&["operation", "list"]);
    let refund = json!({ "operation_id": operations[0]["id"], "amount_micros": 67 });
    let address = world.gateway.admin_address();
    let key = request_key();
    for _repeated in 0..2 {
        let refunded = Request::post("/admin/v1/refunds", refund.to_string())
            .host(&format!("localhost:{}", address.port()))
            .bearer(owner["key"].as_str().unwrap())
            .header("Content-Type", "application/json")
            .header("Idempotency-Key", &key)
            .send(address);
        assert_eq!(refunded.status, 201, "{refunded:?}");
    }
    let told = metrics(&world.gateway);
    let refunded = value(&told, "holdfast_refund_micros_total", &of_model).to_string();
    assert_eq!(refunded, "67", "once, however often it is asked for");
}

#[test]
fn money_of_a_model_that_is_offered_no_more_is_that_of_other_models() {
    let gate = Gate::new();
    let upstream = Upstream::start(Reply::saying("Good day").after(&gate));
    let beating = |config: Config| config.set("operations", "heartbeat", "\"1s\"");
    let (site, account) = Site::funded(&beating(Config::upstream(&upstream)));
    let gateway = site.serve();
    let request = Request::completion(&account.key, &request_key(), acme("Say hello"));
    let _waiting = request.begin(gateway.address());
    upstream.wait_for(1);
    gateway.kill();
    site.configure(&beating(Config::simulated()));
    let gateway = site.serve();
    let labels = "currency=\"USD\",model=\"other\",reason=\"abandoned\"";
    until("what ran is given up", || {
        let told = metrics(&gateway);
        shown_value(&told, "holdfast_exposure_micros_total", labels).filter(|micros| *micros > 0.5)
    });
    assert!(!metrics(&gateway).contains(ACME), "a model that is not offered has no series");
}

#[test]
fn facts_of_the_database_are_gauges_of_every_gateway() {
    let (site, _account) = Site::funded(&Config::simulated());
    let wallet = site.json(&["wallet", "list"])[0]["name"].as_str().unwrap().to_owned();
    drop(site.json(&["wallet", "update", &wallet, "--low-balance", "1000.00"]));
    let gateway = site.serve();
    let told = until("a wallet is below its threshold", || {
        let told = metrics(&gateway);
        told.contains("holdfast_wallets_below_threshold 1").then_some(told)
    });
    assert_eq!(value(&told, "holdfast_verification_mismatches", "").to_string(), "0");
    for pool in ["readers", "glances", "audits", "reports", "summing", "exports"] {
        let labels = format!("pool=\"{pool}\",state=\"used\"");
        assert!(value(&told, "holdfast_pool_connections", &labels) >= 0.0, "{pool}");
    }
    assert!(value(&told, "process_resident_memory_bytes", "") > 1_000_000.0);
    assert!(value(&told, "process_open_fds", "") > 5.0);
}

/// `ledger verify` beside the database, as a timer runs it, is what the alarm on the book hears of.
fn check_alarmed(config: Config, execute: impl Fn(&Site, &str)) {
    let (site, _account) = Site::funded(&config);
    execute(&site, "UPDATE wallets SET available = available + 1");
    assert_eq!(site.cli(&["ledger", "verify"]).code, Some(1));
    let gateway = site.serve();
    let told = until("the mismatch is told", || {
        let told = metrics(&gateway);
        let found = shown_value(&told, "holdfast_verification_mismatches", "");
        found.filter(|found| found.to_string() == "1").map(|_| told)
    });
    assert!(value(&told, "holdfast_verification_finished_timestamp_seconds", "") > 0.0);
    // An audit that cannot be recorded has found what it found.
    execute(&site, "UPDATE wallets SET available = available - 1");
    execute(&site, "ALTER TABLE jobs RENAME TO gone");
    let said = site.cli(&["ledger", "verify"]);
    assert!(said.stderr.contains("the findings were not recorded as a job"), "{said:?}");
    assert_eq!(said.code, Some(0), "{said:?}");
}

#[test]
fn sqlite_a_verification_beside_the_database_is_told() {
    check_alarmed(Config::simulated(), |site, sql| {
        assert_eq!(execute(&site.database(), sql), Vec::<String>::new());
    });
}

#[test]
fn postgres_a_verification_beside_the_database_is_told() {
    let database = Database::migrated();
    check_alarmed(database.configure(Config::simulated()), |_site, sql| {
        drop(database.execute(sql));
    });
}

/// A scrape asks the database nothing, so that it answers at once while nothing there does.
#[test]
fn postgres_a_scrape_answers_while_the_database_does_not() {
    let database = Database::migrated();
    let (site, _account) = Site::funded(&database.configure(Config::simulated()));
    let gateway = site.serve();
    let _locked = database.session(
        "BEGIN; LOCK TABLE operations, running, wallets, jobs, events IN ACCESS EXCLUSIVE MODE;\n",
    );
    let waiting = "SELECT 1 FROM pg_locks WHERE mode = 'AccessExclusiveLock' AND granted
        AND relation = 'operations'::regclass";
    until("the rows are locked", || (!database.execute(waiting).is_empty()).then_some(()));
    assert!(metrics(&gateway).contains("holdfast_holds_outstanding 0"));
    assert!(!database.execute(waiting).is_empty(), "the answer came while they were");
}

#[test]
fn connections_to_a_provider_are_of_calls_or_idle() {
    let world = World::metered();
    let counted = |state: &str| {
        let labels = format!("provider=\"acme\",state=\"{state}\"");
        value(&metrics(&world.gateway), "holdfast_provider_connections", &labels)
    };
    let gate = Gate::new();
    world.upstream.next(Reply::saying("Good day").after(&gate));
    let runs = world.upstream.runs();
    let waiting = Request::completion(&world.account.key, &request_key(), acme("Say hello"));
    let waiting = waiting.begin(world.gateway.address());
    world.upstream.wait_for(runs + 1);
    assert_eq!(counted("used").to_string(), "1");
    gate.open();
    assert_eq!(waiting.answer().status, 200);
    until("the call has ended", || (counted("used") < 0.5).then_some(()));
}

#[test]
fn promtool_passes_a_scrape_under_load() {
    let named = std::env::var_os("HOLDFAST_TEST_PROMTOOL").map(PathBuf::from);
    let promtool = named.expect("HOLDFAST_TEST_PROMTOOL: `cargo xtask test tests` sets it");
    let world = World::metered();
    let answered = std::thread::scope(|scope| {
        let loads: Vec<_> = (0..4)
            .map(|_| {
                scope.spawn(|| {
                    (0..10)
                        .filter(|_| {
                            world.complete(&request_key(), &acme("Say hello")).status == 200
                        })
                        .count()
                })
            })
            .collect();
        for _scrape in 0..5 {
            world.site.write("scrape.txt", &metrics(&world.gateway));
            let script = "\"$0\" check metrics < \"$1\"";
            let mut check = Command::new("sh");
            check.args(["-c", script]).arg(&promtool).arg(world.site.path("scrape.txt"));
            let said = Ran::of(&mut check);
            assert_eq!((said.code, &*said.stderr), (Some(0), ""), "{said:?}");
        }
        loads.into_iter().map(|load| load.join().unwrap()).sum::<usize>()
    });
    assert_eq!(answered, 40);
}
