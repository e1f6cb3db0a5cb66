//! Every client of `docs/clients.md`, a row each: what it does through a sidecar with nothing changed but its base URL,
//! and what it does by itself where something goes wrong. The rows of the document are what these tests expect.
//!
//! The official SDKs go through the sidecar in every run of the suite; the whole matrix is `cargo xtask clients`.

use std::net::SocketAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use holdfast_tests::config::ACME;
use holdfast_tests::upstream::Judge;
use holdfast_tests::{Proxy, Ran, Reply};
use serde_json::{Value, json};

use crate::clients::{NODE, NODE_FRAMEWORKS, PYTHON, PYTHON_FRAMEWORKS, Sdk, World, obeying_world};
use crate::faults::{self, Fault};
use crate::sidecar::SAID;

/// A client of a script may take so long for all that it is asked.
const SCRIPT_MAX: Duration = Duration::from_secs(480);

/// One row.
pub(crate) struct Client {
    /// Name of the row.
    name: &'static str,
    /// Libraries, and the script that uses them.
    sdk: Sdk,
    script: &'static str,
    /// Who makes the keys where there is no sidecar: `helper` or `option`.
    keys: &'static str,
    /// Beside whole answers and streams.
    hows: &'static [&'static str],
}

const COMMON: &[&str] = &["whole", "stream", "tools", "structured"];

impl Client {
    const fn new(name: &'static str, sdk: Sdk, script: &'static str) -> Self {
        Self { name, sdk, script, keys: "helper", hows: COMMON }
    }

    const fn by_option(self) -> Self {
        Self { keys: "option", ..self }
    }
}

pub(crate) const OPENAI: Client =
    Client::new("openai-python", PYTHON.with("frameworks"), "with_openai");
pub(crate) const ASYNC_OPENAI: Client =
    Client::new("openai-python, asynchronous", PYTHON.with("frameworks"), "with_async_openai");
pub(crate) const NODE_OPENAI: Client =
    Client::new("openai-node", NODE.with("frameworks"), "with_openai");

const OF_PYTHON: &[Client] = &[
    OPENAI,
    ASYNC_OPENAI,
    Client::new("LangChain, Python", PYTHON_FRAMEWORKS, "with_langchain"),
    Client::new("LlamaIndex, OpenAILike", PYTHON_FRAMEWORKS, "with_llama_index"),
    Client::new("pydantic-ai", PYTHON_FRAMEWORKS, "with_pydantic_ai"),
    Client {
        hows: &["whole", "stream", "structured", "structured_stream"],
        ..Client::new("instructor", PYTHON_FRAMEWORKS, "with_instructor")
    },
    Client::new("LiteLLM, as a library", PYTHON_FRAMEWORKS, "with_litellm"),
    Client::new("`llm`", PYTHON_FRAMEWORKS, "with_llm").by_option(),
    Client::new("curl", PYTHON_FRAMEWORKS, "with_curl").by_option(),
];

const OF_NODE: &[Client] = &[
    NODE_OPENAI,
    Client::new("LangChain, JavaScript", NODE_FRAMEWORKS, "with_langchain"),
    Client::new("AI SDK", NODE_FRAMEWORKS, "with_ai_sdk"),
];

/// What a client makes of an answer, and how many calls that takes.
fn expected(how: &str) -> (Value, i64) {
    match how {
        "whole" | "stream" => (json!(SAID), 1),
        "tools" => (json!(["1", SAID]), 2),
        "structured" | "structured_stream" => (json!("Ada"), 1),
        other => panic!("nothing is expected of {other}"),
    }
}

impl Client {
    /// Asks by its script, and gives what each came to.
    fn ask(
        &self,
        world: &World,
        to: SocketAddr,
        keys: &str,
        asks: &[(&str, String)],
    ) -> Vec<Value> {
        self.sdk.put_beside(&world.site, "report");
        let mut command = world.command(&self.sdk, self.script, |script| script);
        command.env("HOLDFAST_URL", format!("http://{to}/v1")).env("HOLDFAST_KEYS", keys);
        command.env("HOLDFAST_ASKS", json!(asks).to_string());
        // Prices come with the library; a test asks nobody for newer ones.
        command.env("LITELLM_LOCAL_MODEL_COST_MAP", "True");
        let ran = Ran::within(&mut command, SCRIPT_MAX).ok();
        let last = ran.lines().last().unwrap_or_default();
        serde_json::from_str(last).unwrap_or_else(|error| panic!("{error}: {ran}"))
    }

    /// Behind the sidecar the first answers break, in a head, in bodies and in a stream.
    pub(crate) fn check_through_a_sidecar(&self) {
        let world = obeying_world(SCRIPT_MAX);
        let back = Proxy::start(world.gateway.address());
        back.cut_next(&[100, 900, 1_500, 2_500]);
        let sidecar = world.site.sidecar(back.address(), &[]);
        let asks: Vec<_> = self.hows.iter().map(|how| (*how, format!("Be {how}"))).collect();
        let told = self.ask(&world, sidecar.address(), "sidecar", &asks);
        let (wanted, runs): (Vec<_>, Vec<_>) = self.hows.iter().map(|how| expected(how)).unzip();
        assert_eq!(told, wanted, "{}", self.name);
        assert!(back.told().len() > 3, "the cuts were met: {:?}", back.told());
        world.check_charges(runs.iter().sum());
    }

    /// Every fault met once: by the client itself, as its row says, and behind the sidecar, which hides what passes.
    fn check_faults(&self) {
        let row = row(self.name);
        let world = obeying_world(SCRIPT_MAX);
        let direct = faults::before(world.gateway.address());
        let told = self.meet(&world, direct.address(), self.keys);
        let met: Vec<_> = told.iter().map(|said| cell(said)).collect();
        assert_eq!(met, row, "{}: {told:?}", self.name);
        let n_runs = |met: &[&str]| {
            let runs =
                Fault::ALL.iter().zip(met).filter(|(fault, met)| fault.has_run() || **met == AGAIN);
            i64::try_from(runs.count()).unwrap()
        };
        world.check_charges(n_runs(&met));

        let world = obeying_world(SCRIPT_MAX);
        let behind = faults::before(world.gateway.address());
        let sidecar = world.site.sidecar(behind.address(), &[]);
        let told = self.meet(&world, sidecar.address(), "sidecar");
        let met: Vec<_> = told.iter().map(|said| cell(said)).collect();
        let hidden = |(fault, cell)| if Fault::is_passing(fault) { AGAIN } else { cell };
        let healed: Vec<_> = Fault::ALL.into_iter().zip(row).map(hidden).collect();
        assert_eq!(met, healed, "{} behind a sidecar: {told:?}", self.name);
        world.check_charges(n_runs(&met));
    }

    fn meet(&self, world: &World, to: SocketAddr, keys: &str) -> Vec<Value> {
        let how = |fault| if fault == Fault::CutStream { "stream" } else { "whole" };
        let asks: Vec<_> = Fault::ALL.iter().map(|fault| (how(*fault), fault.text())).collect();
        self.ask(world, to, keys, &asks)
    }
}

/// The words of the table.
const AGAIN: &str = "asks again";
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
    let (_, below) = include_str!("../../../docs/clients.md").split_once("| client |").unwrap();
    let rows = below.lines().skip(2).take_while(|line| line.starts_with('|'));
    rows.map(|line| line.trim_matches('|').split(" | ").map(str::trim).collect()).collect()
}

fn row(name: &str) -> Vec<&'static str> {
    let rows = table();
    let row = rows.iter().find(|cells| cells[0] == name);
    let row = row.unwrap_or_else(|| panic!("docs/clients.md has no row of {name}"));
    row[3..3 + Fault::ALL.len()].to_vec()
}

fn check_all(clients: &[Client]) {
    let mut failed = Vec::new();
    for client in clients {
        let began = Instant::now();
        let check = || {
            client.check_through_a_sidecar();
            client.check_faults();
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
    let client = Client::new("loops", PYTHON_FRAMEWORKS, "loops");
    let told = client.ask(&world, world.gateway.address(), client.keys, &asks);
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
fn clients_python_do_what_their_examples_show() {
    check_example(&PYTHON, ("durable_step", [2, 2]));
    check_example(&PYTHON_FRAMEWORKS, ("langchain_chain", [2, 4]));
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
