//! Reader of a caller's chat completion request: from its bytes to the normal form that is hashed,
//! priced and translated.
//!
//! No member is dropped in silence: an unread field would be part of the request's fingerprint, but not of the
//! run. An unknown member therefore is
//!
//! * kept as it is in the body, a turn, a part and a tool, for a model that accepts it by name;
//! * refused elsewhere, with the known name that it is spelled much alike;
//! * absent if it is null, everywhere but in what is passed through.
//!
//! A word that is not known, of a member that has words of its own ([`Request::WORDS`]), is kept like
//! a member that is not known: under the member's name, for a model that accepts the word.
//!
//! One exception: what clients are known to keep beside an answer. It is no part of the question,
//! so that it is accepted in the conversation and goes no further.
//!
//! Parsing does not depend on the model; [`check`] holds a request against one model's contract.

mod address;
mod content;
mod contract;
mod field;
mod message;
mod object;
pub(crate) mod option;
pub(crate) mod tool;

use holdfast_domain::model::{ModelAlias, PublicModelId};
use holdfast_domain::ports::UnsupportedParam;
use holdfast_domain::request::{
    CacheRetention, FINGERPRINT_VERSION, Message, Modalities, ReasoningEffort, Request,
    ServiceTier, UNFOLDED_VERSION, Verbosity,
};

pub use self::address::literal_addresses;
pub use self::contract::{check, known_words};
use self::field::{Field, Path};
use self::object::Object;
use crate::error::Code;
use crate::json::{self, BadJson, Draft, Node};

/// The largest integer that every JSON reader keeps exactly; `seed` alone may be larger.
pub(crate) const INTEGER_MAX: i64 = 1 << 53;
pub(crate) const N_MAX: i64 = 128;
pub(crate) const TOP_LOGPROBS_MAX: i64 = 20;

/// Refusal of a request before its key was bound to anything: the key stays free. No word of it
/// quotes the conversation.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct BadRequest {
    /// Code of the error; the HTTP status follows from it.
    pub code: Code,
    /// The field, in OpenAI's spelling of paths: `messages[0].content[1].text`.
    pub param: Option<String>,
    /// Sentences for people: the fault, and what to do about it.
    pub message: String,
}

/// A request body after reading: the question, and apart from it the form of the answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParsedRequest {
    /// The question in its normal form: all that the fingerprint covers.
    pub request: Request,
    /// Alias that the body names the model by; `None` for its id.
    pub alias: Option<ModelAlias>,
    /// The form of the answer, outside the fingerprint: a retry may choose anew.
    pub delivery: Delivery,
}

/// Finds the model of an alias.
pub type Aliases<'a> = &'a dyn Fn(&ModelAlias) -> Option<PublicModelId>;

/// Form of an answer: one JSON body, or a stream with or without its usage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Delivery {
    /// True for a stream of chunks.
    pub stream: bool,
    /// True if a last chunk has the tokens and the charge; never without `stream`.
    pub include_usage: bool,
}

/// Reads a request body into the normal form of [`FINGERPRINT_VERSION`]. No alias leads anywhere.
pub fn parse(body: &[u8]) -> Result<ParsedRequest, BadRequest> {
    parse_with(body, &|_alias| None)
}

/// The same with these aliases: the request has the id that its alias leads to.
pub fn parse_with(body: &[u8], aliases: Aliases<'_>) -> Result<ParsedRequest, BadRequest> {
    // In its place: a request is large, and `?` would copy it.
    let mut parsed = read(body, aliases);
    if let Ok(parsed) = &mut parsed {
        parsed.request.fold();
    }
    parsed
}

/// Reads the question of a body again, into the normal form of an older version, to compare it with a
/// row of that version. `None` for a version that is not known, and for a body that [`parse`] refuses.
#[must_use]
pub fn parse_as(version: u16, body: &[u8], aliases: Aliases<'_>) -> Option<Request> {
    match version {
        FINGERPRINT_VERSION => parse_with(body, aliases).ok().map(|parsed| parsed.request),
        UNFOLDED_VERSION => read(body, aliases).ok().map(|parsed| parsed.request),
        _later => None,
    }
}

/// Reads a request body, without the fold.
fn read(body: &[u8], aliases: Aliases<'_>) -> Result<ParsedRequest, BadRequest> {
    let node = json::parse(body).map_err(|bad| unreadable(bad, body))?;
    let Node::Object(_) = node else {
        return Err(BadRequest {
            code: Code::InvalidJson,
            param: None,
            message: "The body is JSON, but not an object. Send one JSON object.".to_owned(),
        });
    };
    let mut body = Object::read(Field { path: Path::Body, node }, "an object")?;
    // Taken out before the question is read, so that the form of the answer is not in the fingerprint.
    let delivery = delivery(&mut body)?;
    let (mut request, alias) = request(&mut body, aliases)?;
    // Last: what nobody has taken by now is not known here, and is kept for a model that accepts it.
    request.extras = body.extras_with_nulls();
    Ok(ParsedRequest { request, alias, delivery })
}

/// True for a member of the body that the reader knows by this name: no model needs to accept it.
#[must_use]
pub fn is_known_member(name: &str) -> bool {
    let messages = Draft::Json(r#"[{"role":"user","content":"c"}]"#);
    let others = [("model", "a/b".into()), ("messages", messages)];
    let body = Draft::object(others.into_iter().chain([(name, Draft::Json("null"))])).to_bytes();
    // The reader itself is asked, and no second list: a known name is taken out of the body, or
    // refused for its value.
    // Without the fold, which leaves out a null that is not known.
    read(&body, &|_alias| None).map_or(true, |parsed| parsed.request.extras.is_empty())
}

impl From<UnsupportedParam> for BadRequest {
    fn from(UnsupportedParam { param, rule }: UnsupportedParam) -> Self {
        let message = format!("`{param}` must be {rule}.");
        Self { code: Code::UnsupportedParameter, param: Some(param), message }
    }
}

/// Reports the position at which a body stops being JSON, as editors count: by lines and characters.
fn unreadable(bad: BadJson, body: &[u8]) -> BadRequest {
    let BadJson { fault, at } = bad;
    let (before, after) = body.split_at_checked(at).unwrap_or((body, &[]));
    let line = before.iter().filter(|byte| **byte == b'\n').count().saturating_add(1);
    let begun = before.rsplit(|byte| *byte == b'\n').next().unwrap_or_default();
    // Characters and not bytes, as editors count: a line of Chinese has a third as many.
    let column = String::from_utf8_lossy(begun).chars().count().saturating_add(1);
    let hint = match (before.trim_ascii_end(), after.trim_ascii_start()) {
        ([.., b','], [b']' | b'}', ..]) => " Remove the comma before it.",
        (_, [b'\'', ..]) => " Put strings and names in double quotes.",
        _ => "",
    };
    let message = format!(
        "The body cannot be read: {fault} at line {line}, column {column}, byte {at}.{hint} Send one JSON \
         object in UTF-8, with every member name at most once."
    );
    BadRequest { code: Code::InvalidJson, param: None, message }
}

/// The `model` of a body, even of one that [`parse`] refuses; `None` if it is no string.
#[must_use]
pub fn model_name(body: &[u8]) -> Option<String> {
    let body = json::parse(body).ok()?;
    body.get("model")?.as_str().map(str::to_owned)
}

/// The members of a body, for suggestions in place of a mistyped one.
pub(crate) const MEMBERS: [&str; 37] = [
    "audio",
    "frequency_penalty",
    "function_call",
    "functions",
    "logit_bias",
    "logprobs",
    "max_completion_tokens",
    "max_tokens",
    "messages",
    "metadata",
    "modalities",
    "model",
    "moderation",
    "n",
    "parallel_tool_calls",
    "prediction",
    "presence_penalty",
    "prompt_cache_key",
    "prompt_cache_options",
    "prompt_cache_retention",
    "reasoning_effort",
    "response_format",
    "safety_identifier",
    "seed",
    "service_tier",
    "stop",
    "store",
    "stream",
    "stream_options",
    "temperature",
    "tool_choice",
    "tools",
    "top_logprobs",
    "top_p",
    "user",
    "verbosity",
    "web_search_options",
];

fn request(
    body: &mut Object<'_, '_>,
    aliases: Aliases<'_>,
) -> Result<(Request, Option<ModelAlias>), BadRequest> {
    let (model, alias) = body.required("model", |field| model(field, aliases))?;
    let messages = body.required("messages", messages)?;
    let stop = body.optional("stop", option::stop)?;
    let metadata = body.optional_or_empty("metadata", option::metadata)?;
    let logprobs = body.optional("logprobs", field::boolean)?.unwrap_or(false);
    let bias = body.optional_or_empty("logit_bias", option::logit_bias)?;
    let tools = body.optional_or_empty("tools", tool::tools)?;
    let functions = body.optional_or_empty("functions", tool::functions)?;
    let format = body.optional_or_empty("response_format", option::response_format)?;
    let modalities = body.optional_or_empty("modalities", option::modalities)?;
    let request = Request {
        max_output_tokens: output_bound(body)?,
        n: count(body, "n", 1, N_MAX)?.unwrap_or(1),
        temperature: body.optional("temperature", |field| field.decimal(0, 2))?,
        top_p: body.optional("top_p", |field| field.decimal(0, 1))?,
        presence_penalty: body.optional("presence_penalty", |field| field.decimal(-2, 2))?,
        frequency_penalty: body.optional("frequency_penalty", |field| field.decimal(-2, 2))?,
        stop: stop.unwrap_or_default(),
        // Not bounded by `INTEGER_MAX`: seeds are data, and some callers draw them from all 64 bits.
        seed: body.optional("seed", |field| field.integer(i64::MIN, i64::MAX))?,
        user: body.optional("user", field::string)?,
        metadata: metadata.unwrap_or_default(),
        logprobs,
        top_logprobs: top_logprobs(body, logprobs)?,
        logit_bias: bias.unwrap_or_default(),
        tools: tools.unwrap_or_default(),
        tool_choice: body.optional_or_empty("tool_choice", tool::choice)?,
        parallel_tool_calls: body.optional("parallel_tool_calls", field::boolean)?,
        functions: functions.unwrap_or_default(),
        function_call: body.optional_or_empty("function_call", tool::function_choice)?,
        response_format: format.flatten(),
        modalities: modalities.unwrap_or(Modalities::Text),
        audio: body.optional_or_empty("audio", option::audio)?,
        prediction: body.optional("prediction", option::prediction)?,
        reasoning_effort: word(
            body,
            "reasoning_effort",
            ReasoningEffort::ALL,
            ReasoningEffort::label,
        )?,
        verbosity: word(body, "verbosity", Verbosity::ALL, Verbosity::label)?,
        service_tier: word(body, "service_tier", ServiceTier::ALL, ServiceTier::label)?,
        store: body.optional("store", field::boolean)?,
        safety_identifier: body.optional("safety_identifier", option::safety_identifier)?,
        prompt_cache_key: body.optional("prompt_cache_key", field::string)?,
        prompt_cache_retention: word(
            body,
            "prompt_cache_retention",
            CacheRetention::ALL,
            CacheRetention::label,
        )?,
        prompt_cache_options: body
            .optional_or_empty("prompt_cache_options", option::cache_options)?,
        web_search_options: body.optional("web_search_options", option::web_search)?,
        moderation: body.optional("moderation", option::moderation)?,
        ..Request::new(model, messages)
    };
    Ok((request, alias))
}

/// Reads a member that has words of its own. A word that is not among them stays in the body, and so
/// among the extras: a model may accept it.
fn word<T: Copy>(
    body: &mut Object<'_, '_>,
    name: &'static str,
    all: &[T],
    label: fn(T) -> &'static str,
) -> Result<Option<T>, BadRequest> {
    let is_known = |word: &str| word.is_empty() || all.iter().any(|one| label(*one) == word);
    if body.peek(name).and_then(Node::as_str).is_some_and(|word| !is_known(word)) {
        return Ok(None);
    }
    body.optional_or_empty(name, |field| field.one_of(all, label))
}

fn count<T: TryFrom<i64>>(
    body: &mut Object<'_, '_>,
    name: &'static str,
    low: i64,
    high: i64,
) -> Result<Option<T>, BadRequest> {
    let number = body.optional(name, |field| field.integer(low, high))?;
    Ok(number.and_then(|number| T::try_from(number).ok()))
}

/// The older name and the newer one are one bound.
fn output_bound(body: &mut Object<'_, '_>) -> Result<Option<u64>, BadRequest> {
    let old = body.optional("max_tokens", bound)?;
    let new = body.optional("max_completion_tokens", bound)?;
    // Both with one value ask for one thing. Of two values none may be chosen for the caller.
    match (old, new) {
        (Some(old), Some(new)) if old != new => Err(Path::Member(&Path::Body, "max_tokens")
            .invalid(format_args!("left out, or the same as max_completion_tokens"))),
        (old, new) => Ok(new.or(old)),
    }
}

/// A bound on output tokens, from 1. Its upper end is the model's, and [`check`] applies it.
fn bound(field: Field<'_, '_>) -> Result<u64, BadRequest> {
    let path = field.path;
    // The error names the model's bound and not `INTEGER_MAX`, which nobody should ask for.
    let number = field.integer(1, INTEGER_MAX).ok().and_then(|number| u64::try_from(number).ok());
    number.ok_or_else(|| {
        path.invalid(format_args!("an integer from 1 to the model's `max_output_tokens`"))
    })
}

fn top_logprobs(body: &mut Object<'_, '_>, logprobs: bool) -> Result<Option<u8>, BadRequest> {
    let number = count(body, "top_logprobs", 0, TOP_LOGPROBS_MAX)?;
    // Without `logprobs` the number would change the fingerprint and nothing of the answer.
    if number.is_some() && !logprobs {
        return Err(Path::Member(&Path::Body, "top_logprobs")
            .invalid(format_args!("left out unless logprobs is true")));
    }
    Ok(number)
}

/// Public id of a model, with the alias that led to it. A malformed name gets the same error as a model that does not
/// exist.
fn model(
    field: Field<'_, '_>,
    aliases: Aliases<'_>,
) -> Result<(PublicModelId, Option<ModelAlias>), BadRequest> {
    let path = field.path;
    let id = field::text(field)?;
    if id.is_empty() {
        return Err(path.invalid(format_args!("the id of a model")));
    }
    if let Ok(id) = PublicModelId::try_from(&*id) {
        return Ok((id, None));
    }
    let found =
        ModelAlias::try_from(&*id).ok().and_then(|alias| Some((aliases(&alias)?, Some(alias))));
    found.ok_or_else(|| BadRequest {
        code: Code::ModelNotFound,
        param: Some(path.to_string()),
        message: Code::ModelNotFound.message().to_owned(),
    })
}

fn messages(field: Field<'_, '_>) -> Result<Vec<Message>, BadRequest> {
    field.array(1..=usize::MAX, "an array of at least one message", message::read)
}

/// Form of the answer. `include_obfuscation` is accepted, and no padding is ever sent.
fn delivery(body: &mut Object<'_, '_>) -> Result<Delivery, BadRequest> {
    let stream = body.optional("stream", field::boolean)?.unwrap_or(false);
    let include_usage = body.optional_or_empty("stream_options", |field| {
        let path = field.path;
        let mut options = Object::read(field, "an object")?;
        let include_usage = options.optional("include_usage", field::boolean)?;
        // Other options of a stream ask for nothing that a whole answer could have.
        if include_usage == Some(true) && !stream {
            return Err(path.invalid(format_args!("left out unless stream is true")));
        }
        // Read for its type, and then dropped: padding hides the lengths of pieces, and none is sent.
        options.optional("include_obfuscation", field::boolean)?;
        options.end()?;
        Ok(include_usage)
    })?;
    Ok(Delivery { stream, include_usage: include_usage.flatten().unwrap_or(false) })
}
