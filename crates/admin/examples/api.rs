//! Prints `docs/reference/administration-api.md` from the tables of roles, doors and errors. `cargo xtask docs`
//! writes it; a test compares.

use std::io::{self, Write};

use holdfast_accounts::INTERFACES;
use holdfast_admin::Code;
use holdfast_domain::admin::Role;

/// Longest line of the prose.
const LINE_MAX: usize = 120;

const INTRODUCTION: &str = "\
# The administration's API

<!-- Written by `cargo xtask docs` from crates/admin, crates/accounts/src/table.rs and
     crates/domain/src/admin/role.rs: change it there. -->

For developers of automation: the rules of the API, the rights of each role, the endpoints and the errors.
[Administration](administration.md) explains the resources. The API is below `/admin/v1` on the listener of `[admin]`.
`/admin/openapi.json` describes every request; it needs no key. The first key comes from the command line:

```text
holdfast admin-key issue --name me --role owner
curl http://localhost:8081/admin/v1/wallets -H \"Authorization: Bearer hfa_…\"
```

- **Address.** On loopback under `localhost`, `127.0.0.1` and `[::1]`. Elsewhere only behind a proxy with
  TLS, under the host of `admin.url`: a listener that is not on loopback and has no `https://` address there serves
  `/metrics`, `/healthz` and `/readyz` only. Another `Host` is 421.
- **Keys.** `Authorization: Bearer hfa_…`. API keys and `admin.token` are not accepted; every bad key gets the same 401.
  A key has one role. A holder's role is for one wallet, and resources of other wallets do not exist for it.
- **Changes** require an `Idempotency-Key`: a UUID in lower case, new for each change. The same request with the same
  key is executed once. A repetition has the first answer's status, the current state of the resource, and
  `idempotent-replayed: true`. Another request with the key is a 409. A refusal does not bind the key. A member that is
  absent or null, and `dry_run=false`, do not make another request, and neither does a version that adds a member. A
  known key is answered before the currency and the spelling of a posting are checked.
- **Secrets are shown once.** The repetition of an issue or a rotation has `\"key\": null` and a `notice`, that of an
  invitation `\"url\": null`.
- **A posting's id is its `Idempotency-Key`**, through any interface and with any admin key. A deposit's `source`
  and `external_reference` are unique together forever; they are visible ASCII without blanks, and `source` compares in
  lower case. Postings accept an optional `currency`: 400 `invalid_value` if it is not the wallet's.
- **Texts that people type** (names, external ids, references, reasons, notes, descriptions, e-mail addresses) are
  printable: letters, marks, numbers, punctuation and symbols. A control, a character that is invisible or that turns
  the direction of writing, and one that Unicode does not assign is 400 `invalid_value`, whose message has its code
  (`U+200B`) and its place. U+200D and U+FE0F within emoji are accepted. Spaces such as U+00A0 and U+3000 are stored as
  U+0020, and a text is stored and compared in Unicode's form NFC: two spellings of one text are one name.
- `?dry_run=true` on deposits, adjustments, refunds, bulk issues and closings answers `{\"would\": …}`, without
  a change.
- `?after_restore=true` on deposits, adjustments, refunds and issues of API keys has them done within the [window of a
  restore](../how-to/back-up-and-restore.md#request-keys-that-a-copy-does-not-know). Without it an unknown
  `Idempotency-Key` is 409 `ledger_restored` there.
- **Bodies** are JSON of at most 1 MiB. Amounts are whole micros, timestamps are RFC 3339, and unknown members are
  refused. In edits an absent member stays and `null` removes. `If-Match` with the `ETag` refuses an edit of a resource
  that has changed since.
- **Lists** are `{\"data\", \"has_more\", \"next_cursor\"}`, newest first, with `limit` 1 to 200 (50). A cursor is sealed: it
  hides row numbers, and is valid only for its own list, filters and rights. It lasts while the server secret that
  sealed it is listed. Any other cursor is 400 `invalid_cursor`, never the first page. A page is 1 MiB at most: it ends
  early, with a cursor, after at least one row. `/models`, `/prices`, `/nodes`, `/routes`, `/usage` and `/held` are
  whole, and take neither.
- **Bounds.** An allow-list has at most 256 entries: ids of models configured at this node, and `publisher/*` with at
  least one such model. A longer list, and one with a model that was removed since, stays until it is edited. A key
  has at most 32 credentials in force, a posting moves at most 10^15 micros, and a wallet has at most 2^53 - 1 micros.
  `[admin]` bounds the API keys, people, webhooks and admin keys of one wallet, and how many of them one process creates
  for it per minute: 429 with `retry-after`. An admin key or a person has one job at a time that has not ended.
- An admin key has at most 16 requests in flight, a listener 64 connections.
";

fn main() -> io::Result<()> {
    io::stdout().write_all(document().as_bytes())
}

/// The whole document.
pub(crate) fn document() -> String {
    let mut text = INTRODUCTION.to_owned();
    text.push_str("\n## Rights of the roles\n\nAn owner may do everything.\n\n");
    let roles: Vec<_> = Role::ALL.into_iter().filter(|role| *role != Role::Owner).collect();
    let head: String = roles.iter().map(|role| format!(" {role} |")).collect();
    text.push_str(&format!("| use case |{head}\n|---|{}\n", "---|".repeat(roles.len())));
    for row in INTERFACES.iter() {
        let may = |role: &Role| if role.may(row.use_case) { " yes |" } else { " |" };
        let cells: String = roles.iter().map(may).collect();
        text.push_str(&format!("| `{}` |{cells}\n", row.use_case));
    }
    text.push_str(
        "\n## Endpoints and commands of each use case\n\n| use case | endpoint below `/admin/v1` | command |\n|---|---|---|\n",
    );
    for row in INTERFACES.iter() {
        let endpoints = row.endpoints.iter().map(|(method, path)| format!("`{method} {path}`"));
        let endpoints = endpoints.collect::<Vec<_>>().join(", ");
        let commands = row.commands.iter().map(|words| format!("`holdfast {words}`"));
        let commands = commands.collect::<Vec<_>>().join(", ");
        text.push_str(&format!("| `{}` | {endpoints} | {commands} |\n", row.use_case));
    }
    text.push_str(
        "\n## Errors\n\nThe body is that of [errors.md](errors.md): `message`, `type`, `param` and \
         `code`. Branch on `code`; the table is\nclosed. `retry` is the header `x-should-retry`. A 403 \
         `forbidden` names the missing use case in `scope`, a 412 the\nnumber of edits in `edited`.\n\
         \n| status | code | type | retry |\n|---|---|---|---|\n",
    );
    for code in Code::ALL {
        let (status, label, kind, retry) = (code.status(), code.label(), code.kind(), code.retry());
        text.push_str(&format!("| {status} | [`{label}`](#{label}) | `{kind}` | {retry} |\n"));
    }
    for code in Code::ALL {
        let (label, cause) = (code.label(), wrapped(code.cause()));
        let message = code.message();
        text.push_str(&format!("\n### {label}\n\n{cause}\n\n```text\n{message}\n```\n"));
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
