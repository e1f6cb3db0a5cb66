//! The manual's table of what a kind cannot do is the code's.

use std::path::Path;

use super::*;

/// Line of the manual for one row.
fn line<F>(path: &str, Row(kinds, member, _, rule): &Row<F>) -> String {
    let names = kinds.iter().filter_map(|kind| match kind {
        Anthropic if kinds.contains(&SamplingAnthropic) => Some("`anthropic`"),
        Anthropic => Some("`anthropic` without `sampling`"),
        SamplingAnthropic if kinds.contains(&Anthropic) => None,
        SamplingAnthropic => Some("`anthropic` with `sampling`"),
        Gemini => Some("`gemini`"),
        Bedrock => Some("`bedrock`"),
    });
    let names = names.collect::<Vec<_>>().join(", ");
    let rule = rule.trim_end_matches("for this model").trim_end_matches([' ', ',']);
    format!("| `{path}{member}` | {names} | {rule} |\n")
}

#[test]
fn the_manual_has_the_same_table() {
    let table: String = [
        FIELDS.iter().map(|row| line("", row)).collect(),
        TOOLS.iter().map(|row| line("tools[].", row)).collect(),
        MESSAGES.iter().map(|row| line("messages[].", row)).collect(),
        WITHOUT_LATE_SYSTEM
            .iter()
            .map(|row| line("messages[].", row))
            .collect::<String>()
            .replace("`bedrock` |", "`bedrock`, with `late_system = \"refuse\"` |"),
        PARTS.iter().map(|row| line("messages[].content[].", row)).collect::<String>(),
        CALLS.iter().map(|row| line("messages[].tool_calls[].", row)).collect(),
    ]
    .concat();
    let manual = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/providers.md");
    let manual = std::fs::read_to_string(manual).unwrap();
    assert!(manual.contains(&format!("\n|---|---|---|\n{table}\n")), "{table}");
}
