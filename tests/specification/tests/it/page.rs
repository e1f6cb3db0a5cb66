//! `docs/reference/specification.md` compared with the models: every law, mutant, probe and figure, and every function
//! that it names.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

use specification::Report;

use crate::{
    models::{ALL, Model},
    root,
};

const PAGE: &str = "docs/reference/specification.md";

fn project() -> PathBuf {
    root().ancestors().nth(2).unwrap().to_owned()
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Cells of each row of the tables of the page, without backquotes.
fn rows() -> Vec<Vec<String>> {
    let page = read(&project().join(PAGE));
    let rows = page.lines().filter_map(|line| line.strip_prefix("| ")?.strip_suffix(" |"));
    rows.map(|row| row.split(" | ").map(|cell| cell.replace('`', "")).collect()).collect()
}

fn words(cell: &str) -> BTreeSet<String> {
    let words = cell.split(|letter: char| !(letter.is_alphanumeric() || letter == '_'));
    words.filter(|word| !word.is_empty()).map(str::to_owned).collect()
}

/// The row of a model has the number of its states and its depth.
#[track_caller]
pub(crate) fn has_figures(model: &Model, report: &Report) {
    let flags: Vec<_> = model.flags.iter().map(|flag| format!(" -D{flag}")).collect();
    let name = format!("{}.pml{}", model.file, flags.concat());
    let row = rows().into_iter().find(|row| row.first() == Some(&name));
    let row = row.unwrap_or_else(|| panic!("{PAGE} has no row of {name}"));
    let figures = [report.states, report.depth].map(|figure| figure.to_string());
    let found: Vec<_> = row.iter().rev().take(2).rev().map(|cell| cell.replace(',', "")).collect();
    assert_eq!(found, figures, "states and depth of {name} in {PAGE}");
}

fn sources() -> String {
    let mut files: Vec<_> =
        fs::read_dir(root().join("models")).unwrap().map(|file| file.unwrap().path()).collect();
    files.sort();
    files.iter().map(|file| read(file)).collect()
}

/// Names in the models that begin so, or that a line declares so.
fn declared(prefix: &str) -> BTreeSet<String> {
    let text = sources();
    let lines = text.lines().filter_map(|line| line.strip_prefix(prefix));
    lines.map(|rest| words(rest.split([' ', '(']).next().unwrap())).fold(
        BTreeSet::new(),
        |mut all, words| {
            all.extend(words);
            all
        },
    )
}

#[test]
fn every_broken_rule_of_the_models_is_run() {
    let text = sources();
    let named =
        words(&text).into_iter().filter_map(|word| word.strip_prefix("MUTANT_").map(str::to_owned));
    let run = ALL.iter().flat_map(|model| model.mutants.iter().flat_map(|(mutants, _)| *mutants));
    let covered = ALL.iter().flat_map(|model| model.covered);
    let run: BTreeSet<String> = run.chain(covered).map(|&mutant| mutant.to_owned()).collect();
    assert_eq!(named.collect::<BTreeSet<_>>(), run);
}

/// Each law has a row with the broken rules that break it, and a situation that a model reaches.
#[test]
fn every_law_has_its_mutants_and_its_probe_on_the_page() {
    let mut laws = declared("bit ");
    let text = sources();
    laws.retain(|law| {
        ["assert", "judge"].iter().any(|judge| text.contains(&format!("{judge}({law})")))
    });
    laws.insert("L1_comes_to_rest".to_owned());
    let rows = rows();
    let probes: BTreeSet<_> = ALL.iter().flat_map(|model| model.probes).copied().collect();
    for law in laws {
        let row = rows.iter().find(|row| row.first() == Some(&law) && row.len() == 4);
        let row = row.unwrap_or_else(|| panic!("{PAGE} has no row of {law}"));
        let all = ALL.iter().flat_map(|model| model.mutants).filter(|(_, falls)| *falls == law);
        let mutants: BTreeSet<_> =
            all.flat_map(|(mutants, _)| *mutants).map(|&mutant| mutant.to_owned()).collect();
        assert!(!mutants.is_empty(), "no broken rule breaks {law}");
        assert_eq!(words(&row[2]), mutants, "mutants of {law} in {PAGE}");
        let named = words(&row[3]);
        assert!(!named.is_empty(), "{law} has a situation in {PAGE}");
        for probe in named {
            assert!(probes.contains(probe.as_str()), "{probe} of {law} is not run");
        }
    }
}

#[test]
fn every_situation_of_the_models_is_run_and_on_the_page() {
    let text = read(&root().join("models/probes.pml"));
    let defined = text.lines().filter_map(|line| line.strip_prefix("#define ")?.split(' ').next());
    let probes: BTreeSet<_> = ALL.iter().flat_map(|model| model.probes).copied().collect();
    let page = words(&read(&project().join(PAGE)));
    for probe in defined {
        assert!(probes.contains(probe), "{probe} is not run");
    }
    for probe in probes {
        assert!(page.contains(probe), "{probe} is not in {PAGE}");
    }
}

/// A row of actions names a file and its functions.
#[test]
fn every_function_of_the_page_is_in_its_file() {
    let mut count = 0;
    for row in rows().iter().filter(|row| row.iter().any(|cell| cell.ends_with(".rs"))) {
        let file = row.iter().position(|cell| cell.ends_with(".rs")).unwrap();
        let text = read(&project().join(&row[file]));
        let names = row[file + 1].split(", ");
        for name in names {
            let is_there = ["fn ", "enum ", "struct "].iter().any(|kind| {
                let begins = format!("{kind}{name}");
                text.match_indices(&begins).any(|(at, _)| {
                    let next = text[at + begins.len()..].chars().next();
                    next.is_some_and(|next| !(next.is_alphanumeric() || next == '_'))
                })
            });
            assert!(is_there, "{} has no {name}", row[file]);
            count += 1;
        }
    }
    assert!(count >= 20, "{PAGE} names {count} functions");
}
