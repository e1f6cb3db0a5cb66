//! Prints `docs/reference/cli.md` from the definition of the command line. `cargo xtask docs` writes it; a test compares.
//!
//! The page has the words of `--help` and no others, so that a command is described once.

use std::io::{self, Write};

use clap::{Arg, Command};
use holdfast_cli::arguments::definition;

const INTRODUCTION: &str = "\
# Commands

<!-- Written by `cargo xtask docs` from crates/cli/src/arguments: change it there. -->

Every command of `holdfast`, with its arguments and two examples. `holdfast COMMAND --help` shows the same text, and
`holdfast manual FOLDER` writes it as manual pages. [administration.md](administration.md) explains the commands that
change wallets, keys and postings, and [configuration.md](configuration.md) the file that `--config` names.
";

/// Heading of the options that every command has.
const GLOBAL: &str = "Global options";
/// Longest line of the prose.
const LINE_MAX: usize = 120;

fn main() -> io::Result<()> {
    io::stdout().write_all(document().as_bytes())
}

/// The whole document.
pub(crate) fn document() -> String {
    let mut whole = definition();
    whole.build();
    let about = whole.get_after_help().map(ToString::to_string).unwrap_or_default();
    let global: Vec<_> = whole.get_arguments().filter(|it| is_global(it)).collect();
    let mut text = format!("{INTRODUCTION}\n## holdfast\n\n{}\n\n", wrapped(&about));
    text.push_str(&table("option of every command", &global));
    for command in whole.get_subcommands().filter(|it| is_shown(it)) {
        text.push_str(&format!("\n## holdfast {}\n", command.get_name()));
        describe(command, 2, &mut text);
    }
    text
}

/// Adds a command, and those below it, under a heading of this depth.
fn describe(command: &Command, depth: usize, text: &mut String) {
    let about = command.get_long_about().or_else(|| command.get_about());
    if let Some(about) = about {
        text.push_str(&format!("\n{}\n", wrapped(&about.to_string())));
    }
    let children: Vec<_> = command.get_subcommands().filter(|it| is_shown(it)).collect();
    for child in &children {
        let name = child.get_bin_name().unwrap_or(child.get_name());
        text.push_str(&format!("\n{} {name}\n", "#".repeat(depth + 1)));
        describe(child, depth + 1, text);
    }
    if !children.is_empty() {
        return;
    }
    let usage = command.clone().render_usage().to_string();
    let usage = usage.trim_start_matches("Usage: ");
    text.push_str(&format!("\n```text\n{}\n```\n", usage.trim()));
    let own = command.get_arguments().filter(|it| !is_global(it) && !it.is_hide_set());
    let own: Vec<_> = own.filter(|it| it.get_id() != "help").collect();
    if !own.is_empty() {
        text.push_str(&format!("\n{}", table("argument", &own)));
    }
    let examples = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    let lines = examples.lines().skip(1).map(|line| format!("{}\n", line.trim()));
    text.push_str(&format!("\n```sh\n{}```\n", lines.collect::<String>()));
}

fn is_shown(command: &Command) -> bool {
    !command.is_hide_set() && command.get_name() != "help"
}

fn is_global(argument: &Arg) -> bool {
    argument.get_help_heading() == Some(GLOBAL)
}

fn table(title: &str, arguments: &[&Arg]) -> String {
    let rows = arguments.iter().map(|argument| row(argument));
    format!("| {title} | meaning |\n|---|---|\n{}", rows.collect::<String>())
}

fn row(argument: &Arg) -> String {
    let help = argument.get_long_help().or_else(|| argument.get_help());
    let help = help.map(ToString::to_string).unwrap_or_default();
    let help = help.split_whitespace().collect::<Vec<_>>().join(" ");
    let values: Vec<_> = match argument.get_action().takes_values() {
        true => argument.get_possible_values().into_iter().filter(|it| !it.is_hide_set()).collect(),
        false => Vec::new(),
    };
    let values = values.iter().map(|it| format!("`{}`", it.get_name())).collect::<Vec<_>>();
    let values =
        if values.is_empty() { values } else { vec![format!("one of {}", values.join(", "))] };
    let defaults = argument.get_default_values().iter();
    let defaults = defaults.filter(|_it| argument.get_action().takes_values());
    let defaults = defaults.map(|it| format!("default `{}`", it.to_string_lossy()));
    let rest: Vec<_> = values.into_iter().chain(defaults).collect();
    let rest = if rest.is_empty() { String::new() } else { format!(" ({})", rest.join("; ")) };
    let cell = |text: &str| text.replace('|', "\\|");
    let help = cell(&help).replace('<', "&lt;");
    format!("| `{}` | {help}{} |\n", cell(&argument.to_string()), cell(&rest))
}

/// The text in lines of at most 120 characters; paragraphs stay apart, and each ends in a full stop.
fn wrapped(text: &str) -> String {
    let paragraphs = text.split("\n\n").map(|paragraph| {
        let mut lines = vec![String::new()];
        let paragraph = format!("{}.", paragraph.trim().trim_end_matches('.'));
        for word in paragraph.split_whitespace() {
            if lines.last().is_some_and(|line| line.len() + word.len() >= LINE_MAX) {
                lines.push(String::new());
            }
            if let Some(line) = lines.last_mut() {
                line.push_str(if line.is_empty() { "" } else { " " });
                line.push_str(word);
            }
        }
        lines.join("\n")
    });
    paragraphs.collect::<Vec<_>>().join("\n\n")
}
