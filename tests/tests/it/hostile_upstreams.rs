//! Providers that send more than an answer can be. It costs them their answer, and nobody else anything.

use std::time::{Duration, Instant};

use holdfast_tests::{
    Config, Gate, Reply, Request, Site, Streaming, Upstream, Waiting, request_key,
};
use holdfast_wire::error::Code;
use serde_json::{Value, json};

use crate::bodies::acme;
use crate::check::{check_completion, error, until};
use crate::streaming::{check_broken, check_stream};
use crate::world::World;

/// What `/healthz` takes at most while somebody is flooded: a build without optimizations on a busy machine.
const PROMPT: Duration = Duration::from_secs(2);

impl World {
    /// One thread does everything: whatever holds it up holds up everybody.
    pub(crate) fn on_one_core(config: impl FnOnce(&Upstream) -> Config) -> Self {
        let upstream = Upstream::start(Reply::saying("Good day"));
        let (site, account) = Site::funded(&config(&upstream));
        let gateway = site.serve_on_one_core();
        Self { upstream, site, account, gateway }
    }

    pub(crate) fn asking(&self, key: &str) -> Request {
        let mut body: Value = serde_json::from_str(&acme("Say hello")).unwrap();
        body["stream"] = json!(true);
        body["stream_options"] = json!({"include_usage": true});
        Request::completion(&self.account.key, key, body.to_string())
    }

    /// Has a stream flooded so, and finds that others are served meanwhile and why it was given up.
    #[track_caller]
    pub(crate) fn check_unreadable(&self, flood: Streaming, why: &str) {
        let (key, flooded) = self.flooded(flood, why);
        error(Code::OutcomeUnknown).echo(&key).replayed(false).bound().check(&flooded.answer());
        self.check_why(&key, why);
    }

    /// The same where the caller has heard something by then, which is returned.
    #[track_caller]
    pub(crate) fn check_broken(&self, flood: Streaming, why: &str) -> Value {
        let (key, flooded) = self.flooded(flood, why);
        let (said, error) = check_broken(&flooded.events().rest());
        assert_eq!(error["code"], "outcome_unknown", "{why}: {error}");
        self.check_why(&key, why);
        said
    }

    #[track_caller]
    fn flooded(&self, flood: Streaming, why: &str) -> (String, Waiting) {
        let runs = self.upstream.runs();
        self.upstream.next(flood.reply());
        let key = request_key();
        let flooded = self.asking(&key).begin(self.gateway.address());
        self.upstream.wait_for(runs + 1);
        let begun = Instant::now();
        while begun.elapsed() < Duration::from_millis(500) {
            let asked = Instant::now();
            assert_eq!(self.gateway.send(&Request::get("/healthz")).status, 200);
            assert!(asked.elapsed() < PROMPT, "{why}: {:?}", asked.elapsed());
        }
        (key, flooded)
    }

    #[track_caller]
    fn check_why(&self, key: &str, why: &str) {
        let shown = self.site.json(&["operation", "show", &self.operation(key)]);
        let attempt = &shown["attempts"][0];
        assert_eq!(attempt["class"], "unknown_unreadable", "{shown}");
        assert_eq!(attempt["reason"], why, "{shown}");
        until("the log has it", || self.site.logs().contains(why).then_some(()));
    }

    fn operation(&self, key: &str) -> String {
        let look = Request::get(&format!("/v1/operations/{key}")).bearer(&self.account.key);
        self.gateway.send(&look).json()["id"].as_str().unwrap().to_owned()
    }

    fn resident_kb(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.gateway.process()));
        let status = status.unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
        line.split_whitespace().next().unwrap().parse().unwrap()
    }

    pub(crate) fn end(self) {
        self.gateway.stop();
        self.site.verify();
    }
}

fn delta(members: &str) -> String {
    format!("data: {{\"choices\":[{{\"index\":0,\"delta\":{{{members}}}}}]}}\n\n")
}

#[test]
fn a_flood_of_calls_or_a_long_event_holds_nobody_up() {
    let world = World::on_one_core(Config::upstream);
    let calls = |n: usize| {
        let calls: Vec<_> = (0..n).map(|at| format!("{{\"index\":{at}}}")).collect();
        Streaming::new().raw(&delta(&format!("\"tool_calls\":[{}]", calls.join(","))))
    };
    world.check_unreadable(calls(50_000), "a choice of the answer has more than 1024 tool calls");
    let long = delta(&format!("\"content\":\"{}\"", "x".repeat(1 << 20)));
    let why = "an event of the stream is longer than the provider's event_bytes";
    world.check_unreadable(Streaming::new().raw(&long), why);
    let values = delta(&format!("\"x\":[{}0]", "0,".repeat(400_000)));
    let why = "the answer has more values than an answer of its length may have";
    world.check_unreadable(Streaming::new().raw(&values), why);
    world.end();
}

#[test]
fn a_flood_that_says_nothing_is_silence() {
    let world = World::on_one_core(|upstream| {
        Config::upstream(upstream).replace("total =", "between_tokens = \"1s\", total =")
    });
    let empty = delta("\"content\":\"\"");
    for nothing in [": comment\n\n", &empty] {
        let flood = (0..4_000).fold(Streaming::new().opening().text("Good day"), |said, _| {
            said.raw(&nothing.repeat(50)).pause(Duration::from_millis(5))
        });
        world.upstream.next(flood.silence());
        let (key, begun) = (request_key(), Instant::now());
        let told = world.asking(&key).begin(world.gateway.address()).events().rest();
        let took = begun.elapsed();
        assert!(took < Duration::from_secs(10), "{took:?}");
        let chunks = told.chunks();
        let ends = chunks.iter().filter_map(|chunk| chunk["choices"][0]["finish_reason"].as_str());
        assert_eq!(ends.collect::<Vec<_>>(), ["length"], "{told:?}");
    }
    world.end();
}

#[test]
fn what_is_not_passed_on_is_not_kept() {
    const GROWTH_MAX_KB: u64 = 48 << 10;
    let world = World::on_one_core(Config::upstream);
    let annotations = delta(&format!("\"annotations\":[{}{{}}]", "{},".repeat(20_000)));
    let flood = (0..100).fold(Streaming::new().opening(), |said, _| said.raw(&annotations));
    // What reading one costs is not what keeping all does.
    world.upstream.next(Streaming::saying(&["Good day"]).raw(&annotations).reply());
    let key = request_key();
    let told = world.asking(&key).begin(world.gateway.address()).events().rest();
    check_stream(&told, &key, false);
    let before = world.resident_kb();
    world.upstream.next(flood.text("Good day").finish("stop").usage().done().reply());
    let key = request_key();
    let told = world.asking(&key).begin(world.gateway.address()).events().rest();
    check_stream(&told, &key, false);
    let growth = world.resident_kb().saturating_sub(before);
    assert!(growth < GROWTH_MAX_KB, "{growth} kB of {} bytes", 100 * annotations.len());
    world.end();
}

#[test]
fn answers_that_arrive_share_their_memory_and_new_ones_wait() {
    let world = World::on_one_core(|upstream| {
        Config::upstream(upstream).set("limits", "answer_bytes", "1_048_576")
    });
    let padding = |bytes: usize| format!(":{}\n", "x".repeat(bytes));
    let (more, rest) = (Gate::new(), Gate::new());
    let said = Streaming::new().opening().text("Good day").wait(&more);
    let said = said.raw(&padding(1_036_000)).wait(&rest).raw(&padding(65_536));
    let done = request_key();
    let first = Request::completion(&world.account.key, &done, acme("Say hello"));
    check_completion(&world.gateway.send(&first), &done, false);
    world.upstream.next(said.silence());
    let key = request_key();
    let mut events = world.asking(&key).begin(world.gateway.address()).events();
    events.event();
    more.open();
    let refused = until("its memory is spent", || {
        let request = Request::completion(&world.account.key, &request_key(), acme("Say hello"));
        let answer = world.gateway.send(&request);
        (answer.status != 200).then_some(answer)
    });
    assert_eq!((refused.status, &refused.json()["error"]["code"]), (503, &json!("overloaded")));
    check_completion(&world.gateway.send(&first), &done, true);
    rest.open();
    // Nobody else holds any, but it has more than there is: it ends there, and is paid.
    let told = events.rest();
    let chunks = told.chunks();
    let ends = chunks.iter().filter_map(|chunk| chunk["choices"][0]["finish_reason"].as_str());
    assert_eq!(ends.collect::<Vec<_>>(), ["length"], "{told:?}");
    let again = request_key();
    let after = Request::completion(&world.account.key, &again, acme("Say hello"));
    check_completion(&world.gateway.send(&after), &again, false);
    world.end();
}
