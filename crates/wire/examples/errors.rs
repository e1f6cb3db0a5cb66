//! Prints `docs/reference/errors.md` from the table of errors. `cargo xtask docs` writes it; a test compares.

use std::io::{self, Write};

use holdfast_wire::error::Code;

/// Longest line of the prose.
const LINE_MAX: usize = 120;

const INTRODUCTION: &str = "\
# Errors

<!-- Written by `cargo xtask docs` from crates/wire/src/error: change it there. -->

Every error has this body. The first four members are always present:

```json
{\"error\": {\"message\": \"…\", \"type\": \"…\", \"param\": null, \"code\": \"…\", \"charged_micros\": 0}}
```

- `charged_micros` is what the key was charged. The member is absent where that is not known yet: with
  `operation_in_progress` and `gateway_unreachable`, and most often with `storage_unavailable`. Where the answer is
  there and only its settlement waits, `storage_unavailable` tells what will be charged.
- `held_micros` is added to an `insufficient_funds` that may pass by itself: running requests hold as much of the
  wallet, and what their ends return may suffice. An API key that may not see the balance is not told it.
- `operation_id` is added once a key is bound, never on a conflict.
- `meters` is added where the answer is gone and its bill is not.

Branch on `code`; the table is closed. The columns of the table:

- **retry** is the header `x-should-retry`: whether the same request with the same key may fare better; *while held*,
  as long as running requests hold the funds that are missing (`retry-after` is then 2 to 10 seconds). Where it may,
  `retry-after` and `retry-after-ms` say when: at most 60 seconds, a little different for everybody. An `internal_error`
  of an operation that has ended says `false`.
- **key** is what became of the `Idempotency-Key`:
  - *untouched*: the key is as free or as bound as it was before, so a corrected request may use it again;
  - *may be bound*: where the key is bound, the error names its operation;
  - *bound*: the same request may get another answer later;
  - *bound, replays*: every retry gets this answer; anything else wants a new key.
- **param** names the field that the error is about, else it is null.

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
    text.push_str("\n## Why, and what to do\n");
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
