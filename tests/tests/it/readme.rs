//! The README's own lines, run as they stand.

use std::process::Command;

use holdfast_tests::{Account, Config, Ran, Site, request_key};

use crate::bodies::sim;
use crate::check::check_completion;

/// The first block of shell below a heading.
fn block(heading: &str) -> String {
    let readme = include_str!("../../../README.md");
    let (_, below) = readme.split_once(heading).unwrap();
    let (_, block) = below.split_once("```sh\n").unwrap();
    block.split_once("```").unwrap().0.to_owned()
}

#[test]
fn the_lines_that_set_a_gateway_up_give_a_key_that_works() {
    let block = block("## Configure it");
    let (lines, serve) = block.trim_end().rsplit_once('\n').unwrap();
    assert_eq!(serve, "holdfast serve");
    let site = Site::empty();
    site.configure(&Config::simulated());
    let ran = Ran::of(&mut shell(&site, lines)).ok();
    let at = ran.find("hfk_").expect("a printed key");
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let key: String = ran[at..].chars().take_while(|c| is_part(*c)).collect();
    let gateway = site.with_env("HOLDFAST_CONFIG", "holdfast.toml").serve();
    let account = Account { wallet: "acme".to_owned(), id: String::new(), key };
    let request_key = request_key();
    let answer = gateway.complete(&account, &request_key, &sim("Hello there"));
    check_completion(&answer, &request_key, false);
}

/// A shell that finds the binary under its name.
fn shell(site: &Site, lines: &str) -> Command {
    let binary = site.command().get_program().to_owned();
    let folder = std::path::Path::new(&binary).parent().unwrap().to_owned();
    let path = std::env::var_os("PATH").unwrap_or_default();
    let path = std::env::join_paths(std::iter::once(folder).chain(std::env::split_paths(&path)));
    let mut shell = Command::new("sh");
    shell.current_dir(site.folder()).args(["-ec", lines]).env("PATH", path.unwrap());
    shell.env("UPSTREAM_KEY", "unused").env_remove("HOLDFAST_CONFIG");
    shell
}
