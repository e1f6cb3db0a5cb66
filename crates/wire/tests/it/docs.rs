//! What `docs/api.md` says of errors is what the table says.

use holdfast_wire::error::Code;

#[test]
fn the_documented_table_of_errors_is_the_whole_table() {
    let docs = include_str!("../../../../docs/api.md");
    let rows: Vec<String> = Code::ALL
        .iter()
        .map(|code| {
            let (label, kind) = (code.label(), code.kind());
            format!("| {} | `{label}` | `{kind}` | {} |", code.status(), code.retry())
        })
        .collect();
    for row in &rows {
        assert!(docs.lines().any(|line| line == row), "docs/api.md lacks: {row}");
    }
    let documented =
        docs.lines().filter(|line| line.ends_with("| true |") || line.ends_with("| false |"));
    assert_eq!(documented.count(), rows.len(), "docs/api.md has rows that the table lacks");
}
