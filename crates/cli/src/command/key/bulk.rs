//! `holdfast key issue --from FILE --secrets OUT`: a key for each line of a file.
//!
//! ```text
//! FILE ─▶ parts of 100 ─▶ POST /api_keys/bulk, all or none ─▶ secrets appended to OUT, synced
//!             │                     │
//!             │                     └─ answered before: keys that OUT has not are rotated at once
//!             └─ request key = digest(FILE, --key, number of the part)
//! ```
//!
//! A command that was interrupted is run again, with the same `--key`, and sends every part again. The parts that
//! were made are answered from their records, without their secrets: if OUT has a key's line it is done, and if not
//! the answer was lost, so the key is rotated with no grace and its new secret is written. A rotation whose answer
//! was lost too is found by its own request key, and the next one has another. So each key of the file has a line
//! in the end, and the secret in it is the key's only one.
//!
//! A rotation ends a secret that may be in use. An interruption loses the answer of one part, and leaves OUT. If
//! OUT is new, or lacks the keys of two parts, it is not the file of that run, and no key is rotated without
//! `--rotate-missing`.
//!
//! The limits are part of each request: the same `--key` with others is another command's.
//!
//! Never: a secret on standard output or standard error, or in a file that others can read.

use std::collections::BTreeSet;
use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

use anyhow::{Context, anyhow};
use holdfast_accounts::{ExternalId, Name, Reason};
use serde_json::{Value, json};
use uuid::Uuid;

use super::credential::{order, warn_of_models};
use super::path;
use crate::admin_client::{ChangeKey, ChangeRequest};
use crate::arguments;
use crate::command::{CommandContext, wallet};
use crate::failure::{CommandFailure, Refusal, Result};
use crate::output::note;
use crate::view::{member, some_text, text};

/// Keys of one request.
const PART_KEYS: usize = 100;
/// Rotations of one key, one after the other, whose answers are lost before that is given up.
const ROTATIONS_MAX: u32 = 100;
/// Permissions of users other than the owner.
const OTHERS: u32 = 0o077;

const NOT_ITS_FILE: &str = "these keys were issued before, and the file of --secrets lacks secrets that were \
    shown then: name that run's file, or give --rotate-missing, which ends the secrets that it has not";

/// A key to be issued: a line of the file.
struct Line {
    name: Name,
    external_id: Option<ExternalId>,
}

/// Request keys of a run: each follows from the file, the key of the command and what it is for.
struct RunKeys {
    file: [u8; 32],
    key: Uuid,
}

impl RunKeys {
    fn derive(&self, purpose: &str) -> ChangeKey {
        let mut hasher = blake3::Hasher::new();
        hasher.update(&self.file).update(self.key.as_bytes()).update(purpose.as_bytes());
        let mut bytes = [0; 16];
        // Derived and not random, so that the same command finds its own requests. Version 8 of
        // UUIDs is for such ids.
        hasher.finalize_xof().fill(&mut bytes);
        ChangeKey::derived(Uuid::new_v8(bytes))
    }
}

pub(super) async fn issue(
    context: &CommandContext<'_>,
    options: &arguments::Issue,
    from: &Path,
    to: &Path,
) -> Result {
    // Read once: the request keys are derived from these bytes, and must not be of another version
    // of the file than the lines.
    let file = std::fs::read(from).with_context(|| format!("{} is not read", from.display()))?;
    let lines = lines(&file).map_err(|error| {
        CommandFailure::Usage(error.context(format!("nothing was issued: {}", from.display())))
    })?;
    let wallet = wallet::find(context, &options.wallet).await?;
    warn_of_models(context, &wallet, options);
    if options.dry_run {
        return rehearse(context, options, &wallet, &lines).await;
    }
    // Before the first request: a key is issued only if there is a place for its secret.
    let mut secrets = SecretsFile::open(to)?;
    let key = options.request.request.or_made().announced().id;
    let keys = RunKeys { file: *blake3::hash(&file).as_bytes(), key };
    let (mut issued, mut rotated) = (0, 0);
    // One replayed part with missing keys is an interruption, if OUT existed. A second one, or a
    // new OUT, is another run's: those keys may be in use, and their secrets must not end without
    // `--rotate-missing`.
    let mut may_rotate = options.rotate_missing || !secrets.is_new;
    for (number, part) in lines.chunks(PART_KEYS).enumerate() {
        let key_of_part = keys.derive(&format!("part {number}"));
        let change = request(options, &wallet, part, key_of_part);
        let stopped = |error: CommandFailure| error.after(issued, lines.len(), key);
        let done = context.client.change(&change).await;
        let done = done.map_err(|error| stopped(error.of_part("the next keys")))?;
        let made = member(&done.thing, "data").as_array().map_or(&[][..], Vec::as_slice);
        let mut added = Vec::with_capacity(made.len());
        let missing: Vec<_> =
            made.iter().filter(|api_key| !secrets.has(&text(api_key, "id"))).collect();
        if done.replayed && !missing.is_empty() {
            if !may_rotate {
                return Err(stopped(anyhow!(NOT_ITS_FILE).into()));
            }
            may_rotate = options.rotate_missing;
        }
        for api_key in missing {
            let secret = match some_text(api_key, "key") {
                Some(secret) => secret,
                None => {
                    rotated += 1;
                    rotate(context, &keys, api_key, options.reason.as_ref())
                        .await
                        .map_err(stopped)?
                }
            };
            added.push([text(api_key, "id"), text(api_key, "name"), secret]);
        }
        // Before the next part is issued: however the command ends, at most one part is without its
        // secrets.
        secrets.append(&added).map_err(|error| stopped(error.into()))?;
        issued += part.len();
        note(&format!("{issued} of {}", lines.len()));
    }
    let view = json!({ "issued": issued, "rotated": rotated, "secrets": to.display().to_string() });
    let fields = ["issued", "rotated", "secrets"].map(|name| (name, text(&view, name)));
    context.output.object(&view, &fields)
}

/// Request that issues the keys of a part.
fn request(
    options: &arguments::Issue,
    wallet: &Value,
    part: &[Line],
    key: ChangeKey,
) -> ChangeRequest {
    let order = |line: &Line| order(options, Some(&line.name), line.external_id.as_ref());
    let body = json!({
        "wallet_id": member(wallet, "id"),
        "keys": part.iter().map(order).collect::<Vec<_>>(),
    });
    options.request.post_as(key, "/api_keys/bulk", body).because(options.reason.as_ref())
}

/// Has every part judged, and none made: neither keys nor the file of their secrets.
async fn rehearse(
    context: &CommandContext<'_>,
    options: &arguments::Issue,
    wallet: &Value,
    lines: &[Line],
) -> Result {
    for part in lines.chunks(PART_KEYS) {
        // Bound to no request, so no part needs the key of its issue.
        let key = ChangeKey::derived(Uuid::new_v4());
        let change = request(options, wallet, part, key).rehearsed(true);
        let done = context.client.change(&change).await;
        done.map_err(|error| error.because("they would not be issued"))?;
    }
    let view = json!({ "issued": 0, "would_issue": lines.len() });
    let fields = ["issued", "would_issue"].map(|name| (name, text(&view, name)));
    context.output.object(&view, &fields)
}

/// Rotates a key whose secret was never shown, until an answer has one.
async fn rotate(
    context: &CommandContext<'_>,
    keys: &RunKeys,
    api_key: &Value,
    reason: Option<&Reason>,
) -> Result<String> {
    let of = "a key whose secret was not shown";
    for attempt in 0..ROTATIONS_MAX {
        // Each attempt has a key of its own: under the same one the answer would be the replay of a
        // rotation whose secret was lost.
        let key = keys.derive(&format!("rotate {} {attempt}", text(api_key, "id")));
        let body = json!({ "grace_seconds": 0, "reason": reason.map(Reason::as_typed) });
        let change = ChangeRequest::post(key, path(api_key, "/rotate"), body);
        let done = context.client.change(&change).await.map_err(|error| error.of_part(of))?;
        if let Some(secret) = some_text(&done.thing, "key") {
            return Ok(secret);
        }
    }
    Err(anyhow!("{of} has none yet: the answers of {ROTATIONS_MAX} rotations were lost").into())
}

impl CommandFailure {
    /// The same with how far it went, and how to go on.
    fn after(self, issued: usize, of: usize, key: Uuid) -> Self {
        let Some(message) = self.message() else { return self };
        let code = self.code().to_owned();
        Refusal::failed(
            code,
            format!(
                "{message}\n{issued} of {of} keys are issued: run this again with `--key {key}`, it goes \
                 on from there"
            ),
        )
    }
}

/// Reads the file: a name a line, perhaps with an external id behind a tab.
fn lines(file: &[u8]) -> anyhow::Result<Vec<Line>> {
    let text = std::str::from_utf8(file).context("it is not UTF-8")?;
    let mut names = BTreeSet::new();
    let mut lines = Vec::new();
    for (at, line) in text.lines().enumerate().map(|(at, line)| (at + 1, line)) {
        let (name, external_id) = match line.split_once('\t') {
            Some((name, id)) => (name, Some(id)),
            None => (line, None),
        };
        let name: Name = name.parse().with_context(|| format!("line {at}"))?;
        let id = external_id.map(str::parse).transpose();
        let external_id = id.with_context(|| format!("line {at}"))?;
        if !names.insert(name.as_str().to_owned()) {
            return Err(anyhow!("line {at}: {name} is there twice"));
        }
        lines.push(Line { name, external_id });
    }
    if lines.is_empty() { Err(anyhow!("it has no line")) } else { Ok(lines) }
}

/// True for the beginning of a line of secrets, or an empty text: an id, a tab, a name, a tab, a key.
fn is_cut_line(text: &str) -> bool {
    let (id, rest) = text.split_at_checked(text.len().min(36)).unwrap_or((text, ""));
    let is_id = id.char_indices().all(|(at, c)| match at {
        8 | 13 | 18 | 23 => c == '-',
        _ => c.is_ascii_hexdigit(),
    });
    let mut fields = rest.split('\t');
    let is_behind_id = fields.next() == Some("");
    let key = fields.nth(1).unwrap_or_default();
    is_id
        && is_behind_id
        && (key.starts_with("hfk_") || "hfk_".starts_with(key))
        && fields.next().is_none()
}

/// The file of the secrets: a line for each key, of its id, its name and the key.
struct SecretsFile {
    file: File,
    ids: BTreeSet<String>,
    /// True if this command has made it: no earlier one has written here.
    is_new: bool,
}

impl SecretsFile {
    /// Creates the file for its owner only, or continues one.
    fn open(path: &Path) -> Result<Self> {
        let shown = path.display();
        let refuse = |why: String| {
            CommandFailure::Usage(anyhow!(
                "nothing was issued: the file of --secrets, {shown}, {why}"
            ))
        };
        // Created with its permissions: set afterwards, they would leave a moment in which others
        // can open it.
        let new =
            OpenOptions::new().create_new(true).read(true).append(true).mode(0o600).open(path);
        let is_new = new.is_ok();
        let mut file = match new {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                OpenOptions::new().read(true).append(true).open(path)
            }
            made => made,
        }
        .with_context(|| format!("{shown} is not opened"))?;
        let mode = file.metadata().with_context(|| format!("{shown} is not read"))?.mode();
        if mode & OTHERS != 0 {
            return Err(refuse(format!("is one that others may read: run `chmod 600 {shown}`")));
        }
        // Two at once would both rotate what the other has just issued.
        if file.try_lock().is_err() {
            return Err(refuse("is in use by another command".to_owned()));
        }
        let mut text = String::new();
        file.read_to_string(&mut text).with_context(|| format!("{shown} is not read"))?;
        // A line that is cut was being written when the command was killed.
        let whole = text.rfind('\n').map_or(0, |end| end + 1);
        let mut ids = BTreeSet::new();
        for line in text.get(..whole).unwrap_or_default().lines() {
            let fields: Vec<_> = line.split('\t').collect();
            let [id, _name, secret] = fields.as_slice() else {
                return Err(refuse("has other lines than those of keys: name another".to_owned()));
            };
            if Uuid::try_parse(id).is_err() || !secret.starts_with("hfk_") {
                return Err(refuse("has other lines than those of keys: name another".to_owned()));
            }
            ids.insert((*id).to_owned());
        }
        if !text.get(whole..).is_some_and(is_cut_line) {
            return Err(refuse("has other lines than those of keys: name another".to_owned()));
        }
        let length = u64::try_from(whole).unwrap_or(u64::MAX);
        file.set_len(length).with_context(|| format!("{shown} is not written"))?;
        if is_new {
            // The name of the file has to last as long as the secrets in it.
            let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
            let folder = File::open(folder.unwrap_or(Path::new(".")));
            folder
                .and_then(|folder| folder.sync_all())
                .with_context(|| format!("{shown} is not kept"))?;
        }
        Ok(Self { file, ids, is_new })
    }

    fn has(&self, id: &str) -> bool {
        self.ids.contains(id)
    }

    /// Appends lines, and returns when they are on the disk.
    fn append(&mut self, lines: &[[String; 3]]) -> anyhow::Result<()> {
        let text: String = lines.iter().map(|line| line.join("\t") + "\n").collect();
        // One write for the part, then the disk: a secret that is shown nowhere else must survive a
        // crash.
        let written = self.file.write_all(text.as_bytes()).and_then(|()| self.file.sync_data());
        written.context("the secrets are not written")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_beginning_of_a_line_of_secrets_is_cut_off() {
        let line = "7f2c1a9e-5b7d-4c3e-9a51-0f8e6d2b4c11\tlaptop\thfk_abc";
        for end in 0..=line.len() {
            let is_name = (37..=43).contains(&end);
            assert!(is_cut_line(&line[..end]) || is_name, "{}", &line[..end]);
        }
        for other in ["0123456789abcdef0123456789abcdef", "secret", "[server]", "7f2c1a9e5b7d"] {
            assert!(!is_cut_line(other), "{other}");
        }
        assert!(!is_cut_line("7f2c1a9e-5b7d-4c3e-9a51-0f8e6d2b4c11 and more"));
    }
}
