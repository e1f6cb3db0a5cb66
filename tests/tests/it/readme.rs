//! The README's own lines, run as they stand.

use std::process::Command;

use holdfast_tests::{Account, Gateway, Ran, Site, request_key};

use crate::bodies::sim;
use crate::check::{check_completion, until};
use crate::clients::{NODE, PYTHON, Sdk};
use crate::embedded;

const README: &str = include_str!("../../../README.md");
/// What the simulated model answers to a greeting.
const SAID: &str = "You said: ";

/// The first block of shell below a heading.
fn block(heading: &str) -> String {
    let (_, below) = README.split_once(heading).unwrap();
    let (_, block) = below.split_once("```sh\n").unwrap();
    block.split_once("```").unwrap().0.to_owned()
}

/// Every block of a language, in their order.
fn blocks(language: &str) -> Vec<&'static str> {
    let fence = format!("```{language}\n");
    README.split(&fence).skip(1).map(|below| below.split_once("```").unwrap().0).collect()
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
    let blocks = blocks(language);
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
fn python_runs_what_the_readme_shows() {
    check_pasted(&PYTHON, "python", 3);
}

#[test]
fn node_runs_what_the_readme_shows() {
    check_pasted(&NODE, "js", 3);
}

#[test]
fn a_shell_runs_what_the_readme_shows() {
    let (site, gateway, key) = embedded();
    let block = block("In a shell:");
    let mut shell = shell(&site, &block);
    shell.env("HOLDFAST_URL", gateway.base_url()).env("HOLDFAST_KEY", key);
    let said = Ran::of(&mut shell).ok();
    assert!(said.contains(SAID), "{said}");
    assert_eq!(site.verify()["operations"], 1);
}

#[test]
fn the_lines_that_set_a_gateway_up_give_a_key_that_works() {
    let block = block("## Configure it");
    let (lines, serve) = block.trim_end().rsplit_once('\n').unwrap();
    assert_eq!(serve, "holdfast serve");
    let site = Site::empty();
    site.write("holdfast.toml", blocks("toml")[0]);
    let ran = Ran::of(&mut shell(&site, lines)).ok();
    let at = ran.find("hfk_").expect("a printed key");
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let key: String = ran[at..].chars().take_while(|c| is_part(*c)).collect();
    let site = site.with_env("HOLDFAST_CONFIG", "holdfast.toml");
    let gateway = site.with_env("HOLDFAST_LISTEN", "127.0.0.1:0").serve();
    let account = Account { wallet: "acme".to_owned(), id: String::new(), key };
    let request_key = request_key();
    let answer = gateway.complete(&account, &request_key, &sim("Hello there"));
    check_completion(&answer, &request_key, false);
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
