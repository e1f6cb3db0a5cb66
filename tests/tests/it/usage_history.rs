//! OpenAI's endpoints of usage and costs over random books: whatever of a book is summed already, and
//! however it is cut into buckets and pages, their sums are those of the ledger's rows.
//!
//! The rows are written by SQL, because a caller cannot finish anything a week ago. What is expected is read
//! from the ledger, one operation a row, and added up here.

use std::collections::BTreeMap;

use holdfast_store::usage::SummingProgress;
use holdfast_store::{DatabaseUrl, Options, Store};
use holdfast_tests::{Account, Config, Gateway, Site, database};
use serde_json::Value;

use crate::books::statements::Dice;
use crate::check::check_json;
use crate::usage::now;

const SECOND: i64 = 1_000_000;
const HOUR: i64 = 3_600;
const DAY: i64 = 24 * HOUR;
/// Days of a book, the last of which is today.
const DAYS: i64 = 9;
/// Operations of a book, half of which come after some of it was summed.
const OPERATIONS: i64 = 240;

const MODELS: [&str; 3] = ["acme/large-1", "acme/small-1", "zeta/=x"];
const PHASES: [&str; 9] = [
    "completed",
    "completed",
    "completed",
    "completed",
    "refused",
    "abandoned",
    "leased",
    "recorded",
    "open",
];
/// Kinds of tokens, as the columns of an operation name them.
const TOKENS: [&str; 7] =
    ["input", "cached_input", "cache_write", "audio_input", "output", "reasoning", "audio_output"];

/// Operations with the sum of their refunds, of those that were charged.
const LEDGER: &str = "SELECT finished_at / 1000000, hex(api_key_id), hex(wallet_id), model, input, \
    cached_input, cache_write, audio_input, output, reasoning, audio_output, charge - \
    (SELECT coalesce(sum(amount), 0) FROM postings WHERE operation_id = o.id AND kind = 'refund') \
    FROM operations AS o WHERE phase = 'completed'";

/// Sums of a bucket and a model, by their names in the answers; the costs are in micros.
type Sums = BTreeMap<(i64, String), BTreeMap<&'static str, i64>>;

/// A book that is written, and its random source.
struct Book {
    site: Site,
    keys: Vec<Account>,
    /// API key that reads the usage of the first wallet.
    whole: Account,
    dice: Dice,
    now: i64,
    written: i64,
    refunds: i64,
}

/// Rows that are asked for.
#[derive(Clone, Copy)]
struct Question<'a> {
    reader: &'a Account,
    /// Column and id that the reader's rows have.
    owner: (usize, &'a str),
    width: i64,
    by_model: bool,
    limit: i64,
}

impl Book {
    fn new(seed: u64) -> Self {
        let (site, first) = Site::funded(&Config::simulated());
        let other = site.account("other", "EUR", "0");
        let second = site.another_key(&first.wallet, "second");
        let third = site.another_key(&other.wallet, "third");
        let whole = site.key_with(&first.wallet, &["--name", "whole", "--usage", "wallet"]);
        let keys = vec![first, second, other, third];
        Self { site, keys, whole, dice: Dice(seed), now: now(), written: 0, refunds: 0 }
    }

    fn roll(&mut self, below: i64) -> i64 {
        self.dice.roll(below.try_into().unwrap()).try_into().unwrap()
    }

    fn pick<T: Copy>(&mut self, some: &[T]) -> T {
        let at = self.roll(some.len().try_into().unwrap());
        some[usize::try_from(at).unwrap()]
    }

    fn run(&self, sql: &str) -> Vec<String> {
        database::execute(&self.site.database(), sql)
    }

    /// Columns of an operation that has ended like this, or not.
    fn ending(&mut self, phase: &str, created: i64) -> Vec<(&'static str, String)> {
        let is_finished = matches!(phase, "completed" | "refused" | "abandoned");
        let last = (self.now * SECOND - created).min(20 * HOUR * SECOND);
        let finished = created + self.roll(last);
        let is_metered = matches!(phase, "completed" | "recorded");
        let when = |is: bool, value: String| if is { value } else { "NULL".to_owned() };
        let mut columns = vec![
            ("phase", format!("'{phase}'")),
            ("finished_at", when(is_finished, finished.to_string())),
            ("refusal", when(phase == "refused", "'request'".to_owned())),
            ("charge", when(is_metered, self.roll(1_000_000).to_string())),
            ("meters_source", when(is_metered, "'reported'".to_owned())),
        ];
        for name in TOKENS {
            columns.push((name, when(is_metered, self.roll(100_000).to_string())));
        }
        columns.extend(
            ["request", "image", "shortfall"].map(|name| (name, when(is_metered, "0".to_owned()))),
        );
        columns
    }

    /// So many more operations, each later than the one before.
    fn add(&mut self, count: i64) {
        let rows: Vec<_> = (0..count).map(|_| self.operation()).collect();
        let names: Vec<_> = rows[0].iter().map(|(name, _value)| *name).collect();
        let values = rows.into_iter().map(|row| {
            let values: Vec<_> = row.into_iter().map(|(_name, value)| value).collect();
            format!("({})", values.join(", "))
        });
        let (names, values) = (names.join(", "), values.collect::<Vec<_>>().join(", "));
        drop(self.run(&format!("INSERT INTO operations ({names}) VALUES {values}")));
    }

    /// All columns of one more operation.
    fn operation(&mut self) -> Vec<(&'static str, String)> {
        self.written += 1;
        let (seq, step) = (self.written, DAYS * DAY * SECOND / (OPERATIONS + 1));
        let created = (self.now - DAYS * DAY) * SECOND + seq * step;
        let account = usize::try_from(self.roll(4)).unwrap();
        let account = self.keys[account].clone();
        let [wallet, key] = [account.wallet, account.id].map(|id| id.replace('-', ""));
        let phase = self.pick(&PHASES);
        let mut columns = self.ending(phase, created);
        columns.extend([
            ("seq", seq.to_string()),
            ("wallet_id", format!("x'{wallet}'")),
            ("api_key_id", format!("x'{key}'")),
            ("model", format!("'{}'", self.pick(&MODELS))),
            ("hold", "1000000".to_owned()),
            ("server_secret", "zeroblob(8)".to_owned()),
            ("attempts", r#"'[["east","ok",5,false]]'"#.to_owned()),
        ]);
        for (names, value) in [
            (&["id", "request_key"][..], &*id(seq)),
            (&["claim", "incarnation"], "zeroblob(16)"),
            (&["fingerprint", "body_digest"], "zeroblob(32)"),
            (&["price_version", "node"], "'p'"),
            (&["generation", "version"], "1"),
            (&["created_at", "admitted_at", "deadline"], &*created.to_string()),
            (&["fingerprint_version", "contract", "cancel_asked"], "0"),
            (&["reserved_counters", "reserved_tokens"], "0"),
        ] {
            columns.extend(names.iter().map(|name| (*name, value.to_owned())));
        }
        columns
    }

    /// Some runs that went on end, and some charges are refunded in part, or again.
    fn go_on(&mut self) {
        let mut refunds = Vec::new();
        for row in self.run("SELECT seq, created_at, phase, charge FROM operations") {
            let cells: Vec<_> = row.split('|').collect();
            let [seq, created, phase, charge] = <[&str; 4]>::try_from(cells).unwrap();
            let turn = self.roll(3);
            if turn == 0 && matches!(phase, "leased" | "recorded") {
                let ending = self.ending("completed", created.parse().unwrap());
                let set: Vec<_> =
                    ending.iter().map(|(name, value)| format!("{name} = {value}")).collect();
                let set = set.join(", ");
                drop(self.run(&format!("UPDATE operations SET {set} WHERE seq = {seq}")));
            }
            if turn == 1 && phase == "completed" {
                self.refunds += 1;
                let posting = id(-self.refunds);
                // At most twice, so that no refunds are more than their charge.
                let third = charge.parse::<i64>().unwrap() / 3 + 1;
                let amount = 1 + self.roll(third);
                refunds.push(format!(
                    "SELECT {posting}, wallet_id, 'refund', id, {amount}, created_at
                     FROM operations WHERE seq = {seq}"
                ));
            }
        }
        let into = "INSERT INTO postings (id, wallet_id, kind, operation_id, amount, created_at)";
        drop(self.run(&format!("{into} {}", refunds.join(" UNION ALL "))));
    }

    /// Sums all that is old enough, as a gateway does each minute.
    fn sum(&self) {
        let url = format!("sqlite://{}", self.site.database().display());
        let options = Options::new(DatabaseUrl::parse(&url).unwrap());
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.unwrap().block_on(async {
            let store = Store::open(options).await.unwrap();
            while store.sum_usage().await.unwrap() == SummingProgress::Step {}
            store.close().await.unwrap();
        });
    }

    /// Asks for everything in many ways, and compares each with the rows of the ledger.
    fn check(&mut self, gateway: &Gateway, stage: &str) {
        let ledger = self.run(LEDGER);
        let mut questions = Vec::new();
        let readers: Vec<_> = self.keys.iter().chain([&self.whole]).cloned().collect();
        for (at, reader) in readers.iter().enumerate() {
            let owner = if at == self.keys.len() { (2, &*reader.wallet) } else { (1, &*reader.id) };
            for (width, limits) in [(HOUR, [11, 24, 168]), (DAY, [1, 4, 31])] {
                let (limit, by_model) = (self.pick(&limits), self.roll(2) == 0);
                questions.push(Question { reader, owner, width, by_model, limit });
            }
        }
        for question in questions {
            let Question { reader, owner: (_, id), width, by_model, limit } = question;
            let label = format!("{stage}: {id} by {width} s, {by_model}, {limit} a page");
            let (from, to) = (self.now - (DAYS + 1) * DAY, self.now + DAY);
            let period = format!("start_time={from}&end_time={to}&limit={limit}");
            let width = if width == HOUR { "1h" } else { "1d" };
            let query = |group: &str| {
                let group = if by_model { format!("&group_by={group}") } else { String::new() };
                format!("{period}&bucket_width={width}{group}")
            };
            let completions = format!("completions?{}", query("model"));
            let usage = answered(gateway, reader, &format!("usage/{completions}"));
            let costs = answered(gateway, reader, &format!("costs?{}", query("line_item")));
            let [tokens, money] = question.expected(&ledger);
            assert_eq!(usage, tokens, "{label}");
            assert_eq!(costs, money, "{label}");
        }
    }
}

impl Question<'_> {
    /// Sums of the tokens, and those of the money, by the ledger's rows.
    fn expected(self, ledger: &[String]) -> [Sums; 2] {
        let (column, owner) = (self.owner.0, self.owner.1.replace('-', "").to_uppercase());
        let (mut tokens, mut money) = (Sums::new(), Sums::new());
        for row in ledger {
            let cells: Vec<_> = row.split('|').collect();
            if cells[column] != owner {
                continue;
            }
            let number = |at: usize| cells[at].parse::<i64>().unwrap();
            let [input, cached, written, audio, output, reasoning, spoken, paid] =
                [4, 5, 6, 7, 8, 9, 10, 11].map(number);
            let finished = number(0);
            let model = if self.by_model { cells[3].to_owned() } else { String::new() };
            let bucket = (finished - finished.rem_euclid(self.width), model);
            let sums = tokens.entry(bucket.clone()).or_default();
            for (name, count) in [
                ("num_model_requests", 1),
                ("input_tokens", input + cached + written + audio),
                ("input_uncached_tokens", input + audio),
                ("input_cached_tokens", cached),
                ("input_cache_write_tokens", written),
                ("input_audio_tokens", audio),
                ("output_tokens", output + reasoning + spoken),
                ("output_audio_tokens", spoken),
            ] {
                *sums.entry(name).or_default() += count;
            }
            *money.entry(bucket).or_default().entry("amount").or_default() += paid;
        }
        [without_zeros(tokens), without_zeros(money)]
    }
}

/// An id that has a number.
fn id(number: i64) -> String {
    format!("x'{:032x}'", i128::from(number) & i128::MAX)
}

fn without_zeros(mut sums: Sums) -> Sums {
    for sums in sums.values_mut() {
        sums.retain(|_name, sum| *sum != 0);
    }
    sums.retain(|_bucket, sums| !sums.is_empty());
    sums
}

/// Results of all buckets of all pages, by bucket and model.
fn answered(gateway: &Gateway, reader: &Account, query: &str) -> Sums {
    let (mut found, mut page) = (Sums::new(), String::new());
    loop {
        let path = format!("/v1/organization/{query}{page}");
        let told = check_json(&gateway.get(reader, &path), 200);
        for bucket in told["data"].as_array().unwrap() {
            let start = bucket["start_time"].as_i64().unwrap();
            for result in bucket["results"].as_array().unwrap() {
                let model = result.get("line_item").unwrap_or(&result["model"]);
                let key = (start, model.as_str().unwrap_or_default().to_owned());
                let before = found.insert(key, sums_of(result));
                assert!(before.is_none(), "one result for a model in a bucket: {told}");
            }
        }
        let Some(next) = told["next_page"].as_str() else { return without_zeros(found) };
        page = format!("&page={next}");
    }
}

/// Numbers of one result.
fn sums_of(result: &Value) -> BTreeMap<&'static str, i64> {
    if let Some(value) = result.pointer("/amount/value") {
        return BTreeMap::from([("amount", micros(&value.to_string()))]);
    }
    let names = [
        "num_model_requests",
        "input_tokens",
        "input_uncached_tokens",
        "input_cached_tokens",
        "input_cache_write_tokens",
        "input_audio_tokens",
        "output_tokens",
        "output_audio_tokens",
    ];
    names.map(|name| (name, result[name].as_i64().unwrap())).into()
}

/// Micros of a decimal number, read digit by digit.
fn micros(decimal: &str) -> i64 {
    let (whole, part) = decimal.split_once('.').unwrap_or((decimal, ""));
    assert!(part.len() <= 6, "{decimal}");
    format!("{whole}{part:0<6}").parse().unwrap()
}

fn check_book(seed: u64) {
    let mut book = Book::new(seed);
    book.add(OPERATIONS / 2);
    book.go_on();
    let gateway = book.site.serve();
    book.check(&gateway, "nothing is summed");
    book.sum();
    let summed = book.run("SELECT operations_to FROM usage_summed");
    assert!(summed[0].parse::<i64>().unwrap() > 1, "something is summed: {summed:?}");
    book.check(&gateway, "the first half is summed");
    book.add(OPERATIONS / 2);
    book.go_on();
    book.check(&gateway, "more has come, and late ends and refunds with it");
    book.sum();
    book.check(&gateway, "all that is old enough is summed");
    gateway.stop();
}

#[test]
fn sqlite_usage_and_costs_in_openais_shape_add_up_to_the_rows_of_a_random_book() {
    for seed in [3, 1_787] {
        check_book(seed);
    }
}
