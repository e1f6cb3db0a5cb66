//! Reading of a turn. The role is read first, wherever it stands, because it decides which other
//! members there may be.

use holdfast_domain::request::{
    AssistantMessage, Content, FunctionCall, Item, Message, Role, ToolCall, ToolKind,
};

use super::BadRequest;
use super::content;
use super::field::{self, Field, Path};
use super::object::Object;
use super::tool;
use crate::json::Node;

const ROLES: [&str; 6] = ["developer", "system", "user", "assistant", "tool", "function"];

/// The members of an assistant's turn: suggestions for a mistyped one.
pub(super) const REPLY_MEMBERS: [&str; 7] =
    ["role", "name", "content", "refusal", "audio", "tool_calls", "function_call"];
/// The members of any other turn.
pub(super) const MEMBERS: [&str; 4] = ["role", "name", "content", "tool_call_id"];

pub(super) fn read(field: Field<'_, '_>) -> Result<Message, BadRequest> {
    let mut turn = Object::read(field, "an object")?;
    let role = turn.required("role", |field| field.one_of(&ROLES, |role| role))?;
    let message = match role {
        "developer" => named_turn(Role::Developer, &mut turn, text)?,
        "system" => named_turn(Role::System, &mut turn, text)?,
        "user" => named_turn(Role::User, &mut turn, |field| content::read(field, content::ANY))?,
        "tool" => {
            let call_id = turn.required("tool_call_id", field::string)?;
            named_turn(Role::Tool { call_id }, &mut turn, text)?
        }
        "function" => Message {
            name: Some(turn.required("name", field::string)?),
            ..Message::new(Role::Function, turn.required("content", null_or_text)?)
        },
        _ => return assistant(turn),
    };
    Ok(Message { extras: turn.extras(), ..message })
}

fn named_turn<'a>(
    role: Role,
    turn: &mut Object<'_, 'a>,
    read: impl FnOnce(Field<'_, 'a>) -> Result<Content, BadRequest>,
) -> Result<Message, BadRequest> {
    let name = turn.optional("name", field::string)?;
    let content = turn.required("content", read)?;
    Ok(Message { name, ..Message::new(role, Some(content)) })
}

/// Text of instructions, or of a result. Null and an empty array are an empty text: a result may be empty, and
/// instructions then have no effect. Not of a user, whose turn must not be empty.
fn text(field: Field<'_, '_>) -> Result<Content, BadRequest> {
    if field.node == Node::Null || field.is_empty() {
        return Ok(Content::Text(String::new()));
    }
    content::read(field, content::TEXT)
}

fn null_or_text(field: Field<'_, '_>) -> Result<Option<Content>, BadRequest> {
    match &field.node {
        Node::Null => Ok(None),
        Node::Array(parts) if parts.is_empty() => Ok(None),
        Node::Array(_) | Node::String(_) | Node::Bool(_) | Node::Number(_) | Node::Object(_) => {
            field::string(field).map(Content::Text).map(Some)
        }
    }
}

/// An assistant's turn. Clients append our answer to the conversation as they hold it, with what
/// official SDKs and frameworks keep beside it, so that all of it is accepted. Members beside a
/// call are left out here, and make no difference between two requests. Members beside the message
/// ([`AssistantMessage::METADATA`]) do, because a model may accept them.
fn assistant(mut turn: Object<'_, '_>) -> Result<Message, BadRequest> {
    let name = turn.optional("name", field::string)?;
    let content = turn.optional("content", assistant_content)?.flatten();
    let refusal = turn.optional("refusal", field::string)?;
    let audio_id = turn.optional_or_empty("audio", |field| {
        let mut audio = Object::read(field, "an object with `id`")?;
        let id = audio.required("id", field::string)?;
        audio.end()?;
        Ok(id)
    })?;
    let tool_calls = turn.optional_or_empty("tool_calls", |field| {
        field.array(0..=usize::MAX, "an array of tool calls", tool_call)
    })?;
    let tool_calls = tool_calls.unwrap_or_default();
    let function_call = turn.optional_or_empty("function_call", function_call)?;
    // Only calls may stand alone. An empty turn is refused here, before a provider refuses it.
    let says = content.is_some() || refusal.is_some() || audio_id.is_some();
    if !says && tool_calls.is_empty() && function_call.is_none() {
        return Err(Path::Member(&turn.path, "content").missing());
    }
    // Our own answers have `annotations`, most often empty: whoever sends one back says nothing by it.
    if turn.peek("annotations").is_some_and(says_nothing) {
        turn.optional("annotations", |_nothing| Ok(()))?;
    }
    let extras = turn.extras_with_nulls();
    let reply = AssistantMessage { refusal, audio_id, tool_calls, function_call };
    Ok(Message { role: Role::Assistant(reply), name, content, extras })
}

fn says_nothing(annotations: &Node<'_>) -> bool {
    *annotations == Node::Null || annotations.as_array().is_some_and(<[Node<'_>]>::is_empty)
}

/// Texts, or one refusal; `None` for an empty array. An empty text stays one: servers that insist on a
/// text next to calls are sent it.
fn assistant_content(field: Field<'_, '_>) -> Result<Option<Content>, BadRequest> {
    if field.node.as_array().is_some_and(<[Node<'_>]>::is_empty) {
        return Ok(None);
    }
    let path = field.path;
    let content = content::read(field, content::TEXT_OR_REFUSAL)?;
    if let Content::Parts(parts) = &content
        && parts.len() > 1
        && parts.iter().any(|part| matches!(part.item, Item::Refusal(_)))
    {
        return Err(path.invalid(format_args!("text parts, or exactly one refusal part")));
    }
    Ok(Some(content))
}

fn tool_call(field: Field<'_, '_>) -> Result<ToolCall, BadRequest> {
    let mut call = Object::read(field, "an object")?;
    // Clients that fold chunks keep `index`; the other member is LiteLLM's.
    call.remove(&["index", "provider_specific_fields"]);
    let id = call.required("id", field::string)?;
    let kind = tool::kind(&mut call)?;
    let (name, input) = call.required(kind.label(), |field| called(field, kind))?;
    call.end()?;
    Ok(ToolCall { id, kind, name, input })
}

fn function_call(field: Field<'_, '_>) -> Result<FunctionCall, BadRequest> {
    let (name, arguments) = called(field, ToolKind::Function)?;
    Ok(FunctionCall { name, arguments })
}

/// Name and input of a call. The input is a string that is not parsed: it need not be JSON.
fn called(field: Field<'_, '_>, kind: ToolKind) -> Result<(String, String), BadRequest> {
    let mut called = Object::read(field, "an object")?;
    let name = called.required("name", field::string)?;
    let input = match kind {
        ToolKind::Function => called.required("arguments", field::string)?,
        ToolKind::Custom => called.required("input", field::string)?,
    };
    // The Python SDK keeps the arguments that it has parsed beside those that were said.
    called.remove(&["parsed_arguments", "provider_specific_fields"]);
    called.end()?;
    Ok((name, input))
}
