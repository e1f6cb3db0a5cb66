//! Prints `docs/reference/configuration.md`: its prose as it is there, and below it the options, made from
//! `deploy/holdfast.toml` and from the code that reads it. `cargo xtask docs` writes it; a test compares.
//!
//! ```text
//! deploy/holdfast.toml      ─▶ keys, words, defaults, examples
//! load of a value too large ─▶ bounds, from the mistake that is reported
//! Config::kept_settings     ─▶ options that need a new start
//! ```
//!
//! Tests of the crate hold the file to the code: it has every key, and the defaults that it shows are those in force.

use std::error::Error;
use std::fs;
use std::io::{self, Write};
use std::path::Path;

use holdfast_config::{BadConfig, SecretUse, load_for};

const PAGE: &str = include_str!("../../../docs/reference/configuration.md");
const FILE: &str = include_str!("../../../deploy/holdfast.toml");

/// Heading of the part that is written.
const HEAD: &str = "\n## Options\n";
const INTRODUCTION: &str = "
<!-- Written by `cargo xtask docs` from deploy/holdfast.toml and crates/config: change it there. -->

Every option of [deploy/holdfast.toml](../../deploy/holdfast.toml), by table. *None: must be set* under *default* marks
the options that their table requires. If *bounds* is empty, *meaning* has the accepted values. *Reload: no*: a new
value is used from the next start on.
";
/// Longest line of the prose.
const LINE_MAX: usize = 120;

type Result<T> = std::result::Result<T, Box<dyn Error>>;

fn main() -> Result<()> {
    io::stdout().write_all(document()?.as_bytes())?;
    Ok(())
}

/// A table of the file.
#[derive(Debug)]
struct Section {
    /// Its name, as it is written in brackets.
    head: &'static str,
    about: String,
    options: Vec<ConfigOption>,
}

/// An option, as the file has it.
#[derive(Debug)]
struct ConfigOption {
    key: &'static str,
    example: &'static str,
    about: String,
    /// False if its line is commented out, and so shows the default if that is a number.
    is_set: bool,
}

/// The whole document.
pub(crate) fn document() -> Result<String> {
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("holdfast.toml");
    fs::write(&file, FILE)?;
    let kept = load_for(Some(&file), SecretUse::Database)?.kept_settings();
    let prose = PAGE.split(HEAD).next().unwrap_or(PAGE);
    let mut text = format!("{prose}{HEAD}{INTRODUCTION}");
    for section in sections() {
        text.push_str(&format!("\n### `{}`\n\n", section.head));
        if !section.about.is_empty() {
            text.push_str(&format!("{}\n\n", section.about));
        }
        text.push_str("| key | type | default | bounds | reload | example | meaning |\n");
        text.push_str("|---|---|---|---|---|---|---|\n");
        let mut above = String::new();
        for option in &section.options {
            let (default, meaning) = default(option, &above);
            text.push_str(&row(&section, option, &kept, &file, [&default, &meaning])?);
            above = default;
        }
    }
    Ok(text)
}

/// The tables of the file up to the second model, which shows nothing new.
fn sections() -> Vec<Section> {
    let mut sections: Vec<Section> = Vec::new();
    let mut about: Vec<&str> = Vec::new();
    for line in FILE.lines() {
        let (code, is_prose) = match line.strip_prefix('#') {
            Some(rest) => (rest, rest.is_empty() || rest.starts_with(' ')),
            None => (line, false),
        };
        if is_prose {
            about.push(code.trim());
        } else if code.is_empty() {
            about.clear();
        } else if code.starts_with('[') {
            if sections.iter().any(|it| it.head == code) {
                break;
            }
            sections.push(Section { head: code, about: wrapped(&about), options: Vec::new() });
            about.clear();
        } else if let (Some((key, example)), Some(section)) =
            (code.split_once(" = "), sections.last_mut())
        {
            let about = std::mem::take(&mut about).join(" ");
            section.options.push(ConfigOption { key, example, about, is_set: code == line });
        }
    }
    sections
}

fn row(
    section: &Section,
    option: &ConfigOption,
    kept: &[&str],
    file: &Path,
    [default, meaning]: [&str; 2],
) -> Result<String> {
    let path = format!("{}.{}", section.head.trim_matches(['[', ']']), option.key);
    let is_kept = |kept: &&str| path == **kept || path.starts_with(&format!("{kept}."));
    let reload = if kept.iter().any(is_kept) { "no" } else { "yes" };
    let bounds = bounds(section, option, file)?;
    let cell = |text: &str| text.replace('|', "\\|").replace('<', "&lt;");
    Ok(format!(
        "| `{}` | {} | {} | {bounds} | {reload} | `{}` | {} |\n",
        option.key,
        kind(option),
        cell(default),
        option.example.replace('|', "\\|"),
        cell(meaning),
    ))
}

/// The default as the words of an option have it, and the other words. Options without words of their own share those
/// of the one above.
fn default(option: &ConfigOption, above: &str) -> (String, String) {
    let shown = || match kind(option).starts_with("number") && !option.is_set {
        true => option.example.to_owned(),
        false => String::new(),
    };
    if option.about.is_empty() && option.key == "kind" {
        return ("none: must be set".to_owned(), "The protocol that this table is for.".to_owned());
    }
    if option.about.is_empty() {
        let default = Some(shown()).filter(|it| !it.is_empty());
        return (default.unwrap_or_else(|| above.to_owned()), "As above.".to_owned());
    }
    let mut sentences: Vec<&str> = option.about.split_inclusive(". ").collect();
    let is_default = |it: &&str| it.starts_with("Default") || it.starts_with("No default");
    let Some(at) = sentences.iter().position(is_default) else {
        let words = option.about.rsplit_once(", default ");
        let words = words.map(|(_, words)| words.trim_end_matches('.').to_owned());
        return (words.unwrap_or_else(shown), option.about.clone());
    };
    let sentence = sentences.remove(at).trim().trim_end_matches('.');
    let words = sentence.trim_start_matches("Default").trim_start_matches([':', ' ']);
    let words = words.replace("No default", "none: must be set").replace("as here", option.example);
    (words, sentences.concat().trim().to_owned())
}

/// The type of an option, with its unit.
fn kind(option: &ConfigOption) -> &'static str {
    let value = option.example;
    let text = value.trim_matches('"');
    let is_span = text.trim_end_matches(['m', 's', 'h']).chars().all(|it| it.is_ascii_digit());
    let is_moment = value.contains('T') && value.ends_with('Z');
    let is_number = value.starts_with(|it: char| it.is_ascii_digit());
    let is_unit = |words: &[&str]| words.iter().any(|word| option.key.contains(word));
    match value.chars().next() {
        Some('"') if is_span && text.len() > 1 => "time span (`ms`, `s`, `m`, `h`)",
        Some('"') => "string",
        Some('[') => "list of strings",
        Some('{') => "table",
        Some('t' | 'f') => "boolean",
        Some(_) | None if is_moment => "moment (RFC 3339)",
        Some(_) | None if is_number && value.contains('.') => "decimal",
        Some(_) | None if is_unit(&["bytes"]) => "number of bytes",
        Some(_) | None if is_unit(&["_tokens"]) => "number of tokens",
        Some(_) | None => "number",
    }
}

/// The bounds of an option, from the mistake of a value that is beyond any of them.
fn bounds(section: &Section, option: &ConfigOption, file: &Path) -> Result<String> {
    let large = match kind(option) {
        "decimal" => "9_999_999_999.0",
        it if it.starts_with("number") => "9_223_372_036_854_775_807",
        it if it.starts_with("time span") => "\"9000000h\"",
        _ => return Ok(String::new()),
    };
    let mut is_here = false;
    let lines = FILE.lines().map(|line| {
        let code = line.strip_prefix('#').filter(|it| !it.starts_with(' ')).unwrap_or(line);
        is_here = if code.starts_with('[') { code == section.head } else { is_here };
        match code.split_once(" = ") {
            Some((key, _value)) if is_here && key == option.key => format!("{key} = {large}"),
            Some(_) | None if is_here => code.to_owned(),
            Some(_) | None => line.to_owned(),
        }
    });
    fs::write(file, lines.collect::<Vec<_>>().join("\n"))?;
    let Err(BadConfig::Mistakes(mistakes)) = load_for(Some(file), SecretUse::Database) else {
        return Ok(String::new());
    };
    let mistakes: Vec<_> = mistakes.iter().map(ToString::to_string).collect();
    let mut own = mistakes.iter().filter(|it| it.contains(&format!("{}`", option.key)));
    let found = own.find_map(|it| it.split_once("must be from "));
    Ok(found.map(|(_, bounds)| bounds.replace(" to ", " – ")).unwrap_or_default())
}

/// The words of a comment in lines of at most 120 characters.
fn wrapped(comment: &[&str]) -> String {
    let mut lines = vec![String::new()];
    for word in comment.iter().flat_map(|line| line.split_whitespace()) {
        if lines.last().is_some_and(|line| line.len() + word.len() >= LINE_MAX) {
            lines.push(String::new());
        }
        if let Some(line) = lines.last_mut() {
            line.push_str(if line.is_empty() { "" } else { " " });
            line.push_str(word);
        }
    }
    lines.join("\n")
}
