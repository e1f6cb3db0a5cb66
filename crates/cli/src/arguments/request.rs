//! Arguments that go with a change: its request key, its reason, and the consent to one that cannot be undone.

use std::fmt;
use std::io::{self, IsTerminal};

use anyhow::{Context, anyhow};
use clap::Args;
use holdfast_accounts::{Reason, Verb};
use serde_json::{Value, json};
use uuid::Uuid;

use super::value;
use crate::admin_client::{ChangeKey, ChangeRequest};
use crate::failure::{CommandFailure, Result};
use crate::output::prompt;

/// Key of a change.
#[derive(Clone, Copy, Args)]
pub struct RequestKey {
    /// Idempotency key of this change, not an API key: a repetition with the same key changes nothing [default: a new
    /// UUIDv4, printed]
    #[arg(long = "key", value_name = "UUID", value_parser = value::posting_key)]
    pub uuid: Option<Uuid>,
}

impl RequestKey {
    /// The key of the change: this one, or one made here.
    pub(crate) fn or_made(self) -> ChangeKey {
        ChangeKey::new(self.uuid)
    }
}

/// Key of a change that books money or issues API keys: after a restore the ledger may have lost it.
#[derive(Clone, Copy, Args)]
pub struct CreationKey {
    #[command(flatten)]
    pub request: RequestKey,
    /// Confirm the change within the window of a restore, in which the ledger may have lost the same change
    #[arg(long)]
    pub after_restore: bool,
}

impl CreationKey {
    /// The change under this key, or one made here.
    pub(crate) fn post(self, path: &str, body: Value) -> ChangeRequest {
        self.post_as(self.request.or_made(), path, body)
    }

    /// The change under a key that follows from this one.
    pub(crate) fn post_as(self, key: ChangeKey, path: &str, body: Value) -> ChangeRequest {
        ChangeRequest::post(key, path, body).after_restore(self.after_restore)
    }
}

impl fmt::Debug for CreationKey {
    /// As its request key: a command that was refused after a restore is the same one with the flag.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.request.fmt(f)
    }
}

impl fmt::Debug for RequestKey {
    /// Without the key: commands are compared by their texts, and the same command has the same text with a
    /// generated and with a given key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RequestKey")
    }
}

/// Consent to what cannot be undone.
#[derive(Debug, Clone, Copy, Args)]
pub struct Consent {
    /// Confirm without a question; required without a terminal
    #[arg(long)]
    pub yes: bool,
}

impl Consent {
    /// Returns if `--yes` was given, or a person at the terminal agrees to `act`, such as `revoke the API key bot`.
    /// Called before a request is sent.
    ///
    /// # Errors
    ///
    /// A usage error without a terminal; a failure if the person does not agree.
    pub(crate) async fn obtain(self, act: &str) -> Result {
        if self.yes {
            return Ok(());
        }
        // Both: an answer out of a file, or to a question that went into one, is not consent.
        if !(io::stdin().is_terminal() && io::stderr().is_terminal()) {
            return Err(CommandFailure::Usage(anyhow!(
                "nothing was done: without a terminal, --yes is required to {act}, which cannot be undone"
            )));
        }
        // The act is an imperative: as a question it begins with a capital letter.
        let (verb, rest) = act.split_at_checked(1).unwrap_or((act, ""));
        let verb = verb.to_ascii_uppercase();
        prompt(&format!("{verb}{rest}? This cannot be undone. [y/N] "))?;
        // The runtime may have one thread, which a blocking read would stop for all of its tasks.
        let line = tokio::task::spawn_blocking(|| {
            let mut line = String::new();
            io::stdin().read_line(&mut line).map(|_count| line)
        });
        let line = line.await.map_err(anyhow::Error::from)?.context("no answer was read")?;
        match line.trim() {
            "y" | "Y" | "yes" => Ok(()),
            _no => Err(anyhow!("nothing was done").into()),
        }
    }
}

/// Key of a change, and its optional reason.
#[derive(Debug, Args)]
pub struct Why {
    /// Reason for the audit log: 1 to 200 printable characters
    #[arg(long, value_name = "TEXT")]
    pub reason: Option<Reason>,
    #[command(flatten)]
    pub request: RequestKey,
}

impl Why {
    /// The change that creates a resource or acts on one.
    pub(crate) fn post(&self, path: impl Into<String>, body: Value) -> ChangeRequest {
        ChangeRequest::post(self.request.or_made(), path, body).because(self.reason.as_ref())
    }

    /// The change that edits a resource.
    pub(crate) fn patch(&self, path: impl Into<String>, body: Value) -> ChangeRequest {
        ChangeRequest::patch(self.request.or_made(), path, body).because(self.reason.as_ref())
    }
}

/// Verb on a resource, and why.
#[derive(Debug)]
pub(crate) struct VerbOrder<R> {
    pub(crate) verb: &'static Verb,
    pub(crate) subject: R,
    /// Consent to a verb that cannot be undone.
    pub(crate) consent: Option<Consent>,
    pub(crate) why: Why,
}

impl<R: fmt::Display> VerbOrder<R> {
    /// Obtains the consent to a verb that cannot be undone, before a request is sent.
    pub(crate) async fn obtain_consent(&self) -> Result {
        let Some(consent) = self.consent else { return Ok(()) };
        let Self { verb, subject, .. } = self;
        consent.obtain(&format!("{} the {} {subject}", verb.word, verb.subject.nouns().name)).await
    }

    /// Change that carries the verb out on the resource of this id.
    pub(crate) fn change(&self, id: &str) -> ChangeRequest {
        self.why.post(self.verb.endpoint().replace("{id}", id), json!({}))
    }

    /// Sentence for a change that was not made.
    pub(crate) fn nothing(&self) -> String {
        format!("the {} was not {}", self.verb.subject.nouns().name, self.verb.done)
    }
}
