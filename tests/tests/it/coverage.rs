//! Every error that a caller can get has a test that gets it.

use std::collections::BTreeSet;
use std::path::Path;

use holdfast_wire::error::Code;

use crate::check::ROWS;

#[test]
fn the_table_has_a_row_for_every_error() {
    let listed = ROWS.map(|(code, name, ..)| (code, name));
    assert_eq!(listed, Code::ALL.map(|code| (code, code.label())));
}

#[test]
fn every_error_has_a_test() {
    let tests = sources();
    let names: BTreeSet<_> = tests
        .split("Code::")
        .skip(1)
        .filter_map(|rest| rest.split(|c: char| !c.is_ascii_alphanumeric()).next())
        .collect();
    let tested = |code: &Code| names.contains(format!("{code:?}").as_str());
    let untested: Vec<_> = Code::ALL.into_iter().filter(|code| !tested(code)).collect();
    assert_eq!(untested, []);
}

/// All tests; neither these nor the table, which name every error.
fn sources() -> String {
    text_of(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it"))
}

fn text_of(place: &Path) -> String {
    if place.is_dir() {
        let files = std::fs::read_dir(place).unwrap().map(|file| file.unwrap().path());
        return files.map(|file| text_of(&file)).collect();
    }
    if ["coverage.rs", "check.rs"].iter().any(|it| place.ends_with(it)) {
        return String::new();
    }
    std::fs::read_to_string(place).unwrap()
}
