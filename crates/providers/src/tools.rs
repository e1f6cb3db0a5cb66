//! Tools of a request and the choice among them, as several kinds take them: functions alone, of
//! which only those are offered that may be called.

use std::collections::BTreeSet;

use holdfast_domain::request::{Function, Request, Tool, ToolChoice, ToolMode};
use holdfast_wire::json::{Node, parse};

/// The schema of a function without parameters, for kinds that require one.
pub(crate) const NO_PARAMETERS: &str = r#"{"type":"object","properties":{}}"#;

/// The functions on offer that may be called.
pub(crate) fn callable_functions(request: &Request) -> Vec<&Function> {
    let allowed = allowed_names(request).flatten();
    let is_allowed = |name: &str| allowed.as_ref().is_none_or(|names| names.contains(name));
    let functions = request.tools.iter().filter_map(|tool| match tool {
        Tool::Function(function) if is_allowed(&function.name) => Some(function),
        Tool::Function(_) | Tool::Custom(_) => None,
    });
    functions.collect()
}

/// The names of the tools that may be called, or `None` for all of them. A choice among no tools,
/// or of one that is not on offer, has no names at all.
pub(crate) fn allowed_names(request: &Request) -> Option<Option<BTreeSet<String>>> {
    let is_offered = |name: &str| {
        let mut names = request.tools.iter().map(|tool| match tool {
            Tool::Function(function) => &function.name,
            Tool::Custom(custom) => &custom.name,
        });
        names.any(|offered| offered == name)
    };
    match &request.tool_choice {
        None | Some(ToolChoice::Mode(ToolMode::None | ToolMode::Auto)) => Some(None),
        Some(ToolChoice::Mode(ToolMode::Required)) => (!request.tools.is_empty()).then_some(None),
        Some(ToolChoice::Named { name, .. }) => is_offered(name).then_some(None),
        Some(ToolChoice::Allowed { tools, .. }) => {
            let mut names = BTreeSet::new();
            for tool in tools {
                let node = parse(tool.as_str().as_bytes()).ok()?;
                let name = node.get("function")?.get("name")?.as_str()?;
                names.insert(Some(name).filter(|name| is_offered(name))?.to_owned());
            }
            (!names.is_empty()).then_some(Some(names))
        }
    }
}

/// True if a tool has to be called.
pub(crate) fn must_call(request: &Request) -> bool {
    match &request.tool_choice {
        None => false,
        Some(ToolChoice::Named { .. }) => true,
        Some(ToolChoice::Mode(mode) | ToolChoice::Allowed { mode, .. }) => match mode {
            ToolMode::None | ToolMode::Auto => false,
            ToolMode::Required => true,
        },
    }
}

/// The arguments of an earlier call; none are an empty object.
pub(crate) fn arguments(text: &str) -> &str {
    if text.trim().is_empty() { "{}" } else { text }
}

/// True if the arguments of an earlier call are an object, as they must be.
pub(crate) fn is_object(text: &str) -> bool {
    matches!(parse(arguments(text).as_bytes()), Ok(Node::Object(_)))
}
