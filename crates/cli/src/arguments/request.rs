//! Arguments that go with every change: its request key, and why it is made.

use std::fmt;

use clap::Args;
use holdfast_accounts::{Reason, Verb};
use serde_json::{Value, json};
use uuid::Uuid;

use super::value;
use crate::door::{ChangeKey, ChangeRequest};

/// Key of a change.
#[derive(Clone, Copy, Args)]
pub struct RequestKey {
    /// Names this change: the same one again changes nothing [default: a new UUIDv4, printed]
    #[arg(long = "key", value_name = "UUID", value_parser = value::posting_key)]
    pub uuid: Option<Uuid>,
}

impl RequestKey {
    /// The key of the change: this one, or one made here.
    pub(crate) fn or_made(self) -> ChangeKey {
        ChangeKey::new(self.uuid)
    }
}

impl fmt::Debug for RequestKey {
    /// Without the key: what a command asks for is compared by its text, and the same command asks
    /// for the same whether its key was made or given.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RequestKey")
    }
}

/// Key of a change, and its reason where nobody has to give one.
#[derive(Debug, Args)]
pub struct Why {
    /// Why, for the trail: 1 to 200 printable characters
    #[arg(long, value_name = "TEXT")]
    pub reason: Option<Reason>,
    #[command(flatten)]
    pub request: RequestKey,
}

impl Why {
    /// The change that makes or does something.
    pub(crate) fn post(&self, path: impl Into<String>, body: Value) -> ChangeRequest {
        ChangeRequest::post(self.request.or_made(), path, body).because(self.reason.as_ref())
    }

    /// The change that edits something.
    pub(crate) fn patch(&self, path: impl Into<String>, body: Value) -> ChangeRequest {
        ChangeRequest::patch(self.request.or_made(), path, body).because(self.reason.as_ref())
    }
}

/// Verb on a resource, and why.
#[derive(Debug)]
pub(crate) struct VerbOrder<R> {
    pub(crate) verb: &'static Verb,
    pub(crate) subject: R,
    pub(crate) why: Why,
}

impl<R> VerbOrder<R> {
    /// The change that carries it out on the resource of this id.
    pub(crate) fn change(&self, id: &str) -> ChangeRequest {
        self.why.post(self.verb.endpoint().replace("{id}", id), json!({}))
    }

    /// Sentence for a change that was not made.
    pub(crate) fn nothing(&self) -> String {
        format!("the {} was not {}", self.verb.subject.nouns().name, self.verb.done)
    }
}
