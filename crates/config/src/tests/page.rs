//! Comparison of `docs/reference/configuration.md` with the options.

#[path = "../../examples/options.rs"]
#[expect(dead_code, reason = "it is run as an example; here only its text is compared")]
mod options;

#[test]
fn the_page_of_options_is_written_from_the_configuration() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/configuration.md");
    let written = std::fs::read_to_string(page).unwrap();
    let fresh = options::document().unwrap();
    assert!(written == fresh, "docs/reference/configuration.md is stale: run `cargo xtask docs`");
}
