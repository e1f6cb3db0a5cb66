//! Prints `docs/reference/errors.md` from the table of errors. `cargo xtask docs` writes it; a test compares.

use std::io::{self, Write};

use holdfast_wire::error::Code;

/// Longest line of the prose.
const LINE_MAX: usize = 120;

const INTRODUCTION: &str = "\
# Errors

<!-- Written by `cargo xtask docs` from crates/wire/src/error: change it there. -->

For developers of callers: every error of the API with its cause, its message and the state of its key. Every error has
this body. The first four members are always present:

```json
{\"error\": {\"message\": \"…\", \"type\": \"…\", \"param\": null, \"code\": \"…\", \"charged_micros\": 0}}
```

- `charged_micros` is the charge of the key. The member is absent if it is not known yet: with `operation_in_progress`,
  `ledger_restored` and `gateway_unreachable`, and usually with `storage_unavailable`. If the answer exists and only its
  settlement waits, `storage_unavailable` has the future charge.
- `held_micros` is added to an `insufficient_funds` that may pass by itself: running requests hold as much of the
  wallet, and the funds that their ends return may suffice. An API key that may not see the balance does not get it.
- `operation_id` is added once a key is bound, never on a conflict.
- `meters` is added if the answer was deleted and its charge is known.

Branch on `code`; the table is closed. The columns of the table:

- **retry** is the header `x-should-retry`: true if the same request with the same key may succeed later; *while held*,
  as long as running requests hold the missing funds (`retry-after` is then 2 to 10 seconds). If it is true,
  `retry-after` and `retry-after-ms` have the pause: at most 60 seconds, slightly different for each caller. An
  `internal_error` of an operation that has ended has `false`.
- **key** is the state of the `Idempotency-Key` after the error:
  - *untouched*: the key is as free or as bound as it was before, so a corrected request may use it again;
  - *may be bound*: if the key is bound, the error has its operation;
  - *bound*: the same request may get another answer later;
  - *bound, replays*: every retry gets this answer; any other request needs a new key.
- **param** is the path of the wrong field, otherwise null.

A head that cannot be parsed at all gets a bare status.
";

fn main() -> io::Result<()> {
    io::stdout().write_all(document().as_bytes())
}

/// The whole document.
pub(crate) fn document() -> String {
    let mut text = INTRODUCTION.to_owned();
    text.push_str("\n| status | code | type | retry | key | param |\n|---|---|---|---|---|---|\n");
    for code in Code::ALL {
        let (status, label, kind) = (code.status(), code.label(), code.kind());
        let retry = code.retry_label();
        let (key, param) = (code.key_effect().label(), code.param().unwrap_or("null"));
        text.push_str(&format!(
            "| {status} | [`{label}`](#{label}) | `{kind}` | {retry} | {key} | {param} |\n"
        ));
    }
    text.push_str("\n## Causes and messages\n");
    for code in Code::ALL {
        let label = code.label();
        let cause = wrapped(code.cause());
        text.push_str(&format!("\n### {label}\n\n{cause}\n\nThe usual message:\n\n"));
        text.push_str(&format!("```text\n{}\n```\n", code.message()));
    }
    text
}

/// The words of a paragraph in lines of at most [`LINE_MAX`] characters.
fn wrapped(paragraph: &str) -> String {
    let (mut lines, mut len) = (String::new(), 0);
    for word in paragraph.split(' ') {
        let word_len = word.chars().count();
        if len > 0 && len + 1 + word_len > LINE_MAX {
            lines.push('\n');
            len = 0;
        } else if len > 0 {
            lines.push(' ');
            len += 1;
        }
        lines.push_str(word);
        len += word_len;
    }
    lines
}
