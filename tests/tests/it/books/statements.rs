//! Statements and reports of usage, against what the test has summed by itself: over the answers'
//! `usage`, and over what it paid in.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Command;

use holdfast_tests::config::SIM;
use holdfast_tests::site::text;
use holdfast_tests::{Account, Config, Gateway, Ran, Reply, Site, Upstream, request_key};
use serde_json::{Map, Value, json};

use crate::bodies::{acme, sim};
use crate::check::{check_completion, meters};

/// Names that mean something to SQL, to a spreadsheet and to CSV.
const FORMULA: &str = "=HYPERLINK(\"x\", A1), or so";
const QUOTED: &str = "Robert'); DROP TABLE wallets;--";

/// SplitMix64: the same history every time.
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    pub(crate) fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % sides
    }
}

fn micros(object: &Value, name: &str) -> i64 {
    object[name].as_i64().unwrap_or_else(|| panic!("no {name} in {object}"))
}

fn balance(object: &Value) -> (i64, i64) {
    (micros(object, "available_micros"), micros(object, "held_micros"))
}

/// Adds its entries to its opening balance: each says what comes out, the last is the closing balance.
#[track_caller]
fn check_statement(statement: &Value) {
    let mut sums = balance(&statement["opening"]);
    for entry in statement["entries"].as_array().unwrap() {
        let amount = micros(entry, "amount_micros");
        assert!(amount > 0, "{entry}");
        for (side, amount) in [("debit", -amount), ("credit", amount)] {
            match entry[side].as_str().unwrap() {
                "available" => sums.0 += amount,
                "held" => sums.1 += amount,
                other => assert!(["funding", "revenue", "adjustments"].contains(&other), "{entry}"),
            }
        }
        assert_eq!(balance(entry), sums, "{entry}");
    }
    assert_eq!(balance(&statement["closing"]), sums, "{statement}");
}

/// A random history of a wallet, and what it must have then.
fn history(site: &Site, gateway: &Gateway, account: &Account) -> i64 {
    let mut dice = Dice(7);
    let mut available = 10_000_000;
    let mut charged: Vec<(String, i64)> = Vec::new();
    for _step in 0..40 {
        let amount = 1 + i64::try_from(dice.roll(900)).unwrap();
        let units = format!("0.{amount:06}");
        let directive = match dice.roll(9) {
            0 => {
                let _posting = site.json(&["wallet", "deposit", "main", &units]);
                available += amount;
                continue;
            }
            1 => {
                let taken = format!("-{units}");
                let _posting = site.json(&["wallet", "adjust", "main", &taken, "--reason", "x"]);
                available -= amount;
                continue;
            }
            2 if !charged.is_empty() => {
                let (id, left) = charged.last_mut().unwrap();
                let ran = site.cli(&["wallet", "refund", id, &units]);
                assert_eq!(ran.code, Some(i32::from(amount > *left)), "{ran:?}");
                if amount <= *left {
                    *left -= amount;
                    available += amount;
                }
                continue;
            }
            3 => "[[sim: refuse]]",
            4 => "[[sim: fail-before]]",
            5 => "[[sim: fail-after]]",
            _ => "Hello there, whoever you may be",
        };
        let key = request_key();
        let answer = gateway.complete(account, &key, &sim(directive));
        if answer.status == 200 {
            let completion = answer.json();
            let charge = micros(&completion["usage"], "customer_charge_micros");
            charged.push((text(&completion, "id"), charge));
            available -= charge;
        }
    }
    assert!(charged.len() > 5);
    available
}

#[test]
fn a_statement_adds_up_however_a_history_is_cut() {
    let (site, account) = Site::funded(&Config::simulated());
    let other = site.account("other", "USD", "1.00");
    let gateway = site.serve();
    let expected = history(&site, &gateway, &account);
    let key = request_key();
    check_completion(&gateway.complete(&other, &key, &sim("Hello")), &key, false);

    let read = |more: &[&str]| {
        let statement = site.json(&[&["wallet", "ledger", "main"], more].concat());
        check_statement(&statement);
        statement
    };
    let whole = read(&[]);
    assert_eq!(balance(&whole["opening"]), (0, 0));
    assert_eq!(balance(&whole["closing"]), (expected, 0));
    assert_eq!(balance(&site.json(&["wallet", "show", "main"])), (expected, 0));
    assert_eq!((&whole["from"], &whole["to"]), (&Value::Null, &Value::Null));
    assert_eq!(whole["wallet_id"], account.wallet.as_str());
    let entries = whole["entries"].as_array().unwrap();
    for at in (0..entries.len()).step_by(entries.len() / 6) {
        let cut = text(&entries[at], "at");
        let (before, after) = (read(&["--to", &cut]), read(&["--from", &cut]));
        assert_eq!(before["closing"], after["opening"], "{cut}");
        assert_eq!((&before["to"], &after["from"]), (&json!(cut), &json!(cut)));
        let parts = [before, after].map(|part| part["entries"].as_array().unwrap().clone());
        assert_eq!(&parts.concat(), entries, "each entry is in one of the two");
        assert!(parts[0].iter().all(|entry| text(entry, "at") < cut));
    }
    let last = read(&["--limit", "3"]);
    assert_eq!(last["omitted_entries"], entries.len() - 3);
    assert_eq!(last["entries"].as_array().unwrap()[..], entries[entries.len() - 3..]);
    assert_eq!(last["closing"], whole["closing"]);
    assert_eq!(last["opening"]["available_micros"], entries[entries.len() - 4]["available_micros"]);
    let future = read(&["--from", "2999-01-01"]);
    assert_eq!((&future["opening"], &future["closing"]), (&whole["closing"], &whole["closing"]));

    let _said = site.cli(&["wallet", "ledger", "main", "--from", "2026-02-30"]).failed(2);
    let backwards = ["wallet", "ledger", "main", "--from", "2026-11-02", "--to", "2026-11-01"];
    let _said = site.cli(&backwards).failed(2);
    let shown = site.cli(&["wallet", "ledger", "main"]).ok();
    assert_eq!(shown.lines().count(), entries.len() + 3, "a head, an opening and a closing");
    site.verify();
}

/// Sums of one group by their names in a report.
type Sums = BTreeMap<String, i64>;

/// What was asked, and what the answers said of it.
struct Books {
    site: Site,
    gateway: Gateway,
    _upstream: Upstream,
    /// By day, model, API key and wallet: the sums of each group and currency.
    expected: [BTreeMap<(String, String), Sums>; 4],
}

impl Books {
    fn kept() -> Self {
        let upstream = Upstream::start(Reply::saying("Good day"));
        let euros = "[[models.prices]]\neffective_from = 2026-01-01T00:00:00Z\ncurrency = \"EUR\"\n\
            micros_per_million = { input = 1_000_000, output = 3_000_000 }\n[[models.routes]]";
        let config = Config::upstream(&upstream)
            .set("providers.sim", "kind", "\"simulated\"")
            .model(SIM, "sim", "sim-1", "input = 2_000_000, output = 4_000_000")
            .replace("[[models.routes]]", euros);
        let (site, main) = Site::funded(&config);
        let accounts = [
            (site.another_key(&main.wallet, QUOTED), "main", "USD"),
            (main, "main", "USD"),
            (site.account(FORMULA, "USD", "5.00"), FORMULA, "USD"),
            (site.account(QUOTED, "EUR", "5.00"), QUOTED, "EUR"),
        ];
        let gateway = site.serve();
        let mut books = Self { site, gateway, _upstream: upstream, expected: Default::default() };
        for (account, wallet, currency) in &accounts {
            for body in [
                acme("Say hello"),
                sim("Hello there"),
                sim("Hello there\n[[sim: no-usage]]"),
                sim("Hello there\n[[sim: overrun]]"),
                sim("[[sim: refuse]]"),
                sim("[[sim: fail-before]]"),
                sim("[[sim: fail-after]]"),
            ] {
                books.ask(account, [wallet, currency], &body);
            }
        }
        books
    }

    fn ask(&mut self, account: &Account, [wallet, currency]: [&str; 2], body: &str) {
        let key = request_key();
        let answer = self.gateway.complete(account, &key, body);
        let operation = self.gateway.get(account, &format!("/v1/operations/{key}")).json();
        let Some(finished_at) = operation["finished_at"].as_str() else { return };
        let mut sums = Sums::new();
        match answer.status {
            200 => {
                let usage = &answer.json()["usage"];
                let count = |path: &str| usage.pointer(path).and_then(Value::as_i64).unwrap_or(0);
                let cached = count("/prompt_tokens_details/cached_tokens");
                let reasoning = count("/completion_tokens_details/reasoning_tokens");
                let charge = count("/customer_charge_micros");
                sums.insert("completed".to_owned(), 1);
                sums.insert("estimated".to_owned(), i64::from(body.contains("no-usage")));
                sums.insert("input".to_owned(), count("/prompt_tokens") - cached);
                sums.insert("cached_input".to_owned(), cached);
                sums.insert("output".to_owned(), count("/completion_tokens") - reasoning);
                sums.insert("reasoning".to_owned(), reasoning);
                sums.insert("request".to_owned(), 1);
                sums.insert("charge_micros".to_owned(), charge);
                sums.insert("shortfall_micros".to_owned(), micros(&operation, "shortfall_micros"));
                assert_eq!(body.contains("overrun"), micros(&operation, "shortfall_micros") > 0);
                if body.contains("large-1") {
                    let refund = ["wallet", "refund", &text(&operation, "id"), "0.000011"];
                    let _posting = self.site.json(&refund);
                    sums.insert("refunded_micros".to_owned(), 11);
                }
            }
            422 | 502 => {
                let ended = if answer.status == 422 { "refused" } else { "abandoned" };
                sums.insert(ended.to_owned(), 1);
                let hold = micros(&operation, "hold_micros");
                assert!(hold > 0);
                sums.insert("exposure_micros".to_owned(), hold);
            }
            other => panic!("{other}: {answer:?}"),
        }
        let groups = [
            finished_at.split_once('T').unwrap().0.to_owned(),
            text(&operation, "model"),
            account.id.clone(),
            wallet.to_owned(),
        ];
        for (expected, group) in self.expected.iter_mut().zip(groups) {
            let totals = expected.entry((group, currency.to_owned())).or_default();
            for (name, more) in &sums {
                *totals.entry(name.clone()).or_default() += more;
            }
        }
    }

    fn report(&self, by: &str, more: &[&str]) -> Ran {
        self.site.cli(&[&["usage", "report", "--by", by], more].concat())
    }
}

/// A row of a report: its group and currency, and its sums that are not zero.
fn row(row: &Value, group: &str) -> ((String, String), Sums) {
    let mut sums = Sums::new();
    let counts = row["meters"].as_object().unwrap();
    assert_eq!(counts.len(), meters(&[]).as_object().unwrap().len());
    for (name, value) in row.as_object().unwrap().iter().chain(counts) {
        if let Some(value) = value.as_i64().filter(|value| *value != 0) {
            sums.insert(name.clone(), value);
        }
    }
    ((text(row, group), text(row, "currency")), sums)
}

#[test]
fn a_report_of_usage_is_the_sum_of_the_answers() {
    let books = Books::kept();
    let groups =
        [("day", "day"), ("model", "model"), ("key", "api_key_id"), ("wallet", "wallet_name")];
    for ((by, group), expected) in groups.into_iter().zip(&books.expected) {
        let report = books.report(by, &["--json"]).json();
        assert_eq!(books.report(by, &["--format", "json"]).json(), report);
        let rows: Vec<_> = report.as_array().unwrap().iter().map(|it| row(it, group)).collect();
        assert_eq!(rows.len(), expected.len(), "a row for each group and currency: {report}");
        let mut expected = expected.clone();
        expected.values_mut().for_each(|sums| sums.retain(|_name, sum| *sum != 0));
        assert_eq!(rows.into_iter().collect::<BTreeMap<_, _>>(), expected, "{by}");
    }
    assert_eq!(books.expected[3].len(), 3);

    let all = books.report("model", &["--json"]).json();
    assert_eq!(books.report("model", &["--from", "2026-01-01", "--json"]).json(), all);
    assert_eq!(books.report("model", &["--to", "2026-01-01", "--json"]).json(), json!([]));
    assert_eq!(books.report("model", &["--from", "2999-01-01", "--json"]).json(), json!([]));
    let _said = books.report("model", &["--from", "2026-01-02", "--to", "2026-01-02"]).failed(2);
    let _said = books.report("model", &["--format", "csv", "--json"]).failed(2);
    let _said = books.report("minute", &[]).failed(2);
    let _said = books.report("day,day", &[]).failed(2);
    let _said = books.report("day,model,key", &[]).failed(2);
    books.site.verify();
}

/// Sums of charges in a report.
fn charges(report: &Value) -> i64 {
    report.as_array().unwrap().iter().map(|row| micros(row, "charge_micros")).sum()
}

#[test]
fn a_report_by_two_keys_and_of_some_operations_adds_up() {
    let books = Books::kept();
    let report = |by: &str, more: &[&str]| books.report(by, &[&["--json"], more].concat()).json();
    let whole = report("wallet", &[]);
    for by in ["hour,key", "month,wallet", "model,route", "route,day", "key,model"] {
        let pairs = report(by, &[]);
        let rows = pairs.as_array().unwrap();
        assert!(rows.len() > whole.as_array().unwrap().len() - 1, "{by}: {pairs}");
        assert_eq!(charges(&pairs), charges(&whole), "{by}");
        let of = |name: &str| rows.iter().all(|row| row.get(name).is_some());
        for name in by.split(',') {
            let name = if name == "key" { "api_key_id" } else { name };
            let name = if name == "wallet" { "wallet_name" } else { name };
            assert!(of(name), "{by}: {name} in {pairs}");
        }
    }
    let hour = text(&report("hour", &[])[0], "hour");
    assert!(hour.len() == 20 && hour.ends_with(":00:00Z"), "{hour}");
    assert_eq!(text(&report("month", &[])[0], "month").len(), 7);

    let row = &report("model,key", &["--wallet", FORMULA])[0];
    let (model, key) = (text(row, "model"), text(row, "api_key_id"));
    let filtered = report("wallet", &["--wallet", FORMULA, "--model", &model, "--key", &key]);
    assert_eq!(charges(&filtered), micros(row, "charge_micros"));
    assert_eq!(text(&filtered[0], "wallet_name"), FORMULA);
    let routes = report("route", &[]);
    for row in routes.as_array().unwrap() {
        let name = text(row, "route");
        let of_route = report("route", &["--route", &name]);
        let same = routes.as_array().unwrap().iter().filter(|row| row["route"] == name.as_str());
        assert_eq!(of_route, same.cloned().collect::<Value>(), "in each currency");
    }
    assert_eq!(report("model", &["--model", "nobody/nothing"]), json!([]));
    let _said = books.report("day", &["--wallet", "nobody"]).failed(1);
}

#[test]
fn a_statement_in_csv_is_the_statement_and_no_formula() {
    let (site, account) = Site::funded(&Config::simulated());
    let _posting =
        site.json(&["wallet", "adjust", "main", "-0.000007", "--reason", "=SUM(A1), \"x\""]);
    let gateway = site.serve();
    let key = request_key();
    check_completion(&gateway.complete(&account, &key, &sim("Hello")), &key, false);
    let csv = site.cli(&["wallet", "ledger", "main", "--csv"]).ok();
    let statement = site.json(&["wallet", "ledger", "main"]);
    let lines: Vec<_> = csv.split("\r\n").collect();
    let entries = statement["entries"].as_array().unwrap();
    assert_eq!(lines.len(), entries.len() + 4, "a head, both balances, and an end: {csv}");
    assert_eq!(
        lines[0],
        "at,kind,debit,credit,amount_micros,available_micros,held_micros,operation_id,generation,\
         posting_id,reason,currency,omitted_entries,rows"
    );
    assert_eq!(lines[1], ",opening,,,,0,0,,,,,USD,0,");
    let (available, held) = balance(&statement["closing"]);
    assert_eq!(
        lines[lines.len() - 2],
        format!(",closing,,,,{available},{held},,,,,USD,,{}", entries.len())
    );
    assert!(csv.contains(",\"'=SUM(A1), \"\"x\"\"\",USD,,\r\n"), "{csv}");
    for (line, entry) in lines[2..].iter().zip(entries) {
        let begin = format!(
            "{},{},{},{},{},{},{},",
            text(entry, "at"),
            text(entry, "kind"),
            text(entry, "debit"),
            text(entry, "credit"),
            micros(entry, "amount_micros"),
            micros(entry, "available_micros"),
            micros(entry, "held_micros")
        );
        assert!(line.starts_with(&begin), "{line} is not {entry}");
    }
    let _said = site.cli(&["wallet", "ledger", "main", "--csv", "--json"]).failed(2);
}

#[test]
fn a_table_shows_units_and_a_plain_csv_shows_micros() {
    let books = Books::kept();
    let rows = books.report("wallet", &["--json"]).json();
    let charge = micros(&rows[0], "charge_micros");
    let units = format!("{}.{:06}", charge / 1_000_000, charge % 1_000_000);
    let units = units.trim_end_matches('0');
    for more in [&[][..], &["--format", "table"]] {
        let shown = books.report("wallet", more).ok();
        assert_eq!(shown.lines().count(), 4, "{shown}");
        assert!(shown.contains(units) && shown.contains(FORMULA), "{shown}");
        assert!(shown.trim_start().to_lowercase().starts_with("wallet"), "{shown}");
    }
    let csv = books.report("wallet", &["--format", "csv"]).ok();
    let lines: Vec<_> = csv.split("\r\n").collect();
    assert_eq!(
        lines[0],
        "kind,wallet_id,wallet_name,currency,completed,refused,abandoned,estimated,costed,input,cached_input,\
         cache_write,audio_input,output,reasoning,audio_output,request,image,charge_micros,\
         shortfall_micros,refunded_micros,provider_cost_micros,margin_micros,exposure_micros,\
         costs_excluded,incomplete,rows"
    );
    assert_eq!((lines.len(), lines[5]), (6, ""), "each line ends: {csv:?}");
    assert!(lines[4].starts_with("closing,") && lines[4].ends_with(",3"), "{csv:?}");
    let first =
        format!("usage,{},\"'=HYPERLINK(\"\"x\"\", A1), or so\",USD,", text(&rows[0], "wallet_id"));
    assert!(lines[1].starts_with(&first), "no formula, and quoted: {csv}");
    let model = books.report("model", &["--format", "csv"]).ok();
    assert!(model.starts_with("kind,model,currency,completed,"), "{model}");
}

/// Reads CSV and prints its rows as JSON objects.
const READ: &str = "import csv, json, sys
with open(sys.argv[1], newline='') as file:
    rows = list(csv.DictReader(file, strict=True))
    assert rows.pop()['kind'] == 'closing'
    assert all([row.pop('kind'), row.pop('rows')] == ['usage', ''] for row in rows)
    print(json.dumps(rows))
";

#[test]
fn python_reads_a_report_in_csv() {
    let named = std::env::var_os("HOLDFAST_TEST_PYTHON").map(PathBuf::from);
    let python = named.expect("HOLDFAST_TEST_PYTHON: `cargo xtask test tests` sets it");
    let books = Books::kept();
    for by in ["day", "model", "key", "wallet", "month,wallet", "route,key"] {
        books.site.write("report.csv", &books.report(by, &["--format", "csv"]).ok());
        let file = books.site.path("report.csv");
        let read = Ran::of(Command::new(&python).args(["-c", READ]).arg(file)).json();
        let report = books.report(by, &["--json"]).json();
        let flat: Vec<Value> = report.as_array().unwrap().iter().map(flat).collect();
        assert_eq!(read, Value::Array(flat), "{by}");
    }
}

/// A row of a report as CSV has it: everything is text, and nothing is a formula.
fn flat(row: &Value) -> Value {
    // A report in JSON leaves out what a complete one has not.
    let complete = [("costs_excluded", "0"), ("incomplete", "false")];
    let mut flat: Map<_, _> =
        complete.map(|(name, value)| (name.to_owned(), Value::from(value))).into_iter().collect();
    let members = row.as_object().unwrap().iter().chain(row["meters"].as_object().unwrap());
    for (name, value) in members.filter(|(name, _)| *name != "meters") {
        let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        // What is not known, and the route of what tried none.
        let value = if value == "null" || value.is_empty() { "-".to_owned() } else { value };
        let value = if value.starts_with('=') { format!("'{value}") } else { value };
        flat.insert(name.clone(), Value::from(value));
    }
    Value::Object(flat)
}
