//! Prints `docs/errors.md` from the table of errors. `cargo xtask docs` writes it; a test compares.

use std::io::{self, Write};

use holdfast_wire::error::Code;

const INTRODUCTION: &str = "\
# Errors

<!-- Written by `cargo xtask docs` from crates/wire/src/error: change it there. -->

Every error has this body, and its first four members always:

```json
{\"error\": {\"message\": \"…\", \"type\": \"…\", \"param\": null, \"code\": \"…\", \"charged_micros\": 0}}
```

`charged_micros` is what the key was charged. It is absent where that is not known yet: with `operation_in_progress`, and with
`storage_unavailable` unless the answer is there and only its settlement waits; then it is what will be charged. `operation_id` is added once a key is bound, never on a conflict; `meters` where the answer is
gone and its bill is not. Branch on `code`; the table is closed.

- **retry** is the header `x-should-retry`: whether the same request with the same key may fare better. Where it does, `retry-after` and
  `retry-after-ms` say when: at most 60 seconds, a little different for everybody. An `internal_error` of an operation that has ended says `false`.
- **key** is what became of the `Idempotency-Key`. *Untouched*: it is as free or as bound as it was before, so a corrected request may use it
  again. *Bound*: the same request may get another answer later. *Bound, replays*: every retry gets this answer; anything else wants a new key.
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
        let (status, label, kind, retry) = (code.status(), code.label(), code.kind(), code.retry());
        let (key, param) = (code.key_effect().label(), code.param().unwrap_or("null"));
        text.push_str(&format!(
            "| {status} | [`{label}`](#{label}) | `{kind}` | {retry} | {key} | {param} |\n"
        ));
    }
    text.push_str("\n## Why, and what to do\n");
    for code in Code::ALL {
        let label = code.label();
        let cause = code.cause();
        text.push_str(&format!("\n### {label}\n\n{cause} Its usual message:\n\n"));
        text.push_str(&format!("```text\n{}\n```\n", code.message()));
    }
    text
}
