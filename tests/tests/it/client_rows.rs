//! Every client of `docs/how-to/connect-a-framework.md`, a row each: what it does through a sidecar with nothing
//! changed but its base URL, and what it does by itself after a failure. The rows of the document are what these tests
//! expect.
//!
//! The official SDKs go through the sidecar in every run of the suite; the whole matrix is `cargo xtask clients`.

mod list;

use std::net::SocketAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use holdfast_tests::config::ACME;
use holdfast_tests::upstream::Judge;
use holdfast_tests::{Proxy, Ran, Reply, Upstream};
use serde_json::{Value, json};

use self::list::{ASYNC_OPENAI, Client, NODE_OPENAI, NONE, OF_NODE, OF_PYTHON, OPENAI, Setting};
use crate::clients::{
    NODE_FRAMEWORKS, PYTHON, PYTHON_FRAMEWORKS, Sdk, World, obeying_world, obeying_world_with,
};
use crate::faults::{self, Fault};
use crate::sidecar::SAID;

/// A client of a script may take so long for all that it is asked.
const SCRIPT_MAX: Duration = Duration::from_secs(480);

/// Time of a model: longer than a client waits for it in all that waits briefly and tries as often as by itself.
const SLOW: Duration = Duration::from_secs(20);
const SHORT_S: u32 = 3;
const LONG_S: u32 = 60;

/// Tries for which a gateway is at work: more than any client makes by itself.
const BUSY: usize = 6;
const MANY: u32 = 12;

/// What a client makes of an answer, and how many calls that takes.
fn expected(how: &str) -> (Value, i64) {
    match how {
        "whole" | "asynchronous" | "stream" => (json!(SAID), 1),
        "tools" => (json!(["1", SAID]), 2),
        "structured" | "structured_stream" => (json!("Ada"), 1),
        "asked_again" => (json!("Ada"), 2),
        other => panic!("nothing is expected of {other}"),
    }
}

/// Address to ask, who makes the keys, and settings of the client.
struct Setup<'a> {
    to: SocketAddr,
    keys: &'a str,
    settings: Value,
}

impl Client {
    /// Asks by its script, and gives what each came to.
    fn ask(&self, world: &World, setup: &Setup<'_>, asks: &[(&str, String)]) -> Vec<Value> {
        self.sdk.put_beside(&world.site, "report");
        let mut command = world.command(&self.sdk, self.script, |script| script);
        command.env("HOLDFAST_URL", format!("http://{}/v1", setup.to));
        command
            .env("HOLDFAST_KEYS", setup.keys)
            .env("HOLDFAST_SETTINGS", setup.settings.to_string());
        command.env("HOLDFAST_ASKS", json!(asks).to_string());
        // Prices come with the library; a test asks nobody for newer ones.
        command.env("LITELLM_LOCAL_MODEL_COST_MAP", "True");
        let ran = Ran::within(&mut command, SCRIPT_MAX).ok();
        let last = ran.lines().last().unwrap_or_default();
        serde_json::from_str(last).unwrap_or_else(|error| panic!("{error}: {ran}"))
    }

    /// Makers of keys that its row names.
    fn own_keys(&self) -> impl Iterator<Item = &'static str> {
        let ways = ["option", "helper"].into_iter().zip(self.cells);
        ways.filter(|(_, cell)| *cell != NONE).map(|(keys, _)| keys)
    }

    /// Behind the sidecar the first answers break, in a head, in bodies and in a stream.
    pub(crate) fn check_through_a_sidecar(&self) {
        let world = obeying_world(SCRIPT_MAX);
        let back = Proxy::start(world.gateway.address());
        back.cut_next(&[100, 900, 1_500, 2_500]);
        let sidecar = world.site.sidecar(back.address(), &[]);
        let setup = Setup { to: sidecar.address(), keys: "sidecar", settings: json!({}) };
        let told = self.ask(&world, &setup, &self.asks());
        let (wanted, runs): (Vec<_>, Vec<_>) = self.hows.iter().map(|how| expected(how)).unzip();
        assert_eq!(told, wanted, "{}", self.name);
        assert!(back.told().len() > 3, "the cuts were met: {:?}", back.told());
        world.check_charges(runs.iter().sum());
    }

    fn asks(&self) -> Vec<(&'static str, String)> {
        self.hows.iter().map(|how| (*how, format!("Be {how}"))).collect()
    }

    /// Keys of each kind: one for every request, but for loops under the key of one call.
    fn check_keys(&self) {
        for keys in self.own_keys() {
            let world = obeying_world(SCRIPT_MAX);
            let setup = Setup { to: world.gateway.address(), keys, settings: json!({}) };
            let mut n_runs = 0;
            for (how, told) in self.hows.iter().zip(self.ask(&world, &setup, &self.asks())) {
                let (wanted, runs) = expected(how);
                if keys == "option" && self.loops.contains(how) {
                    assert!(told["error"].is_string(), "{} {how} by {keys}: {told}", self.name);
                    n_runs += 1;
                } else {
                    assert_eq!(told, wanted, "{} {how} by {keys}", self.name);
                    n_runs += runs;
                }
            }
            world.check_charges(n_runs);
        }
    }

    /// Every fault met once: by the client itself, as its row says, and behind the sidecar, which hides what passes.
    fn check_faults(&self) {
        let row = row(self.name);
        for keys in self.own_keys() {
            let bare = |(fault, cell)| {
                let is_bare = keys != self.keys() && self.bare.contains(&fault);
                if is_bare { FAILS } else { cell }
            };
            let wanted: Vec<_> = Fault::ALL.into_iter().zip(row.clone()).map(bare).collect();
            let world = obeying_world(SCRIPT_MAX);
            let direct = faults::before(world.gateway.address());
            self.meet(&world, (&direct, direct.address()), keys, &wanted);
        }
        let hidden = |(fault, cell)| if Fault::is_passing(fault) { AGAIN } else { cell };
        let healed: Vec<_> = Fault::ALL.into_iter().zip(row).map(hidden).collect();
        let world = obeying_world(SCRIPT_MAX);
        let behind = faults::before(world.gateway.address());
        let sidecar = world.site.sidecar(behind.address(), &[]);
        self.meet(&world, (&behind, sidecar.address()), "sidecar", &healed);
    }

    /// Faults met as it is wanted, each by tries of one key.
    fn meet(&self, world: &World, to: (&Upstream, SocketAddr), keys: &str, wanted: &[&str]) {
        let how = |fault| if fault == Fault::CutStream { "stream" } else { "whole" };
        let asks: Vec<_> = Fault::ALL.iter().map(|fault| (how(*fault), fault.text())).collect();
        let told = self.ask(world, &Setup { to: to.1, keys, settings: json!({}) }, &asks);
        let met: Vec<_> = told.iter().map(|said| cell(said)).collect();
        assert_eq!(met, wanted, "{} by {keys}: {told:?}", self.name);
        for (fault, cell) in Fault::ALL.into_iter().zip(&met) {
            let seen = faults::keys(to.0, &fault.text());
            assert!(seen.len() > usize::from(*cell == AGAIN), "{} by {keys}: {fault:?}", self.name);
            assert!(seen.iter().all(|key| *key == seen[0]), "{} by {keys}: {seen:?}", self.name);
        }
        let has_run = |(fault, met): (Fault, &&str)| fault.has_run() || *met == AGAIN;
        let runs = Fault::ALL.into_iter().zip(&met).filter(|it| has_run(*it)).count();
        world.check_charges(i64::try_from(runs).unwrap());
    }

    /// Settings of its last cell, each left out and set: with it the client outwaits the model.
    fn check_settings(&self) {
        for setting in self.settings {
            let (short, long) = match setting {
                Setting::Timeout => (json!({"timeout": SHORT_S}), json!({"timeout": LONG_S})),
                Setting::Retries => (json!({}), json!({"max_retries": MANY})),
            };
            for (settings, wanted) in [(short, FAILS), (long, AGAIN)] {
                // A retry is soon told that the model is at work.
                let world = obeying_world_with(SCRIPT_MAX, |config| {
                    config.set("limits", "retry_wait", "\"2s\"")
                });
                let late = Reply::Late(SLOW, Box::new(Reply::saying(SAID)));
                let busy = faults::busy_before(world.gateway.address(), BUSY);
                let to = match setting {
                    Setting::Timeout => {
                        world.upstream.otherwise(late);
                        world.gateway.address()
                    }
                    Setting::Retries => busy.address(),
                };
                let setup = Setup { to, keys: self.keys(), settings };
                let told = self.ask(&world, &setup, &[("whole", "Take your time".to_owned())]);
                let (name, settings) = (self.name, &setup.settings);
                assert_eq!(cell(&told[0]), wanted, "{name} with {settings}: {told:?}");
            }
        }
    }
}

/// The words of the table.
const AGAIN: &str = "retries";
const FAILS: &str = "fails";
const SHORT: &str = "ends short";

fn cell(said: &Value) -> &'static str {
    match said.as_str() {
        Some(SAID) => AGAIN,
        Some(_) => SHORT,
        None => FAILS,
    }
}

/// Cells of the table's rows: the name, two ways to a key, a cell for each fault, and what to set.
fn table() -> Vec<Vec<&'static str>> {
    let (_, below) = include_str!("../../../docs/how-to/connect-a-framework.md")
        .split_once("| client |")
        .unwrap();
    let rows = below.lines().skip(2).take_while(|line| line.starts_with('|'));
    rows.map(|line| line.trim_matches('|').split(" | ").map(str::trim).collect()).collect()
}

fn whole_row(name: &str) -> Vec<&'static str> {
    let row = table().into_iter().find(|cells| cells[0] == name);
    row.unwrap_or_else(|| panic!("docs/how-to/connect-a-framework.md has no row of {name}"))
}

fn row(name: &str) -> Vec<&'static str> {
    whole_row(name)[3..3 + Fault::ALL.len()].to_vec()
}

fn check_all(clients: &[Client]) {
    let mut failed = Vec::new();
    for client in clients {
        let began = Instant::now();
        let check = || {
            client.check_through_a_sidecar();
            client.check_keys();
            client.check_faults();
            client.check_settings();
        };
        let word = if catch_unwind(AssertUnwindSafe(check)).is_ok() {
            "as its row says"
        } else {
            "FAILED"
        };
        if word == "FAILED" {
            failed.push(client.name);
        }
        say(&format!("{}: {word}, {} s", client.name, began.elapsed().as_secs()));
    }
    assert!(failed.is_empty(), "{failed:?}");
}

#[expect(clippy::print_stdout, reason = "progress of a run of minutes, for whoever waits")]
fn say(line: &str) {
    println!("{line}");
}

/// Each of these gives up on its first tries; the model answers once.
fn check_loops() {
    let world = obeying_world(SCRIPT_MAX);
    let late = |after| Reply::Late(Duration::from_millis(after), Box::new(Reply::saying(SAID)));
    world.upstream.otherwise(Reply::Judged(Judge::new(move |arrived| {
        // Longer than the SDK below LlamaIndex tries, so that its own loop begins.
        if arrived.body.contains("with_llama_index") { late(7_000) } else { late(1_700) }
    })));
    let loops = ["with_tenacity", "with_retry", "with_llama_index"];
    let asks: Vec<_> = loops.iter().map(|how| (*how, (*how).to_owned())).collect();
    let client = Client::new("loops", PYTHON_FRAMEWORKS, "loops", [""; 3]);
    let setup = Setup { to: world.gateway.address(), keys: "helper", settings: json!({}) };
    let told = client.ask(&world, &setup, &asks);
    assert_eq!(told, loops.map(|_| json!(SAID)));
    world.check_charges(3);
}

/// An example as it stands, run twice: what has a name is paid once, the rest each time.
fn check_example(sdk: &Sdk, (example, n_runs): (&str, [i64; 2])) {
    let world = obeying_world(SCRIPT_MAX);
    let text = sdk.with("../../clients/examples").text(example);
    let text = text.replace("holdfast/sim-1", ACME).replace("holdfast/sim-tools", ACME);
    for n_runs in n_runs {
        let mut command = sdk.on(&world.site, &text);
        command.env("HOLDFAST_URL", world.gateway.base_url());
        let said = Ran::of(command.env("HOLDFAST_KEY", &world.account.key)).ok();
        assert!(said.contains(SAID), "{example}: {said}");
        world.check_charges(n_runs);
    }
}

#[test]
fn the_table_has_a_row_for_each_client_that_is_driven_and_no_other() {
    let mut rows: Vec<_> = table().iter().map(|cells| cells[0]).collect();
    let mut driven: Vec<_> = OF_PYTHON.iter().chain(OF_NODE).map(|client| client.name).collect();
    rows.sort_unstable();
    driven.sort_unstable();
    assert_eq!(rows, driven);
}

#[test]
fn every_row_says_how_its_client_is_driven() {
    for client in OF_PYTHON.iter().chain(OF_NODE) {
        let (row, [once, always, set]) = (whole_row(client.name), client.cells);
        assert_eq!(row.len(), 4 + Fault::ALL.len(), "{row:?}");
        assert_eq!([row[1], row[2], row[10]], [once, always, set], "{}", client.name);
        let set = set.to_lowercase();
        for setting in [Setting::Timeout, Setting::Retries] {
            let is_driven = client.settings.contains(&setting);
            assert_eq!(set.contains(setting.part()), is_driven, "{}: {set}", client.name);
        }
    }
}

#[test]
fn python_needs_nothing_but_the_base_url() {
    OPENAI.check_through_a_sidecar();
}

#[test]
fn python_needs_nothing_but_the_base_url_where_it_is_asynchronous() {
    ASYNC_OPENAI.check_through_a_sidecar();
}

#[test]
fn node_needs_nothing_but_the_base_url() {
    NODE_OPENAI.check_through_a_sidecar();
}

#[test]
#[ignore = "takes minutes: cargo xtask clients"]
fn clients_python_do_as_their_rows_say() {
    check_all(OF_PYTHON);
}

#[test]
#[ignore = "takes minutes: cargo xtask clients"]
fn clients_python_pay_once_below_loops_that_do_not_wait() {
    check_loops();
}

#[test]
#[ignore = "takes minutes: cargo xtask clients"]
fn clients_python_keep_the_header_over_retries_and_routes_of_litellm() {
    let world = obeying_world(SCRIPT_MAX);
    let client = OF_PYTHON.iter().find(|client| client.script == "with_litellm").unwrap();
    for how in ["retried", "routed"] {
        let busy = faults::busy_before(world.gateway.address(), 1);
        let setup = Setup { to: busy.address(), keys: "option", settings: json!({}) };
        assert_eq!(client.ask(&world, &setup, &[(how, how.to_owned())]), [json!(SAID)], "{how}");
        let seen = faults::keys(&busy, how);
        assert!(seen.len() == 2 && seen[0] == seen[1], "{how}: {seen:?}");
    }
    world.check_charges(2);
}

#[test]
#[ignore = "takes minutes: cargo xtask clients"]
fn clients_python_do_what_their_examples_show() {
    check_example(&PYTHON, ("durable_step", [2, 2]));
    check_example(&PYTHON_FRAMEWORKS, ("langchain_chain", [2, 4]));
}

#[test]
#[ignore = "takes minutes: cargo xtask clients"]
fn clients_node_ask_what_is_served_by_chat_of_the_ai_sdk() {
    let world = obeying_world(SCRIPT_MAX);
    let client =
        Client::new("AI SDK, OpenAI's provider", NODE_FRAMEWORKS, "with_ai_sdk_openai", [""; 3]);
    let setup = Setup { to: world.gateway.address(), keys: "helper", settings: json!({}) };
    let asks = ["byDefault", "chat"].map(|how| (how, how.to_owned()));
    let told = client.ask(&world, &setup, &asks);
    assert_eq!(told, [json!([404, "/v1/responses"]), json!(SAID)]);
    world.check_charges(1);
}

#[test]
#[ignore = "takes minutes: cargo xtask clients"]
fn clients_node_do_what_their_examples_show() {
    check_example(&NODE_FRAMEWORKS, ("ai_sdk", [2, 4]));
}

#[test]
#[ignore = "takes minutes: cargo xtask clients"]
fn clients_node_do_as_their_rows_say() {
    check_all(OF_NODE);
}
