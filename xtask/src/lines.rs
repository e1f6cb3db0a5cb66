//! Lines of code of the product, crate by crate: the size of the code.
//!
//! A line counts if it has code: no blank line, no comment, no code that only tests compile. `testkit` is left out,
//! because it is a test by its purpose. The count is of the working tree, not of a commit.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::shell::print_line;
use crate::tidy::{Token, pieces};
use crate::workspace::Workspace;

/// Crate of the shared laws, fakes and samples of tests.
const TESTKIT: &str = "testkit";

/// Prints the lines of each crate and of all.
pub(crate) fn run(workspace: &Workspace) -> Result<bool> {
    let crates = workspace.root.join("crates");
    let mut counts = Vec::new();
    for folder in entries(&crates)? {
        let name = folder.file_name().map(|name| name.to_string_lossy().into_owned());
        let Some(name) = name.filter(|name| name != TESTKIT) else { continue };
        counts.push((count(&folder.join("src"))?, name));
    }
    counts.sort_by(|one, other| other.cmp(one));
    for (lines, name) in &counts {
        print_line(&format!("{lines:>8}  {name}"))?;
    }
    let all: usize = counts.iter().map(|(lines, _)| lines).sum();
    print_line(&format!("{all:>8}  all, without {TESTKIT}"))?;
    Ok(true)
}

fn entries(folder: &Path) -> Result<Vec<PathBuf>> {
    let read = || -> std::io::Result<Vec<PathBuf>> {
        fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect()
    };
    read().with_context(|| format!("cannot list {}", folder.display()))
}

/// Lines of code of the Rust files below a folder.
fn count(folder: &Path) -> Result<usize> {
    let mut lines = 0;
    for path in entries(folder)? {
        let name = path.file_stem().map(|stem| stem.to_string_lossy().into_owned());
        if name.as_deref() == Some("tests") {
            continue;
        }
        if path.is_dir() {
            lines += count(&path)?;
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = fs::read_to_string(&path);
            lines +=
                lines_of_code(&text.with_context(|| format!("cannot read {}", path.display()))?);
        }
    }
    Ok(lines)
}

/// Lines of a text with code that not only tests compile.
fn lines_of_code(text: &str) -> usize {
    let pieces = pieces(text);
    let mut lines = BTreeSet::new();
    let mut at = 0;
    while let Some((piece, _)) = pieces.get(at) {
        if piece.text == "#"
            && let Some(end) = end_of_test_item(pieces.get(at..).unwrap_or(&[]))
        {
            at += end;
            continue;
        }
        let is_comment = piece.text.starts_with("//") || piece.text.starts_with("/*");
        if !is_comment && !piece.text.trim().is_empty() {
            lines.extend(piece.index..=piece.index + piece.text.matches('\n').count());
        }
        at += 1;
    }
    lines.len()
}

/// Number of pieces of an item under a condition that only tests meet, such as `#[cfg(test)]`; `None` under any other
/// attribute.
fn end_of_test_item(pieces: &[(Token<'_>, bool)]) -> Option<usize> {
    let mut depth = 0_usize;
    let mut attribute = Vec::new();
    let mut is_past_attribute = false;
    for (at, (piece, is_code)) in pieces.iter().enumerate() {
        if !is_code {
            continue;
        }
        match piece.text {
            "[" | "{" | "(" => depth += 1,
            "]" | "}" | ")" => depth = depth.saturating_sub(1),
            _ => {}
        }
        if is_past_attribute {
            let is_end = depth == 0 && matches!(piece.text, "}" | ";");
            if is_end {
                return Some(at + 1);
            }
            continue;
        }
        attribute.push(piece.text);
        if depth == 0 && piece.text == "]" {
            let has = |word| attribute.contains(&word);
            if !has("cfg") || !has("test") || has("not") || has("any") {
                return None;
            }
            is_past_attribute = true;
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_blanks_and_tests_are_no_code() {
        let text = "//! Doc.\n\nuse a::b; // why\n\n/* more\n */\nfn f() {\n    g(\"one\n\ntwo\");\n}\n\
            #[cfg(test)]\n#[expect(x)]\nmod tests {\n    fn t() { f(); }\n}\n\
            #[cfg(all(test, unix))]\nuse c::d;\n#[cfg(unix)]\nfn h() {}\n";
        // `use`, `fn f`, three lines of the call, its brace, the attribute and `fn h`.
        assert_eq!(lines_of_code(text), 8);
    }
}
