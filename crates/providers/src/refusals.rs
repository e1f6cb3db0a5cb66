//! Refusals of what a kind cannot do: one table of fields and kinds, and the walk through a request
//! that looks each of its fields up.
//!
//! ```text
//! request ─▶ FIELDS ─▶ TOOLS ─▶ of each message: MESSAGES ─▶ PARTS ─▶ CALLS ─▶ extra fields
//! ```
//!
//! A field that has no place at a provider is refused by name, before the key is bound: no field is dropped,
//! clamped or guessed; members that a model `ignores` are gone before. A field without a row here for a kind
//! has a place in the kind's rendering, or means there the same as its absence. So a rendering never fails, and
//! a row that is missing loses a field of the caller.
//!
//! The walk allocates no memory: it runs for each route that a request might take, and requests may be
//! megabytes of pictures. Its first finding is in the caller's error. `docs/reference/providers.md` has the same table
//! for callers; a test compares them.
//!
//! Limits: `CANDIDATES_MAX`, `STOPS_MAX`, `MARKS_MAX`. Pictures by their address are
//! [`images`](crate::images)'s, for every kind. OpenAI and Azure have no column: they take all.

use std::borrow::Cow;
use std::collections::BTreeMap;

use holdfast_domain::ports::UnsupportedParam;
use holdfast_domain::request::{
    AssistantMessage, CacheMode, Content, ContentPart, CustomTool, Decimal, Function, Item,
    JsonSchema, Message, Modalities, Opaque, ReasoningEffort, Request, ResponseFormat, Role,
    ServiceTier, Tool, ToolCall, ToolChoice, ToolKind, ToolMode, Verbosity,
};

use self::Column::{Anthropic, Bedrock, Gemini, SamplingAnthropic};
use crate::late_system::{LateSystem, is_instruction};
use crate::media::{
    ANTHROPIC_DOCUMENTS, BEDROCK_DOCUMENTS, GEMINI_DOCUMENTS, GEMINI_PICTURES, PICTURES, inline,
    is_web,
};
use crate::tools::{allowed_names, callable_functions, is_object, must_call};

/// Column of the table: a kind, or one of two if an option of the operator decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Column {
    Anthropic,
    /// Anthropic's older models, with `sampling`.
    SamplingAnthropic,
    Gemini,
    Bedrock,
}

/// Kinds that refuse a field, the field, the condition under which they do, and the rule that ends
/// the sentence "It must be …".
struct Row<F>(&'static [Column], &'static str, F, &'static str);

type FieldRow = Row<fn(&Request) -> bool>;
type ToolRow = Row<fn(&Tool) -> bool>;
type MessageRow = Row<fn(&MessageInPlace<'_>) -> bool>;
type PartRow = Row<fn(&PartInPlace<'_>) -> bool>;
type CallRow = Row<fn(&ToolCall) -> bool>;

const EVERY: &[Column] = &[Anthropic, SamplingAnthropic, Gemini, Bedrock];
const ANTHROPICS: &[Column] = &[Anthropic, SamplingAnthropic];
const NOT_GEMINI: &[Column] = &[Anthropic, SamplingAnthropic, Bedrock];
const NOT_BEDROCK: &[Column] = &[Anthropic, SamplingAnthropic, Gemini];
const NOT_ANTHROPIC: &[Column] = &[Gemini, Bedrock];

/// The rule for a field that has no place there.
const LEFT_OUT: &str = "left out for this model";

/// Members of a tool that Anthropic's spelling writes.
const WRITTEN_OF_TOOLS: &[&str] = &["name", "description", "input_schema", "strict", "type"];
/// Members of a part that Anthropic's spelling writes.
const WRITTEN_OF_PARTS: &[&str] = &["type", "text", "source", "title"];
/// The same of a part with a `prompt_cache_breakpoint`.
const WRITTEN_OF_MARKED_PARTS: &[&str] = &["type", "text", "source", "title", "cache_control"];

/// Candidates that a request to Gemini may have.
const CANDIDATES_MAX: u32 = 8;
/// Stop sequences that a request to Gemini may have.
const STOPS_MAX: usize = 5;
/// Places in a prompt that Anthropic may cache.
const MARKS_MAX: usize = 4;

/// Fields of the request.
#[rustfmt::skip]
const FIELDS: &[FieldRow] = &[
    Row(NOT_GEMINI, "n", |request| request.n != 1, "1 for this model"),
    Row(&[Gemini], "n", |request| request.n > CANDIDATES_MAX, "8 at most for this model"),
    // 1 is the default of both. Models that reason by themselves take no other.
    Row(&[Anthropic], "temperature", |request| is_other(request.temperature, 1), "1 or left out for this model"),
    Row(&[SamplingAnthropic, Bedrock], "temperature", |request| is_beyond_1(request.temperature), "a number from 0 to 1 for this model"),
    Row(&[SamplingAnthropic], "temperature", |request| reasons(request) && is_other(request.temperature, 1), "left out where the model reasons"),
    Row(&[Anthropic], "top_p", |request| is_other(request.top_p, 1), "1 or left out for this model"),
    Row(&[SamplingAnthropic, Bedrock], "top_p", |request| is_beyond_1(request.top_p), "a number from 0 to 1 for this model"),
    Row(&[SamplingAnthropic], "top_p", |request| reasons(request) && is_other(request.top_p, 1), "left out where the model reasons"),
    Row(NOT_GEMINI, "presence_penalty", |request| is_other(request.presence_penalty, 0), LEFT_OUT),
    Row(NOT_GEMINI, "frequency_penalty", |request| is_other(request.frequency_penalty, 0), LEFT_OUT),
    Row(&[Gemini], "stop", |request| request.stop.len() > STOPS_MAX, "five sequences at most for this model"),
    Row(NOT_GEMINI, "seed", |request| request.seed.is_some(), LEFT_OUT),
    Row(&[Gemini], "seed", |request| request.seed.is_some_and(|seed| i32::try_from(seed).is_err()), "of 32 bits for this model"),
    // Both go to one place there.
    Row(ANTHROPICS, "user", |request| request.user.as_ref().zip(request.safety_identifier.as_ref()).is_some_and(|(user, other)| user != other), "left out, or the same as `safety_identifier`, for this model"),
    Row(NOT_ANTHROPIC, "user", |request| request.user.is_some(), LEFT_OUT),
    Row(NOT_BEDROCK, "metadata", |request| !request.metadata.is_empty(), LEFT_OUT),
    Row(EVERY, "logprobs", |request| request.logprobs, "false for this model"),
    Row(EVERY, "top_logprobs", |request| request.top_logprobs.is_some(), LEFT_OUT),
    Row(EVERY, "logit_bias", |request| !request.logit_bias.is_empty(), LEFT_OUT),
    Row(NOT_ANTHROPIC, "parallel_tool_calls", |request| request.parallel_tool_calls == Some(false) && !request.tools.is_empty(), "true or left out for this model"),
    Row(EVERY, "functions", |request| !request.functions.is_empty(), "sent as `tools` for this model"),
    Row(EVERY, "function_call", |request| request.function_call.is_some(), "sent as `tool_choice` for this model"),
    Row(EVERY, "modalities", |request| request.modalities != Modalities::Text, "text alone for this model"),
    Row(EVERY, "audio", |request| request.audio.is_some(), LEFT_OUT),
    Row(EVERY, "prediction", |request| request.prediction.is_some(), LEFT_OUT),
    Row(EVERY, "verbosity", |request| request.verbosity.is_some_and(|said| said != Verbosity::Medium), LEFT_OUT),
    Row(EVERY, "store", |request| request.store == Some(true), "false for this model"),
    Row(NOT_ANTHROPIC, "safety_identifier", |request| request.safety_identifier.is_some(), LEFT_OUT),
    Row(EVERY, "prompt_cache_key", |request| request.prompt_cache_key.is_some(), LEFT_OUT),
    Row(EVERY, "prompt_cache_retention", |request| request.prompt_cache_retention.is_some(), LEFT_OUT),
    // Every other member of it has its default as its only value, and means nothing without OpenAI's cache.
    Row(EVERY, "prompt_cache_options", |request| request.prompt_cache_options.is_some_and(|options| options.mode == Some(CacheMode::Explicit)), "left out, or of the mode implicit, for this model"),
    Row(EVERY, "web_search_options", |request| request.web_search_options.is_some(), LEFT_OUT),
    Row(EVERY, "moderation", |request| request.moderation.is_some(), LEFT_OUT),
    Row(EVERY, "tool_choice", |request| allowed_names(request).is_none(), "one of the functions in `tools` for this model"),
    // Converse has no such choice, and to leave the tools out would drop a field.
    Row(&[Bedrock], "tool_choice", |request| request.tool_choice == Some(ToolChoice::Mode(ToolMode::None)) && !callable_functions(request).is_empty(), "auto, required or a function where there are tools for this model"),
    Row(ANTHROPICS, "reasoning_effort", |request| request.reasoning_effort == Some(ReasoningEffort::Minimal), "none, low, medium, high, xhigh or max for this model"),
    // Models refuse to think before a call that they are told to make.
    Row(ANTHROPICS, "reasoning_effort", |request| reasons(request) && must_call(request), "none or left out where a tool must be called for this model"),
    Row(&[Gemini], "reasoning_effort", |request| request.reasoning_effort == Some(ReasoningEffort::Max), "none, minimal, low, medium, high or xhigh for this model"),
    Row(&[Bedrock], "reasoning_effort", |request| request.reasoning_effort.is_some(), LEFT_OUT),
    Row(NOT_GEMINI, "response_format.type", |request| request.response_format == Some(ResponseFormat::JsonObject), "text or json_schema for this model"),
    Row(EVERY, "response_format.json_schema.schema", |request| schema(request).is_some_and(|schema| schema.schema.is_none()), "there for this model"),
    Row(ANTHROPICS, "service_tier", |request| !matches!(request.service_tier, None | Some(ServiceTier::Auto | ServiceTier::Default)), "auto or default for this model"),
    Row(NOT_ANTHROPIC, "service_tier", |request| matches!(request.service_tier, Some(ServiceTier::Scale | ServiceTier::Fast)), "auto, default, flex or priority for this model"),
    // Instructions go apart, and a conversation without turns is an error there.
    Row(EVERY, "messages", |request| request.messages.iter().all(is_instruction), "a conversation with a user, assistant or tool message for this model"),
];

/// Members of a tool on offer.
const TOOLS: &[ToolRow] =
    &[Row(EVERY, "type", |tool| matches!(tool, Tool::Custom(_)), "function for this model")];

/// Members of a message.
#[rustfmt::skip]
const MESSAGES: &[MessageRow] = &[
    Row(EVERY, "role", |at| matches!(at.role(), Role::Function), "tool, with `tools`, for this model"),
    Row(EVERY, "name", |at| at.result_of().is_none() && at.name().is_some(), LEFT_OUT),
    Row(EVERY, "name", |at| at.result_of().is_some_and(|id| at.name().is_some_and(|name| at.earlier.called.get(id) != Some(&name))), "left out, or the name of the call that the result is of, for this model"),
    Row(ANTHROPICS, "tool_call_id", |at| at.result_of().is_some_and(|id| !is_id(id, b"_-", usize::MAX)), "an id of letters, digits, underscores and hyphens for this model"),
    Row(&[Gemini], "tool_call_id", |at| at.result_of().is_some_and(|id| !at.earlier.called.contains_key(id)), "the id of an earlier call for this model"),
    Row(&[Bedrock], "tool_call_id", |at| at.result_of().is_some_and(|id| !is_id(id, b"_-.:", 64)), "an id of 1 to 64 letters, digits, `_`, `-`, `.` and `:` for this model"),
    Row(NOT_ANTHROPIC, "content", |at| at.result_of().is_some() && !at.message.parts().iter().all(ContentPart::is_bare_text), "text without marks for this model"),
    Row(EVERY, "audio", |at| at.reply().is_some_and(|reply| reply.audio_id.is_some()), LEFT_OUT),
    Row(EVERY, "function_call", |at| at.reply().is_some_and(|reply| reply.function_call.is_some()), "sent as `tool_calls` for this model"),
    Row(NOT_BEDROCK, "content", |at| at.is_empty(), "a text that is not empty for this model"),
    // A mark of an empty text is a block of its own there.
    Row(&[Bedrock], "content", |at| at.is_empty() && !at.message.parts().iter().any(|part| part.cache_breakpoint.is_some()), "a text that is not empty for this model"),
];

/// Members of a message, if the operator refuses instructions after the first turn.
#[rustfmt::skip]
const WITHOUT_LATE_SYSTEM: &[MessageRow] = &[
    Row(EVERY, "role", |at| at.earlier.has_turn && is_instruction(at.message) && !at.has_no_text(), "user, assistant or tool after the first turn for this model"),
];

/// Members of a part of a message's content.
#[rustfmt::skip]
const PARTS: &[PartRow] = &[
    Row(&[Gemini], "prompt_cache_breakpoint", |at| at.part.cache_breakpoint.is_some(), LEFT_OUT),
    Row(NOT_GEMINI, "type", |at| matches!(at.part.item, Item::Audio { .. }), "text, image_url or file for this model"),
    Row(EVERY, "image_url.detail", |at| matches!(at.part.item, Item::Image { detail: Some(_), .. }), "auto for this model"),
    Row(ANTHROPICS, "image_url.url", |at| at.picture().is_some_and(|url| !is_web(url) && inline(url, &PICTURES).is_none()), "http: or https:, or a data: URL of a JPEG, PNG, GIF or WebP in base64, for this model"),
    Row(&[Gemini], "image_url.url", |at| at.picture().is_some_and(|url| inline(url, &GEMINI_PICTURES).is_none()), "a data: URL of a PNG, JPEG, WebP, HEIC or HEIF in base64 for this model"),
    Row(&[Bedrock], "image_url.url", |at| at.picture().is_some_and(|url| inline(url, &PICTURES).is_none()), "a data: URL of a PNG, JPEG, GIF or WebP in base64 for this model"),
    Row(EVERY, "file.file_id", |at| matches!(at.part.item, Item::File { id: Some(_), .. }), LEFT_OUT),
    Row(ANTHROPICS, "file.file_data", |at| at.document().is_some_and(|url| inline(url, &ANTHROPIC_DOCUMENTS).is_none()), "a data: URL of a PDF in base64 for this model"),
    Row(&[Gemini], "file.file_data", |at| at.document().is_some_and(|url| inline(url, &GEMINI_DOCUMENTS).is_none()), "a data: URL of a PDF or a plain text in base64 for this model"),
    Row(&[Bedrock], "file.file_data", |at| at.document().is_some_and(|url| inline(url, &BEDROCK_DOCUMENTS).is_none()), "a data: URL of a PDF, a text, Markdown or CSV in base64 for this model"),
    // An empty text is not sent there, nor is its mark.
    Row(ANTHROPICS, "prompt_cache_breakpoint.ttl", |at| at.marks > 0 && at.has_ttl(), LEFT_OUT),
    Row(&[Bedrock], "prompt_cache_breakpoint.ttl", |at| at.has_ttl(), LEFT_OUT),
    Row(ANTHROPICS, "prompt_cache_breakpoint", |at| at.marks > MARKS_MAX, "at four places at most for this model"),
];

/// Members of a call of a tool in an earlier answer.
#[rustfmt::skip]
const CALLS: &[CallRow] = &[
    Row(EVERY, "type", |call| call.kind == ToolKind::Custom, "function for this model"),
    Row(EVERY, "function.arguments", |call| !is_object(&call.input), "a JSON object for this model"),
    Row(ANTHROPICS, "id", |call| !is_id(&call.id, b"_-", usize::MAX), "an id of letters, digits, underscores and hyphens for this model"),
    Row(&[Bedrock], "id", |call| !is_id(&call.id, b"_-.:", 64), "an id of 1 to 64 letters, digits, `_`, `-`, `.` and `:` for this model"),
];

/// State of the walk before a message.
#[derive(Default)]
struct Earlier<'r> {
    /// A turn came: instructions are late.
    has_turn: bool,
    /// Marks for the cache.
    marks: usize,
    /// Names of calls of tools by their id, of several with one id the last. A map, because a conversation
    /// may have thousands of calls and results.
    called: BTreeMap<&'r str, &'r str>,
}

struct MessageInPlace<'a> {
    message: &'a Message,
    earlier: &'a Earlier<'a>,
}

struct PartInPlace<'a> {
    part: &'a ContentPart,
    /// Marks for the cache up to this part, which is marked, or 0.
    marks: usize,
}

/// Finds the first field of a request that a kind does not support. `written` are the members that the kind
/// writes: an extra field of such a name would stand there twice.
pub(crate) fn check(
    request: &Request,
    by: Column,
    late_system: LateSystem,
    written: &[&str],
) -> Result<(), UnsupportedParam> {
    // Every field is named, so that a new one has to be thought of: a row for each kind that has no
    // place for it, and a place in the rendering of the others.
    let Request {
        model: _,
        messages,
        max_output_tokens: _,
        n: _,
        temperature: _,
        top_p: _,
        presence_penalty: _,
        frequency_penalty: _,
        stop: _,
        seed: _,
        user: _,
        metadata: _,
        logprobs: _,
        top_logprobs: _,
        logit_bias: _,
        tools,
        tool_choice: _,
        parallel_tool_calls: _,
        functions: _,
        function_call: _,
        response_format: _,
        modalities: _,
        audio: _,
        prediction: _,
        reasoning_effort: _,
        verbosity: _,
        service_tier: _,
        store: _,
        safety_identifier: _,
        prompt_cache_key: _,
        prompt_cache_retention: _,
        prompt_cache_options: _,
        web_search_options: _,
        moderation: _,
        extras,
    } = request;
    refuse(FIELDS, by, |asks| asks(request), str::to_owned)?;
    for (at, tool) in tools.iter().enumerate() {
        let path = |member: &str| format!("tools[{at}].{member}");
        refuse(TOOLS, by, |asks| asks(tool), path)?;
        let (Tool::Function(Function { extras, .. }) | Tool::Custom(CustomTool { extras, .. })) =
            tool;
        refuse_extras(extras, by, WRITTEN_OF_TOOLS, path)?;
    }
    let mut earlier = Earlier::default();
    for (at, message) in messages.iter().enumerate() {
        let path = |member: &str| format!("messages[{at}].{member}");
        if late_system == LateSystem::Refuse {
            let at = MessageInPlace { message, earlier: &earlier };
            refuse(WITHOUT_LATE_SYSTEM, by, |asks| asks(&at), path)?;
        }
        check_message(message, by, &mut earlier, path)?;
    }
    // A word that the model accepts is OpenAI's spelling of a member that is translated.
    let has_place = |name: &str| !written.contains(&name) && !Request::WORDS.contains(&name);
    match extras.keys().find(|name| !has_place(name)) {
        Some(name) => Err(unsupported(name.clone(), LEFT_OUT)),
        None => Ok(()),
    }
}

/// Refuses extra members of a tool or a part, but for those that Anthropic has for both: `cache_control`
/// and the like go to it as they come, next to the members that are `written`.
fn refuse_extras(
    extras: &BTreeMap<String, Opaque>,
    by: Column,
    written: &[&str],
    path: impl Fn(&str) -> String,
) -> Result<(), UnsupportedParam> {
    let has_place = |name: &str| ANTHROPICS.contains(&by) && !written.contains(&name);
    match extras.keys().find(|name| !has_place(name)) {
        Some(name) => Err(unsupported(path(name), LEFT_OUT)),
        None => Ok(()),
    }
}

fn check_message<'r>(
    message: &'r Message,
    by: Column,
    earlier: &mut Earlier<'r>,
    path: impl Fn(&str) -> String,
) -> Result<(), UnsupportedParam> {
    let at = MessageInPlace { message, earlier };
    refuse(MESSAGES, by, |asks| asks(&at), &path)?;
    for (part_at, part) in message.parts().iter().enumerate() {
        let is_marked = part.cache_breakpoint.is_some() && !is_empty_text(part);
        earlier.marks = earlier.marks.saturating_add(usize::from(is_marked));
        let at = PartInPlace { part, marks: if is_marked { earlier.marks } else { 0 } };
        let part_path = |member: &str| path(&format!("content[{part_at}].{member}"));
        refuse(PARTS, by, |asks| asks(&at), part_path)?;
        let written = if is_marked { WRITTEN_OF_MARKED_PARTS } else { WRITTEN_OF_PARTS };
        refuse_extras(&part.extras, by, written, part_path)?;
    }
    earlier.has_turn |= !is_instruction(message);
    let Message { role, name: _, content: _, extras } = message;
    // Among the metadata is what the caller was told that the model thought. The model wants its
    // thoughts as it said them: what is kept of them stands for it.
    let is_metadata = |name: &&String| {
        matches!(role, Role::Assistant(_)) && AssistantMessage::METADATA.contains(&name.as_str())
    };
    if let Some(name) = extras.keys().find(|name| !is_metadata(name)) {
        return Err(unsupported(path(name), LEFT_OUT));
    }
    let Role::Assistant(reply) = role else {
        return Ok(());
    };
    // Each member is named, here and above: a new one must not be dropped because nobody thought of it.
    let AssistantMessage { refusal: _, audio_id: _, tool_calls, function_call: _ } = reply;
    for (call_at, call) in tool_calls.iter().enumerate() {
        let call_path = |member: &str| path(&format!("tool_calls[{call_at}].{member}"));
        refuse(CALLS, by, |asks| asks(call), call_path)?;
        earlier.called.insert(&call.id, &call.name);
    }
    Ok(())
}

/// Finds the first row of a kind whose condition holds.
fn refuse<F>(
    rows: &[Row<F>],
    by: Column,
    asks: impl Fn(&F) -> bool,
    path: impl Fn(&str) -> String,
) -> Result<(), UnsupportedParam> {
    let mut rows = rows.iter();
    match rows.find(|Row(kinds, _, condition, _)| kinds.contains(&by) && asks(condition)) {
        Some(Row(_, member, _, rule)) => Err(unsupported(path(member), rule)),
        None => Ok(()),
    }
}

/// `rule` ends the sentence "It must be …".
pub(crate) const fn unsupported(param: String, rule: &'static str) -> UnsupportedParam {
    UnsupportedParam { param, rule: Cow::Borrowed(rule) }
}

impl<'a> MessageInPlace<'a> {
    const fn role(&self) -> &'a Role {
        &self.message.role
    }

    /// Answer of the model, if the message is one.
    const fn reply(&self) -> Option<&'a AssistantMessage> {
        match self.role() {
            Role::Assistant(reply) => Some(reply),
            Role::Developer | Role::System | Role::User | Role::Tool { .. } | Role::Function => {
                None
            }
        }
    }

    /// Id of the call whose result the message is.
    fn result_of(&self) -> Option<&'a str> {
        match self.role() {
            Role::Tool { call_id } => Some(call_id),
            Role::Developer | Role::System | Role::User | Role::Assistant(_) | Role::Function => {
                None
            }
        }
    }

    /// Name of the speaker; an empty one is none.
    fn name(&self) -> Option<&'a str> {
        self.message.name.as_deref().filter(|name| !name.is_empty())
    }

    /// True for an empty turn that no kind takes: a tool's result may be empty, and empty instructions are
    /// left out.
    fn is_empty(&self) -> bool {
        let may_be_empty = self.result_of().is_some() || is_instruction(self.message);
        let is_silent = |reply: &AssistantMessage| {
            reply.tool_calls.is_empty() && reply.refusal.as_ref().is_none_or(String::is_empty)
        };
        !may_be_empty && self.has_no_text() && self.reply().is_none_or(is_silent)
    }

    fn has_no_text(&self) -> bool {
        match &self.message.content {
            None => true,
            Some(Content::Text(text)) => text.is_empty(),
            Some(Content::Parts(parts)) => parts.iter().all(is_empty_text),
        }
    }
}

impl<'a> PartInPlace<'a> {
    fn picture(&self) -> Option<&'a str> {
        match &self.part.item {
            Item::Image { url, .. } => Some(url),
            Item::Text(_) | Item::Refusal(_) | Item::Audio { .. } | Item::File { .. } => None,
        }
    }

    /// URL of a file; empty if it has none, which no kind takes for a document: it is refused, not sent.
    fn document(&self) -> Option<&'a str> {
        match &self.part.item {
            Item::File { data, .. } => Some(data.as_deref().unwrap_or_default()),
            Item::Text(_) | Item::Refusal(_) | Item::Audio { .. } | Item::Image { .. } => None,
        }
    }

    fn has_ttl(&self) -> bool {
        self.part.cache_breakpoint.is_some_and(|mark| mark.ttl.is_some())
    }
}

fn is_empty_text(part: &ContentPart) -> bool {
    matches!(&part.item, Item::Text(text) | Item::Refusal(text) if text.is_empty())
}

/// True if an id is of letters, digits and these others, and not longer.
fn is_id(id: &str, others: &[u8], length_max: usize) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || others.contains(&byte);
    (1..=length_max).contains(&id.len()) && id.bytes().all(is_plain)
}

/// True if a number is there and is not its default.
pub(crate) fn is_other(number: Option<Decimal>, default: i32) -> bool {
    number.is_some_and(|number| !number.is_within(default, default))
}

fn is_beyond_1(number: Option<Decimal>) -> bool {
    number.is_some_and(|number| !number.is_within(0, 1))
}

fn reasons(request: &Request) -> bool {
    request.reasoning_effort.is_some_and(|effort| effort != ReasoningEffort::None)
}

fn schema(request: &Request) -> Option<&JsonSchema> {
    match &request.response_format {
        Some(ResponseFormat::JsonSchema(schema)) => {
            // A new member wants a row of the table, or a place in what each kind renders.
            let JsonSchema { name: _, description: _, schema: _, strict: _ } = schema;
            Some(schema)
        }
        Some(ResponseFormat::JsonObject) | None => None,
    }
}

#[cfg(test)]
mod tests;
