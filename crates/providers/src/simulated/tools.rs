//! Choice of the tool that the simulated model calls, and of its input: the same for the same
//! request. Descriptions of tools are not read.

use holdfast_domain::answer::{ChoiceDelta, FinishReason, FunctionCallDelta, ToolCallDelta};
use holdfast_domain::ports::Call;
use holdfast_domain::request::{
    Content, CustomTool, Function, FunctionChoice, Opaque, Request, Role, Tool, ToolChoice,
    ToolKind, ToolMode,
};
use holdfast_wire::json;

use super::{Simulator, schema};

/// A tool that is called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ToolUse {
    form: CallForm,
    pub(super) name: String,
    parameters: Option<Opaque>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CallForm {
    Tool(ToolKind),
    /// The older form.
    Function,
}

impl ToolUse {
    /// The tool that is forced, or else the first that may be called; `None` if the model has none to call, or
    /// has a tool's result and may answer that.
    pub(super) fn of(call: &Call) -> Option<Self> {
        if &*call.model != Simulator::TOOLS_MODEL {
            return None;
        }
        let request = &*call.request;
        let is_answered = answered(call).is_some();
        tool(request, is_answered).or_else(|| function(request, is_answered))
    }

    /// A choice that calls it.
    pub(super) fn choice(&self, index: u32, said: &str) -> ChoiceDelta {
        let name = Some(self.name.clone());
        let choice = ChoiceDelta { index, ..ChoiceDelta::default() };
        match self.form {
            CallForm::Tool(kind) => {
                let input = Some(match kind {
                    ToolKind::Function => self.arguments(said),
                    ToolKind::Custom => said.to_owned(),
                });
                let called =
                    ToolCallDelta { kind: Some(kind), name, input, ..ToolCallDelta::default() };
                ChoiceDelta {
                    tool_calls: vec![called],
                    finish: Some(FinishReason::ToolCalls),
                    ..choice
                }
            }
            CallForm::Function => {
                let arguments = Some(self.arguments(said));
                ChoiceDelta {
                    function_call: Some(FunctionCallDelta { name, arguments }),
                    finish: Some(FinishReason::FunctionCall),
                    ..choice
                }
            }
        }
    }

    /// Input as the schema requires it, each member with a value of its type: texts are the user's.
    fn arguments(&self, said: &str) -> String {
        let schema = self.parameters.as_ref().map(Opaque::as_str).unwrap_or_default();
        schema::minimal(schema, said)
    }
}

/// Result of a tool, if it is the last message to the model that calls tools.
pub(super) fn answered(call: &Call) -> Option<String> {
    let last = call.request.messages.last().filter(|_| &*call.model == Simulator::TOOLS_MODEL)?;
    match last.role {
        Role::Tool { .. } | Role::Function => {
            let texts = last.content.iter().flat_map(Content::texts);
            Some(texts.collect::<Vec<_>>().join("\n"))
        }
        Role::Developer | Role::System | Role::User | Role::Assistant(_) => None,
    }
}

fn tool(request: &Request, is_answered: bool) -> Option<ToolUse> {
    let first = || request.tools.first().map(of_tool);
    match &request.tool_choice {
        Some(ToolChoice::Mode(ToolMode::None)) => None,
        Some(ToolChoice::Mode(ToolMode::Auto)) | None => first().filter(|_| !is_answered),
        Some(ToolChoice::Mode(ToolMode::Required)) => first(),
        Some(ToolChoice::Named { kind, name }) => find_named(request, *kind, name),
        Some(ToolChoice::Allowed { mode, tools }) => {
            let is_free = *mode != ToolMode::Required && is_answered;
            let allowed = tools.iter().find_map(|tool| {
                let tool = json::parse_answer(tool.as_str().as_bytes()).ok()?;
                [ToolKind::Function, ToolKind::Custom].into_iter().find_map(|kind| {
                    find_named(request, kind, tool.get(kind.label())?.get("name")?.as_str()?)
                })
            });
            allowed.filter(|_| !is_free)
        }
    }
}

fn find_named(request: &Request, kind: ToolKind, name: &str) -> Option<ToolUse> {
    let mut offers = request.tools.iter().map(of_tool);
    offers.find(|offer| offer.form == CallForm::Tool(kind) && offer.name == name)
}

fn of_tool(tool: &Tool) -> ToolUse {
    match tool {
        Tool::Function(function) => of_function(function, CallForm::Tool(ToolKind::Function)),
        Tool::Custom(CustomTool { name, .. }) => {
            ToolUse { form: CallForm::Tool(ToolKind::Custom), name: name.clone(), parameters: None }
        }
    }
}

fn of_function(function: &Function, form: CallForm) -> ToolUse {
    let Function { name, parameters, .. } = function;
    ToolUse { form, name: name.clone(), parameters: parameters.clone() }
}

fn function(request: &Request, is_answered: bool) -> Option<ToolUse> {
    let mut functions = request.functions.iter();
    let found = match &request.function_call {
        Some(FunctionChoice::None) => None,
        Some(FunctionChoice::Auto) | None => functions.next().filter(|_| !is_answered),
        Some(FunctionChoice::Named(name)) => functions.find(|function| function.name == *name),
    };
    found.map(|function| of_function(function, CallForm::Function))
}
