//! Several gateways on one PostgreSQL database: whichever of them a request reaches, it is one
//! operation, one run, one charge.

use std::time::Duration;

use holdfast_tests::postgres::Database;
use holdfast_tests::{
    Account, Config, Gate, Gateway, Reply, Request, Site, Upstream, Waiting, request_key,
};
use holdfast_wire::error::Code;
use serde_json::json;

use crate::admin::{metrics, value, wait_for_waiters};
use crate::bodies::acme;
use crate::check::{check_completion, check_json, content, error, until};
use crate::streaming::{check_head, check_stream};

const CHARGE: i64 = 367;
const FUNDS: i64 = 10_000_000;

/// Two nodes; what they share is dropped after them.
struct World {
    nodes: [Gateway; 2],
    site: Site,
    account: Account,
    upstream: Upstream,
    database: Database,
}

impl World {
    fn of(upstream: Upstream) -> Self {
        Self::with(upstream, |config| config)
    }

    fn with(upstream: Upstream, set: impl FnOnce(Config) -> Config) -> Self {
        let database = Database::migrated();
        let config = set(database.configure(Config::upstream(&upstream)));
        let (site, account) = Site::funded(&config);
        let nodes = [site.serve(), site.serve()];
        Self { nodes, site, account, upstream, database }
    }
}

/// A node that is killed is believed to be dead within seconds.
fn impatient(config: Config) -> Config {
    config.set("operations", "lease", "\"6s\"").set("operations", "heartbeat", "\"1s\"").set(
        "operations",
        "orphan_grace",
        "\"1s\"",
    )
}

#[test]
fn postgres_a_retry_on_another_node_waits_and_gets_the_same_bytes() {
    let gate = Gate::new();
    let world = World::of(Upstream::start(Reply::saying("Good day").after(&gate)));
    let [first, second] = &world.nodes;
    let key = request_key();
    let request = Request::completion(&world.account.key, &key, acme("Say hello"));
    let running = request.begin(first.address());
    world.upstream.wait_for(1);
    let mut waiting = request.begin(second.address());
    assert!(waiting.is_silent_for(Duration::from_millis(500)), "it waits for the other node");
    gate.open();
    let (told, replayed) = (running.answer(), waiting.answer());
    check_completion(&told, &key, false);
    check_completion(&replayed, &key, true);
    assert_eq!(replayed.body, told.body);
    let other = Request::completion(&world.account.key, &key, acme("Say goodbye"));
    let told = second.send(&other);
    error(Code::IdempotencyKeyConflict).echo(&key).replayed(false).check(&told);
    assert_eq!(world.upstream.runs(), 1);
    assert_eq!(world.site.balance(&world.account), (FUNDS - CHARGE, 0));
    world.site.verify();
}

#[test]
fn postgres_a_stream_of_what_another_node_runs_is_alive_and_told_at_its_end() {
    let gate = Gate::new();
    let world = World::of(Upstream::start(Reply::saying("Good day").after(&gate)));
    let [first, second] = &world.nodes;
    let key = request_key();
    let request = Request::completion(&world.account.key, &key, acme("Say hello"));
    let running = request.begin(first.address());
    world.upstream.wait_for(1);
    let streamed = acme("Say hello").replacen('{', r#"{"stream":true,"#, 1);
    let streamed = Request::completion(&world.account.key, &key, streamed);
    let mut events = streamed.begin(second.address()).events();
    check_head(&events.head, &key, true);
    assert!(events.is_kept_alive(), "its head, and at once that it is alive");
    gate.open();
    let told = running.answer();
    check_completion(&told, &key, false);
    let replayed = check_stream(&events.rest(), &key, true);
    assert_eq!(content(&replayed), content(&told.json()));
    assert_eq!(world.upstream.runs(), 1);
    world.site.verify();
}

/// A load does not bring an answer of this size along.
#[test]
fn postgres_a_large_answer_of_another_node_is_waited_for_to_its_last_byte() {
    let gate = Gate::new();
    let world =
        World::of(Upstream::start(Reply::saying(&"Good day. ".repeat(40_000)).after(&gate)));
    let [first, second] = &world.nodes;
    let key = request_key();
    let request = Request::completion(&world.account.key, &key, acme("Say hello"));
    let running = request.begin(first.address());
    world.upstream.wait_for(1);
    let streamed = acme("Say hello").replacen('{', r#"{"stream":true,"#, 1);
    let streamed = Request::completion(&world.account.key, &key, streamed);
    let (whole, streamed) = (request.begin(second.address()), streamed.begin(second.address()));
    wait_for_waiters(second, 2);
    gate.open();
    let told = running.answer();
    check_completion(&told, &key, false);
    assert_eq!(whole.answer().body, told.body);
    let replayed = check_stream(&streamed.events().rest(), &key, true);
    assert_eq!(content(&replayed), content(&told.json()));
    assert_eq!(world.upstream.runs(), 1);
}

#[test]
fn postgres_those_who_wait_for_another_node_are_counted() {
    let gate = Gate::new();
    let upstream = Upstream::start(Reply::saying("Good day").after(&gate));
    let world = World::with(upstream, |config| config.set("limits", "waiters_per_operation", "2"));
    let [first, second] = &world.nodes;
    let key = request_key();
    let request = Request::completion(&world.account.key, &key, acme("Say hello"));
    let running = request.begin(first.address());
    world.upstream.wait_for(1);
    // Whichever comes last has no place: they have them in no order.
    let asked: Vec<_> = (0..3).map(|_| request.begin(second.address())).collect();
    until("one is refused", || metrics(second).contains(r#"status="429""#).then_some(()));
    gate.open();
    let told = running.answer();
    let (told_too, refused): (Vec<_>, Vec<_>) =
        asked.into_iter().map(Waiting::answer).partition(|answer| answer.status == 200);
    assert!(told_too.iter().all(|answer| answer.body == told.body));
    assert_eq!((told_too.len(), refused.len()), (2, 1), "{refused:?}");
    error(Code::TooManyOperations).echo(&key).replayed(false).check(&refused[0]);
    wait_for_waiters(second, 0);
    assert_eq!(world.upstream.runs(), 1);
}

#[test]
fn postgres_what_a_killed_node_ran_is_taken_over_and_costs_nothing() {
    let gate = Gate::new();
    let upstream = Upstream::start(Reply::saying("Good day").after(&gate));
    let World { nodes: [first, second], site, account, upstream, database } =
        World::with(upstream, impatient);
    let keys = [request_key(), request_key()];
    let [asked, unasked] =
        keys.each_ref().map(|key| Request::completion(&account.key, key, acme("Say hello")));
    let cut = [asked.begin(first.address()), unasked.begin(first.address())];
    upstream.wait_for(2);
    first.kill();
    for cut in cut {
        assert_eq!(cut.try_answer(), None);
    }
    gate.open();
    let unknown = error(Code::OutcomeUnknown).echo(&keys[0]).replayed(true).bound();
    unknown.check(&second.send(&asked));
    // Nobody asks for the other one.
    until("the holds are back", || (site.balance(&account) == (FUNDS, 0)).then_some(()));
    let told = second.send(&unasked);
    error(Code::OutcomeUnknown).echo(&keys[1]).replayed(true).bound().check(&told);
    assert_eq!(upstream.runs(), 2, "never a second time");
    site.verify();
    drop((second, database));
}

#[test]
fn postgres_keys_for_twice_what_a_wallet_has_run_for_what_it_has() {
    const FIT: usize = 20;
    let gate = Gate::new();
    let world = World::of(Upstream::start(Reply::saying("Good day").after(&gate)));
    let hold = {
        let request = Request::completion(&world.account.key, &request_key(), acme("Say hello"));
        let running = request.begin(world.nodes[0].address());
        world.upstream.wait_for(1);
        let (_available, held) = world.site.balance(&world.account);
        running.hang_up();
        held
    };
    let funds = hold * i64::try_from(FIT).unwrap();
    let funds = format!("{}.{:06}", funds / 1_000_000, funds % 1_000_000);
    let poor = world.site.account("poor", "USD", &funds);
    let running: Vec<(String, Waiting)> = (0..2 * FIT)
        .map(|n| {
            let key = request_key();
            let request = Request::completion(&poor.key, &key, acme("Say hello"));
            (key, request.begin(world.nodes[n % 2].address()))
        })
        .collect();
    // All that fit are there, and none of them ends before all others are refused.
    world.upstream.wait_for(1 + FIT);
    until("the rest is refused", || {
        let refused = |node| {
            let metrics = metrics(node);
            value(&metrics, "holdfast_commits_total", "\"insufficient_funds\"")
        };
        let refused: f64 = world.nodes.iter().map(refused).sum();
        (refused.to_string() == FIT.to_string()).then_some(())
    });
    let all = hold * i64::try_from(FIT).unwrap();
    assert_eq!(world.site.balance(&poor), (0, all));
    gate.open();
    let mut completed = 0;
    for (key, waiting) in running {
        let told = waiting.answer();
        if told.status == 200 {
            check_completion(&told, &key, false);
            completed += 1;
        } else {
            let expected = error(Code::InsufficientFunds).while_held();
            expected.echo(&key).replayed(false).check(&told);
        }
    }
    assert_eq!((completed, world.upstream.runs()), (FIT, 1 + FIT));
    let charged = CHARGE * i64::try_from(FIT).unwrap();
    assert_eq!(world.site.balance(&poor), (all - charged, 0));
    world.site.verify();
}

#[test]
fn postgres_a_cancel_reaches_the_node_that_runs_it() {
    let world = World::with(Upstream::start(Reply::Silence), impatient);
    let [first, second] = &world.nodes;
    let key = request_key();
    let running = Request::completion(&world.account.key, &key, acme("Say hello"));
    let running = running.begin(first.address());
    world.upstream.wait_for(1);
    let cancel = format!("/v1/operations/{key}/cancel");
    let asked = Request::post(&cancel, "").bearer(&world.account.key);
    let asked = check_json(&second.send(&asked), 202);
    assert_eq!(asked["status"], json!("leased"));
    world.upstream.wait_for_hang_ups(1);
    let told = running.answer();
    error(Code::OutcomeUnknown).echo(&key).replayed(false).bound().check(&told);
    assert_eq!(world.site.balance(&world.account), (FUNDS, 0));
}

#[test]
fn postgres_limits_of_an_api_key_hold_across_nodes() {
    let gate = Gate::new();
    let world = World::of(Upstream::start(Reply::saying("Good day").after(&gate)));
    let options = ["--name", "three", "--concurrency", "3"];
    let account = world.site.key_with(&world.account.wallet, &options);
    let begin = |n: usize| {
        let key = request_key();
        let request = Request::completion(&account.key, &key, acme("Say hello"));
        (key, request.begin(world.nodes[n % 2].address()))
    };
    let running: Vec<_> = (0..3).map(begin).collect();
    world.upstream.wait_for(3);
    for n in 0..4 {
        let (key, refused) = begin(n);
        error(Code::RateLimitExceeded).echo(&key).replayed(false).check(&refused.answer());
    }
    gate.open();
    for (key, waiting) in running {
        check_completion(&waiting.answer(), &key, false);
    }
    let (key, again) = begin(1);
    check_completion(&again.answer(), &key, false);
}

#[test]
fn postgres_a_node_name_is_one_process() {
    let upstream = Upstream::start(Reply::saying("Good day"));
    let database = Database::migrated();
    let config = impatient(database.configure(Config::upstream(&upstream)));
    let (site, account) = Site::funded(&config.set("server", "node", "\"gw-1\""));
    let first = site.serve();
    let refused = site.cli(&["serve"]).failed(1);
    assert!(refused.contains("node name in use"), "{refused}");
    let key = request_key();
    check_completion(&first.complete(&account, &key, &acme("Say hello")), &key, false);
    first.kill();
    // It waits for the lease to end, and takes the name.
    let second = site.serve();
    check_completion(&second.complete(&account, &key, &acme("Say hello")), &key, true);
    let nodes = database.execute("SELECT name FROM nodes");
    assert_eq!(nodes, ["gw-1"]);
    second.stop();
    assert_eq!(database.execute("SELECT name FROM nodes"), Vec::<String>::new());
}

#[test]
fn postgres_a_node_that_comes_back_ends_what_it_ran_without_a_grace() {
    let upstream = Upstream::start(Reply::Silence);
    let database = Database::migrated();
    let config = impatient(database.configure(Config::upstream(&upstream)));
    let config = config.set("operations", "orphan_grace", "\"1h\"");
    let (site, account) = Site::funded(&config.set("server", "node", "\"gw-1\""));
    let first = site.serve();
    let key = request_key();
    let request = Request::completion(&account.key, &key, acme("Say hello"));
    let cut = request.begin(first.address());
    upstream.wait_for(1);
    first.kill();
    assert_eq!(cut.try_answer(), None);
    assert_ne!(site.balance(&account), (FUNDS, 0));
    // It has the name as soon as the lease has ended: nobody else can be running under it.
    let second = site.serve();
    until("the hold is back", || (site.balance(&account) == (FUNDS, 0)).then_some(()));
    error(Code::OutcomeUnknown).echo(&key).replayed(true).bound().check(&second.send(&request));
    assert_eq!(upstream.runs(), 1);
    site.verify();
}

#[test]
fn postgres_connections_that_end_cost_nobody_anything() {
    let world = World::of(Upstream::start(Reply::saying("Good day")));
    let [gateway, _other] = &world.nodes;
    for _ in 0..3 {
        let key = request_key();
        world.database.disconnect_all();
        let told = until("it runs", || {
            let told = gateway.complete(&world.account, &key, &acme("Say hello"));
            if told.status == 503 {
                error(Code::StorageUnavailable).echo(&key).replayed(false).check(&told);
            }
            (told.status == 200).then_some(told)
        });
        assert_eq!(told.header("idempotency-key"), Some(key.as_str()));
    }
    assert_eq!(world.upstream.runs(), 3);
    assert_eq!(world.site.balance(&world.account), (FUNDS - 3 * CHARGE, 0));
    world.site.verify();
}

#[test]
fn postgres_every_command_works_beside_the_nodes() {
    let world = World::of(Upstream::start(Reply::saying("Good day")));
    let World { nodes: [first, second], site, account, .. } = &world;
    let key = request_key();
    check_completion(&first.complete(account, &key, &acme("Say hello")), &key, false);
    let steps = site.json(&["migrate", "status"]);
    assert!(steps[0]["applied_at"].is_string(), "{steps}");
    let in_use = site.cli(&["migrate", "down", "--yes"]).failed(1);
    assert!(in_use.contains("is running on it"), "{in_use}");
    let shown = site.json(&["operation", "show", "--api-key", &account.id, &key]);
    assert_eq!(shown["charge_micros"], json!(CHARGE), "{shown}");
    let listed = site.json(&["operation", "list"]);
    assert_eq!(listed.as_array().map(Vec::len), Some(1), "{listed}");
    let refunded = site.json(&["wallet", "refund", shown["id"].as_str().unwrap(), "0.000067"]);
    assert!(refunded.is_object(), "{refunded}");
    assert_eq!(site.balance(account), (FUNDS - 300, 0));
    let report = site.json(&["usage", "report", "--by", "model"]);
    assert_eq!(report[0]["charge_micros"], json!(CHARGE), "{report}");
    let reconciled = site.json(&["operation", "reconcile"]);
    assert_eq!(reconciled, json!([]));
    let statement = site.json(&["wallet", "ledger", &account.wallet]);
    let available = &statement["closing"]["available_micros"];
    assert_eq!(available, &json!(FUNDS - 300), "{statement}");
    let rotated = site.rotate(account, "1h");
    let key = request_key();
    check_completion(&second.complete(&rotated, &key, &acme("Say hello")), &key, false);
    drop(site.json(&["key", "revoke", &account.id, "--yes"]));
    assert_eq!(site.verify()["operations"], json!(2));
}
