//! The lines of the README, of the first integration and of the tests of retries, run as they stand. No line of a page
//! is repeated here: a test that has its own copy of a command would pass while readers fail. Only ports, addresses and
//! secrets differ.

use std::process::Command;

use holdfast_tests::{Gateway, Ran, Reply, Site, Upstream};

use crate::check::until;
use crate::clients::{NODE, PYTHON, Sdk};
use crate::embedded;
use crate::first_day::PUBLIC;

const README: &str = include_str!("../../../README.md");
const INTEGRATION: &str = include_str!("../../../docs/tutorials/first-integration.md");
const RETRIES: &str = include_str!("../../../docs/how-to/test-retries.md");
/// What the simulated model answers to a greeting.
const SAID: &str = "You said: ";

/// Every block of a language in a page, in their order.
pub(crate) fn blocks(page: &'static str, language: &str) -> Vec<&'static str> {
    let fence = format!("```{language}\n");
    page.split(&fence).skip(1).map(|below| below.split_once("```").unwrap().0).collect()
}

/// The embedded default as somebody starts it, and the key that it prints.
fn embedded() -> (Site, Gateway, String) {
    let site = embedded::empty();
    let gateway = embedded::start(&site);
    let key = until("a key is printed", || embedded::printed_key(&gateway));
    (site, gateway, key)
}

/// Each block by itself, in a file of its own: imports, model and all.
fn check_pasted(sdk: &Sdk, language: &str, n_runs: u64) {
    let (site, gateway, key) = embedded();
    let blocks = blocks(INTEGRATION, language);
    assert_eq!(blocks.len(), 3, "a call, a client that makes its keys, a stream");
    for block in blocks {
        let mut command = sdk.on(&site, block);
        command.env("HOLDFAST_URL", gateway.base_url()).env("HOLDFAST_KEY", &key);
        let said = Ran::of(&mut command).ok();
        assert!(said.contains(SAID), "{block}: {said}");
    }
    assert_eq!(site.verify()["operations"], n_runs);
}

#[test]
fn python_runs_the_blocks_of_the_first_integration() {
    check_pasted(&PYTHON, "python", 3);
}

#[test]
fn node_runs_the_blocks_of_the_first_integration() {
    check_pasted(&NODE, "js", 3);
}

#[test]
fn a_shell_runs_the_block_of_the_first_integration() {
    let (site, gateway, key) = embedded();
    let mut shell = shell(&site, blocks(INTEGRATION, "sh")[1]);
    shell.env("HOLDFAST_URL", gateway.base_url()).env("HOLDFAST_KEY", key);
    let said = Ran::of(&mut shell).ok();
    assert!(said.contains(SAID), "{said}");
    assert_eq!(site.verify()["operations"], 1);
}

#[test]
fn a_shell_gets_each_failure_of_the_page_of_retries() {
    let (site, gateway, key) = embedded();
    // curl gives up in two of the blocks, as the page describes.
    let lines = format!("set +e\n{}", blocks(RETRIES, "sh").concat());
    let shown = format!("127.0.0.1:{PUBLIC}");
    let lines = lines.replace("hfk_...", &key).replace(&shown, &gateway.address().to_string());
    let said = Ran::of(&mut shell(&site, &lines)).ok();
    let statuses: Vec<_> = said.split("HTTP/1.1 ").skip(1).filter_map(|it| it.get(..3)).collect();
    let expected = ["200", "200", "503", "200", "409", "200", "502", "502", "200", "409"];
    assert_eq!(statuses, expected, "{said}");
    assert_eq!(said.matches("data: [DONE]").count(), 1, "{said}");
    assert_eq!(site.verify()["operations"], 6);
}

#[test]
fn twelve_lines_reach_a_provider_and_a_retry_has_the_same_bytes() {
    let upstream = Upstream::start(Reply::saying("Good day"));
    let [config] = blocks(README, "toml")[..] else { panic!("one configuration") };
    assert_eq!(config.lines().count(), 12);
    let [_build, set_up, twice] = blocks(README, "sh")[..] else { panic!("three blocks") };
    // The embedded default has run in this folder: its database is the one of the configuration.
    let site = embedded::empty();
    embedded::start(&site).stop();
    site.write("holdfast.toml", &config.replace("https://api.openai.com/v1", &upstream.base_url()));
    let (lines, serve) = set_up.trim_end().rsplit_once('\n').unwrap();
    let key = printed(&Ran::of(&mut shell(&site, lines)).ok(), "hfk_");
    let exports: Vec<_> = lines.lines().filter(|line| line.starts_with("export ")).collect();
    let mut command = shell(&site, &format!("{}\nexec {serve}", exports.join("\n")));
    command.env("HOLDFAST_LISTEN", "127.0.0.1:0").env("HOLDFAST_ADMIN_LISTEN", "127.0.0.1:0");
    let gateway = site.start(command);
    let shown = format!("127.0.0.1:{PUBLIC}");
    let twice = twice.replace("hfk_...", &key).replace(&shown, &gateway.address().to_string());
    let answers = Ran::of(&mut shell(&site, &twice)).ok();
    let (first, second) = answers.split_at(answers.len() / 2);
    assert!(first.contains("Good day"), "{first}");
    assert_eq!(first, second);
    assert_eq!(upstream.runs(), 1);
    gateway.stop();
    let gateway = embedded::start(&site);
    assert!(gateway.printed().contains("another API key"), "{}", gateway.printed());
    let wallets = site.json(&["wallet", "list"]);
    assert_eq!(wallets.as_array().unwrap().len(), 2, "{wallets}");
    gateway.stop();
}

/// The first word in a command's output that begins like this.
pub(crate) fn printed(output: &str, beginning: &str) -> String {
    let at = output.find(beginning).unwrap_or_else(|| panic!("no {beginning} in {output}"));
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    output[at..].chars().take_while(|c| is_part(*c)).collect()
}

/// A shell that finds the binary under its name.
pub(crate) fn shell(site: &Site, lines: &str) -> Command {
    let binary = site.command().get_program().to_owned();
    let folder = std::path::Path::new(&binary).parent().unwrap().to_owned();
    let path = std::env::var_os("PATH").unwrap_or_default();
    let path = std::env::join_paths(std::iter::once(folder).chain(std::env::split_paths(&path)));
    let mut shell = Command::new("sh");
    shell.current_dir(site.folder()).args(["-ec", lines]).env("PATH", path.unwrap());
    shell.env("UPSTREAM_KEY", "unused").env_remove("HOLDFAST_CONFIG");
    shell
}
