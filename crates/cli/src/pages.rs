//! Pages of the documentation against the definition of the command line: `docs/reference/cli.md` is written from it,
//! and a command in a code block of any page exists, with each of its options.

use std::fs;
use std::path::{Path, PathBuf};

use clap::Command;

use crate::arguments::definition;

#[path = "../examples/commands.rs"]
#[expect(dead_code, reason = "it is run as an example; here only its text is compared")]
mod commands;

/// Words after which a line of a shell is another command.
const ENDS: [&str; 9] = ["|", "||", "&&", ";", "&", ">", ">>", "<", "#"];

#[test]
fn the_page_of_commands_is_written_from_the_definition() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/cli.md");
    let written = fs::read_to_string(page).unwrap();
    let fresh = commands::document();
    assert!(written == fresh, "docs/reference/cli.md is stale: run `cargo xtask docs`");
}

#[test]
fn commands_in_pages_exist_with_their_options() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut pages = vec![root.join("README.md"), root.join("CONTRIBUTING.md")];
    add_pages(&root.join("docs"), &mut pages);
    let mut definition = definition();
    definition.build();
    let mut wrong = Vec::new();
    let mut n_lines = 0;
    for page in pages {
        for line in shell_lines(&fs::read_to_string(&page).unwrap()) {
            for words in called(&line) {
                n_lines += 1;
                if let Some(unknown) = unknown(&definition, &words) {
                    wrong.push(format!("{}: {unknown}: {line}", page.display()));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(n_lines > 200, "it reads the pages: {n_lines}");
}

#[test]
fn an_unknown_command_or_option_is_found() {
    let mut definition = definition();
    definition.build();
    for (line, expected) in [
        ("holdfast wallet create acme --currency EUR", None),
        ("holdfast", None),
        ("holdfast --config a.toml wallet list --json", None),
        ("holdfast wallet make acme", Some("make")),
        ("holdfast walet create acme", Some("walet")),
        ("sudo -u holdfast holdfast wallet create acme --curency=EUR", Some("--curency")),
        ("X=1 holdfast key list --wallet acme | holdfast key show --name x", Some("--name")),
        ("cargo run -- --unknown", None),
    ] {
        let found = called(line).iter().find_map(|words| unknown(&definition, words));
        assert_eq!(found.as_deref(), expected, "{line}");
    }
}

fn add_pages(folder: &Path, pages: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            add_pages(&path, pages);
        } else if path.extension().is_some_and(|it| it == "md") {
            pages.push(path);
        }
    }
}

/// Lines of the code blocks of a page, with those that a backslash continues as one.
fn shell_lines(page: &str) -> Vec<String> {
    let blocks = page.split("\n```").skip(1).step_by(2);
    blocks
        .flat_map(|block| {
            block.replace("\\\n", " ").lines().skip(1).map(str::to_owned).collect::<Vec<_>>()
        })
        .collect()
}

/// The words after each `holdfast` that a line calls.
fn called(line: &str) -> Vec<Vec<String>> {
    let mut calls = Vec::new();
    let mut is_start = true;
    let mut words = line.split_whitespace().peekable();
    while let Some(word) = words.next() {
        let is_program = word == "holdfast" && is_start;
        // After an account of the machine, as in `sudo -u holdfast holdfast …`, the program still comes.
        let is_account = words.peek().is_some_and(|next| *next == "holdfast");
        if is_program && !is_account {
            let own = std::iter::from_fn(|| words.next_if(|it| !ENDS.contains(it)));
            calls.push(own.map(str::to_owned).collect());
        }
        is_start = is_start_of_command(word) || (is_start && is_account);
    }
    calls
}

/// True if a program may stand after this word: a prompt, a variable, another program that runs it, the end of a command.
fn is_start_of_command(word: &str) -> bool {
    let runs = ["$", "sudo", "-u", "root", "exec", "--", "time"];
    ENDS.contains(&word) || runs.contains(&word) || word.contains('=')
}

/// The first word that the command line does not know.
fn unknown(definition: &Command, words: &[String]) -> Option<String> {
    let mut command = definition;
    let mut is_value = false;
    for word in words.iter().take_while(|word| *word != "--") {
        if is_value {
            is_value = false;
        } else if let Some(option) = word.strip_prefix("--") {
            let name = option.split('=').next().unwrap_or(option);
            let name = name.trim_end_matches([']', ')', '`', '"', '\'', ',']);
            let argument = command.get_arguments().find(|it| it.get_long() == Some(name));
            let Some(argument) = argument else { return Some(format!("--{name}")) };
            is_value = argument.get_action().takes_values() && !option.contains('=');
        } else if command.has_subcommands() && is_name(word) {
            let Some(below) = command.find_subcommand(word) else { return Some(word.clone()) };
            command = below;
        }
    }
    None
}

/// True if a command may be called so: placeholders of a page may not.
fn is_name(word: &str) -> bool {
    word.chars().all(|it| it.is_ascii_lowercase() || it == '-')
}
