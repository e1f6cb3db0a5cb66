//! Form of our files, and what some of them may not mention.
//!
//! Judged line by line, so approximately: a rule may be dodged on purpose, not by accident.

use super::{Finding, has_word};

const RUST_LINES_MAX: usize = 500;

/// Modules that callers copy into their programs, and the size that `docs/how-to/connect-a-framework.md` promises.
const HELPERS: [&str; 2] = ["clients/python/holdfast/__init__.py", "clients/node/index.js"];
const HELPER_LINES_MAX: usize = 120;

/// A rule about one line: the files that it holds for, the text that it forbids, and why.
struct Rule {
    holds: fn(&str) -> bool,
    forbids: fn(&str) -> bool,
    why: &'static str,
}

const RULES: &[Rule] = &[
    Rule {
        holds: is_written_by_hand,
        forbids: is_unfinished,
        why: "unfinished: do it, or leave it out",
    },
    Rule {
        holds: |path| {
            let is_reader = starts_with(path, &["crates/config/src/environment.rs"]);
            is_product(path) && !is_reader && !path.ends_with("tests.rs")
        },
        forbids: |line| has_word(line, "std::env") || has_word(line, "env::"),
        why: "the environment is read in crates/config/src/environment.rs only",
    },
    Rule {
        holds: |path| {
            is_rust(path) && starts_with(path, &["crates/domain/src", "crates/engine/src"])
        },
        forbids: is_wildcard_arm,
        why: "a wildcard arm swallows the next variant: name them",
    },
    Rule {
        holds: |path| path.starts_with("crates/domain/src"),
        forbids: is_wildcard_pair,
        why: "a pair of wildcards swallows the next variant: name them",
    },
    Rule {
        holds: |path| {
            let heart = ["operation", "ledger", "usage", "billing"]
                .map(|it| format!("crates/domain/src/{it}"));
            heart.iter().any(|module| {
                let rest = path.strip_prefix(module.as_str());
                rest.is_some_and(|rest| rest.starts_with(['.', '/']))
            })
        },
        forbids: mentions_request,
        why: "this module does not know requests: no row can hold a prompt",
    },
    Rule {
        holds: |path| {
            let reader = ["crates/wire/src/json", "crates/wire/src/chat/request"];
            is_rust(path) && starts_with(path, &reader)
        },
        forbids: |line| has_word(line, "serde") || has_word(line, "serde_json"),
        why: "requests are read by our own reader: a general one's features would change fingerprints",
    },
    Rule {
        holds: |path| {
            let is_code = is_rust(path) || has_extension(path, &["py", "mjs"]);
            is_code
                && !starts_with(path, &["crates/config/src", "crates/cli/src/arguments/sidecar.rs"])
        },
        forbids: has_fixed_port,
        why: "a fixed port is a port that somebody else has: bind port 0",
    },
];

/// Findings in one file.
pub(crate) fn check(path: &str, text: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    if is_rust(path) {
        let n_lines = text.lines().count();
        if n_lines > RUST_LINES_MAX {
            let what = format_args!("{n_lines} lines, at most {RUST_LINES_MAX}: split it");
            findings.push(Finding::new(path, what));
        }
        if !text.starts_with("//!") {
            findings.push(Finding::at(path, 0, "begins with //!: what it is, and what it is not"));
        }
        if path.ends_with("/mod.rs") {
            findings.push(Finding::new(path, "is called foo.rs beside foo/ here, not mod.rs"));
        }
    }
    if HELPERS.contains(&path) {
        let is_import = |line: &str| ["import ", "from "].iter().any(|it| line.starts_with(it));
        let is_code =
            |line: &&str| !line.is_empty() && !line.starts_with(['#', '/']) && !is_import(line);
        let n_lines = text.lines().map(str::trim).filter(is_code).count();
        if n_lines > HELPER_LINES_MAX {
            let what = format_args!("{n_lines} lines of code, at most {HELPER_LINES_MAX}");
            findings.push(Finding::new(path, what));
        }
    }
    if path.starts_with("crates/domain/src") {
        let why =
            "a new variant must break the build here: only errors are open, and CommitError is not";
        findings.extend(open_enums(text).map(|index| Finding::at(path, index, why)));
    }
    for rule in RULES.iter().filter(|rule| (rule.holds)(path)) {
        let lines = text.lines().enumerate().filter(|(_, line)| (rule.forbids)(line));
        findings.extend(lines.map(|(index, _)| Finding::at(path, index, rule.why)));
    }
    findings
}

fn is_rust(path: &str) -> bool {
    has_extension(path, &["rs"])
}

fn is_product(path: &str) -> bool {
    is_rust(path) && path.starts_with("crates/") && path.contains("/src/")
}

fn is_written_by_hand(path: &str) -> bool {
    has_extension(path, &["rs", "md", "toml", "py", "mjs"])
}

fn has_extension(path: &str, extensions: &[&str]) -> bool {
    path.rsplit_once('.').is_some_and(|(_, extension)| extensions.contains(&extension))
}

fn starts_with(path: &str, prefixes: &[&str]) -> bool {
    prefixes.iter().any(|prefix| path.starts_with(prefix))
}

/// Spelled in halves, so that this file may be checked by itself.
fn is_unfinished(line: &str) -> bool {
    let words = [concat!("TO", "DO"), concat!("FIX", "ME"), concat!("X", "XX")];
    let macros = [concat!("to", "do!"), concat!("unimple", "mented!")];
    words.iter().chain(&macros).any(|word| has_word(line, word))
}

fn is_wildcard_arm(line: &str) -> bool {
    let code = without_comment(line);
    has_word(code, "_ =>") || (code.trim_start().starts_with("_ if ") && code.contains("=>"))
}

/// `(_, _) =>`
fn is_wildcard_pair(line: &str) -> bool {
    let pattern = without_comment(line).trim_start().split_once("=>").map(|(pattern, _)| pattern);
    pattern.is_some_and(|it| it.starts_with('(') && it.chars().all(|it| "_(), |".contains(it)))
}

fn mentions_request(line: &str) -> bool {
    let is_import = line.trim_start().starts_with("use ") && has_word(line, "request");
    is_import || has_word(line, "::request") || has_word(line, "request::")
}

/// Lines of `#[non_exhaustive]` above an enum that is not an error, or is the error of a commit.
fn open_enums(text: &str) -> impl Iterator<Item = usize> {
    let lines: Vec<_> = text.lines().collect();
    let marks = text.lines().enumerate().filter(|(_, line)| *line == "#[non_exhaustive]");
    let marks: Vec<_> = marks.map(|(index, _)| index).collect();
    marks.into_iter().filter(move |index| {
        let (before, after) = lines.split_at(*index);
        let is_attribute = |line: &&&str| line.starts_with('#');
        let is_error = before
            .iter()
            .rev()
            .take_while(is_attribute)
            .chain(after.iter().take_while(is_attribute));
        let is_error = is_error.into_iter().any(|line| line.contains("thiserror::Error"));
        let item = after.iter().find(|line| !is_attribute(line));
        item.is_some_and(|item| {
            item.starts_with("pub enum ") && (!is_error || has_word(item, "CommitError"))
        })
    })
}

fn has_fixed_port(line: &str) -> bool {
    let hosts = [concat!("127.0.0.1", ":"), concat!("0.0.0.0", ":")];
    let is_port = |rest: &str| rest.starts_with(|it: char| ('1'..='9').contains(&it));
    hosts.iter().any(|host| line.split(host).skip(1).any(is_port))
}

fn without_comment(line: &str) -> &str {
    line.split_once("//").map_or(line, |(code, _comment)| code)
}

#[cfg(test)]
mod tests {
    use super::*;

    const DECIDE: &str = "crates/domain/src/operation/decide.rs";

    /// A file of one line below its `//!`, and whether that line has a finding.
    #[track_caller]
    fn check_line(path: &str, line: &str, is_found: bool) {
        let found = check(path, &format!("//! A file.\n{line}\n"));
        let places: Vec<String> = found.into_iter().map(|it| it.place).collect();
        let expected = if is_found { vec![format!("{path}:2")] } else { Vec::new() };
        assert_eq!(places, expected, "{line}");
    }

    #[test]
    fn long_files_are_found() {
        let exactly = format!("//! A file.{}", "\n".repeat(RUST_LINES_MAX));
        assert_eq!(check("a.rs", &exactly), []);
        assert_eq!(check("a.rs", &format!("{exactly}\n")).len(), 1);
        assert_eq!(check("a.md", &format!("{exactly}\n")), []);
    }

    #[test]
    fn long_helpers_are_found() {
        let text = format!("// Why.\n\n{}", "  code();\n".repeat(HELPER_LINES_MAX));
        assert_eq!(check("clients/node/index.js", &text), []);
        assert_eq!(check("clients/node/index.js", &format!("{text}more();\n")).len(), 1);
        let manual = include_str!("../../../docs/how-to/connect-a-framework.md");
        assert!(manual.contains(&format!("at most {HELPER_LINES_MAX} lines of code")));
    }

    #[test]
    fn files_begin_with_what_they_are() {
        assert_eq!(check("a.rs", "use std::fs;\n//! Late.").len(), 1);
        assert_eq!(check("a.py", "import os"), []);
    }

    #[test]
    fn modules_have_names() {
        assert_eq!(check("crates/wire/src/chat/mod.rs", "//! Chat.").len(), 1);
        assert_eq!(check("crates/wire/src/chat_mod.rs", "//! Chat."), []);
    }

    #[test]
    fn unfinished_work_is_found() {
        for mark in [concat!("TO", "DO"), concat!("FIX", "ME"), concat!("X", "XX")] {
            check_line("docs/a.md", &format!("{mark}: later"), true);
            check_line("a.rs", &format!("// {mark}(me)"), true);
        }
        check_line("a.rs", concat!("    to", "do!()"), true);
        check_line("a.rs", concat!("    unimple", "mented!()"), true);
        check_line("Cargo.toml.txt", concat!("TO", "DO"), false);
        check_line("a.toml", "todo = \"warn\"", false);
    }

    #[test]
    fn the_environment_has_one_reader() {
        for line in ["    std::env::var_os(name)", "use std::env;", "    env::args()"] {
            check_line("crates/engine/src/a.rs", line, true);
            check_line("crates/config/src/environment.rs", line, false);
            check_line("crates/engine/tests/it/main.rs", line, false);
            check_line("crates/engine/src/a/tests.rs", line, false);
            check_line("xtask/src/main.rs", line, false);
        }
        check_line("crates/engine/src/a.rs", "// the environment", false);
    }

    #[test]
    fn requests_are_read_by_our_own_reader() {
        for line in ["use serde_json::Value;", "    serde_json::from_slice(body)", "use serde::de;"]
        {
            check_line("crates/wire/src/json/text.rs", line, true);
            check_line("crates/wire/src/json.rs", line, true);
            check_line("crates/wire/src/chat/request/field.rs", line, true);
            check_line("crates/wire/src/chat/upstream/body.rs", line, false);
        }
    }

    #[test]
    fn wildcard_arms_are_found() {
        for line in ["    _ => {}", "_ if late => 1,", "match x { A => 1, _ => 2 }"] {
            check_line(DECIDE, line, true);
            check_line("crates/engine/src/a.rs", line, true);
            check_line("crates/http/src/a.rs", line, false);
        }
        check_line(DECIDE, "    (_, _) => x,", true);
        for line in ["Some(_) => 1,", "(A, _) => 2,", "x_ => 3,", "// no `_ =>` here", "|_| x"] {
            check_line(DECIDE, line, false);
        }
    }

    #[test]
    fn the_heart_does_not_know_requests() {
        for line in
            ["use crate::request::Request;", "use crate::{hold, request};", "&super::request"]
        {
            check_line(DECIDE, line, true);
            check_line("crates/domain/src/ledger.rs", line, true);
            check_line("crates/domain/src/usage.rs", line, true);
            check_line("crates/domain/src/conduct.rs", line, false);
        }
        check_line(DECIDE, "    pub request_key: RequestKey, // of the request", false);
    }

    #[test]
    fn open_enums_are_found_unless_they_are_errors() {
        let error = "#[derive(Debug, thiserror::Error)]";
        for (attribute, item, is_found) in [
            ("#[derive(Debug)]", "pub enum Phase {", true),
            (error, "pub enum CommitError {", true),
            (error, "pub enum BadTiers {", false),
            ("#[derive(Debug)]", "pub struct KnownCost {", false),
        ] {
            let text = format!("//! A file.\n{attribute}\n#[non_exhaustive]\n{item}\n");
            assert_eq!(check(DECIDE, &text).is_empty(), !is_found, "{item}");
            assert!(check("crates/embed/src/sale.rs", &text).is_empty());
        }
    }

    #[test]
    fn fixed_ports_are_found() {
        let line = concat!("connect(\"127.0.0.1:", "8080\")");
        for path in ["tests/tests/it/main.rs", "crates/http/src/a.rs", "tests/clients/a.mjs"] {
            check_line(path, line, true);
        }
        for path in ["docs/a.md", "crates/config/src/process.rs", "crates/config/src/a.rs"] {
            check_line(path, line, false);
        }
        check_line("tests/tests/it/main.rs", "bind(\"127.0.0.1:0\")", false);
    }
}
