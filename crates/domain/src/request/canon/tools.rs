//! Feed of what the model is offered to call.

use super::{CanonicalSink, CanonicalWriter, tag};
use crate::request::{CustomTool, Function, FunctionChoice, Request, Tool, ToolChoice};

impl<A: CanonicalSink> CanonicalWriter<A> {
    pub(super) fn offers(&mut self, request: &Request) {
        if !request.tools.is_empty() {
            self.each(tag::TOOLS, &request.tools, Self::tool);
        }
        match &request.tool_choice {
            None => {}
            Some(ToolChoice::Mode(mode)) => self.label(tag::TOOL_CHOICE, mode.label()),
            Some(ToolChoice::Named { kind, name }) => {
                self.text(tag::TOOL_CHOICE_NAMED, name);
                self.label(tag::TOOL_KIND, kind.label());
            }
            Some(ToolChoice::Allowed { mode, tools }) => {
                self.label(tag::TOOL_CHOICE_ALLOWED, mode.label());
                // The tag of the tools on offer again: the label before it says whose list this is.
                self.each(tag::TOOLS, tools, |feed, tool| feed.opaque(tag::OPAQUE, tool));
            }
        }
        self.flag(tag::PARALLEL_TOOL_CALLS, request.parallel_tool_calls);
        if !request.functions.is_empty() {
            self.each(tag::FUNCTIONS, &request.functions, Self::function);
        }
        match &request.function_call {
            None => {}
            Some(FunctionChoice::None) => self.label(tag::FUNCTION_CHOICE, "none"),
            Some(FunctionChoice::Auto) => self.label(tag::FUNCTION_CHOICE, "auto"),
            Some(FunctionChoice::Named(name)) => self.text(tag::FUNCTION_CHOICE_NAMED, name),
        }
    }

    fn tool(&mut self, tool: &Tool) {
        match tool {
            Tool::Function(function) => self.function(function),
            Tool::Custom(CustomTool { name, description, format, extras }) => {
                self.text(tag::CUSTOM_TOOL, name);
                self.optional_text(tag::DESCRIPTION, description.as_deref());
                self.optional_opaque(tag::TOOL_FORMAT, format.as_ref());
                self.extras(tag::TOOL_EXTRAS, extras);
            }
        }
    }

    fn function(&mut self, function: &Function) {
        let Function { name, description, parameters, strict, extras } = function;
        self.text(tag::FUNCTION_TOOL, name);
        self.optional_text(tag::DESCRIPTION, description.as_deref());
        self.optional_opaque(tag::PARAMETERS, parameters.as_ref());
        self.flag(tag::STRICT, *strict);
        self.extras(tag::TOOL_EXTRAS, extras);
    }
}
