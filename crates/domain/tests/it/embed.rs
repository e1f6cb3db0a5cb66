//! The example that the documentation names is run as it stands.

#[path = "../../examples/embed.rs"]
mod example;

#[test]
fn the_example_of_embedding_runs() {
    example::main().unwrap();
}
