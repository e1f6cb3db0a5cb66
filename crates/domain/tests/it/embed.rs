//! The example that the documentation names is run as it stands, and quoted as it stands.

#[path = "../../examples/embed.rs"]
mod example;

const EXAMPLE: &str = include_str!("../../examples/embed.rs");
const DOCUMENT: &str = include_str!("../../../../docs/tutorials/embed-the-domain.md");

#[test]
fn the_example_of_embedding_runs() {
    example::main().unwrap();
}

#[test]
fn the_document_quotes_the_whole_example() {
    assert!(DOCUMENT.contains(&format!("```rust\n{EXAMPLE}```\n")));
}
