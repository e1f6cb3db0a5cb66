//! Evidence of the guarantees: each test that the page of reliability names is a function, and each of its guarantees
//! names one.
//!
//! A test that is renamed or removed would otherwise leave a claim behind that nothing shows.

use std::collections::BTreeSet;

use super::Finding;

const PAGE: &str = "docs/reference/reliability.md";
const SECTION: &str = "## Evidence";
/// A word with so many underscores is the name of a test.
const UNDERSCORES_MIN: usize = 2;

/// Findings in the page. `texts` has every file of the repository.
pub(super) fn check(texts: &[(String, String)]) -> Vec<Finding> {
    let Some((_, page)) = texts.iter().find(|(path, _)| path == PAGE) else {
        return vec![Finding::new(PAGE, "the page of the guarantees is missing")];
    };
    let sources = texts.iter().filter(|(path, _)| path.ends_with(".rs"));
    let known: BTreeSet<&str> = sources.flat_map(|(_, text)| functions(text)).collect();
    let rows: Vec<_> = rows(page).collect();
    if rows.is_empty() {
        return vec![Finding::new(PAGE, format_args!("{SECTION} has no row"))];
    }
    let findings = rows.iter().flat_map(|(index, row)| {
        let names: Vec<&str> = names(row).collect();
        let none = names.is_empty().then(|| "a guarantee without a test".to_owned());
        let unknown = names.into_iter().filter(|name| !known.contains(name));
        let unknown = unknown.map(|name| format!("there is no test {name}"));
        none.into_iter().chain(unknown).map(|what| Finding::at(PAGE, *index, what))
    });
    findings.collect()
}

/// Rows of the section's table with their lines, without its head.
fn rows(page: &str) -> impl Iterator<Item = (usize, &str)> {
    let section = page.lines().enumerate().skip_while(|(_, line)| *line != SECTION).skip(1);
    section
        .take_while(|(_, line)| !line.starts_with("## "))
        .filter(|(_, line)| line.starts_with('|'))
        .skip(2)
}

/// Names of tests in a row.
fn names(row: &str) -> impl Iterator<Item = &str> {
    let quoted = row.split('`').skip(1).step_by(2);
    quoted.filter(|word| word.matches('_').count() >= UNDERSCORES_MIN && !word.contains(' '))
}

/// Names of the functions of a file.
fn functions(text: &str) -> impl Iterator<Item = &str> {
    let is_part = |it: char| it.is_alphanumeric() || it == '_';
    let after = text.split("fn ").skip(1);
    after.map(move |rest| rest.split(|it: char| !is_part(it)).next().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(row: &str) -> Vec<String> {
        let page =
            format!("# Page\n\n{SECTION}\n\n| claim | tests |\n|---|---|\n{row}\n\n## Next\n");
        let test = "fn nothing_is_lost() {}".to_owned();
        let texts = [(PAGE.to_owned(), page), ("tests/a.rs".to_owned(), test)];
        check(&texts).into_iter().map(|it| it.what).collect()
    }

    #[test]
    fn each_guarantee_names_tests_that_exist() {
        assert_eq!(found("| 1 | `nothing_is_lost` |"), [""; 0]);
        assert_eq!(found("| 1 | `nothing_is_taken` |"), ["there is no test nothing_is_taken"]);
        assert_eq!(found("| 1 | trust us |"), ["a guarantee without a test"]);
        assert_eq!(found("none"), [format!("{SECTION} has no row")]);
    }
}
