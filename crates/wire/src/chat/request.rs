//! A caller's chat completion request, from its bytes to the normal form that is hashed, priced and
//! translated. Everything that is not known here is refused, never dropped: a field that nobody reads
//! would be part of what was asked for and of nothing that was done.
//!
//! Parsing does not depend on the model; [`check`] holds a request against one model's contract.

mod field;
mod message;

use std::borrow::Cow;
use std::collections::BTreeMap;

use holdfast_domain::model::{Contract, PublicModelId};
use holdfast_domain::request::{Decimal, Message, Request};

use self::field::{Field, Path};
use crate::error::Code;
use crate::json::{self, BadJson, Node};

/// The largest integer that every JSON reader keeps exactly; `seed` alone may be larger.
const INTEGER_MAX: i64 = 1 << 53;
const N_MAX: i64 = 128;
const STOP_MAX: usize = 4;
const METADATA_PAIRS_MAX: usize = 16;
const METADATA_KEY_CHARS_MAX: usize = 64;
const METADATA_VALUE_CHARS_MAX: usize = 512;

/// Why a request was refused before anything was bound. Nothing in it repeats what messages say.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct BadRequest {
    /// Which error.
    pub code: Code,
    /// The field, in OpenAI's spelling of paths: `messages[0].content[1].text`.
    pub param: Option<String>,
    /// What to do about it.
    pub message: String,
}

/// Reads a request body.
pub fn parse(body: &[u8]) -> Result<Request, BadRequest> {
    let Node::Object(members) = json::parse(body)? else {
        return Err(BadRequest {
            code: Code::InvalidJson,
            param: None,
            message: "The body is JSON, but not an object. Send one JSON object.".to_owned(),
        });
    };
    let mut draft = Draft::default();
    for (name, node) in members {
        draft.take(Field { path: Path::Member(&Path::Body, &name), node })?;
    }
    draft.finish()
}

/// Holds a request against the contract of its model.
pub fn check(request: &Request, contract: &Contract) -> Result<(), BadRequest> {
    let bound = contract.max_output_tokens;
    if request.max_output_tokens.is_some_and(|wanted| wanted > bound) {
        let name = "max_completion_tokens";
        return Err(Path::Member(&Path::Body, name)
            .invalid(format_args!("an integer from 1 to {bound} for this model")));
    }
    Ok(())
}

impl From<BadJson> for BadRequest {
    fn from(bad: BadJson) -> Self {
        let message = format!(
            "The body cannot be read: {bad}. Send one JSON object in UTF-8, with every member name at \
             most once."
        );
        Self { code: Code::InvalidJson, param: None, message }
    }
}

/// The members that were seen so far.
#[derive(Default)]
struct Draft {
    model: Option<PublicModelId>,
    messages: Option<Vec<Message>>,
    max_tokens: Option<i64>,
    max_completion_tokens: Option<i64>,
    n: Option<i64>,
    temperature: Option<Decimal>,
    top_p: Option<Decimal>,
    presence_penalty: Option<Decimal>,
    frequency_penalty: Option<Decimal>,
    stop: Vec<String>,
    seed: Option<i64>,
    user: Option<String>,
    metadata: BTreeMap<String, String>,
}

impl Draft {
    fn take(&mut self, field: Field<'_, '_>) -> Result<(), BadRequest> {
        let Path::Member(_, name) = field.path else { return Err(field.path.unknown()) };
        match name {
            "model" => self.model = Some(model(field)?),
            "messages" => self.messages = Some(messages(field)?),
            "max_tokens" => self.max_tokens = field.optional_integer(1, INTEGER_MAX)?,
            "max_completion_tokens" => {
                self.max_completion_tokens = field.optional_integer(1, INTEGER_MAX)?;
            }
            "n" => self.n = field.optional_integer(1, N_MAX)?,
            "temperature" => self.temperature = field.optional_decimal(0, 2)?,
            "top_p" => self.top_p = field.optional_decimal(0, 1)?,
            "presence_penalty" => self.presence_penalty = field.optional_decimal(-2, 2)?,
            "frequency_penalty" => self.frequency_penalty = field.optional_decimal(-2, 2)?,
            "stop" => self.stop = stop(field)?,
            "seed" => self.seed = field.optional_integer(i64::MIN, i64::MAX)?,
            "user" => self.user = field.optional_string()?,
            "metadata" => self.metadata = metadata(field)?,
            "stream" => stream(&field)?,
            "stream_options" => stream_options(&field)?,
            _ => return Err(field.path.unknown()),
        }
        Ok(())
    }

    fn finish(self) -> Result<Request, BadRequest> {
        let missing = |name| Path::Member(&Path::Body, name).missing();
        let count = |wanted: i64| u64::try_from(wanted).unwrap_or(u64::MAX);
        let bound = match (self.max_tokens, self.max_completion_tokens) {
            (Some(old), Some(new)) if old != new => {
                return Err(Path::Member(&Path::Body, "max_tokens")
                    .invalid(format_args!("left out, or the same as max_completion_tokens")));
            }
            (old, new) => new.or(old),
        };
        Ok(Request {
            model: self.model.ok_or_else(|| missing("model"))?,
            messages: self.messages.ok_or_else(|| missing("messages"))?,
            max_output_tokens: bound.map(count),
            n: self.n.and_then(|n| u32::try_from(n).ok()).unwrap_or(1),
            temperature: self.temperature,
            top_p: self.top_p,
            presence_penalty: self.presence_penalty,
            frequency_penalty: self.frequency_penalty,
            stop: self.stop,
            seed: self.seed,
            user: self.user,
            metadata: self.metadata,
        })
    }
}

/// An id that cannot be one is a model that does not exist.
fn model(field: Field<'_, '_>) -> Result<PublicModelId, BadRequest> {
    let path = field.path;
    let id = field.string()?;
    if id.is_empty() {
        return Err(path.invalid(format_args!("the id of a model")));
    }
    PublicModelId::try_from(&*id).map_err(|_bad| BadRequest {
        code: Code::ModelNotFound,
        param: Some(path.to_string()),
        message: Code::ModelNotFound.message().to_owned(),
    })
}

fn messages(field: Field<'_, '_>) -> Result<Vec<Message>, BadRequest> {
    let path = field.path;
    let turns = field.elements("an array of messages")?;
    if turns.is_empty() {
        return Err(path.invalid(format_args!("an array of at least one message")));
    }
    let element = |(at, node)| message::read(Field { path: Path::Element(&path, at), node });
    turns.into_iter().enumerate().map(element).collect()
}

/// A string is an array of one.
fn stop(field: Field<'_, '_>) -> Result<Vec<String>, BadRequest> {
    let path = field.path;
    let bad = || path.invalid(format_args!("a string or an array of 1 to {STOP_MAX} strings"));
    match field.node {
        Node::Null => Ok(Vec::new()),
        Node::String(text) => Ok(vec![text.into_owned()]),
        Node::Array(nodes) if (1..=STOP_MAX).contains(&nodes.len()) => {
            let element = |(at, node)| {
                Field { path: Path::Element(&path, at), node }.string().map(String::from)
            };
            nodes.into_iter().enumerate().map(element).collect()
        }
        Node::Array(_) | Node::Bool(_) | Node::Number(_) | Node::Object(_) => Err(bad()),
    }
}

fn metadata(field: Field<'_, '_>) -> Result<BTreeMap<String, String>, BadRequest> {
    let path = field.path;
    if field.node == Node::Null {
        return Ok(BTreeMap::new());
    }
    let members = field.members("an object of strings")?;
    if members.len() > METADATA_PAIRS_MAX {
        return Err(path.invalid(format_args!("an object of at most {METADATA_PAIRS_MAX} pairs")));
    }
    let pair = |(name, node): (Cow<'_, str>, Node<'_>)| {
        let path = Path::Member(&path, &name);
        let value = Field { path, node }.string()?;
        if name.chars().count() > METADATA_KEY_CHARS_MAX {
            return Err(path.invalid(format_args!(
                "under a key of at most {METADATA_KEY_CHARS_MAX} characters"
            )));
        }
        if value.chars().count() > METADATA_VALUE_CHARS_MAX {
            return Err(path.invalid(format_args!(
                "a string of at most {METADATA_VALUE_CHARS_MAX} characters"
            )));
        }
        Ok((name.into_owned(), value.into_owned()))
    };
    members.into_iter().map(pair).collect()
}

fn stream(field: &Field<'_, '_>) -> Result<(), BadRequest> {
    match &field.node {
        Node::Null | Node::Bool(false) => Ok(()),
        Node::Bool(true) => {
            Err(field.path.unsupported("false: answers come whole, not as a stream"))
        }
        Node::Number(_) | Node::String(_) | Node::Array(_) | Node::Object(_) => {
            Err(field.path.invalid(format_args!("true or false")))
        }
    }
}

fn stream_options(field: &Field<'_, '_>) -> Result<(), BadRequest> {
    if field.node == Node::Null {
        return Ok(());
    }
    Err(field.path.unsupported("left out: answers come whole, not as a stream"))
}
