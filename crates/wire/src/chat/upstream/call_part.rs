//! One element of a list of tool calls, whole or a piece: its marks, its name and its input, read by one rule.

use holdfast_domain::ports::UnreadableReason;
use holdfast_domain::request::ToolKind;

use super::members::index;
use crate::json::Node;

/// Fields that an operator finds in the log for an answer that was not read: those of a whole
/// message, or of a piece.
#[derive(Debug)]
pub(super) struct CallFields {
    /// Each element of the list is one whole call.
    pub(super) is_whole: bool,
    pub(super) list: &'static str,
    pub(super) index: &'static str,
    pub(super) kind: &'static str,
    pub(super) function_name: &'static str,
    pub(super) arguments: &'static str,
    pub(super) custom_name: &'static str,
    pub(super) custom_input: &'static str,
}

pub(super) const WHOLE: CallFields = CallFields {
    is_whole: true,
    list: "choices[].message.tool_calls",
    index: "choices[].message.tool_calls[].index",
    kind: "choices[].message.tool_calls[].type",
    function_name: "choices[].message.tool_calls[].function.name",
    arguments: "choices[].message.tool_calls[].function.arguments",
    custom_name: "choices[].message.tool_calls[].custom.name",
    custom_input: "choices[].message.tool_calls[].custom.input",
};

pub(super) const PIECE: CallFields = CallFields {
    is_whole: false,
    list: "choices[].delta.tool_calls",
    index: "choices[].delta.tool_calls[].index",
    kind: "choices[].delta.tool_calls[].type",
    function_name: "choices[].delta.tool_calls[].function.name",
    arguments: "choices[].delta.tool_calls[].function.arguments",
    custom_name: "choices[].delta.tool_calls[].custom.name",
    custom_input: "choices[].delta.tool_calls[].custom.input",
};

/// Element of a list of calls. Every mark may be missing.
pub(super) struct CallPart<'n> {
    pub(super) number: Option<u32>,
    pub(super) id: Option<&'n str>,
    /// Sort of the tool; a part without one is a function's, or of its call's sort.
    pub(super) kind: Option<ToolKind>,
    pub(super) name: &'n str,
    pub(super) input: String,
}

impl<'n> CallPart<'n> {
    /// Reads an element; `None` for an empty one.
    pub(super) fn read(
        part: &'n Node<'_>,
        fields: &CallFields,
    ) -> Result<Option<Self>, UnreadableReason> {
        match part {
            Node::Null => return Ok(None),
            Node::Array(all) if all.is_empty() => return Ok(None),
            Node::Object(members) if members.is_empty() => return Ok(None),
            Node::Object(_) => {}
            Node::Bool(_) | Node::Number(_) | Node::String(_) | Node::Array(_) => {
                return Err(UnreadableReason::ToolCalls(fields.kind));
            }
        }
        let text = |name| part.get(name).and_then(Node::as_str).unwrap_or_default();
        // A number that cannot be read is not a missing one: a guess would put arguments into another call.
        let number = match index(part.get("index")) {
            Some(number) => number,
            None if fields.is_whole => None,
            None => return Err(UnreadableReason::ToolCalls(fields.index)),
        };
        // Some servers leave the type out: a member `custom` tells the kind then.
        let kind = match text("type") {
            "" if part.get("custom").is_some() => Some(ToolKind::Custom),
            "" => None,
            "function" => Some(ToolKind::Function),
            "custom" => Some(ToolKind::Custom),
            _ => return Err(UnreadableReason::ToolCalls(fields.kind)),
        };
        let (member, input, name_field, input_field) = match kind {
            Some(ToolKind::Custom) => ("custom", "input", fields.custom_name, fields.custom_input),
            Some(ToolKind::Function) | None => {
                ("function", "arguments", fields.function_name, fields.arguments)
            }
        };
        let called = part.get(member);
        let name = called.and_then(|called| called.get("name")?.as_str()).unwrap_or_default();
        if fields.is_whole && name.is_empty() {
            let field = if called.is_some() { name_field } else { fields.list };
            return Err(UnreadableReason::ToolCalls(field));
        }
        let input = input_text(called.and_then(|called| called.get(input)), input_field)?;
        let id = Some(text("id")).filter(|id| !id.is_empty());
        Ok(Some(Self { number, id, kind, name, input }))
    }

    /// True if the part brings more of the input. White space alone is no part of a JSON text.
    pub(super) fn has_input(&self) -> bool {
        match self.kind {
            Some(ToolKind::Custom) => !self.input.is_empty(),
            Some(ToolKind::Function) | None => !self.input.trim_ascii().is_empty(),
        }
    }
}

/// Some servers send the arguments as the object that the text would be, or none at all.
pub(super) fn input_text(
    input: Option<&Node<'_>>,
    field: &'static str,
) -> Result<String, UnreadableReason> {
    match input {
        None => Ok(String::new()),
        Some(Node::String(text)) => Ok(text.as_ref().to_owned()),
        Some(object @ Node::Object(_)) => Ok(object.to_string()),
        Some(Node::Null | Node::Bool(_) | Node::Number(_) | Node::Array(_)) => {
            Err(UnreadableReason::ToolCalls(field))
        }
    }
}
