//! Usage as the holder of an API key reads it: the sums are those of its answers, and of nobody
//! else's.

use std::collections::BTreeSet;
use std::time::{SystemTime, UNIX_EPOCH};

use holdfast_tests::{Account, Config, Gateway, Ran, Reply, Request, Site, Upstream, request_key};
use holdfast_wire::error::Code;
use serde_json::{Value, json};

use crate::bodies::{acme, sim};
use crate::check::{check_completion, check_json, error};
use crate::clients::{PYTHON, world};

const DAY: i64 = 86_400;

pub(crate) fn now() -> i64 {
    i64::try_from(SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs()).unwrap()
}

/// Days (UTC) from this moment to the current one, both included: one, unless a day has just begun.
fn days_since(moment: i64) -> usize {
    usize::try_from(now() / DAY - moment / DAY + 1).unwrap()
}

/// Sum of a member of these rows.
#[track_caller]
fn sum_of(rows: &[Value], member: &str) -> i64 {
    rows.iter().map(|row| row[member].as_i64().unwrap()).sum()
}

/// Sum of these costs in micros.
#[track_caller]
fn micros_of(costs: &[Value]) -> String {
    let value = |cost: &Value| cost["amount"]["value"].to_string().parse::<f64>().unwrap();
    (costs.iter().map(value).sum::<f64>() * 1e6).round().to_string()
}

/// Sums of answers: prompt, completion and cached tokens, and charge.
fn ask(gateway: &Gateway, account: &Account, body: &str) -> [i64; 4] {
    let key = request_key();
    let completion = check_completion(&gateway.complete(account, &key, body), &key, false);
    let usage = &completion["usage"];
    let count = |path: &str| usage.pointer(path).and_then(Value::as_i64).unwrap_or(0);
    let cached = count("/prompt_tokens_details/cached_tokens");
    let charge = count("/customer_charge_micros");
    [count("/prompt_tokens"), count("/completion_tokens"), cached, charge]
}

fn get(gateway: &Gateway, account: &Account, path: &str) -> Value {
    check_json(&gateway.get(account, path), 200)
}

/// Results of all buckets of all pages.
fn results(gateway: &Gateway, account: &Account, path: &str) -> (Vec<Value>, usize) {
    let (mut found, mut buckets, mut end) = (Vec::new(), 0, None);
    let mut page = String::new();
    loop {
        let told = get(gateway, account, &format!("{path}{page}"));
        assert_eq!(told["object"], "page");
        for bucket in told["data"].as_array().unwrap() {
            let start = bucket["start_time"].as_i64();
            assert!(end.is_none() || end == start, "buckets follow each other: {told}");
            end = bucket["end_time"].as_i64();
            buckets += 1;
            found.extend(bucket["results"].as_array().unwrap().iter().cloned());
        }
        assert_eq!(told["has_more"], told["next_page"].is_string(), "{told}");
        let Some(next) = told["next_page"].as_str() else { return (found, buckets) };
        page = format!("&page={next}");
    }
}

#[test]
fn usage_is_the_sum_of_a_keys_answers_and_of_no_other_keys() {
    let upstream = Upstream::start(Reply::saying("Good day"));
    let config = Config::upstream(&upstream).set("providers.sim", "kind", "\"simulated\"").model(
        "holdfast/sim-1",
        "sim",
        "sim-1",
        "input = 2_000_000, output = 4_000_000",
    );
    let (site, account) = Site::funded(&config);
    let other = site.another_key(&account.wallet, "other");
    let gateway = site.serve();
    let begun = now();
    let answers = [acme("Say hello"), sim("Hello there"), acme("Say it again")];
    let answers = answers.map(|body| ask(&gateway, &account, &body));
    let _theirs = ask(&gateway, &other, &acme("Say hello"));
    let [prompt, completion, cached, charge] =
        [0, 1, 2, 3].map(|at| answers.iter().map(|answer| answer[at]).sum::<i64>());

    let own = get(&gateway, &account, "/v1/usage");
    assert_eq!(own["api_key_id"], account.id.as_str());
    // One day, or two if one has just begun.
    let days = own["data"].as_array().unwrap();
    assert!((1..=days_since(begun)).contains(&days.len()), "{own}");
    let sums = ["completed", "charge_micros"].map(|name| sum_of(days, name));
    assert_eq!(sums, [3, charge], "{own}");
    for day in days {
        assert_eq!((&day["model"], &day["currency"]), (&Value::Null, &json!("USD")), "{own}");
    }
    let models = get(&gateway, &account, "/v1/usage?by=month,model");
    let models = models["data"].as_array().unwrap();
    let names: BTreeSet<_> = models.iter().map(|row| row["model"].as_str().unwrap()).collect();
    assert_eq!(Vec::from_iter(names), ["acme/large-1", "holdfast/sim-1"]);
    assert!(models.len() <= 2 * days_since(begun), "{models:?}");
    assert_eq!(models.iter().map(|it| it["charge_micros"].as_i64().unwrap()).sum::<i64>(), charge);

    let start = now() - 9 * DAY;
    let (usage, buckets) = results(
        &gateway,
        &account,
        &format!("/v1/organization/usage/completions?start_time={start}&limit=4"),
    );
    assert!((10..=9 + days_since(start + 9 * DAY)).contains(&buckets), "{buckets}");
    assert!((1..=days_since(begun)).contains(&usage.len()), "{usage:?}");
    let expected = [("input_tokens", prompt), ("output_tokens", completion)];
    let more = [("input_cached_tokens", cached), ("num_model_requests", 3)];
    for (name, count) in expected.into_iter().chain(more) {
        assert_eq!(sum_of(&usage, name), count, "{name} of {usage:?}");
    }
    assert!(usage.iter().all(|day| day["model"].is_null()), "{usage:?}");
    let one = "group_by[]=model&group_by=api_key_id&models=holdfast%2Fsim-1&bucket_width=1h";
    let path = format!("/v1/organization/usage/completions?start_time={}&{one}", now() - 60);
    let (one, _hours) = results(&gateway, &account, &path);
    assert_eq!(one.len(), 1);
    assert_eq!(
        (&one[0]["model"], &one[0]["num_model_requests"]),
        (&json!("holdfast/sim-1"), &json!(1))
    );
    assert_eq!(one[0]["api_key_id"], account.id.as_str());

    let (costs, _days) =
        results(&gateway, &account, &format!("/v1/organization/costs?start_time={start}"));
    assert!((1..=days_since(begun)).contains(&costs.len()), "{costs:?}");
    assert_eq!(micros_of(&costs), charge.to_string(), "{costs:?}");
    assert!(costs.iter().all(|cost| cost["amount"]["currency"] == "usd"), "{costs:?}");
    site.verify();
}

#[test]
fn a_key_that_was_issued_so_reads_the_usage_of_its_whole_wallet() {
    let (site, account) = Site::funded(&Config::simulated());
    let other = site.another_key(&account.wallet, "other");
    let stranger = site.account("stranger", "USD", "1.00");
    let owner = site.json(&["admin-key", "issue", "--name", "me", "--role", "owner"]);
    let gateway = site.serve();
    let admin = gateway.admin_address();
    let order =
        json!({ "wallet_id": account.wallet, "usage": "wallet", "reason": "their reports" });
    let issued = Request::post("/admin/v1/api_keys", order.to_string())
        .host(&format!("localhost:{}", admin.port()))
        .bearer(owner["key"].as_str().unwrap())
        .header("Content-Type", "application/json")
        .header("Idempotency-Key", &request_key())
        .send(admin)
        .json();
    let text = |member: &str| issued[member].as_str().unwrap().to_owned();
    let whole = Account { id: text("id"), key: text("key"), ..account.clone() };
    let charges = [&account, &other, &whole].map(|key| ask(&gateway, key, &sim("Hello there"))[3]);
    let _theirs = ask(&gateway, &stranger, &sim("Hello there"));

    let told = get(&gateway, &whole, "/v1/usage");
    assert_eq!((&told["api_key_id"], &told["wallet_id"]), (&json!(whole.id), &json!(whole.wallet)));
    let sum: i64 = charges.iter().sum();
    let days = told["data"].as_array().unwrap();
    assert_eq!(["completed", "charge_micros"].map(|name| sum_of(days, name)), [3, sum], "{told}");
    let alone = get(&gateway, &account, "/v1/usage");
    assert_eq!((&alone["data"][0]["completed"], alone.get("wallet_id")), (&json!(1), None));

    let start = format!("start_time={}", now() - DAY);
    let completions = format!("/v1/organization/usage/completions?{start}");
    let requests = |path: &str| {
        let (rows, _buckets) = results(&gateway, &whole, path);
        rows.iter().map(|row| row["num_model_requests"].as_i64().unwrap()).sum::<i64>()
    };
    assert_eq!(requests(&completions), 3);
    let own = format!("{completions}&api_key_ids={}", whole.id);
    assert_eq!(requests(&own), 1);
    let (rows, _buckets) = results(&gateway, &whole, &format!("{own}&group_by=api_key_id"));
    assert_eq!(rows[0]["api_key_id"], whole.id.as_str());
    let (costs, _days) =
        results(&gateway, &whole, &format!("/v1/organization/costs?{start}&limit=31"));
    assert_eq!(micros_of(&costs), sum.to_string(), "{costs:?}");
    for (query, param) in [
        ("group_by=api_key_id".to_owned(), "group_by"),
        (format!("api_key_ids={}", account.id), "api_key_ids"),
    ] {
        let told = gateway.get(&whole, &format!("{completions}&{query}"));
        error(Code::InvalidValue).param(param).check(&told);
    }
    gateway.stop();
    site.verify();
}

#[test]
fn what_is_asked_for_and_not_known_is_refused_by_its_name() {
    let (site, account) = Site::funded(&Config::simulated());
    let gateway = site.serve();
    let completions = "/v1/organization/usage/completions";
    for (path, code, param) in [
        ("/v1/usage?wallet=1".to_owned(), Code::UnknownParameter, "wallet"),
        ("/v1/usage?by=week".to_owned(), Code::InvalidValue, "by"),
        ("/v1/usage?from=2026-11-01T09:30:00Z".to_owned(), Code::InvalidValue, "from"),
        (completions.to_owned(), Code::InvalidValue, "start_time"),
        (format!("{completions}?start_time=0&bucket_width=1m"), Code::InvalidValue, "bucket_width"),
        (
            format!("{completions}?start_time=0&project_ids=a"),
            Code::UnknownParameter,
            "project_ids",
        ),
        ("/v1/organization/costs?start_time=0&page=2".to_owned(), Code::InvalidValue, "page"),
    ] {
        error(code).param(param).check(&gateway.get(&account, &path));
    }
    let nobody = Account { key: "hfk_nobody".to_owned(), ..account };
    error(Code::InvalidApiKey).check(&gateway.get(&nobody, "/v1/usage"));
}

#[test]
fn python_reads_its_usage_and_costs_with_the_official_client() {
    let world = world();
    let mut command = world.command(&PYTHON, "usage", |script| script);
    command.env("HOLDFAST_NOW", now().to_string()).env("HOLDFAST_KEY_ID", &world.account.id);
    let told = Ran::of(&mut command).json();
    let [usage] = told["usage"].as_array().unwrap().as_slice() else { panic!("{told}") };
    assert_eq!((&usage[0], &usage[3]), (&json!("acme/large-1"), &json!(1)));
    assert_eq!(told["is_own"], true);
    let paid = 10_000_000 - world.site.balance(&world.account).0;
    let micros = told["costs"][0][1].as_f64().unwrap() * 1e6;
    assert_eq!(micros.round().to_string(), paid.to_string(), "{told}");
    assert_eq!(
        (&told["costs"][0][0], &told["costs"][0][2]),
        (&json!("acme/large-1"), &json!("usd"))
    );
}
