//! Every list, form and page at the largest things that the API can make: the bytes of each answer, the processor
//! time of each request, and its growth from a quarter of the things to all of them.
//!
//! ```text
//! route tables of the code ─▶ paths with ids ─▶ walk at n ─▶ grow to 4n ─▶ walk again ─▶ bytes, time, growth
//! ```
//!
//! The endpoints are those of both descriptions, and the pages those of the console's own table of routes: a new one is
//! walked too, or the test fails until it is. An owner walks over the pages of operators, and a holder over those of the
//! holders' own listener. Time is the processor's, of the whole process, so that a busy machine
//! does not count.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fmt::Write as _;
use std::fs::DirEntry;
use std::net::SocketAddr;
use std::time::Duration;

use holdfast_accounts::VERBS;
use holdfast_tests::config::SIM;
use holdfast_tests::{Account, Answer, Config, Gateway, Request, Site, request_key};
use serde_json::{Value, json};

use crate::administration::{change, host};
use crate::check::until;

/// Table of the console's routes, as its code has it.
const PAGES: &str = include_str!("../../../crates/console/src/pages.rs");
/// Routes that no page of the walk leads to: a link that is used up, an answer of a sign-in, the playground's own.
const APART: [&str; 6] = [
    "/link/{token}",
    "/sign-out",
    "/playground/stream",
    "/playground/operation",
    // Pages of one refused request and of one route.
    "/refusals/{id}",
    "/routes/show",
];

/// Rows of each kind at first, and in the end.
const ROWS: [usize; 2] = [25, 100];
/// Models of the largest allow-list at first, and in the end.
const MODELS: [usize; 2] = [64, 256];
/// Largest answer.
const BYTES_MAX: usize = 1 << 20;
/// Processor time of a request of the shipped build.
const TIME_MAX: Duration = Duration::from_millis(50);
/// Allowance for a build without optimization, which these tests drive: the list of API keys takes 60 ms there, and
/// 8 to 13 ms in `dist` (`HOLDFAST_BIN` names another build).
const UNOPTIMIZED: u32 = 8;
/// Growth of the time from a quarter to the whole: a linear page grows 4 times, a quadratic one 16 times. In the middle
/// between both, because one measurement differs from the next by half.
const GROWTH_MAX: u32 = 8;
/// Time below which growth is that of other work in the process.
const TIME_LEAST: Duration = Duration::from_millis(10);
/// Requests of one measurement.
const REQUESTS: u32 = 5;
/// Measurements of a request that takes its time.
const MEASUREMENTS: u32 = 4;
/// Longest run, on a machine with other work.
const RUN: Duration = Duration::from_secs(280);

/// An id of the longest length.
fn model(number: usize) -> String {
    format!("{}/{number:0>64}", "p".repeat(63))
}

/// A name that is as long as one may be, and longer where its signs are escaped.
fn long(number: usize, chars: usize) -> String {
    let number = number.to_string();
    format!("{number}{}", "\"".repeat(chars - number.len()))
}

/// Listener of a request, with the credential for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Door {
    Public,
    Operators,
    Holders,
}

struct World<'a> {
    gateway: &'a Gateway,
    key: String,
    /// Session of an owner at the operators' listener.
    cookie: String,
    /// Session of a holder at the holders' listener.
    holder: String,
    account: Account,
    /// Idempotency key of the last request.
    bound: String,
    /// An id of each collection, by the first segment of its paths.
    ids: BTreeMap<&'static str, String>,
    made: usize,
}

impl World<'_> {
    fn post(&self, path: &str, body: &Value) -> Value {
        let answer = change(self.gateway, path, body, &self.key).send(self.gateway.admin_address());
        assert!([200, 201].contains(&answer.status), "POST {path}: {answer:?}");
        answer.json()
    }

    fn make(&self, path: &str, body: &Value) -> String {
        self.post(path, body)["id"].as_str().unwrap().to_owned()
    }

    fn patch(&self, path: &str, body: &Value) {
        let request = change(self.gateway, path, body, &self.key).method("PATCH");
        let answer = request.send(self.gateway.admin_address());
        assert_eq!(answer.status, 200, "PATCH {path}: {answer:?}");
    }

    fn get(&self, path: &str) -> Answer {
        self.get_at(Door::Operators, path)
    }

    fn get_at(&self, door: Door, path: &str) -> Answer {
        let request = Request::get(path);
        match door {
            Door::Public => self.gateway.get(&self.account, path),
            Door::Operators => {
                let request = request.host(&host(self.gateway)).header("Cookie", &self.cookie);
                let is_api = path.starts_with("/admin/");
                let request = if is_api { request.bearer(&self.key) } else { request };
                request.send(self.gateway.admin_address())
            }
            Door::Holders => {
                let listener = self.gateway.console_address();
                let host = format!("localhost:{}", listener.port());
                request.host(&host).header("Cookie", &self.holder).send(listener)
            }
        }
    }

    /// Makes things until there are so many of each kind, each as large as it can be.
    fn grow(&mut self, rows: usize, models: usize) {
        let (wallet, reason) = (self.account.wallet.clone(), long(0, 200));
        let list: Vec<_> = (0..models).map(model).collect();
        for number in self.made..rows {
            let new = json!({
                "name": long(number, 64), "external_id": long(number, 128), "currency": "USD",
            });
            self.make("/wallets", &new);
            let person = json!({
                "email": format!("{number:0>64}@{}.example.com", "a".repeat(63)),
                "name": long(number, 64), "role": "holder_admin", "wallet_id": wallet, "reason": reason,
            });
            self.ids.insert("people", self.make("/people", &person));
            let key = json!({
                "name": long(number, 64), "role": "holder_admin", "wallet_id": wallet, "reason": reason,
            });
            self.ids.insert("admin-keys", self.make("/admin_keys", &key));
            let deposit = json!({
                "wallet_id": wallet, "amount_micros": 1, "source": "s".repeat(32),
                "external_reference": format!("{number:0>128}"), "note": long(number, 200),
                "reason": reason,
            });
            self.ids.insert("postings", self.make("/deposits", &deposit));
            let adjustment = json!({ "wallet_id": wallet, "amount_micros": 1, "reason": reason });
            self.make("/adjustments", &adjustment);
            self.complete();
            let job = self.make("/jobs", &json!({ "kind": "verification", "reason": reason }));
            self.cancel(&job);
            self.ids.insert("jobs", job);
        }
        self.issue(rows, &list);
        self.made = rows;
    }

    /// API keys with the shorter list, as many in a request as it takes, and one with this list that is rotated as
    /// often as it can be. So the lists grow by their rows, and the pages of the one key by its models.
    fn issue(&mut self, rows: usize, models: &[String]) {
        let numbers: Vec<_> = (self.made..rows).collect();
        for part in numbers.chunks(20) {
            let keys: Vec<_> = part
                .iter()
                .map(|number| {
                    json!({
                        "name": long(*number, 64), "external_id": long(*number, 128), "models": &models[..MODELS[0]],
                    })
                })
                .collect();
            let body = json!({
                "wallet_id": self.account.wallet, "keys": keys, "reason": long(0, 200),
            });
            let issued = self.post("/api_keys/bulk", &body);
            let id = issued["data"][0]["id"].as_str().unwrap().to_owned();
            self.ids.insert("keys", id);
        }
        let key = self.ids["keys"].clone();
        // Rows of the trail have the list before and after.
        self.patch(
            &format!("/api_keys/{key}"),
            &json!({ "models": [SIM], "reason": long(0, 200) }),
        );
        self.patch(
            &format!("/api_keys/{key}"),
            &json!({ "models": models, "reason": long(0, 200) }),
        );
        let more = if self.made == 0 { 7 } else { 31 };
        for _ in 0..more {
            let rotation = json!({ "grace_seconds": 3_600, "reason": long(0, 200) });
            self.post(&format!("/api_keys/{key}/rotate"), &rotation);
        }
    }

    /// A job may be begun meanwhile.
    fn cancel(&self, job: &str) {
        let request = change(self.gateway, &format!("/jobs/{job}/cancel"), &json!({}), &self.key);
        let answer = request.send(self.gateway.admin_address());
        assert!([200, 409].contains(&answer.status), "{answer:?}");
        until("the job has ended", || {
            let shown = self.get(&format!("/admin/v1/jobs/{job}")).json();
            let state = shown["state"].as_str()?;
            ["cancelled", "done", "failed"].contains(&state).then_some(())
        });
    }

    fn complete(&mut self) {
        let body = json!({ "model": SIM, "messages": [{ "role": "user", "content": "hello" }] });
        self.bound = request_key();
        let answer = self.gateway.complete(&self.account, &self.bound, &body.to_string());
        assert_eq!(answer.status, 200, "{answer:?}");
    }

    /// A path with ids in their places; `None` if it is of a thing that the walk has not.
    fn filled(&self, path: &str) -> Option<String> {
        let path = path.replace("{event}", &self.ids["events"]);
        if !path.contains('{') {
            return Some(path);
        }
        let folder = path.trim_start_matches("/admin/v1").split('/').nth(1)?.replace('_', "-");
        let folder = match folder.as_str() {
            "api-keys" => "keys",
            "deposits" | "adjustments" | "refunds" => return None,
            other => other,
        };
        Some(path.replace("{id}", self.ids.get(folder)?))
    }

    /// Every endpoint that reads, as the description has them, with the longest page.
    fn endpoints(&self) -> Vec<String> {
        let described = self.get("/admin/openapi.json").json();
        let mut paths = Vec::new();
        for (path, methods) in described["paths"].as_object().unwrap() {
            let Some(read) = methods.get("get") else { continue };
            let Some(filled) = self.filled(path) else {
                assert!(path.ends_with("s/{id}"), "{path} is not walked");
                continue;
            };
            let parameters = read["parameters"].as_array();
            // One route's history, which its name chooses.
            let is_of_one = parameters.is_some_and(|all| {
                all.iter().any(|it| it["in"] == "query" && it["required"] == true)
            });
            if is_of_one {
                continue;
            }
            let has_limit = parameters
                .is_some_and(|all| all.iter().any(|parameter| parameter["name"] == "limit"));
            paths.push(if has_limit { format!("{filled}?limit=200") } else { filled });
        }
        assert!(paths.len() >= 25, "the description is not read: {paths:?}");
        paths
    }

    /// Every endpoint of callers that reads, as the description has them.
    fn endpoints_of_callers(&self) -> Vec<String> {
        let described = self.get_at(Door::Public, "/openapi.json").json();
        let mut paths = Vec::new();
        for (path, methods) in described["paths"].as_object().unwrap() {
            let Some(read) = methods.get("get") else { continue };
            let filled = path
                .replace("{publisher}/{name}", &model(0))
                .replace("{idempotency-key}", &self.bound);
            assert!(!filled.contains('{'), "{path} is not walked");
            let parameters = read["parameters"].as_array().into_iter().flatten();
            let resolved = |parameter: &'_ Value| {
                let path = parameter["$ref"].as_str()?.strip_prefix('#')?;
                described.pointer(path).cloned()
            };
            let has_start = parameters
                .map(|it| resolved(it).unwrap_or_else(|| it.clone()))
                .any(|it| it["name"] == "start_time");
            // A month of days up to now, as far as each endpoint takes them.
            paths.push(if has_start { format!("{filled}?start_time=0&limit=31") } else { filled });
        }
        assert!(paths.len() >= 10, "the description is not read: {paths:?}");
        paths
    }

    /// Every page and form, as the console's table has them, and the forms of verbs.
    fn pages(&self) -> Vec<String> {
        let mut paths = Vec::new();
        for route in PAGES.split(".route(").skip(1).filter(|route| !route.starts_with('&')) {
            let path = route.split('"').nth(1).unwrap();
            if APART.contains(&path) || path.starts_with("/account/sessions/") {
                continue;
            }
            let filled = self.filled(path).unwrap();
            let is_form = route.split(".route(").next().is_some_and(|it| it.contains("methods::<"));
            paths.push(if is_form { format!("{filled}?key={}", request_key()) } else { filled });
        }
        for verb in VERBS {
            paths.push(format!("{}?key={}", self.filled(&verb.page()).unwrap(), request_key()));
        }
        assert!(paths.len() >= 60, "the table is not read: {paths:?}");
        paths
    }

    /// Processor time of one request, and its answer: the least of a few measurements, because the process delivers
    /// events and sums usage meanwhile. One that is short enough is not measured again.
    fn measure(&self, door: Door, path: &str, short: Duration) -> (Duration, Answer) {
        let once = || {
            let before = processor_times(self.gateway.process());
            let answers: Vec<_> = (0..REQUESTS).map(|_| self.get_at(door, path)).collect();
            let time = processor_time_since(self.gateway.process(), &before);
            (time / REQUESTS, answers.into_iter().next_back().unwrap())
        };
        let (mut least, answer) = once();
        for _again in 1..MEASUREMENTS {
            if least > short {
                least = least.min(once().0);
            }
        }
        (least, answer)
    }

    /// Every answer of the walk. A holder may open fewer pages than an owner.
    fn visits(&self) -> Vec<(Door, String)> {
        let at = |door| move |path| (door, path);
        let of_callers = self.endpoints_of_callers().into_iter().map(at(Door::Public));
        let operators = self.endpoints().into_iter().chain(self.pages()).map(at(Door::Operators));
        let pages = self.pages().into_iter().map(at(Door::Holders));
        let holders: Vec<_> = pages
            .filter(|(door, path)| ![403, 404].contains(&self.get_at(*door, path).status))
            .collect();
        assert!(holders.len() >= 30, "a holder has more pages: {holders:?}");
        of_callers.chain(operators).chain(holders).collect()
    }

    /// Walks over everything, and returns the time of each path without its ids. `before` has those of the walk before.
    fn walk(&self, before: &Times, beyond: &mut String) -> Times {
        let most = TIME_MAX * if cfg!(debug_assertions) { UNOPTIMIZED } else { 1 };
        let mut times = Times::new();
        for (door, path) in self.visits() {
            let visit = (door, without_ids(&path));
            let grown = before.get(&visit).map(|time| time_max_after(*time));
            let (time, answer) = self.measure(door, &path, grown.unwrap_or(TIME_LEAST).min(most));
            // No root is signed before its day is over.
            let is_absent = answer.status == 404 && path.ends_with("/proof");
            assert!(
                [200, 303].contains(&answer.status) || is_absent,
                "{door:?} {path}: {} {:?}",
                answer.status,
                answer.headers
            );
            let bytes = answer.body.len();
            if bytes > BYTES_MAX || time > most {
                writeln!(beyond, "{door:?} {path}: {bytes} bytes, {time:?}").unwrap();
            }
            times.insert(visit, time);
        }
        times
    }
}

/// Processor time of each path without its ids.
type Times = BTreeMap<(Door, String), Duration>;

/// Longest time of a path that took this time with a quarter of the rows.
fn time_max_after(time: Duration) -> Duration {
    time.max(TIME_LEAST) * GROWTH_MAX
}

/// A path with each id as `{}`, without its query.
fn without_ids(path: &str) -> String {
    let path = path.split('?').next().unwrap();
    let is_id = |part: &str| part.len() == 36;
    let parts = path.split('/').map(|part| if is_id(part) { "{}" } else { part });
    parts.collect::<Vec<_>>().join("/")
}

/// Processor time of each thread of a process so far, by the scheduler's own clock. Ticks would miss short work.
fn processor_times(process: u32) -> BTreeMap<OsString, Duration> {
    let threads = std::fs::read_dir(format!("/proc/{process}/task")).unwrap();
    let of_thread = |thread: DirEntry| {
        // A thread may end meanwhile.
        let times = std::fs::read_to_string(thread.path().join("schedstat")).ok()?;
        let nanos = times.split(' ').next().unwrap().parse().unwrap();
        Some((thread.file_name(), Duration::from_nanos(nanos)))
    };
    threads.filter_map(|thread| of_thread(thread.unwrap())).collect()
}

/// Processor time of a process since these times of its threads.
fn processor_time_since(process: u32, before: &BTreeMap<OsString, Duration>) -> Duration {
    let earlier = |thread| before.get(thread).copied().unwrap_or(Duration::ZERO);
    let now = processor_times(process);
    now.iter().map(|(thread, time)| time.saturating_sub(earlier(thread))).sum()
}

/// Cookies of a person with this role, who accepts the invitation and signs in at a listener.
fn sign_in(site: &Site, listener: SocketAddr, email: &str, role: &[&str]) -> String {
    let invite = ["person", "invite", email, "--role"];
    let invited = site.json(&[&invite[..], role].concat()).to_string();
    let link = invited[invited.find("/link/").unwrap()..].split('"').next().unwrap().to_owned();
    let post = |path: &str, form: &str| {
        let request = Request::post(path, form)
            .host(&format!("localhost:{}", listener.port()))
            .header("Content-Type", "application/x-www-form-urlencoded")
            .header("Sec-Fetch-Site", "same-origin");
        let answer = request.send(listener);
        assert_eq!(answer.status, 303, "{answer:?}");
        answer
    };
    post(&link, "password=correct+horse+battery&again=correct+horse+battery");
    let email = email.replace('@', "%40");
    let signed_in = post("/sign-in", &format!("email={email}&password=correct+horse+battery"));
    let cookies = signed_in.headers.iter().filter(|(name, _)| name == "set-cookie");
    let cookies = cookies.map(|(_, line)| line.split(';').next().unwrap());
    cookies.collect::<Vec<_>>().join("; ")
}

#[test]
fn every_answer_is_small_and_quick_and_grows_with_what_it_shows() {
    let rates = "input = 2_000_000, output = 4_000_000";
    let config = (0..MODELS[1])
        .fold(Config::simulated(), |config, number| {
            config.model(&model(number), "sim", "sim-1", rates)
        })
        .set("console", "playground", "true")
        .set("console", "listen", "\"127.0.0.1:0\"")
        .set("admin", "creations_per_minute", "100_000")
        .set("webhooks", "allow", "[\"http://localhost:9\"]")
        .set("log", "level", "\"warn\"");
    let (site, account) = Site::funded_for(RUN, &config);
    let owner = site.json(&["admin-key", "issue", "--name", "tester", "--role", "owner"]);
    let gateway = site.serve();
    let cookie = sign_in(&site, gateway.admin_address(), "ada@example.com", &["owner"]);
    let of_holder = ["holder_admin", "--wallet", "main"];
    let holder = sign_in(&site, gateway.console_address(), "bob@example.com", &of_holder);
    let key = owner["key"].as_str().unwrap().to_owned();
    let (bound, ids) = (String::new(), BTreeMap::new());
    let mut world = World { gateway: &gateway, key, cookie, holder, account, bound, ids, made: 0 };
    world.ids.insert("wallets", world.account.wallet.clone());
    for number in 0..16 {
        let url = format!("http://localhost:9/{}", "p".repeat(1_000));
        let hook = json!({
            "wallet_id": world.account.wallet, "url": url, "description": long(number, 200),
        });
        world.ids.insert("webhooks", world.make("/webhooks", &hook));
    }
    let mut beyond = String::new();
    let mut walks = vec![Times::new()];
    for (rows, models) in ROWS.into_iter().zip(MODELS) {
        world.grow(rows, models);
        let newest = |path: &str| {
            let listed = world.get(&format!("/admin/v1/{path}")).json();
            listed["data"][0].clone()
        };
        let operation = newest("operations?limit=1")["id"].as_str().unwrap().to_owned();
        let hook = world.ids["webhooks"].clone();
        let delivery = newest(&format!("webhooks/{hook}/deliveries?limit=1"));
        let event = delivery["event_id"].as_str().unwrap().to_owned();
        world.ids.extend([("operations", operation), ("events", event)]);
        let times = world.walk(&walks[walks.len() - 1], &mut beyond);
        walks.push(times);
    }
    let [_none, first, last] = &walks[..] else { return assert_eq!(walks.len(), 3) };
    assert_eq!(first.keys().collect::<BTreeSet<_>>(), last.keys().collect());
    for (path, time) in last {
        let before = first[path].max(TIME_LEAST);
        if *time > time_max_after(before) {
            writeln!(beyond, "{path:?}: {before:?} grew to {time:?}").unwrap();
        }
    }
    gateway.stop();
    assert!(
        beyond.is_empty(),
        "over {BYTES_MAX} bytes, {TIME_MAX:?} or {GROWTH_MAX} times:\n{beyond}"
    );
}
