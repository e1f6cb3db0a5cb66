//! Pages over a million operations: the time that the gateway says it took for each, and the bytes of each. On a file
//! and on a server. It takes minutes, and is run by `cargo xtask console`; figures are in `tests/bench/notes`.
//!
//! The rows are made by SQL, an operation every 2.6 s for thirty days that end now.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io::Write;
use std::time::Duration;

use holdfast_tests::postgres::Database;
use holdfast_tests::{Answer, Config, Gateway, Request, Site, database};

/// Most time for a page, and most of its HTML.
const PAGE_TIME_MS: u64 = 300;
const PAGE_BYTES: usize = 50 << 10;
const OPERATIONS: i64 = 1_000_000;
const PATIENCE: Duration = Duration::from_secs(3_000);
/// Looks at a page: the one in the middle counts.
const LOOKS: usize = 3;

/// Somebody at the SQL prompt.
type Execute<'d> = &'d dyn Fn(&str);

fn say(text: &str) {
    writeln!(std::io::stderr().lock(), "{text}").unwrap();
}

/// The words in which the two databases differ.
struct Words {
    id: fn(&str, &str) -> String,
    request_key: &'static str,
    series: fn(i64) -> String,
    zeros: fn(u32) -> String,
    now: &'static str,
}

const FILE: Words = Words {
    id: |letter, number| format!("CAST(printf('{letter}%015d', {number}) AS BLOB)"),
    request_key: "CAST(printf('%06d@x', i / 10000000) || x'80' || printf('%07d', i % 10000000) AS BLOB)",
    series: |count| {
        format!(
            "(WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i + 1 < {count})
             SELECT i FROM n) AS n"
        )
    },
    zeros: |length| format!("zeroblob({length})"),
    now: "unixepoch() * 1000000",
};

const SERVER: Words = Words {
    id: |letter, number| {
        format!("convert_to('{letter}' || lpad(({number})::text, 15, '0'), 'UTF8')")
    },
    request_key: "convert_to(lpad((i / 10000000)::text, 6, '0') || '@x', 'UTF8') || '\\x80'::bytea
        || convert_to(lpad((i % 10000000)::text, 7, '0'), 'UTF8')",
    series: |count| {
        format!("(SELECT CAST(i AS bigint) AS i FROM generate_series(0, {count} - 1) AS i) AS n")
    },
    zeros: |length| format!("decode(repeat('00', {length}), 'hex')"),
    now: "(extract(epoch FROM now()) * 1000000)::bigint",
};

/// A hundred wallets with ten API keys each, five models, two routes; the first wallet has every second operation.
fn fill(words: &Words, execute: Execute<'_>) {
    let owner = "(CASE i % 2 WHEN 0 THEN 0 ELSE (i / 2) % 99 + 1 END)";
    let key = format!("({owner} * 10 + (i / 7) % 10)");
    let (wallets, keys, all) =
        ((words.series)(100), (words.series)(1_000), (words.series)(OPERATIONS));
    let (wallet, of_key) = ((words.id)("w", "i"), (words.id)("w", "i / 10"));
    let (key_id, now) = ((words.id)("k", "i"), words.now);
    execute(&format!(
        "INSERT INTO wallets (id, name, currency, available, held, created_at)
         SELECT {wallet}, 'wallet-' || i, 'USD', 0, 0, 1 FROM {wallets}"
    ));
    execute(&format!(
        "INSERT INTO api_keys (id, wallet_id, name, balance, created_at)
         SELECT {key_id}, {of_key}, 'key-' || i, 'shown', 1 FROM {keys}"
    ));
    let (operation, of, by) = ((words.id)("o", "i"), (words.id)("w", owner), (words.id)("k", &key));
    let created = format!("{now} - (CAST({OPERATIONS} AS bigint) - i) * 2592000 - 3000000");
    let request_key = words.request_key;
    let [eight, sixteen, digest] = [8, 16, 32].map(words.zeros);
    execute(&format!(
        "INSERT INTO operations (seq, id, api_key_id, request_key, wallet_id, model, server_secret,
         fingerprint_version, contract, fingerprint, body_digest, created_at, generation,
         price_version, hold, reserved_counters, reserved_tokens, claim, node, incarnation,
         admitted_at, deadline, phase, version, cancel_asked, attempts, input, cached_input,
         cache_write, audio_input, output, reasoning, audio_output, request, image, meters_source,
         charge, shortfall, finished_at, provider_cost)
         SELECT i + 1000, {operation}, {by}, {request_key}, {of}, 'acme/model-' || (i % 5),
         {eight}, 1, 1, {digest}, {digest}, {created}, 1,
         (SELECT min(price_version) FROM prices), 5000, 0, 0, {operation},
         'node', {sixteen}, {created}, {created}, 'completed', 2, 0,
         '[[\"route-' || (i % 2) || '\",\"ok\",1500000,false]]', 100 + i % 900, 0, 0, 0, 50 + i % 70,
         0, 0, 1, 0, 'reported', i % 4000, 0, {created} + 2000000,
         CASE i % 3 WHEN 0 THEN NULL ELSE i % 3000 END FROM {all}"
    ));
}

/// An id as the pages write it: sixteen bytes, a letter and a number.
fn id(letter: u8, number: u32) -> String {
    let bytes: [u8; 16] =
        format!("{}{number:015}", char::from(letter)).into_bytes().try_into().unwrap();
    uuid::Uuid::from_bytes(bytes).to_string()
}

/// Kind of the page at an address: its path without ids, and what it is narrowed by.
fn kind(address: &str) -> String {
    let (path, query) = address.split_once('?').unwrap_or((address, ""));
    let parts = path.split('/').map(|part| if part.len() == 36 { "ID" } else { part });
    let names = query.split('&').filter_map(|pair| pair.split('=').next());
    let names: BTreeSet<_> = names.filter(|name| !name.is_empty() && *name != "key").collect();
    let names: Vec<_> = names.into_iter().collect();
    format!("{} {}", parts.collect::<Vec<_>>().join("/"), names.join(" "))
}

/// A browser that is signed in.
struct Browser<'g> {
    gateway: &'g Gateway,
    cookie: String,
}

impl<'g> Browser<'g> {
    fn sign_in(site: &Site, gateway: &'g Gateway) -> Self {
        let told =
            site.json(&["person", "invite", "ada@example.com", "--role", "owner"]).to_string();
        let link = told[told.find("/link/").unwrap()..].split('"').next().unwrap().to_owned();
        let mut browser = Self { gateway, cookie: String::new() };
        let set = "password=correct+horse+battery&again=correct+horse+battery";
        assert_eq!(browser.post(&link, set).status, 303);
        let form = "email=ada%40example.com&password=correct+horse+battery";
        let signed_in = browser.post("/sign-in", form);
        let mut lines = signed_in.headers.iter().filter(|(name, _)| name == "set-cookie");
        let (_, line) = lines.find(|(_, line)| line.starts_with("holdfast=")).unwrap();
        browser.cookie = line.split(';').next().unwrap().to_owned();
        browser
    }

    fn send(&self, request: Request) -> Answer {
        let admin = self.gateway.admin_address();
        request
            .host(&format!("localhost:{}", admin.port()))
            .header("Cookie", &self.cookie)
            .send(admin)
    }

    fn post(&self, path: &str, form: &str) -> Answer {
        let request = Request::post(path, form);
        let request = request.header("Content-Type", "application/x-www-form-urlencoded");
        self.send(request.header("Sec-Fetch-Site", "same-origin"))
    }

    /// Looks at a page a few times: the answer, and the time in the middle.
    fn look(&self, address: &str) -> (Answer, Duration) {
        let mut times = Vec::new();
        let mut answer = None;
        for _ in 0..LOOKS {
            let begun = std::time::Instant::now();
            answer = Some(self.send(Request::get(address)));
            times.push(begun.elapsed());
        }
        times.sort_unstable();
        (answer.unwrap(), times[LOOKS / 2])
    }

    /// Walks over each kind of page once, and answers its time and bytes.
    fn walk(&self, starts: Vec<String>) -> BTreeMap<String, (Duration, usize)> {
        let (mut todo, mut seen) = (VecDeque::from(starts), BTreeMap::new());
        while let Some(address) = todo.pop_front() {
            let kind = kind(&address);
            if seen.contains_key(&kind) {
                continue;
            }
            let (mut answer, took) = self.look(&address);
            if answer.status == 303 {
                answer = self.send(Request::get(answer.header("location").unwrap()));
            }
            assert_eq!(answer.status, 200, "{address}: {answer:?}");
            seen.insert(kind, (took, answer.body.len()));
            if address.split('?').next().is_some_and(|path| path.ends_with(".csv")) {
                continue;
            }
            let html = answer.text();
            for link in html.split("<a ").skip(1) {
                let Some((_, rest)) = link.split_once("href=\"") else { continue };
                let link = rest.split('"').next().unwrap().replace("&#38;", "&");
                if link.starts_with('/') {
                    todo.push_back(link);
                }
            }
        }
        seen
    }
}

fn every_page_is_there_at_once(
    site: &Site,
    words: &Words,
    execute: Execute<'_>,
    rows: &dyn Fn(&str) -> i64,
) {
    drop(site.cli(&["migrate", "up"]).ok());
    // A first start pins the price that the rows are at.
    site.serve().stop();
    let begun = std::time::Instant::now();
    fill(words, execute);
    say(&format!("{OPERATIONS} operations made in {:?}", begun.elapsed()));
    let gateway = site.serve();
    let browser = Browser::sign_in(site, &gateway);
    let (wallet, key) = (id(b'w', 0), id(b'k', 3));
    let middle = OPERATIONS / 2;
    let starts = vec![
        format!("/wallets/{wallet}"),
        format!("/keys/{key}"),
        format!("/operations?wallet={wallet}&after={middle}"),
        format!("/usage?wallet={wallet}&first=day&second=model"),
        "/".to_owned(),
    ];
    for stage in ["nothing is summed", "all is summed"] {
        if stage == "all is summed" {
            let until = std::time::Instant::now() + PATIENCE;
            // The last two hours are read live.
            while rows("SELECT operations_to FROM usage_summed") < OPERATIONS - 3_000 {
                assert!(std::time::Instant::now() < until, "usage is not summed");
                std::thread::sleep(Duration::from_secs(2));
            }
        }
        let seen = browser.walk(starts.clone());
        say(&format!(" {stage}: {} kinds of pages", seen.len()));
        for (kind, (took, bytes)) in &seen {
            say(&format!("  {:>6} ms {bytes:>6} bytes  {kind}", took.as_millis()));
        }
        let is_file = |kind: &str| kind.split(' ').next().unwrap().ends_with(".csv");
        let bad = seen.iter().filter(|(kind, (took, bytes))| {
            let is_slow = stage == "all is summed" && took.as_millis() > u128::from(PAGE_TIME_MS);
            !is_file(kind) && (is_slow || *bytes > PAGE_BYTES)
        });
        assert_eq!(bad.collect::<Vec<_>>(), [], "{stage}");
    }
    gateway.stop();
}

#[test]
#[ignore = "takes minutes: cargo xtask console"]
fn console_scale_on_a_file() {
    let site = Site::empty_for(PATIENCE).with_env("HOLDFAST_CONFIG", "holdfast.toml");
    site.configure(&Config::simulated());
    let file = site.database();
    let execute = |sql: &str| drop(database::execute_within(&file, sql, PATIENCE));
    let rows = |sql: &str| database::execute(&file, sql)[0].parse().unwrap();
    every_page_is_there_at_once(&site, &FILE, &execute, &rows);
}

#[test]
#[ignore = "takes minutes: cargo xtask console"]
fn console_scale_on_a_server() {
    let database = Database::make();
    let site = Site::empty_for(PATIENCE).with_env("HOLDFAST_CONFIG", "holdfast.toml");
    site.configure(&database.configure(Config::simulated()));
    let execute = |sql: &str| drop(database.execute_within(sql, PATIENCE));
    let rows = |sql: &str| database.execute(sql)[0].parse().unwrap();
    every_page_is_there_at_once(&site, &SERVER, &execute, &rows);
}
