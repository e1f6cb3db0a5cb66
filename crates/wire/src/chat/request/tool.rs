//! Reading of the tools that a model may call, and of the choice among them, in both forms.

use std::collections::BTreeMap;

use holdfast_domain::request::{
    CustomTool, Function, FunctionChoice, Opaque, Tool, ToolChoice, ToolKind, ToolMode,
};

use super::BadRequest;
use super::field::{self, Field};
use super::object::Object;
use crate::json::Node;

pub(crate) const TOOLS_MAX: usize = 128;
/// The members of a tool: suggestions for a mistyped one.
pub(super) const MEMBERS: [&str; 3] = ["type", "function", "custom"];
const KINDS: [ToolKind; 2] = [ToolKind::Function, ToolKind::Custom];

/// Tools. An empty list is the same as none.
pub(super) fn tools(field: Field<'_, '_>) -> Result<Vec<Tool>, BadRequest> {
    field.array(0..=TOOLS_MAX, &format!("an array of at most {TOOLS_MAX} tools"), tool)
}

/// Functions, the older form of tools.
pub(super) fn functions(field: Field<'_, '_>) -> Result<Vec<Function>, BadRequest> {
    field.array(1..=TOOLS_MAX, &format!("an array of 1 to {TOOLS_MAX} functions"), |field| {
        let mut function = Object::read(field, "an object")?;
        let read = described(&mut function)?;
        function.end()?;
        Ok(read)
    })
}

fn tool(field: Field<'_, '_>) -> Result<Tool, BadRequest> {
    let mut tool = Object::read(field, "an object")?;
    Ok(match kind(&mut tool)? {
        ToolKind::Function => {
            let read = tool.required("function", function)?;
            Tool::Function(Function { extras: tool.extras(), ..read })
        }
        ToolKind::Custom => {
            let read = tool.required("custom", custom)?;
            Tool::Custom(CustomTool { extras: tool.extras(), ..read })
        }
    })
}

/// Takes the `type` of a tool or of a call. Without one it is the kind whose member there is, as some
/// clients leave the type out.
pub(super) fn kind(tool: &mut Object<'_, '_>) -> Result<ToolKind, BadRequest> {
    let named = tool.optional_or_empty("type", |field| field.one_of(&KINDS, ToolKind::label))?;
    let is_custom = || tool.has("custom") && !tool.has("function");
    Ok(named.unwrap_or_else(|| if is_custom() { ToolKind::Custom } else { ToolKind::Function }))
}

fn function(field: Field<'_, '_>) -> Result<Function, BadRequest> {
    let mut function = Object::read(field, "an object")?;
    let strict = function.optional("strict", field::boolean)?;
    let read = described(&mut function)?;
    function.end()?;
    Ok(Function { strict, ..read })
}

fn described(function: &mut Object<'_, '_>) -> Result<Function, BadRequest> {
    Ok(Function {
        name: function.required("name", field::identifier)?,
        description: function.optional("description", field::string)?,
        parameters: function.optional("parameters", field::opaque_object)?,
        strict: None,
        extras: BTreeMap::new(),
    })
}

fn custom(field: Field<'_, '_>) -> Result<CustomTool, BadRequest> {
    let mut custom = Object::read(field, "an object")?;
    let name = custom.required("name", field::string)?;
    let description = custom.optional("description", field::string)?;
    let format = custom.optional("format", format)?;
    custom.end()?;
    Ok(CustomTool { name, description, format, extras: BTreeMap::new() })
}

/// Format of a custom tool's input. It is read to see that it is one, and kept as it is.
fn format(field: Field<'_, '_>) -> Result<Opaque, BadRequest> {
    let kept = field.node.to_opaque();
    let mut format = Object::read(field, "an object with a `type`")?;
    let kinds = ["text", "grammar"];
    if format.required("type", |field| field.one_of(&kinds, |kind| kind))? == "grammar" {
        format.required("grammar", |field| {
            let mut grammar = Object::read(field, "an object with `definition` and `syntax`")?;
            grammar.required("definition", field::string)?;
            grammar.required("syntax", |field| field.one_of(&["lark", "regex"], |name| name))?;
            grammar.end()
        })?;
    }
    format.end()?;
    Ok(kept)
}

pub(super) fn choice(field: Field<'_, '_>) -> Result<ToolChoice, BadRequest> {
    const KINDS: [&str; 3] = ["function", "custom", "allowed_tools"];
    // Anything that is no object is read as a word, so that the error lists the words.
    let Node::Object(_) = field.node else {
        return field.one_of(ToolMode::ALL, ToolMode::label).map(ToolChoice::Mode);
    };
    let mut choice = Object::read(field, "an object")?;
    let kind = choice.required("type", |field| field.one_of(&KINDS, |kind| kind))?;
    let named = |kind, name| ToolChoice::Named { kind, name };
    let read = match kind {
        "function" => named(ToolKind::Function, choice.required("function", name)?),
        "custom" => named(ToolKind::Custom, choice.required("custom", name)?),
        _ => choice.required("allowed_tools", allowed)?,
    };
    choice.end()?;
    Ok(read)
}

pub(super) fn function_choice(field: Field<'_, '_>) -> Result<FunctionChoice, BadRequest> {
    match &field.node {
        Node::Object(_) => name(field).map(FunctionChoice::Named),
        Node::Null | Node::Bool(_) | Node::Number(_) | Node::String(_) | Node::Array(_) => {
            let word = field.one_of(&["none", "auto"], |word| word)?;
            Ok(if word == "none" { FunctionChoice::None } else { FunctionChoice::Auto })
        }
    }
}

fn name(field: Field<'_, '_>) -> Result<String, BadRequest> {
    let mut named = Object::read(field, "an object with `name`")?;
    let name = named.required("name", field::string)?;
    named.end()?;
    Ok(name)
}

fn allowed(field: Field<'_, '_>) -> Result<ToolChoice, BadRequest> {
    let mut allowed = Object::read(field, "an object with `mode` and `tools`")?;
    let modes = [ToolMode::Auto, ToolMode::Required];
    let mode = allowed.required("mode", |field| field.one_of(&modes, ToolMode::label))?;
    let what = "an array of tools";
    let tools = allowed
        .required("tools", |field| field.array(0..=usize::MAX, what, field::opaque_object))?;
    allowed.end()?;
    Ok(ToolChoice::Allowed { mode, tools })
}
