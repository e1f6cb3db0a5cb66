//! The table of attributes: the manual has it, and its names are those of the conventions.

use std::collections::BTreeSet;

use holdfast_telemetry::traces::ATTRIBUTES;

#[expect(dead_code, reason = "the example prints what is compared here")]
#[path = "../examples/traces.rs"]
mod manual;

const CONVENTIONS: &str = include_str!("conventions-1.42.0.txt");

#[test]
fn the_manual_is_fresh() {
    let written = include_str!("../../../docs/reference/traces.md");
    assert!(
        written == manual::document(),
        "docs/reference/traces.md is stale: run `cargo xtask docs`"
    );
}

#[test]
fn a_name_is_of_the_conventions_or_our_own_and_there_once() {
    let known: BTreeSet<_> = CONVENTIONS.lines().collect();
    let names: BTreeSet<_> = ATTRIBUTES.iter().map(|attribute| attribute.name).collect();
    assert_eq!(names.len(), ATTRIBUTES.len());
    for name in names {
        assert!(known.contains(name) || name.starts_with("holdfast."), "{name}");
    }
}
