//! Pages of the console: a page uses the kit and the parts, and never another page. The kit uses no page.
//!
//! So a page is changed, or removed, without reading the others. Content that two of them show is a part.

use super::{
    Finding,
    tokens::{Token, tokens},
};

const PAGES: &str = "crates/console/src/pages/";
const KIT: &str = "crates/console/src/kit";
/// Module of what several pages show.
const PARTS: &str = "parts";

pub(super) fn check(path: &str, text: &str) -> Vec<Finding> {
    let (own, depth) = match (path.strip_prefix(PAGES), path.strip_prefix(KIT)) {
        (Some(page), _) => {
            (page.split(['/', '.']).next().unwrap_or_default(), page.matches('/').count())
        }
        (None, Some(_)) => ("", usize::MAX),
        (None, None) => return Vec::new(),
    };
    let is_foreign = |name: &str| name != own && (name != PARTS || own.is_empty());
    let tokens: Vec<_> = tokens(text).into_iter().filter(|token| token.text != "::").collect();
    let named = (0..tokens.len()).flat_map(|at| pages_named(&tokens, at, depth));
    let foreign = named.filter(|token| is_foreign(token.text));
    let finding = |token: Token<'_>| {
        let what =
            format_args!("imports the page {}: move what both show to pages/parts", token.text);
        Finding::at(path, token.index, what)
    };
    foreign.map(finding).collect()
}

/// The modules of pages that a path names which begins here, in a file so many folders below the pages.
fn pages_named<'a>(all: &[Token<'a>], at: usize, depth: usize) -> Vec<Token<'a>> {
    let is_super = |token: &&Token<'_>| token.text == "super";
    let word = |at: usize| all.get(at).map_or("", |token| token.text);
    let supers = all.iter().skip(at).take_while(is_super).count();
    let is_begin = at == 0 || word(at - 1) != "super";
    let after = match (word(at), word(at + 1)) {
        ("crate", "pages") => 2,
        ("{" | ",", "pages") if in_braces_of_crate(all, at) => 2,
        ("super", _) if is_begin && supers == depth.saturating_add(1) => supers,
        _ => return Vec::new(),
    };
    let tokens = all.get(at + after..).unwrap_or_default();
    let Some(page) = tokens.first() else { return Vec::new() };
    if page.text != "{" {
        return vec![*page];
    }
    // The first word of each path in the braces.
    let (mut depth, mut is_first, mut found) = (0_usize, true, Vec::new());
    for token in tokens {
        match token.text {
            "{" => depth += 1,
            "}" if depth == 1 => break,
            "}" => depth -= 1,
            "," if depth == 1 => is_first = true,
            _ if depth == 1 && is_first => {
                found.push(*token);
                is_first = false;
            }
            _ => {}
        }
    }
    found
}

/// True if the braces around this place follow `crate`.
fn in_braces_of_crate(all: &[Token<'_>], at: usize) -> bool {
    let mut depth = 0_usize;
    for (place, token) in all.iter().enumerate().take(at + 1).rev() {
        match token.text {
            "}" => depth += 1,
            "{" if depth == 0 => {
                let before = place.checked_sub(1).and_then(|before| all.get(before));
                return before.is_some_and(|token| token.text == "crate");
            }
            "{" => depth -= 1,
            ";" => return false,
            _ => {}
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_file(path: &str, text: &str, expected: &[&str]) {
        let findings = check(path, text);
        let named: Vec<_> =
            findings.iter().filter_map(|it| it.what.split([' ', ':']).nth(3)).collect();
        assert_eq!(named, expected, "{text}");
    }

    #[test]
    fn a_page_imports_its_own_modules_and_parts() {
        let path = "crates/console/src/pages/wallet/close.rs";
        check_file(path, "use crate::pages::wallet::statement;", &[]);
        check_file(path, "use crate::pages::parts::wallet::{form_page, opened};", &[]);
        check_file("crates/console/src/other.rs", "use crate::pages::wallet;", &[]);
    }

    #[test]
    fn a_page_imports_no_other_page() {
        let path = "crates/console/src/pages/wallet.rs";
        check_file(path, "use crate::pages::keys;", &["keys"]);
        check_file(path, "let rows = crate::pages::keys::row(key);", &["keys"]);
        check_file(path, "use super::keys;", &["keys"]);
        check_file(
            "crates/console/src/pages/wallet/close.rs",
            "use super::super::keys;",
            &["keys"],
        );
        check_file("crates/console/src/pages/wallet/close.rs", "use super::statement;", &[]);
        let group = "use crate::pages::{keys::{self, HEAD}, parts::wallet, people, wallet::usage};";
        check_file(path, group, &["keys", "people"]);
        check_file(path, "use crate::{kit::{form, page::Page}, pages::keys};", &["keys"]);
    }

    #[test]
    fn the_kit_imports_no_page() {
        check_file("crates/console/src/kit/form.rs", "use crate::pages::parts;", &["parts"]);
        check_file("crates/console/src/kit/form.rs", "use crate::kit::page::Page;", &[]);
    }
}
