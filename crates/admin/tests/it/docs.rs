//! Comparison of `docs/reference/administration-api.md` with the tables.

#[path = "../../examples/api.rs"]
#[expect(dead_code, reason = "it is run as an example; here only its text is compared")]
mod api;

#[test]
fn the_page_of_administration_is_written_from_the_tables() {
    let written = include_str!("../../../../docs/reference/administration-api.md");
    let fresh = api::document();
    assert!(
        written == fresh,
        "docs/reference/administration-api.md is stale: run `cargo xtask docs`"
    );
}
