//! `docs/reference/errors.md` is what the table of errors says, and the rest of the documentation does not say it
//! again.

use holdfast_wire::error::Code;
use holdfast_wire::openapi;

#[path = "../../examples/errors.rs"]
#[expect(dead_code, reason = "it is run as an example; here only its text is compared")]
mod errors;

#[test]
fn the_document_of_errors_is_written_from_the_table() {
    let written = include_str!("../../../../docs/reference/errors.md");
    assert!(
        written == errors::document(),
        "docs/reference/errors.md is stale: run `cargo xtask docs`"
    );
}

#[test]
fn every_error_has_a_cause_of_its_own() {
    let causes: std::collections::BTreeSet<_> = Code::ALL.iter().map(|code| code.cause()).collect();
    assert_eq!(causes.len(), Code::ALL.len());
    for cause in causes {
        assert!(cause.ends_with('.') && !cause.contains("  "), "{cause}");
    }
}

#[test]
fn the_documents_name_no_error_that_does_not_exist() {
    let documents = [
        include_str!("../../../../docs/reference/http-api.md"),
        include_str!("../../../../docs/reference/simulated-models.md"),
        include_str!("../../../../docs/reference/configuration.md"),
        include_str!("../../../../docs/reference/limits.md"),
        include_str!("../../../../docs/how-to/respond-to-alerts.md"),
        include_str!("../../../../docs/explanation/operation-lifecycle.md"),
    ];
    let mut named = 0;
    for document in documents {
        // A status and a code, as the documents write an error.
        let words: Vec<&str> = document.split_whitespace().collect();
        for pair in words.windows(2) {
            let (Ok(status), Some(label)) = (pair[0].parse::<u16>(), label(pair[1])) else {
                continue;
            };
            let code = Code::ALL.into_iter().find(|code| code.label() == label);
            assert_eq!(code.map(Code::status), Some(status), "{status} `{label}`");
            named += 1;
        }
    }
    assert!(named > 10, "they are found: {named}");
}

fn label(word: &str) -> Option<&str> {
    let label = word.strip_prefix('`')?.split_once('`')?.0;
    let is_code =
        !label.is_empty() && label.bytes().all(|it| it.is_ascii_lowercase() || it == b'_');
    is_code.then_some(label)
}

#[test]
fn every_endpoint_that_is_written_about_describes_itself() {
    let document = openapi::document();
    let api = include_str!("../../../../docs/reference/http-api.md");
    let mut named = 0;
    for method in ["GET", "POST"] {
        for rest in api.split(&format!("{method} /")).skip(1) {
            let end = rest.find(|c: char| c == '`' || c.is_whitespace()).unwrap();
            let path = format!("/{}", &rest[..end]);
            let operation = &document["paths"][&path][method.to_lowercase()];
            assert!(operation.is_object(), "{method} {path}");
            named += 1;
        }
    }
    assert!(named >= 9, "they are found: {named}");
}
